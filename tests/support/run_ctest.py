#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one ctest command for scripts/test.sh and shows what ctest shows.

    run_ctest.py [OPTIONS] BUILD_FOLDER CTEST_ARGUMENTS...

    --tier TIER           what its results are called
    --limit SECONDS       for all of it; then the tests that run are ended and named
    --test-limit SECONDS  for each test
    --remember            do not run what passed with the same inputs before (remembered.py)
    --also ARGUMENTS      add the eighth of these tests (ctest arguments) that is this commit's turn

Whatever a test started ends with it. Writes BUILD_FOLDER.TIER.log (what ctest said), and
BUILD_FOLDER.TIER.json: how many passed, failed, were skipped or remembered, what was left out, and
seconds by test. Exit code 1 when a test failed or none was found.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

import marked_processes
import remembered
import skipped_tests
import turns

HERE = pathlib.Path(__file__).resolve().parent
TURNS = 8  # commits, each of which takes a part of --also
ENDED = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*(.*?) +([\d.]+) sec")
STARTED = re.compile(r"^ +Start +\d+: (\S+)$")
NOISE = re.compile(r"^(Internal ctest|Test project)")


def listed(build, arguments):
    """The tests that ctest would run, as it describes them."""
    done = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *arguments],
                          capture_output=True, text=True)
    try:
        return json.loads(done.stdout)["tests"]
    except ValueError:
        print(done.stdout + done.stderr, end="")
        return []


