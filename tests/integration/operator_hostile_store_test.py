# SPDX-License-Identifier: Apache-2.0
"""Jobs whose stores mean harm (hostile_store.py), each with a store and a Secret of its own, of
fifty teams, beside a job whose store does not, on a real API server: the good one trains to its end,
the operator stays small, and each of the others is told what its store does."""
import json
import pathlib
import re
import subprocess
import sys
import time
import types
import unittest

from operator_support import Cluster
from options import OPTIONS
from run_support import HERE

TEAMS = 50
MOST_BYTES = 1 << 30
GOOD_WITHIN, TOLD_WITHIN = 180, 300
ALL_JOBS = "/apis/lambdadnn.io/v1alpha1/serverlesstrainingjobs"


def peak(pid):
    """The largest resident set of a process."""
    return int(re.search(r"VmHWM:\s+(\d+)",
                         pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) * 1024


class HostileStores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.stores = subprocess.Popen([sys.executable, HERE / "hostile_store.py", str(OPTIONS.jobs)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.stores.communicate)  # its input ends, and so does it
        cls.modes = json.loads(cls.stores.stdout.readline())
        cls.host = cls.cluster.start_host()
        cls.operator = cls.cluster.start_operator(cls.host)
        cls.operator.wait_for_line("leading")

    def create_hostile(self, number, port):
        team, name = f"team-{number % TEAMS}", f"hostile-{number}"
        if number < TEAMS:
            self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": team}})
        secret = f"s3-{number}"
        self.cluster.create_secret(secret, team, accessKeyId="key", secretAccessKey="secret")
        path = self.cluster.manifest(name, team, minio=types.SimpleNamespace(port=port),
                                     dataset={"uri": "file:///nowhere"})
        job = json.loads(path.read_text())
        job["spec"]["objectStore"]["credentialsSecretRef"]["name"] = secret
        path.write_text(json.dumps(job))
        self.cluster.create_job(path)

    def told(self):
        """{job: the message of its condition Accepted}."""
        status, page = self.cluster.api("GET", ALL_JOBS)
        self.assertEqual(status, 200, page)
        return {job["metadata"]["name"]: condition["message"] for job in page["items"]
                for condition in job.get("status", {}).get("conditions", [])
                if condition["type"] == "Accepted" and condition["status"] == "False"}

    def test_they_cost_their_own_jobs_alone(self):
        for number, (_, port) in enumerate(self.modes):
            self.create_hostile(number, port)
        begun = time.monotonic()
        self.cluster.create_job(self.cluster.manifest("good", training={"epochs": 2}))
        self.cluster.wait_complete("good", seconds=GOOD_WITHIN)
        print(f"\nthe good job took {time.monotonic() - begun:.1f} s", flush=True)
        self.cluster.wait_for("all are told", lambda: len(self.told()) == OPTIONS.jobs, TOLD_WITHIN, every=2)
        messages = self.told()
        for number, (mode, port) in enumerate(self.modes):
            with self.subTest(mode=mode, number=number):
                self.assertIn(f"127.0.0.1:{port}", messages[f"hostile-{number}"])
        most = peak(self.operator.pid)
        print(f"the operator took {most / 1e6:.0f} MB at most", flush=True)
        self.assertLess(most, MOST_BYTES)
        self.assertTrue(self.operator.alive())
