#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guarantee 1 on real processes: for a pinned plan and seed the model's digest is the same however
the run is disturbed. One test a disturbance.

    bit_identity_test.py BIN_FOLDER [--kills N] [unittest arguments]
"""
import os
import random
import signal
import sys
import time
import unittest

from fault_store import CREDENTIALS, FaultStore
from run_support import Bench, processes

BIN = ""
KILLS = 8
# Enough for what happens in every iteration; the job's own twelve are for what needs time.
SHORT = ("--set", "spec.training.epochs=3")


class Runs(unittest.TestCase):
    """Runs of one job; `same` compares with an undisturbed run, made once for each length."""

    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(BIN)
        cls.references = {}

    @classmethod
    def tearDownClass(cls):
        cls.bench.close()

    def reference(self, *length):
        if length not in self.references:
            self.references[length] = self.bench.run(*length).digest()
        return self.references[length]

    def same(self, run, *length):
        self.assertEqual(run.digest(), self.reference(*length))
        self.assertEqual(run.functions(), {}, "processes were left behind")


class Geometry(Runs):
    def test_an_undisturbed_run_repeats(self):
        self.same(self.bench.run(*SHORT), *SHORT)

    def test_another_seed_gives_other_bits(self):
        run = self.bench.run(*SHORT, "--set", "spec.training.seed=8")
        self.assertNotEqual(run.digest(), self.reference(*SHORT))

    def test_any_number_of_shards(self):
        for shards in (1, 5):
            with self.subTest(shards=shards):
                self.same(self.bench.run(*SHORT, "--set", f"spec.aggregation.shards={shards}"),
                          *SHORT)

    def test_digits_that_the_functions_draw_themselves(self):
        self.same(self.bench.run(*SHORT, "--set", "spec.dataset.uri=",
                                 "--set", "spec.dataset.renderedDigits.train=1000",
                                 "--set", "spec.dataset.renderedDigits.test=200"), *SHORT)

    def test_clipping_by_global_norm_for_any_number_of_shards(self):
        digests = {self.bench.run(*SHORT, "--set", "spec.training.optimizer.clip.globalNorm=0.5",
                                  "--set", f"spec.aggregation.shards={shards}",
                                  "--set", f"spec.aggregation.spread={spread}").digest()
                   for shards, spread in ((1, 1), (2, 2), (5, 1))}
        self.assertEqual(len(digests), 1)
        self.assertNotIn(self.reference(*SHORT), digests, "the norm was never above the limit")


class Disturbance(Runs):
    def test_slices_of_three_seconds(self):
        run = self.bench.run("--platform", self.bench.platform(functionTimeoutSeconds=3))
        self.same(run)
        self.assertGreater(run.report()["slices"], len(run.report()["timeline"]))

    def kill_at_random(self, draw, kills):
        """Kills functions in turn while they train and at any moment, starting ones too."""
        run = self.bench.start()
        reached = done = 0
        while done < kills and run.process.poll() is None:
            if done % 2 == 0 and not run.wait_for_iteration(reached + draw.randint(1, 30)):
                break
            time.sleep(draw.uniform(0.0, 0.3 if done % 2 == 0 else 2.0))
            functions = run.functions()
            if not functions:
                continue
            reached = max((e.get("iteration", 0) for e in run.events()), default=0)
            try:
                os.kill(draw.choice(sorted(functions)), signal.SIGKILL)
            except ProcessLookupError:
                continue
            done += 1
        return run.wait(), done

    def test_functions_killed_at_random_moments(self):
        draw, killed = random.Random(1), 0
        while killed < KILLS:
            run, done = self.kill_at_random(draw, kills=min(5, KILLS - killed))
            killed += done
            self.same(run)
            self.assertGreater(done, 0)
            self.assertGreaterEqual(run.report()["restarts"], 1)

    def test_the_controller_killed_at_random_moments(self):
        draw = random.Random(4)
        run = self.bench.start()
        for _ in range(4):
            time.sleep(draw.uniform(1.0, 4.0))
            run.kill()
            time.sleep(0.5)
            left = processes("lambdadnn-worker", "lambdadnn-server", "lambdadnn", mark=str(run.out))
            self.assertEqual(left, {}, "kill -9 of run left processes behind")
            run = self.bench.resume(run)
        self.same(run.wait())

    def test_interrupted_and_resumed(self):
        run = self.bench.start()
        run.wait_for_iteration(20)
        run.interrupt()
        self.assertEqual(run.wait().code, 130, run.text())
        self.assertIn("--resume", run.text())
        self.same(self.bench.resume(run).wait())

    def test_a_store_that_refuses_and_delays(self):
        store = FaultStore(unavailable=0.10, delayed=0.05)
        self.addCleanup(store.close)
        run = self.bench.run(*SHORT, *store.options(), environment=CREDENTIALS)
        self.same(run, *SHORT)
        self.assertGreater(store.refused, 100)
        self.assertGreater(run.report()["store"]["retries"], 0)
        self.assertEqual([k for k in store.keys() if "/results/" not in k], [])
        self.assertTrue(store.keys())


if __name__ == "__main__":
    BIN = sys.argv.pop(1)
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main(verbosity=2)
