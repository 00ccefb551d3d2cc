#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each family of models learns, with 1, 2 and 4 functions: data sets that packages ship (scikit-learn's digits,
breast cancer, diabetes) and data made here, to the test metric that FAMILIES states. Prints a row a family.

    tests/integration/learning_curves.py [--bin build/release/bin] [--only TEXT]

learning_curves_test.py has those that take seconds.
"""
import argparse
import dataclasses
import json
import pathlib
import sys

import numpy

TESTS = pathlib.Path(__file__).resolve().parents[1]
for path in ("support", "data", "integration/model", "integration"):
    sys.path.insert(0, str(TESTS / path))
import real_digits  # noqa: E402
from run_support import Bench  # noqa: E402

FUNCTIONS = (1, 2, 4)
SGD = {"name": "SGD", "learningRate": "0.05", "momentum": "0.9"}


@dataclasses.dataclass(frozen=True)
class Family:
    name: str
    data: str  # a key of WRITERS
    model: dict  # spec.model
    training: dict
    metric: str  # of the report's metrics
    stated: float  # at least; of an error at most
    memory: int = 512  # MiB
    milli_cpu: int = 500  # a GiB, so that four functions fit the machine
    tolerance: float = 0.015  # of the metric: what n may change
    dataset: dict = dataclasses.field(default_factory=dict)


def builtin(name, **parameters):
    return {"builtin": {"name": name, "parameters": parameters}}


def falling(**optimizer):
    """A learning rate that ends at nothing, so that the last metrics depend little on the order of the samples."""
    return {**optimizer, "schedule": {"name": "OneCycle"}}


PIXELS = {"classes": 10, "normalize": {"mean": "0", "standardDeviation": "16"}}
DIGITS = falling(name="SGD", learningRate="0.1", momentum="0.9")
TEXTS = {"format": "Text", "text": {"vocabulary": "vocab.txt", "maxTokens": 16}}
FAMILIES = (
    Family("logistic, breast cancer", "breast-cancer", builtin("logistic"),
           {"epochs": 60, "globalBatchSize": 455, "optimizer": SGD}, "testAccuracy", 0.95, dataset={"classes": 2}),
    Family("mlp, breast cancer", "breast-cancer", builtin("mlp", hidden=[16]),
           {"epochs": 60, "globalBatchSize": 455, "optimizer": SGD}, "testAccuracy", 0.95, dataset={"classes": 2}),
    Family("mlp, diabetes", "diabetes", builtin("mlp", hidden=[16]),
           {"epochs": 60, "globalBatchSize": 353, "loss": "MSE", "optimizer": SGD}, "testMeanAbsoluteError", 0.48),
    Family("cnn1d, digits", "digits", builtin("cnn1d"),
           {"epochs": 12, "globalBatchSize": 64, "optimizer": SGD}, "testAccuracy", 0.93,
           dataset={**PIXELS, "uri": "sequences"}),
    Family("mlp, digits", "digits", builtin("mlp"), {"epochs": 20, "globalBatchSize": 64, "optimizer": DIGITS},
           "testAccuracy", 0.95, dataset=PIXELS),
    Family("cnn, digits", "digits", builtin("cnn", kernel=3, padding=1),
           {"epochs": 20, "globalBatchSize": 64, "optimizer": DIGITS}, "testAccuracy", 0.97, dataset=PIXELS),
    Family("textcnn, made texts", "texts", builtin("textcnn", embedding=32, width=16),
           {"epochs": 8, "globalBatchSize": 64, "optimizer": falling(name="Adam", learningRate="0.01")},
           "testAccuracy", 0.95, dataset=TEXTS),
    Family("a module of one's own, digits", "digits", {"torchScript": {"uri": "module.pt"}},
           {"epochs": 20, "globalBatchSize": 64, "optimizer": DIGITS}, "testAccuracy", 0.97,
           dataset={**PIXELS, "featureShape": [1, 8, 8]}),
    Family("resnet18, digits", "digits", builtin("resnet18"),
           {"epochs": 4, "globalBatchSize": 64, "optimizer": falling(name="Adam", learningRate="0.001")},
           "testAccuracy", 0.95, memory=1024, tolerance=0.02, dataset=PIXELS),
    Family("resnet50, digits", "digits", builtin("resnet50"),
           {"epochs": 4, "globalBatchSize": 64, "optimizer": falling(name="Adam", learningRate="0.001")},
           "testAccuracy", 0.92, memory=2048, milli_cpu=250, tolerance=0.02, dataset=PIXELS),
    Family("mobilenet, digits enlarged", "digits", builtin("mobilenet"),
           {"epochs": 6, "globalBatchSize": 64, "optimizer": falling(name="Adam", learningRate="0.003")},
           "testAccuracy", 0.95, memory=1024, tolerance=0.02, dataset={**PIXELS, "uri": "enlarged"}),
)


def standardized(train, test):
    """Columns of mean 0 and deviation 1, as sklearn's StandardScaler makes them of the training set."""
    mean, deviation = train.mean(0), train.std(0)
    return (train - mean) / deviation, (test - mean) / deviation


def write_table(folder, features, targets):
    """Four fifths to learn from, one fifth held out, as NumPy arrays."""
    order = numpy.random.RandomState(0).permutation(len(targets))
    held_out = numpy.arange(len(targets)) % 5 == 0
    train, test = order[~held_out], order[held_out]
    folder.mkdir()
    for name, rows in zip(("train", "test"), standardized(features[train], features[test]), strict=True):
        numpy.save(folder / f"x_{name}.npy", rows.astype("float32"))
    numpy.save(folder / "y_train.npy", targets[train])
    numpy.save(folder / "y_test.npy", targets[test])


