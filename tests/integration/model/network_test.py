# SPDX-License-Identifier: Apache-2.0
"""The built-in networks against their Python source and torchvision's names: bytes, first values, steps."""
import gzip
import hashlib
import importlib.util
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy
import torch

import networks
from options import OPTIONS
from run_support import read_safetensors

FOLDER = networks.HERE
SAMPLES = 4
# Name, parameters, shape of a sample, sizes in networks.py, and SHA-256 of the lines "NAME SHAPE\n", sorted, of what
# torchvision 0.14.1 has with 10 classes; of textcnn, which it lacks, none.
ROWS = {
    "resnet18": ({"smallImages": 0}, [3, 40, 40], {"channels": 3, "firstKernel": 7},
                 "ef6c082bb2148663bd94f86f0a2ff9597e7d1e018bb98314882da8a9625d8901"),
    "resnet50": ({"smallImages": 0}, [3, 40, 40], {"channels": 3, "firstKernel": 7},
                 "39424c5a1d6d1a29068c9890546ec7ca62ecf097cc166fcfd35a01298b14f15e"),
    "mobilenet": ({"smallImages": 0, "dropout": 0}, [3, 40, 40], {"channels": 3, "firstKernel": 3},
                  "21d35cbd50ad673dd1a73a3d2e064454ac27348adebfd7d33755ccc7c2074023"),
    "textcnn": ({"vocabulary": 30, "dropout": 0}, [9],
                {"vocabulary": 30, "embedding": 128, "width": 100, "kernel1": 3, "kernel2": 4, "kernel3": 5}, None),
    "resnet18_group": ({"groupNorm": 1}, [1, 20, 20], {"channels": 1, "firstKernel": 3}, None),
    "resnet50_group": ({"groupNorm": 1, "smallImages": 0}, [3, 40, 40], {"channels": 3, "firstKernel": 7}, None),
    "mobilenet_group": ({"groupNorm": 1, "smallImages": 0, "dropout": 0}, [3, 40, 40],
                        {"channels": 3, "firstKernel": 3}, None),
}


def table_of(name):
    archive = gzip.decompress((FOLDER / f"{name}.pt.gz").read_bytes())
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        return [line.split() for line in entries.read("archive/extra/table.txt").decode().splitlines()]


def first_values(name, sizes, seed):
    """What the seed gives: draws in the table's order."""
    sizes = {**sizes, "classes": 10, "3*width": 3 * sizes.get("width", 0)}

    def numbers(text):
        return [sizes.get(word) or int(word) for word in text.split(",")]

    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for key, shape, kind, fan, deviation in table_of(name):
        tensor = torch.zeros(numbers(shape))
        if kind == "ones":
            tensor.fill_(1)
        elif kind == "normal":
            deviation = math.sqrt(2 / math.prod(numbers(fan))) if deviation == "-" else float(deviation)
            tensor.normal_(0, deviation, generator=generator)
        elif kind == "uniform":
            bound = 1 / math.sqrt(math.prod(numbers(fan)))
            tensor.uniform_(-bound, bound, generator=generator)
        tensors[key] = tensor
    return tensors


class Networks(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def step(self, name, seed=5):
        parameters, shape, sizes, _ = ROWS[name]
        subprocess.run([str(OPTIONS.bin / "model_probe"), "--model",
                        name.removesuffix("_group"), "--parameters", json.dumps(parameters),
                        "--out", str(self.out), "--classes", "10", "--shape", ",".join(map(str, shape)),
                        "--batch", str(SAMPLES), "--vocabulary", str(sizes.get("vocabulary", 0)),
                        "--seed", str(seed), "step"], check=True, timeout=120)
        return read_safetensors(self.out / "model.safetensors")

    def array(self, name, dtype):
        return torch.tensor(numpy.fromfile(self.out / name, dtype))

    def test_the_committed_files_are_what_the_source_makes(self):
        subprocess.run([sys.executable, str(FOLDER / "networks.py"), str(self.out)], check=True, timeout=120)
        self.assertEqual((self.out / "digests.txt").read_text(), (FOLDER / "digests.txt").read_text())
        for line in (FOLDER / "digests.txt").read_text().splitlines():
            digest, name = line.split()
            archive = gzip.decompress((FOLDER / f"{name}.gz").read_bytes())
            self.assertEqual(hashlib.sha256(archive).hexdigest(), digest, name)

    def test_names_shapes_first_values_and_a_step(self):
        for name, (_, shape, sizes, digest) in ROWS.items():
            with self.subTest(network=name):
                state = self.step(name)
                lines = "".join(f"{key} {list(tensor.shape)}\n" for key, tensor in sorted(state.items()))
                if digest is not None:
                    self.assertEqual(hashlib.sha256(lines.encode()).hexdigest(), digest)
                first = first_values(name, sizes, 5)
                for key, tensor in first.items():
                    if "running" not in key:
                        self.assertTrue(torch.equal(state[key], tensor), key)
                self.expect_step(name, shape, sizes, state)

    def expect_step(self, name, shape, sizes, state):
        """The step of the source's own module, from the same values."""
        before = dict(networks.SIZES)
        networks.SIZES.update(sizes, classes=10)
        self.addCleanup(networks.SIZES.update, before)
        module = networks.NETWORKS[name]()
        networks.SIZES.update(before)
        module.load_state_dict(state, strict=True)
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.reset_running_stats()
            if hasattr(part, "dropout"):
                part.dropout = 0.0
            if hasattr(part, "first_stride") and sizes["channels"] == 1:  # small images
                part.first_stride = 1
            if hasattr(part, "first_pool") and sizes["channels"] == 1:
                part.first_pool = False
        x = self.array("features.f32", "<f4").reshape(SAMPLES, *shape)
        x = x.long() if "vocabulary" in sizes else x
        loss = torch.nn.functional.cross_entropy(module(x), self.array("labels.i64", "<i8"), reduction="sum")
        loss.backward()
        result = json.loads((self.out / "result.json").read_text())
        self.assertAlmostEqual(result["lossSum"], loss.item(), places=3)
        expected = torch.cat([p.grad.flatten() for p in module.parameters()])
        worst = (self.array("gradient.f32", "<f4") - expected).abs().max().item()
        self.assertLess(worst, 1e-4 * expected.abs().max().item())
        for key, tensor in module.state_dict().items():
            self.assertLess((state[key] - tensor).abs().max().item(), 1e-5, key)

    @unittest.skipUnless(importlib.util.find_spec("torchvision"), "no torchvision here; scripts/setup.sh installs it")
    def test_torchvision_takes_both_files(self):
        """Its own modules, with all names and no other; and they compute what model.pt does."""
        import torchvision

        for name in ("resnet18", "resnet50", "mobilenet"):
            with self.subTest(network=name):
                state = self.step(name)
                script = torch.jit.load(str(self.out / "model.pt")).eval()
                make = getattr(torchvision.models, {"mobilenet": "mobilenet_v2"}.get(name, name))
                module = make(num_classes=10).eval()
                images = torch.rand(2, 3, 40, 40, generator=torch.Generator().manual_seed(3))
                for file in (state, script.state_dict()):
                    module.load_state_dict(file, strict=True)
                    with torch.no_grad():
                        expected, actual = module(images), script(images)
                    self.assertLess((actual - expected).abs().max().item(), 1e-4 * expected.abs().max().item())

    def test_another_seed_gives_other_values(self):
        first, second = self.step("textcnn", 1), self.step("textcnn", 2)
        self.assertFalse(torch.equal(first["embedding.weight"], second["embedding.weight"]))
