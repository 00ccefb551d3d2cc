# SPDX-License-Identifier: Apache-2.0
"""Functions killed within slices on each format of a data set: the bits are those of an undisturbed run. Formats that
have the samples of the IDX set, as bytes and in its order, give the IDX set's bits."""
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import numpy

from options import OPTIONS
from run_support import Bench, grey_png, read_idx

PARQUET = pathlib.Path(__file__).resolve().parents[1] / "data/readers/parquet/rows.parquet"
SAMPLES, TESTS = 400, 100
SHORT = ("--set", "spec.training.epochs=8", "--set", "spec.profile.trainingSamples=400",
         "--set", "spec.training.globalBatchSize=40")


def as_arrays(bench, images, labels, folder):
    for name, begin, end in (("000", 0, 150), ("001", 150, SAMPLES)):
        numpy.save(folder / f"x_train_{name}.npy", images["train"][begin:end])
        numpy.save(folder / f"y_train_{name}.npy", labels["train"][begin:end])
    numpy.save(folder / "x_test.npy", images["test"])
    numpy.save(folder / "y_test.npy", labels["test"])


def as_shards(bench, images, labels, folder):
    subprocess.run([bench.lambdadnn, "dataset", "convert", str(bench.folder / "digits"), "--out", str(folder),
                    "--samples-per-shard", "150"], check=True, capture_output=True)


def as_folders(bench, images, labels, folder):
    for part in ("train", "test"):
        for i, (pixels, label) in enumerate(zip(images[part], labels[part], strict=True)):
            (folder / part / f"digit{label}").mkdir(parents=True, exist_ok=True)
            (folder / part / f"digit{label}/{i:04}.png").write_bytes(grey_png(pixels))


def as_parquet(bench, images, labels, folder):
    """300 rows of four numbers in five row groups, without a test set: no package of Debian's writes such files."""
    shutil.copy(PARQUET, folder / "train.parquet")


def as_texts(bench, images, labels, folder):
    """Ids of the brightest columns: any numbers will do."""
    for part in ("train", "test"):
        lines = [f"__label__{label} {' '.join(str(i % 10) for i in pixels.sum(0).argsort()[-6:])}\n"
                 for pixels, label in zip(images[part], labels[part], strict=True)]
        (folder / f"{part}.txt").write_text("".join(lines))


class FormatKills(unittest.TestCase):
    # By format: what writes it, further fields of the data set, samples, numbers of one, classes. Of 784 numbers
    # and without names of their own: the IDX set's.
    FORMATS = {
        "NPY": (as_arrays, "classes: 10", SAMPLES, 784, 10),
        "WebDataset": (as_shards, "classes: 10, image: {channels: 1, height: 28, width: 28}", SAMPLES, 784, 10),
        "ImageFolder": (as_folders, "image: {channels: 1, height: 28, width: 28}", SAMPLES, 784, 10),
        "Parquet": (as_parquet, "classes: 3, normalize: {standardDeviation: '100'}", 300, 4, 3),
        "Text": (as_texts, "text: {maxTokens: 6}", SAMPLES, 6, 10),
    }
    SAME_AS_IDX = ("NPY", "WebDataset")

    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin, train=SAMPLES, test=TESTS)
        cls.addClassCleanup(cls.bench.close)
        digits = cls.bench.folder / "digits"
        names = {"train": "train", "test": "t10k"}
        cls.images = {part: read_idx(digits / f"{name}-images-idx3-ubyte").numpy() for part, name in names.items()}
        cls.labels = {part: read_idx(digits / f"{name}-labels-idx1-ubyte").numpy() for part, name in names.items()}
        cls.of_idx = cls.bench.run(*SHORT).digest()

    def options(self, name):
        write, fields, samples, numbers, classes = self.FORMATS[name]
        folder = self.bench.folder / name
        folder.mkdir()
        write(self.bench, self.images, self.labels, folder)
        model_bytes = 4 * (numbers * 128 + 128 + 128 * classes + classes)
        # A small model is one shard, and trains for longer: else it may be done before a kill comes.
        small = model_bytes < 4 * 16384
        longer = ("--set", "spec.training.epochs=16") if small else ()
        return (*SHORT, *longer, "--set", f"spec.aggregation.shards={1 if small else 2}",
                "--set", f"spec.dataset={{uri: file://{folder}, format: {name}, {fields}}}",
                "--set", f"spec.profile.trainingSamples={samples}", "--set", f"spec.profile.modelBytes={model_bytes}")

    def killed_in_a_slice(self, options):
        run = self.bench.start(*options)
        self.assertTrue(run.wait_for_iteration(20), run.text())
        worker = next(pid for pid, kind in run.roles().items() if kind == "worker")
        os.kill(worker, signal.SIGKILL)
        run.wait()
        self.assertGreaterEqual(run.report()["restarts"], 1, "it was killed within a slice")
        return run

    def test_each_format(self):
        for name in self.FORMATS:
            with self.subTest(format=name):
                options = self.options(name)
                expected = self.of_idx if name in self.SAME_AS_IDX else self.bench.run(*options).digest()
                self.assertEqual(self.killed_in_a_slice(options).digest(), expected)


if __name__ == "__main__":
    unittest.main()
