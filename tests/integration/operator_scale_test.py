# SPDX-License-Identifier: Apache-2.0
"""Many jobs at once: a thousand of them, each with five open streams, beside thousands that have
finished, on a real API server, two replicas of the operator, and a function host whose functions are
entries of a table (tests/support/stub_function_host.cc). Nothing is trained.

Prints what docs/benchmarks.md shows: how soon one job runs without others and beside those that have
finished; seconds until all jobs are accepted and planned, and until all streams are open; resident
memory, descriptors, processor time and writes a second while they are; seconds until the next leader
has joined all of them; what is left when all are deleted.
"""
import json
import os
import pathlib
import re
import socket
import statistics
import threading
import time
import unittest

import many_jobs
from kube_client import KubeApi
from operator_support import Cluster
from options import OPTIONS

FUNCTIONS = 4
STREAMS = FUNCTIONS + 1  # and a parameter server
NAMESPACE, FINISHED = "scale", "finished"
PLANNED_WITHIN = 60
JOINED_WITHIN = 30
# Resident memory without jobs; with a thousand that run; of each that has finished.
IDLE_BYTES, BUSY_BYTES, FINISHED_BYTES = 50e6, 120e6, 20e3
WATCH_SECONDS = 300  # the least that the server is asked to keep a watch for
LATER_BY = 2  # seconds that a job may run later because of others that have finished
PROGRESS_WRITES = 20  # a second
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident(pid, what="VmRSS"):
    return int(re.search(what + r":\s+(\d+)",
                         pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) * 1024


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def megabytes(size):
    return f"{size / 1e6:.0f} MB"


class FirstSeen:
    """When each job was first seen to be so: one watch, as asking for them again and again would be
    much of what the API server does."""

    def __init__(self, kubeconfig, path, **states):
        self.api, self.states = KubeApi(kubeconfig), states
        self.times = {state: {} for state in states}
        self.thread = threading.Thread(target=self.look, args=(path,), daemon=True)
        self.thread.start()

    def look(self, path):
        try:
            for _, job in self.api.watch(path):
                for state, holds in self.states.items():
                    if holds(job):
                        self.times[state].setdefault(job["metadata"]["name"], time.monotonic())
        except (OSError, ValueError):  # stop(), or a watch that the server ended: the wait fails
            pass

    def stop(self):
        self.api.end_watch()
        self.thread.join()
        self.api.close()


class Scale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster = Cluster(OPTIONS.bin, train=0, own_plane=True)
        cls.addClassCleanup(cluster.close)
        cls.socket = str(cluster.folder / "stub.sock")
        cls.stub = cluster.start("stub", [cluster.programs / "stub-function-host", cls.socket])
        cls.stub.socket = cls.socket
        cls.stub.wait_for_line("serving")
        cls.api = KubeApi(cluster.plane.kubeconfig)
        cls.addClassCleanup(cls.api.close)
        cls.many = many_jobs.ManyJobs(cluster.plane.kubeconfig)
        cls.addClassCleanup(cls.many.close)
        for name in (NAMESPACE, FINISHED):
            cls.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        cls.platform = cluster.bench.platform()

    def replica(self, name):
        begun = time.monotonic()
        operator = self.cluster.start_operator(
            self.stub, "--leader-elect", "--identity", name, "--platform", self.platform, name=name)
        self.cluster.wait_for(f"{name} is ready",
                              lambda: operator.page("health", "/readyz")[0] == 200, 30)
        operator.begun = begun
        return operator

    def stats(self):
        """What the stub counts."""
        with socket.socket(socket.AF_UNIX) as stub:
            stub.connect(self.socket)
            stub.sendall(b"GET /v1/stats HTTP/1.1\r\nHost: stub\r\n\r\n")
            text = b"".join(iter(lambda: stub.recv(65536), b""))
        return json.loads(text.split(b"\r\n\r\n", 1)[1])

    def watches(self):
        """Watches of jobs that the API server counts."""
        text = self.api.get("/metrics")
        return sum(float(value) for labels, value in re.findall(
            r"^apiserver_longrunning_requests\{(.*)\} (\S+)$", text, re.MULTILINE)
            if 'resource="serverlesstrainingjobs"' in labels and 'verb="WATCH"' in labels)

    def writes(self, operator):
        """Writes that the API server has answered, {method: count}."""
        found = {}
        for labels, value in operator.series("rest_client_requests_total"):
            method = re.search(r'method="(\w+)"', labels).group(1)
            if method != "GET":
                found[method] = found.get(method, 0) + value
        return found

    def manifest(self, name):
        return many_jobs.job(name, NAMESPACE, self.spec())

    def spec(self):
        return {
            "model": {"builtin": {"name": "mlp", "parameters": {"hidden": [128]}}},
            "dataset": {"renderedDigits": {"train": 1000, "test": 100}},
            "training": {"epochs": 1000, "globalBatchSize": 60, "seed": 7,
                         "optimizer": {"name": "SGD", "learningRate": "0.05"}},
            "objective": {"fixed": {"functions": FUNCTIONS, "memory": "384Mi"}},
            "aggregation": {"shards": 1, "serverMemory": "128Mi"},
            "profile": {"trainingSamples": 60000, "trainingBytes": 47040000, "modelBytes": 407080,
                        "trainingRate": {"slope": "2", "intercept": "0"}},
            "objectStore": {"uri": f"file://{self.cluster.folder}/store"},
            "backend": "Local"}

    def create_all(self):
        """Creates all jobs; returns when the first was asked for."""
        begun = time.monotonic()
        self.many.create(self.manifest(f"job-{number:04}") for number in range(OPTIONS.jobs))
        return begun

    def delete_all(self):
        """Each by itself: the server gives up a call that deletes a thousand of them at once."""
        def delete(api, job):
            status, answer = api.call(
                "DELETE", self.cluster.job_path(job["metadata"]["name"], NAMESPACE))
            self.assertIn(status, (200, 202), answer)
        self.many.each(delete, self.jobs())

    def seconds_until_running(self):
        """Of one job, which is deleted then: the median of three."""
        took = []
        for number in range(3):
            job = self.manifest(f"one-{number}")
            path = self.cluster.job_path(job["metadata"]["name"], NAMESPACE)
            begun = time.monotonic()
            many_jobs.create(self.api, job)
            self.cluster.wait_for("it runs", lambda path=path: self.cluster.condition(
                self.api.get(path), "Running"), 60, every=0.05)
            took.append(time.monotonic() - begun)
            self.api.call("DELETE", path)
            self.cluster.wait_for("it is gone", lambda path=path: self.api.call(
                "GET", path)[0] == 404, 60)
        return statistics.median(took)

    def settle(self, operator):
        """Waits until it has looked at all finished jobs, and has nothing to do any more."""
        self.cluster.wait_for("a leader", lambda: "leading" in operator.text(), 30)
        self.cluster.wait_for("all are counted", lambda: ('{phase="Complete"}', OPTIONS.finished) in [
            (labels, value) for labels, value in operator.series("lambdadnn_jobs")], 60)
        self.cluster.wait_for("the queue is empty", lambda: operator.metric("workqueue_depth") == 0, 120)

    def jobs(self):
        """All of them, in pages."""
        items, token = [], ""
        while True:
            page = self.api.get(self.cluster.job_path("", NAMESPACE) +
                                f"?limit=250&continue={token}")
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items

    def watch(self, **states):
        return FirstSeen(self.cluster.plane.kubeconfig, self.cluster.job_path("", NAMESPACE),
                         **states)

    def wait_each(self, seen, state, begun, seconds):
        """Seconds since `begun` until the last job was seen in that state."""
        times = seen.times[state]
        self.cluster.wait_for(f"all {state}", lambda: len(times) == OPTIONS.jobs, seconds, every=0.2)
        return max(times.values()) - begun

    def is_planned(self, job):
        return self.cluster.condition(job, "Accepted") and "plan" in job["status"]

    def answered(self):
        """Requests that the API server has answered: {"PATCH serverlesstrainingjobs/status": count}."""
        found = {}
        for labels, value in re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$",
                                        self.api.get("/metrics"), re.MULTILINE):
            label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            what = "/".join(filter(None, (label["resource"], label["subresource"])))
            if label["resource"] in ("serverlesstrainingjobs", "secrets", "events", "leases"):
                what = f"{label['verb']} {what}"
                found[what] = found.get(what, 0) + float(value)
        return found

    def spent(self):
        """Processor seconds so far, by process."""
        pids = {name: process.pid for name, process in self.cluster.plane.processes.items()}
        pids.update({process.log.stem: process.pid for process in self.cluster.started
                     if process.alive()})
        return {name: cpu_seconds(pid) for name, pid in pids.items()}

    def tell(self, what, before, requests=None):
        """What it took since, of processor time and of the API server, a job."""
        took = {name: round(1000 * (seconds - before.get(name, 0)) / OPTIONS.jobs, 1)
                for name, seconds in self.spent().items()}
        print(f"  {what}: milliseconds of processor time a job {took}; "
              f"load {os.getloadavg()[0]:.1f}", flush=True)
        if requests is not None:
            counts = {name: round((count - requests.get(name, 0)) / OPTIONS.jobs, 2)
                      for name, count in self.answered().items()}
            print("  requests a job:", {name: count for name, count in sorted(counts.items())
                                        if count >= 0.05}, flush=True)

    def wait_streams(self, what, begun, seconds, attached=0):
        def open_streams():
            stats = self.stats()
            return stats["attached"] >= attached and stats["streams"] == OPTIONS.jobs * STREAMS
        self.cluster.wait_for(what, open_streams, seconds, every=0.2)
        return time.monotonic() - begun

    def measure(self, operator):
        """Running jobs as they go on."""
        before, stats = self.writes(operator), self.stats()
        cpu, begin = cpu_seconds(operator.pid), time.monotonic()
        host = cpu_seconds(self.stub.pid)
        time.sleep(OPTIONS.seconds)
        took = time.monotonic() - begin
        busy = (cpu_seconds(operator.pid) - cpu) / took
        lines = (self.stats()["lines"] - stats["lines"]) / took
        begin = time.monotonic()
        page = operator.page("metrics", "/metrics")[1]
        scrape = time.monotonic() - begin
        after = self.writes(operator)
        writes = {method: (count - before.get(method, 0)) / took
                  for method, count in after.items()}
        print(f"running: {lines:.0f} lines/s; operator: {busy:.2f} cores, "
              f"{megabytes(resident(operator.pid))}, {descriptors(operator.pid)} descriptors, "
              f"{threads(operator.pid)} threads; writes/s "
              f"{ {method: round(rate, 1) for method, rate in writes.items()} }; "
              f"stub {(cpu_seconds(self.stub.pid) - host) / took:.2f} cores; a scrape "
              f"{1000 * scrape:.0f} ms, {megabytes(len(page))}; load {os.getloadavg()[0]:.1f}",
              flush=True)
        self.assertGreater(lines, OPTIONS.jobs * STREAMS / 2 * 0.8)
        self.assertLess(writes["PATCH"], min(PROGRESS_WRITES, OPTIONS.jobs / 2) * 1.2 + 1)
        self.assertLess(resident(operator.pid), BUSY_BYTES + OPTIONS.finished * FINISHED_BYTES)
        self.assertLess(descriptors(operator.pid), OPTIONS.jobs * STREAMS + 200)
        self.assertLess(threads(operator.pid), 100)

    def assert_one_watch(self, operator, watches):
        """The operator's own, renewed at its usual end; the garbage collector may have begun one."""
        ended = (time.monotonic() - operator.begun) // WATCH_SECONDS
        self.assertEqual(operator.metric("lambdadnn_informer_lists"), 1)
        self.assertLessEqual(operator.metric("lambdadnn_informer_watches"), 1 + ended)
        self.assertLessEqual(self.watches(), watches + 1)

    def test_many_jobs(self):
        alone = self.replica("alone")
        self.cluster.wait_for("a leader", lambda: "leading" in alone.text(), 30)
        at_once = self.seconds_until_running()
        alone.stop()
        self.many.create_finished(FINISHED, OPTIONS.finished, self.spec())
        first, second = self.replica("first"), self.replica("second")
        self.settle(first)
        beside = self.seconds_until_running()
        print(f"\na job runs after {at_once:.2f} s; beside {OPTIONS.finished} that have finished after "
              f"{beside:.2f} s; the operator takes {megabytes(resident(first.pid))}, at most "
              f"{megabytes(resident(first.pid, 'VmHWM'))}; writes {self.writes(first)}", flush=True)
        self.assertLess(beside, at_once + LATER_BY)
        idle = {"memory": resident(first.pid), "descriptors": descriptors(first.pid)}
        watches = self.watches()
        secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
        before = {item["metadata"]["name"] for item in self.api.get(secrets)["items"]}
        print(f"idle: {megabytes(idle['memory'])}, {idle['descriptors']} descriptors, "
              f"{threads(first.pid)} threads, {watches:.0f} watches of jobs", flush=True)
        self.assertLess(idle["memory"], IDLE_BYTES + OPTIONS.finished * FINISHED_BYTES)

        spent, answered = self.spent(), self.answered()
        seen = self.watch(planned=self.is_planned,
                          running=lambda job: self.cluster.condition(job, "Running"))
        begun = self.create_all()
        created = time.monotonic() - begun
        planned = self.wait_each(seen, "planned", begun, PLANNED_WITHIN * 6)
        print(f"{OPTIONS.jobs} jobs created in {created:.1f} s, accepted and planned after {planned:.1f} s; "
              f"load {os.getloadavg()[0]:.1f}", flush=True)
        self.tell("planned", spent, answered)
        opened = self.wait_streams("all streams open", begun, PLANNED_WITHIN * 4)
        running = self.wait_each(seen, "running", begun, 120)
        seen.stop()
        print(f"{OPTIONS.jobs * STREAMS} streams open after {opened:.1f} s, all Running after "
              f"{running:.1f} s; operator {cpu_seconds(first.pid):.1f} s of CPU, "
              f"writes {self.writes(first)}, "
              f"{first.metric('lambdadnn_events_dropped'):.0f} events dropped", flush=True)
        self.tell("running", spent, answered)
        self.measure(first)
        self.assert_one_watch(first, watches)

        stats, spent, answered = self.stats(), self.spent(), self.answered()
        epoch = self.jobs()[0]["status"]["execution"]["leaderEpoch"]
        seen = self.watch(led=lambda job: job["status"]["execution"]["leaderEpoch"] > epoch)
        first.kill()
        begun = time.monotonic()
        self.cluster.wait_for("a new leader", lambda: "leading" in second.text(), 30, every=0.05)
        led = time.monotonic() - begun
        joined = self.wait_streams("all streams joined again", begun, JOINED_WITHIN * 8,
                                   stats["attached"] + OPTIONS.jobs * STREAMS)
        print(f"leader killed: the next one leads after {led:.1f} s, has joined all "
              f"{OPTIONS.jobs * STREAMS} streams after {joined:.1f} s", flush=True)
        self.tell("joined", spent, answered)
        print(f"all jobs say so after {self.wait_each(seen, 'led', begun, 120):.1f} s", flush=True)
        seen.stop()
        self.assertEqual(self.stats()["begun"], stats["begun"], "a slice was begun a second time")
        self.assertEqual(self.stats()["functions"], stats["functions"])
        self.measure(second)

        spent, answered = self.spent(), self.answered()
        begun = time.monotonic()
        self.delete_all()
        asked = time.monotonic() - begun
        self.cluster.wait_for("all deleted", lambda: not self.api.get(
            self.cluster.job_path("", NAMESPACE) + "?limit=1")["items"], 600, every=0.5)
        print(f"all deleted after {time.monotonic() - begun:.1f} s, {asked:.1f} s of it for asking",
              flush=True)
        self.tell("deleted", spent, answered)
        self.cluster.wait_for("streams closed", lambda: not self.stats()["streams"], 20)
        left = self.stats()
        self.assertEqual((left["functions"], left["slices"]), (0, 0), left)
        self.assertEqual({item["metadata"]["name"] for item in self.api.get(secrets)["items"]},
                         before)
        store = self.cluster.folder / "store"
        # A folder as a store keeps what its clients wake each other with, and a namespace what was
        # measured in it.
        self.assertEqual([str(f) for f in store.rglob("*") if f.is_file() and
                          not {"%tmp", "measurements"} & set(f.parts)], [])
        self.assert_one_watch(second, watches - 1)  # without the killed leader's
        self.cluster.wait_for("descriptors released", lambda: descriptors(second.pid) <
                              idle["descriptors"] + 40, 60)
        print(f"then: {megabytes(resident(second.pid))}, {descriptors(second.pid)} descriptors, "
              f"{threads(second.pid)} threads", flush=True)
        self.assertEqual([labels for labels, _ in second.series("lambdadnn_job_functions")
                          if f'namespace="{NAMESPACE}"' in labels], [])
        # Last, so that a busy machine hides nothing else.
        self.assertLess(planned, PLANNED_WITHIN)
        self.assertLess(joined, JOINED_WITHIN)
