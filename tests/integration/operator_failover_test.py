# SPDX-License-Identifier: Apache-2.0
"""Replicas of the operator while a job runs: a leader is killed, another is frozen in the middle of a
request and woken when a second one has taken over. No function is started again, nothing that the
frozen one still sends takes effect, and the digest is that of an undisturbed run.

Prints how long each take-over took.
"""
import signal
import threading
import time
import unittest

from api_proxy import ApiProxy
from memory import mebibytes
from operator_support import Cluster
from options import OPTIONS
from s3_servers import ACCESS_KEY, SECRET_KEY, RealServer

EPOCHS = {"epochs": 50}
ACTS_WITHIN = 20
HEARS_WITHIN = 10
FROZEN_SECONDS = 30


class Replica:
    """An operator behind a proxy of its own, which keeps what it asked and what it was told."""

    def __init__(self, test, name):
        self.cluster, self.name = test.cluster, name
        self.proxy = ApiProxy(test.cluster.plane, test.cluster.own_user())
        self.log = []  # (time, request, status)
        self.proxy.after = lambda request, status: self.log.append(
            (time.monotonic(), request, status))
        self.operator = test.cluster.start_operator(
            test.host, "--leader-elect", "--lease-name", test.lease_name(), "--identity", name,
            "--platform", test.slow, name=f"operator-{name}",
            kubeconfig=self.proxy.kubeconfig(test.cluster.folder, name))

    def leads(self):
        return "leading" in self.operator.text()

    def writes(self, since=0.0):
        return [(at, request, status) for at, request, status in self.log
                if at >= since and request.method != "GET"]


