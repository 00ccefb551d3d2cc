# SPDX-License-Identifier: Apache-2.0
"""Tables that scikit-learn ships, learnt with 1, 2 and 4 functions by `lambdadnn run` as by one process of PyTorch."""
import unittest

import numpy
import torch

import learning_curves
import pytorch_twins
from learning_curves import FAMILIES, FUNCTIONS
from options import OPTIONS
from run_support import read_safetensors

QUICK = {family.name: family for family in FAMILIES if family.data in ("breast-cancer", "diabetes")}


class LearningCurves(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.curves = learning_curves.Curves(OPTIONS.bin)
        cls.addClassCleanup(cls.curves.close)

    def arrays(self, family, name):
        folder = self.curves.bench.folder / family.data
        return (torch.tensor(numpy.load(folder / f"{part}_{name}.npy")) for part in ("x", "y"))

    def trained_in_one_process(self, family, model):
        """PyTorch's own loop over the whole training set; order and split cannot matter."""
        x, y = self.arrays(family, "train")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for _ in range(family.training["epochs"]):
            optimizer.zero_grad()
            out = model(x)
            (torch.nn.functional.mse_loss(out.reshape(-1), y) if self.predicts_numbers(family) else
             torch.nn.functional.cross_entropy(out, y)).backward()
            optimizer.step()
        x, y = self.arrays(family, "test")
        with torch.no_grad():
            out = model(x)
        return ((out.reshape(-1) - y).abs().mean() if self.predicts_numbers(family) else
                (out.argmax(1) == y).double().mean()).item()

    @staticmethod
    def predicts_numbers(family):
        return family.metric.endswith("Error")

    def expect_one_process(self, family):
        self.curves.write(family)
        samples, features = next(self.arrays(family, "train")).shape
        builtin = family.model["builtin"]
        model = pytorch_twins.make(builtin["name"], [features], family.dataset.get("classes", 1),
                                   **builtin["parameters"])
        size = 4 * sum(parameter.numel() for parameter in model.parameters())
        profile = ("--set", f"spec.profile={{trainingSamples: {samples}, modelBytes: {size}, "
                            "trainingRate: {slope: '2', intercept: '0'}}")
        runs = [self.curves.run(family, functions, *profile) for functions in FUNCTIONS]
        values = [learning_curves.metric_of(family, run) for run in runs]
        self.assertEqual(learning_curves.complaints(family, values), [])
        # A step of nothing leaves the first values of these runs.
        first = self.curves.run(family, 1, *profile, "--set", "spec.training.epochs=1", "--set",
                                "spec.training.optimizer.learningRate=1e-30")
        model.load_state_dict(read_safetensors(first.out / "model.safetensors"), strict=True)
        expected = self.trained_in_one_process(family, model)
        for functions, run, value in zip(FUNCTIONS, runs, values, strict=True):
            with self.subTest(functions=functions):
                self.assertAlmostEqual(value, expected, places=4)
                for name, tensor in read_safetensors(run.out / "model.safetensors").items():
                    self.assertLess((tensor - model.state_dict()[name]).abs().max().item(), 1e-3, name)
        # The same arithmetic, by other ways.
        again = self.curves.run(family, 2, *profile, "--set", "spec.aggregation.placement=Dedicated",
                                "--set", "spec.aggregation.shards=1")
        self.assertEqual(again.digest(), runs[FUNCTIONS.index(2)].digest())

    def test_logistic_on_breast_cancer(self):
        self.expect_one_process(QUICK["logistic, breast cancer"])

    def test_mlp_on_breast_cancer(self):
        self.expect_one_process(QUICK["mlp, breast cancer"])

    def test_mlp_on_diabetes(self):
        self.expect_one_process(QUICK["mlp, diabetes"])
