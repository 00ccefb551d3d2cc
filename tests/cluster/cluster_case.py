# SPDX-License-Identifier: Apache-2.0
"""What tests on a whole cluster begin with: a cluster of their own, or the one that
LAMBDADNN_CLUSTER_DIR names, which stays. Needs root, and once the parts of the cluster
(scripts/cluster.sh build)."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import boto3

import cluster as whole
import job_crd
import network
import settings
from cluster_api import condition

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = "LAMBDADNN_CLUSTER_DIR"
IMAGES = ("operator", "worker", "server")


def jobs_in(namespace):
    return f"/apis/lambdadnn.io/v1alpha1/namespaces/{namespace}/serverlesstrainingjobs"


def build_images(*options, root=ROOT):
    """By the scripts/images.sh of a checkout; the folder of their archives."""
    done = subprocess.run([root / "scripts/images.sh", "build", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "build/images"


def images_of(preset):
    """The same of this tree; with LAMBDADNN_IMAGES=kept those that are there."""
    if os.environ.get("LAMBDADNN_IMAGES") == "kept":
        return ROOT / "build/images"
    return build_images("--preset", preset)


class ClusterCase(unittest.TestCase):
    WAIT_SECONDS = 300
    SPACE = "default"  # the namespace of its jobs

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ldnn-test-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        if not os.environ.get(KEPT):
            os.environ[KEPT] = str(cls.folder / "run")
            cls.addClassCleanup(cls.script, "down")
        cls.config = settings.Settings()
        cls.cluster = whole.Cluster(cls.config)
        cls.kube = cls.cluster.kubernetes
        # Looking takes less than `up` on one that is.
        if not cls.cluster.is_well():
            cls.script("up")

    @classmethod
    def script(cls, *words):
        done = subprocess.run([ROOT / "scripts/cluster.sh", *words], capture_output=True, text=True)
        assert done.returncode == 0, f"cluster.sh {words}:\n{done.stdout}{done.stderr}"

    @classmethod
    def make_bucket(cls, name):
        """In the cluster's MinIO, which takes a folder for one."""
        (cls.config.run / "objects" / name).mkdir(exist_ok=True)

    def put(self, bucket, key, body):
        """An object there."""
        self.cluster.network.call(network.LAB, lambda: boto3.client(
            "s3", endpoint_url=f"http://{settings.S3_ADDRESS}", region_name="us-east-1",
            aws_access_key_id=settings.S3_USER, aws_secret_access_key=settings.S3_PASSWORD).put_object(
                Bucket=bucket, Key=key, Body=body))

    @classmethod
    def make_store_secret(cls, name, namespace="default", credentials=None):
        """Of the cluster's MinIO unless told."""
        cls.kube.apply_objects([{
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "stringData": credentials or {"accessKeyId": settings.S3_USER,
                                          "secretAccessKey": settings.S3_PASSWORD}}])

    @classmethod
    def request(cls, method, path, body):
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        status, answer = cls.kube.request(method, path, body, content)
        assert status < 300, answer
        return answer

    def told(self):
        """What helps to see why something was waited for in vain."""
        return ""

    def wait(self, what, check, seconds=None, every=0.2):
        seconds = seconds or self.WAIT_SECONDS
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = check()
            if value:
                return value
            time.sleep(every)
        self.fail(f"{what}: not within {seconds} s\n{self.told()}")

    def job(self, name):
        return self.kube.get(f"{jobs_in(self.SPACE)}/{name}")

    def fail_if_failed(self, job):
        self.assertNotEqual("True", condition(job, "Failed"), job.get("status"))

    def fail_if_ended(self, job):
        self.assertNotEqual("True", condition(job, "Complete"), "the job was too short")

    def running(self, name, iteration):
        """Until it has done so many iterations; the job then."""
        def far_enough():
            job = self.job(name)
            self.fail_if_failed(job)
            if job.get("status", {}).get("progress", {}).get("iteration", 0) >= iteration:
                return job
            self.fail_if_ended(job)
            return None
        return self.wait(f"{name} at iteration {iteration}", far_enough)

    def complete(self, name):
        """Until it is; the job then."""
        def done():
            job = self.job(name)
            self.fail_if_failed(job)
            return job if condition(job, "Complete") == "True" else None
        return self.wait(f"{name} complete", done)


class BesideOperator(ClusterCase):
    """With the job's kind, a bucket and its Secret `store`, and an operator of the tests' own among
    the clients."""
    BUCKET = "training"
    BACKEND = "Knative"
    PLATFORM = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_bucket(cls.BUCKET)
        job_crd.install(lambda *words: cls.kube.kubectl(*words, check=False))
        cls.make_store_secret("store")
        (cls.folder / "platform.yaml").write_text(cls.PLATFORM)

    @classmethod
    def operators_kubeconfig(cls):
        return cls.config.kubeconfig()

    @classmethod
    def run_operator(cls, program, *flags):
        """It looks up names as a pod would, and ends with the tests, also when these are interrupted."""
        names = cls.folder / "resolv.conf"
        names.write_text(f"nameserver {settings.DNS_IP}\noptions ndots:5\n"
                         "search default.svc.cluster.local svc.cluster.local cluster.local\n")
        with open(cls.folder / "operator.log", "a") as log:
            return subprocess.Popen(
                [*cls.cluster.network.prefix(network.LAB), "setpriv", "--pdeathsig", "KILL",
                 "unshare", "--mount", "sh", "-c",
                 'mount --bind "$0" /etc/resolv.conf && exec "$@"', names, program, "--kubeconfig",
                 cls.operators_kubeconfig(), "--backend", cls.BACKEND, "--platform",
                 cls.folder / "platform.yaml", "--metrics-address", "0", "--health-address", "0",
                 *flags],
                stdout=log, stderr=log, env={**os.environ, "NO_PROXY": "*", "no_proxy": "*"})

    def told(self):
        said = [(job["metadata"]["name"], job.get("status", {}).get("conditions"))
                for job in self.kube.get(jobs_in(self.SPACE))["items"]]
        return f"{json.dumps(said, indent=1)[:6000]}\n{(self.folder / 'operator.log').read_text()[-4000:]}"
