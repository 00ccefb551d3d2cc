# SPDX-License-Identifier: Apache-2.0
"""What rows of faults are made of, whatever the backend, and the rows that every backend of pods has:
functions, pods, nodes, the API server, the object store and the operator fail under a running job. Each
job ends with the bits of an undisturbed run, and leaves nothing.

Each row prints what it cost: "recovery: ROW: …", seconds between the fault and the status that first tells
of more iterations than were done by then, which is written every 2 s.
"""
import contextlib
import os
import signal
import time

import settings
from faults import Faults
from on_pods import JOBS, OnPods
from settings import ClusterError, Node

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
# Epochs of 17 iterations, for faults that end at once, that hold the job up, and that last while it
# runs on: a row whose job is over before its fault is fails. A job does five iterations a second on
# two idle cores.
SHORT, MIDDLE, LONG = map(int, os.environ.get("LAMBDADNN_CHAOS_EPOCHS", "6,15,40").split(","))
# A row may take three times as long as docs/benchmarks.md says, of figures that come by a status written
# every 2 s.
TIMES, STATUS_SECONDS = 3, 2
WORKERS = 4
FAR_NODE = Node(2)
API_SERVER = f"{Node(1).address}/32"
CLIENTS = (settings.POD_RANGE, API_SERVER)


class Mark:
    """How far a job had come at some moment."""

    def __init__(self, job):
        self.at = time.monotonic()
        status = job["status"]
        self.incarnation = status["execution"]["incarnation"]
        self.iteration = status["progress"]["iteration"]
        self.slices = status.get("usage", {}).get("slices", 0)
        self.restarts = status.get("usage", {}).get("restarts", 0)
        self.functions = [f["uid"] for f in status["execution"].get("functions", [])]

    def seconds(self):
        return time.monotonic() - self.at

    def pods(self):
        """The uids of those whose functions it needed."""
        return {uid.rsplit(".", 1)[0] for uid in self.functions}


class Disturbed(OnPods):
    """What rows are made of."""
    # What docs/benchmarks.md says that a row took, in seconds; None: it recovers from nothing.
    RECOVERY = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.faults = Faults(cls.cluster)

    def wait(self, what, check, seconds=None):
        """The API server may be what is away."""
        def patient():
            try:
                return check()
            except (OSError, ClusterError):
                return None
        return super().wait(what, patient, seconds or 600)

    def begin(self, epochs, changes=None):
        """A job that has begun to train and has a checkpoint of its own: its name and a mark."""
        name = self.row().replace("_", "-")[:40].rstrip("-")
        self.create(name, epochs, changes)
        self.running(name, 10)
        return name, self.mark(name)

    def mark(self, name):
        """Of a job that has not ended."""
        job = self.job(name)
        self.fail_if_failed(job)
        self.assertNotIn("Complete", [each["type"] for each in job["status"]["conditions"]],
                         "the job was too short: see LAMBDADNN_CHAOS_EPOCHS")
        return Mark(job)

    def row(self):
        return self.id().rsplit(".test_", 1)[1]

    def say(self, text):
        print(f"recovery: {self.row()}: {text}", flush=True)

    def recovered_in(self, seconds):
        most = TIMES * (self.RECOVERY[self.row()] + STATUS_SECONDS)
        self.assertLess(seconds, most, "far beyond the figure of docs/benchmarks.md")

    def recovers(self, name, mark, falls_back=None):
        """Until the job is further than it ever was before functions were replaced; the mark then. With
        `falls_back`, whether it went back to a checkpoint for that."""
        before, highest = mark.restarts, mark.iteration

        def further():
            nonlocal before, highest
            now = self.mark(name)
            if now.restarts > before or now.restarts == mark.restarts:
                # What is written with a restart was done before it.
                before, highest = now.restarts, max(highest, now.iteration)
                return None
            return now if now.iteration > highest else None
        now = self.wait(f"{name} replaces functions and goes on", further)
        seconds = mark.seconds()
        back = now.incarnation - mark.incarnation
        self.say(f"{seconds:.1f} s until it was beyond iteration {highest}, {back} fall-backs")
        if falls_back is not None:
            self.assertEqual(falls_back, back > 0)
        self.recovered_in(seconds)
        return now

    def goes_on(self, name, mark, ended=None):
        """Until the job is further than it was when the fault ended, without having fallen back."""
        ended = ended or mark
        now = self.wait(f"{name} goes on", lambda: (
            now := self.mark(name)).iteration > ended.iteration and now)
        self.assertEqual(mark.incarnation, now.incarnation, "it fell back")
        seconds = ended.seconds()
        self.say(f"{seconds:.1f} s after the fault ended there was progress; it did not fall back")
        self.recovered_in(seconds)
        return now

    def ends_well(self, name, epochs):
        job = self.complete(name)
        self.assertEqual(self.digest_on_one_machine(epochs), job["status"]["model"]["digest"])
        self.nothing_left(name)
        return job

    def live_pods(self, name, group=None):
        return [pod for pod in self.pods(name) if "deletionTimestamp" not in pod["metadata"]
                and group in (None, pod["metadata"]["labels"]["lambdadnn.io/group"])]

    def uids(self, name, group=None):
        return {pod["metadata"]["uid"] for pod in self.live_pods(name, group)}


