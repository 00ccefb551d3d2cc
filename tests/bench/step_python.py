# SPDX-License-Identifier: Apache-2.0
"""The steps of step_bench in Python PyTorch, beside the worker's, in turns, in
processor time.

usage: /usr/bin/python3 tests/bench/step_python.py [--bench build/release/bin/step_bench] [--rounds 3] [NAME...]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "trainer_function/model/networks"))
import networks
import pytorch_twins

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Of the cnn so many samples are a data set that batches are drawn from, as step_bench has it.
SAMPLES = 2048
# Name, shape of a sample, samples in a batch, vocabulary (0 = real numbers), steps: as in step_bench.cc.
CASES = (("cnn", [1, 28, 28], 64, 0, 60), ("mlp", [1, 28, 28], 64, 0, 400), ("logistic", [1, 28, 28], 64, 0, 400),
         ("cnn1d", [128], 64, 0, 100), ("resnet18", [3, 32, 32], 8, 0, 40), ("resnet50", [3, 32, 32], 8, 0, 20),
         ("mobilenet", [3, 32, 32], 8, 0, 40), ("textcnn", [200], 32, 5002, 40))


def module_of(name, shape, vocabulary):
    if name not in networks.NETWORKS:
        return pytorch_twins.make(name, shape, 10)
    before = dict(networks.SIZES)
    sizes = ({"vocabulary": vocabulary, "embedding": 128, "width": 100, "kernel1": 3, "kernel2": 4, "kernel3": 5}
             if vocabulary else {"channels": shape[0], "firstKernel": 3})
    networks.SIZES.update(sizes, classes=10)
    module = networks.NETWORKS[name]()
    networks.SIZES.update(before)
    for part in module.modules():  # small images
        if hasattr(part, "first_stride"):
            part.first_stride = 1
        if hasattr(part, "first_pool"):
            part.first_pool = False
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, 0, 0.02)
    return module


def python_steps(name, shape, batch, vocabulary, steps):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = module_of(name, shape, vocabulary).train()
    samples = SAMPLES if name == "cnn" else batch
    features = (torch.randint(0, vocabulary, (samples, *shape)) if vocabulary else
                torch.randint(0, 256, (samples, *shape), dtype=torch.uint8) if name == "cnn" else
                torch.rand(samples, *shape))
    labels = torch.randint(0, 10, (samples,))
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    times = []
    for step in range(steps + 5):
        index = torch.randint(0, samples, (batch,))
        begin = time.process_time()
        torch.nn.utils.vector_to_parameters(flat, model.parameters())
        model.zero_grad(set_to_none=True)
        x, y = (features[index].float().div_(255), labels[index]) if name == "cnn" else (features, labels)
        loss = torch.nn.functional.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        torch.cat([p.grad.flatten() for p in model.parameters()])
        loss.item()
        if step >= 5:  # the first ones allocate
            times.append(1000 * (time.process_time() - begin))
    return statistics.median(times)


def worker_steps(program, name):
    output = subprocess.run([program, "--benchmark_format=json", f"--benchmark_filter=^alone/{name}/"], check=True,
                            capture_output=True, text=True).stdout
    (figures,) = json.loads(output)["benchmarks"]
    return figures["worker_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/step_bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*", help="models; all unless given")
    options = parser.parse_args()
    for case in CASES:
        if options.names and case[0] not in options.names:
            continue
        python, worker = [], []
        for _ in range(options.rounds):
            python.append(python_steps(*case))
            worker.append(worker_steps(options.bench, case[0]))
        ours, theirs = statistics.median(worker), statistics.median(python)
        print(f"{case[0]}: python {theirs:.2f} ms, worker {ours:.2f} ms, worker / python {ours / theirs:.3f}",
              flush=True)


if __name__ == "__main__":
    main()
