# SPDX-License-Identifier: Apache-2.0
"""Function processes killed with -9 at random moments, over both transports and both placements: each job ends with the
digest of an undisturbed one. Prints a table.

    pytest tests/integration/kills_test.py -s --kills 200 --seed 7

The seed fixes what is drawn; which process of a job is in which iteration by then is the machine's.
"""
import collections
import dataclasses
import itertools
import os
import random
import shutil
import signal
import statistics
import tempfile
import time
import unittest

from options import OPTIONS
from run_support import Bench

# Trees of three workers: with leaves below a root, and with a root for each worker.
SHAPES = {"two layers, K = 2": ("spec.aggregation.shards=2", "spec.aggregation.layers=[1, 2, 3]"),
          "one layer, K = 3": ("spec.aggregation.shards=3", "spec.aggregation.spread=3",
                               "spec.aggregation.layers=[1, 3]")}
# Long enough for kills while it trains and for a checkpoint or two.
JOB = ("spec.training.epochs=10", "spec.checkpoint.intervalSeconds=1")
STARTING = "starting function"
# Of kills: before the first iteration.
EARLY = 0.15
# By then a run has told of what was done before a kill; no function starts in less.
TOLD_SECONDS = 0.5
# Many times what a job takes that lost a function twice.
HANG_SECONDS = 120


def options(*fields):
    return [part for field in fields for part in ("--set", field)]


def exchanged(transport, placement):
    fields = [f"spec.aggregation.transport={transport}", f"spec.aggregation.placement={placement}"]
    # Workers have no memory of servers.
    return fields if placement == "Dedicated" else [*fields, "spec.aggregation.serverMemory="]


@dataclasses.dataclass
class Tally:
    """Of one transport and placement."""
    jobs: int = 0
    kills: int = 0
    struck: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # by role
    wrong: list = dataclasses.field(default_factory=list)   # digests
    failed: list = dataclasses.field(default_factory=list)  # jobs that did not end, or not well
    recoveries: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(list))  # seconds, by role

    def running(self):
        return self.kills - self.struck[STARTING]

    def line(self, name):
        recoveries = "; ".join(f"{role} {statistics.median(took):.1f} / {max(took):.1f} s ({len(took)})"
                               for role, took in sorted(self.recoveries.items()))
        return (f"| {name} | {self.jobs} | {self.kills} | {self.running()} | {len(self.wrong)} | {len(self.failed)} | "
                f"{recoveries} |")


class Kills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)
        cls.references = {}

    def reference(self, shape):
        """Of an undisturbed job: its digest and its iterations."""
        if shape not in self.references:
            run = self.bench.run(*options(*JOB, *SHAPES[shape]))
            self.references[shape] = run.digest(), run.report()["plan"]["iterations"]
        return self.references[shape]

    def strike(self, run, draw):
        """Kills a function of the run and returns what it was, or None where there was none."""
        roles = run.roles()
        functions = sorted(run.functions())
        if not functions:
            return None
        pid = draw.choice(functions)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        return roles.get(pid, STARTING)

    def reached(self, run):
        return max((event.get("iteration", 0) for event in run.events()), default=0)

    def recovery_seconds(self, run):
        """From now until the run is further than it was, or None where it ends before it says so."""
        since = time.monotonic()
        time.sleep(TOLD_SECONDS)
        reached = self.reached(run)
        while run.process.poll() is None and time.monotonic() < since + HANG_SECONDS:
            if self.reached(run) > reached:
                return time.monotonic() - since
            time.sleep(0.02)
        return None

    def strike_at_random(self, run, iterations, kills, draw):
        """Returns what was killed, and the iteration reached before the last kill."""
        if draw.random() < EARLY:
            time.sleep(draw.uniform(0, 1))
        else:
            run.wait_for_iteration(draw.randrange(1, iterations))
            time.sleep(draw.uniform(0, 0.3))
        struck, reached = [], 0
        for kill in range(kills):
            # The second one at the same moment, or while the job recovers from the first.
            pause = draw.choice((0, draw.uniform(0, 2)))
            time.sleep(pause if kill > 0 else 0)
            before = self.reached(run)
            victim = self.strike(run, draw)
            if victim is not None:
                struck.append(victim)
                reached = before
        return struck, reached

    def play(self, name, shape, kills, draw, tally):
        """One job, some of whose functions are killed."""
        expected, iterations = self.reference(shape)
        run = self.bench.start(*options(*JOB, *SHAPES[shape], *exchanged(*name)))
        tally.jobs += 1
        said = f"{', '.join(name)}, {shape}"
        try:
            struck, reached = self.strike_at_random(run, iterations, kills, draw)
            said += f", killed at iteration {reached}: {', '.join(struck) or 'none'}"
            tally.kills += len(struck)
            tally.struck.update(struck)
            if len(struck) == 1 and struck[0] != STARTING:
                took = self.recovery_seconds(run)
                if took is not None:
                    tally.recoveries[struck[0]].append(took)
            digest = run.wait(HANG_SECONDS).digest()
        except AssertionError as error:
            run.kill()
            tally.failed.append(f"{said}: {self.kept(run)}: {error}")
            return
        if digest != expected:
            tally.wrong.append(f"{said}: {digest} is not {expected}: {self.kept(run)}")
        if left := run.functions():
            tally.failed.append(f"{said}: processes were left behind: {left}")
        shutil.rmtree(run.out)

    def kept(self, run):
        """Where a run's folder and output are kept that somebody has to look at."""
        folder = tempfile.mkdtemp(prefix="lambdadnn-kills-")
        shutil.copytree(run.out, f"{folder}/run")
        shutil.copy(run.log, folder)
        return folder

    def test_functions_killed_at_random_moments(self):
        print(f"\nseed {OPTIONS.seed}")
        draw = random.Random(OPTIONS.seed)
        names = [name for name in itertools.product(("ObjectStore", "Direct"), ("Dedicated", "Workers"))
                 if OPTIONS.only in ", ".join(name)]
        tallies = {name: Tally() for name in names}
        each = max(1, OPTIONS.kills // len(names))
        for turn in itertools.count():
            short = [name for name in names if tallies[name].kills < each]
            if not short:
                break
            for name in short:
                shape = list(SHAPES)[turn // 2 % len(SHAPES)]
                self.play(name, shape, min(2 - turn % 2, each - tallies[name].kills), draw, tallies[name])
        print("| transport, placement | jobs | kills | of functions at work | wrong digests | failed jobs | further "
              "than before after, median / worst (jobs with one kill) |\n|---|---|---|---|---|---|---|")
        for name, tally in tallies.items():
            print(tally.line(", ".join(name)))
        self.assertEqual([said for tally in tallies.values() for said in tally.wrong + tally.failed], [])
        self.assertGreater(sum(tally.running() for tally in tallies.values()), 0)
