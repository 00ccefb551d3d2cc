# SPDX-License-Identifier: Apache-2.0
"""Every documented exit code of `lambdadnn run`, and `lambdadnn profile`, end to end."""
import json
import os
import subprocess
import unittest

from fault_store import CREDENTIALS, FaultStore
from options import OPTIONS
from run_support import Bench


class ExitCodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)
        cls.short = ("--set", "spec.training.epochs=1")

    def errors(self, run):
        return [line for line in run.text().splitlines() if line.startswith("error: ")]

    def one_error(self, run, code):
        self.assertEqual(run.code, code, run.text())
        self.assertEqual(len(self.errors(run)), 1, run.text())
        return self.errors(run)[0]

    def test_0_complete(self):
        self.assertEqual(self.bench.run(*self.short).code, 0)

    def test_2_the_data_set_is_missing_and_no_function_starts(self):
        run = self.bench.run("--set", f"spec.dataset.uri={self.bench.folder}/nowhere")
        message = self.one_error(run, 2)
        self.assertIn("DatasetNotUsable", message)
        self.assertIn("nowhere", message)
        self.assertFalse(list((run.out / "functions").iterdir()))

    def test_1_a_bad_record_that_a_function_finds_ends_the_job_and_nobody_tries_again(self):
        rows = ["a,b,label", *["0.1,0.2,0", "0.3,0.4,1"] * 2000, "0.1,0.2,none"]
        (self.bench.folder / "label.csv").write_text("\n".join(rows))
        options = (f"spec.dataset={{uri: file://{self.bench.folder}/label.csv, format: CSV}}",
                   "spec.model={builtin: {name: logistic}}", "spec.profile=",
                   "spec.objective={deadlineSeconds: 600}", "spec.aggregation=")
        run = self.bench.run(*(part for option in options for part in ("--set", option)))
        message = self.one_error(run, 1)
        self.assertIn("ProfilingFailed", message)
        self.assertIn("label.csv, line 4002, column 3 ('label')", message)
        self.assertEqual(run.report()["restarts"], 0)
        self.assertLess(run.wall_seconds(), 60)

    def test_2_a_bad_file(self):
        bad = self.bench.folder / "bad.yaml"
        bad.write_text(self.bench.job.read_text().replace("epochs: 12", "epochs: -1"))
        message = self.one_error(self.bench.run(job=bad), 2)
        self.assertRegex(message, r"bad\.yaml:\d+: spec\.training\.epochs")
        self.assertIn("no such file", self.one_error(self.bench.run(job="missing.yaml"), 2).lower())

    def test_3_infeasible(self):
        run = self.bench.run("--set", "spec.objective={deadlineSeconds: 1}",
                             "--set", "spec.aggregation=")
        self.assertIn("raise objective.deadlineSeconds", self.one_error(run, 3))

    def test_4_the_store_is_not_there(self):
        run = self.bench.run("--store", "s3://bucket", environment={
            **CREDENTIALS, "LAMBDADNN_S3_ENDPOINT": "http://127.0.0.1:9"})
        self.one_error(run, 4)

    def test_4_the_bucket_is_missing(self):
        store = FaultStore()
        self.addCleanup(store.close)
        run = self.bench.run(*store.options(), "--set", "spec.objectStore.bucket=no-such-bucket",
                             environment=CREDENTIALS)
        self.assertIn("no-such-bucket", self.one_error(run, 4))

    def test_4_the_credentials_are_wrong(self):
        store = FaultStore()
        self.addCleanup(store.close)
        run = self.bench.run(*store.options(), environment={
            **CREDENTIALS, "LAMBDADNN_S3_ACCESS_KEY_ID": "somebody-else"})
        self.assertIn("InvalidAccessKeyId", self.one_error(run, 4))

    def test_4_the_folder_cannot_be_written(self):
        message = self.one_error(self.bench.run(out="/proc/nowhere"), 4)
        self.assertIn("--out", message)

    def test_130_interrupted(self):
        run = self.bench.start()
        self.assertTrue(run.wait_for_iteration(5), run.text())
        run.interrupt()
        self.assertEqual(run.wait().code, 130)

    def test_profile_prints_what_a_job_takes(self):
        job = self.bench.folder / "unprofiled.yaml"
        text = self.bench.job.read_text()
        job.write_text(text[:text.index("  profile:")] + text[text.index("  checkpoint:"):])
        cache = {**os.environ, "XDG_CACHE_HOME": str(self.bench.folder / "cache")}
        profile = subprocess.run([self.bench.lambdadnn, "profile", "-f", job, "--out",
                                  self.bench.folder / "profile", "-o", "json"],
                                 capture_output=True, text=True, env=cache, timeout=200)
        self.assertEqual(profile.returncode, 0, profile.stderr)
        measured = json.loads(profile.stdout)["profile"]
        self.assertEqual(measured["trainingSamples"], 1000)
        self.assertEqual(measured["modelBytes"], 407080)
        self.assertGreater(float(measured["trainingRate"]["slope"]), 0)
        # What it prints as text can be put into the job.
        profile = subprocess.run([self.bench.lambdadnn, "profile", "-f", job, "--out",
                                  self.bench.folder / "profile-2"],
                                 capture_output=True, text=True, env=cache, timeout=200)
        self.assertEqual(profile.returncode, 0, profile.stderr)
        self.assertTrue(profile.stdout.startswith("spec:\n  profile:\n"), profile.stdout)
        job.write_text(job.read_text() + profile.stdout[len("spec:\n"):])
        plan = subprocess.run([self.bench.lambdadnn, "plan", "-f", job, "-o", "json"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(plan.returncode, 0, plan.stderr + plan.stdout)
