# SPDX-License-Identifier: Apache-2.0
"""The operator behind an API server and a network that misbehave, and beside servers that restart:
every job ends with the digest of an undisturbed run, with a bounded number of requests.

Prints what it did and how many requests the operator made.
"""
import collections
import http.client
import itertools
import json
import signal
import threading
import time
import unittest

from api_proxy import ApiProxy, Lost
from operator_support import Cluster
from options import OPTIONS

EPOCHS = {"epochs": 12}
# A job writes its turning points (about 15 changes), progress every 2 s, and reads before it acts.
REQUESTS_A_JOB = 150


def status_object(code, reason, message):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                       "message": message, "reason": reason, "code": code})


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin, own_plane=True)
        cls.addClassCleanup(cls.cluster.close)
        cls.host = cls.cluster.start_host()
        cls.reference = cls.cluster.bench.run(
            job=cls.cluster.manifest("reference", training=EPOCHS)).digest()

    def setUp(self):
        self.proxy = ApiProxy(self.cluster.plane, self.cluster.own_user())
        self.addCleanup(self.proxy.close)
        self.operator = self.cluster.start_operator(
            self.host, name=f"operator-{self.id().split('.')[-1]}",
            kubeconfig=self.proxy.kubeconfig(self.cluster.folder, self.id().split(".")[-1]))
        self.addCleanup(lambda: self.operator.alive() and self.operator.stop())
        self.struck = collections.Counter()

    def counted(self):
        """Requests by what they are, leases and events apart."""
        with self.proxy.lock:
            return collections.Counter(
                f"{'WATCH' if r.watch else r.method} {r.resource}{'/' * bool(r.subresource)}"
                f"{r.subresource}" for r in self.proxy.requests)

    def run_job(self, name, seconds=120):
        self.cluster.create_job(self.cluster.manifest(name, training=EPOCHS))
        job = self.cluster.wait_complete(name, seconds=seconds)
        self.assertEqual(job["status"]["model"]["digest"], self.reference)
        return job

    def report(self, job):
        counts = self.counted()
        total = sum(count for what, count in counts.items() if "events" not in what)
        print(f"\n{self.id().split('.')[-1]}: struck {dict(self.struck)}; {total} requests, "
              f"{dict(counts)}; restarts {job['status']['usage'].get('restarts', 0)}", flush=True)
        return total

    def test_refusals(self):
        answers = [
            (500, {"Content-Type": "application/json"},
             status_object(500, "InternalError", "etcdserver: request timed out")),
            (503, {}, "no healthy upstream"),
            (429, {"Retry-After": "1", "Content-Type": "application/json"},
             status_object(429, "TooManyRequests", "too many requests")),
            (503, {"Retry-After": "1"}, "")]

        count = itertools.count()

        def before(_):
            number = next(count)
            if number % 3:
                return None
            answer = answers[number // 3 % len(answers)]
            self.struck[f"{answer[0]}{' later' if 'Retry-After' in answer[1] else ''}"] += 1
            return answer
        self.proxy.before = before
        job = self.run_job("refusals")
        self.assertLess(self.report(job), 2 * REQUESTS_A_JOB)
        self.assertGreater(sum(self.struck.values()), 6)

    def test_lost_requests_and_replies(self):
        requests, replies = itertools.count(1), itertools.count(1)

        def before(_):
            if next(requests) % 9 == 0:
                self.struck["request lost"] += 1
                raise Lost()

        def after(*_):
            if next(replies) % 4 == 0:
                self.struck["reply lost"] += 1
                raise Lost()
        self.proxy.before, self.proxy.after = before, after
        job = self.run_job("lost")
        self.assertLess(self.report(job), 2 * REQUESTS_A_JOB)
        self.assertGreater(self.struck["reply lost"], 4)
        self.assertGreater(self.struck["request lost"], 1)

    def test_cut_watches(self):
        ended = threading.Event()

        def cut():
            while not ended.wait(0.5):
                self.struck["watch cut"] += self.proxy.cut_watches()
        thread = threading.Thread(target=cut)
        thread.start()
        try:
            job = self.run_job("cut")
        finally:
            ended.set()
            thread.join()
        self.assertLess(self.report(job), 2 * REQUESTS_A_JOB)
        self.assertGreater(self.struck["watch cut"], 3)
        self.assertLessEqual(self.counted()["GET serverlesstrainingjobs"], REQUESTS_A_JOB)

    def test_conflicting_writers(self):
        ended = threading.Event()
        name = "conflicts"

        def write():
            number = 0
            while not ended.wait(0.02):
                number += 1
                status, _ = self.cluster.api("PATCH", self.cluster.job_path(name), {
                    "metadata": {"annotations": {"test/number": str(number)}}})
                self.struck["written by another"] += status == 200
        self.proxy.after = lambda request, status: self.struck.update(
            {"conflicts": status == 409})
        thread = threading.Thread(target=write)
        thread.start()
        try:
            job = self.run_job(name)
        finally:
            ended.set()
            thread.join()
        # A conflict costs the write, a read of the current object, and the write again.
        self.assertLess(self.report(job), 2 * REQUESTS_A_JOB + 4 * self.struck["conflicts"])
        self.assertGreater(self.struck["written by another"], 20)

    def test_silent_watch(self):
        self.cluster.wait_for("a watch", lambda: self.proxy.watches, 20)
        time.sleep(1)
        self.proxy.freeze_watches()
        begin = time.monotonic()
        job = self.run_job("silence", seconds=240)
        print(f"\na job made while the watch was silent was complete after "
              f"{time.monotonic() - begin:.0f} s")
        self.assertLess(self.report(job), REQUESTS_A_JOB)

    def compact(self):
        """Makes etcd forget its history, through its JSON gateway."""
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.plane.etcd_port)
        connection.request("POST", "/v3/kv/range", json.dumps({"key": "AA=="}))
        revision = json.loads(connection.getresponse().read())["header"]["revision"]
        connection.request("POST", "/v3/kv/compaction",
                           json.dumps({"revision": revision, "physical": True}))
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200, answer.read())
        connection.close()

    def restart(self, name, seconds):
        plane = self.cluster.plane
        plane.kill(name, signal.SIGTERM if name == "etcd" else signal.SIGKILL)
        time.sleep(seconds)
        plane.start(name)
        plane.wait_ready()

    def test_history_forgotten(self):
        """The watch is away while jobs come and go and the server forgets how: 410."""
        cluster = self.cluster
        self.cluster.wait_for("a watch", lambda: self.proxy.watches, 20)
        cluster.create_job(cluster.manifest("gone", suspend=True, training=EPOCHS))
        cluster.wait_for("it is known", lambda: (cluster.get("gone")["metadata"].get("finalizers")))

        def before(request):
            if request.watch:
                self.struck["watch refused"] += 1
                raise Lost()
        self.proxy.before = before
        self.proxy.cut_watches()
        cluster.api("DELETE", cluster.job_path("gone"))
        cluster.create_job(cluster.manifest("forgotten", training=EPOCHS))
        self.compact()
        self.restart("kube-apiserver", 0)
        self.proxy.before = lambda _: None
        job = cluster.wait_complete("forgotten", seconds=120)
        self.assertEqual(job["status"]["model"]["digest"], self.reference)
        cluster.wait_for("the deleted job is finalized", lambda: cluster.get("gone") is None, 60)
        # Two jobs, and a watch that is tried again and again until it is let through.
        self.assertLess(self.report(job), 3 * REQUESTS_A_JOB + self.struck["watch refused"])
        # Nothing but 410 makes it list again.
        self.assertGreaterEqual(self.operator.metric("lambdadnn_informer_lists"), 2)

    def disturbed(self, name, disturb, epochs=60):
        """A job that runs while `disturb` does its work."""
        cluster = self.cluster
        path = cluster.manifest(name, training={"epochs": epochs})
        cluster.create_job(path)
        cluster.wait_for("iterations", lambda: cluster.get(name).get("status", {}).get(
            "progress", {}).get("iteration", 0) > 20)
        functions = set(cluster.functions())
        disturb()
        job = cluster.wait_complete(name, seconds=240)
        digest = cluster.bench.run(job=path).digest()
        self.assertEqual(job["status"]["model"]["digest"], digest)
        return job, functions

    def test_api_server_down_for_20_seconds(self):
        job, _ = self.disturbed("server", lambda: self.restart("kube-apiserver", 20))
        self.assertEqual(job["status"]["usage"].get("restarts", 0), 0)
        self.assertLess(self.report(job), 3 * REQUESTS_A_JOB)

    def test_etcd_restarted(self):
        job, _ = self.disturbed("etcd", lambda: self.restart("etcd", 3), epochs=30)
        self.assertEqual(job["status"]["usage"].get("restarts", 0), 0)
        self.assertLess(self.report(job), 3 * REQUESTS_A_JOB)
