# SPDX-License-Identifier: Apache-2.0
"""Real input, as users have it: the UCI handwritten digits as CSV, as NumPy arrays and as shards of images, and a
Parquet file, trained by `lambdadnn run` on function processes; what comes out opens in PyTorch."""
import io
import json
import pathlib
import shutil
import tarfile
import unittest

import numpy
import torch

import pytorch_twins
import real_digits
from options import OPTIONS
from run_support import Bench, grey_png, read_safetensors

PARQUET = pathlib.Path(__file__).resolve().parents[1] / "data/readers/parquet/rows.parquet"
CNN = {"name": "cnn", "parameters": {"kernel": 3, "padding": 1}}


def job(model, twin, dataset):
    """Pixels go from 0 to 16: dividing by 16 is what `normalize` does here."""
    model_bytes = 4 * sum(p.numel() for p in twin.parameters())
    return json.dumps({
        "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
        "metadata": {"name": "real-digits"},
        "spec": {
            "model": {"builtin": model},
            "dataset": {"uri": "digits", "classes": 10,
                        "normalize": {"mean": "0", "standardDeviation": "16"}, **dataset},
            "training": {"epochs": 15, "globalBatchSize": 32, "seed": 3,
                         "optimizer": {"name": "SGD", "learningRate": "0.05",
                                       "momentum": "0.9"}},
            "objective": {"fixed": {"functions": 2, "memory": "512Mi"}},
            "aggregation": {"shards": 1, "layers": [1, 2], "serverMemory": "128Mi"},
            "profile": {"trainingSamples": 1437, "trainingBytes": 367872, "modelBytes": model_bytes,
                        "trainingRate": {"slope": "4", "intercept": "0"}},
            "backend": "Local"}})


def export_shards(arrays, folder, damaged):
    """Shards of 500 samples; the image of training sample `damaged` ends early."""
    folder.mkdir()
    for name in ("train", "test"):
        pixels, labels = numpy.load(arrays / f"x_{name}.npy"), numpy.load(arrays / f"y_{name}.npy")
        for begin in range(0, len(labels), 500):
            with tarfile.open(folder / f"{name}-{begin:04}.tar", "w") as shard:
                for i in range(begin, min(begin + 500, len(labels))):
                    image = grey_png(pixels[i])
                    if name == "train" and i == damaged:
                        image = image[:50]
                    for ending, data in (("png", image), ("cls", str(labels[i]).encode())):
                        member = tarfile.TarInfo(f"digits/{i:04}.{ending}")
                        member.size = len(data)
                        shard.addfile(member, io.BytesIO(data))


