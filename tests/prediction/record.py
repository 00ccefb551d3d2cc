#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what plans take on this machine, for tests/prediction/replay.py: model x data x functions x memory x
shards and layers, each with a profile of its own, three times; and configurations of model x data x functions x
memory, each with every way of exchange (transport x placement).

    tests/prediction/record.py [--bin build/release/bin] [--records tests/prediction/records] [--runs 3]
        [--only TEXT]

Nothing else may run meanwhile: a loop of fixed work is timed before and after each run, and a run beside which
it took longer than before all of them is marked as disturbed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import prediction_records

MODELS = {"logistic": {"name": "logistic"}, "mlp": {"name": "mlp", "parameters": {"hidden": [256]}},
          "cnn": {"name": "cnn"}}
SAMPLES = {"small": 3000, "large": 12000}
STORE, STORE_WORKERS, DIRECT, DIRECT_WORKERS = prediction_records.WAYS
# (model, data, epochs, functions, memory in MiB, shards, layers of servers, way of exchange)
PLANS = (
    ("cnn", "large", 6, 1, 512, 1, [1], STORE), ("cnn", "large", 6, 2, 512, 2, [1], DIRECT_WORKERS),
    ("cnn", "large", 6, 1, 1024, 1, [1], STORE_WORKERS), ("cnn", "large", 6, 3, 384, 1, [1], DIRECT),
    ("cnn", "large", 6, 4, 256, 1, [1, 2], STORE), ("cnn", "small", 12, 2, 256, 1, [1], DIRECT_WORKERS),
    ("mlp", "large", 12, 1, 256, 1, [1], DIRECT), ("mlp", "large", 12, 2, 512, 1, [1], STORE),
    ("mlp", "large", 12, 2, 512, 2, [1], DIRECT_WORKERS), ("mlp", "large", 12, 4, 256, 2, [1], STORE),
    ("mlp", "small", 24, 3, 256, 1, [1, 2], DIRECT), ("mlp", "small", 24, 1, 1024, 2, [1], STORE),
    ("logistic", "large", 12, 2, 256, 1, [1], STORE_WORKERS), ("logistic", "small", 30, 1, 512, 1, [1], STORE),
    ("logistic", "large", 12, 4, 256, 1, [1], DIRECT), ("cnn", "large", 6, 2, 768, 1, [1], STORE),
    ("cnn", "large", 6, 2, 320, 2, [1], DIRECT), ("cnn", "small", 12, 3, 384, 1, [1, 2], STORE_WORKERS),
    ("cnn", "small", 18, 1, 384, 1, [1], DIRECT_WORKERS), ("mlp", "large", 12, 3, 512, 3, [1], DIRECT_WORKERS),
    ("mlp", "large", 18, 2, 320, 4, [1], STORE), ("mlp", "small", 36, 2, 768, 1, [1], STORE_WORKERS),
    ("mlp", "small", 24, 4, 384, 4, [1], DIRECT_WORKERS), ("logistic", "small", 30, 3, 512, 1, [1], DIRECT),
)
# Each of these with every transport and placement; shards, layers and server memory as the planner chooses.
# (model, data, epochs, functions, memory in MiB)
CONFIGURATIONS = (
    ("cnn", "small", 12, 2, 256), ("cnn", "small", 12, 2, 512), ("cnn", "large", 6, 2, 768),
    ("cnn", "small", 12, 4, 256), ("mlp", "small", 24, 2, 256), ("mlp", "small", 24, 2, 512),
    ("mlp", "large", 12, 2, 768), ("mlp", "small", 24, 4, 256), ("mlp", "small", 24, 4, 384),
    ("logistic", "small", 30, 2, 256), ("logistic", "small", 30, 4, 384), ("logistic", "large", 12, 3, 512),
)
PROBE_STEPS = 3_000_000


def probe():
    """Seconds that a fixed loop takes."""
    begin, sum_of = time.monotonic(), 0
    for step in range(PROBE_STEPS):
        sum_of += step * step & 0xFF
    return time.monotonic() - begin


def quiet_probe():
    """What it takes on the machine at rest."""
    return min(probe() for _ in range(5))