def write_breast_cancer(folder):
    import sklearn.datasets

    data = sklearn.datasets.load_breast_cancer()
    write_table(folder / "breast-cancer", data.data, data.target)


def write_diabetes(folder):
    """The progression of the disease, in hundreds."""
    import sklearn.datasets

    data = sklearn.datasets.load_diabetes()
    write_table(folder / "diabetes", data.data, (data.target / 100).astype("float32"))


def write_digits(folder):
    real_digits.export(folder / "digits")
    # Sequences of 64 pixels, and images of 24 x 24, of which deep networks have more than one pixel left.
    for form, made_of in (("sequences", lambda pixels: pixels.reshape(len(pixels), 64)),
                          ("enlarged", lambda pixels: pixels.repeat(3, axis=1).repeat(3, axis=2))):
        (folder / form).mkdir()
        for name in ("train", "test"):
            numpy.save(folder / f"{form}/x_{name}.npy", made_of(numpy.load(folder / f"digits/x_{name}.npy")))
            (folder / f"{form}/y_{name}.npy").write_bytes((folder / f"digits/y_{name}.npy").read_bytes())
    save_module(folder / "module.pt")


def save_module(path):
    """A convolution with batch norm and a layer for ten classes, as a user writes them."""
    import torch

    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
                                 torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16 * 4 * 4, 10))
    torch.jit.script(module).save(str(path))


def write_texts(folder):
    """Texts of three classes: three words in ten are of their class, the others of all."""
    (folder / "texts").mkdir()
    random = numpy.random.RandomState(0)
    words = {kind: [f"{kind}{number}" for number in range(40)] for kind in ("all", "sport", "money", "weather")}
    for name, count in (("train", 1800), ("test", 450)):
        lines = []
        for number in range(count):
            kind = ("sport", "money", "weather")[number % 3]
            own = random.rand(random.randint(8, 16)) < 0.3
            text = (words[kind if word else "all"][random.randint(40)] for word in own)
            lines.append(f"__label__{kind} {' '.join(text)}\n")
        (folder / f"texts/{name}.txt").write_text("".join(lines))
    (folder / "texts/vocab.txt").write_text("\n".join(["<pad>", "<unk>"] + sum(words.values(), [])) + "\n")


WRITERS = {"breast-cancer": write_breast_cancer, "diabetes": write_diabetes, "digits": write_digits,
           "texts": write_texts}


class Curves:
    """Runs of families in one folder; profiles are kept there, so that each family is measured once."""

    def __init__(self, programs):
        self.bench = Bench(programs, train=0)
        self.written = set()

    def close(self):
        self.bench.close()

    def job(self, family, functions):
        return {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
                "metadata": {"name": "curve"},
                "spec": {"model": family.model,
                         "dataset": {"uri": family.data, "format": "NPY", **family.dataset},
                         "training": {"seed": 3, **family.training},
                         "objective": {"fixed": {"functions": functions, "memory": f"{family.memory}Mi"}},
                         "aggregation": {"placement": "Workers"}}}

    def write(self, family):
        """Its data, once."""
        if family.data not in self.written:
            WRITERS[family.data](self.bench.folder)
            self.written.add(family.data)

    def run(self, family, functions, *options):
        self.write(family)
        job = self.bench.folder / "curve.json"
        job.write_text(json.dumps(self.job(family, functions)))
        platform = self.bench.platform(memory={"min": "256Mi", "max": "4Gi", "step": "64Mi"},
                                       milliCpuPerGiB=family.milli_cpu)
        run = self.bench.start("--platform", platform, *options, job=job,
                               environment={"XDG_CACHE_HOME": str(self.bench.folder / "cache")}).wait(3600)
        if run.code != 0:
            raise RuntimeError(f"{family.name}, n = {functions}: {run.text()[-3000:]}")
        return run


def metric_of(family, run):
    return run.report()["metrics"][family.metric]


def complaints(family, values):
    """What does not hold of the metrics for 1, 2 and 4 functions."""
    found = []
    for functions, value in zip(FUNCTIONS, values, strict=True):
        if (value > family.stated) if family.metric.endswith("Error") else (value < family.stated):
            found.append(f"{family.name}, n = {functions}: {value:.4f}, stated {family.stated}")
        if abs(value - values[0]) > family.tolerance:
            found.append(f"{family.name}, n = {functions}: {value:.4f}, with one function {values[0]:.4f}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=TESTS.parent / "build/release/bin")
    parser.add_argument("--only", default="", help="families whose names hold this text")
    options = parser.parse_args()
    curves, found = Curves(options.bin), []
    print("| family | metric (stated) | n = 1 | n = 2 | n = 4 | by epoch, n = 1 |")
    for family in FAMILIES:
        if options.only not in family.name:
            continue
        reports = [curves.run(family, functions).report() for functions in FUNCTIONS]
        values = [report["metrics"][family.metric] for report in reports]
        found += complaints(family, values)
        key = {"testAccuracy": "accuracy", "testMeanAbsoluteError": "meanAbsoluteError"}[family.metric]
        points = [point[key] for point in reports[0]["curves"]["evaluations"]]
        shown = points[::max(1, len(points) // 6)]
        print(f"| {family.name} | {family.metric} ({family.stated}) | "
              + " | ".join(f"{value:.4f}" for value in values)
              + f" | {', '.join(f'{point:.3f}' for point in shown)} |", flush=True)
    curves.close()
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
