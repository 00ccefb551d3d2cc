#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs are deleted in every phase, with their store reachable and not, alone and with their
namespace: the finalizer always ends, no function stays, no object but kept results; what could not
be cleaned up is named in an event.

    operator_deletion_test.py BIN_FOLDER [unittest arguments]
"""
import json
import signal
import sys
import time
import unittest

from operator_support import Cluster
from s3_servers import ACCESS_KEY, SECRET_KEY, RealServer

BIN = ""
EPOCHS = {"epochs": 40}
# Clean-up is tried for a minute.
ENDS_WITHIN = 90


class Deletion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN)
        cls.host = cls.cluster.start_host()
        cls.operator = cls.cluster.start_operator(cls.host)
        cls.cluster.create_secret("s3", accessKeyId=ACCESS_KEY, secretAccessKey=SECRET_KEY)
        cls.minio = RealServer("minio")

    @classmethod
    def tearDownClass(cls):
        cls.minio.close()
        cls.cluster.close()

    def begin(self, name, namespace="default", s3=False, **spec):
        return self.cluster.create_job(self.cluster.manifest(
            name, namespace=namespace, minio=self.minio if s3 else None,
            **{"training": EPOCHS, **spec}))

    def until_phase(self, name, *phases, namespace="default"):
        def reached():
            job = self.cluster.get(name, namespace)
            return job if job.get("status", {}).get("phase") in phases else None
        return self.cluster.wait_for(f"{name} is {phases}", reached, 60, every=0.02)

    def delete_and_wait(self, name, namespace="default", seconds=ENDS_WITHIN):
        begin = time.monotonic()
        self.cluster.api("DELETE", self.cluster.job_path(name, namespace))
        self.cluster.wait_for(f"{name} is gone", lambda: self.cluster.get(name, namespace) is None,
                              seconds)
        return time.monotonic() - begin

    def nothing_left(self, job, results=False):
        left = [key for key in self.cluster.store_keys(job)
                if not (results and "/results/" in key)]
        self.assertEqual(left, [])
        self.cluster.wait_for("no function is left", lambda: not self.cluster.functions(), 15)
        _, secrets = self.cluster.api("GET", f"/api/v1/namespaces/"
                                      f"{job['metadata']['namespace']}/secrets")
        self.assertEqual([s["metadata"]["name"] for s in secrets["items"]
                          if s["metadata"]["name"].startswith(job["metadata"]["name"])], [])

    def test_at_every_phase(self):
        took = {}
        for phase in ("created", "Starting", "Running", "Suspended", "Complete", "Failed"):
            name = f"at-{phase.lower()}"
            spec = {}
            if phase == "Suspended":
                spec = {"suspend": True}
            if phase == "Complete":
                spec = {"training": {"epochs": 1}}
            if phase == "Failed":
                spec = {"dataset": {"uri": "file:///nowhere/digits"}}
            job = self.begin(name, **spec)
            if phase != "created":
                self.until_phase(name, phase)
            if phase in ("Complete", "Failed"):  # what scripts wait for
                self.cluster.kubectl("wait", f"--for=condition={phase}", f"stj/{name}",
                                     "--timeout=30s")
            took[phase] = self.delete_and_wait(name)
            self.nothing_left(job, results=phase in ("Complete", "Failed"))
        print("\ndeletion took", {phase: f"{seconds:.1f} s" for phase, seconds in took.items()})

    def test_between_phases(self):
        """What lasts a moment may be over when it is met: then the next phase is deleted."""
        def profiled(name):
            path = self.cluster.manifest(name, training=EPOCHS)
            job = json.loads(path.read_text())
            del job["spec"]["profile"]
            path.write_text(json.dumps(job))
            return self.cluster.create_job(path)
        took = {}
        job = profiled("profiles")
        self.until_phase("profiles", "Profiling", "Planning", "Starting", "Running", "Complete")
        took["Profiling"] = self.delete_and_wait("profiles")
        self.nothing_left(job, results=True)
        for what, change in (("Suspending", {"suspend": True}),
                             ("Replanning", {"objective": {"fixed": {"memory": "448Mi"}}})):
            name = what.lower()
            job = self.begin(name)
            self.until_phase(name, "Running")
            self.cluster.patch_job(name, {"spec": change})
            self.cluster.wait_for(what, lambda: any(
                seen in json.dumps(self.cluster.get(name)["status"]["conditions"])
                or self.cluster.get(name)["status"]["phase"] == seen
                for seen in (what, "Suspended", "Replanned", "Complete")), 60, every=0.02)
            took[what] = self.delete_and_wait(name)
            self.nothing_left(job, results=True)
        print("\ndeletion took", {phase: f"{seconds:.1f} s" for phase, seconds in took.items()})

    def test_with_a_store_that_refuses_connections(self):
        self.begin("refused", s3=True)
        self.until_phase("refused", "Running")
        self.minio.process.kill()
        self.minio.process.wait()
        try:
            took = self.delete_and_wait("refused", seconds=240)
        finally:
            self.minio.start()
        print(f"\nwith a store that refuses connections the finalizer ended after {took:.0f} s")
        self.cluster.wait_for("no function is left", lambda: not self.cluster.functions(), 15)

    def test_with_a_namespace_whose_secret_goes_first(self):
        self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": "crew"}})
        self.cluster.create_secret("s3", namespace="crew", accessKeyId=ACCESS_KEY,
                                   secretAccessKey=SECRET_KEY)
        self.begin("ours", namespace="crew", s3=True)
        self.until_phase("ours", "Running", namespace="crew")
        self.assertEqual(self.cluster.api("DELETE", "/api/v1/namespaces/crew/secrets/s3")[0], 200)
        begin = time.monotonic()
        self.cluster.api("DELETE", "/api/v1/namespaces/crew")
        self.cluster.wait_for("the namespace is gone", lambda: self.cluster.api(
            "GET", "/api/v1/namespaces/crew")[0] == 404, 240)
        print(f"\nwithout its Secret the namespace was gone after {time.monotonic() - begin:.1f} s")
        self.cluster.wait_for("no function is left", lambda: not self.cluster.functions(), 15)

    def test_with_a_namespace(self):
        self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        job = self.begin("mine", namespace="team")
        self.until_phase("mine", "Running", namespace="team")
        begin = time.monotonic()
        self.cluster.api("DELETE", "/api/v1/namespaces/team")
        self.cluster.wait_for("the namespace is gone", lambda: self.cluster.api(
            "GET", "/api/v1/namespaces/team")[0] == 404, ENDS_WITHIN)
        print(f"\nthe namespace was gone after {time.monotonic() - begin:.1f} s")
        self.nothing_left(job)

    def test_with_a_store_that_does_not_answer(self):
        self.begin("stuck", s3=True)
        self.until_phase("stuck", "Running")
        self.minio.process.send_signal(signal.SIGSTOP)
        try:
            took = self.delete_and_wait("stuck", seconds=240)
        finally:
            self.minio.process.send_signal(signal.SIGCONT)
        print(f"\nwithout a store the finalizer ended after {took:.0f} s")
        self.cluster.wait_for("no function is left", lambda: not self.cluster.functions(), 15)

        def told():
            _, events = self.cluster.api("GET",
                                         "/apis/events.k8s.io/v1/namespaces/default/events")
            return [event["note"] for event in events["items"]
                    if event["reason"] == "CleanupIncomplete"
                    and event["regarding"]["name"] == "stuck"]
        notes = self.cluster.wait_for("the event CleanupIncomplete", told, 30)
        self.assertIn("lambdadnn/default/", notes[0])

    def test_with_a_store_that_answers_again(self):
        job = self.begin("back", s3=True)
        self.until_phase("back", "Running")
        self.minio.process.send_signal(signal.SIGSTOP)
        self.cluster.api("DELETE", self.cluster.job_path("back"))
        time.sleep(5)
        self.minio.process.send_signal(signal.SIGCONT)
        self.cluster.wait_for("it is gone", lambda: self.cluster.get("back") is None, 60)
        uid = job["metadata"]["uid"]
        self.assertEqual([key for key in self.minio.keys() if uid in key], [])


if __name__ == "__main__":
    BIN = sys.argv.pop(1)
    unittest.main(verbosity=2)
