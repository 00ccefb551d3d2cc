# SPDX-License-Identifier: Apache-2.0
"""Functions as real processes, with the test in the operator's place: those that were cut off from
their operator, but not from the store, change nothing; and those that are told to end do so in good
order."""
import shutil
import signal
import unittest

from function_gang import CHECKPOINT_EVERY, ITERATIONS, PATIENCE_SECONDS, Gang, Job, wait_until
from options import OPTIONS
from run_support import Bench


class Gangs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)
        cls.data = cls.bench.folder / "digits"
        cls.processes = cls.bench.folder / "processes"
        cls.processes.mkdir()
        job = cls.job("reference")
        gang = Gang(OPTIONS.bin, cls.processes, job).begin()
        try:
            cls.reference = gang.digest()
            cls.model = cls.model_of(job)
        finally:
            gang.end()

    @classmethod
    def job(cls, name):
        return Job(cls.bench.folder, cls.data, name)

    @staticmethod
    def model_of(job):
        return job.path("results/model.safetensors").read_bytes()

    def gang(self, job):
        gang = Gang(OPTIONS.bin, self.processes, job)
        self.addCleanup(gang.end)
        return gang

    def stopped_halfway(self, job):
        """A gang of incarnation 0 in the middle of an iteration, every process of it stopped; and
        the newest complete checkpoint."""
        gang = self.gang(job).begin()
        gang.wait_for_checkpoint()
        gang.signal(signal.SIGSTOP)
        newest = job.checkpoints()[-1]
        self.assertLess(newest[0], ITERATIONS, "too fast to be stopped on the way")
        return gang, newest


class Fencing(Gangs):
    def test_a_gang_that_was_cut_off_changes_nothing(self):
        job = self.job("cut-off")
        old, newest = self.stopped_halfway(job)
        new = self.gang(job).begin(incarnation=1, start=newest)
        new.wait_for_checkpoint(incarnation=1, after=newest[0])
        old.signal(signal.SIGCONT)
        self.assertEqual(new.digest(), self.reference)
        # What the old ones still had to do, they have done as well.
        for function in old.functions:
            function.record()
        self.assertEqual(self.model_of(job), self.model)
        self.assertIn((ITERATIONS, 1, 1), job.checkpoints())

    def test_one_worker_that_was_cut_off_changes_nothing(self):
        job = self.job("one-left")
        old, newest = self.stopped_halfway(job)
        left = old.of("worker", 1)
        for function in old.functions:
            if function is not left:
                function.end()
        new = self.gang(job).begin(incarnation=1, start=newest)
        new.wait_for_checkpoint(incarnation=1, after=newest[0])
        left.signal(signal.SIGCONT)
        self.assertEqual(new.digest(), self.reference)
        self.assertEqual(self.model_of(job), self.model)
        self.assertIsNone(left.process.poll(), "it was to be there until the end")

    def test_requests_of_those_who_were_replaced_are_refused(self):
        job = self.job("replaced")
        gang = self.gang(job).begin(incarnation=3, revision=2, epoch=5)
        gang.wait_for_checkpoint(incarnation=3)
        for role, function in zip(gang.ROLES, gang.functions, strict=True):
            for what, older in (("incarnation", {"incarnation": 2, "revision": 2, "epoch": 5}),
                                ("plan revision", {"incarnation": 3, "revision": 1, "epoch": 5}),
                                ("leader epoch", {"incarnation": 3, "revision": 2, "epoch": 4})):
                with self.subTest(role=role, older=what):
                    status, answer = function.ask("POST", "/v1/slices", job.request(role, **older))
                    self.assertEqual(status, 412, answer)
                    self.assertIn(f"the request's {what} is", answer["error"]["message"])
            newest = {"incarnation": 3, "revision": 2, "epoch": 5}
            other = job.request(role, uid="uid-other", **newest)
            self.assertEqual(function.ask("POST", "/v1/slices", other)[0], 412)
            status, _ = function.ask("POST", "/v1/slices", job.request(role, **newest), key="guess")
            self.assertEqual(status, 401)
        self.assertEqual(gang.digest(), self.reference)

    def test_an_object_of_an_older_revision_is_never_taken(self):
        job = self.job("planted")
        old = self.gang(job).begin(roles=[("worker", 0), ("worker", 1)])
        pushed = [job.path(f"x/r1.i0/0/g0/s{shard}/0") for shard in (0, 1)]
        wait_until("the first gradients", lambda: all(path.exists() for path in pushed))
        wait_until("checkpoint 0", job.checkpoints)
        old.end()

        def plant(incarnation):
            for shard, path in enumerate(pushed):
                place = job.path(f"x/r2.i{incarnation}/0/g0/s{shard}/0")
                place.parent.mkdir(parents=True)
                shutil.copy(path, place)

        start = job.checkpoints()[-1]
        # The right one is never written: the server reports what it found and merges nothing.
        plant(incarnation=1)
        gang = self.gang(job)
        gang.begin(roles=[("server", 0)], revision=2, incarnation=1, start=start)
        record = gang.of("server", 0).record()
        self.assertEqual(record["error"]["code"], "DATA_LOSS", record)
        self.assertIn("the object is of revision 1, incarnation 0, not of 2, 1",
                      record["error"]["message"])
        self.assertFalse(list(job.path("x/r2.i1").glob("1/w/*")), "it published weights")
        # The right one comes and takes its place.
        plant(incarnation=2)
        workers = [("worker", 0), ("worker", 1)]
        gang.begin(roles=workers, revision=2, incarnation=2, start=start)
        stale = [path.read_bytes() for path in pushed]
        wait_until("the right gradients", lambda: all(
            job.path(f"x/r2.i2/0/g0/s{shard}/0").read_bytes() != stale[shard] for shard in (0, 1)))
        gang.begin(roles=[("server", 0)], revision=2, incarnation=2, start=start)
        self.assertEqual(gang.digest(), self.reference)
        self.assertEqual(self.model_of(job), self.model)


class Termination(Gangs):
    def test_sigterm_ends_the_iteration_and_the_gang_goes_on_from_there(self):
        for kind, rank in (("worker", 1), ("server", 0)):
            with self.subTest(kind=kind):
                job = self.job(f"sigterm-{kind}")
                gang = self.gang(job).begin()
                gang.wait_for_checkpoint()
                told = gang.of(kind, rank)
                told.signal(signal.SIGTERM)
                records = [function.record() for function in gang.functions]
                self.assertEqual(told.process.wait(PATIENCE_SECONDS), 0,
                                 told.log.read_text()[-2000:])
                place = records[0]["nextIteration"]
                self.assertGreaterEqual(place, CHECKPOINT_EVERY)
                for record in records:
                    self.assertEqual((record["outcome"], record["nextIteration"]),
                                     ("stopped", place))
                start = (place, 1, 0)
                self.assertIn(start, job.checkpoints())
                self.assertEqual(records[-1]["checkpoint"], job.reference(start))
                for (other, number), function in zip(gang.ROLES, gang.functions, strict=True):
                    alive = function.process.poll() is None
                    self.assertEqual(alive, (other, number) != (kind, rank))
                gang.replace(kind, rank)
                gang.begin(start=start)
                self.assertEqual(gang.digest(), self.reference)
                self.assertEqual(self.model_of(job), self.model)
