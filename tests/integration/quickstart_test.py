# SPDX-License-Identifier: Apache-2.0
"""The quickstart as a user runs it: the CNN reaches 97 % on rendered digits within its deadline, a
linear model on the same data stays below 92 %, and the run leaves what it promises."""
import pathlib
import subprocess
import sys
import unittest

import report_page_test
from options import OPTIONS
from run_support import Bench

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples/quickstart"


class Quickstart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin, train=12000, test=2000)
        cls.addClassCleanup(cls.bench.close)

    def job(self, name):
        path = self.bench.folder / name
        path.write_text((EXAMPLES / name).read_text())
        return path

    def test_the_cnn_reaches_97_per_cent_within_its_deadline(self):
        run = self.bench.run(job=self.job("job.yaml"))
        self.assertEqual(run.code, 0, run.text())
        report = run.report()
        self.assertGreaterEqual(report["metrics"]["testAccuracy"], 0.97)
        self.assertLessEqual(report["actual"]["seconds"], 180)  # half of it: tests/timing
        # The point on the page is the plan, what profiling took and cost included.
        chosen = report["pareto"]["points"][report["pareto"]["chosen"]]
        self.assertGreater(report["phases"]["profilingSeconds"], 0)
        for measure in ("seconds", "cost"):
            self.assertAlmostEqual(chosen[measure] / report["predicted"][measure], 1, delta=1e-3)
        for name in ("model.safetensors", "model.pt", "report.html", "events.jsonl"):
            self.assertGreater((run.out / name).stat().st_size, 0, name)
        self.assertIn("test accuracy", run.text())
        self.assertEqual(run.functions(), {}, "processes were left behind")
        page = subprocess.run([sys.executable, "-m", "pytest",
                               report_page_test.__file__, "--run-folder", run.out],
                              capture_output=True, text=True)
        self.assertEqual(page.returncode, 0, page.stdout + page.stderr)

    def test_a_linear_model_stays_below_92_per_cent(self):
        run = self.bench.run(job=self.job("logistic.yaml"))
        self.assertEqual(run.code, 0, run.text())
        self.assertLessEqual(run.report()["metrics"]["testAccuracy"], 0.92)
