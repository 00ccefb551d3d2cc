# SPDX-License-Identifier: Apache-2.0
"""What tests of jobs on pods of Knative begin with: the images, an operator beside the cluster, and
what they ask of both.

The images are those of scripts/images.sh, of what is compiled in build/PRESET (the worker in
build/upstream); the operator and `lambdadnn run` are the same programs, so that both sides have one
LibTorch. With LAMBDADNN_IMAGES=kept the images are those that are in build/images. Needs root, and once the parts of the cluster (scripts/cluster.sh build).
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

import settings
from cluster_case import IMAGES, ROOT, BesideOperator, build_images, jobs_in

TAG = "training-test"
JOBS = jobs_in("default")
SERVICES = "/apis/serving.knative.dev/v1/namespaces/default/services"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
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


def programs_of(images, folder):
    """The folder of all programs of the images in `images` together, below `folder`."""
    for name in IMAGES:
        shutil.copytree(images / name / "install/usr", folder / "usr", symlinks=True, dirs_exist_ok=True)
    return folder / "usr/bin"


def digest_on_one_machine(programs, out, epochs):
    """Of the job that pins its bits, run by `lambdadnn run` with the folder `out` for a store."""
    file = out.with_suffix(".json")
    file.write_text(json.dumps({
        "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
        "metadata": {"name": out.name}, "spec": {**spec(epochs), "backend": "Local"}}))
    done = subprocess.run([programs / "lambdadnn", "run", file, "--out", out],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((out / "report.json").read_text())["model"]["digest"]


class OnPods(BesideOperator):
    """A cluster, an operator beside it, and what tests ask of both."""
    PLATFORM = PLATFORM
    preset = "release"

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
        if os.environ.get("LAMBDADNN_IMAGES") != "kept":
            build_images("--preset", cls.preset, "--tag", TAG)
        return programs_of(ROOT / "build/images", cls.folder)

    @classmethod
    def operator_flags(cls):
        """More of them, once the cluster is up."""
        return []

    @classmethod
    def start_operator(cls, *flags):
        return cls.run_operator(
            cls.bin / "lambdadnn-operator", "--worker-image", f"dev.local/lambdadnn-worker:{TAG}",
            "--server-image", f"dev.local/lambdadnn-server:{TAG}", *cls.operator_flags(), *flags)

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

    def remove(self, name):
        self.kube.request("DELETE", f"{JOBS}/{name}")
        self.wait(f"{name} is gone", lambda: self.job(name) is None)

    def told(self):
        states = [(pod["metadata"]["name"], pod["status"]) for pod in self.pods()]
        return f"{super().told()}\n{json.dumps(states, indent=1)[:6000]}"

    def pods(self, name=None):
        selector = f"lambdadnn.io/job-name={name}" if name else "lambdadnn.io/job-uid"
        return self.kube.get(f"{PODS}?labelSelector={selector}")["items"]

    def processes_of(self, pod_uid):
        """Ids of the processes in a pod."""
        for pid in self.cluster.processes.groups.processes():
            try:
                if f"pod{pod_uid}" in pathlib.Path(f"/proc/{pid}/cgroup").read_text():
                    yield pid
            except OSError:
                pass  # has ended meanwhile

    def digest_on_one_machine(self, epochs):
        if epochs not in self.digests:
            self.digests[epochs] = digest_on_one_machine(self.bin, self.folder / f"local-{epochs}", epochs)
        return self.digests[epochs]

    def objects(self, name):
        """Keys of what the store holds of a job, from its prefix on."""
        root = self.config.run / "objects" / self.BUCKET / "jobs/default" / (
            self.job(name)["metadata"]["uid"])
        # MinIO keeps an object as a folder with this file in it.
        return sorted(str(file.parent.relative_to(root)) for file in root.rglob("xl.meta"))

    def nothing_left(self, name=None):
        """Of any job in the cluster; of this one that has ended, nothing but results in the store."""
        def left():
            names = [each["metadata"]["name"] for path in (SERVICES, POLICIES, SECRETS, ACCOUNTS)
                     for each in self.kube.get(path)["items"]]
            names += [each["metadata"]["name"] for each in self.pods()]
            if name:
                names += [key for key in self.objects(name) if not key.startswith("results/")]
            return [each for each in names if each not in ("store", "default")]
        self.wait("no Service, pod, Secret, account, policy or object of a job",
                  lambda: not left())


def main():
    OnPods.preset = sys.argv.pop(1)
    unittest.main(verbosity=2, warnings="ignore")
