#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs on pods of Knative: trained on the test cluster by a real operator, with the bits that the
same plan gives on one machine.

    training_test.py PRESET [unittest arguments]      e.g. release

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays. The rest is
told by on_pods.py; chaos_test.py disturbs such jobs.
"""
import on_pods
import settings
from faults import Faults
from on_pods import SERVICES, OnPods

ACTIVATOR = ("-n", "knative-serving", "deployment/activator")
NETWORK_SERVICES = ("/apis/networking.internal.knative.dev/v1alpha1/namespaces/default/"
                    "serverlessservices")


class Training(OnPods):
    def test_1_a_job_trains_on_pods_to_the_bits_of_one_machine(self):
        self.create("plain", 4)
        self.running("plain", 1)
        sizes = {}
        for pod in self.pods("plain"):
            container = next(each for each in pod["spec"]["containers"]
                             if each["name"] == "function")
            sizes.setdefault(pod["metadata"]["labels"]["lambdadnn.io/group"], []).append(
                container["resources"]["limits"]["memory"])
        self.assertEqual({"workers", "servers"}, set(sizes))
        self.assertEqual(["384Mi"] * 4, sizes["workers"])
        self.assertEqual({"128Mi"}, set(sizes["servers"]))
        self.assertEqual({"n1", "n2"}, {pod["spec"]["nodeName"] for pod in self.pods("plain")})
        job = self.complete("plain")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.nothing_left("plain")

    def scale_activators(self, count):
        self.kube.kubectl("scale", f"--replicas={count}", *ACTIVATOR)
        self.kube.kubectl("rollout", "status", "--timeout=120s", *ACTIVATOR)

    def test_2_the_same_job_through_the_ingress_and_two_activators(self):
        self.scale_activators(2)
        self.addCleanup(self.scale_activators, 1)
        # Nobody among the clients, the operator included, reaches a pod at its own address.
        with Faults(self.cluster).cut_clients(settings.POD_RANGE) as dropped:
            self.create("routed", 4, {"runtime": {"addressing": "Service"}})
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
        self.nothing_left("routed")

    def test_3_a_deleted_job_leaves_nothing(self):
        self.create("short-lived", 400)
        self.running("short-lived", 5)
        self.remove("short-lived")
        self.nothing_left()


if __name__ == "__main__":
    on_pods.main()