class Failover(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.host = cls.cluster.start_host()
        # Functions with little CPU: a job that lasts and leaves the machine to others. How fast
        # they are changes no bit.
        cls.slow = cls.cluster.bench.platform(milliCpuPerGiB=400)
        cls.reference = cls.cluster.bench.run(
            job=cls.cluster.manifest("reference", training=EPOCHS)).digest()

    def setUp(self):
        self.addCleanup(lambda: [p.kill() for p in self.cluster.started
                                 if p.alive() and "operator" in p.log.name])

    def lease_name(self):
        return self.id().split(".")[-1].replace("_", "-")[:60].strip("-")

    def progress(self, name):
        return self.cluster.get(name).get("status", {}).get("progress", {}).get("iteration", 0)

    def begin(self, name):
        """A job that runs, slowly; its functions."""
        self.cluster.create_job(self.cluster.manifest(name, training=EPOCHS))
        self.cluster.wait_for("iterations", lambda: self.progress(name) > 20, 120)
        functions = set(self.cluster.functions())
        self.assertEqual(len(functions), 6)
        return functions

    def billed(self, name):
        """The newest bill: (GiB seconds, function, the age that it had), and GiB of all functions."""
        status = self.cluster.get(name)["status"]
        usage, plan = status["usage"], status["plan"]
        servers = sum(plan["aggregation"]["layers"][:-1]) * plan["aggregation"]["spread"]
        mib = plan["functions"] * mebibytes(plan["memory"]) + servers * mebibytes(plan["serverMemory"])
        return (float(usage["billedGiBSeconds"]), usage["meteredFunction"],
                float(usage["meteredSeconds"]), mib / 1024)

    def all_is_billed(self, before, after):
        """No function started or ended between two bills: it does not matter which operator observed them."""
        self.assertEqual(before[1], after[1])
        seconds, gib = after[2] - before[2], after[3]
        self.assertGreater(seconds, 5)
        print(f"{after[0] - before[0]:.1f} GiB s billed in {seconds:.1f} s of {gib} GiB")
        # Asking for the ages takes time too.
        self.assertAlmostEqual(after[0] - before[0], seconds * gib, delta=max(1, seconds / 20) * gib)

    def end(self, name):
        job = self.cluster.wait_complete(name, seconds=240)
        self.assertEqual(job["status"]["usage"]["coldStarts"], 6)
        self.assertEqual(job["status"]["usage"].get("restarts", 0), 0)
        self.assertEqual(job["status"]["model"]["digest"], self.reference)

    def take_over(self, name, leader, since):
        """Waits until the replica leads, writes and hears the functions; prints how long it took."""
        self.cluster.wait_for("a new leader", leader.leads, ACTS_WITHIN + 5, every=0.05)
        led = time.monotonic()

        def job_write():
            return next((at for at, request, status in leader.writes()
                         if request.resource == "serverlesstrainingjobs" and status == 200), None)
        acted = self.cluster.wait_for("a write of the new leader", job_write, 15, every=0.05)
        seen = self.progress(name)
        self.cluster.wait_for("progress under the new leader", lambda: self.progress(name) > seen,
                              HEARS_WITHIN + 5)
        heard = time.monotonic()
        print(f"\n{leader.name} leads after {led - since:.1f} s, writes after "
              f"{acted - since:.1f} s, shows newer progress after {heard - since:.1f} s", flush=True)
        self.assertLess(acted - since, ACTS_WITHIN)
        self.assertLess(heard - led, HEARS_WITHIN)

    def test_a_killed_leader(self):
        first = Replica(self, "first")
        self.cluster.wait_for("the first leader", first.leads, 15)
        second = Replica(self, "second")
        second.operator.wait_for_line("standby")
        # A standby is ready, its caches are in step, and it writes nothing.
        self.cluster.wait_for("the standby is ready", lambda: second.operator.page(
            "health", "/readyz")[0] == 200)
        self.assertEqual(second.operator.metric("leader_election_master_status"), 0)
        self.assertEqual(first.operator.metric("leader_election_master_status"), 1)
        functions = self.begin("killed")
        self.assertEqual([request for _, request, _ in second.writes()
                          if request.resource != "leases"], [])
        before = self.billed("killed")
        first.operator.kill()
        self.take_over("killed", second, time.monotonic())
        self.all_is_billed(before, self.billed("killed"))
        self.assertEqual(set(self.cluster.functions()), functions, "a function was started again")
        self.end("killed")

        # SIGTERM releases the Lease: the next leader does not wait until it expires.
        third = Replica(self, "third")
        third.operator.wait_for_line("standby")
        begin = time.monotonic()
        self.assertEqual(second.operator.stop(), 0)
        self.cluster.wait_for("the third leads", third.leads, 10, every=0.05)
        print(f"a lease that is released is taken after {time.monotonic() - begin:.1f} s")

    def test_a_leader_that_waits_for_a_store_ends_when_it_is_told_to(self):
        minio = RealServer("minio")
        self.addCleanup(minio.close)
        self.cluster.create_secret("s3", accessKeyId=ACCESS_KEY, secretAccessKey=SECRET_KEY)

        def create(name):
            self.cluster.create_job(
                self.cluster.manifest(name, minio=minio, training={"epochs": 1}))
        first = Replica(self, "waiting")
        self.cluster.wait_for("the first leader", first.leads, 15)
        create("before")
        self.cluster.wait_complete("before")  # the store is known
        minio.process.send_signal(signal.SIGSTOP)
        try:
            create("waits")
            for _ in range(20):  # its admission asks the store, and goes on asking
                self.cluster.wait_for("a pass that does not end", lambda: first.operator.metric(
                    "controller_runtime_active_workers") == 1, 30)
                time.sleep(0.1)
            job = self.cluster.get("waits")
            begin = time.monotonic()
            self.assertEqual(first.operator.stop(seconds=60), 0)
            took = time.monotonic() - begin
            # A pod is killed after 30 s, and a request to the store takes as long to time out.
            self.assertLess(took, 20)
            _, lease = self.cluster.api("GET", f"/apis/coordination.k8s.io/v1/namespaces/default/"
                                        f"leases/{self.lease_name()}")
            self.assertEqual(lease["spec"]["holderIdentity"], "", "the lease is released")
            self.assertEqual(self.cluster.get("waits").get("status"), job.get("status"),
                             "nothing is said of a store that was not waited for")
        finally:
            minio.process.send_signal(signal.SIGCONT)
        print(f"\na leader that waits for a store ends {took:.1f} s after SIGTERM", flush=True)
        second = Replica(self, "successor")
        self.cluster.wait_for("the second leads", second.leads, 30)
        self.cluster.wait_complete("waits")

    def test_a_frozen_leader(self):
        old = Replica(self, "old")
        self.cluster.wait_for("the first leader", old.leads, 15)
        new = Replica(self, "new")
        new.operator.wait_for_line("standby")
        functions = self.begin("frozen")
        frozen = threading.Event()

        # When the server has answered a request about the job and the leader is about to act on it.
        def freeze(request, status):
            old.log.append((time.monotonic(), request, status))
            if request.resource == "serverlesstrainingjobs" and not frozen.is_set():
                old.operator.signal(signal.SIGSTOP)
                frozen.set()
        old.proxy.after = freeze
        self.assertTrue(frozen.wait(30))
        stopped = time.monotonic()
        self.take_over("frozen", new, stopped)
        time.sleep(max(0, stopped + FROZEN_SECONDS - time.monotonic()))
        job = self.cluster.get("frozen")
        self.assertNotIn(job["status"]["phase"], ("Complete", "Failed"),
                         "the job must outlast the frozen leader; give it more epochs")
        woken = time.monotonic()
        old.operator.signal(signal.SIGCONT)
        self.assertEqual(old.operator.process.wait(15), 1, old.operator.text()[-2000:])
        ended = time.monotonic()
        self.assertIn("lost the lead", old.operator.text())
        late = [(request.method, request.resource, status) for _, request, status in
                old.writes(woken) if status < 300 and request.resource != "events"]
        self.assertEqual(late, [], "a write of a deposed leader took effect")
        print(f"the frozen leader ended {ended - woken:.1f} s after it was woken; "
              f"{len(old.writes(woken))} of its writes were refused", flush=True)
        self.assertEqual(self.cluster.get("frozen")["status"]["execution"]["leaderEpoch"],
                         job["status"]["execution"]["leaderEpoch"])
        self.assertEqual(set(self.cluster.functions()), functions, "a function was started again")
        self.end("frozen")
