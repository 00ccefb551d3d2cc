# SPDX-License-Identifier: Apache-2.0
"""The chart with functions behind OpenFaaS on a whole cluster: installed, checked, and uninstalled under a
running job, of which no function and no secret is left.

The rest is told by cluster_chart_case.py.
"""
import subprocess

import yaml

import network
import openfaas
from chart_support import NAMESPACE, RELEASE, ROOT
from cluster_chart_case import PATIENT, STORE, ChartCase
from on_openfaas import DEPLOYMENTS, FUNCTION_PODS

SECRETS = f"/api/v1/namespaces/{openfaas.FUNCTIONS}/secrets"


class OnOpenFaasByTheChart(ChartCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        openfaas.build(cls.config)
        cls.cluster.add_openfaas()
        cls.kube.apply_objects([{
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "basic-auth", "namespace": NAMESPACE},
            "stringData": {"basic-auth-user": openfaas.USER, "basic-auth-password": openfaas.PASSWORD}}])

    def doctor(self):
        """Of a client that reaches the gateway."""
        for name, value in (("user", openfaas.USER), ("password", openfaas.PASSWORD)):
            (self.folder / f"basic-auth-{name}").write_text(value)
        done = subprocess.run(
            [*self.cluster.network.prefix(network.LAB), self.images / "operator/install/usr/bin/lambdadnn", "doctor",
             "--openfaas-gateway", openfaas.address(), "--openfaas-auth-dir", self.folder],
            capture_output=True, text=True, env=self.kube.environment())
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def test_uninstalling_leaves_no_function_and_no_secret(self):
        self.install(objectStore=STORE, uninstall=PATIENT, openfaas={
            "gateway": f"http://gateway.{openfaas.NAMESPACE}:{openfaas.GATEWAY_PORT}", "authSecret": "basic-auth"})
        self.assertIn("Succeeded", self.helm("test", RELEASE))
        said = self.doctor()
        self.assertRegex(said, r"ok +OpenFaaS: requests may take 20 s \(\w+_timeout of OpenFaaS' container")
        self.assertIn(f"answers at {openfaas.address()}", said)
        spec = yaml.safe_load((ROOT / "examples/quickstart/openfaas.yaml").read_text())["spec"]
        spec["training"]["epochs"] = 2000
        self.start("long", {**spec, "objective": {"deadlineSeconds": 100000}, "checkpoint": {"intervalSeconds": 2}})
        done = self.running("long", 20)["status"]["progress"]["iteration"]
        self.assertTrue(self.kube.get(DEPLOYMENTS)["items"])
        self.uninstall()
        job = self.job("long")
        self.assertTrue(job["spec"]["suspend"])
        self.assertNotIn("finalizers", job["metadata"])
        self.assertGreaterEqual(job["status"]["progress"]["iteration"], done)
        self.wait("no function, pod or secret is left", lambda: not [
            each for path in (DEPLOYMENTS, FUNCTION_PODS, SECRETS) for each in self.kube.get(path)["items"]])
        self.delete_space()
