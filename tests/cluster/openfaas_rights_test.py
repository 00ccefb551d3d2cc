# SPDX-License-Identifier: Apache-2.0
"""A job behind a gateway of OpenFaaS whose operator has an account without any right in the functions'
namespace: it knows of functions what the gateway counts, says so, and trains to the same bits, also
where a function is killed."""
import json

import yaml

import cluster_case
from cluster_api import condition
from faults import Faults
from on_openfaas import OnOpenFaas

RULES = yaml.safe_load((cluster_case.ROOT / "charts/lambdadnn-operator/files/rbac-rules.yaml").read_text())["sets"]
NAME, SPACE = "blind-operator", "default"
GROUP = "rbac.authorization.k8s.io"


class WithoutPods(OnOpenFaas):
    @classmethod
    def operators_kubeconfig(cls):
        """Of an account with the rules for jobs alone."""
        cls.kube.apply_objects([
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": SPACE}},
            {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": RULES["jobs"]},
            {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
             "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME},
             "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": SPACE}]}])
        for path in (f"/apis/{GROUP}/v1/clusterroles/{NAME}", f"/apis/{GROUP}/v1/clusterrolebindings/{NAME}",
                     f"/api/v1/namespaces/{SPACE}/serviceaccounts/{NAME}"):
            cls.addClassCleanup(cls.kube.request, "DELETE", path)
        answer = cls.request("POST", f"/api/v1/namespaces/{SPACE}/serviceaccounts/{NAME}/token",
                             {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        config = yaml.safe_load(cls.config.kubeconfig().read_text())
        config["users"][0]["user"] = {"token": answer["status"]["token"]}
        path = cls.folder / "account.conf"
        path.write_text(json.dumps(config))
        return path

    def test_the_same_bits_and_the_status_says_what_is_not_known(self):
        self.create("counted", 10)
        job = self.running("counted", 5)
        self.assertEqual("False", condition(job, "PeersConnected"))
        (said,) = [each for each in job["status"]["conditions"] if each["type"] == "PeersConnected"]
        self.assertEqual("PeerChannelOff", said["reason"])
        self.assertIn("the operator may not read their pods", said["message"])
        pod = self.pods("counted")[0]
        Faults(self.cluster).kill_function(pod["metadata"]["uid"])
        job = self.complete("counted")
        self.assertEqual(self.digest_on_one_machine(10), job["status"]["model"]["digest"])
        self.nothing_left("counted")
