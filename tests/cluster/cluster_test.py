# SPDX-License-Identifier: Apache-2.0
"""The test cluster itself: that it comes up whole, runs Knative functions, holds pods to their
memory, heals, and leaves nothing behind. Needs root and, once, minutes to build its parts.

The tests are one story in the order of their names; each waits for states, none for times.
"""
import fcntl
import http.client
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import cluster as whole
import images
import network
import settings
from cluster_api import condition
from leftovers import Leftovers

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAIT_SECONDS = 240
SERVICE = "hello"
SERVICES = "/apis/serving.knative.dev/v1/namespaces/default/services"
PODS = "/api/v1/namespaces/default/pods"


def run_script(*words):
    return subprocess.run([ROOT / "scripts/cluster.sh", *words], capture_output=True, text=True)


def machine_network():
    """Links and firewall rules of the machine's own namespace."""
    links = [line.split(":")[1].strip() for line in subprocess.run(
        ["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.splitlines()]
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True).stdout
    return sorted(links), [line for line in rules.splitlines() if line[:1] in "-*"]


def eventually(what, check):
    """The first true value of check(); a test failure when there is none for minutes."""
    deadline = time.monotonic() + WAIT_SECONDS
    last = None
    while time.monotonic() < deadline:
        try:
            value = check()
            if value:
                return value
        except (OSError, settings.ClusterError) as error:
            last = error
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {WAIT_SECONDS} s ({last})")


class ClusterStory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ldnn-e2e-", dir="/tmp")
        cls.addClassCleanup(cls.folder.cleanup)
        os.environ["LAMBDADNN_CLUSTER_DIR"] = cls.folder.name + "/run"
        cls.config = settings.Settings()
        cls.cluster = whole.Cluster(cls.config)
        cls.kube = cls.cluster.kubernetes
        cls.network_before = machine_network()
        # Whatever fails: nothing of it may run on.
        cls.addClassCleanup(run_script, "down")

    def script(self, *words):
        done = run_script(*words)
        self.assertEqual(0, done.returncode, f"cluster.sh {words}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def lab(self, function):
        return self.cluster.network.call(network.LAB, function)

    def ask(self, address, method, path, host=None):
        def body():
            name, _, port = address.partition(":")
            connection = http.client.HTTPConnection(name, int(port), timeout=30)
            try:
                connection.request(method, path, headers={"Host": host} if host else {})
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            finally:
                connection.close()
        return self.lab(body)

    def create(self, path, body):
        def attempt():
            status, answer = self.kube.request("POST", path, body)
            if status < 300 or (answer or {}).get("reason") == "AlreadyExists":
                return True
            # Knative's webhook takes its time to be found after a start.
            if "failed calling webhook" in (answer or {}).get("message", ""):
                return False
            raise AssertionError(f"POST {path}: {status} {answer}")
        eventually(f"POST {path}", attempt)

    def pod(self, name, memory, **spec):
        image = spec.pop("image", "dev.local/test-function:1")
        self.create(PODS, {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{
                "name": "function", "image": image, "imagePullPolicy": "Never",
                "resources": {"limits": {"memory": memory}, "requests": {"cpu": "10m"}},
                "volumeMounts": [{"name": volume["name"], "mountPath": "/data"}
                                 for volume in spec.get("volumes", [])]}], **spec}})
        return self.pod_address(name)

    def pod_address(self, name):
        def ready():
            pod = self.kube.get(f"{PODS}/{name}")
            return condition(pod, "Ready") == "True" and pod["status"]["podIP"] + ":8080"
        return eventually(f"pod {name} ready", ready)

    def service_answers(self):
        def answer():
            status, text = self.ask("10.240.0.1:8081", "GET", "/",
                                    f"{SERVICE}.default.svc.cluster.local")
            return status == 200 and text.strip()
        return eventually("the Knative service's answer", answer)

    def test_01_comes_up_and_says_so(self):
        printed = self.script("up")
        self.assertIn("the cluster of 2 nodes is up after", printed)
        table = self.script("status")
        for part in ("etcd", "kube-apiserver", "n2-kubelet", "minio", "knative activator"):
            self.assertRegex(table, rf"(?m)^{part} .* well$")
        self.assertIn(settings.versions()["kubernetes"], table)

    def test_02_nodes_offer_no_more_than_the_machine_has(self):
        cores, memory_mib = settings.machine()
        items = self.kube.get("/api/v1/nodes")["items"]
        self.assertEqual(2, len(items))
        offered = [item["status"]["allocatable"] for item in items]
        milli = sum(int(each["cpu"][:-1]) if each["cpu"].endswith("m") else int(each["cpu"]) * 1000
                    for each in offered)
        memory_kib = [int(each["memory"].removesuffix("Ki")) for each in offered]
        self.assertLessEqual(milli, cores * 1000)
        self.assertLessEqual(sum(memory_kib), (memory_mib - settings.RESERVED_MIB + 2) * 1024)
        self.assertGreater(min(memory_kib), settings.SMALLEST_NODE_MIB * 1024 // 2)

    def test_03_knative_service_answers_through_ingress_and_at_its_pod(self):
        self.create(SERVICES, {
            "apiVersion": "serving.knative.dev/v1", "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": "default"},
            "spec": {"template": {
                "metadata": {"annotations": {"autoscaling.knative.dev/min-scale": "2",
                                             "autoscaling.knative.dev/max-scale": "2"}},
                "spec": {"containerConcurrency": 1, "containers": [{
                    "image": "dev.local/test-function:1",
                    "readinessProbe": {"httpGet": {"path": "/"}, "periodSeconds": 1},
                    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"},
                                  "limits": {"memory": "128Mi"}}}]}}}})

        def ready():
            return condition(self.kube.get(f"{SERVICES}/{SERVICE}"), "Ready") == "True"
        eventually("the Knative service ready", ready)

        def two_pods():
            pods = self.kube.get(
                f"{PODS}?labelSelector=serving.knative.dev/service={SERVICE}")["items"]
            return len(pods) == 2 and all(condition(pod, "Ready") == "True"
                                          for pod in pods) and pods
        pods = eventually("two pods", two_pods)
        names = {pod["metadata"]["name"] for pod in pods}
        self.assertIn(self.service_answers(), names)
        for pod in pods:
            status, text = self.ask(pod["status"]["podIP"] + ":8012", "POST", "/stream?n=3&ms=10")
            self.assertEqual((200, "0\n1\n2\nend\n"), (status, text))

    def test_04_pod_beyond_its_memory_is_killed_and_one_within_it_is_not(self):
        address = self.pod("small", "64Mi", restartPolicy="Never")
        self.assertEqual((200, "16\n"), self.ask(address, "POST", "/hold?mib=16"))
        self.assertEqual("Running", self.kube.get(f"{PODS}/small")["status"]["phase"])
        with self.assertRaises(OSError):
            self.ask(address, "POST", "/hold?mib=200")

        def reason():
            state = self.kube.get(f"{PODS}/small")["status"]["containerStatuses"][0]["state"]
            return state.get("terminated", {}).get("reason")
        self.assertEqual("OOMKilled", eventually("the end of the pod", reason))

    def test_05_claim_of_a_stateful_set_gets_a_volume(self):
        self.create("/api/v1/namespaces/default/persistentvolumeclaims", {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "1Gi"}}}})
        self.pod("stateful", "64Mi", volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        claim = self.kube.get("/api/v1/namespaces/default/persistentvolumeclaims/data")
        self.assertEqual("Bound", claim["status"]["phase"])

    def test_06_names_of_services_resolve(self):
        labels = b"".join(bytes([len(word)]) + word.encode()
                          for word in "kubernetes.default.svc.cluster.local".split("."))
        query = struct.pack(">6H", 1, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)

        def resolve():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
                asker.settimeout(3)
                asker.sendto(query, (settings.DNS_IP, 53))
                return asker.recv(512)[-4:]
        self.assertEqual(socket.inet_aton("10.96.0.1"),
                         eventually("an answer", lambda: self.lab(resolve)))

    def test_07_loaded_image_runs_on_each_node(self):
        archive = pathlib.Path(self.folder.name, "loaded.tar")
        images.write_archive(archive, "dev.local/loaded:1", settings.program("test-function"),
                             "loaded")
        self.assertIn("2 nodes", self.script("load-image", str(archive)))
        for node in ("n1", "n2"):
            address = self.pod(f"loaded-{node}", "64Mi", image="dev.local/loaded:1",
                               nodeName=node)
            self.assertEqual((200, f"loaded-{node}\n"), self.ask(address, "GET", "/"))

    def test_08_who_waits_is_told_for_whom(self):
        with open(f"{self.config.run}.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("a test of the lock\n")
            file.flush()
            waiter = subprocess.Popen([ROOT / "scripts/cluster.sh", "load-image", "/nowhere.tar"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertIn("held by a test of the lock", waiter.stdout.readline())
            fcntl.flock(file, fcntl.LOCK_UN)
        _, errors = waiter.communicate()
        self.assertEqual(1, waiter.returncode)
        self.assertIn("/nowhere.tar is no file", errors)

    def test_09_second_up_heals_what_was_broken(self):
        daemons = self.cluster.processes
        for name in ("etcd", "n1-containerd", "n2-kubelet", "coredns", "ingress"):
            self.assertTrue(daemons.signal(name, signal.SIGKILL), name)
        self.assertTrue(daemons.signal("kube-controller-manager", signal.SIGSTOP))
        self.cluster.network.run(network.LAB, "ip", "link", "delete", "n2-port")
        self.assertNotEqual(0, run_script("status").returncode)
        healthy_before = daemons.pid("minio")
        self.script("up")
        # Knative's own pods find the API server again in their own time.
        eventually("everything well", lambda: run_script("status").returncode == 0)
        self.assertEqual(healthy_before, daemons.pid("minio"))
        self.assertTrue(self.service_answers())
        self.pod("after", "64Mi", nodeName="n2")

    def test_10_down_leaves_nothing(self):
        left = Leftovers(self.cluster)
        # Daemons, and the containers of pods with what minds them.
        self.assertGreater(len(left.alive), 2 * len(self.cluster.parts(2)))
        self.assertTrue(left.all())
        self.script("down")
        self.assertEqual([], left.all())
        self.assertEqual(self.network_before, machine_network())
        self.script("down")
