#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What plans take functions to need of memory, against the largest resident sets of real runs: small and large
models (up to 100 MB of parameters), shards, layers, optimizers with and without state.

    tests/prediction/memory.py [--bin build/release/bin] [--only TEXT] [--store URI]

Each plan is profiled anew. A table for docs/benchmarks.md; memory does not depend on how busy the machine is.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import prediction_records
import record

SGD = {"name": "SGD", "learningRate": "0.01"}
MOMENTUM = {**SGD, "momentum": "0.9"}
ADAM = {"name": "Adam", "learningRate": "0.001"}
# Hidden layers of an mlp on 784 features and 10 classes, or a model by name; batch; optimizer; functions; shards;
# layers of servers; more of spec.aggregation.
SERVE, DIRECT = {"placement": "Workers"}, {"transport": "Direct"}
PLANS = (
    ("cnn", 120, MOMENTUM, 2, 1, [1]), ("logistic", 120, SGD, 2, 1, [1]), ([256], 120, MOMENTUM, 4, 2, [1, 2]),
    ([2000, 1200], 64, SGD, 2, 1, [1]), ([2000, 1200], 64, ADAM, 4, 4, [1]), ([3000, 2600], 64, MOMENTUM, 4, 1, [1]),
    ([4800, 4400], 64, SGD, 2, 1, [1]), ([4800, 4400], 64, MOMENTUM, 4, 1, [1]), ([4800, 4400], 64, SGD, 8, 1, [1]),
    ([3000, 2600], 64, ADAM, 2, 8, [1, 2]), ([3000, 2600], 64, ADAM, 2, 2, [1], DIRECT),
    ([3000, 2600], 64, ADAM, 2, 2, [1], SERVE), ([3000, 2600], 64, ADAM, 2, 2, [1], SERVE | DIRECT),
    ([3000, 2600], 64, ADAM, 1, 1, [1], SERVE), ([2000, 1200], 64, MOMENTUM, 4, 4, [1], SERVE | DIRECT),
)
SAMPLES, EPOCHS = 256, 1
# Little CPU, so that eight functions fit.
PLATFORM = {"memory": {"min": "128Mi", "max": "1024Mi", "step": "64Mi"}, "milliCpuPerGiB": 200, "maxFunctions": 16,
            "functionTimeoutSeconds": 900, "function": {"networkBytesPerSecond": 1e9, "storeBytesPerSecond": 1e9},
            "parameterServer": {"networkBytesPerSecond": 1e9, "pricePerSecond": "0"},
            "store": {"bytesPerSecond": 1e9, "requestSeconds": "0.001"},
            "prices": {"currency": "USD", "gibSecond": "0.0000166667"}}
MEBIBYTE = 1 << 20


def name_of(plan):
    model, batch, optimizer, functions, shards, layers, *more = plan
    kind = model if isinstance(model, str) else f"mlp {'x'.join(map(str, model))}"
    state = {"SGD": "SGD"}.get(optimizer["name"], "Adam") + (" momentum" if "momentum" in optimizer else "")
    ways = "".join(f", {value}" for way in more for value in way.values())
    return f"{kind}, batch {batch}, {state}, n {functions}, K {shards}, layers {layers}{ways}"


def job_of(plan):
    model, batch, optimizer, functions, shards, layers, *more = plan
    aggregation = {"placement": "Dedicated", "transport": "ObjectStore", "shards": shards,
                   "layers": [*layers, functions]}
    for way in more:
        aggregation |= way
    if aggregation["placement"] == "Dedicated":
        aggregation["serverMemory"] = "1024Mi"
    job = record.job_of(("mlp", "small", EPOCHS, functions, 1024), aggregation)
    spec = job["spec"]
    spec["model"] = {"builtin": {"name": model} if isinstance(model, str) else
                     {"name": "mlp", "parameters": {"hidden": model}}}
    spec["dataset"] = {"renderedDigits": {"train": SAMPLES, "test": SAMPLES}}
    spec["training"] |= {"globalBatchSize": batch, "optimizer": optimizer}
    return job


def run(options, plan):
    """The report's part on memory."""
    with tempfile.TemporaryDirectory(prefix="lambdadnn-memory-") as folder:
        folder = pathlib.Path(folder)
        (folder / "job.json").write_text(json.dumps(job_of(plan)))
        (folder / "platform.yaml").write_text(json.dumps(PLATFORM))
        store = ["--store", options.store] if options.store else []
        done = subprocess.run([options.bin / "lambdadnn", "run", folder / "job.json", "--out", folder / "run",
                               "--platform", folder / "platform.yaml", "--profile-again", *store],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-2000:])
        report = json.loads((folder / "run/report.json").read_text())
    return report["plan"]["parameters"], report["memory"]


def row_of(plan, parameters, memory):
    cells = [name_of(plan), f"{4e-6 * parameters:.1f} MB"]
    for role in ("workers", "servers"):
        if role not in memory or not memory[role].get("predictedBytes"):
            cells.append("")
            continue
        needed, peak = memory[role]["predictedBytes"], memory[role]["peakBytes"]
        cells.append(f"{needed / MEBIBYTE:.0f} / {peak / MEBIBYTE:.0f} MiB ({100 * (peak / needed - 1):+.0f} %)")
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=prediction_records.ROOT / "build/release/bin")
    parser.add_argument("--only", default="", help="plans whose names hold this text")
    parser.add_argument("--store", default="", help="another store than a folder of the run")
    options = parser.parse_args()
    print("| plan | parameters | worker, needed / used | server, needed / used |\n|---|---|---|---|")
    for plan in PLANS:
        if options.only not in name_of(plan):
            continue
        try:
            print(row_of(plan, *run(options, plan)), flush=True)
        except RuntimeError as error:
            sys.exit(f"error: {name_of(plan)}: {error}")


if __name__ == "__main__":
    main()
