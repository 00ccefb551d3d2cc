# SPDX-License-Identifier: Apache-2.0
"""What README.md tells to type at a cluster, typed word for word: images, chart with MinIO, the
quickstart's job, its report; and the bits of the same plan on one machine.

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays; with
LAMBDADNN_IMAGES=kept the images are those in build/images. Needs root, scripts/cluster.sh build and
scripts/test_servers.sh build helm. Prints the session.
"""
import json
import os
import re
import shutil
import subprocess

import yaml

import network
import on_pods
import settings
from cluster_case import ROOT, ClusterCase

FETCHED = ROOT / "runs/digits"
# What a user fills in, and the one command that ends by the user's hand alone.
BLANKS = {"REGISTRY/minio": "dev.local/minio", "minio.image.tag=TAG": "minio.image.tag=1"}
WATCH = "kubectl get stj -w"
WATCHED = """kubectl get stj -w &
watch=$!
kubectl wait stj/digits --for=condition=Complete --timeout=420s
kill $watch"""
FORWARD = "port-forward"
FORWARDED = """
until curl --silent --fail --output /dev/null http://localhost:9001/minio/health/live; do sleep 0.2; done"""


def commands(readme, begin="## With a cluster", end="Without Knative"):
    """The lines of the blocks without a language between the section's title and that of the next way to go."""
    section = re.search(rf"^{begin}$(.*?)^{end}", readme, re.M | re.S).group(1)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.M | re.S)
    return "\n".join(text for language, text in blocks if not language).splitlines()


def script(lines, load):
    """As a user would run it: the images loaded as soon as they are built (`load`), until the watched
    job is complete, once the port is forwarded."""
    text = []
    for line in lines:
        for blank, value in BLANKS.items():
            line = line.replace(blank, value)
        if line.startswith("scripts/images.sh build"):
            if os.environ.get("LAMBDADNN_IMAGES") != "kept":
                text.append(line)
            line = load
        elif line.startswith(WATCH):
            line = WATCHED
        elif FORWARD in line:
            line += FORWARDED
        text.append(line)
    return "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + "\n".join(text)


class Typed(ClusterCase):
    EXAMPLE = "examples/quickstart/knative.yaml"

    def tearDown(self):
        self.kube.kubectl("delete", "stj", "digits", "--ignore-not-found", "--timeout=300s",
                          check=False)
        self.shell("helm uninstall lambdadnn-operator -n lambdadnn-system --wait --timeout 10m",
                   check=False)

    def shell(self, text, check=True):
        """What it prints, both ways; it runs among the cluster's clients, in the repository."""
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        for name in ("kubectl", "helm"):
            if not (tools / name).exists():
                (tools / name).symlink_to(settings.program(name))
        path = f"{self.folder}/usr/bin:{tools}:{os.environ['PATH']}"
        done = subprocess.run(
            [*self.cluster.network.prefix(network.LAB), "bash", "-eu", "-o", "pipefail"], cwd=ROOT,
            input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**self.kube.environment(), "PATH": path, "HELM_CACHE_HOME": str(self.folder)})
        print(done.stdout, flush=True)
        if check:
            self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def load(self):
        """The command that gives the nodes what was built, and the clients its programs."""
        minio = self.cluster.images.of_program("minio", settings.program("minio"))
        return (f"scripts/cluster.sh load-image {minio} "
                "build/images/{operator,worker,server}.tar\n"
                f"cp -a build/images/{{operator,worker,server}}/install/usr {self.folder}")

    def digest_of_its_plan(self):
        job = json.loads(self.kube.kubectl("get", "stj", "digits", "-o", "json").stdout)
        wanted = yaml.safe_load((ROOT / self.EXAMPLE).read_text())["spec"]
        report = on_pods.report_of_run(self.folder / "usr/bin/lambdadnn", "pinned",
                                       on_pods.pinned_to(job["status"]["plan"], wanted), self.folder)
        return report["model"]["digest"]


class Readme(Typed):
    def test_readme(self):
        if not FETCHED.exists():
            self.addCleanup(shutil.rmtree, FETCHED, ignore_errors=True)
        lines = commands((ROOT / "README.md").read_text())
        self.assertTrue(any(line.startswith(WATCH) for line in lines))
        session = self.shell(script(lines, self.load()))
        self.assertRegex(session, r"(?m)^ +predicted +actual +error$")
        report = json.loads((FETCHED / "report.json").read_text())
        self.assertTrue((FETCHED / "model.safetensors").exists())
        self.assertEqual(self.digest_of_its_plan(), report["model"]["digest"])
