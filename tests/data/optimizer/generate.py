#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference vectors of the optimizer tests with PyTorch (python3-torch):

    /usr/bin/python3 tests/data/optimizer/generate.py

Each file holds one configuration, the initial weights, and the weights and learning rates that
PyTorch reaches at a few of 100 steps. Gradients are the exact fractions of gradient(): the C++ test
computes the same.
"""
import json
import pathlib

import torch

SIZE = 7
STEPS = 100
KEEP = [0, 1, 9, 49, 99]


def gradient(step):
    return torch.tensor([((step * 37 + i * 101) % 257 - 128) / 64.0 + (i - 3) * 0.25
                         for i in range(SIZE)], dtype=torch.float32)


def scheduler(optimizer, schedule):
    name, warmup = schedule.get("name", "Constant"), schedule.get("warmupIterations", 0)
    if name == "Step":
        after = torch.optim.lr_scheduler.StepLR(optimizer, schedule["stepIterations"],
                                                schedule["gamma"])
    elif name == "Cosine":
        after = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS - warmup,
                                                           schedule["minLearningRate"])
    elif name == "Polynomial":
        after = torch.optim.lr_scheduler.PolynomialLR(optimizer, STEPS - warmup, schedule.get("power", 1))
    elif name == "OneCycle":
        return torch.optim.lr_scheduler.OneCycleLR(
            optimizer, optimizer.param_groups[0]["lr"], STEPS, pct_start=warmup / STEPS if warmup > 0 else 0.3,
            cycle_momentum=False)
    else:
        after = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
    if warmup == 0:
        return after
    before = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0 / warmup, 1.0, warmup - 1)
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [before, after], [warmup])


def make(weights, config):
    rate, decay = config["learningRate"], config.get("weightDecay", 0)
    if config["name"] == "SGD":
        return torch.optim.SGD([weights], rate, config.get("momentum", 0),
                               config.get("dampening", 0), decay, config.get("nesterov", False))
    kind = torch.optim.Adam if config["name"] == "Adam" else torch.optim.AdamW
    return kind([weights], rate, (config.get("beta1", 0.9), config.get("beta2", 0.999)),
                config.get("epsilon", 1e-8), decay, config.get("amsgrad", False))


def run(config):
    weights = torch.nn.Parameter(torch.tensor([(i - 3) * 0.5 for i in range(SIZE)]))
    start = weights.detach().tolist()
    optimizer = make(weights, config)
    schedule = scheduler(optimizer, config.get("schedule", {}))
    steps = []
    for step in range(STEPS):
        weights.grad = gradient(step)
        if "clipValue" in config:
            torch.nn.utils.clip_grad_value_([weights], config["clipValue"])
        if "clipGlobalNorm" in config:
            torch.nn.utils.clip_grad_norm_([weights], config["clipGlobalNorm"])
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        schedule.step()
        if step in KEEP:
            steps.append({"step": step, "learningRate": rate, "weights": weights.detach().tolist()})
    return {"config": config, "start": start, "steps": steps}


CASES = {
    "sgd": {"name": "SGD", "learningRate": 0.1},
    "sgd_decay": {"name": "SGD", "learningRate": 0.1, "weightDecay": 0.01},
    "sgd_momentum": {"name": "SGD", "learningRate": 0.01, "momentum": 0.9},
    "sgd_dampening": {"name": "SGD", "learningRate": 0.01, "momentum": 0.9, "dampening": 0.3,
                      "weightDecay": 0.01},
    "sgd_nesterov": {"name": "SGD", "learningRate": 0.01, "momentum": 0.9, "nesterov": True,
                     "weightDecay": 0.01},
    "adam": {"name": "Adam", "learningRate": 0.01},
    "adam_decay": {"name": "Adam", "learningRate": 0.01, "weightDecay": 0.1, "beta1": 0.8,
                   "beta2": 0.99, "epsilon": 1e-4},
    "adam_amsgrad": {"name": "Adam", "learningRate": 0.01, "amsgrad": True},
    "adamw": {"name": "AdamW", "learningRate": 0.01, "weightDecay": 0.1},
    "adamw_amsgrad": {"name": "AdamW", "learningRate": 0.01, "weightDecay": 0.1, "amsgrad": True},
    "step": {"name": "SGD", "learningRate": 0.1,
             "schedule": {"name": "Step", "stepIterations": 30, "gamma": 0.5}},
    "cosine": {"name": "SGD", "learningRate": 0.1,
               "schedule": {"name": "Cosine", "minLearningRate": 0.001}},
    "warmup": {"name": "SGD", "learningRate": 0.1,
               "schedule": {"name": "Constant", "warmupIterations": 10}},
    "warmup_cosine": {"name": "Adam", "learningRate": 0.1,
                      "schedule": {"name": "Cosine", "minLearningRate": 0.0,
                                   "warmupIterations": 10}},
    "polynomial": {"name": "SGD", "learningRate": 0.1, "schedule": {"name": "Polynomial", "power": 2}},
    "warmup_polynomial": {"name": "SGD", "learningRate": 0.1,
                          "schedule": {"name": "Polynomial", "warmupIterations": 10}},
    "one_cycle": {"name": "SGD", "learningRate": 0.1, "momentum": 0.9, "schedule": {"name": "OneCycle"}},
    "one_cycle_rise": {"name": "Adam", "learningRate": 0.1,
                       "schedule": {"name": "OneCycle", "warmupIterations": 40}},
    "clip_value": {"name": "SGD", "learningRate": 0.1, "clipValue": 0.5},
    "clip_norm": {"name": "SGD", "learningRate": 0.1, "clipGlobalNorm": 1.0},
    "clip_both": {"name": "Adam", "learningRate": 0.1, "clipValue": 0.5, "clipGlobalNorm": 1.0},
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent
    for case, config in CASES.items():
        (folder / f"{case}.json").write_text(json.dumps(run(config), indent=1) + "\n")
