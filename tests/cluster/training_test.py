# SPDX-License-Identifier: Apache-2.0
"""Jobs on pods of Knative: trained on the test cluster by a real operator, with the bits that the
same plan gives on one machine.

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays. The rest is
told by on_pods.py; chaos_test.py disturbs such jobs.
"""

import shutil
import subprocess
import sys

import yaml

import cgroups
import network
import pod_processes
import settings
from cluster_api import condition
from cluster_case import ROOT
from faults import Faults
from on_pods import PODS, SECRETS, SERVICES, TAG, OnPods, pinned_to
from s3_servers import BUCKET, ROOT_SECRET, CountingProxy, RealServer

ACTIVATOR = ("-n", "knative-serving", "deployment/activator")
NETWORK_SERVICES = ("/apis/networking.internal.knative.dev/v1alpha1/namespaces/default/"
                    "serverlessservices")
STORE_PORT = int(settings.S3_ADDRESS.rsplit(":", 1)[1])
# Of the plan: {group: (memory in MiB, CPU in cores, by the platform's 300 mCPU a GiB)}.
SIZES = {"workers": (384, 0.113), "servers": (128, 0.038)}
SIDECAR_MIB = 64
GPU = "nvidia.com/gpu"
FEATURES = "/api/v1/namespaces/knative-serving/configmaps/config-features"
# Four workers and three servers.
JOB_MIB = 4 * (384 + SIDECAR_MIB) + 3 * (128 + SIDECAR_MIB)


def mib(quantity):
    """Of what the nodes and pods here state."""
    for suffix, scale in (("Ki", 1 / 1024), ("Mi", 1), ("Gi", 1024)):
        if quantity.endswith(suffix):
            return float(quantity.removesuffix(suffix)) * scale
    return float(quantity) / (1 << 20)


class WithoutConditions(CountingProxy):
    """A store that knows no conditional PUT."""
    refused = 0

    def instead(self, request, body):
        if "If-None-Match" not in request.headers:
            return None
        self.refused += 1
        return 501, "<Error><Code>NotImplemented</Code></Error>"


