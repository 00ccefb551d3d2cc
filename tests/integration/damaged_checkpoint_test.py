# SPDX-License-Identifier: Apache-2.0
"""A run whose newest checkpoint is complete but damaged goes on from the one before, and ends with
the bits of an undisturbed run; one whose data has changed goes on with nothing."""
import time
import unittest

from options import OPTIONS
from run_support import Bench, files_like

# The profile says that an iteration takes a tenth of a second: a checkpoint every ten of two hundred,
# so that two are there long before the end.
LENGTH = ("--set", "spec.profile.trainingRate.slope=0.5",
          "--set", "spec.checkpoint.intervalSeconds=1")
PATIENCE_SECONDS = 900


def complete_checkpoints(run):
    """Their folders, oldest first; without that of the initialised model."""
    manifests = files_like(run.out / "store", "*/*/*/checkpoints/*/r*.i*/manifest.json")
    found = [path.parent for path in manifests]
    found.sort(key=lambda folder: (int(folder.parent.name), int(folder.name.split(".i")[1])))
    return [folder for folder in found if int(folder.parent.name) > 0]


class DamagedCheckpoint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)
        cls.reference = cls.bench.start(*LENGTH).wait(PATIENCE_SECONDS).digest()

    def killed_with_two(self, bench=None):
        """A run that was killed, controller and functions, when it had two checkpoints."""
        run = (bench or self.bench).start(*LENGTH)
        end = time.monotonic() + PATIENCE_SECONDS
        while len(complete_checkpoints(run)) < 2:
            self.assertIsNone(run.process.poll(), f"it ended too early:\n{run.text()[-2000:]}")
            self.assertLess(time.monotonic(), end, run.text()[-2000:])
            time.sleep(0.01)
        run.kill()
        while run.functions():
            self.assertLess(time.monotonic(), end, "functions are left")
            time.sleep(0.05)
        return run

    def resumes_from_the_one_before(self, damage):
        run = self.killed_with_two()
        *_, before, newest = complete_checkpoints(run)
        part = newest / "s1"
        whole = part.read_bytes()
        part.write_bytes(damage(whole))
        self.assertEqual(len(part.read_bytes()), len(whole))
        seen = len(run.events())
        run = self.bench.resume(run, job="").wait(PATIENCE_SECONDS)
        self.assertEqual(run.digest(), self.reference)
        self.assertEqual(run.functions(), {})
        told = " ".join(str(event) for event in run.events()[seen:])
        self.assertIn("reading checkpoint part", told, "nobody met the damage")
        self.assertIn(f"going on from iteration {before.parent.name}", told)

    def test_data_that_changed_while_nothing_ran(self):
        bench = Bench(OPTIONS.bin)
        self.addCleanup(bench.close)
        run = self.killed_with_two(bench)
        bench.render_digits("digits", 1000, 200, seed=2)
        run = bench.resume(run, job="").wait(PATIENCE_SECONDS)
        self.assertEqual(run.code, 1, run.text())
        self.assertIn("has changed since this job began", run.text())
        self.assertIn("put the data back", run.text())
        self.assertEqual(run.functions(), {})

    def test_wrong_weights(self):
        self.resumes_from_the_one_before(lambda b: b[:1000] + bytes([b[1000] ^ 1]) + b[1001:])

    def test_wrong_optimizer_state(self):
        self.resumes_from_the_one_before(lambda b: b[:-1] + bytes([b[-1] ^ 128]))
