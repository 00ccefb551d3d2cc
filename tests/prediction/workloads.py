#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the three workloads of λDNN's paper on this machine, fewer samples and epochs of them, and prints predicted
against actual: MobileNet and ResNet-50 on images of CIFAR-10's form, a network for texts on reviews of two classes.
The data are made here. Each plan has a fresh profile, and a store in memory.

    tests/prediction/workloads.py [--bin build/release/bin] [--runs 3] [--only TEXT]

Nothing else may run meanwhile.
"""
import argparse
import json
import pathlib
import random
import statistics
import tempfile

import prediction_records
import record

PIXELS = 3 * 32 * 32
PLATFORM = {"memory": {"min": "256Mi", "max": "4Gi", "step": "64Mi"}, "milliCpuPerGiB": 500, "maxFunctions": 8,
            "prices": {"currency": "USD", "gibSecond": "0.0000166667"}}
# Images or lines for training, epochs, samples of each function in an iteration, functions, their memory in MiB.
WORKLOADS = (
    ("mobilenet", 640, 2, 32, 1, 1792), ("mobilenet", 640, 2, 32, 2, 1792),
    ("resnet50", 128, 2, 16, 1, 2048), ("resnet50", 128, 2, 16, 2, 2048),
    ("textcnn", 2000, 4, 32, 1, 960), ("textcnn", 2000, 4, 32, 2, 960), ("textcnn", 2000, 4, 32, 4, 960),
)


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


def job_of(model, epochs, local_batch, functions, memory, dataset):
    parameters = {} if model == "textcnn" else {"smallImages": True}
    return {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob", "metadata": {"name": model},
            "spec": {"model": {"builtin": {"name": model, "parameters": parameters}}, "dataset": dataset,
                     "training": {"epochs": epochs, "globalBatchSize": local_batch * functions, "seed": 1,
                                  "optimizer": {"name": "SGD", "learningRate": "0.01", "momentum": "0.9"}},
                     "objective": {"fixed": {"functions": functions, "memory": f"{memory}Mi"}}}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=prediction_records.ROOT / "build/release/bin")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="workloads whose names hold this text")
    options = parser.parse_args()
    print("| workload | predicted / actual s | compute, communication | iterations |")
    for model, samples, epochs, batch, functions, memory in WORKLOADS:
        if options.only not in model:
            continue
        with tempfile.TemporaryDirectory(prefix="lambdadnn-workload-") as folder:
            data = pathlib.Path(folder, "data")
            data.mkdir()
            write = write_texts if model == "textcnn" else write_images
            dataset = {"uri": str(data), **write(data, samples, random.Random(1))}
            job = job_of(model, epochs, batch, functions, memory, dataset)
            platform = pathlib.Path(folder, "platform.json")
            platform.write_text(json.dumps(PLATFORM))
            reports = []
            for number in range(options.runs):
                run = pathlib.Path(folder, f"run-{number}")
                run.mkdir()
                reports.append(record.run(options, job, run, "--platform", platform)[0])
        rows, errors = [], []
        for report in reports:
            phases, first = report["phases"], report["plans"][0]
            # What is predicted is the first plan, from when it was made; another one may follow it.
            predicted, actual = (report_of["seconds"] - first["atSeconds"]
                                 for report_of in (first["predicted"], report["actual"]))
            errors.append(predicted / actual - 1)
            rows.append((f"{predicted:.1f}/{actual:.1f}",
                         f"{phases['computeSeconds']:.1f} {phases['communicationSeconds']:.1f}"))
        print(f"| {model}, {functions} x {memory} MiB | {', '.join(row[0] for row in rows)}"
              f" ({statistics.median(errors):+.1%}) | {', '.join(row[1] for row in rows)}"
              f" | {reports[0]['requests']['iterations']} |", flush=True)


if __name__ == "__main__":
    main()
