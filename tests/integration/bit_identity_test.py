# SPDX-License-Identifier: Apache-2.0
"""Guarantee 1 on real processes: for a pinned plan and seed the model's digest is the same however
the run is disturbed. One test a disturbance."""
import os
import random
import signal
import time
import unittest

from fault_store import CREDENTIALS, FaultStore
from options import OPTIONS
from run_support import Bench

# Every second kill is of one of these, in turn.
VICTIMS = ("worker", "leaf server", "root server", "controller")
# Enough for what happens in every iteration; the job's own twelve are for what needs time.
SHORT = ("--set", "spec.training.epochs=3")
# Three times what a slice of three seconds trains on a fast machine.
LONG = ("--set", "spec.training.epochs=48")
# All that is drawn for a sample.
AUGMENT = ("{flip: true, randomResizedCrop: {scale: ['0.5', '1']}, mixup: {alpha: '0.2'}, "
           "colorJitter: {brightness: '0.4', contrast: '0.4'}}")


class Runs(unittest.TestCase):
    """Runs of one job; `same` compares with an undisturbed run, made once for each length."""

    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        job = cls.bench.job.read_text()
        cls.bench.job.write_text(job.replace("format: IDX}", f"format: IDX, augment: {AUGMENT}}}"))
        cls.addClassCleanup(cls.bench.close)
        cls.references = {}

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


def exchanged(placement, transport):
    """Options: the same tree, with servers and objects elsewhere."""
    options = ("--set", f"spec.aggregation.placement={placement}", "--set", f"spec.aggregation.transport={transport}")
    # Workers have no memory of servers.
    return options if placement == "Dedicated" else (*options, "--set", "spec.aggregation.serverMemory=")


class Exchange(Runs):
    """Wherever servers run, and however objects get to them."""

    def test_every_placement_and_transport(self):
        for placement, transport in (("Workers", "ObjectStore"), ("Dedicated", "Direct"), ("Workers", "Direct")):
            with self.subTest(placement=placement, transport=transport):
                run = self.bench.run(*SHORT, *exchanged(placement, transport))
                self.same(run, *SHORT)
                aggregation = run.report()["plan"]["aggregation"]
                self.assertEqual((aggregation["placement"], aggregation["transport"]), (placement, transport))
                if transport == "Direct":
                    self.assertLess(run.report()["store"]["puts"], run.report()["plan"]["iterations"],
                                    "gradients went through the store")


class Disturbance(Runs):
    def test_slices_of_three_seconds(self):
        run = self.bench.run(*LONG, "--platform", self.bench.platform(functionTimeoutSeconds=3))
        self.same(run, *LONG)
        self.assertGreater(run.report()["slices"], len(run.report()["timeline"]))

    def strike(self, run, victim, draw):
        """Kills a process of this kind, or any function for None. Returns what it was, or None when
        there was no such process, and the run that goes on."""
        if victim == "controller":
            run.kill_and_await_its_host()
            if run.process.returncode != -signal.SIGKILL:
                return None, run  # it had just ended
            return victim, self.bench.resume(run)
        roles = run.roles()
        wanted = sorted(pid for pid in run.functions() if victim in (None, roles.get(pid)))
        if not wanted:
            return None, run
        pid = draw.choice(wanted)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None, run
        return roles.get(pid, "starting function"), run

    def kill_at_random(self, draw, kills, struck):
        """In turn: while it trains, one kind of process after the other; and at any moment any
        function, starting ones too."""
        run = self.bench.start()
        reached = done = 0
        while done < kills and run.process.poll() is None:
            trains = done % 2 == 0
            if trains and not run.wait_for_iteration(reached + draw.randint(1, 30)):
                break
            time.sleep(draw.uniform(0.0, 0.3 if trains else 2.0))
            if run.process.poll() is not None:
                break
            victim = VICTIMS[sum(kind for _, kind in struck) % len(VICTIMS)] if trains else None
            reached = max((e.get("iteration", 0) for e in run.events()), default=0)
            hit, run = self.strike(run, victim, draw)
            if hit:
                struck.append((hit, trains))
                done += 1
        return run.wait(), done

    def test_functions_and_controller_killed_at_random_moments(self):
        draw, struck = random.Random(1), []
        while len(struck) < OPTIONS.kills:
            run, done = self.kill_at_random(draw, min(5, OPTIONS.kills - len(struck)), struck)
            self.same(run)
            self.assertGreater(done, 0)
            self.assertGreaterEqual(run.report()["restarts"], 1)
        print("struck:", ", ".join(kind for kind, _ in struck))
        self.assertLessEqual(set(VICTIMS), {kind for kind, _ in struck})

    def test_the_controller_killed_at_random_moments(self):
        draw = random.Random(4)
        run = self.bench.start()
        for _ in range(4):
            time.sleep(draw.uniform(1.0, 4.0))
            run.kill_and_await_its_host()
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
