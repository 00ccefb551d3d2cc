# SPDX-License-Identifier: Apache-2.0
"""Jobs behind a real gateway of OpenFaaS: trained on the test cluster by a real operator, with the
bits that the same plan gives on one machine. openfaas_chaos_test.py disturbs such jobs.

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays.
"""
import cgroups
import openfaas
import pod_processes
from cluster_api import condition
from on_openfaas import OnOpenFaas
from on_pods import JOBS
from training_test import SIZES

RANKS = {*(f"worker-{rank}" for rank in range(4)), *(f"server-{rank}" for rank in range(3))}


class Trained(OnOpenFaas):
    def test_1_a_job_trains_to_the_bits_of_one_machine(self):
        self.create("plain", 4)
        self.running("plain", 1)
        self.assertEqual({f"plain-{rank}" for rank in RANKS}, set(self.functions()))
        for pod in self.pods("plain"):
            self.bounded(pod, *SIZES[pod["metadata"]["labels"]["lambdadnn.io/group"]])
        job = self.complete("plain")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.nothing_left("plain")

    def bounded(self, pod, memory_mib, cores):
        memory, quota = cgroups.limits_of(pod_processes.function_of(self.cluster, pod["metadata"]["uid"]))
        self.assertEqual(memory_mib << 20, memory)
        self.assertAlmostEqual(cores, quota, delta=0.002)

    def test_2_the_key_is_in_a_file_and_in_no_deployment(self):
        self.create("secret", 4)
        self.running("secret", 1)
        pod = self.pods("secret")[0]
        (container,) = pod["spec"]["containers"]
        variables = {each["name"]: each["value"] for each in container["env"]}
        self.assertNotIn("LAMBDADNN_JOB_KEY", variables)
        self.assertIn("/var/openfaas/secrets/lambdadnn-", variables["LAMBDADNN_JOB_KEY_FILE"])
        self.assertFalse([name for name in variables if "SECRET_ACCESS_KEY" in name and not name.endswith("_FILE")])
        self.complete("secret")

    def test_3_suspended_and_resumed(self):
        self.create("paused", 10)
        self.running("paused", 5)
        self.request("PATCH", f"{JOBS}/paused", {"spec": {"suspend": True}})
        self.wait("its functions are gone", lambda: not self.functions())
        self.assertEqual("True", condition(self.job("paused"), "Suspended"))
        self.request("PATCH", f"{JOBS}/paused", {"spec": {"suspend": False}})
        job = self.complete("paused")
        self.assertEqual(self.digest_on_one_machine(10), job["status"]["model"]["digest"])
        self.nothing_left("paused")

    def test_4_a_deleted_job_leaves_nothing(self):
        self.create("short-lived", 400)
        self.running("short-lived", 5)
        self.remove("short-lived")
        self.nothing_left()

    def test_5_names_that_are_taken(self):
        """By a user's function: it stays, and the job's function has another name."""
        status, text = self.gateway("POST", "/system/functions", {
            "service": "taken-worker-0", "image": "dev.local/test-function:1", "namespace": openfaas.FUNCTIONS})
        self.assertEqual(202, status, text)
        self.addCleanup(self.gateway, "DELETE", "/system/functions", {"functionName": "taken-worker-0"})
        self.create("taken", 4)
        self.running("taken", 1)
        names = {name for name, labels in self.functions().items()
                 if labels.get("lambdadnn.io/job-name") == "taken"}
        self.assertEqual(7, len(names))
        self.assertNotIn("taken-worker-0", names)
        self.assertTrue([name for name in names if name.startswith("taken-") and name.endswith("-worker-0")])
        job = self.complete("taken")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.wait("only the user's function is left", lambda: set(self.functions()) == {"taken-worker-0"})
