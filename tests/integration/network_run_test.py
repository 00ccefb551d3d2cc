# SPDX-License-Identifier: Apache-2.0
"""Networks of the catalogue trained by `lambdadnn run`: the example of images, cut short, and texts of token ids."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy
import torch

import networks
from options import OPTIONS
from run_support import Bench, read_safetensors

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/models"
EXAMPLE = EXAMPLES / "resnet18.yaml"
LENGTH, VOCABULARY, WORD = 12, 40, 7


class NetworkRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.bench = Bench(OPTIONS.bin, train=0)
        cls.addClassCleanup(cls.bench.close)

    def test_the_example_of_images(self):
        run = self.bench.run("--set", "spec.dataset.renderedDigits={train: 16, test: 8, seed: 1}",
                             "--set", "spec.training.globalBatchSize=8", "--set", "spec.training.epochs=1",
                             "--set", "spec.profile.trainingSamples=16", job=EXAMPLE)
        self.assertEqual(run.code, 0, run.text())
        state = read_safetensors(run.out / "model.safetensors")
        self.assertEqual(state["bn1.num_batches_tracked"].item(), 2)
        self.assertEqual(list(state["conv1.weight"].shape), [64, 1, 3, 3])
        before = dict(networks.SIZES)
        networks.SIZES.update(channels=1, firstKernel=3, classes=10)
        self.addCleanup(networks.SIZES.update, before)
        module = networks.NETWORKS["resnet18"]()
        module.conv1.first_stride, module.first_pool = 1, False
        module.load_state_dict(state, strict=True)
        images = torch.rand(3, 1, 28, 28)
        with torch.no_grad():
            expected = module.eval()(images)
            self.assertLess((torch.jit.load(str(run.out / "model.pt"))(images) - expected).abs().max().item(), 1e-4)

    def test_texts_of_token_ids(self):
        """Whether a word is in a text: learnt by two functions, to the same bits again."""
        generator = numpy.random.default_rng(1)
        folder = self.bench.folder / "texts"
        folder.mkdir()
        for name, samples in (("train", 600), ("test", 200)):
            ids = generator.integers(8, VOCABULARY, (samples, LENGTH), dtype="<i8")
            labels = generator.integers(0, 2, samples, dtype="<i8")
            for row, label in zip(ids, labels, strict=True):
                if label == 1:
                    row[generator.integers(0, LENGTH)] = WORD
            numpy.savez(folder / f"{name}.npz", x=ids, y=labels)
        job = self.bench.folder / "texts.yaml"
        job.write_text(json.dumps({
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob", "metadata": {"name": "texts"},
            "spec": {
                "model": {"builtin": {"name": "textcnn", "parameters": {
                    "vocabulary": VOCABULARY, "embedding": 16, "width": 8, "kernels": [1, 2, 3]}}},
                "dataset": {"uri": "texts/train.npz", "testUri": "texts/test.npz", "format": "NPY", "classes": 2},
                "training": {"epochs": 8, "globalBatchSize": 40, "optimizer": {"name": "Adam", "learningRate": "0.01"}},
                "objective": {"fixed": {"functions": 2, "memory": "384Mi"}},
                "aggregation": {"placement": "Workers"},
                "profile": {"trainingSamples": 600, "modelBytes": 4 * self.parameters(),
                            "trainingRate": {"slope": "2", "intercept": "0"}}}}))
        run = self.bench.run(job=job)
        self.assertEqual(run.code, 0, run.text())
        self.assertGreater(run.report()["metrics"]["testAccuracy"], 0.9)
        again = self.bench.run(job=job)
        self.assertEqual(again.digest(), run.digest())

    def test_the_example_of_texts(self):
        """Typed as it says: of sentences and their words, the network learns which of them praise."""
        folder = self.bench.folder / "text"
        shutil.copytree(EXAMPLES / "text", folder)
        (folder / "texts").mkdir()
        generator = numpy.random.default_rng(2)
        words = [f"word{i}" for i in range(60)]
        for name, samples in (("train", 400), ("test", 100)):
            lines = []
            for _ in range(samples):
                text, label = list(generator.choice(words, generator.integers(3, 40))), generator.integers(0, 2)
                if label == 1:
                    text.insert(0, "Excellent,")
                lines.append(f"__label__{('plain', 'praise')[label]} {' '.join(text)}\n")
            (folder / f"texts/{name}.txt").write_text("".join(lines))
        made = subprocess.run([sys.executable, "vocabulary.py", "texts/train.txt"], cwd=folder,
                              capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stdout.splitlines()[:2], ["<pad>", "<unk>"])
        self.assertEqual(set(made.stdout.splitlines()[2:4]), {",", "excellent"})
        (folder / "texts/vocab.txt").write_text(made.stdout)
        run = self.bench.run(job=folder / "job.yaml")
        self.assertEqual(run.code, 0, run.text())
        self.assertGreater(run.report()["metrics"]["testAccuracy"], 0.9)

    @staticmethod
    def parameters():
        width, embedding = 8, 16
        return VOCABULARY * embedding + sum(width * embedding * kernel + width for kernel in (1, 2, 3)) + 2 * (
            3 * width + 1)
