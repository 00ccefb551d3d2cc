#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the exchange of direct_bench beside gloo's all-reduce (PyTorch's, which is a ring) of as many bytes.

    /usr/bin/python3 tests/bench/gloo_python.py [build/release/bin/direct_bench]

Rows are measured in turns, three times each; the medians are printed. gloo's workers are processes of one thread.
"""
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS = (2, 4, 8)
MEGABYTES = (1, 10, 50)
REPEATS = 3
# As direct_bench.
FEWEST_ITERATIONS, TIMED_MEGABYTES = 60, 400


def all_reduce(rank, workers, megabytes, folder):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=workers)
    vector = torch.ones(megabytes * 250_000)
    torch.distributed.all_reduce(vector)
    torch.distributed.barrier()
    iterations = max(FEWEST_ITERATIONS, TIMED_MEGABYTES // megabytes)
    begin = time.perf_counter()
    for _ in range(iterations):
        torch.distributed.all_reduce(vector)
    seconds = (time.perf_counter() - begin) / iterations
    if rank == 0:
        pathlib.Path(folder, "seconds").write_text(str(seconds))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()  # else its threads may abort the process as it ends


def gloo_seconds(workers, megabytes):
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(all_reduce, (workers, megabytes, folder), nprocs=workers)
        return float(pathlib.Path(folder, "seconds").read_text())


def direct_seconds(program, workers, megabytes):
    """Exchange and iteration, without TLS and with it."""
    done = subprocess.run([program, str(workers), str(megabytes)], check=True, capture_output=True, text=True)
    return [float(seconds) for line in done.stdout.splitlines() for seconds in line.split()[3:5]]


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/bin/direct_bench")
    print(" n |  MB | gloo ms | exchange ms | ratio | iteration ms | ratio | with TLS: exchange ms | ratio")
    for megabytes in MEGABYTES:
        for workers in WORKERS:
            rows = []
            for _ in range(REPEATS):
                rows.append([gloo_seconds(workers, megabytes), *direct_seconds(program, workers, megabytes)])
            gloo, plain, iteration, tls, _ = (statistics.median(column) for column in zip(*rows, strict=True))
            print(f"{workers:2} | {megabytes:3} | {gloo * 1e3:7.2f} | {plain * 1e3:11.2f} | {plain / gloo:5.2f} | "
                  f"{iteration * 1e3:12.2f} | {iteration / gloo:5.2f} | {tls * 1e3:21.2f} | {tls / gloo:5.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
