# SPDX-License-Identifier: Apache-2.0
"""A run that is stopped, given another objective, and resumed under another plan."""
import time
import unittest

from options import OPTIONS
from run_support import Bench


class Replan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)
        cls.reference = cls.bench.run()
        cls.digest = cls.reference.digest()

    def suspended(self, iteration=20):
        run = self.bench.start()
        self.assertTrue(run.wait_for_iteration(iteration), run.text())
        run.interrupt()
        self.assertEqual(run.wait().code, 130, run.text())
        return run

    def edited(self, *replacements):
        text = self.bench.job.read_text()
        for old, new in replacements:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.bench.folder / f"edited-{time.monotonic_ns()}.yaml"
        path.write_text(text)
        return path

    def test_another_memory_gives_the_same_bits(self):
        run = self.suspended()
        job = self.edited(("memory: 384Mi", "memory: 512Mi"))
        resumed = self.bench.resume(run, job=job).wait()
        self.assertEqual(resumed.digest(), self.digest)
        plans = resumed.report()["plans"]
        self.assertEqual([p["memory"] for p in plans], ["384Mi", "512Mi"])
        self.assertEqual(resumed.report()["plan"]["revision"], 2)
        self.assertEqual(resumed.functions(), {})

    def test_another_number_of_functions_trains_to_the_same_accuracy(self):
        run = self.suspended()
        job = self.edited(("functions: 3, memory: 384Mi", "functions: 2, memory: 512Mi"),
                          ("layers: [1, 2, 3]", "layers: [1, 2]"), ("shards: 2", "shards: 1"))
        resumed = self.bench.resume(run, job=job).wait()
        self.assertTrue(resumed.digest())
        report = resumed.report()
        self.assertEqual([p["functions"] for p in report["plans"]], [3, 2])
        self.assertEqual(sum(p["iterations"] for p in report["plans"]),
                         self.reference.report()["plan"]["iterations"])
        self.assertAlmostEqual(sum(p["actual"]["cost"] for p in report["plans"]),
                               report["actual"]["cost"], delta=1e-9)
        self.assertGreater(report["plans"][1]["firstIteration"], 19)
        self.assertAlmostEqual(report["metrics"]["testAccuracy"],
                               self.reference.report()["metrics"]["testAccuracy"], delta=0.05)

    def test_an_objective_set_on_the_command_line(self):
        run = self.suspended()
        resumed = self.bench.resume(run, "--set", "spec.objective.fixed.memory=448Mi",
                                    job="").wait()
        self.assertEqual(resumed.digest(), self.digest)
        self.assertEqual(resumed.report()["plan"]["memory"], "448Mi")

    def test_what_cannot_change_is_refused_and_the_run_stays_resumable(self):
        run = self.suspended()
        job = self.edited(("seed: 7", "seed: 4711"))
        refused = self.bench.resume(run, job=job).wait()
        self.assertEqual(refused.code, 2, refused.text())
        self.assertIn("spec.training.seed: cannot be changed once the job exists", refused.text())
        job = self.edited(("name: digits\n", "name: other\n"))
        refused = self.bench.resume(run, job=job).wait()
        self.assertEqual(refused.code, 2, refused.text())
        self.assertIn("is job other", refused.text())
        self.assertEqual(self.bench.resume(run, job="").wait().digest(), self.digest)

    def test_more_epochs_train_as_many_iterations_more(self):
        run = self.suspended()
        resumed = self.bench.resume(run, "--set", "spec.training.epochs=13", job="").wait()
        iterations = self.reference.report()["plan"]["iterations"]
        report = resumed.report()
        self.assertEqual(report["plan"]["iterations"], iterations // 12 * 13)
        self.assertEqual(sum(p["iterations"] for p in report["plans"]), iterations // 12 * 13)

    def test_a_job_that_resumes_from_another_gives_the_bits_of_one(self):
        first = self.bench.run("--set", "spec.training.epochs=6",
                               "--set", "spec.cleanupPolicy=Never")
        self.assertNotEqual(first.digest(), self.digest)
        second = self.bench.run("--set", f"spec.checkpoint.resumeFrom={first.out}/store")
        self.assertEqual(second.digest(), self.digest)
        self.assertEqual(second.report()["plans"][0]["iterations"],
                         self.reference.report()["plan"]["iterations"] // 2)

    def test_a_model_that_does_not_fit_the_checkpoint_is_named(self):
        first = self.bench.run("--set", "spec.training.epochs=1",
                               "--set", "spec.cleanupPolicy=Never")
        self.assertEqual(first.code, 0, first.text())
        second = self.bench.run("--set", f"spec.checkpoint.resumeFrom={first.out}/store",
                                "--set", "spec.model.builtin.parameters.hidden=[64]",
                                "--set", "spec.profile.modelBytes=203560")
        self.assertEqual(second.code, 2, second.text())
        self.assertIn("parameters, but model mlp", second.text())

    def test_time_between_a_kill_and_the_resumption_is_not_active_time(self):
        run = self.bench.start()
        self.assertTrue(run.wait_for_iteration(20), run.text())
        run.kill()
        time.sleep(12)
        resumed = self.bench.resume(run).wait()
        self.assertEqual(resumed.digest(), self.digest)
        wall = resumed.wall_seconds() + run.wall_seconds()
        self.assertLess(resumed.report()["actual"]["seconds"], wall + 3)
