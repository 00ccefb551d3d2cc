#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lambdadnn-operator at a real kube-apiserver: a job that kubectl applies is trained by functions
of a host that outlives the operator, to the bits of `lambdadnn run` of the same file.

    operator_run_test.py BIN_FOLDER [unittest arguments]
"""
import subprocess
import sys
import unittest

from operator_support import Cluster

BIN = ""
EPOCHS = {"epochs": 4}


class OperatorRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN)
        cls.host = cls.cluster.start_host()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def test_an_applied_job_completes_with_the_digest_of_lambdadnn_run(self):
        cluster = self.cluster
        kubeconfig = cluster.operator_user()
        check = subprocess.run(
            [cluster.programs / "lambdadnn-operator", "--check", "--leader-elect", "--kubeconfig",
             kubeconfig, "--host-socket", self.host.socket, "--check-store",
             f"file://{cluster.folder}/store"], capture_output=True, text=True)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertNotIn("warning", check.stdout)
        operator = cluster.start_operator(self.host, "--leader-elect", kubeconfig=kubeconfig)
        path = cluster.manifest("first", training=EPOCHS)
        cluster.kubectl("apply", "-f", path)
        job = cluster.wait_complete("first")
        reference = cluster.bench.run(job=path)
        self.assertEqual(job["status"]["model"]["digest"], reference.digest())
        self.assertEqual(job["status"]["phase"], "Complete")

        # Nothing is left but results, and the key of the job is gone.
        self.assertEqual(cluster.functions(), {})
        keys = cluster.store_keys(job)
        self.assertTrue(keys)
        self.assertEqual([key for key in keys if "/results/" not in key], [])
        secrets = cluster.kubectl("get", "secrets", "-o", "name").stdout
        self.assertNotIn("first-lambdadnn-key", secrets)

        # People see what happened without logs.
        described = cluster.kubectl("describe", "stj", "first").stdout
        for word in ("Complete", "Planned", "Events:"):
            self.assertIn(word, described)
        self.assertEqual(operator.stop(), 0)


    def test_a_check_names_what_is_missing(self):
        cluster = self.cluster
        kubeconfig = cluster.operator_user("nobody", sets=("jobs",), without=("jobs", 1, "patch"))
        check = subprocess.run(
            [cluster.programs / "lambdadnn-operator", "--check", "--leader-elect", "--kubeconfig",
             kubeconfig, "--host-socket", "/nowhere/host.sock"], capture_output=True, text=True)
        self.assertEqual(check.returncode, 4, check.stdout)
        for words in ("may not patch serverlesstrainingjobs/status in lambdadnn.io",
                      "may not update leases", "missing  function host", "warning  CRD"):
            self.assertIn(words, check.stdout)

    def test_in_named_namespaces_with_roles_alone(self):
        """No right in the whole cluster; the jobs of other namespaces are left alone."""
        cluster = self.cluster
        for name in ("team-a", "team-b", "other"):
            cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        kubeconfig = cluster.operator_user("teams", sets=("jobs", "lease"),
                                           namespaces=("team-a", "team-b"))
        operator = cluster.start_operator(
            self.host, "--namespaces", "team-a,team-b", "--leader-elect", "--lease-namespace",
            "team-a", "--lease-name", "teams", kubeconfig=kubeconfig)
        cluster.create_job(cluster.manifest("mine", namespace="other", training={"epochs": 1}))
        for name in ("team-a", "team-b"):
            cluster.create_job(cluster.manifest("mine", namespace=name, training={"epochs": 1}))
            cluster.wait_complete("mine", namespace=name)
        self.assertNotIn("status", cluster.get("mine", "other"))
        self.assertEqual(operator.stop(), 0)


if __name__ == "__main__":
    BIN = sys.argv.pop(1)
    unittest.main(verbosity=2)