class CommonRows(Disturbed):
    # --- Containers and pods end.

    def kill(self, name, mark, index):
        uid = mark.functions[index].rsplit(".", 1)[0]
        self.wait("a process to kill", lambda: self.faults.kill_function(uid), 60)
        return uid

    def killed(self, index, falls_back, changes=None):
        name, mark = self.begin(SHORT, changes)
        uid = self.kill(name, mark, index)
        self.recovers(name, mark, falls_back)
        pod = next(pod for pod in self.pods(name) if pod["metadata"]["uid"] == uid)
        self.assertEqual(1, self.restarts(pod))
        self.ends_well(name, SHORT)

    @staticmethod
    def restarts(pod):
        """Of the function: queue-proxy, where there is one, comes after it."""
        return next(each["restartCount"] for each in pod["status"]["containerStatuses"]
                    if each["name"] != "queue-proxy")

    def test_worker_killed(self):
        """The others wait for the one that replaces it."""
        self.killed(0, falls_back=False)

    def test_root_server_killed(self):
        self.killed(WORKERS, falls_back=True)

    def test_leaf_server_killed(self):
        self.killed(-1, falls_back=True)

    def pods_deleted(self, group, count=None):
        """What is deleted is drained: its slices end with a checkpoint where others go on."""
        name, mark = self.begin(MIDDLE)
        doomed = self.live_pods(name, group)[:count]
        for pod in doomed:
            self.request("DELETE", f"{self.PODS}/{pod['metadata']['name']}", None)
        self.moves_away(name, mark, {pod["metadata"]["uid"] for pod in doomed})
        self.ends_well(name, MIDDLE)

    def moves_away(self, name, mark, doomed):
        """Until the job trains without these pods."""
        moved = self.wait(f"{name} needs the pods no more", lambda: (
            now := self.mark(name)).functions and not doomed & now.pods() and now)
        now = self.wait(f"{name} goes on", lambda: (
            now := self.mark(name)).iteration > moved.iteration and now)
        seconds = mark.seconds()
        self.say(f"{seconds:.1f} s until it trained without them, at iteration {now.iteration} after "
                 f"{mark.iteration}, {now.incarnation - mark.incarnation} fall-backs")
        self.recovered_in(seconds)
        self.assertFalse(doomed & self.uids(name))

    def test_one_pod_deleted(self):
        self.pods_deleted("workers", 1)

    def test_all_workers_deleted(self):
        self.pods_deleted("workers")

    def test_all_servers_deleted(self):
        self.pods_deleted("servers")

    # --- Nodes, the API server and the object store are away for a while.

    def test_node_cut_off_for_a_moment(self):
        name, mark = self.begin(MIDDLE)
        before = self.uids(name)
        with self.faults.cut_node(FAR_NODE):
            time.sleep(10)
            stuck = self.mark(name)
            time.sleep(10)
            self.assertEqual(stuck.iteration, self.mark(name).iteration)
        self.goes_on(name, mark, self.mark(name))
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, MIDDLE)

    def test_node_cut_off_until_it_is_given_up(self):
        name, mark = self.begin(MIDDLE)
        gone = {pod["metadata"]["uid"] for pod in self.live_pods(name)
                if pod["spec"]["nodeName"] == FAR_NODE.name}
        self.assertTrue(gone)
        with self.faults.cut_node(FAR_NODE):
            self.wait("its pods are evicted", lambda: not gone & self.uids(name))
        self.recovers(name, mark)
        self.ends_well(name, MIDDLE)

    def test_store_stopped(self):
        name, mark = self.begin(MIDDLE)
        with self.faults.without_store():
            time.sleep(15)
            stuck = self.mark(name)
            time.sleep(5)
            self.assertEqual(stuck.iteration, self.mark(name).iteration)
        self.goes_on(name, mark, self.mark(name))
        self.ends_well(name, MIDDLE)

    def test_api_server_restarted(self):
        name, mark = self.begin(MIDDLE)
        with self.faults.without_api_server():
            with self.assertRaises(OSError):
                self.kube.get(JOBS)
            time.sleep(15)
        self.goes_on(name, mark, self.wait("the API server", lambda: self.mark(name)))
        self.ends_well(name, MIDDLE)

    # --- The operator itself ends, is cut off, or is not the only one.

    def test_operator_killed(self):
        name, mark = self.begin(SHORT)
        before = self.uids(name)
        self.stop(self.operator, signal.SIGKILL)
        type(self).operator = self.start_operator()
        self.goes_on(name, mark)
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, SHORT)

    def elected(self, identity):
        return self.start_operator("--leader-elect", "--lease-namespace", "default",
                                   "--lease-name", "chaos", "--identity", identity)

    def leader(self):
        lease = self.kube.get(f"{LEASES}/chaos")
        return lease and lease["spec"].get("holderIdentity")

    @contextlib.contextmanager
    def two_operators(self):
        """{identity: process}, of which `one` leads."""
        self.stop(self.operator)
        both = {"one": self.elected("one")}
        try:
            self.wait("a leader", lambda: self.leader() == "one")
            both["two"] = self.elected("two")
            yield both
        finally:
            for process in both.values():
                process.kill()
                process.wait()
            self.kube.request("DELETE", f"{LEASES}/chaos")
            type(self).operator = self.start_operator()

    def epoch(self, name):
        return self.job(name)["status"]["execution"]["leaderEpoch"]

    def test_leader_killed(self):
        with self.two_operators() as both:
            name, mark = self.begin(LONG)
            epoch = self.epoch(name)
            both["one"].kill()
            self.wait("the other one leads", lambda: self.leader() == "two")
            self.say(f"{mark.seconds():.1f} s until the other one led")
            self.goes_on(name, mark)
            self.wait("its epoch", lambda: self.epoch(name) > epoch, 60)
            self.ends_well(name, LONG)

    def test_leader_frozen_and_thawed(self):
        """It learns late that it leads no more."""
        with self.two_operators() as both:
            name, mark = self.begin(LONG)
            both["one"].send_signal(signal.SIGSTOP)
            self.wait("the other one leads", lambda: self.leader() == "two")
            self.goes_on(name, mark)
            both["one"].send_signal(signal.SIGCONT)
            self.goes_on(name, self.mark(name))
            self.ends_well(name, LONG)

    def cut_from_operator(self, seconds, *ranges, port=None):
        """In the middle of slices: a job, and the mark from before."""
        name, mark = self.begin(LONG)
        with self.faults.cut_clients(*ranges, port=port) as dropped:
            time.sleep(seconds)
            self.assertGreater(dropped(), 0)
        return name, mark

    def test_operators_node_cut_off(self):
        """It reaches neither the API server, nor a gateway, nor a pod."""
        name, mark = self.cut_from_operator(20, *CLIENTS)
        self.goes_on(name, mark, self.wait("the API server", lambda: self.mark(name)))
        self.assertEqual(mark.pods(), self.uids(name))
        self.ends_well(name, LONG)
