# SPDX-License-Identifier: Apache-2.0
"""What bounds the pods of a job, on the test cluster with network policies enforced
(network_policies.py): a job trains behind its policy to the bits of one machine, and what the policy
does not list is refused. Every connection that has to be refused is first made without the policies.

As training_test.py otherwise.
"""
import errno
import pathlib
import socket
import struct
import threading

import network
import on_pods
import pod_processes
import settings
from network_policies import Enforcer
from on_pods import ACCOUNTS, PODS, POLICIES

STORE_PORT = int(settings.S3_ADDRESS.rsplit(":", 1)[1])
# An address of the internet, as far as the cluster can tell: it belongs to the clients' namespace.
ELSEWHERE = "203.0.113.9"
OTHER_PORT = 9999
QUEUE, TLS, USER, SCALING = 8012, 8443, 8080, 9090
API_SERVER = ("10.96.0.1", 443)
# Refusals come at once; this is for a machine that others keep busy.
CONNECT_SECONDS = 60
NETWORK = f"""
operators: [{{ipBlock: {{cidr: {settings.LAB_IP}/32}}}}]
store: [{{to: [{{ipBlock: {{cidr: {settings.LAB_IP}/32}}}}], ports: [{{port: {STORE_PORT}}}]}}]
"""


class Isolation(on_pods.OnPods):
    @classmethod
    def operator_flags(cls):
        file = cls.folder / "network-policies.yaml"
        file.write_text(NETWORK)
        return ["--network-policies", file]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.enforcer = Enforcer(cls.cluster)
        cls.addClassCleanup(cls.enforcer.stop)
        net = cls.cluster.network
        net.run(network.LAB, "ip", "address", "replace", f"{ELSEWHERE}/32", "dev", "lo")
        for node in settings.nodes(cls.cluster.count()):
            net.run(node.name, "ip", "route", "replace", f"{ELSEWHERE}/32", "via", settings.LAB_IP)
        for address in ((ELSEWHERE, STORE_PORT), (settings.LAB_IP, OTHER_PORT)):
            cls.listen(address)

    @classmethod
    def listen(cls, address):
        """Takes connections among the clients and ends them."""
        def open_socket():
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
            return listener

        def serve():
            try:
                while True:
                    listener.accept()[0].close()
            except OSError:
                pass

        listener = cls.cluster.network.call(network.LAB, open_socket)
        cls.addClassCleanup(listener.close)
        cls.addClassCleanup(lambda: listener.shutdown(socket.SHUT_RDWR))
        threading.Thread(target=serve, daemon=True).start()

    def namespace_of(self, end):
        """The file of the network namespace of a pod (its object), a node or the clients."""
        if isinstance(end, str):
            return self.cluster.network.file(end)
        for pid in pod_processes.of_pod(self.cluster, end["metadata"]["uid"]):
            return pathlib.Path(f"/proc/{pid}/ns/net")
        self.fail(f"pod {end['metadata']['name']} has no process")

    @staticmethod
    def name_of(end):
        return end if isinstance(end, str) else end["metadata"]["name"]

    def connects(self, source, target, port):
        """Whether there is a connection; no other failure than a refusal by policy passes for one."""
        address = target if isinstance(target, str) else target["status"]["podIP"]

        def attempt():
            try:
                socket.create_connection((address, port), timeout=CONNECT_SECONDS).close()
                return True
            except OSError as error:
                if error.errno == errno.EHOSTUNREACH:
                    return False
                raise AssertionError(f"{self.name_of(source)} to {self.name_of(target)} ({address}:"
                                     f"{port}): {error}") from error
        return self.cluster.network.call_in(self.namespace_of(source), attempt)

    def asks_for_names(self, source, datagrams):
        """Asks the cluster's server of names from there."""
        question = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(
            bytes([len(each)]) + each.encode() for each in "kubernetes.default.svc.cluster.local"
            .split(".")) + b"\0" + struct.pack(">2H", 1, 1)

        def ask():
            kind = socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM
            with socket.socket(socket.AF_INET, kind) as connection:
                connection.settimeout(CONNECT_SECONDS)
                connection.connect((settings.DNS_IP, 53))
                if datagrams:
                    connection.send(question)
                    answer = connection.recv(512)
                else:
                    connection.sendall(struct.pack(">H", len(question)) + question)
                    answer = connection.recv(1 << 16)[2:]
            return socket.inet_aton(API_SERVER[0]) in answer
        return self.cluster.network.call_in(self.namespace_of(source), ask)

    def group(self, job, name):
        return sorted((pod for pod in self.pods(job)
                       if pod["metadata"]["labels"]["lambdadnn.io/group"] == name
                       and "deletionTimestamp" not in pod["metadata"]),
                      key=lambda pod: pod["spec"].get("nodeName", ""))

    def stranger(self, name):
        """A pod of another namespace that just waits."""
        path = "/api/v1/namespaces/strangers/pods"
        self.kube.apply_objects([
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strangers"}},
            {"apiVersion": "v1", "kind": "Pod",
             "metadata": {"name": name, "namespace": "strangers"},
             "spec": {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                      "containers": [{"name": "pause", "image": "dev.local/pause:1"}]}}])
        self.addCleanup(self.kube.request, "DELETE", f"{path}/{name}")

        def running():
            pod = self.kube.get(f"{path}/{name}")
            return pod["status"].get("podIP") and pod["status"]["phase"] == "Running" and pod
        return self.wait(f"pod {name}", running)

    def knative_pod(self, app):
        return self.kube.get(f"/api/v1/namespaces/knative-serving/pods?labelSelector=app%3D{app}"
                             )["items"][0]

    def advances(self, name):
        reached = self.job(name)["status"]["progress"]["iteration"]
        self.running(name, reached + 20)

    def test_1_a_job_trains_behind_its_policy(self):
        self.enforcer.start()
        self.addCleanup(self.enforcer.stop)
        self.create("bounded", 4)
        self.running("bounded", 1)
        [policy] = self.kube.get(POLICIES)["items"]
        account = self.kube.get(f"{ACCOUNTS}/bounded-lambdadnn")
        self.assertIs(False, account["automountServiceAccountToken"])
        for pod in self.pods("bounded"):
            self.assertEqual("bounded-lambdadnn", pod["spec"]["serviceAccountName"])
            mounts = [mount["mountPath"] for container in pod["spec"]["containers"]
                      for mount in container.get("volumeMounts", [])]
            self.assertFalse([path for path in mounts if "serviceaccount" in path], mounts)
        job = self.complete("bounded")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        # Written once: the API server keeps it as it was sent.
        self.assertEqual(1, policy["metadata"]["generation"])
        self.nothing_left()

    def test_2_what_the_policy_does_not_list_is_refused(self):
        self.create("red", 4000)
        self.create("blue", 4000, {
            "objective": {"fixed": {"functions": 2, "memory": "384Mi"}},
            "aggregation": {"shards": 1, "layers": [1, 2], "serverMemory": "128Mi"}})
        self.running("red", 1)
        self.running("blue", 1)
        near, *_, far = self.group("red", "workers")
        self.assertEqual(["n1", "n2"], [pod["spec"]["nodeName"] for pod in (near, far)])
        server = self.group("red", "servers")[0]
        blue = self.group("blue", "workers")[0]
        stranger = self.stranger("early")
        activator, autoscaler = self.knative_pod("activator"), self.knative_pod("autoscaler")
        refused = [(source, target, port) for source in (stranger, blue)
                   for target in (near, far, server) for port in (QUEUE, TLS, USER)]
        refused += [(network.LAB, far, USER), (network.LAB, far, SCALING), ("n1", far, QUEUE),
                    ("n1", far, TLS), (activator, far, TLS), (autoscaler, far, TLS),
                    (far, blue, QUEUE), (far, blue, TLS), (far, blue, USER), (far, *API_SERVER),
                    (far, ELSEWHERE, STORE_PORT), (near, ELSEWHERE, STORE_PORT),
                    (far, settings.LAB_IP, OTHER_PORT), (near, settings.LAB_IP, OTHER_PORT)]
        for each in refused:
            self.assertTrue(self.connects(*each), f"without policies: {self.told(*each)}")
        self.enforcer.start()
        self.addCleanup(self.enforcer.stop)
        for each in refused:
            self.assertFalse(self.connects(*each), self.told(*each))
        admitted = [(network.LAB, near, QUEUE), (network.LAB, far, QUEUE), (network.LAB, server, QUEUE),
                    (network.LAB, near, TLS), (network.LAB, far, TLS), (network.LAB, server, TLS),
                    ("n1", near, USER), ("n2", far, QUEUE), (near, far, QUEUE), (far, server, USER),
                    (far, settings.LAB_IP, STORE_PORT), (activator, far, QUEUE),
                    (autoscaler, far, SCALING), (autoscaler, near, SCALING)]
        for each in admitted:
            self.assertTrue(self.connects(*each), self.told(*each))
        for datagrams in (True, False):
            self.assertTrue(self.asks_for_names(far, datagrams))
        self.advances("red")
        self.advances("blue")
        self.pods_that_come_later(far)
        self.a_policy_that_somebody_deletes(blue)
        self.remove("red")
        self.remove("blue")
        self.nothing_left()

    def told(self, source, target, port):
        return f"{self.name_of(source)} to {self.name_of(target)}, port {port}"

    def pods_that_come_later(self, gone):
        before = {pod["metadata"]["uid"] for pod in self.pods("red")}
        self.kube.request("DELETE", f"{PODS}/{gone['metadata']['name']}")

        def successor():
            later = [pod for pod in self.group("red", "workers")
                     if pod["metadata"]["uid"] not in before
                     and any(each["type"] == "Ready" and each["status"] == "True"
                             for each in pod["status"].get("conditions", []))]
            return later and later[0]
        later = self.wait("another worker", successor)
        stranger = self.stranger("late")
        self.enforcer.sync()
        blue = self.group("blue", "workers")[0]
        for source in (stranger, blue):
            self.assertFalse(self.connects(source, later, QUEUE), self.told(source, later, QUEUE))
        self.assertTrue(self.connects(network.LAB, later, TLS))
        self.advances("red")

    def a_policy_that_somebody_deletes(self, blue):
        path = f"{POLICIES}/red-lambdadnn"
        before = self.kube.get(path)["metadata"]["uid"]
        self.kube.request("DELETE", path)

        def again():
            there = self.kube.get(path)
            return there is not None and there["metadata"]["uid"] != before
        self.wait("the policy is made again", again)
        self.enforcer.sync()
        worker = self.group("red", "workers")[0]
        self.assertFalse(self.connects(blue, worker, QUEUE))
        self.advances("red")
