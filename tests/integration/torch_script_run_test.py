# SPDX-License-Identifier: Apache-2.0
"""A user's own TorchScript module trained by `lambdadnn run` on function processes."""
import struct
import unittest

import numpy
import torch

import torch_script_modules as modules
from options import OPTIONS
from run_support import Bench, read_safetensors

SAMPLES, TESTS = 1000, 200


def read_idx(path):
    data = path.read_bytes()
    dimensions = data[3]
    shape = struct.unpack(f">{dimensions}I", data[4:4 + 4 * dimensions])
    return torch.tensor(numpy.frombuffer(data[4 + 4 * dimensions:], "u1").copy()).reshape(shape)


class TorchScriptRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.bench = Bench(OPTIONS.bin, SAMPLES, TESTS)
        cls.addClassCleanup(cls.bench.close)
        digits = cls.bench.folder / "digits"
        cls.data = {name: (read_idx(digits / f"{name}-images-idx3-ubyte").float() / 255,
                           read_idx(digits / f"{name}-labels-idx1-ubyte").long())
                    for name in ("train", "t10k")}

    def save(self, module):
        torch.jit.script(module).save(str(self.bench.folder / "module.pt"))
        self.model_bytes = 4 * sum(p.numel() for p in module.parameters())
        return module

    def run_job(self, *options):
        """The pinned job of jobs/digits.yaml, with the module instead of its network."""
        return self.bench.run("--set", "spec.model.builtin=",
                              "--set", "spec.model.torchScript.uri=module.pt",
                              "--set", f"spec.profile.modelBytes={self.model_bytes}", *options)

    def images(self, name):
        images, labels = self.data[name]
        return images.unsqueeze(1), labels

    def test_a_module_with_branches_trains_to_the_same_bits_again(self):
        torch.manual_seed(4)
        module = self.save(modules.Branches(dropout=0.2))
        options = ("--set", "spec.training.epochs=6")
        run = self.run_job(*options)
        self.assertEqual(run.code, 0, run.text())
        again = self.run_job(*options, "--set", "spec.aggregation.shards=1")
        self.assertEqual(again.digest(), run.digest())
        accuracy = run.report()["metrics"]["testAccuracy"]
        self.assertGreater(accuracy, 0.5)
        script = torch.jit.load(str(run.out / "model.pt"))
        module.load_state_dict(read_safetensors(run.out / "model.safetensors"), strict=True)
        images, labels = self.images("t10k")
        with torch.no_grad():
            expected, actual = module.eval()(images), script(images)
        self.assertLess((actual - expected).abs().max().item(), 1e-5)
        right = (actual.argmax(1) == labels).double().mean().item()
        self.assertAlmostEqual(right, accuracy, places=6)

    def test_full_batches_from_the_files_values_are_pytorchs(self):
        """Three steps over all samples: order and split cannot matter, all else must agree."""
        torch.manual_seed(5)
        module = self.save(modules.Branches())
        run = self.run_job("--set", "spec.training.epochs=3",
                           "--set", f"spec.training.globalBatchSize={SAMPLES}")
        self.assertEqual(run.code, 0, run.text())
        optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
        images, labels = self.images("train")
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(images), labels).backward()
            optimizer.step()
        trained = read_safetensors(run.out / "model.safetensors")
        for name, tensor in module.state_dict().items():
            self.assertLess((trained[name] - tensor).abs().max().item(), 1e-5, name)

    def test_a_module_that_cannot_be_trained_ends_the_job_with_one_sentence(self):
        self.save(modules.Flat(784, 10, torch.nn.BatchNorm1d(784)))
        one_shard = ("--set", "spec.aggregation.shards=1")
        run = self.run_job(*one_shard)
        self.assertEqual(run.code, 1, run.text())
        self.assertIn("batch norm", run.text())
        (self.bench.folder / "module.pt").unlink()
        run = self.run_job(*one_shard)
        self.assertEqual(run.code, 1, run.text())
        self.assertIn("spec.model.torchScript.uri", run.text())
