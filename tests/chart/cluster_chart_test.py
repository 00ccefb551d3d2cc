#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart on a whole cluster: installed, trained with, upgraded and rolled back under a running
job, uninstalled under one, installed again.

    cluster_chart_test.py PRESET|FOLDER [unittest arguments]

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays. The images are
made by scripts/images.sh of what is compiled in build/PRESET, or are the archives in FOLDER. Needs
root, scripts/cluster.sh build and scripts/test_servers.sh build helm.
"""
import json
import pathlib
import subprocess
import sys
import tarfile
import time
import unittest

import yaml

from chart_support import CHART, NAME, NAMESPACE, RELEASE, ROOT, program

sys.path.insert(0, str(ROOT / "tests/cluster"))
import network  # noqa: E402
import network_policies  # noqa: E402
import on_pods  # noqa: E402
import settings  # noqa: E402
from cluster_case import ClusterCase  # noqa: E402

WHERE = ""
IMAGES = ("operator", "worker", "server")
BUCKET = "training"
SPACE = "people"
JOBS = f"/apis/lambdadnn.io/v1alpha1/namespaces/{SPACE}/serverlesstrainingjobs"
SERVICES = f"/apis/serving.knative.dev/v1/namespaces/{SPACE}/services"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/serverlesstrainingjobs.lambdadnn.io"
# However busy the machine is, jobs come to rest at a checkpoint.
PATIENT = {"waitSeconds": 600}
# What two small nodes hold.
PLATFORM = {"memory": {"maxMiB": 384}, "milliCpuPerGiB": 200, "maxFunctions": 16}


class OnACluster(ClusterCase):
    """The tests go on from each other, in order."""
    WAIT_SECONDS = 600

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Functions do with what the chart's values admit.
        enforcer = network_policies.Enforcer(cls.cluster)
        cls.addClassCleanup(enforcer.stop)
        enforcer.start()
        minio = cls.cluster.images.of_program("minio", settings.program("minio"))
        folder = cls.images()
        cls.script("load-image", str(minio), *(str(folder / f"{name}.tar") for name in IMAGES))
        cls.make_bucket(BUCKET)
        for space in (NAMESPACE, SPACE):
            cls.kube.apply_objects([{"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": space,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}])
        cls.make_store_secret("s3", NAMESPACE)

    @classmethod
    def images(cls):
        """The folder of their archives; cls.tags are the values that name them."""
        folder = pathlib.Path(WHERE).resolve()
        if "/" not in WHERE:
            on_pods.build_images(WHERE)
            folder = ROOT / "build/images"
        cls.tags = {}
        for name, value in zip(IMAGES, ("image", "workerImage", "serverImage")):
            with tarfile.open(folder / f"{name}.tar") as archive:
                index = json.load(archive.extractfile("./index.json"))
            named = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
            assert named.startswith(f"dev.local/lambdadnn-{name}:"), named
            cls.tags[value] = {"tag": named.rsplit(":", 1)[1]}
        return folder

    def helm(self, *words, values=None):
        begin = time.monotonic()
        command = [*self.cluster.network.prefix(network.LAB), program("helm"), *map(str, words),
                   "--namespace", NAMESPACE]
        if values is not None:
            command += ["--values", "-"]
        done = subprocess.run(
            command, input=None if values is None else yaml.safe_dump(values), text=True,
            capture_output=True, env={**self.kube.environment(), "HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, f"helm {words}: {done.stdout}{done.stderr}\n"
                         + self.told())
        print(f"\nhelm {words[0]} took {time.monotonic() - begin:.1f} s", file=sys.stderr)
        return done.stdout

    def told(self):
        """What helps to see why."""
        text = ""
        for words in (("get", "pods", "-A", "-o", "wide"), ("-n", NAMESPACE, "get", "events"),
                      ("-n", NAMESPACE, "logs", "-l", f"app.kubernetes.io/name={NAME}", "--prefix",
                       "--tail", "40"), ("get", "stj", "-A", "-o", "wide")):
            done = self.kube.kubectl(*words, check=False)
            text += f"--- kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"[-6000:]
        return text

    def install(self, **values):
        self.helm("install", RELEASE, CHART, "--wait", "--timeout", "10m",
                  values={"platform": PLATFORM, **self.tags, **values})

    def uninstall(self):
        self.helm("uninstall", RELEASE, "--wait", "--timeout", "15m")
        self.wait("no object of the release", lambda: not self.kube.get(
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")["items"] and not self.kube.get(
                f"/api/v1/namespaces/{NAMESPACE}/pods")["items"])

    def job(self, name):
        return self.kube.get(f"{JOBS}/{name}")

    def start(self, name, epochs=None):
        """The quickstart's job, longer where `epochs` says so."""
        job = yaml.safe_load((ROOT / "examples/quickstart/knative.yaml").read_text())
        job["metadata"] = {"name": name}
        if epochs is not None:
            job["spec"]["training"]["epochs"] = epochs
            job["spec"]["objective"] = {"deadlineSeconds": 100000}
            job["spec"]["checkpoint"] = {"intervalSeconds": 2}
        status, answer = self.kube.request("POST", JOBS, job)
        self.assertLess(status, 300, answer)

    def reached(self, name, iteration):
        def far_enough():
            job = self.job(name)
            for each in job.get("status", {}).get("conditions", []):
                self.assertFalse(each["type"] == "Failed" and each["status"] == "True", each)
            done = job.get("status", {}).get("progress", {}).get("iteration", 0)
            return job if done >= iteration else None
        return self.wait(f"{name} at iteration {iteration}", far_enough)

    def complete(self, name):
        def done():
            conditions = self.job(name).get("status", {}).get("conditions", [])
            for each in conditions:
                self.assertFalse(each["type"] == "Failed" and each["status"] == "True", each)
            return any(each["type"] == "Complete" and each["status"] == "True"
                       for each in conditions)
        self.wait(f"{name} is complete", done)

    def functions(self):
        pods = self.kube.get(
            f"/api/v1/namespaces/{SPACE}/pods?labelSelector=lambdadnn.io/job-uid")["items"]
        return {pod["metadata"]["uid"] for pod in pods}

    def test_1_with_minio_a_newcomer_needs_two_commands(self):
        self.install(minio={"enabled": True,
                            "image": {"repository": "dev.local/minio", "tag": "1"}})
        self.assertIn("Succeeded", self.helm("test", RELEASE))
        self.kube.kubectl("apply", "-n", SPACE, "-f",
                          str(ROOT / "examples/quickstart/knative.yaml"))
        self.complete("digits")
        self.kube.kubectl("delete", "-n", SPACE, "stj/digits", "--timeout=300s")
        self.uninstall()

    def test_2_upgrade_and_rollback_do_not_disturb_a_job(self):
        store = {"uri": f"s3://{BUCKET}", "endpoint": f"http://{settings.S3_ADDRESS}",
                 "existingSecret": "s3"}
        self.install(objectStore=store, uninstall=PATIENT)
        self.start("long", epochs=2000)
        self.reached("long", 20)
        before = self.functions()
        self.helm("upgrade", RELEASE, CHART, "--wait", "--timeout", "10m",
                  values={"platform": PLATFORM, **self.tags, "objectStore": store, "uninstall": PATIENT,
                          "logging": {"level": "debug"}})
        at = self.job("long")["status"]["progress"]["iteration"]
        self.reached("long", at + 20)
        self.helm("rollback", RELEASE, "1", "--wait", "--timeout", "10m")
        at = self.job("long")["status"]["progress"]["iteration"]
        job = self.reached("long", at + 20)
        self.assertEqual(self.functions(), before)
        self.assertEqual(job["status"].get("usage", {}).get("restarts", 0), 0)

    def test_3_uninstalling_keeps_jobs_and_leaves_nothing_running(self):
        done = self.job("long")["status"]["progress"]["iteration"]
        self.uninstall()
        self.assertIsNotNone(self.kube.get(CRD))
        job = self.job("long")
        self.assertTrue(job["spec"]["suspend"])
        self.assertNotIn("finalizers", job["metadata"])
        self.assertEqual(job["status"]["phase"], "Suspended")
        self.assertGreaterEqual(job["status"]["progress"]["iteration"], done)
        self.assertFalse(self.kube.get(SERVICES)["items"])
        self.wait("no function is left", lambda: not self.functions())

    def test_4_the_next_installation_goes_on(self):
        self.install(objectStore={"uri": f"s3://{BUCKET}", "existingSecret": "s3",
                                  "endpoint": f"http://{settings.S3_ADDRESS}"})
        at = self.job("long")["status"]["progress"]["iteration"]
        self.assertGreater(at, 0)
        self.kube.kubectl("patch", "-n", SPACE, "stj/long", "--type=merge", "-p",
                          json.dumps({"spec": {"suspend": False}}))
        self.reached("long", at + 20)

    def test_5_a_namespace_whose_secrets_are_gone_first_can_be_deleted(self):
        """Under a running job. Kubernetes itself looks again after half of the pods' grace (300 s)."""
        self.kube.kubectl("delete", "secrets", "--all", "-n", SPACE)
        self.kube.kubectl("delete", "namespace", SPACE, "--timeout=900s")
        self.assertIsNone(self.kube.get(f"/api/v1/namespaces/{SPACE}"))
        self.uninstall()


if __name__ == "__main__":
    WHERE = sys.argv.pop(1)
    unittest.main(verbosity=2)
