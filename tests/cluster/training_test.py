#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs on pods of Knative: trained on the test cluster by a real operator, with the bits that the
same plan gives on one machine.

    training_test.py PRESET [unittest arguments]      e.g. release

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays.
The images are those of scripts/images.sh, of what is compiled in build/PRESET (the worker in
build/upstream); the operator and `lambdadnn run` are the same programs, so that both sides have one
LibTorch. Needs root, and once the parts of the cluster (scripts/cluster.sh build).
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
import settings  # noqa: E402
from cluster_case import BesideOperator  # noqa: E402

PRESET = "release"
TAG = "training-test"
JOBS = "/apis/lambdadnn.io/v1alpha1/namespaces/default/serverlesstrainingjobs"
SERVICES = "/apis/serving.knative.dev/v1/namespaces/default/services"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
PLATFORM = """
memory: {minMiB: 128, maxMiB: 1024, stepMiB: 64}
milliCpuPerGiB: 300
maxFunctions: 32
functionTimeoutSeconds: 300
prices:
  gibSecond: "0.0000166667"
"""


def spec(epochs):
    """A job with everything that pins its bits; its functions draw their own data."""
    return {
        "model": {"builtin": {"name": "mlp", "parameters": {"hidden": [128]}}},
        "dataset": {"renderedDigits": {"train": 1000, "test": 200, "seed": 1}},
        "training": {"epochs": epochs, "globalBatchSize": 60, "seed": 7,
                     "optimizer": {"name": "sgd", "learningRate": "0.05", "momentum": "0.9"}},
        "objective": {"fixed": {"functions": 4, "memory": "384Mi"}},
        "aggregation": {"shards": 2, "layers": [1, 2, 4], "serverMemory": "128Mi"},
        "profile": {"trainingSamples": 1000, "trainingBytes": 784000, "modelBytes": 407080,
                    "trainingRate": {"slope": "2", "intercept": "0"}},
        "checkpoint": {"intervalSeconds": 2, "keep": 2},
    }


