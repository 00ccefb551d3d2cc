# SPDX-License-Identifier: Apache-2.0
"""What README.md tells to type where OpenFaaS serves functions, typed word for word: chart with MinIO,
its check, the quickstart's job; and the bits of the same plan on one machine. The rest is told by
readme_test.py.
"""
import json
import os

import cluster_case
import openfaas
from cluster_api import condition
from cluster_case import ROOT
from on_openfaas import DEPLOYMENTS
from readme_test import Typed, commands, script


class OpenFaasReadme(Typed):
    EXAMPLE = "examples/quickstart/openfaas.yaml"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        openfaas.build(cls.config)
        cls.cluster.add_openfaas()
        if os.environ.get("LAMBDADNN_IMAGES") != "kept":
            cluster_case.build_images()

    def tearDown(self):
        super().tearDown()
        self.kube.kubectl("delete", "secret", "basic-auth", "-n", "lambdadnn-system", "--ignore-not-found", check=False)

    def test_readme(self):
        self.shell(self.load())
        lines = commands((ROOT / "README.md").read_text(), "## With OpenFaaS", "## Commands")
        # Another test may have made it, and helm leaves it.
        lines = [line.replace("create namespace lambdadnn-system",
                              "create namespace lambdadnn-system --dry-run=client -o yaml | kubectl apply -f -")
                 for line in lines]
        session = self.shell(script(lines, ""))
        self.assertRegex(session, r"digits +Running")
        job = json.loads(self.kube.kubectl("get", "stj", "digits", "-o", "json").stdout)
        self.assertEqual("True", condition(job, "Complete"))
        self.assertEqual(self.digest_of_its_plan(), job["status"]["model"]["digest"])
        self.wait("no function is left", lambda: not self.kube.get(DEPLOYMENTS)["items"])
