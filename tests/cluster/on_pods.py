# SPDX-License-Identifier: Apache-2.0
"""What tests of jobs on pods of Knative begin with: the images, an operator beside the cluster, and
what they ask of both.

The images are those of scripts/images.sh, of what is compiled in build/PRESET (the worker in
build/upstream); the operator and `lambdadnn run` are the same programs, so that both sides have one
LibTorch. With LAMBDADNN_IMAGES=kept the images are those that are in build/images. Needs root, and
once the parts of the cluster (scripts/cluster.sh build).
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import yaml

import network
import settings
from cluster_case import IMAGES, ROOT, BesideOperator, images_of, jobs_in
from memory import mebibytes
from options import OPTIONS

# The project's version, which the chart's default is, too.
TAG = re.search(r"^project\(lambdadnn VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(),
                re.M).group(1)
JOBS = jobs_in("default")
SERVICES = "/apis/serving.knative.dev/v1/namespaces/default/services"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
PLATFORM = """
memory: {min: 128Mi, max: 1024Mi, step: 64Mi}
milliCpuPerGiB: 300
podStartCpuSeconds: 0.7
maxFunctions: 32
functionTimeoutSeconds: 300
prices:
  currency: USD
  gibSecond: "0.0000166667"
"""


def spec(epochs):
    """A job with everything that pins its bits; its functions draw their own data."""
    return {
        "model": {"builtin": {"name": "mlp", "parameters": {"hidden": [128]}}},
        "dataset": {"renderedDigits": {"train": 1000, "test": 200, "seed": 1}},
        "training": {"epochs": epochs, "globalBatchSize": 60, "seed": 7,
                     "optimizer": {"name": "SGD", "learningRate": "0.05", "momentum": "0.9"}},
        "objective": {"fixed": {"functions": 4, "memory": "384Mi"}},
        "aggregation": {"shards": 2, "layers": [1, 2, 4], "serverMemory": "128Mi"},
        "profile": {"trainingSamples": 1000, "trainingBytes": 784000, "modelBytes": 407080,
                    "trainingRate": {"slope": "2", "intercept": "0"}},
        "checkpoint": {"intervalSeconds": 2, "keep": 2},
    }


def pinned_to(plan, wanted):
    """The spec `wanted` with what trains to the same bits as this plan of a job. Memory changes no bit, and one machine
    has a range of its own."""
    memory = f"{max(mebibytes(plan['memory']), 512)}Mi"
    aggregation = {key: plan["aggregation"][key] for key in ("layers", "placement", "shards", "spread")}
    return {**wanted, "objective": {"fixed": {"functions": plan["functions"], "memory": memory}},
            "aggregation": aggregation | {key: plan[key] for key in ("serverMemory",) if key in plan}}


def programs_of(images, folder):
    """The folder of all programs of the images in `images` together, below `folder`."""
    def link(source, target):
        # LibTorch alone is half a gigabyte.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)  # on another file system
    for name in IMAGES:
        shutil.copytree(images / name / "install/usr", folder / "usr", symlinks=True,
                        copy_function=link, dirs_exist_ok=True)
    return folder / "usr/bin"


def report_of_run(program, name, wanted, folder, *options, prefix=(), environment=None):
    """Of `lambdadnn run` of a job with this spec, here; its folder is folder / name."""
    file = folder / f"{name}.json"
    file.write_text(json.dumps({
        "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
        "metadata": {"name": name}, "spec": {**wanted, "backend": "Local"}}))
    done = subprocess.run([*prefix, program, "run", file, "--out", folder / name, *options],
                          capture_output=True, text=True, env={**os.environ, **(environment or {})})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / name / "report.json").read_text())


class OnPods(BesideOperator):
    """A cluster, an operator beside it, and what tests ask of both."""
    PLATFORM = PLATFORM
    PODS = PODS  # where functions of jobs are
    KEPT = ()  # names of others there
    MADE = (SERVICES, POLICIES, SECRETS, ACCOUNTS)  # where an operator makes objects for jobs

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.images = images = images_of(OPTIONS.preset)
        cls.bin = programs_of(images, cls.folder)
        cls.script("load-image", *(str(images / f"{name}.tar") for name in ("worker", "server")))
        # Whatever jobs run there holds to the strictest of Kubernetes' standards for pods.
        cls.kube.kubectl("label", "--overwrite", "namespace", "default",
                         "pod-security.kubernetes.io/enforce=restricted")
        cls.operator = cls.start_operator()
        cls.addClassCleanup(lambda: cls.stop(cls.operator))

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

    @contextlib.contextmanager
    def other_operator(self, platform=None, flags=()):
        """Another one instead of the tests' usual one, which comes back at the end."""
        self.stop(self.operator)
        file = self.folder / "platform.yaml"
        usual = file.read_text()
        file.write_text(platform or usual)
        type(self).operator = self.start_operator(*flags)
        try:
            yield
        finally:
            self.stop(self.operator)
            file.write_text(usual)
            type(self).operator = self.start_operator()

    def create(self, name, epochs, changes=None, **where):
        """`changes` replace fields of spec(); a None leaves one out. The job goes with the test."""
        wanted = {**spec(epochs), **(changes or {})}
        return self.create_of(name, {field: value for field, value in wanted.items() if value is not None},
                              **where)

    def create_of(self, name, wanted, endpoint=f"http://{settings.S3_ADDRESS}", secret="store", prefix="jobs"):
        """A job with this spec, which goes with the test."""
        self.addCleanup(self.remove, name)
        return self.request("POST", JOBS, {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name},
            "spec": {**wanted, "backend": self.BACKEND, "objectStore": {
                "endpoint": endpoint, "bucket": self.BUCKET, "prefix": prefix,
                "credentialsSecretRef": {"name": secret}}}})

    def remove(self, name):
        self.kube.request("DELETE", f"{JOBS}/{name}")
        self.wait(f"{name} is gone", lambda: self.job(name) is None)

    def told(self):
        states = [(pod["metadata"]["name"], pod["status"]) for pod in self.pods()]
        return f"{super().told()}\n{json.dumps(states, indent=1)[:6000]}"

    def pods(self, name=None):
        selector = f"lambdadnn.io/job-name={name}" if name else "lambdadnn.io/job-uid"
        return self.kube.get(f"{self.PODS}?labelSelector={selector}")["items"]

    def digest_on_one_machine(self, epochs):
        """Kept with the cluster: other tests on it have the same jobs of the same images."""
        worker = (self.images / "worker.tar").stat()
        kept = self.config.run / f"digest-{epochs}-{worker.st_mtime_ns}"
        if not kept.exists():
            digest = self.run_here(f"local-{epochs}", spec(epochs))["model"]["digest"]
            kept.write_text(f"{json.dumps(spec(epochs))}\n{digest}")
        wanted, digest = kept.read_text().split("\n")
        self.assertEqual(json.dumps(spec(epochs)), wanted)
        return digest

    def run_here(self, name, wanted, *options, **how):
        return report_of_run(self.bin / "lambdadnn", name, wanted, self.folder, *options, **how)

    def run_in_lab(self, name, wanted, *options):
        """`lambdadnn run` among the cluster's clients, on its store."""
        return self.run_here(
            name, wanted, "--store", f"s3://{self.BUCKET}/here", *options,
            prefix=self.cluster.network.prefix(network.LAB),
            environment={"LAMBDADNN_S3_ENDPOINT": f"http://{settings.S3_ADDRESS}",
                         "LAMBDADNN_S3_ACCESS_KEY_ID": settings.S3_USER,
                         "LAMBDADNN_S3_SECRET_ACCESS_KEY": settings.S3_PASSWORD,
                         "NO_PROXY": "*", "no_proxy": "*"})

    def measured_platform(self):
        """The usual one with what it does not say: what the nodes offer, and how fast the store is, as
        `lambdadnn run` measures it."""
        probe = {**spec(1), "objective": {"fixed": {"functions": 1, "memory": "512Mi"}}}
        del probe["aggregation"]
        self.run_in_lab("probe", probe)
        measured = json.loads((self.folder / "probe/platform.json").read_text())
        nodes = self.cluster.count()
        milli_cpu, memory_mib = settings.node_share(nodes)
        platform = yaml.safe_load(self.PLATFORM)
        parts = ("store", "function", "parameterServer")
        platform.update({each: measured[each] for each in parts}, totalMilliCpu=nodes * milli_cpu,
                        totalMemory=f"{nodes * memory_mib}Mi",
                        measured=[each for each in measured["measured"] if each.startswith(parts)])
        return json.dumps(platform)

    def report(self, name):
        """What `lambdadnn report` fetches of a job that has ended."""
        done = subprocess.run(
            [*self.cluster.network.prefix(network.LAB), self.bin / "lambdadnn", "report", name,
             "--out", self.folder / f"report-{name}", "-o", "json"], capture_output=True, text=True,
            env={**self.kube.environment(), "AWS_ACCESS_KEY_ID": settings.S3_USER,
                 "AWS_SECRET_ACCESS_KEY": settings.S3_PASSWORD})
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def rung(self, report):
        """Every reader was told of nearly every object over connections between pods, and hardly ever
        asked in vain: what they ask for before they are connected counts, too."""
        peers, requests = report["peers"], report["requests"]
        read = requests["predictedPerIteration"]["gets"] * requests["iterations"]
        misses = report["store"]["misses"]
        print(f"doorbells: {peers}, of {read} reads; {misses} questions in vain, {misses / read:.3f} an object",
              flush=True)
        self.assertGreaterEqual(peers["peersConnected"], 2 * 10, "ten connections, counted on both sides")
        self.assertGreater(peers["doorbellsReceived"], 0.9 * read)
        self.assertLess(misses, 0.5 * read)

    def store_folder(self, uid):
        """Where the store has what belongs to the job. MinIO keeps an object as a folder with a file
        xl.meta in it."""
        return self.config.run / "objects" / self.BUCKET / "jobs/default" / uid

    def objects(self, name):
        """Keys of what the store holds of a job, from its prefix on."""
        root = self.store_folder(self.job(name)["metadata"]["uid"])
        return sorted(str(file.parent.relative_to(root)) for file in root.rglob("xl.meta"))

    def nothing_left(self, name=None):
        """Of any job in the cluster; of this one that has ended, nothing but results in the store."""
        def left():
            names = [each["metadata"]["name"] for path in self.MADE for each in self.kube.get(path)["items"]]
            names += [each["metadata"]["name"] for each in self.pods()]
            if name:
                names += [key for key in self.objects(name) if not key.startswith("results/")]
            return [each for each in names if each not in ("store", "default", *self.KEPT)]
        self.wait("no Service, pod, Secret, account, policy or object of a job",
                  lambda: not left())
