# SPDX-License-Identifier: Apache-2.0
"""A run that trains while its model is measured (spec.profiling: WhileTraining), and whose recorded
plans give the same model once more."""
import copy
import json
import shutil
import time
import unittest

from options import OPTIONS
from run_support import Bench

SAMPLES, BATCH = 4000, 100
AN_EPOCH = SAMPLES // BATCH
JOB = {
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "meanwhile"},
    "spec": {
        "model": {"builtin": {"name": "cnn"}},
        "dataset": {"renderedDigits": {"train": SAMPLES, "test": 200, "seed": 1}},
        "training": {"epochs": 45, "globalBatchSize": BATCH, "seed": 7,
                     "optimizer": {"name": "SGD", "learningRate": "0.05", "momentum": "0.9"}},
        "profiling": "WhileTraining",
        # As fast as it can: two functions, once it is known that steps take longer than exchanges.
        "objective": {"deadlineSeconds": 1, "bestEffort": True},
        "functions": {"max": 2, "memory": {"min": "512Mi"}}, "backend": "Local"}}


class WhileTraining(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin, train=0)
        cls.addClassCleanup(cls.bench.close)
        cls.fresh = {"XDG_CACHE_HOME": str(cls.bench.folder / "no-profile")}

    def file(self, name, job):
        path = self.bench.folder / f"{name}.yaml"
        path.write_text(json.dumps(job))
        return path

    def replayed(self, plans, profile):
        """The digest of the job with these plans given: jobs of each up to the iteration of the next one, which
        resumes from there."""
        job = copy.deepcopy(JOB)
        spec = job["spec"]
        del spec["profiling"], spec["functions"]
        spec["cleanupPolicy"] = "Never"
        # A plan of slow iterations has a checkpoint after each of them.
        slow = {**profile, "trainingRate": {"slope": "0", "intercept": "1"}}
        checkpoints = {"intervalSeconds": 1, "keep": AN_EPOCH + 1}
        begun = None
        for number, plan in enumerate(plans):
            ends = number + 1 == len(plans)
            until = JOB["spec"]["training"]["epochs"] * AN_EPOCH if ends else plans[number + 1]["firstIteration"]
            spec["profile"] = profile if ends else slow
            spec["checkpoint"] = {**({} if ends else checkpoints),
                                  **({"resumeFrom": f"{begun.out}/store"} if begun else {})}
            spec["objective"] = {"fixed": {"functions": plan["functions"], "memory": plan["memory"]}}
            spec["training"]["epochs"] = -(-until // AN_EPOCH)
            run = self.bench.run(job=self.file(f"plan-{number}", job))
            self.assertEqual(run.code, 0, run.text())
            if begun:
                self.assertEqual(run.report()["plans"][0]["firstIteration"], plan["firstIteration"])
            begun = run
            for folder in (begun.out / "store").glob("**/checkpoints/*"):
                if not ends and int(folder.name) > until:
                    shutil.rmtree(folder)
        return begun.digest()

    def test_a_plan_that_was_made_meanwhile_gives_the_bits_that_its_history_gives(self):
        run = self.bench.start(job=self.file("job", JOB), environment=self.fresh)
        self.assertTrue(run.wait_for_iteration(3), run.text())
        # It has begun to measure, and all its functions end with it.
        time.sleep(1)
        run.kill()
        resumed = self.bench.resume(run, job="", environment=self.fresh).wait()
        digest = resumed.digest()
        report = resumed.report()
        # On a machine whose speed changes there may be a third.
        self.assertEqual([plan["functions"] for plan in report["plans"]][:2], [1, 2], resumed.text())
        self.assertNotIn("predicted", report["plans"][0])
        self.assertGreater(report["plans"][1]["firstIteration"], 0)
        self.assertEqual(report["beforePlan"]["iterations"], report["plans"][1]["firstIteration"])
        self.assertIn("iterations were done and the model was measured", resumed.text())
        phases = report["phases"]
        self.assertLess(0, phases["before"]["computeSeconds"])
        self.assertLess(phases["before"]["computeSeconds"], phases["computeSeconds"])
        self.assertRegex(resumed.text(), r"compute +[0-9.]+ s +[0-9.]+ s +[-+]")
        self.assertEqual(resumed.functions(), {}, "processes were left behind")
        self.assertEqual(self.replayed(report["plans"], report["profile"]), digest)
