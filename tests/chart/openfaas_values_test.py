# SPDX-License-Identifier: Apache-2.0
"""The chart with functions behind OpenFaaS, as helm renders it."""
import unittest

import yaml

from chart_support import CHART, NAME, NAMESPACE, objects, render

GATEWAY = {"openfaas": {"gateway": "http://gateway.openfaas:8080", "authSecret": "basic-auth",
                        "functionNamespace": "fn", "gatewayNamespace": "faas", "maxFunctions": 30,
                        "timeoutSeconds": 12.5}}


def pod(workload):
    return workload["spec"]["template"]["spec"]


class OpenFaas(unittest.TestCase):
    def test_the_operator_its_check_and_its_uninstallation_reach_the_gateway(self):
        made, hooks = objects(GATEWAY), objects(GATEWAY, hooks=True)
        pods = [pod(made["Deployment", NAMESPACE, NAME])]
        pods += [each["spec"] if each["kind"] == "Pod" else pod(each)
                 for each in hooks.values() if each["kind"] in ("Pod", "Job")]
        self.assertEqual(3, len(pods))
        for each in pods:
            (container,) = each["containers"]
            for word in ("--backend=OpenFaaS", "--openfaas-gateway=http://gateway.openfaas:8080",
                         "--openfaas-namespace=fn", "--openfaas-max-functions=30",
                         "--openfaas-gateway-namespace=faas", "--openfaas-timeout-seconds=12.5",
                         "--openfaas-auth-dir=/etc/lambdadnn/openfaas"):
                self.assertIn(word, container["args"])
            self.assertIn({"name": "openfaas", "mountPath": "/etc/lambdadnn/openfaas", "readOnly": True},
                          container["volumeMounts"])
            self.assertIn({"name": "openfaas", "secret": {"secretName": "basic-auth"}}, each["volumes"])
            self.assertFalse([word for word in container["args"] if "network-policies" in word])

    def test_workers_with_a_gpu_have_an_image_of_their_own_on_knative_where_one_is_named(self):
        def told(**values):
            (container,) = pod(objects(values)["Deployment", NAMESPACE, NAME])["containers"]
            return [word for word in container["args"] if "gpu" in word]
        image = {"registry": "r.example", "repository": "cuda", "tag": "7"}
        self.assertEqual([], told())
        self.assertEqual(["--worker-gpu-image=r.example/cuda:7"], told(workerGpuImage=image))
        self.assertEqual([], told(workerGpuImage=image, **GATEWAY))

    def test_its_rights_are_in_the_namespace_of_functions(self):
        sets = yaml.safe_load((CHART / "files/rbac-rules.yaml").read_text())["sets"]
        made = objects(GATEWAY)
        self.assertEqual(made["ClusterRole", "", NAME]["rules"], sets["jobs"])
        self.assertEqual(made["Role", "fn", f"{NAME}-functions"]["rules"], sets["openfaas"] + sets["limits"])
        self.assertEqual(f"{NAME}-functions", made["RoleBinding", "fn", f"{NAME}-functions"]["roleRef"]["name"])
        self.assertEqual(made["Role", "faas", f"{NAME}-gateway"]["rules"], sets["gateway"])
        self.assertEqual(f"{NAME}-gateway", made["RoleBinding", "faas", f"{NAME}-gateway"]["roleRef"]["name"])
        self.assertNotIn(("Role", "openfaas-fn", f"{NAME}-functions"), objects())

    def test_the_published_platform_says_where_functions_are_and_what_bounds_them(self):
        name = ("ConfigMap", NAMESPACE, "lambdadnn-platform")
        data = objects(GATEWAY)[name]["data"]
        self.assertEqual({"functionNamespace": "fn", "gatewayNamespace": "faas", "gatewayFunctions": "30",
                          "gatewayTimeoutSeconds": "12.5"},
                         {key: value for key, value in data.items() if key != "platform.yaml"})
        self.assertEqual({"platform.yaml"}, set(objects()[name]["data"]))

    def test_its_network_policy_leads_to_the_gateway(self):
        values = {"openfaas": {"gateway": "http://gateway.openfaas:9090"}}
        ports = [port["port"] for rule in objects(values)["NetworkPolicy", NAMESPACE, NAME]["spec"]["egress"]
                 for port in rule["ports"]]
        self.assertIn(9090, ports)
        self.assertIn(8080, ports)
        self.assertNotIn(8080, [port["port"] for rule in objects({"networkPolicy": {"jobs": {"gateways": []}}})[
            "NetworkPolicy", NAMESPACE, NAME]["spec"]["egress"] for port in rule["ports"]])

    def test_a_gateway_without_credentials_has_no_secret(self):
        made = objects({"openfaas": {"gateway": "http://gateway:8080"}})
        self.assertNotIn("openfaas", [each["name"] for each in pod(made["Deployment", NAMESPACE, NAME])["volumes"]])

    def test_what_is_no_gateway_is_refused(self):
        for wrong in ("https://gateway:443", "gateway:8080", "http://user:word@gateway"):
            self.assertNotEqual(0, render({"openfaas": {"gateway": wrong}}, check=False).returncode, wrong)
