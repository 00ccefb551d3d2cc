# SPDX-License-Identifier: Apache-2.0
"""Workers that the kernel kills as memory runs out, since the profile says too little of what the
model needs: later plans give more, and the bits are those of a job that had enough."""
import itertools
import random
import struct
import unittest

from memory import mebibytes
from options import OPTIONS
from run_support import Bench

# 23 MB of weights, and as much of gradients, beside LibTorch.
MODEL = ("hidden: [128]", "hidden: [2048, 2048]")
PROFILE = ("modelBytes: 407080", "modelBytes: 23298088")
SERVERS = ("serverMemory: 128Mi", "serverMemory: 256Mi")
EPOCHS = ("epochs: 12", "epochs: 1")
FIXED = "fixed: {functions: 3, memory: 384Mi}"


class OutOfMemory(unittest.TestCase):
    def setUp(self):
        self.bench = Bench(OPTIONS.bin)
        self.addCleanup(self.bench.close)

    def job(self, *replacements):
        text = self.bench.job.read_text()
        for old, new in (MODEL, PROFILE, SERVERS, EPOCHS, *replacements):
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.bench.folder / f"job-{len(replacements)}.yaml"
        path.write_text(text)
        return path

    def test_the_next_plans_give_more_until_it_fits(self):
        platform = self.bench.platform(milliCpuPerGiB=0)
        enough = self.bench.run("--platform", platform,
                                job=self.job((FIXED, "fixed: {functions: 3, memory: 768Mi}")))
        self.assertEqual(enough.code, 0, enough.text())
        if enough.report()["isolation"].startswith("pacing"):
            self.skipTest("without control groups nobody is killed")
        # The cheapest plan that is in time has the least memory.
        job = self.job((FIXED, "deadlineSeconds: 100000"),
                       ("spec:\n", "spec:\n  functions: {min: 3, max: 3}\n"))
        run = self.bench.run("--platform", platform, job=job)
        self.assertEqual(run.code, 0, run.text())
        memory = [mebibytes(plan["memory"]) for plan in run.report()["plans"]]
        self.assertEqual(memory[0], 128)
        self.assertGreater(len(memory), 1, run.text())
        for before, after in itertools.pairwise(memory):
            self.assertGreaterEqual(after, before * 5 // 4)
        self.assertIn("ran out of memory and was killed (OOMKilled): it had 128 MiB", run.text())
        self.assertEqual(run.digest(), enough.digest())
        self.assertEqual(run.functions(), {})


class ShareLargerThanMemory(unittest.TestCase):
    """A function whose share of the data takes more than what it has is not killed: it streams."""
    SAMPLES, SIDE = 8000, 128

    def setUp(self):
        self.bench = Bench(OPTIONS.bin, train=0)
        self.addCleanup(self.bench.close)
        folder = self.bench.folder / "digits"
        folder.mkdir()
        generator = random.Random(1)
        header = struct.pack(">4B3I", 0, 0, 8, 3, self.SAMPLES, self.SIDE, self.SIDE)
        (folder / "train-images-idx3-ubyte").write_bytes(
            header + generator.randbytes(self.SAMPLES * self.SIDE ** 2))
        (folder / "train-labels-idx1-ubyte").write_bytes(
            struct.pack(">4BI", 0, 0, 8, 1, self.SAMPLES) + bytes(i % 10 for i in range(self.SAMPLES)))

    def test_it_trains_within_its_memory(self):
        text = self.bench.job.read_text()
        for old, new in (
                ("hidden: [128]", "hidden: [16]"), ("epochs: 12", "epochs: 2"),
                ("modelBytes: 407080", "modelBytes: 1049320"),
                ("trainingSamples: 1000", f"trainingSamples: {self.SAMPLES}"),
                ("trainingBytes: 784000", 'trainingBytes: 131080000\n    workerBaseMemory: 180Mi\n'
                 '    loadedBytesPerSample: "16392"\n    streamRequestsPerSample: "2"\n'
                 '    streamBytesPerSample: "16385"'),
                ("functions: 3, memory: 384Mi", "functions: 1, memory: 256Mi"),
                ("shards: 2, layers: [1, 2, 3]", "shards: 1, layers: [1, 1]")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.bench.job.write_text(text)
        run = self.bench.run("--platform", self.bench.platform(milliCpuPerGiB=0))
        self.assertEqual(run.code, 0, run.text())
        report = run.report()
        self.assertGreater(self.SAMPLES * self.SIDE ** 2 + (100 << 20), 224 << 20, "share and process")
        self.assertTrue(50 <= mebibytes(report["plan"]["sampleMemory"]) < 100, report["plan"])
        self.assertLess(report["memory"]["workers"]["peakBytes"], 256 << 20)
        self.assertEqual(report["restarts"], 0)
        self.assertIn("samples stream through", run.text())
