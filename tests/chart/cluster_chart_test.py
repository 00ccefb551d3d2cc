# SPDX-License-Identifier: Apache-2.0
"""The chart on a whole cluster: installed, trained with, upgraded and rolled back under a running
job, uninstalled under one, installed again.

The rest is told by cluster_chart_case.py; cluster_upgrade_test.py comes from another version.
"""
import yaml

from chart_support import RELEASE, ROOT
from cluster_chart_case import CRD, PATIENT, STORE, ChartCase, settings

QUICKSTART = ROOT / "examples/quickstart/knative.yaml"


class OnACluster(ChartCase):
    """The tests go on from each other, in order."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        minio = cls.cluster.images.of_program("minio", settings.program("minio"))
        cls.script("load-image", str(minio))

    def test_1_with_minio_a_newcomer_needs_two_commands(self):
        self.install(minio={"enabled": True,
                            "image": {"repository": "dev.local/minio", "tag": "1"}})
        self.assertIn("Succeeded", self.helm("test", RELEASE))
        self.kube.kubectl("apply", "-n", self.SPACE, "-f", str(QUICKSTART))
        self.complete("digits")
        self.kube.kubectl("delete", "-n", self.SPACE, "stj/digits", "--timeout=300s")
        self.uninstall()

    def test_2_upgrade_and_rollback_do_not_disturb_a_job(self):
        values = {"objectStore": STORE, "uninstall": PATIENT}
        self.install(**values)
        spec = yaml.safe_load(QUICKSTART.read_text())["spec"]
        spec["training"]["epochs"] = 2000
        self.start("long", {**spec, "objective": {"deadlineSeconds": 100000},
                            "checkpoint": {"intervalSeconds": 2}})
        self.running("long", 20)
        before = self.functions()
        self.upgrade(**values, logging={"level": "debug"})
        self.goes_on("long")
        self.rollback()
        job = self.goes_on("long")
        self.assertEqual(self.functions(), before)
        self.assertEqual(job["status"].get("usage", {}).get("restarts", 0), 0)

    def test_3_uninstalling_keeps_jobs_and_leaves_nothing_running(self):
        done = self.iteration("long")
        self.uninstall()
        self.assertIsNotNone(self.kube.get(CRD))
        job = self.job("long")
        self.assertTrue(job["spec"]["suspend"])
        self.assertNotIn("finalizers", job["metadata"])
        self.assertEqual(job["status"]["phase"], "Suspended")
        self.assertGreaterEqual(job["status"]["progress"]["iteration"], done)
        self.nothing_runs()

    def test_4_the_next_installation_goes_on(self):
        self.install(objectStore=STORE)
        self.assertGreater(self.iteration("long"), 0)
        self.suspend("long", False)
        self.goes_on("long")

    def test_5_a_namespace_whose_secrets_are_gone_first_can_be_deleted(self):
        """Under a running job. Kubernetes itself retries after half of the pods' grace period (300 s)."""
        self.kube.kubectl("delete", "secrets", "--all", "-n", self.SPACE)
        self.delete_space()
        self.uninstall()