class Training(OnPods):
    def test_1_a_job_trains_on_pods_to_the_bits_of_one_machine(self):
        """In layers [1, 2, 4] of two shards; what an iteration asks of the store is as the formulas
        of common/plan say."""
        # Its threads are in the namespace that it was made in.
        proxy = self.cluster.network.call(network.LAB, lambda: CountingProxy(
            STORE_PORT, settings.LAB_IP))
        self.addCleanup(proxy.close)
        self.create("plain", 4, endpoint=proxy.endpoint)
        self.running("plain", 1)
        groups = {}
        for pod in self.pods("plain"):
            group = pod["metadata"]["labels"]["lambdadnn.io/group"]
            groups.setdefault(group, []).append(pod)
            self.bounded(pod, *SIZES[group])
        self.assertEqual({"workers": 4, "servers": 3},
                         {group: len(pods) for group, pods in groups.items()})
        self.assertEqual({"n1", "n2"}, {pod["spec"]["nodeName"] for pod in groups["workers"]})
        job = self.complete("plain")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        report = self.report("plain")
        requests = report["requests"]
        counts = proxy.exchanged()
        self.assertEqual(list(range(requests["iterations"])), sorted(counts))
        self.assertGreater(requests["predictedPerIteration"]["puts"], 0)
        for iteration, count in sorted(counts.items()):
            self.assertEqual(requests["predictedPerIteration"], count, f"iteration {iteration}")
        self.rung(report)
        self.nothing_left("plain")

    def bounded(self, pod, memory_mib, cores):
        """What Kubernetes was told, and what the kernel holds the function's process to."""
        container = next(each for each in pod["spec"]["containers"] if each["name"] == "function")
        self.assertEqual(f"{memory_mib}Mi", container["resources"]["limits"]["memory"])
        memory, quota = cgroups.limits_of(
            pod_processes.function_of(self.cluster, pod["metadata"]["uid"]))
        self.assertEqual(memory_mib << 20, memory)
        self.assertAlmostEqual(cores, quota, delta=0.002)

    def scale_activators(self, count):
        self.kube.kubectl("scale", f"--replicas={count}", *ACTIVATOR)
        self.kube.kubectl("rollout", "status", "--timeout=120s", *ACTIVATOR)

    def test_2_the_same_job_through_the_ingress_and_two_activators(self):
        self.scale_activators(2)
        self.addCleanup(self.scale_activators, 1)
        # No client, the operator included, reaches a pod at its own address.
        with Faults(self.cluster).cut_clients(settings.POD_RANGE) as dropped:
            self.create("routed", 4, {"addressing": "Service"})
            self.running("routed", 1)
            names = {each["metadata"]["name"] for each in self.kube.get(SERVICES)["items"]}
            self.assertEqual({*(f"routed-workers-{i}" for i in range(4)),
                              *(f"routed-servers-{i}" for i in range(3))}, names)
            for each in self.kube.get(NETWORK_SERVICES)["items"]:
                self.assertEqual(("Proxy", 2),
                                 (each["spec"]["mode"], each["spec"]["numActivators"]))
            job = self.complete("routed")
            self.assertEqual(0, dropped())
        self.assertEqual(0, job["status"]["execution"]["incarnation"])
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.assertEqual("False", condition(job, "PeersConnected"), "told: functions have no connections")
        self.assertEqual({}, self.report("routed")["peers"])
        self.nothing_left("routed")

    def test_3_a_deleted_job_leaves_nothing(self):
        self.create("short-lived", 400)
        self.running("short-lived", 5)
        self.remove("short-lived")
        self.nothing_left()

    def test_4_two_jobs_with_room_for_one_and_a_half(self):
        """One waits and says for what, and both end with the same bits."""
        self.leave_room(JOB_MIB * 3 // 2)
        # What an operator knows of nodes is up to half a minute old.
        with self.other_operator():
            self.create("first", 4)
            self.create("second", 4)
            name, why = self.wait("one of them waits", self.waiting)
            print(f"{name} {why}", flush=True)
            self.assertRegex(why, r"the plan needs \d+ MiB, \d+ MiB of \d+ MiB are free")
            for each in ("first", "second"):
                job = self.complete(each)
                self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])

    def waiting(self):
        for name in ("first", "second"):
            for each in self.job(name).get("status", {}).get("conditions", []):
                if each["reason"] in ("WaitingForCapacity", "ClusterTooSmall"):
                    return name, f"{each['reason']}: {each['message']}"
        return None

    def leave_room(self, left_mib):
        """All nodes together have this much memory for pods that are yet to come."""
        pods = [pod for pod in self.kube.get("/api/v1/pods")["items"]
                if pod["status"]["phase"] in ("Pending", "Running")]
        nodes = self.kube.get("/api/v1/nodes")["items"]
        for node in nodes:
            name = node["metadata"]["name"]
            taken = sum(mib(container["resources"].get("requests", {}).get("memory", "0"))
                        for pod in pods if pod["spec"].get("nodeName") == name
                        for container in pod["spec"]["containers"])
            filler = mib(node["status"]["allocatable"]["memory"]) - taken - left_mib / len(nodes)
            self.request("POST", PODS, {"metadata": {"name": f"filler-{name}"}, "spec": {
                "nodeName": name, "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "securityContext": {"runAsNonRoot": True,
                                    "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "pause", "image": "dev.local/pause:1",
                    "resources": {"requests": {"memory": f"{int(filler)}Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": False,
                                        "capabilities": {"drop": ["ALL"]}}}]}})
            self.addCleanup(self.kube.request, "DELETE", f"{PODS}/filler-{name}")

    def test_5_a_store_without_roles_and_conditions(self):
        """versitygw has no AssumeRole, and what is before it here no conditional PUT."""
        def start():
            server = RealServer("versitygw", host=settings.LAB_IP)
            return server, WithoutConditions(server.port, settings.LAB_IP)
        server, proxy = self.cluster.network.call(network.LAB, start)
        self.addCleanup(server.close)
        self.addCleanup(proxy.close)
        self.make_store_secret("simple-store", credentials=ROOT_SECRET)
        self.addCleanup(self.kube.request, "DELETE", f"{SECRETS}/simple-store")
        self.assertEqual(BUCKET, self.BUCKET)
        self.create("simple", 4, endpoint=proxy.endpoint, secret="simple-store")
        store = self.complete("simple")["status"]["objectStore"]
        print(store, flush=True)
        self.assertGreater(proxy.refused, 0)
        self.assertNotIn("ConditionalPut", store.get("capabilities", []))
        self.assertEqual("Secret", store["credentials"])
        self.assertTrue(store["credentialsMessage"])
        job = self.job("simple")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.assertFalse([key for key in server.keys()
                          if "/results/" not in key and "/measurements/" not in key])

    def test_6_other_placements_and_transports_with_a_function_killed(self):
        """Workers that serve, objects over connections between pods, and both: the bits are the same, also of a job
        whose functions go back to a checkpoint."""
        for placement, transport in (("Dedicated", "Direct"), ("Workers", "ObjectStore"), ("Workers", "Direct")):
            with self.subTest(placement=placement, transport=transport):
                self.exchanged_otherwise(f"{placement}-{transport}".lower(), placement, transport)

    def exchanged_otherwise(self, name, placement, transport):
        memory = {"serverMemory": "128Mi"} if placement == "Dedicated" else {}
        self.create(name, 12, {"aggregation": {"shards": 2, "layers": [1, 2, 4], "placement": placement,
                                               "transport": transport, **memory}})
        self.running(name, 10)
        pods = self.pods(name)
        workers = [pod for pod in pods if pod["metadata"]["labels"]["lambdadnn.io/group"] == "workers"]
        self.assertEqual(4, len(workers))
        self.assertEqual(placement == "Workers", len(pods) == 4, "servers have functions of their own, or none")
        self.assertTrue(Faults(self.cluster).kill_function(workers[0]["metadata"]["uid"]))
        job = self.complete(name)
        self.assertEqual(self.digest_on_one_machine(12), job["status"]["model"]["digest"])
        self.assertGreater(job["status"]["execution"]["incarnation"], 0, "nobody joins in the midst of a round")
        report = self.report(name)
        print(f"exchange: {name}: {report['peers']}, {report['store']['puts']} PUT, {report['store']['gets']} GET, "
              f"{report['store']['misses']} in vain", flush=True)
        if transport == "Direct":
            # Checkpoints, records, and what was exchanged while the killed one was away.
            self.assertLess(report["store"]["puts"], report["requests"]["iterations"])
            self.assertGreater(report["peers"]["peerObjects"], 10 * report["requests"]["iterations"])
        self.nothing_left(name)

    def offer_gpus(self, node, count):
        """As a device plugin does, and with the taint that keeps other pods away; until the test's end."""
        path = f"/api/v1/nodes/{node}"
        def change(amount, taints):
            amounts = {GPU: amount}
            self.request("PATCH", path + "/status", {"status": {"capacity": amounts, "allocatable": amounts}})
            self.request("PATCH", path, {"spec": {"taints": taints}})
        self.addCleanup(change, None, None)
        change(str(count), [{"key": GPU, "effect": "NoSchedule"}])

    def test_7_workers_with_gpus_are_where_these_are_and_say_why_they_cannot_use_them(self):
        """No node here has one: their image is the usual one, without CUDA. Servers are elsewhere."""
        self.request("PATCH", FEATURES, {"data": {"kubernetes.podspec-tolerations": "enabled"}})
        self.addCleanup(self.request, "PATCH", FEATURES, {"data": {"kubernetes.podspec-tolerations": None}})
        self.offer_gpus("n2", 2)
        wanted = {"functions": {"gpu": 1}, "podTemplate": {"workers": {"tolerations": [
            {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]}}}
        two = {"objective": {"fixed": {"functions": 2, "memory": "384Mi"}},
               "aggregation": {"shards": 1, "layers": [1, 2], "serverMemory": "128Mi"}}
        with self.other_operator(flags=("--worker-gpu-image", f"dev.local/lambdadnn-worker:{TAG}")):
            self.create("on-gpus", 4, {**wanted, **two})
            def placed():
                found = [(pod["metadata"]["labels"]["lambdadnn.io/group"], pod["spec"]["nodeName"])
                         for pod in self.pods("on-gpus") if pod["spec"].get("nodeName")]
                return sorted(found) if len(found) == 3 else None
            self.assertEqual([("servers", "n1"), ("workers", "n2"), ("workers", "n2")],
                             self.wait("its pods have nodes", placed, every=0.05))
            [worker, _] = [pod for pod in self.pods("on-gpus")
                           if pod["metadata"]["labels"]["lambdadnn.io/group"] == "workers"]
            [function] = [each for each in worker["spec"]["containers"] if each["name"] == "function"]
            self.assertEqual("1", function["resources"]["limits"][GPU])
            self.create("on-more", 4, wanted)  # four workers
            said = self.wait("on-more is told", lambda: self.message("on-more", "Provisioned", "False"))
            print(said, flush=True)
            self.assertIn("and there are 2 for 4", said)
            said = self.wait("on-gpus fails", lambda: self.message("on-gpus", "Failed", "True"))
            print(said, flush=True)
            self.assertRegex(said, r"LAMBDADNN_DEVICE=cuda: LibTorch \S+ of this program has no CUDA; .+, or train "
                                   r"with LAMBDADNN_DEVICE=cpu")

    def test_8_a_module_of_ones_own(self):
        """The example of docs/models.md typed as it says, from a plain PyTorch file to `kubectl apply` and back; and a
        module with outputs for fewer classes, which ends its job with a sentence."""
        folder = self.folder / "torchscript"
        shutil.copytree(ROOT / "examples/models/torchscript", folder)

        def python(*arguments):
            done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stderr)
            return done.stdout

        python("module.py")
        self.put(self.BUCKET, "module.pt", (folder / "module.pt").read_bytes())
        job = yaml.safe_load((folder / "job.yaml").read_text())
        wanted = job["spec"] = {**job["spec"], "model": {"torchScript": {"uri": f"s3://{self.BUCKET}/module.pt"}}}
        name = job["metadata"]["name"]
        self.addCleanup(self.remove, name)
        store = {"endpoint": f"http://{settings.S3_ADDRESS}", "bucket": self.BUCKET, "prefix": "jobs",
                 "credentialsSecretRef": {"name": "store"}}
        self.kube.apply(yaml.safe_dump({**job, "spec": {**wanted, "objectStore": store}}))
        status = self.complete(name)["status"]
        report = self.report(name)
        self.assertGreater(report["metrics"]["testAccuracy"], 0.8)
        said = python("module.py", str(self.folder / f"report-{name}/model.pt"))
        self.assertIn("norm.running_mean [8]", said)
        here = {**pinned_to(status["plan"], wanted), "model": {"torchScript": {"uri": str(folder / "module.pt")}}}
        self.assertEqual(self.run_here("own-module", here)["model"]["digest"], status["model"]["digest"])
        self.nothing_left(name)

        python("-c", "import module, torch; digits = module.Digits(); digits.classes = torch.nn.Linear(392, 7)\n"
               "torch.jit.script(digits).save('narrow.pt')")
        self.put(self.BUCKET, "narrow.pt", (folder / "narrow.pt").read_bytes())
        self.create_of("narrow", {**wanted, "model": {"torchScript": {"uri": f"s3://{self.BUCKET}/narrow.pt"}}})
        said = self.wait("narrow is told", lambda: self.message("narrow", "Failed", "True"))
        print(said, flush=True)
        self.assertIn("change the module's last layer", said)

    def message(self, name, kind, status):
        for each in self.job(name).get("status", {}).get("conditions", []):
            if each["type"] == kind and each["status"] == status:
                return each["message"]
        return None
