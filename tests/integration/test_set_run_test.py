# SPDX-License-Identifier: Apache-2.0
"""What `lambdadnn run` does by the test set: ends early, keeps the best model; class weights and micro-batches."""
import os
import signal
import unittest

import torch

from options import OPTIONS
from run_support import Bench, read_idx, read_safetensors


class TestSetRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)
        digits = cls.bench.folder / "digits"
        cls.images = read_idx(digits / "t10k-images-idx3-ubyte").float().flatten(1) / 255
        cls.labels = read_idx(digits / "t10k-labels-idx1-ubyte").long()

    @staticmethod
    def options(**fields):
        return [word for name, value in fields.items() for word in ("--set", f"spec.training.{name}={value}")]

    def run_job(self, **fields):
        run = self.bench.run(*self.options(**fields))
        self.assertEqual(run.code, 0, run.text())
        return run

    def accuracy(self, file):
        """Of the pinned job's network, as PyTorch computes it from a file."""
        state = read_safetensors(file)
        x = self.images
        layers = sorted(name[:-len(".weight")] for name in state if name.endswith(".weight"))
        for i, layer in enumerate(layers):
            x = torch.nn.functional.linear(x, state[layer + ".weight"], state[layer + ".bias"])
            if i + 1 < len(layers):
                x = torch.relu(x)
        return (x.argmax(1) == self.labels).double().mean().item()

    def test_training_ends_early_and_the_best_model_is_kept(self):
        """Nothing is better by so much: it ends with the second evaluation after the first."""
        fields = {"epochs": 12, "evaluateEvery": 2, "keepBest": "{metric: Accuracy}",
                  "earlyStopping": "{metric: Accuracy, patience: 2, minDelta: '0.9'}"}
        run = self.run_job(**fields)
        report = run.report()
        self.assertEqual([point["epoch"] for point in report["curves"]["evaluations"]], [1, 3, 5])
        self.assertRegex(report["message"], r"training ended after \d+ of \d+ iterations: earlyStopping found no "
                                            r"better Accuracy of the test set in 2 evaluations")
        best = report["model"]["best"]
        self.assertEqual(best["metric"], "Accuracy")
        points = [point["accuracy"] for point in report["curves"]["evaluations"]]
        self.assertAlmostEqual(float(best["value"]), max(points), places=6)
        self.assertAlmostEqual(self.accuracy(run.out / "model-best.safetensors"), max(points), places=6)
        self.assertGreaterEqual(points[-1], 0.5)
        self.assertGreaterEqual(report["metrics"]["testTop5Accuracy"], report["metrics"]["testAccuracy"])
        # The same where functions of each kind are killed on the way.
        again = self.bench.start(*self.options(**fields))
        for kind, iteration in (("worker", 20), ("root server", 60)):
            self.assertTrue(again.wait_for_iteration(iteration))
            os.kill(next(pid for pid, of_kind in again.roles().items() if of_kind == kind), signal.SIGKILL)
        again.wait()
        self.assertEqual(again.digest(), run.digest())
        self.assertGreaterEqual(again.report()["restarts"], 1)
        self.assertEqual((again.out / "model-best.safetensors").read_bytes(),
                         (run.out / "model-best.safetensors").read_bytes())
        self.assertEqual(again.report()["model"]["best"]["iteration"], best["iteration"])

    def test_class_weights_of_one_change_nothing_and_others_do(self):
        plain = self.run_job(epochs=1)
        ones = self.run_job(epochs=1, classWeights="[" + ", ".join(["'1'"] * 10) + "]")
        self.assertEqual(ones.digest(), plain.digest())
        weighted = self.run_job(epochs=1, classWeights="['0.25'" + ", '1'" * 9 + "]")
        self.assertNotEqual(weighted.digest(), plain.digest())
        wrong = self.bench.run("--set", "spec.training.epochs=1", "--set", "spec.training.classWeights=['1', '2']")
        self.assertNotEqual(wrong.code, 0)
        self.assertIn("classWeights has 2 weights, and the data set has 10 classes", wrong.text())

    def test_micro_batches_learn_the_same(self):
        whole = self.run_job(epochs=1)
        pieces = self.run_job(epochs=1, microBatchSize=3)
        again = self.run_job(epochs=1, microBatchSize=3)
        self.assertEqual(again.digest(), pieces.digest())
        a, b = (read_safetensors(run.out / "model.safetensors") for run in (whole, pieces))
        for name, tensor in a.items():
            self.assertLess((tensor - b[name]).abs().max().item(), 1e-4, name)


if __name__ == "__main__":
    unittest.main()
