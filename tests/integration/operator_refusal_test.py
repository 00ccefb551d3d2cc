# SPDX-License-Identifier: Apache-2.0
"""What only an operator can see to be wrong with a job, and says in a condition: a missing Secret, a
store that does not answer, an objective that cannot be met, a model too large for any function.

tests/data/refused/NAME.txt holds the condition of NAME.yaml, "TYPE=STATUS REASON" and the message;
LAMBDADNN_UPDATE_CONDITIONS=1 writes them anew (read them before they are committed). `lambdadnn run`
of the same file ends with the same sentence.
"""
import os
import pathlib
import re
import subprocess
import unittest

import torch

import torch_script_modules
from operator_support import Cluster
from options import OPTIONS
from s3_servers import CREDENTIALS

REFUSED = pathlib.Path(__file__).resolve().parents[1] / "data/refused"
# Accepted=False: it is tried again until the store answers.
WAITS = {"Accepted": "False"}
ENDS = {"Failed": "True"}
# `lambdadnn run` has no Secrets, no other backend, and its user's rights.
IN_A_CLUSTER_ONLY = {"secret-missing", "secret-without-key", "backend-knative", "store-not-allowed"}
EXIT_CODES = {"Infeasible": 3, "SliceFailed": 1, "StoreNotUsable": 4}  # else 2


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.host = cls.cluster.start_host()
        cls.operator = cls.cluster.start_operator(
            cls.host, "--readable", f"file://{cls.cluster.folder}",
            "--module-checker", OPTIONS.bin / "lambdadnn-worker")
        three_outputs = torch_script_modules.Flat(28 * 28, 3)
        torch.jit.script(three_outputs).save(str(cls.cluster.folder / "module.pt"))
        half = {"accessKeyId": "me"}
        for name, data in (("half", half), ("whole", {**half, "secretAccessKey": "mine"})):
            status, made = cls.cluster.api("POST", "/api/v1/namespaces/default/secrets", {
                "metadata": {"name": name}, "stringData": data})
            assert status == 201, made

    def manifest(self, name):
        text = (REFUSED / f"{name}.yaml").read_text().replace(
            "/FOLDER", str(self.cluster.folder).rstrip("/"))
        path = self.cluster.folder / f"{name}.yaml"
        path.write_text(text.replace("name: digits", f"name: {name}", 1))
        return path

    def verdict(self, name):
        """The condition that says no, once it is there."""
        for condition in (self.cluster.get(name).get("status") or {}).get("conditions", []):
            if {**WAITS, **ENDS}.get(condition["type"]) == condition["status"]:
                return condition
        return None

    def types_that_hold(self, name):
        conditions = self.cluster.get(name)["status"]["conditions"]
        return {condition["type"] for condition in conditions if condition["status"] == "True"}

    def portable(self, text):
        """Without what differs from run to run."""
        text = text.replace(str(self.cluster.folder), "/FOLDER")
        text = re.sub(r" \(given up after \d+ attempts? in \d+ s\)", "", text)
        text = re.sub(r"worker-\d+ failed", "worker-N failed", text)  # whichever sees it first
        return re.sub(r"(, and [\d.]+ s have passed)?; raise objective.deadlineSeconds to \d+$",
                      "; raise objective.deadlineSeconds to N", text, flags=re.MULTILINE)

    def test_each_says_what_is_wrong_and_what_to_do(self):
        names = sorted(file.stem for file in REFUSED.glob("*.yaml"))
        self.assertGreaterEqual(len(names), 12)
        for name in names:
            self.cluster.kubectl("apply", "-f", self.manifest(name))
        for name in names:
            with self.subTest(name):
                found = self.cluster.wait_for(f"a verdict on {name}", lambda: self.verdict(name))
                text = (f"{found['type']}={found['status']} {found['reason']}\n"
                        f"{self.portable(found['message'])}\n")
                written = REFUSED / f"{name}.txt"
                if os.environ.get("LAMBDADNN_UPDATE_CONDITIONS"):
                    written.write_text(text)
                self.assertEqual(text, written.read_text())
                if name.startswith("module-"):  # before any function starts
                    self.assertEqual(found["type"], "Failed")
                    self.assertNotIn("Accepted", self.types_that_hold(name))
        self.cluster.wait_for("no function is left", lambda: not self.cluster.functions(), 30)
        for name in names:
            self.cluster.api("DELETE", self.cluster.job_path(name))
        self.cluster.wait_for("none is left", lambda: not self.cluster.api(
            "GET", self.cluster.job_path())[1]["items"])

    def test_run_says_the_same(self):
        for file in sorted(REFUSED.glob("*.yaml")):
            if file.stem in IN_A_CLUSTER_ONLY:
                continue
            with self.subTest(file.stem):
                expected = file.with_suffix(".txt").read_text().splitlines()
                done = subprocess.run(
                    [self.cluster.programs / "lambdadnn", "run", self.manifest(file.stem), "--out",
                     self.cluster.folder / f"run-{file.stem}"], capture_output=True, text=True,
                    timeout=60, env={**os.environ, **CREDENTIALS})
                reason = expected[0].split()[1]
                self.assertEqual(done.returncode, EXIT_CODES.get(reason, 2), done.stderr)
                said = self.portable(done.stdout + done.stderr)
                sentence = expected[1].removeprefix("spec.objectStore: ")
                if reason == "Infeasible":  # another platform has other figures
                    said, sentence = (re.sub(r"[\d.]+( functions?)?", "N", text) for text in (said, sentence))
                self.assertIn(sentence, said)
