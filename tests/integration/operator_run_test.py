#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lambdadnn-operator at a real kube-apiserver: a job that kubectl applies is trained by functions
of a host that outlives the operator, to the bits of `lambdadnn run` of the same file.

    operator_run_test.py BIN_FOLDER [unittest arguments]
"""
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
        operator = cluster.start_operator(self.host)
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


if __name__ == "__main__":
    BIN = sys.argv.pop(1)
    unittest.main(verbosity=2)
