# SPDX-License-Identifier: Apache-2.0
"""Two replicas of the operator whose clocks are 10 minutes behind and 10 minutes ahead of the API
server's, and functions whose clock is an hour ahead of the object store's. The leader is killed while
a job runs: the lease, the job's deadline, its time to live, its requests to the store and every time
that is told of it are right by the API server's clock.

The clocks are libfaketime's: wall clocks alone, set per process.
"""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import kube_control_plane  # operator_support knows where it is
from operator_support import Cluster
from options import OPTIONS
from s3_servers import ACCESS_KEY, SECRET_KEY, RealServer

# A job that outlasts the takeover on a fast machine, too.
EPOCHS = {"epochs": 45}
TTL_SECONDS = 12
# Far less than the clocks differ by, far more than the job needs.
ACTIVE_SECONDS = 400
# What a Date in whole seconds, a busy machine and times cut off to seconds leave open.
TOLERANCE = 4


def shifted(seconds):
    """The environment of a process whose wall clock is this far ahead."""
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        sys.exit("error: libfaketime is not installed; run scripts/setup.sh")
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


class EarlyAuthority(kube_control_plane.Authority):
    """Its certificates are already valid for a clock that is behind."""

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True,
                       env={**os.environ, **shifted(-3600)})


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Clocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kube_control_plane.Authority = EarlyAuthority
        cls.cluster = Cluster(OPTIONS.bin, own_plane=True)
        cls.addClassCleanup(cls.cluster.close)
        cls.minio = RealServer("minio")
        cls.addClassCleanup(cls.minio.close)
        cls.slow = cls.cluster.bench.platform(milliCpuPerGiB=400)
        cls.cluster.create_secret("s3", accessKeyId=ACCESS_KEY, secretAccessKey=SECRET_KEY)
        # Functions have the host's environment, and so its clock.
        cls.host = cls.cluster.start_host(environment=shifted(3600))

    def start(self, name, seconds):
        operator = self.cluster.start_operator(
            self.host, "--leader-elect", "--lease-name", "clocks", "--identity", name,
            "--platform", self.slow, name=f"operator-{name}", environment=shifted(seconds))
        self.addCleanup(lambda: operator.alive() and operator.kill())
        return operator

    def lease(self):
        status, lease = self.cluster.api(
            "GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/clocks")
        self.assertEqual(status, 200, lease)
        return lease["spec"]

    def create(self, name, **spec):
        return self.cluster.create_job(
            self.cluster.manifest(name, minio=self.minio, training=EPOCHS, **spec))

    def now(self):
        """The API server's clock is this machine's."""
        return time.time()

    def iteration(self, name):
        return (self.cluster.get(name).get("status") or {}).get("progress", {}).get("iteration", 0)

    def about_now(self, what, text):
        self.assertAlmostEqual(seconds_of(text), self.now(), delta=TOLERANCE, msg=what)

    def test_a_leader_with_another_clock_takes_over(self):
        cluster = self.cluster
        behind = self.start("behind", -600)
        behind.wait_for_line("leading")
        behind.wait_for_line("clocks of this machine and of the API server differ")
        created = seconds_of(self.create("digits", ttlSecondsAfterFinished=TTL_SECONDS,
                                         activeDeadlineSeconds=ACTIVE_SECONDS)
                             ["metadata"]["creationTimestamp"])
        ahead = self.start("ahead", 600)
        ahead.wait_for_line("standby")
        cluster.wait_for("iterations", lambda: self.iteration("digits") > 20, 120)
        self.assertEqual(self.lease()["holderIdentity"], "behind")
        self.assertEqual(self.lease().get("leaseTransitions", 0), 0)
        self.about_now("renewTime of the one behind", self.lease()["renewTime"])
        self.assertAlmostEqual(behind.metric("lambdadnn_clock_ahead_seconds"), -600, delta=2)
        start = seconds_of(cluster.get("digits")["status"]["startTime"])
        self.assertAlmostEqual(start, created, delta=TOLERANCE + 6)
        functions = set(cluster.functions())

        behind.kill()
        killed = time.monotonic()
        cluster.wait_for("the other one leads", lambda: "leading" in ahead.text(), 25)
        print(f"\ntaken over after {time.monotonic() - killed:.1f} s", flush=True)
        self.assertGreater(time.monotonic() - killed, 8, "before the lease was over")
        self.about_now("renewTime of the one ahead", self.lease()["renewTime"])
        seen = self.iteration("digits")
        cluster.wait_for("progress", lambda: self.iteration("digits") > seen, 30)
        self.assertEqual(set(cluster.functions()), functions, "functions ran through")

        done = cluster.wait_complete("digits", seconds=240)
        status, end = done["status"], seconds_of(done["status"]["completionTime"])
        self.about_now("completionTime", status["completionTime"])
        self.assertEqual(seconds_of(status["startTime"]), start)
        self.assertEqual(status["usage"].get("restarts", 0), 0)
        times = {c["type"]: seconds_of(c["lastTransitionTime"]) for c in status["conditions"]}
        for kind, at in times.items():
            self.assertTrue(created - TOLERANCE <= at <= end + TOLERANCE, (kind, at, created, end))
        self.report(done, end - start)
        events = cluster.api("GET", "/apis/events.k8s.io/v1/namespaces/default/events")[1]["items"]
        told = [seconds_of(e["eventTime"]) for e in events
                if e["regarding"].get("name") == "digits" and e.get("eventTime")]
        self.assertGreater(len(told), 3)
        for at in told:
            self.assertTrue(created - TOLERANCE <= at <= end + TOLERANCE, (at, created, end))

        time.sleep(max(0.0, end + TTL_SECONDS - 2 - self.now()))
        self.assertIsNotNone(cluster.get("digits"), "deleted before its time")
        cluster.wait_for("deleted", lambda: cluster.get("digits") is None, 15)
        self.assertLess(self.now() - end, TTL_SECONDS + TOLERANCE + 8)

        # And a deadline that is met under a clock that is ahead.
        self.create("short", activeDeadlineSeconds=8)
        failed = cluster.wait_for("the deadline", lambda: cluster.condition(
            cluster.get("short"), "Failed"), 60)
        self.assertEqual(failed["reason"], "DeadlineExceeded")
        short = cluster.get("short")["status"]
        took = seconds_of(short["completionTime"]) - seconds_of(short["startTime"])
        self.assertTrue(7 <= took <= 8 + TOLERANCE + 6, took)
        self.about_now("completionTime of the second", short["completionTime"])
        ahead.stop()
        self.about_now("renewTime of the lease released", self.lease()["renewTime"])

    def report(self, job, seconds):
        """What the report says of time is what the status says."""
        out = self.cluster.folder / "fetched"
        done = subprocess.run(
            [self.cluster.programs / "lambdadnn", "report", job["metadata"]["name"], "--out", out,
             "--kubeconfig", self.cluster.plane.kubeconfig], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        actual = json.loads((out / "report.json").read_text())["actual"]["seconds"]
        self.assertAlmostEqual(actual, seconds, delta=TOLERANCE + 4)
