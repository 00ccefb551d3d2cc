#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs on pods of Knative: trained on the test cluster by a real operator, with the bits that the
same plan gives on one machine.

    training_test.py PRESET [unittest arguments]      e.g. release

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays. The rest is
told by on_pods.py; chaos_test.py disturbs such jobs.
"""
import on_pods
from on_pods import OnPods


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

    def test_2_a_deleted_job_leaves_nothing(self):
        self.create("short-lived", 400)
        self.running("short-lived", 5)
        self.remove("short-lived")
        self.nothing_left()


if __name__ == "__main__":
    on_pods.main()