def named_plan(plan):
    """Its name, its configuration, and what spec.aggregation is; `plan` as one of PLANS."""
    *configuration, shards, layers, way = plan
    name, _, aggregation = named_way(configuration, *way)
    aggregation |= {"shards": shards, "layers": [*layers, configuration[3]]}
    if aggregation["placement"] == "Dedicated":
        aggregation["serverMemory"] = "256Mi"
    return f"{name}-k{shards}-l{'-'.join(map(str, layers))}", configuration, aggregation


def named_way(configuration, transport, placement):
    """The same of one way to exchange, whose shards and layers are the planner's."""
    name = prediction_records.configuration_name(*configuration)
    return (prediction_records.name_of_way(name, transport, placement), configuration,
            {"transport": transport, "placement": placement})


def named_groups():
    """The same of all PLANS, each by itself, and of all CONFIGURATIONS, each with every way to exchange."""
    yield from ([named_plan(plan)] for plan in PLANS)
    for configuration in CONFIGURATIONS:
        yield [named_way(configuration, *way) for way in prediction_records.WAYS]


def job_of(configuration, aggregation):
    model, data, epochs, functions, memory = configuration
    return {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob", "metadata": {"name": "recorded"},
            "spec": {"model": {"builtin": MODELS[model]},
                     "dataset": {"renderedDigits": {"train": SAMPLES[data], "test": SAMPLES[data] // 6}},
                     "training": {"epochs": epochs, "globalBatchSize": 120, "seed": 1,
                                  "optimizer": {"name": "SGD", "learningRate": "0.05", "momentum": "0.9"}},
                     "objective": {"fixed": {"functions": functions, "memory": f"{memory}Mi"}},
                     "aggregation": aggregation,
                     "peerChannel": "TLS"}}


def run(options, job, folder, *more, environment=None):
    """The report and the platform of one run with these options more, profiled anew, with its store in memory;
    `environment` is added to ours."""
    job_file, out = folder / "job.json", folder / "run"
    job_file.write_text(json.dumps(job))
    with tempfile.TemporaryDirectory(prefix="lambdadnn-", dir="/dev/shm") as store:
        done = subprocess.run([options.bin / "lambdadnn", "run", job_file, "--out", out, "--store", f"file://{store}",
                               "--profile-again", *more], capture_output=True, text=True,
                              env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-2000:])
    return json.loads((out / "report.json").read_text()), json.loads((out / "platform.json").read_text())


def write(folder, name, job, platform, runs, **more):
    """A record."""
    text = json.dumps({"name": name, "heldOut": prediction_records.is_held_out(name), **more, "job": job,
                       "platform": platform, "runs": runs}, indent=1)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(text + "\n")


def record_once(options, name, job, quiet):
    """A run and its platform."""
    with tempfile.TemporaryDirectory(prefix="lambdadnn-record-") as folder:
        before = probe()
        report, platform = run(options, job, pathlib.Path(folder))
        done = prediction_records.run_of(report, [before, probe()], quiet)
    print(f"{name}: {done['seconds']:.1f} s{', disturbed' if done['disturbed'] else ''}", flush=True)
    return done, platform


def record(options, group, quiet):
    """All plans of a group in turns: they are compared, and the machine's speed changes within minutes."""
    jobs = {name: job_of(configuration, aggregation) for name, configuration, aggregation in group}
    runs, platforms = {name: [] for name in jobs}, {}
    for _ in range(options.runs):
        for name, job in jobs.items():
            done, platforms[name] = record_once(options, name, job, quiet)
            runs[name].append(done)
    for name, job in jobs.items():
        write(options.records, name, job, platforms[name], runs[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=prediction_records.ROOT / "build/release/bin")
    parser.add_argument("--records", type=pathlib.Path, default=prediction_records.RECORDS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="plans whose names hold this text")
    options = parser.parse_args()
    quiet = quiet_probe()
    failed = []
    for group in named_groups():
        wanted = [plan for plan in group if options.only in plan[0]]
        try:
            record(options, wanted, quiet)
        except RuntimeError as error:
            failed += [name for name, _, _ in wanted]
            print(f"{wanted[0][0]}: {error}", flush=True)
    if failed:
        sys.exit(f"error: not recorded: {', '.join(failed)}")


if __name__ == "__main__":
    main()