class Run:
    def __init__(self, options):
        self.options = options
        self.name = f"{os.environ.get('LAMBDADNN_TEST_RUN', '')}/{os.getpid()}-{time.time_ns()}"
        self.begin = time.monotonic()
        self.wanted = []
        self.running = {}   # name: when it began
        self.seconds = {}
        self.failed, self.skipped, self.cached, self.notes = [], [], [], []

    def choose(self):
        """Names that are to be run; those that are remembered are told at once."""
        tests = listed(self.options.build, self.options.arguments)
        if self.options.also:
            # ctest lists what those need, too.
            have = {test["name"] for test in tests}
            more = sorted((test for test in listed(self.options.build, shlex.split(self.options.also))
                           if test["name"] not in have), key=lambda test: test["name"])
            mine = more[turns.turn(TURNS)::TURNS]
            self.notes.append(f"of the {len(more)} others, this commit's turn: " +
                              (" ".join(test["name"] for test in mine) or "none"))
            print(f"{self.options.tier}: {self.notes[-1]}")
            tests += mine
        self.keys = {}
        for test in tests:
            key = remembered.key(test, self.options.build) if self.options.remember else None
            known = remembered.find(key)
            if known is None:
                self.wanted.append(test["name"])
                self.keys[test["name"]] = key
            else:
                self.cached.append(test["name"])
                print(f"{test['name']}: cached (passed in {known['seconds']} s on {known['date']})")
        return bool(tests)

    def command(self):
        # Names instead of the labels that found them.
        kept, words = [], iter(self.options.arguments)
        for word in words:
            if word in ("-L", "-LE", "-R", "-E"):
                next(words)
            else:
                kept.append(word)
        names = "|".join(re.escape(name).replace(r"\-", "-") for name in self.wanted)
        return ["ctest", "--test-dir", str(self.options.build), "--output-on-failure", *kept,
                "-R", f"^({names})$"]

    def end(self, test=None):
        """Kills what a test, or all of them, left."""
        return marked_processes.end(self.name, test)

    def read(self, line):
        started, ended = STARTED.match(line), ENDED.match(line)
        if started and started[1] in self.wanted:
            self.running[started[1]] = time.monotonic()
        elif ended and self.running.pop(ended[1], None) is not None:
            name, how, self.seconds[ended[1]] = ended[1], ended[2], float(ended[3])
            if "***Skipped" in how:
                self.skipped.append(name)
            elif "Passed" not in how:
                self.failed.append(name)
            left = self.end(name)
            if left:
                print(f"{name}: ended {len(left)} processes that it left: " + "; ".join(left)[:300])

    def watch(self):
        """Ends a test beyond its limit, and says whether the whole is beyond its own."""
        now = time.monotonic()
        for name, begin in self.running.items():
            if self.options.test_limit and now - begin > self.options.test_limit:
                print(f"{name}: took more than {self.options.test_limit} s, the limit of the ci set; ended")
                self.running[name] = now
                self.end(name)
        return now - self.begin > self.options.limit

    @contextlib.contextmanager
    def lender(self, environment):
        """Lends control planes to the tests; ends with this process, however that ends."""
        import shared_planes  # and with it the client of Kubernetes, which other tiers do without

        with tempfile.TemporaryDirectory(prefix="lambdadnn-planes-") as folder:
            address = f"{folder}/socket"
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(address)
                listener.listen(64)
                lender = subprocess.Popen(
                    [sys.executable, HERE / "shared_planes.py", folder, str(listener.fileno())],
                    stdin=subprocess.PIPE, env=environment, pass_fds=[listener.fileno()])
            try:
                yield {**environment, shared_planes.SOCKET: address}
            finally:
                lender.stdin.close()
                lender.wait()

    def run(self):
        """Returns whether it came to its end."""
        environment = {**os.environ, "LAMBDADNN_TEST_RUN": self.name}
        if self.options.tier != "integration":
            return self.run_in(environment)
        with self.lender(environment) as environment:
            return self.run_in(environment)

    def run_in(self, environment):
        ctest = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=environment, start_new_session=True)
        os.set_blocking(ctest.stdout.fileno(), False)
        selector = selectors.DefaultSelector()
        selector.register(ctest.stdout, selectors.EVENT_READ)
        rest, whole = b"", True
        try:
            with open(self.options.log, "wb") as log:
                while whole:
                    whole = not self.watch()
                    if not selector.select(timeout=1):
                        continue
                    data = os.read(ctest.stdout.fileno(), 65536)
                    if not data:
                        break
                    log.write(data)
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        text = line.decode(errors="replace")
                        if not NOISE.match(text):
                            print(text)
                        self.read(text)
                    sys.stdout.flush()
        finally:
            self.end()
            ctest.kill()
            ctest.wait()
        return whole

    def unfinished(self):
        """What had begun comes first."""
        return [*self.running, *(name for name in self.wanted
                                 if name not in self.seconds and name not in self.running)]

    def left_out(self):
        last = self.options.build / "Testing/Temporary/LastTest.log"
        try:
            return sorted(skipped_tests.left_out(last.read_text(errors="replace"),
                                                 self.options.log.read_text(errors="replace")))
        except OSError as error:
            return [f"the list of skipped tests could not be made: {error}"]

    def keep(self, left_out):
        """What passed whole."""
        partly = {line.split(":")[0] for line in left_out}
        for name, seconds in self.seconds.items():
            if self.keys.get(name) and name not in {*self.failed, *self.skipped, *partly}:
                remembered.keep(self.keys[name], name, seconds)
        remembered.forget_old()


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tier", required=True)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--test-limit", type=float)
    parser.add_argument("--remember", action="store_true")
    parser.add_argument("--also", default="")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.log = pathlib.Path(f"{options.build}.{options.tier}.log")
    return options


def stop(*_):
    sys.exit(130)


def main():
    # Whatever the shell left of them: tests interrupt programs, and are interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, stop)
    options = parse()
    run = Run(options)
    any_test = run.choose()
    remembered.tell_ctest_seconds(options.build)
    whole = run.run() if run.wanted else True
    remembered.keep_seconds(run.seconds)
    left_out = run.left_out() if run.wanted else []
    missing = run.unfinished()
    if run.wanted and options.remember:
        run.keep(left_out)
    passed = len(run.seconds) - len(run.failed) - len(run.skipped)
    pathlib.Path(f"{options.build}.{options.tier}.json").write_text(json.dumps({
        "any": any_test, "whole": whole, "passed": passed + len(run.cached), "cached": len(run.cached),
        "failed": run.failed, "skipped": len(run.skipped), "missing": missing,
        "notes": run.notes, "left_out": left_out, "seconds": run.seconds}))
    return 0 if any_test and whole and not run.failed and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
