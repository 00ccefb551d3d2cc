# SPDX-License-Identifier: Apache-2.0
"""The step of step_bench in Python PyTorch, beside the worker's, in turns, in
processor time.

usage: /usr/bin/python3 tests/bench/step_python.py [build/release/bin/step_bench]
"""
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import pytorch_twins

SAMPLES, BATCH, STEPS, ROUNDS = 2048, 64, 60, 3


def python_steps():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = pytorch_twins.make("cnn", [1, 28, 28], 10)
    images = torch.randint(0, 256, (SAMPLES, 1, 28, 28), dtype=torch.uint8)
    labels = torch.randint(0, 10, (SAMPLES,))
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    times = []
    for step in range(STEPS + 5):
        index = torch.randint(0, SAMPLES, (BATCH,))
        begin = time.process_time()
        torch.nn.utils.vector_to_parameters(flat, model.parameters())
        model.zero_grad(set_to_none=True)
        out = model(images[index].float().div_(255))
        loss = torch.nn.functional.cross_entropy(out, labels[index], reduction="sum")
        loss.backward()
        torch.cat([p.grad.flatten() for p in model.parameters()])
        loss.item()
        if step >= 5:  # the first ones allocate
            times.append(1000 * (time.process_time() - begin))
    return statistics.median(times)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/step_bench"
    python, worker = [], []
    for _ in range(ROUNDS):
        python.append(python_steps())
        output = subprocess.run([program, "--benchmark_format=json"], check=True,
                                capture_output=True, text=True).stdout
        worker.append(json.loads(output)["benchmarks"][0]["worker_ms"])
    ratio = statistics.median(worker) / statistics.median(python)
    print(f"python {statistics.median(python):.2f} ms, worker {statistics.median(worker):.2f} ms, "
          f"worker / python {ratio:.3f}")


if __name__ == "__main__":
    main()
