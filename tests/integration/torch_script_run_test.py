# SPDX-License-Identifier: Apache-2.0
"""A user's own TorchScript module trained by `lambdadnn run` on function processes."""
import pathlib
import shutil
import subprocess
import sys
import unittest

import torch

import torch_script_modules as modules
from options import OPTIONS
from run_support import Bench, read_idx, read_safetensors

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/models/torchscript"
SAMPLES, TESTS = 1000, 200
BLOCK_BYTES = 4 * 16 * 1024  # buffers begin at the edge of one


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
        self.buffer_bytes = 4 * sum(b.numel() for b in module.buffers() if b.is_floating_point())
        if self.buffer_bytes > 0:
            self.model_bytes = -(-self.model_bytes // BLOCK_BYTES) * BLOCK_BYTES + self.buffer_bytes
        return module

    def options(self, *more):
        """The pinned job of jobs/digits.yaml, with the module instead of its network."""
        return ("--set", "spec.model.builtin=", "--set", "spec.model.torchScript.uri=module.pt",
                "--set", f"spec.profile.modelBytes={self.model_bytes}",
                "--set", f"spec.profile.bufferBytes={self.buffer_bytes}", *more)

    def run_job(self, *options):
        return self.bench.run(*self.options(*options))

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

    def test_the_example(self):
        """Typed as it says: from a plain PyTorch file to the training, and back."""
        folder = self.bench.folder / "torchscript"
        shutil.copytree(EXAMPLE, folder)

        def module(*arguments):
            done = subprocess.run([sys.executable, "module.py", *arguments], cwd=folder, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        module()
        run = self.bench.run(job=folder / "job.yaml")
        self.assertEqual(run.code, 0, run.text())
        self.assertGreater(run.report()["metrics"]["testAccuracy"], 0.8)
        said = module(str(run.out / "model.pt"))
        self.assertIn("norm.running_mean [8]", said)
        self.assertRegex(said, r"of an empty image: \d")
        last, best = (read_safetensors(run.out / name) for name in ("model.safetensors", "model-best.safetensors"))
        self.assertEqual(list(last), list(best))

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

    def expect_full_batches_of_pytorch(self, functions, layers):
        """Two steps over all samples: each function's statistics are of its own share, and the mean of them
        goes on."""
        torch.manual_seed(6)
        module = self.save(modules.Normed())
        run = self.run_job("--set", "spec.training.epochs=2",
                           "--set", f"spec.training.globalBatchSize={SAMPLES}",
                           "--set", f"spec.objective.fixed.functions={functions}",
                           "--set", f"spec.aggregation.layers={layers}")
        self.assertEqual(run.code, 0, run.text())
        optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
        images, labels = self.images("train")
        edges = [SAMPLES * function // functions for function in range(functions + 1)]
        for _ in range(2):
            optimizer.zero_grad()
            before = {name: value.clone() for name, value in module.named_buffers()}
            mean = dict.fromkeys(before, 0)
            for begin, end in zip(edges, edges[1:], strict=False):
                for name, value in module.named_buffers():
                    value.copy_(before[name])
                loss = torch.nn.functional.cross_entropy(module(images[begin:end]), labels[begin:end],
                                                         reduction="sum")
                (loss / SAMPLES).backward()
                for name, value in module.named_buffers():
                    mean[name] = mean[name] + value * ((end - begin) / SAMPLES)
            for name, value in module.named_buffers():
                value.copy_(mean[name])
            optimizer.step()
        trained = read_safetensors(run.out / "model.safetensors")
        modules.Normed().load_state_dict(trained, strict=True)
        return module, trained

    def test_batch_norm_of_one_function_and_of_several(self):
        for functions, layers in ((1, "[1, 1]"), (3, "[1, 2, 3]")):
            with self.subTest(functions=functions):
                module, trained = self.expect_full_batches_of_pytorch(functions, layers)
                for name, tensor in module.state_dict().items():
                    self.assertLess((trained[name] - tensor).abs().max().item(), 1e-5, name)

    def test_batch_norm_trains_to_the_same_bits_whoever_serves(self):
        torch.manual_seed(6)
        self.save(modules.Normed())
        run = self.run_job("--set", "spec.training.epochs=2")
        self.assertEqual(run.code, 0, run.text())
        served = self.run_job("--set", "spec.training.epochs=2", "--set", "spec.aggregation.shards=1",
                              "--set", "spec.aggregation.placement=Workers",
                              "--set", "spec.aggregation.serverMemory=")
        self.assertEqual(served.code, 0, served.text())
        self.assertEqual(served.digest(), run.digest())

    def test_a_profile_without_the_buffers_is_told_what_it_lacks(self):
        self.save(modules.Normed())
        needed = self.model_bytes, self.buffer_bytes
        self.model_bytes, self.buffer_bytes = self.model_bytes - self.buffer_bytes, 0
        run = self.run_job("--set", "spec.aggregation.shards=1")
        self.assertEqual(run.code, 1, run.text())
        self.assertIn(f"modelBytes {needed[0]} and bufferBytes {needed[1]}", run.text())

    def test_a_module_that_cannot_be_trained_ends_the_job_with_one_sentence(self):
        self.save(modules.Flat(784, 10).double())
        self.refused_before_a_function_starts("save the module after .float()")
        self.save(modules.Flat(784, 7))
        self.refused_before_a_function_starts("change the module's last layer")
        (self.bench.folder / "module.pt").unlink()
        self.refused_before_a_function_starts("spec.model.torchScript.uri")

    def refused_before_a_function_starts(self, sentence):
        run = self.run_job("--set", "spec.aggregation.shards=1")
        self.assertEqual(run.code, 2, run.text())
        self.assertIn("ModelNotUsable", run.text())
        self.assertIn(sentence, run.text())
        self.assertEqual(list((run.out / "functions").iterdir()), [])

    def test_a_module_that_is_replaced_in_mid_job_ends_it(self):
        torch.manual_seed(4)
        self.save(modules.Flat(784, 10))
        run = self.bench.start(*self.options("--set", "spec.training.epochs=400",
                                              "--set", "spec.aggregation.shards=1"))
        self.assertTrue(run.wait_for_iteration(20))
        torch.manual_seed(5)
        self.save(modules.Flat(784, 10))
        run.interrupt()
        self.assertEqual(run.wait().code, 130, run.text())
        run = self.bench.resume(run, job="").wait()
        self.assertEqual(run.code, 1, run.text())
        self.assertRegex(run.text(), "module.pt has changed since this job began .*; put the file back")
