#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the three workloads of λDNN's paper on this machine, fewer samples and epochs of them, and prints predicted
against actual: MobileNet and ResNet-50 on images of CIFAR-10's form, a network for texts on reviews of two classes. And
two by how samples are read: a folder of JPEGs, and more samples than memory holds, in MinIO. The data are made here.
Each run has a fresh profile, and its objects in memory.

    tests/prediction/workloads.py [--bin build/release/bin] [--runs 3] [--only TEXT]

Nothing else may run meanwhile.
"""
import argparse
import dataclasses
import io
import json
import pathlib
import random
import statistics
import struct
import sys
import tempfile
from collections.abc import Callable

import prediction_records
import record

sys.path.extend([str(prediction_records.ROOT / folder) for folder in ("tests/integration", "tests/support")])

PIXELS = 3 * 32 * 32
PLATFORM = {"memory": {"min": "256Mi", "max": "4Gi", "step": "64Mi"}, "milliCpuPerGiB": 400, "maxFunctions": 8,
            "prices": {"currency": "USD", "gibSecond": "0.0000166667"}}


def write_images(folder, samples, draw):
    """CIFAR-10's binary form: each class has a shade, and much noise."""
    def file_of(count):
        for i in range(count):
            label = i % 10
            yield bytes([label]) + bytes(20 * label + byte % 60 for byte in draw.randbytes(PIXELS))
    each = samples // 5
    for batch in range(1, 6):
        (folder / f"data_batch_{batch}.bin").write_bytes(b"".join(file_of(each)))
    (folder / "test_batch.bin").write_bytes(b"".join(file_of(samples // 5)))
    return {"format": "CIFAR10"}


def write_texts(folder, samples, draw):
    """Lines of words, some of which one class prefers."""
    words = [f"word{i}" for i in range(5000)]
    (folder / "vocab.txt").write_text("\n".join(["<pad>", "<unk>", *words]) + "\n")
    for name, count in (("train", samples), ("test", samples // 5)):
        lines = []
        for i in range(count):
            label = i % 2
            chosen = draw.choices(words, k=180) + draw.choices(words[label * 40:label * 40 + 40], k=20)
            lines.append(f"__label__{label} {' '.join(chosen)}\n")
        (folder / f"{name}.txt").write_text("".join(lines))
    return {"format": "Text", "text": {"vocabulary": "vocab.txt", "maxTokens": 200}}


def write_jpegs(folder, samples, draw):
    """A folder of JPEGs of 160 x 120 pixels, ten classes of which each has a colour."""
    import PIL.Image

    for name, count in (("train", samples), ("test", samples // 5)):
        for i in range(count):
            label = i % 10
            picture = PIL.Image.frombytes("RGB", (160, 120), draw.randbytes(160 * 120 * 3))
            colour = PIL.Image.new("RGB", picture.size, (25 * label, 250 - 25 * label, 128))
            data = io.BytesIO()
            PIL.Image.blend(picture, colour, 0.7).save(data, "JPEG")
            place = folder / name / f"class{label}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i}.jpg").write_bytes(data.getvalue())
    return {"format": "ImageFolder", "image": {"height": 64, "width": 64}}


def write_large_images(folder, samples, draw):
    """IDX images of 128 x 128 pixels."""
    side = 128
    (folder / "train-images-idx3-ubyte").write_bytes(
        struct.pack(">4B3I", 0, 0, 8, 3, samples, side, side) + draw.randbytes(samples * side * side))
    (folder / "train-labels-idx1-ubyte").write_bytes(
        struct.pack(">4BI", 0, 0, 8, 1, samples) + bytes(i % 10 for i in range(samples)))
    return {"format": "IDX"}


@dataclasses.dataclass(frozen=True)
class Workload:
    model: str
    samples: int  # for training
    epochs: int
    batch: int  # of each function
    functions: int
    memory: int  # MiB
    write: Callable = write_images
    parameters: dict = dataclasses.field(default_factory=lambda: {"smallImages": True})
    minio: bool = False  # the data lie there, not in a folder
    note: str = ""
    # MiB; 0 = as planned. Objects in memory count as their writer's, and a server keeps its checkpoints there.
    server_memory: int = 0

    def name(self):
        return f"{self.model}{self.note}, {self.functions} x {self.memory} MiB"


WORKLOADS = (
    Workload("mobilenet", 640, 2, 32, 1, 1792), Workload("mobilenet", 640, 2, 32, 2, 1792),
    *(Workload("resnet50", 128, 2, 16, functions, 2304, server_memory=2304) for functions in (1, 2)),
    *(Workload("textcnn", 2000, 4, 32, functions, 960, write_texts, {}) for functions in (1, 2, 4)),
    Workload("resnet18", 320, 2, 16, 1, 1536, write_jpegs, note=" on a folder of images"),
    Workload("resnet18", 320, 2, 16, 2, 1536, write_jpegs, note=" on a folder of images"),
    Workload("mlp", 8000, 3, 60, 1, 256, write_large_images, {"hidden": [16]}, note=" streamed from a folder"),
    Workload("mlp", 8000, 3, 60, 1, 256, write_large_images, {"hidden": [16]}, minio=True, note=" streamed from MinIO"),
)


def job_of(workload, dataset):
    servers = {"aggregation": {"serverMemory": f"{workload.server_memory}Mi"}} if workload.server_memory else {}
    return {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": workload.model},
            "spec": {"model": {"builtin": {"name": workload.model, "parameters": workload.parameters}},
                     "dataset": dataset,
                     "training": {"epochs": workload.epochs, "globalBatchSize": workload.batch * workload.functions,
                                  "seed": 1,
                                  "optimizer": {"name": "SGD", "learningRate": "0.01", "momentum": "0.9"}},
                     "objective": {"fixed": {"functions": workload.functions, "memory": f"{workload.memory}Mi"}},
                     **servers}}


class Folder:
    """Where a workload's data lie: a folder, or MinIO."""

    def __init__(self, folder, minio):
        self.data, self.server = folder / "data", None
        self.data.mkdir()
        if minio:
            from s3_servers import RealServer

            self.server = RealServer("minio")

    def place(self):
        """The URI of what was written, and what tells functions how to get there."""
        if self.server is None:
            return str(self.data), {}
        from s3_servers import BUCKET, CREDENTIALS

        for file in self.data.rglob("*"):
            if file.is_file():
                path = f"/{BUCKET}/data/{file.relative_to(self.data)}"
                status, answer = self.server.request("PUT", path, file.read_bytes())
                if status != 200:
                    raise RuntimeError(answer)
        return f"s3://{BUCKET}/data", {
            **CREDENTIALS, "LAMBDADNN_S3_ENDPOINT": f"http://{self.server.host}:{self.server.port}"}

    def close(self):
        if self.server is not None:
            self.server.close()


def run(options, workload, folder):
    """The row of a workload."""
    place = Folder(folder, workload.minio)
    try:
        dataset = workload.write(place.data, workload.samples, random.Random(1))
        uri, environment = place.place()
        job = job_of(workload, {"uri": uri, **dataset})
        platform = folder / "platform.json"
        platform.write_text(json.dumps(PLATFORM))
        reports = []
        for number in range(options.runs):
            own = folder / f"run-{number}"
            own.mkdir()
            reports.append(record.run(options, job, own, "--platform", platform, environment=environment)[0])
    finally:
        place.close()
    rows, errors = [], []
    for report in reports:
        phases, first = report["phases"], report["plans"][0]
        # What is predicted is the first plan, from when it was made; another one may follow it.
        predicted, actual = (report_of["seconds"] - first["atSeconds"]
                             for report_of in (first["predicted"], report["actual"]))
        errors.append(predicted / actual - 1)
        rows.append((f"{predicted:.1f}/{actual:.1f}",
                     f"{phases['computeSeconds']:.1f} {phases['communicationSeconds']:.1f}"))
    return (f"| {workload.name()} | {', '.join(row[0] for row in rows)} ({statistics.median(errors):+.1%}) | "
            f"{', '.join(row[1] for row in rows)} | {reports[0]['requests']['iterations']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=prediction_records.ROOT / "build/release/bin")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="workloads whose names hold this text")
    options = parser.parse_args()
    print("| workload | predicted / actual s | compute, communication | iterations |", flush=True)
    failed = []
    for workload in WORKLOADS:
        if options.only not in workload.name():
            continue
        with tempfile.TemporaryDirectory(prefix="lambdadnn-workload-") as folder:
            try:
                print(run(options, workload, pathlib.Path(folder)), flush=True)
            except RuntimeError as error:
                failed.append(workload.name())
                print(f"{failed[-1]}: {error}", flush=True)
    if failed:
        sys.exit(f"error: not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
