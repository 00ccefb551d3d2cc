#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints an iteration of `lambdadnn run` (the built-in cnn, workers that serve, Direct, K = n or as many shards as the
model has blocks, no quota) beside a step of PyTorch's DistributedDataParallel over gloo, of the same network, batch and
optimizer; and beside one of PyTorch that averages all gradients after its backward pass, where DistributedDataParallel
averages the last layers' during it. Of one worker, these are a loop without others.

    /usr/bin/python3 tests/bench/ddp_python.py [build/release/bin/lambdadnn]

Rows are measured in turns, three times each; the medians are printed. Both use one thread a worker for their steps.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import pytorch_twins

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Parameters of the built-in cnn, 0.3 and 10 MB.
NETWORKS = {"cnn": {}, "wide cnn": {"channels": [32, 64], "hidden": [2400]}}
ROWS = [*(("cnn", n) for n in (1, 2, 4, 8)), ("wide cnn", 2)]
BLOCK = 16384  # parameters, of which a shard has at least one
BATCH, ITERATIONS, REPEATS, WARM_UP = 64, 100, 3, 10


def network(name):
    return pytorch_twins.make("cnn", [1, 28, 28], 10, **NETWORKS[name])


def average(gradients, workers):
    whole = torch._utils._flatten_dense_tensors(gradients)
    torch.distributed.all_reduce(whole)
    whole.div_(workers)
    for gradient, mean in zip(gradients, torch._utils._unflatten_dense_tensors(whole, gradients), strict=True):
        gradient.copy_(mean)


def train(rank, name, workers, overlap, folder):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=workers)
    torch.manual_seed(1)
    model = network(name)
    if overlap and workers > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images = torch.randint(0, 256, (BATCH * ITERATIONS, 1, 28, 28), dtype=torch.uint8)
    labels = torch.randint(0, 10, (BATCH * ITERATIONS,))
    for step in range(WARM_UP + ITERATIONS):
        if step == WARM_UP:
            torch.distributed.barrier()
            begin = time.perf_counter()
        index = torch.randint(0, len(images), (BATCH,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[index].float().div_(255)), labels[index])
        loss.backward()
        if not overlap and workers > 1:
            average([parameter.grad for parameter in model.parameters()], workers)
        optimizer.step()
        loss.item()
    if rank == 0:
        pathlib.Path(folder, "seconds").write_text(str((time.perf_counter() - begin) / ITERATIONS))


def ddp_seconds(name, workers, overlap=True):
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (name, workers, overlap, folder), nprocs=workers)
        return float(pathlib.Path(folder, "seconds").read_text())


def run_seconds(program, name, workers, channel):
    """Of an iteration: its compute and its communication, means of the workers."""
    parameters = sum(parameter.numel() for parameter in network(name).parameters())
    shards = min(workers, -(-parameters // BLOCK))
    job = {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob", "metadata": {"name": "ddp"},
           "spec": {"model": {"builtin": {"name": "cnn", "parameters": NETWORKS[name]}},
                    "backend": "Local", "peerChannel": channel,
                    "dataset": {"renderedDigits": {"train": workers * BATCH * ITERATIONS, "test": 100}},
                    "training": {"epochs": 1, "globalBatchSize": workers * BATCH,
                                 "optimizer": {"name": "SGD", "learningRate": "0.05", "momentum": "0.9"}},
                    "objective": {"fixed": {"functions": workers, "memory": "1Gi"}},
                    "aggregation": {"transport": "Direct", "placement": "Workers", "shards": shards,
                                    "spread": shards, "layers": [1, workers]},
                    "profile": {"trainingSamples": workers * BATCH * ITERATIONS, "trainingBytes": 784,
                                "modelBytes": 4 * parameters, "trainingRate": {"slope": "1", "intercept": "0"}},
                    "checkpoint": {"intervalSeconds": 600}}}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file, out = pathlib.Path(folder, "job.json"), pathlib.Path(folder, "out")
        file.write_text(json.dumps(job))
        platform = pathlib.Path(folder, "platform.json")
        platform.write_text(json.dumps({"memory": {"min": "256Mi", "max": "1Gi", "step": "64Mi"}, "maxFunctions": 16,
                                        "prices": {"currency": "USD", "gibSecond": "0.00002"}}))
        done = subprocess.run([program, "run", file, "--out", out, "--platform", platform, "--store",
                               f"file://{folder}/store"], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)
        report = json.loads((out / "report.json").read_text())
    phases, iterations = report["phases"], report["requests"]["iterations"]
    return (phases["computeSeconds"] + phases["communicationSeconds"]) / iterations


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/bin/lambdadnn")
    # As functions have it: else its threads spin on the cores of the other workers.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print(f"PyTorch {torch.__version__}\n"
          " network  | n | DDP ms | averaged after ms | run ms | ratio | with TLS ms | ratio")
    for name, workers in ROWS:
        rows = [[ddp_seconds(name, workers), ddp_seconds(name, workers, overlap=False),
                 run_seconds(program, name, workers, "Plain"), run_seconds(program, name, workers, "TLS")]
                for _ in range(REPEATS)]
        ddp, after, plain, tls = (statistics.median(column) * 1e3 for column in zip(*rows, strict=True))
        print(f" {name:8} | {workers} | {ddp:6.2f} | {after:17.2f} | {plain:6.2f} | {plain / ddp:5.2f} | {tls:11.2f} | "
              f"{tls / ddp:5.2f}", flush=True)


if __name__ == "__main__":
    main()