class OnPods(BesideOperator):
    """A cluster, an operator beside it, and what tests ask of both."""
    PLATFORM = PLATFORM

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bin = cls.build_images()
        cls.script("load-image", *(str(ROOT / f"build/images/{name}.tar")
                                   for name in ("worker", "server")))
        cls.operator = cls.start_operator()
        cls.addClassCleanup(lambda: cls.stop(cls.operator))
        cls.digests = {}

    @classmethod
    def build_images(cls):
        """Builds them; the folder of all their programs, on this machine."""
        done = subprocess.run([ROOT / "scripts/images.sh", "build", "--preset", PRESET, "--tag", TAG],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        for name in ("operator", "worker", "server"):
            shutil.copytree(ROOT / f"build/images/{name}/install/usr", cls.folder / "usr",
                            symlinks=True, dirs_exist_ok=True)
        return cls.folder / "usr/bin"

    @classmethod
    def operator_flags(cls):
        """More of them, once the cluster is up."""
        return []

    @classmethod
    def start_operator(cls):
        return cls.run_operator(
            cls.bin / "lambdadnn-operator", "--worker-image", f"dev.local/lambdadnn-worker:{TAG}",
            "--server-image", f"dev.local/lambdadnn-server:{TAG}", *cls.operator_flags())

    @staticmethod
    def stop(process, number=signal.SIGTERM):
        process.send_signal(number)
        process.wait()

    def create(self, name, epochs, changes=None):
        return self.request("POST", JOBS, {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name},
            "spec": {**spec(epochs), **(changes or {}), "backend": "Knative", "objectStore": {
                "endpoint": f"http://{settings.S3_ADDRESS}", "bucket": self.BUCKET, "prefix": "jobs",
                "credentialsSecretRef": {"name": "store"}}}})

    def job(self, name):
        return self.kube.get(f"{JOBS}/{name}")

    def told(self):
        states = [(pod["metadata"]["name"], pod["status"]) for pod in self.pods()]
        return f"{super().told()}\n{json.dumps(states, indent=1)[:6000]}"

    def pods(self, name=None):
        selector = f"lambdadnn.io/job-name={name}" if name else "lambdadnn.io/job-uid"
        return self.kube.get(f"{PODS}?labelSelector={selector}")["items"]

    def running(self, name, iteration):
        def far_enough():
            job = self.job(name)
            self.fail_if_failed(job)
            return job.get("status", {}).get("progress", {}).get("iteration", 0) >= iteration
        self.wait(f"{name} at iteration {iteration}", far_enough)

    def fail_if_failed(self, job):
        for condition in job.get("status", {}).get("conditions", []):
            self.assertFalse(condition["type"] == "Failed" and condition["status"] == "True",
                             condition)

    def complete(self, name):
        def done():
            job = self.job(name)
            self.fail_if_failed(job)
            return any(each["type"] == "Complete" and each["status"] == "True"
                       for each in job.get("status", {}).get("conditions", [])) and job
        return self.wait(f"{name} complete", done)

    def digest_on_one_machine(self, epochs):
        """Of the same job run by `lambdadnn run` with a folder for a store."""
        if epochs not in self.digests:
            file = self.folder / f"local-{epochs}.json"
            file.write_text(json.dumps({
                "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
                "metadata": {"name": f"local-{epochs}"},
                "spec": {**spec(epochs), "backend": "Local"}}))
            out = self.folder / f"local-{epochs}"
            done = subprocess.run([self.bin / "lambdadnn", "run", file, "--out", out],
                                  capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            self.digests[epochs] = json.loads((out / "report.json").read_text())["model"]["digest"]
        return self.digests[epochs]

    def nothing_left(self):
        def clean():
            left = [each["metadata"]["name"] for each in self.kube.get(SERVICES)["items"]]
            left += [each["metadata"]["name"] for each in self.pods()]
            left += [each["metadata"]["name"] for each in self.kube.get(SECRETS)["items"]
                     if each["metadata"]["name"] != "store"]
            return not left
        self.wait("no Service, pod or Secret of a job", clean)


class Training(OnPods):
    def test_1_a_job_trains_on_pods_to_the_bits_of_one_machine(self):
        self.create("plain", 4)
        self.running("plain", 1)
        sizes = {}
        for pod in self.pods("plain"):
            container = next(each for each in pod["spec"]["containers"]
                             if each["name"] == "function")
            sizes.setdefault(pod["metadata"]["labels"]["lambdadnn.io/group"], []).append(
                container["resources"]["limits"]["memory"])
        self.assertEqual({"workers", "servers"}, set(sizes))
        self.assertEqual(["384Mi"] * 4, sizes["workers"])
        self.assertEqual({"128Mi"}, set(sizes["servers"]))
        self.assertEqual({"n1", "n2"}, {pod["spec"]["nodeName"] for pod in self.pods("plain")})
        job = self.complete("plain")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.nothing_left()

    def test_2_crashes_of_containers_and_pods_change_no_bit(self):
        self.create("chaos", 15)
        self.running("chaos", 20)
        for kind in ("lambdadnn-worker", "lambdadnn-server"):
            victim = next(pid for pid in self.cluster.processes.groups.processes()
                          if self.program(pid) == kind)
            os.kill(victim, signal.SIGKILL)
            reached = self.job("chaos")["status"]["progress"]["iteration"]
            self.running("chaos", reached + 20)
        pod = self.pods("chaos")[0]["metadata"]
        self.kube.request("DELETE", f"{PODS}/{pod['name']}")
        job = self.complete("chaos")
        self.assertEqual(self.digest_on_one_machine(15), job["status"]["model"]["digest"])
        self.nothing_left()

    @staticmethod
    def program(pid):
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
            return os.path.basename(command.decode())
        except OSError:
            return ""

    def test_3_the_next_operator_joins_what_runs(self):
        self.create("handed-over", 15)
        self.running("handed-over", 20)
        before = {pod["metadata"]["uid"] for pod in self.pods("handed-over")}
        self.stop(self.operator, signal.SIGKILL)
        type(self).operator = self.start_operator()
        reached = self.job("handed-over")["status"]["progress"]["iteration"]
        self.running("handed-over", reached + 20)
        self.assertEqual(before, {pod["metadata"]["uid"] for pod in self.pods("handed-over")})
        job = self.complete("handed-over")
        self.assertEqual(self.digest_on_one_machine(15), job["status"]["model"]["digest"])

    def test_4_a_deleted_job_leaves_nothing(self):
        self.create("short-lived", 400)
        self.running("short-lived", 5)
        self.kube.request("DELETE", f"{JOBS}/short-lived")
        self.wait("the job is gone", lambda: self.job("short-lived") is None)
        self.nothing_left()


if __name__ == "__main__":
    PRESET = sys.argv.pop(1)
    unittest.main(verbosity=2)
