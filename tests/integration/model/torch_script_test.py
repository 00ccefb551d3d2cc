# SPDX-License-Identifier: Apache-2.0
"""Users' own modules against PyTorch: gradients, what stays as it is, and what is refused."""
import json
import pathlib
import signal
import subprocess
import tempfile
import unittest
import warnings
import zipfile

import numpy
import torch

import torch_script_modules as modules
from options import OPTIONS
from run_support import read_safetensors

HERE = pathlib.Path(__file__).resolve().parent


class ScriptCase(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        torch.manual_seed(4)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        self.file = self.out / "in.pt"

    def save(self, module):
        torch.jit.script(module).save(str(self.file))
        return module

    def step(self, shape, expect=0, starts="error: spec.", **options):
        """One step on random data by the worker's own code."""
        options = {"classes": 10, "batch": 6, "seed": 1, **options}
        step = ["step"]
        if "target_size" in options:
            step += ["--target-size", str(options.pop("target_size"))]
        line = [str(OPTIONS.bin / "model_probe"), "--torch-script", str(self.file), "--out", str(self.out),
                "--shape", ",".join(map(str, shape))]
        line += [word for name, value in options.items() for word in (f"--{name}", str(value))]
        done = subprocess.run(line + step, capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stderr)
        if expect != 0:
            self.assertTrue(done.stderr.startswith(starts), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr
        return json.loads((self.out / "result.json").read_text())

    def array(self, name, dtype):
        return torch.tensor(numpy.fromfile(self.out / name, dtype))


class Steps(ScriptCase):
    def expect_gradient(self, module, shape, loss, y):
        features = self.array("features.f32", "<f4").reshape(6, *shape)
        value = loss(module(features), y)
        value.backward()
        expected = torch.cat([p.grad.flatten() for p in module.parameters() if p.requires_grad])
        actual = self.array("gradient.f32", "<f4")
        self.assertEqual(actual.shape, expected.shape)
        self.assertLess((actual - expected).abs().max().item(), 1e-5 * expected.abs().max().item())
        return value.item(), features

    def test_gradients_and_loss_of_a_module_with_branches_are_pytorchs(self):
        module = self.save(modules.Branches())
        result = self.step([1, 28, 28])
        loss, features = self.expect_gradient(
            module, [1, 28, 28], lambda out, y: torch.nn.functional.cross_entropy(
                out, y, reduction="sum"), self.array("labels.i64", "<i8"))
        self.assertAlmostEqual(result["lossSum"], loss, places=4)
        tensors = read_safetensors(self.out / "model.safetensors")
        self.assertEqual(set(tensors), set(module.state_dict()))
        for name, tensor in module.state_dict().items():
            self.assertTrue(torch.equal(tensors[name], tensor), name)
        exported = torch.jit.load(str(self.out / "model.pt"))
        self.assertFalse(exported.training)
        with torch.no_grad():
            self.assertTrue(torch.equal(exported(features), module.eval()(features)))

    def test_losses_of_numbers(self):
        for loss, outputs in (("MSE", 3), ("BCEWithLogits", 3), ("MSE", 1)):
            with self.subTest(loss=loss, outputs=outputs):
                module = self.save(modules.Vector(8) if outputs == 1 else modules.Flat(8, outputs))
                self.step([8], classes=0, loss=loss, target_size=outputs)
                function = (torch.nn.functional.mse_loss if loss == "MSE" else
                            torch.nn.functional.binary_cross_entropy_with_logits)
                self.expect_gradient(
                    module, [8], lambda out, y: function(
                        out.reshape(6, -1), y.reshape(6, -1), reduction="sum") / outputs,
                    self.array("targets.f32", "<f4"))

    def test_label_smoothing_is_pytorchs(self):
        module = self.save(modules.Flat(8, 10))
        self.step([8], **{"label-smoothing": 0.2})
        self.expect_gradient(module, [8], lambda out, y: torch.nn.functional.cross_entropy(
            out, y, reduction="sum", label_smoothing=0.2), self.array("labels.i64", "<i8"))

    def test_class_weights_are_pytorchs(self):
        """The sum of losses over the sum of their weights is the mean of torch.nn.CrossEntropyLoss(weight)."""
        weights = torch.tensor([0.1, 1, 2.5, 0.01, 100, 7, 1, 0.3, 1, 9.99])
        for smoothing in (0, 0.2):
            with self.subTest(smoothing=smoothing):
                module = self.save(modules.Flat(8, 10))
                result = self.step([8], **{"class-weights": ",".join(f"{w:.6g}" for w in weights.tolist()),
                                           "label-smoothing": smoothing})
                labels = self.array("labels.i64", "<i8")
                loss = torch.nn.CrossEntropyLoss(weight=weights, label_smoothing=smoothing)
                total = result["weightSum"]
                self.assertEqual(total, weights[labels].double().sum().item())
                self.assertEqual(result["evaluationWeightSum"], total)
                self.expect_gradient(module, [8], lambda out, y, loss=loss, total=total: loss(out, y) * total, labels)

    def test_top_5_and_mean_absolute_error(self):
        for outputs, has_top5 in ((10, True), (6, True), (5, False)):
            module = self.save(modules.Flat(8, outputs))
            result = self.step([8], classes=outputs, batch=64)
            out = module(self.array("features.f32", "<f4").reshape(64, 8))
            labels = self.array("labels.i64", "<i8").unsqueeze(1)
            self.assertEqual("correctTop5" in result, has_top5)
            self.assertEqual(result["correct"], (out.topk(1).indices == labels).sum().item())
            if has_top5:
                self.assertEqual(result["correctTop5"], (out.topk(5).indices == labels).sum().item())
            self.assertNotIn("absoluteErrorSum", result)
        module = self.save(modules.Flat(8, 3))
        result = self.step([8], classes=0, loss="MSE", target_size=3)
        out = module(self.array("features.f32", "<f4").reshape(6, 8))
        expected = torch.nn.functional.l1_loss(out, self.array("targets.f32", "<f4").reshape(6, 3)) * 6
        self.assertAlmostEqual(result["absoluteErrorSum"], expected.item(), places=4)
        self.assertNotIn("correctTop5", result)

    def test_operators_that_do_more_than_compute_are_refused(self):
        for module, name, why in (
                (modules.Saving, "aten::save", "reads or writes files"), (modules.Printing, "prim::Print", "prints"),
                (modules.Seeding, "aten::manual_seed", "sets the seed"), (modules.Forked, "prim::fork", "runs beside")):
            with self.subTest(name=name):
                self.save(module(8, 10))
                message = self.step([8], expect=1, starts="error: spec.model.torchScript: forward calls")
                self.assertIn(f"{name}, which {why}", message)

    def test_class_weights_are_one_for_each_class(self):
        self.save(modules.Flat(8, 10))
        said = self.step([8], expect=1, **{"class-weights": "1,2,3"})
        self.assertIn("spec.training.classWeights has 3 weights, and the data set has 10 classes", said)

    def test_dropout_acts_and_draws_the_same_for_the_same_step(self):
        self.save(modules.Branches(dropout=0.5))
        gradients = []
        for _ in range(2):
            result = self.step([1, 28, 28])
            gradients.append(self.array("gradient.f32", "<f4"))
        self.assertTrue(torch.equal(*gradients))
        self.assertNotAlmostEqual(result["lossSum"], result["evaluationLossSum"], places=4)

    def test_frozen_parameters_and_constant_buffers_stay(self):
        module = self.save(modules.Frozen(8))
        self.step([8])
        self.expect_gradient(module, [8], lambda out, y: torch.nn.functional.cross_entropy(
            out, y, reduction="sum"), self.array("labels.i64", "<i8"))
        for state in (read_safetensors(self.out / "model.safetensors"),
                      torch.jit.load(str(self.out / "model.pt")).state_dict()):
            self.assertEqual(set(state), set(module.state_dict()))
            for name, tensor in module.state_dict().items():
                self.assertTrue(torch.equal(state[name], tensor), name)

    def test_batch_norm_keeps_the_statistics_of_the_step(self):
        module = self.save(modules.Normed())
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        result = self.step([1, 28, 28])
        loss, features = self.expect_gradient(
            module, [1, 28, 28], lambda out, y: torch.nn.functional.cross_entropy(
                out, y, reduction="sum"), self.array("labels.i64", "<i8"))
        self.assertAlmostEqual(result["lossSum"], loss, places=4)
        self.assertEqual(result["buffers"], 4 * (4 + 2))
        state = read_safetensors(self.out / "model.safetensors")
        self.assertEqual(list(state)[0:2], ["norm1.num_batches_tracked", "norm2.num_batches_tracked"])
        for name, tensor in module.state_dict().items():
            self.assertLess((state[name] - tensor).abs().max().item(), 1e-6, name)
            self.assertEqual(state[name].dtype, tensor.dtype, name)
            if "running" in name:
                self.assertFalse(torch.equal(state[name], before[name]), name)
        module.load_state_dict(state, strict=True)
        exported = torch.jit.load(str(self.out / "model.pt"))
        with torch.no_grad():
            self.assertLess((exported(features) - module.eval()(features)).abs().max().item(), 1e-5)

    def test_a_buffer_that_the_script_replaces(self):
        module = self.save(modules.Kept(8, 10))
        self.step([8])
        self.expect_gradient(module, [8], lambda out, y: torch.nn.functional.cross_entropy(
            out, y, reduction="sum"), self.array("labels.i64", "<i8"))
        seen = read_safetensors(self.out / "model.safetensors")["seen"]
        self.assertLess((seen - module.seen).abs().max().item(), 1e-6)
        self.assertNotAlmostEqual(seen[0].item(), 1)

    def test_a_tensor_with_two_names_is_trained_once(self):
        module = self.save(modules.Tied(10))
        self.step([10])
        self.expect_gradient(module, [10], lambda out, y: torch.nn.functional.cross_entropy(
            out, y, reduction="sum"), self.array("labels.i64", "<i8"))
        state = read_safetensors(self.out / "model.safetensors")
        self.assertTrue(torch.equal(state["first.weight"], state["second.weight"]))
        modules.Tied(10).load_state_dict(state, strict=True)

    def test_token_ids_come_as_whole_numbers(self):
        module = self.save(modules.Tokens(50))
        self.step([7], classes=50, vocabulary=50)
        ids = self.array("features.f32", "<f4").reshape(6, 7).long()
        loss = torch.nn.functional.cross_entropy(module(ids), self.array("labels.i64", "<i8"), reduction="sum")
        loss.backward()
        expected = torch.cat([p.grad.flatten() for p in module.parameters()])
        self.assertLess((self.array("gradient.f32", "<f4") - expected).abs().max().item(),
                        1e-5 * expected.abs().max().item())

    def test_traced_modules_train_too(self):
        module = modules.Flat(8, 10)
        torch.jit.trace(module, torch.zeros(2, 8)).save(str(self.file))
        self.step([8])
        self.expect_gradient(module, [8], lambda out, y: torch.nn.functional.cross_entropy(
            out, y, reduction="sum"), self.array("labels.i64", "<i8"))


@unittest.skipUnless("avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text(), "no products of bfloat16 here")
class InBfloat16(ScriptCase):
    def test_gradients_are_those_of_pytorchs_autocast(self):
        module = self.save(modules.Normed())
        self.step([1, 28, 28], precision="bfloat16")
        lower = self.array("gradient.f32", "<f4")
        features, y = self.array("features.f32", "<f4").reshape(6, 1, 28, 28), self.array("labels.i64", "<i8")
        gradients = {}
        for on in (True, False):
            module.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
                outputs = module(features)
            torch.nn.functional.cross_entropy(outputs.float(), y, reduction="sum").backward()
            gradients[on] = torch.cat([p.grad.flatten() for p in module.parameters()])
        self.assertLess((lower - gradients[True]).norm(), 0.02 * gradients[True].norm())
        self.assertGreater((lower - gradients[False]).norm(), 1e-4 * gradients[False].norm())
        self.step([1, 28, 28], precision="bfloat16")
        self.assertTrue(torch.equal(self.array("gradient.f32", "<f4"), lower))

    def test_what_libtorch_cannot_compute_in_it_is_told(self):
        """Group norm before LibTorch 2."""
        module = self.save(modules.Branches())
        try:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                module(torch.zeros(2, 1, 28, 28))
        except RuntimeError:
            self.assertIn("or use spec.training.precision float32",
                          self.step([1, 28, 28], precision="bfloat16", expect=1))

    def test_buffers_and_token_ids(self):
        self.save(modules.Normed())
        self.assertEqual(self.step([1, 28, 28], precision="bfloat16")["buffers"], 4 * (4 + 2))
        self.assertEqual(read_safetensors(self.out / "model.safetensors")["norm1.running_mean"].dtype, torch.float32)
        self.save(modules.Tokens(50))
        self.step([7], classes=50, vocabulary=50, precision="bfloat16")


class Trials(ScriptCase):
    """`lambdadnn-worker check-module`: what a function, or `lambdadnn run`, has a confined process do first."""

    def trial(self, shape="8", classes="10", known="all", memory=1 << 30, seconds=30):
        line = [str(OPTIONS.bin / "lambdadnn-worker"), "check-module", "CrossEntropy", shape, classes, known, "1",
                "file:///in.pt", str(memory), str(seconds), "float32"]
        with self.file.open("rb") as archive:
            done = subprocess.run(line, stdin=archive, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout.strip()

    def refused(self, *words, **options):
        code, said = self.trial(**options)
        self.assertEqual((code, said.count("\n")), (3, 0), said)
        for word in words:
            self.assertIn(word, said)

    def test_what_fits_passes(self):
        self.save(modules.Branches(dropout=0.5))
        self.assertEqual(self.trial(shape="1x28x28"), (0, ""))
        self.save(modules.Flat(8, 12))
        self.assertEqual(self.trial(known="more"), (0, ""))

    def test_shapes_that_do_not_fit_the_data(self):
        self.save(modules.Flat(8, 7))
        self.refused("[2, 7]", "10 a sample", "change the module's last layer")
        self.refused("[2, 7]", known="more")
        self.refused("[2, 9]", "spec.dataset.featureShape", shape="9")

    def test_operators(self):
        self.save(modules.Saving(8, 10))
        self.refused("forward calls aten::save", "leave it out of the module")

    def test_a_loop_without_an_end_is_ended_by_its_time(self):
        self.save(modules.Endless(8, 10))
        code, _ = self.trial(seconds=1)
        self.assertEqual(code, -signal.SIGXCPU)

    def test_memory_without_an_end_is_ended_by_its_limit(self):
        self.save(modules.Growing(8, 10))
        self.refused("takes more than 256 MiB of memory", "without end", memory=256 << 20)

    def test_an_archive_that_would_inflate_beyond_its_limit(self):
        self.save(modules.Flat(8, 10))
        with zipfile.ZipFile(self.file, "a", zipfile.ZIP_DEFLATED) as archive:
            top = archive.namelist()[0].split("/")[0]
            archive.writestr(f"{top}/code/more.py", b"#" * (300 << 20))
        self.refused("takes more than 256 MiB of memory", memory=256 << 20)


class Refused(ScriptCase):
    def refused(self, *words, shape=(8,), **options):
        message = self.step(list(shape), expect=1, **options)
        for word in words:
            self.assertIn(word, message)

    def refused_unread(self):
        """Without having done what it does when LibTorch reads it."""
        written = pathlib.Path("/tmp/written-when-read")
        for read, expected in ((lambda: torch.jit.load(str(self.file)), True),
                               (lambda: self.refused("__setstate__, which would run when", "leave it out"), False)):
            written.unlink(missing_ok=True)
            read()
            self.assertEqual(written.exists(), expected)

    def test_what_would_run_when_it_is_read_is_not_run(self):
        self.save(modules.Stateful(8, 10))
        self.refused_unread()
        # LibTorch finds files of an archive without regard to case.
        with zipfile.ZipFile(self.file) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(self.file, "w") as archive:
            for name, content in members.items():
                top, rest = name.split("/", 1)
                archive.writestr(f"{top}/{rest.upper() if rest.endswith('.py') else rest}", content)
        self.refused_unread()

    def test_objects_of_libraries(self):
        module = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(8, 10)))
        torch.jit.script(module).save(str(self.file))
        self.refused("has an object of torch.classes", "leave out quantized")

    def test_what_is_no_torchscript(self):
        self.file.write_text("not a model")
        self.refused("spec.model.torchScript.uri", "torch.jit.script")
        self.file.write_bytes(b"")
        self.refused("spec.model.torchScript.uri")
        torch.save(modules.Flat(8, 10).state_dict(), self.file)
        self.refused("spec.model.torchScript.uri", "torch.jit.script")

    def test_an_archive_that_is_cut(self):
        self.save(modules.Flat(8, 10))
        whole = self.file.read_bytes()
        for length in range(0, len(whole), len(whole) // 7):
            self.file.write_bytes(whole[:length])
            self.refused("spec.model.torchScript.uri")

    def test_batch_norm_that_was_traced_in_training_mode(self):
        module = modules.Normed(momentum=0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of checks that a trace leaves out
            torch.jit.trace(module, torch.zeros(2, 1, 28, 28), check_trace=False).save(str(self.file))
        self.refused("norm1.running_var", "traced in training mode", "torch.jit.script", shape=[1, 28, 28])

    def test_parameters_of_another_type(self):
        self.save(modules.Flat(8, 10).double())
        self.refused("out.weight", "Double", ".float()")

    def test_buffers_of_another_type_that_change(self):
        self.save(modules.Kept(8, 10, torch.float64))
        self.refused("the buffer seen", "Double", ".float()")

    def test_nothing_to_train(self):
        self.save(modules.Flat(8, 10).requires_grad_(False))
        self.refused("no parameters")

    def test_samples_that_do_not_fit(self):
        self.save(modules.Flat(9, 10))
        self.refused("[2, 8]", "spec.dataset.featureShape")

    def test_token_ids_that_are_none(self):
        self.save(modules.Tokens(50))
        message = self.step([7], classes=50, expect=1, starts="error: the model takes whole numbers")
        self.assertIn("without scale, normalize or augment", message)

    def test_outputs_that_do_not_fit_the_loss(self):
        self.save(modules.Flat(8, 7))
        self.refused("[2, 7]", "10 a sample", "one a class")
        self.refused("3 a sample", classes=0, loss="MSE", target_size=3)

    def test_a_loss_that_does_not_fit_the_data(self):
        self.save(modules.Flat(8, 10))
        self.refused("spec.training.loss", loss="MSE")
