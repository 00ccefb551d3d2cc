# SPDX-License-Identifier: Apache-2.0
"""Is predicted time near actual time on a real cluster, and the deadline met? The quickstart for
Knative on the chart's own platform, from its creation to its end, so that the pods' starts count: the
median of five runs, on a machine that does nothing else.

The rest is told by tests/cluster/on_pods.py.
"""
import pathlib

import yaml

import on_pods
import prediction

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICKSTART = yaml.safe_load((ROOT / "examples/quickstart/knative.yaml").read_text())["spec"]
VALUES = yaml.safe_load((ROOT / "charts/lambdadnn-operator/values.yaml").read_text())
RUNS = 5


class ClusterTime(on_pods.OnPods):
    PLATFORM = yaml.safe_dump(VALUES["platform"])

    def test_the_quickstart(self):
        errors = []
        for number in range(RUNS):
            job = f"quickstart-{number}"
            self.create_of(job, QUICKSTART)
            self.complete(job)
            report = self.report(job)
            errors.append(prediction.error_of(report, job))
            self.assertLessEqual(report["actual"]["seconds"], QUICKSTART["objective"]["deadlineSeconds"])
            self.remove(job)
            self.nothing_left()
        prediction.check(self, "quickstart", errors)
