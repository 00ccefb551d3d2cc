# SPDX-License-Identifier: Apache-2.0
"""Jobs of a cluster by kubectl lambdadnn alone, with a real operator and real functions: submitted
and waited for, watched, suspended and resumed, their logs read, their results fetched; and how they
wait for capacity."""
import datetime
import json
import os
import subprocess
import unittest

from operator_support import Cluster
from options import OPTIONS


class People(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.host = cls.cluster.start_host()
        cls.operator = cls.cluster.start_operator(cls.host)

    def environment(self):
        return {**os.environ, "KUBECONFIG": str(self.cluster.plane.kubeconfig),
                "HOME": str(self.cluster.folder), "LAMBDADNN_HOST_SOCKET": str(self.host.socket)}

    def begin(self, *words):
        return subprocess.Popen(
            [self.cluster.programs / "kubectl-lambdadnn", *map(str, words)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment(),
            cwd=self.cluster.folder)

    def command(self, *words, code=0):
        process = self.begin(*words)
        output, _ = process.communicate(timeout=180)
        self.assertEqual(process.returncode, code, output)
        return output

    def test_from_submit_to_the_model(self):
        path = self.cluster.manifest("digits", training={"epochs": 24})
        waiting = self.begin("submit", "-f", path, "--wait")
        self.cluster.wait_for("iterations", lambda: (self.cluster.get("digits") or {}).get(
            "status", {}).get("progress", {}).get("iteration", 0) > 0)
        following = self.begin("logs", "digits", "-f")
        self.assertIn("suspended", self.command("suspend", "digits"))
        self.cluster.wait_for("its end", lambda: self.cluster.condition(
            self.cluster.get("digits"), "Suspended"))
        self.assertIn("digits (namespace default): Suspended", self.command("status", "digits"))
        self.assertIn("resumed", self.command("resume", "digits"))

        output, _ = waiting.communicate(timeout=180)
        self.assertEqual(waiting.returncode, 0, output)
        for part in ("digits created", "Planned: ", "JobSuspended: ", "TrainingFinished: "):
            self.assertIn(part, output)
        logs, _ = following.communicate(timeout=60)
        self.assertEqual(following.returncode, 0, logs)
        self.assertIn("[worker-0] ", logs)

        told = self.command("report", "digits", "--out", self.cluster.folder / "fetched")
        self.assertIn("predicted", told)
        report = json.loads((self.cluster.folder / "fetched/report.json").read_text())
        job = self.cluster.get("digits")
        self.assertEqual(report["model"]["digest"], job["status"]["model"]["digest"])
        self.assertTrue((self.cluster.folder / "fetched/model.safetensors").stat().st_size > 0)
        self.assertIn("TrainingFinished", self.command("events", "digits"))
        self.assertIn("has reconciled every job", self.command("doctor"))
        metrics = {m["name"]: m["value"] for m in job["status"]["progress"]["metrics"]}
        self.assertEqual(metrics["loss"], job["status"]["progress"]["loss"])
        self.assertIn("deleted", self.command("delete", "digits"))
        self.assertIsNone(self.cluster.get("digits"))

    def test_what_cannot_be_is_said_with_the_exit_code_of_run(self):
        path = self.cluster.manifest("hopeless", objective={"deadlineSeconds": 1, "fixed": None})
        job = json.loads(path.read_text())
        job["spec"]["objective"] = {"deadlineSeconds": 1}
        path.write_text(json.dumps(job))
        self.assertIn("Infeasible", self.command("submit", "-f", path, "-w", code=3))
        self.command("delete", "hopeless")


class Capacity(unittest.TestCase):
    def test_with_capacity_for_one_and_a_half_jobs_wait_in_order_and_all_complete(self):
        cluster = Cluster(OPTIONS.bin)
        self.addCleanup(cluster.close)
        one = 3 * 384 + 3 * 128  # MiB of the workers and servers of jobs/digits.yaml
        host = cluster.start_host("host", "--memory", str(one * 3 // 2))
        cluster.start_operator(host)
        # The third is the smallest, and would fit beside the first; but what it takes is not spare when the
        # second can start, which is the largest.
        names = ("left", "right", "small")
        cluster.create_job(cluster.manifest("left", training={"epochs": 4}))
        cluster.create_job(cluster.manifest(
            "right", training={"epochs": 4}, objective={"fixed": {"functions": 3, "memory": "512Mi"}}))
        cluster.create_job(cluster.manifest(
            "small", training={"epochs": 4},
            objective={"fixed": {"functions": 1, "memory": "384Mi"}},
            aggregation={"shards": 1, "layers": [1, 1], "serverMemory": "128Mi"}))
        most = 0
        waited = {}  # what each said of its wait

        def all_complete():
            nonlocal most
            most = max(most, len(cluster.functions()))
            jobs = [cluster.get(name) for name in names]
            for name, job in zip(names, jobs, strict=True):
                for condition in job.get("status", {}).get("conditions", []):
                    if condition["reason"] == "WaitingForCapacity":
                        waited.setdefault(name, []).append(condition["message"])
            return all(cluster.condition(job, "Complete") for job in jobs)
        cluster.wait_for("all jobs", all_complete, seconds=200, every=0.05)
        started = {name: datetime.datetime.fromisoformat(cluster.get(name)["status"]["startTime"])
                   for name in names}
        left_ended = datetime.datetime.fromisoformat(cluster.get("left")["status"]["completionTime"])
        self.assertGreater(started["right"], left_ended - datetime.timedelta(seconds=1))
        self.assertGreater(started["small"], started["right"])
        self.assertEqual(set(waited), {"right", "small"})
        self.assertIn("place 1 in the queue: the plan needs 1920 MiB", " ".join(waited["right"]))
        self.assertIn("right is next", " ".join(waited["small"]))
        # None was asked for in vain: then the message is the host's refusal.
        for messages in waited.values():
            self.assertTrue(all("in the queue" in message for message in messages), messages)
        # Never the functions of two large ones.
        self.assertGreaterEqual(most, 3 + 3)
        self.assertLess(most, 2 * (3 + 3))
        self.assertEqual(cluster.functions(), {})
