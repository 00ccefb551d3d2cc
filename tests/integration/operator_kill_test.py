#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operator is killed (-9) before, after, and after with the reply lost of every write to the API
server in the lives of jobs: one that completes and is deleted by its time to live, one that is
suspended and resumed, one that is planned anew, one that fails, one that is deleted as it runs; and
before it posts the slice of each role, once the function has it, and between lines of the answer. Each
ends as if nothing had happened: same digest, no function and no object left, no child twice.

    operator_kill_test.py BIN_FOLDER [--share I/N] [--record]

What is written is taken from a recorded run of each life and must be in operator_writes.txt
(--record writes it anew). --share I/N takes each N-th row of the table, from the I-th on.
"""
import argparse
import collections
import pathlib
import sys
import time

from api_proxy import ApiProxy, Lost
from host_proxy import HostProxy
from operator_support import Cluster

TABLE = pathlib.Path(__file__).parent / "operator_writes.txt"
MODES = ("before", "after", "reply lost")
# Of the slice of a role; the occurrence is the line of its answer that is not heard any more, 0 its head.
POST, LINE = "before its slice", "before a line"
LINES = 6  # of an answer, taken evenly
QUIET = ("events", "leases")
SEEN = 10  # iterations, before anybody disturbs a job
TRAINING = {"epochs": 12}

Row = collections.namedtuple("Row", "life write occurrence mode")


class WriteLog:
    """Names what each write changes, by what it carries."""

    def __init__(self):
        self.conditions, self.counts = {}, collections.Counter()

    def names(self, request):
        """The changes in a request, each with its number of occurrence; [] for anything else."""
        if request.method == "GET" or request.resource in QUIET or request.watch:
            return []
        found = []
        if request.subresource == "status":
            found = list(self.status(request))
        elif request.method == "PATCH":
            finalizers = (request.body or {}).get("metadata", {}).get("finalizers")
            found = ["finalizer taken" if finalizers == [] else "finalizer set"]
        else:
            found = [f"{request.method} {request.resource}"]
        numbered = []
        for name in found:
            self.counts[name] += 1
            numbered.append((name, self.counts[name]))
        return numbered

    def status(self, request):
        status = (request.body or {}).get("status", {})
        known = self.conditions.setdefault((request.namespace, request.name), {})
        for condition in status.get("conditions") or []:
            value = (condition["status"], condition["reason"])
            if known.get(condition["type"]) != value:
                known[condition["type"]] = value
                yield f"status {condition['type']}={value[0]} {value[1]}"
        for field in ("plan", "profile", "startTime", "completionTime", "model"):
            if field in status:
                yield f"status {field}"
        for field in ("functions", "incarnation", "firstIteration", "plannedFor"):
            if field in (status.get("execution") or {}):
                yield f"status execution.{field}"


class Lives:
    """Each method takes one job through a life and says how it ended."""

    def __init__(self, cluster, operate):
        self.cluster, self.operate, self.count = cluster, operate, 0
        self.digest = None  # of the reference

    def begin(self, **spec):
        self.count += 1
        name = f"life-{self.count}"
        path = self.cluster.manifest(name, **{"training": TRAINING, **spec})
        return name, self.cluster.create_job(path)

    def until(self, name, what, condition, seconds=180):
        """The job, once the condition holds; the operator is started again when it has died."""
        def look():
            self.operate()
            job = self.cluster.get(name)
            return (job or {"gone": True}) if condition(job) else None
        try:
            return self.cluster.wait_for(f"{name}: {what}", look, seconds, every=0.05)
        except AssertionError as error:
            page = self.operate().page("metrics", f"/debug/jobs/default/{name}")[1]
            raise AssertionError(f"{page[-6000:]}\n{str(error)[-3000:]}")

    def running(self, name):
        return self.until(name, "running", lambda job: job.get("status", {}).get(
            "progress", {}).get("iteration", 0) >= SEEN or self.ended(job))

    def ended(self, job):
        return any(self.cluster.condition(job, kind) for kind in ("Complete", "Failed"))

    def completed(self, name):
        job = self.until(name, "ended", self.ended)
        assert self.cluster.condition(job, "Complete"), job["status"]["conditions"]
        assert job["status"]["model"]["digest"] == self.digest, "the digest is another one"
        return job

    def nothing_left(self, name, job, results):
        left = []

        def clean():
            self.operate()
            left[:] = [key for key in self.cluster.store_keys(job)
                       if not (results and "/results/" in key)]
            left.extend(self.cluster.functions().values())
            _, secrets = self.cluster.api("GET", "/api/v1/namespaces/default/secrets")
            left.extend(item["metadata"]["name"] for item in secrets["items"]
                        if item["metadata"]["name"].startswith(name))
            return not left
        try:
            self.cluster.wait_for("clean", clean, 40)
        except AssertionError:
            raise AssertionError(f"{name} left behind: {left}\n{self.cluster.tails()}")

    def complete(self):
        name, job = self.begin(ttlSecondsAfterFinished=4)
        self.completed(name)
        self.nothing_left(name, job, results=True)
        self.until(name, "deleted by its time to live", lambda seen: seen is None)

    def suspend(self):
        name, job = self.begin()
        self.running(name)
        self.cluster.patch_job(name, {"spec": {"suspend": True}})
        self.until(name, "suspended", lambda seen: self.ended(seen) or
                   self.cluster.condition(seen, "Suspended"))
        self.cluster.patch_job(name, {"spec": {"suspend": False}})
        self.completed(name)
        self.nothing_left(name, job, results=True)

    def replan(self):
        name, job = self.begin()
        self.running(name)
        # Another memory: other functions, the same arithmetic.
        self.cluster.patch_job(name, {"spec": {"objective": {"fixed": {"memory": "448Mi"}}}})
        self.completed(name)
        self.nothing_left(name, job, results=True)

    def fail(self):
        name, job = self.begin(dataset={"uri": "file:///nowhere/digits"})
        job = self.until(name, "failed", self.ended)
        assert self.cluster.condition(job, "Failed"), job["status"]["conditions"]
        self.nothing_left(name, job, results=True)

    def delete(self):
        # Too long to complete before it is deleted, however late that is: its results would stay.
        name, job = self.begin(training={**TRAINING, "epochs": 400})
        self.running(name)
        self.cluster.api("DELETE", self.cluster.job_path(name))
        self.until(name, "deleted", lambda seen: seen is None)
        self.nothing_left(name, job, results=False)


LIVES = ("complete", "suspend", "replan", "fail", "delete")


class KillTest:
    def __init__(self, programs):
        self.cluster = Cluster(programs)
        self.host = self.cluster.start_host()
        self.functions = HostProxy(self.host.socket, self.cluster.folder / "functions.sock")
        self.proxy = ApiProxy(self.cluster.plane, self.cluster.own_user())
        self.kubeconfig = self.proxy.kubeconfig(self.cluster.folder)
        self.operator, self.starts = None, 0
        self.most = {}  # group -> functions of it at once, in an undisturbed life
        self.lives = Lives(self.cluster, self.operate)

    def close(self):
        self.proxy.close()
        self.functions.close()
        self.cluster.close()

    def operate(self):
        if self.operator is None or not self.operator.alive():
            self.starts += 1
            self.operator = self.cluster.start_operator(
                self.functions, "--enable-debug", name="operator", kubeconfig=self.kubeconfig)
        return self.operator

    def live(self, life, row=None):
        """One life, with the operator killed as the row says. The writes seen, and whether it was."""
        log, seen, struck = WriteLog(), [], []
        strike = {}  # request number -> it is to be killed there

        def before(request):
            changes = log.names(request)
            if changes:
                seen.append(changes)
            for name, occurrence in changes:
                if row and (name, occurrence) == (row.write, row.occurrence) and not struck:
                    struck.append(request.number)
                    strike[request.number] = True
                    if row.mode == "before":
                        self.operator.kill()
                        raise Lost()

        def after(request, _):
            if request.number in strike and row.mode == "reply lost":
                self.operator.kill()
                raise Lost()

        def done(request, _):
            if request.number in strike and row.mode == "after":
                self.operator.kill()

        def at_slice(mode):
            def hook(role, line=0):
                if row and (role, line, mode) == (row.write, row.occurrence, row.mode) and not struck:
                    struck.append(role)
                    self.operator.kill()
                    raise Lost()
            return hook

        self.proxy.reset()
        self.functions.reset()
        self.proxy.before, self.proxy.after, self.proxy.done = before, after, done
        self.functions.before, self.functions.line = at_slice(POST), at_slice(LINE)
        self.operate()
        getattr(self.lives, life)()
        for group, count in self.functions.most.items():
            # A later revision's functions are as many: the lives change none of the numbers.
            most = self.most.setdefault(group.split("-r")[0], count)
            assert count <= most, f"{count} functions of group {group} at once, not {most}"
        return seen, bool(struck)

    def record(self):
        """A life of each kind, undisturbed: the rows of the table."""
        reference = self.cluster.bench.run(
            job=self.cluster.manifest("reference", training=TRAINING))
        self.lives.digest = reference.digest()
        rows, writes = [], set()
        for life in LIVES:
            seen, _ = self.live(life)
            # Each write once, by the first of the changes that it carries.
            for changes in seen:
                rows.extend(Row(life, *changes[0], mode) for mode in MODES)
                writes.update(name for name, _ in changes)
            by_method = collections.Counter(
                "WATCH" if r.watch else r.method for r in self.proxy.requests)
            print(f"{life}: {len(seen)} writes with {sum(map(len, seen))} changes; all requests: "
                  f"{dict(by_method)}", flush=True)
            if life == "complete":
                answers = dict(self.functions.lines)
        for role, lines in sorted(answers.items()):
            rows.append(Row("complete", role, 0, POST))
            taken = sorted({round(lines * number / (LINES - 1)) for number in range(LINES)})
            rows.extend(Row("complete", role, line, LINE) for line in taken)
        print(f"lines of the answers of each role: {answers}", flush=True)
        return rows, sorted(writes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs")
    parser.add_argument("--share", default="1/1")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", default="", help="rows that hold this text")
    arguments = parser.parse_args()
    test = KillTest(arguments.programs)
    failed, missed, struck, begin = [], [], 0, time.monotonic()
    try:
        rows, writes = test.record()
        if arguments.record:
            TABLE.write_text("# What operators write in the lives of operator_kill_test.py.\n" +
                             "".join(f"{write}\n" for write in writes))
            return 0
        known = set(TABLE.read_text().splitlines())
        new = [write for write in writes if write not in known]
        if new:
            print(f"FAILED: writes that are not in {TABLE.name}: {new}; add them with --record")
            return 1
        first, step = map(int, arguments.share.split("/"))
        chosen = [row for row in rows[first - 1::step] if arguments.only in
                  f"{row.life}: {row.write} #{row.occurrence}, killed {row.mode}"]
        for row in chosen:
            text = f"{row.life}: {row.write} #{row.occurrence}, killed {row.mode}"
            started = time.monotonic()
            try:
                _, was = test.live(row.life, row)
                struck += was
                if not was:
                    missed.append(text)
                print(f"{text}: {'right' if was else 'not struck'}, "
                      f"{time.monotonic() - started:.0f} s", flush=True)
            except AssertionError as error:
                failed.append(text)
                print(f"FAILED {text}\n{str(error)[-9000:]}", flush=True)
        print(f"{len(rows)} rows, {len(chosen)} taken, operator killed in {struck}, "
              f"{test.starts} starts, {time.monotonic() - begin:.0f} s")
        for text in missed:
            print(f"not written again in this run: {text}")
        # A write that depends on timing may not come again, most must.
        if struck < 0.8 * len(chosen):
            failed.append("too few rows were struck")
        print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
        return 1 if failed else 0
    finally:
        test.close()


if __name__ == "__main__":
    sys.exit(main())
