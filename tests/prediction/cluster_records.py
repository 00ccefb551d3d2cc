# SPDX-License-Identifier: Apache-2.0
"""Records what plans take on pods of a real cluster, for tests/prediction/replay.py: each with a profile of its
own, three times, as tests/prediction/record.py does it on one machine.

    /usr/bin/python3 -m pytest tests/prediction/cluster_records.py --preset release -s [-k PLAN]

Nothing else may run meanwhile. LAMBDADNN_RECORDS names another folder than the records', LAMBDADNN_RECORD_RUNS
another number of runs. The rest is told by tests/cluster/on_pods.py.
"""
import json
import os
import pathlib

import prediction_records
import record
from on_pods import OnPods

FOLDER = pathlib.Path(os.environ.get("LAMBDADNN_RECORDS", prediction_records.RECORDS))
RUNS = int(os.environ.get("LAMBDADNN_RECORD_RUNS", "3"))
# As in record.py. Functions have 0.3 cores a GiB there.
PLANS = (
    ("mlp", "small", 16, 1, 384, 1, [1], record.DIRECT), ("mlp", "small", 16, 2, 384, 1, [1], record.STORE),
    ("mlp", "small", 16, 4, 256, 1, [1], record.DIRECT), ("mlp", "small", 16, 2, 640, 2, [1], record.STORE),
    ("mlp", "small", 16, 4, 384, 2, [1, 2], record.DIRECT), ("cnn", "small", 5, 2, 768, 1, [1], record.STORE),
    ("cnn", "small", 5, 3, 512, 1, [1], record.DIRECT), ("logistic", "small", 30, 2, 256, 1, [1], record.STORE),
    ("logistic", "small", 30, 4, 384, 1, [1], record.DIRECT),
)
# What the planner chooses where the spec leaves it the choice, of the same form as in record.py.
DIRECT_WORKERS = (
    ("mlp", "small", 16, 2, 384), ("mlp", "small", 16, 4, 384), ("cnn", "small", 6, 2, 512),
    ("cnn", "small", 6, 4, 256),
)


def named_plans():
    yield from map(record.named_plan, PLANS)
    for configuration in DIRECT_WORKERS:
        yield record.named_way(configuration, "Direct", "Workers")


class ClusterRecords(OnPods):
    WAIT_SECONDS = 900

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.quiet = record.quiet_probe()
        cls.measured = None

    def one_run(self, name, wanted):
        """What earlier runs measured lies below another prefix."""
        before = record.probe()
        self.create_of(name, wanted, prefix=name)
        self.complete(name)
        run = prediction_records.run_of(self.report(name), [before, record.probe()], self.quiet)
        self.remove(name)
        print(f"{name}: {run['seconds']:.1f} s{', disturbed' if run['disturbed'] else ''}", flush=True)
        return run


def recorded(index, name, configuration, aggregation):
    def test(self):
        # The store's speed is measured once, and said to the operator.
        type(self).measured = self.measured or self.measured_platform()
        job, runs = record.job_of(configuration, aggregation), []
        with self.other_operator(self.measured):
            for number in range(RUNS):
                # The name of the plan would be too long for one of objects.
                job_name = f"{prediction_records.configuration_name(*configuration)}-{index}-{number}".lower()
                runs.append(self.one_run(job_name, job["spec"]))
        record.write(FOLDER, f"cluster-{name}", job, json.loads(self.measured), runs,
                     place=prediction_records.CLUSTER)
    return test


for index, (each, *of_plan) in enumerate(named_plans()):
    setattr(ClusterRecords, f"test_cluster-{each}", recorded(index, each, *of_plan))
