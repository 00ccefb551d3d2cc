# SPDX-License-Identifier: Apache-2.0
"""Jobs are deleted in every phase, with their store reachable and not, alone and with their
namespace: the finalizer always ends, no function stays, no object but kept results; what could not
be cleaned up is named in an event."""
import json
import os
import signal
import time
import unittest

from kube_api import job_id
from operator_support import Cluster
from options import OPTIONS
from s3_servers import ACCESS_KEY, SECRET_KEY, RealServer

EPOCHS = {"epochs": 40}
# Clean-up is tried for a minute.
ENDS_WITHIN = 90


class Deletion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
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

    def freeze(self, name):
        """Stops the job's functions, so that it stays in its phase; they end by SIGKILL alone."""
        functions = self.cluster.wait_for(f"functions of {name}", self.cluster.functions, 60,
                                          every=0.02)
        for pid in functions:
            os.kill(pid, signal.SIGSTOP)

    def between(self, name, phase, reason=""):
        """Deletes a job that is in this phase, and has a condition with this reason."""
        def reached():
            status = self.cluster.get(name).get("status", {})
            reasons = [each["reason"] for each in status.get("conditions", ())]
            return status.get("phase") == phase and (not reason or reason in reasons)
        self.cluster.wait_for(f"{name} is {phase} {reason}", reached, 60, every=0.02)
        job = self.cluster.get(name)
        self.assertEqual(job["status"]["phase"], phase)
        seconds = self.delete_and_wait(name)
        self.nothing_left(job)
        print(f"\ndeletion in {reason or phase} took {seconds:.1f} s")

    def test_while_it_is_measured(self):
        path = self.cluster.manifest("profiles", training=EPOCHS)
        job = json.loads(path.read_text())
        del job["spec"]["profile"]
        path.write_text(json.dumps(job))
        self.cluster.create_job(path)
        self.freeze("profiles")
        self.between("profiles", "Profiling")

    def test_while_it_is_being_suspended(self):
        self.begin("suspending")
        self.until_phase("suspending", "Running")
        self.freeze("suspending")
        self.cluster.patch_job("suspending", {"spec": {"suspend": True}})
        self.between("suspending", "Suspending")

    def test_while_it_gets_another_plan(self):
        self.begin("replanning")
        self.until_phase("replanning", "Running")
        self.freeze("replanning")
        self.cluster.patch_job("replanning", {"spec": {"objective": {"fixed": {"memory": "448Mi"}}}})
        self.between("replanning", "Running", "Replanning")

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
        place = job_id(job)
        self.assertEqual([key for key in self.minio.keys() if place in key], [])
