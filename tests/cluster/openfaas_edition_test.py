# SPDX-License-Identifier: Apache-2.0
"""What the community edition of OpenFaaS allows, as plan, `doctor`, `--check`, preflight and jobs see it:
a gateway of the Go module proxy, tests/servers/openfaas-provider as that edition, and a real
kube-apiserver, in a network namespace of their own, where the gateway has its ports for itself. No
function runs: there are no nodes.
"""
import ctypes
import json
import os
import pathlib
import subprocess
import unittest
import urllib.error
import urllib.request

import network
import openfaas
import settings
from operator_support import Cluster, Process
from options import OPTIONS
from s3_servers import BUCKET, CREDENTIALS, RealServer

RELEASE = "0.18.17"
EDITION = f"OpenFaaS Community Edition (faas-netes-ce {RELEASE})"
MOST = 15
PUBLIC = "registry.example/public/"
GATEWAY = f"http://127.0.0.1:{openfaas.GATEWAY_PORT}"
SERVERS = (openfaas.COMPANION, openfaas.MODULE_GATEWAY, openfaas.MODULE_PROVIDER)
PLATFORM = """
memory: {min: 128Mi, max: 1024Mi, step: 64Mi}
milliCpuPerGiB: 500
maxFunctions: 32
functionTimeoutSeconds: 300
prices: {currency: USD, gibSecond: "0.0000166667"}
"""
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{openfaas.FUNCTIONS}/deployments"
SECRETS = f"/api/v1/namespaces/{openfaas.FUNCTIONS}/secrets"


