# SPDX-License-Identifier: Apache-2.0
"""After everything else on a cluster: nothing of the product is left in it but what is documented to
remain (docs/operations.md), and nothing of the cluster on the machine once it is down.

On the cluster that LAMBDADNN_CLUSTER_DIR names.
"""
import json
import os

import api_lists
import cluster_case
from leftovers import Leftovers

OURS = "lambdadnn"
# The kind of jobs (with what Kubernetes makes of it), MinIO's volume, the namespace that
# `helm install --create-namespace` made, and the Lease of the operators in it.
REMAINS = {
    "customresourcedefinitions": {"serverlesstrainingjobs.lambdadnn.io"},
    "apiservices": {"v1alpha1.lambdadnn.io"},
    "persistentvolumeclaims": {"data-lambdadnn-operator-minio-0"},
    "namespaces": {"lambdadnn-system"},
    "leases": {"lambdadnn-operator"},
}
# What Kubernetes writes about objects, and forgets by itself.
HISTORY = {"events"}


class End(cluster_case.ClusterCase):
    @classmethod
    def setUpClass(cls):
        assert os.environ.get(cluster_case.KEPT), f"{cluster_case.KEPT} names no cluster"
        super().setUpClass()

    def test_1_nothing_of_jobs_or_operators_is_left(self):
        self.wait("nothing of ours", lambda: not self.left(), 120)

    def told(self):
        return json.dumps(self.left())

    def left(self):
        return {resource: names for path, resource, _ in api_lists.lists(self.kube.get)
                if resource not in HISTORY and (names := self.named(path, resource))}

    def named(self, path, resource):
        """Objects with our name or label that should not remain."""
        items = (self.kube.get(path) or {}).get("items", ())
        if resource == "serverlesstrainingjobs":
            return sorted(each["metadata"]["name"] for each in items)
        return sorted({
            each["metadata"]["name"] for each in items
            if OURS in json.dumps([each["metadata"]["name"], each["metadata"].get("labels", {})])
            and each["metadata"]["name"] not in REMAINS.get(resource, ())})

    def test_2_nothing_of_the_cluster_is_left(self):
        left = Leftovers(self.cluster)
        self.assertTrue(left.all())
        self.script("down")
        self.assertEqual([], left.all())
