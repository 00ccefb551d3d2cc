# SPDX-License-Identifier: Apache-2.0
"""What tests of the chart on a whole cluster begin with: a cluster of their own, or the one that
LAMBDADNN_CLUSTER_DIR names, which stays, with network policies enforced; the images in its nodes; and
what they ask of helm.

The images are made by scripts/images.sh of what is compiled in build/PRESET (--preset), or are those in a
folder that is named instead, as that script leaves build/images. Needs root, scripts/cluster.sh build
and scripts/test_servers.sh build helm.
"""
import json
import pathlib
import subprocess
import sys
import tarfile
import time

import yaml

import network
import network_policies
import settings
from chart_support import CHART, NAME, NAMESPACE, RELEASE, program
from cluster_case import IMAGES, ClusterCase, images_of, jobs_in
from options import OPTIONS

BUCKET = "training"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/serverlesstrainingjobs.lambdadnn.io"
STORE = {"uri": f"s3://{BUCKET}", "endpoint": f"http://{settings.S3_ADDRESS}", "existingSecret": "s3"}
# However busy the machine is, jobs quiesce at a checkpoint.
PATIENT = {"waitSeconds": 600}


def tag_of(archive, name):
    """The tag of the image `name` in an archive of scripts/images.sh."""
    with tarfile.open(archive) as files:
        index = json.load(files.extractfile("./index.json"))
    named = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
    assert named.startswith(f"dev.local/lambdadnn-{name}:"), named
    return named.rsplit(":", 1)[1]


class ChartCase(ClusterCase):
    WAIT_SECONDS = 600
    SPACE = "people"
    PLATFORM = {}  # the chart's

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Functions do with what the chart's values admit.
        enforcer = network_policies.Enforcer(cls.cluster)
        cls.addClassCleanup(enforcer.stop)
        enforcer.start()
        cls.images = (pathlib.Path(OPTIONS.preset).resolve() if "/" in OPTIONS.preset
                      else images_of(OPTIONS.preset))
        cls.tags = cls.load(cls.images)
        cls.make_bucket(BUCKET)
        for space in (NAMESPACE, cls.SPACE):
            cls.kube.apply_objects([{"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": space,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}])
        cls.make_store_secret("s3", NAMESPACE)

    @classmethod
    def load(cls, folder):
        """Gives the nodes the images in a folder: the tag of each."""
        archives = {name: folder / f"{name}.tar" for name in IMAGES}
        cls.script("load-image", *map(str, archives.values()))
        return {name: tag_of(archive, name) for name, archive in archives.items()}

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

    def _release(self, verb, chart, tags, values):
        tags = tags or self.tags
        images = {"image": {"tag": tags["operator"]},
                  **{f"{name}Image": {"tag": tags[name]} for name in ("worker", "server")}}
        self.helm(verb, RELEASE, chart, "--wait", "--timeout", "10m",
                  values={"platform": self.PLATFORM, **images, **values})

    def install(self, chart=CHART, tags=None, **values):
        self._release("install", chart, tags, values)

    def upgrade(self, chart=CHART, tags=None, **values):
        self._release("upgrade", chart, tags, values)

    def rollback(self):
        """To what was installed first."""
        self.helm("rollback", RELEASE, "1", "--wait", "--timeout", "10m")

    def uninstall(self):
        self.helm("uninstall", RELEASE, "--wait", "--timeout", "15m")
        self.wait("no object of the release", lambda: not self.kube.get(
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")["items"] and not self.kube.get(
                f"/api/v1/namespaces/{NAMESPACE}/pods")["items"])

    def delete_space(self):
        """The namespace of the jobs, with all that is in it."""
        self.kube.kubectl("delete", "namespace", self.SPACE, "--timeout=900s")
        self.assertIsNone(self.kube.get(f"/api/v1/namespaces/{self.SPACE}"))

    def start(self, name, spec):
        self.request("POST", jobs_in(self.SPACE), {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name}, "spec": spec})

    def suspend(self, name, suspended):
        self.request("PATCH", f"{jobs_in(self.SPACE)}/{name}", {"spec": {"suspend": suspended}})

    def iteration(self, name):
        return self.job(name)["status"]["progress"]["iteration"]

    def goes_on(self, name):
        """Until it has done 20 iterations more; the job then."""
        return self.running(name, self.iteration(name) + 20)

    def pods(self):
        """Of all jobs."""
        return self.kube.get(
            f"/api/v1/namespaces/{self.SPACE}/pods?labelSelector=lambdadnn.io/job-uid")["items"]

    def functions(self):
        """{uid of a pod: how often containers of it were started again}."""
        return {pod["metadata"]["uid"]: sum(each["restartCount"]
                                            for each in pod["status"].get("containerStatuses", []))
                for pod in self.pods()}

    def nothing_runs(self):
        """Of any job."""
        services = f"/apis/serving.knative.dev/v1/namespaces/{self.SPACE}/services"
        self.wait("no Service and no function is left", lambda: not self.kube.get(
            services)["items"] and not self.pods())
