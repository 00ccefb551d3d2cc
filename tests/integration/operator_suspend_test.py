# SPDX-License-Identifier: Apache-2.0
"""A job that is suspended and resumed again and again, and one whose objective changes while it
runs, under lambdadnn-operator at a real kube-apiserver."""
import json
import unittest

from operator_support import Cluster
from options import OPTIONS

EPOCHS = {"epochs": 40}  # of 17 iterations


class OperatorSuspend(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.host = cls.cluster.start_host()
        slow = cls.cluster.bench.platform(milliCpuPerGiB=400)
        cls.operator = cls.cluster.start_operator(cls.host, "--platform", slow)

    def iteration(self, name):
        return self.cluster.get(name).get("status", {}).get("progress", {}).get("iteration", 0)

    def wait_beyond(self, name, iteration):
        self.cluster.wait_for(f"an iteration beyond {iteration}",
                              lambda: self.iteration(name) > iteration, 120)

    def report(self, job):
        path = self.cluster.folder / "store" / next(
            key for key in self.cluster.store_keys(job) if key.endswith("/results/report.json"))
        return json.loads(path.read_text())

    def test_suspending_again_and_again_changes_no_bit(self):
        cluster = self.cluster
        path = cluster.manifest("often", training=EPOCHS)
        reference = cluster.bench.run(job=path).digest()
        cluster.create_job(path)
        done = 0
        for _ in range(OPTIONS.cycles):
            self.wait_beyond("often", done)
            cluster.patch_job("often", {"spec": {"suspend": True}})
            job = cluster.wait_for("suspended", lambda: cluster.condition(
                cluster.get("often"), "Suspended") and cluster.get("often"))
            # Everything is released, and no work is lost.
            cluster.wait_for("no function", lambda: cluster.functions() == {})
            self.assertEqual(job["status"]["phase"], "Suspended")
            self.assertGreaterEqual(job["status"]["progress"]["iteration"], done)
            done = job["status"]["progress"]["iteration"]
            cluster.patch_job("often", {"spec": {"suspend": False}})
        job = cluster.wait_complete("often", seconds=240)
        self.assertEqual(job["status"]["model"]["digest"], reference)
        self.assertEqual(job["status"]["usage"]["restarts"], 0, "a suspension is no restart")
        report = self.report(job)
        self.assertEqual([plan["revision"] for plan in report["plans"]], [1])
        print(f"\n{OPTIONS.cycles} suspensions, {job['status']['usage']['slices']} slices, "
              f"{job['status']['usage']['coldStarts']} cold starts", flush=True)

    def test_an_objective_that_changes_while_the_job_runs_is_planned_for(self):
        cluster = self.cluster
        cluster.create_job(cluster.manifest("hurry", training=EPOCHS))
        self.wait_beyond("hurry", 20)
        cluster.patch_job("hurry", {"spec": {"objective": {"fixed": {"memory": "512Mi"}}}})
        job = cluster.wait_complete("hurry", seconds=240)
        self.assertEqual(job["status"]["plan"]["revision"], 2)
        self.assertEqual(job["status"]["plan"]["memory"], "512Mi")
        report = self.report(job)
        self.assertEqual([plan["memory"] for plan in report["plans"]], ["384Mi", "512Mi"])
        self.assertEqual(sum(plan["iterations"] for plan in report["plans"]),
                         job["status"]["progress"]["iterations"])
        cost = sum(plan["actual"]["cost"] for plan in report["plans"])
        self.assertAlmostEqual(cost, report["actual"]["cost"], delta=1e-9)
        # The plans' times and what was before the first one.
        seconds = sum(plan["actual"]["seconds"] for plan in report["plans"])
        self.assertAlmostEqual(report["plans"][0]["atSeconds"] + seconds,
                               report["actual"]["seconds"], delta=0.05)
        # The bits do not depend on the memory.
        same = cluster.bench.run(job=cluster.manifest("same", training=EPOCHS)).digest()
        self.assertEqual(job["status"]["model"]["digest"], same)