class RealDigits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.bench = Bench(OPTIONS.bin, train=0)
        cls.addClassCleanup(cls.bench.close)
        real_digits.export(cls.bench.folder / "digits")
        pixels = numpy.load(cls.bench.folder / "digits/x_test.npy")
        cls.features = torch.tensor(pixels).unsqueeze(1) / 16
        cls.labels = torch.tensor(numpy.load(cls.bench.folder / "digits/y_test.npy"))

    def train(self, name, model, dataset, shape):
        twin = pytorch_twins.make(model["name"], shape, 10, **model.get("parameters", {}))
        path = self.bench.folder / f"{name}.yaml"
        path.write_text(job(model, twin, dataset))
        run = self.bench.run(job=path)
        self.assertEqual(run.code, 0, run.text())
        accuracy = run.report()["metrics"]["testAccuracy"]
        self.assertGreaterEqual(accuracy, 0.95)
        self.expect_opens_in_pytorch(run, twin, shape, accuracy)
        return run

    def expect_opens_in_pytorch(self, run, twin, shape, accuracy):
        """model.pt, and PyTorch's own module with model.safetensors, say the same; and both are as
        right on the held-out fifth as the run's report says."""
        features = self.features.reshape(-1, *shape)
        twin.load_state_dict(read_safetensors(run.out / "model.safetensors"), strict=True)
        script = torch.jit.load(str(run.out / "model.pt")).eval()
        with torch.no_grad():
            expected, actual = twin(features), script(features)
        self.assertEqual(actual.shape, (len(self.labels), 10))
        self.assertLess((actual - expected).abs().max().item(), 1e-5)
        right = (actual.argmax(1) == self.labels).double().mean().item()
        self.assertAlmostEqual(right, accuracy, places=6)

    def test_mlp_on_csv(self):
        self.train("csv", {"name": "mlp", "parameters": {"hidden": [64]}}, {"format": "CSV"}, [64])

    trained_cnn = None  # of two tests

    def cnn(self):
        if self.trained_cnn is None:
            type(self).trained_cnn = self.train("npy", CNN, {"format": "NPY"}, [1, 8, 8])
        return self.trained_cnn

    def test_cnn_on_numpy_arrays(self):
        self.cnn()

    @unittest.skipUnless("avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text(), "no products of bfloat16 here")
    def test_cnn_in_bfloat16(self):
        full = self.cnn()
        twin = pytorch_twins.make(CNN["name"], [1, 8, 8], 10, **CNN["parameters"])
        path = self.bench.folder / "bfloat16.yaml"
        path.write_text(job(CNN, twin, {"format": "NPY"}))
        precision = ("--set", "spec.training.precision=bfloat16")
        run = self.bench.run(*precision, job=path)
        self.assertEqual(run.code, 0, run.text())
        accuracy = run.report()["metrics"]["testAccuracy"]
        self.assertGreaterEqual(accuracy, 0.95)
        self.assertRegex(run.report()["plan"]["isa"], r"\+(avx512|amx)_bf16$")
        # Weights are float32, and as good in float32.
        twin.load_state_dict(read_safetensors(run.out / "model.safetensors"), strict=True)
        with torch.no_grad():
            right = (twin(self.features.reshape(-1, 1, 8, 8)).argmax(1) == self.labels).double().mean().item()
        self.assertAlmostEqual(right, accuracy, delta=0.02)
        again = self.bench.run(*precision, "--set", "spec.aggregation.shards=2", job=path)
        self.assertEqual(again.digest(), run.digest())
        self.assertNotEqual(full.digest(), run.digest())
        alone = self.bench.run(*precision, "--set", "spec.objective.fixed.functions=1",
                               "--set", "spec.aggregation.layers=[1, 1]", job=path)
        self.assertEqual(alone.code, 0, alone.text())
        for other in (full, alone):
            self.assertAlmostEqual(other.report()["metrics"]["testAccuracy"], accuracy, delta=0.02)

    def test_mlp_on_shards_of_images(self):
        export_shards(self.bench.folder / "digits", self.bench.folder / "shards", damaged=700)
        # Bytes come as fractions of 255; these pixels go to 16.
        run = self.train("shards", {"name": "mlp", "parameters": {"hidden": [64]}},
                         {"format": "WebDataset", "uri": "shards", "onBadSample": "Skip",
                          "image": {"height": 8, "width": 8, "channels": 1},
                          "normalize": {"channelMean": ["0"], "channelStandardDeviation": ["0.062745098"]}},
                         [1, 8, 8])
        self.assertEqual(1, run.report()["badSamples"])

    def test_parquet_trains_to_the_bits_of_the_same_arrays(self):
        """A table of 300 rows in five row groups, whose formulas tests/data/readers/parquet/make.py has."""
        i = numpy.arange(300)
        columns = [i * 0.25 - 7, i * 37 % 101 - 50, (1 / (i + 1)).astype("float32"), i % 2 == 0]
        for name in ("parquet", "arrays"):
            (self.bench.folder / name).mkdir()
        shutil.copy(PARQUET, self.bench.folder / "parquet/train.parquet")
        numpy.save(self.bench.folder / "arrays/x_train.npy", numpy.stack(columns, 1).astype("float64"))
        numpy.save(self.bench.folder / "arrays/y_train.npy", i % 3)
        runs = []
        for name, data_format in (("parquet", "Parquet"), ("arrays", "NPY")):
            model = {"name": "mlp", "parameters": {"hidden": [8]}}
            path = self.bench.folder / f"{name}.yaml"
            path.write_text(job(model, pytorch_twins.make("mlp", [4], 3, hidden=[8]),
                                {"format": data_format, "uri": name, "classes": 3}))
            runs.append(self.bench.run("--set", "spec.profile.trainingSamples=300",
                                       "--set", "spec.training.epochs=2", job=path))
            self.assertEqual(runs[-1].code, 0, runs[-1].text())
        self.assertEqual(runs[0].digest(), runs[1].digest())