def enter_own_network():
    """This process and all that it starts."""
    if ctypes.CDLL(None, use_errno=True).unshare(network.CLONE_NEWNET) != 0:
        raise unittest.SkipTest("no network namespace can be made; it takes root")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class CommunityEdition(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([openfaas.ROOT / "scripts/test_servers.sh", "build", *SERVERS], check=True, capture_output=True)
        enter_own_network()
        cls.cluster = cluster = Cluster(OPTIONS.bin, train=0, own_plane=True)
        cls.addClassCleanup(cluster.close)
        cls.minio = RealServer("minio")
        cls.addClassCleanup(cls.minio.close)
        for name in (openfaas.NAMESPACE, openfaas.FUNCTIONS, "lambdadnn-system"):
            cls.post("/api/v1/namespaces", {"metadata": {"name": name}})
        for each in openfaas.own_rights():
            group = "rbac.authorization.k8s.io/v1"
            place = f"/namespaces/{each['metadata']['namespace']}/{each['kind'].lower()}s"
            cls.post((f"/apis/{group}" if each["apiVersion"] == group else "/api/v1") + place, each)
        # How clients know the edition: an installation has the provider's image there.
        (provider,) = [each for each in openfaas.objects() if each["kind"] == "Deployment"
                       and each["metadata"]["name"] == "faas-netes"]
        provider["spec"]["template"]["spec"]["containers"][0]["image"] = f"ghcr.io/openfaas/faas-netes:{RELEASE}"
        cls.post(f"/apis/apps/v1/namespaces/{openfaas.NAMESPACE}/deployments", provider)
        cls.platform = cluster.folder / "platform.yaml"
        cls.platform.write_text(PLATFORM)
        cls.post("/api/v1/namespaces/lambdadnn-system/configmaps", {
            "metadata": {"name": "lambdadnn-platform"},
            "data": {"platform.yaml": PLATFORM, "functionNamespace": openfaas.FUNCTIONS}})
        cls.start_gateway()

    @classmethod
    def post(cls, path, body):
        status, made = cls.cluster.api("POST", path, body)
        assert status == 201, made

    @classmethod
    def start_gateway(cls):
        cluster = cls.cluster
        cls.auth = auth = cluster.folder / "gateway"
        account = cluster.folder / "account"
        for folder in (auth, account):
            folder.mkdir()
        (auth / "basic-auth-user").write_text(openfaas.USER)
        (auth / "basic-auth-password").write_text(openfaas.PASSWORD)
        status, token = cluster.api(
            "POST", f"/api/v1/namespaces/{openfaas.NAMESPACE}/serviceaccounts/{openfaas.ACCOUNT}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        assert status == 201, token
        (account / "token").write_text(token["status"]["token"])
        (account / "ca.crt").write_bytes((pathlib.Path(cluster.plane.pki.folder) / "ca.crt").read_bytes())
        usual = {"read_timeout": openfaas.TIMEOUT, "write_timeout": openfaas.TIMEOUT, "basic_auth": "true",
                 "secret_mount_path": str(auth), "function_namespace": openfaas.FUNCTIONS}
        companion = f"127.0.0.1:{openfaas.COMPANION_PORT}"
        for name, environment in (
                (openfaas.COMPANION, {}),
                (openfaas.MODULE_PROVIDER, {
                    "port": str(openfaas.PROVIDER_PORT), "service_account": str(account),
                    "community_release": RELEASE, "public_images": PUBLIC,
                    "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.plane.port)}),
                (openfaas.MODULE_GATEWAY, {
                    "auth_proxy_url": f"http://{companion}/validate", "faas_prometheus_host": "127.0.0.1",
                    "faas_prometheus_port": str(openfaas.COMPANION_PORT), "upstream_timeout": openfaas.TIMEOUT,
                    "functions_provider_url": f"http://127.0.0.1:{openfaas.PROVIDER_PORT}/"})):
            cluster.start(name, [settings.program(name)], {**usual, **environment}, kind=Process)
        cluster.wait_for("the gateway lists functions", lambda: cls.ask("GET", "/system/functions")[0] == 200)

    @classmethod
    def ask(cls, method, path, body=None):
        """(HTTP status, text) of the gateway; 0 = none answers."""
        request = urllib.request.Request(GATEWAY + path, method=method,
                                         data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Authorization": openfaas.authorization()})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def names(self, path):
        status, listed = self.cluster.api("GET", path)
        self.assertEqual(200, status, listed)
        return {each["metadata"]["name"] for each in listed["items"]}

    def flags(self, image=f"{PUBLIC}worker:1"):
        return ["--backend", "OpenFaaS", "--platform", self.platform, "--openfaas-gateway", GATEWAY,
                "--openfaas-auth-dir", self.auth, "--worker-image", image, "--server-image", f"{PUBLIC}server:1",
                "--store", f"s3://{BUCKET}/own"]

    def environment(self):
        return {**CREDENTIALS, "LAMBDADNN_S3_ENDPOINT": f"http://127.0.0.1:{self.minio.port}"}

    def start_operator(self, **how):
        operator = self.cluster.start_operator(
            None, *self.flags(**how), kubeconfig=self.cluster.plane.kubeconfig, environment=self.environment())
        self.addCleanup(lambda: operator.alive() and operator.kill())

    def users_functions(self, count):
        for number in range(count):
            status, text = self.ask("POST", "/system/functions", {
                "service": f"own-{number}", "image": f"{PUBLIC}own:1", "namespace": openfaas.FUNCTIONS})
            self.assertEqual(202, status, text)
            self.addCleanup(self.ask, "DELETE", "/system/functions", {"functionName": f"own-{number}"})

    def job(self, name, workers):
        """A file; a server comes with its workers. Its store is the operator's own."""
        path = self.cluster.manifest(name, backend="OpenFaaS", objective={
            "fixed": {"functions": workers, "memory": "256Mi"}}, aggregation={
                "placement": "Dedicated", "shards": 1, "layers": [1, workers]})
        job = json.loads(path.read_text())
        del job["spec"]["objectStore"]
        path.write_text(json.dumps(job))
        return path

    def create(self, name, workers):
        def gone():
            self.cluster.api("DELETE", self.cluster.job_path(name))
            self.cluster.wait_for(f"{name} is gone", lambda: self.cluster.get(name) is None)
        self.cluster.create_job(self.job(name, workers))
        self.addCleanup(gone)

    def told(self, name, kind, words):
        """The message of a condition, once it has these words."""
        def message():
            status = (self.cluster.get(name) or {}).get("status", {})
            found = [each["message"] for each in status.get("conditions", []) if each["type"] == kind]
            return found[0] if found and words in found[0] else ""
        return self.cluster.wait_for(f"{name} {kind}: {words}", message)

    def run_command(self, program, *words):
        done = subprocess.run([OPTIONS.bin / program, *map(str, words)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **self.environment(), "HOME": str(self.cluster.folder)})
        return done.returncode, done.stdout + done.stderr

    def kubeconfig(self):
        return "--kubeconfig", self.cluster.plane.kubeconfig

    # --- Before anything is made.

    def test_check_and_doctor_tell_the_edition(self):
        self.users_functions(2)
        bound = "the gateway holds at most 15 functions, 2 of them of other users"
        code, said = self.run_command("lambdadnn-operator", "--check", *self.kubeconfig(), *self.flags())
        self.assertEqual(0, code, said)
        self.assertIn(f"{EDITION} answers at {GATEWAY}", said)
        self.assertIn(bound, said)
        code, said = self.run_command("kubectl-lambdadnn", "doctor", *self.kubeconfig())
        self.assertIn(f"at most 13 functions ({EDITION} less 2 of other users)", said)
        code, said = self.run_command("kubectl-lambdadnn", "doctor", *self.kubeconfig(), "--openfaas-gateway", GATEWAY,
                                      "--openfaas-auth-dir", self.auth)
        self.assertIn(bound, said)

    def test_plans_stay_within_it(self):
        code, said = self.run_command("kubectl-lambdadnn", "plan", *self.kubeconfig(), "-f", self.job("wide", MOST))
        self.assertNotEqual(0, code, said)
        self.assertIn(f"at most 15 functions ({EDITION})", said)
        narrow = self.job("narrow", MOST - 1)
        code, said = self.run_command("kubectl-lambdadnn", "plan", *self.kubeconfig(), "-f", narrow)
        self.assertEqual(0, code, said)

    # --- Jobs.

    def test_more_functions_than_it_has_are_told_before_one_is_made(self):
        self.start_operator()
        self.create("too-wide", MOST)
        self.told("too-wide", "Provisioned", "at most 15 functions (the edition of OpenFaaS)")
        self.assertEqual(set(), self.names(DEPLOYMENTS))

    def test_the_next_job_waits_until_there_is_room(self):
        self.start_operator()
        self.create("first", 7)
        self.cluster.wait_for("its functions", lambda: len(self.names(DEPLOYMENTS)) == 8)
        self.create("second", 9)
        self.told("second", "Ready", "15")
        self.assertFalse([name for name in self.names(DEPLOYMENTS) if name.startswith("second")])

    def test_functions_pass_its_bounds_of_replicas_and_namespaces(self):
        """What the operator asks for; what it never does is refused."""
        self.start_operator()
        self.create("within", 2)
        self.cluster.wait_for("its functions", lambda: len(self.names(DEPLOYMENTS)) == 3)
        for labels, namespace, words in (({"com.openfaas.scale.max": "6"}, openfaas.FUNCTIONS, "at most 5 replicas"),
                                         ({"com.openfaas.scale.zero": "true"}, openfaas.FUNCTIONS, "scaling to zero"),
                                         ({}, "default", "namespace must be")):
            status, text = self.ask("POST", "/system/functions", {
                "service": "other", "image": f"{PUBLIC}own:1", "namespace": namespace, "labels": labels})
            self.assertEqual(400, status, text)
            self.assertIn(words, text)

    def test_an_image_that_it_refuses_fails_the_job_in_a_sentence(self):
        self.start_operator(image="registry.example/private/worker:1")
        self.create("private", 2)
        message = self.told("private", "Failed", "only allows public images")
        self.assertIn("push the image to a", message)
        self.assertEqual(set(), self.names(DEPLOYMENTS))
        self.assertFalse([name for name in self.names(SECRETS) if name.startswith("lambdadnn-")])
