# SPDX-License-Identifier: Apache-2.0
"""The built-in models against PyTorch: initial bits, gradients, exported files, and training on
rendered and on real digits."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import torch

import pytorch_twins
import real_digits
from options import OPTIONS
from run_support import read_safetensors

HERE = pathlib.Path(__file__).resolve().parent
MODELS = {
    "mlp": ([1, 12, 12], {"hidden": [11, 7]}),
    "logistic": ([20], {}),
    "cnn": ([3, 14, 14], {"channels": [4, 5], "kernel": 3, "padding": 1, "hidden": [9]}),
    "cnn1d": ([2, 30], {"channels": [4, 5], "hidden": [9]}),
}
DEFAULTS = {"mlp": [1, 28, 28], "logistic": [1, 28, 28], "cnn": [1, 28, 28], "cnn1d": [64]}


def probe(command, out, model, shape=None, parameters=None, **options):
    shared = {"model": model, "parameters": json.dumps(parameters or {}), "out": out}
    if shape:
        shared["shape"] = ",".join(map(str, shape))
    for name in ("loss", "seed", "batch", "classes"):
        if name in options:
            shared[name] = options.pop(name)
    line = [str(OPTIONS.bin / "model_probe")]
    for group, words in ((shared, [command]), (options, [])):
        line += [word for name, value in group.items()
                 for word in (f"--{name.replace('_', '-')}", str(value))] + words
    subprocess.run(line, check=True)
    return json.loads((pathlib.Path(out) / "result.json").read_text())


class ModelCase(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def array(self, name, dtype):
        return torch.tensor(numpy.fromfile(self.out / name, dtype))

    def expect_same_outputs(self, twin, features):
        """model.pt, and the twin with model.safetensors, say the same."""
        tensors = read_safetensors(self.out / "model.safetensors")
        twin.load_state_dict(tensors, strict=True)
        script = torch.jit.load(str(self.out / "model.pt"))
        self.assertEqual({k: v.shape for k, v in script.state_dict().items()},
                         {k: v.shape for k, v in twin.state_dict().items()})
        for name, tensor in script.state_dict().items():
            self.assertTrue(torch.equal(tensor, tensors[name]), name)
        script.eval()
        with torch.no_grad():
            expected, actual = twin(features), script(features)
        self.assertEqual(actual.shape, expected.shape)
        self.assertLess((actual - expected).abs().max().item(), 1e-5)
        return actual


class Initialisation(ModelCase):
    def test_same_seed_gives_the_same_bits(self):
        for name, (shape, parameters) in MODELS.items():
            for seed in (0, 1, 2**40 + 3):
                with self.subTest(model=name, seed=seed):
                    self.expect_twin_bits(name, shape, parameters, seed)

    def test_defaults_are_the_twins_defaults(self):
        for name, shape in DEFAULTS.items():
            with self.subTest(model=name):
                self.expect_twin_bits(name, shape, {}, 7)

    def expect_twin_bits(self, name, shape, parameters, seed):
        probe("step", self.out, name, shape, parameters, classes=10, seed=seed, batch=2)
        torch.manual_seed(seed)
        twin = pytorch_twins.make(name, shape, 10, **parameters)
        tensors = read_safetensors(self.out / "model.safetensors")
        self.assertEqual(list(tensors), list(twin.state_dict()))
        for key, tensor in twin.state_dict().items():
            self.assertEqual(tensors[key].shape, tensor.shape, key)
            self.assertTrue(torch.equal(tensors[key], tensor), key)


class Gradients(ModelCase):
    LOSSES = {
        "CrossEntropy": lambda out, y: torch.nn.functional.cross_entropy(out, y, reduction="sum"),
        "MSE": lambda out, y: torch.nn.functional.mse_loss(out, y, reduction="sum") / y.shape[1],
        "BCEWithLogits": lambda out, y: torch.nn.functional.binary_cross_entropy_with_logits(
            out, y, reduction="sum") / y.shape[1],
    }

    def test_gradients_losses_and_exports_are_pytorchs(self):
        for name, (shape, parameters) in MODELS.items():
            for loss in self.LOSSES:
                with self.subTest(model=name, loss=loss):
                    self.check(name, shape, parameters, loss)

    def check(self, name, shape, parameters, loss):
        numeric = loss != "CrossEntropy"
        result = probe("step", self.out, name, shape, parameters, loss=loss, seed=5, batch=6,
                       classes=0 if numeric else 10, target_size=3 if numeric else 1)
        twin = pytorch_twins.make(name, shape, 3 if numeric else 10, **parameters)
        features = self.array("features.f32", "<f4").reshape(6, *shape)
        y = (self.array("targets.f32", "<f4").reshape(6, 3) if numeric
             else self.array("labels.i64", "<i8"))
        self.expect_same_outputs(twin, features)
        value = self.LOSSES[loss](twin(features), y)
        value.backward()
        self.assertLess(abs(value.item() - result["lossSum"]), 1e-5 * abs(value.item()))
        self.assertLess(abs(value.item() - result["evaluationLossSum"]), 1e-5 * abs(value.item()))
        expected = torch.cat([p.grad.flatten() for p in twin.parameters()])
        actual = self.array("gradient.f32", "<f4")
        self.assertLess((actual - expected).abs().max().item(), 1e-5 * expected.abs().max().item())


class RenderedDigits(ModelCase):
    """The demo data set is honest: a CNN learns it, a linear model does not."""

    def setUp(self):
        super().setUp()
        subprocess.run([OPTIONS.bin / "lambdadnn-dataset", "render-digits", "--out", self.out / "digits",
                        "--train", "12000", "--test", "2000", "--seed", "1"],
                       check=True, stdout=subprocess.DEVNULL)
        self.data = {"uri": f"file://{self.out}/digits", "format": "IDX"}

    def test_cnn_reaches_97_percent_in_three_epochs(self):
        result = probe("train", self.out, "cnn", **self.data, seed=1, epochs=3, rate=0.05)
        self.assertGreaterEqual(result["testAccuracy"], 0.97)
        features = self.array("test_features.f32", "<f4").reshape(-1, 1, 28, 28)
        twin = pytorch_twins.make("cnn", [1, 28, 28], 10)
        outputs = self.expect_same_outputs(twin, features)
        labels = self.array("test_labels.i64", "<i8")
        self.assertAlmostEqual((outputs.argmax(1) == labels).float().mean().item(),
                               result["testAccuracy"], places=6)

    def test_logistic_model_stays_below_92_percent(self):
        result = probe("train", self.out, "logistic", **self.data, seed=1, epochs=10, rate=0.02)
        self.assertLessEqual(result["testAccuracy"], 0.92)
        self.assertGreaterEqual(result["testAccuracy"], 0.5)


class RealDigits(ModelCase):
    """UCI digits, four fifths to learn from, one fifth held out."""

    def setUp(self):
        super().setUp()
        real_digits.export(self.out / "digits")

    def train(self, name, data_format, shape, **parameters):
        result = probe("train", self.out, name, shape, parameters, uri=f"file://{self.out}/digits",
                       format=data_format, classes=10, scale=1 / 16, seed=3, batch=32, epochs=15,
                       rate=0.05)
        self.assertEqual(result["samples"], 1437)
        self.assertGreaterEqual(result["testAccuracy"], 0.95)
        features = self.array("test_features.f32", "<f4").reshape(-1, *shape)
        twin = pytorch_twins.make(name, shape, 10, **parameters)
        outputs = self.expect_same_outputs(twin, features)
        loss = torch.nn.functional.cross_entropy(outputs, self.array("test_labels.i64", "<i8"))
        self.assertAlmostEqual(loss.item(), result["testLoss"], places=4)
        return result

    def test_mlp_on_csv(self):
        self.train("mlp", "CSV", [64], hidden=[64])

    def test_cnn_on_npy(self):
        self.train("cnn", "NPY", [8, 8], kernel=3, padding=1)

    def test_csv_and_npy_give_the_same_bits(self):
        csv = self.train("mlp", "CSV", [64], hidden=[64])
        npy = self.train("mlp", "NPY", [64], hidden=[64])
        self.assertEqual(csv, npy)
