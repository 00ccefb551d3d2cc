# SPDX-License-Identifier: Apache-2.0
"""Running jobs on pods of Knative while what they stand on fails: functions, pods, nodes, networks,
Knative, Kubernetes, the object store, the operator. Every job ends with the bits of an undisturbed
run, and leaves nothing.

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays. The rest is
told by on_pods.py. Each row prints what it cost: "recovery: ROW: …", seconds between the fault and
the status that first tells of more iterations than were done by then, which is written every 2 s.
"""
import contextlib
import os
import signal
import time

import on_pods
from faults import Faults
from memory import mebibytes
from on_pods import JOBS, SERVICES, TAG, OnPods
from settings import ClusterError, Node

KNATIVE_PODS = "/api/v1/namespaces/knative-serving/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/api/v1/namespaces/default/events"
NODES = "/api/v1/nodes"
# Epochs of 17 iterations, for faults that end at once, that hold the job up, and that last while it
# runs on: a row whose job is over before its fault is fails. A job does five iterations a second on
# two idle cores.
SHORT, MIDDLE, LONG = map(int, os.environ.get("LAMBDADNN_CHAOS_EPOCHS", "6,15,40").split(","))
# What docs/benchmarks.md says that a row took, in seconds; those without a figure recover from nothing.
# A row may take three times as long, of figures that come by a status written every 2 s.
RECOVERY = {
    "worker_killed": 8.0, "root_server_killed": 9.0, "leaf_server_killed": 7.0,
    "worker_killed_behind_the_ingress": 5.8, "worker_killed_twice_within_seconds": 7.2,
    "one_pod_deleted": 31.7, "all_workers_deleted": 32.2, "all_servers_deleted": 31.8,
    "service_deleted_behind_the_operators_back": 36.6, "out_of_memory": None, "tenth_of_a_cpu": 4.2,
    "short_function_timeout": None, "node_cut_off_for_a_moment": 12.5,
    "node_cut_off_until_it_is_given_up": 88.0, "operator_cut_off_from_pods_for_a_moment": 0.4,
    "operator_cut_off_from_pods_until_they_are_given_up": 46.3, "kubelet_stopped": 1.4,
    "knative_restarted": 0.8, "image_missing_at_first": 3.7, "unschedulable_for_too_long": 103.1,
    "store_stopped": 7.6, "api_server_restarted": 10.5, "operator_killed": 2.5,
    "leader_killed": 17.9, "leader_frozen_and_thawed": 17.1, "operators_node_cut_off": 8.4,
}
TIMES, STATUS_SECONDS = 3, 2
WORKERS = 4
FAR_NODE = Node(2)
API_SERVER = f"{Node(1).address}/32"
CLIENTS = ("10.244.0.0/16", API_SERVER)


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


class Disturbed(OnPods):
    """What rows are made of."""
    RECOVERY = RECOVERY

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


class Chaos(Disturbed):
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
        return next(each["restartCount"] for each in pod["status"]["containerStatuses"]
                    if each["name"] == "function")

    def test_worker_killed(self):
        """The others wait for the one that replaces it."""
        self.killed(0, falls_back=False)

    def test_root_server_killed(self):
        self.killed(WORKERS, falls_back=True)

    def test_leaf_server_killed(self):
        self.killed(-1, falls_back=True)

    def test_worker_killed_behind_the_ingress(self):
        """The restarted container is reached by the same name."""
        self.killed(0, False, {"addressing": "Service"})

    def test_worker_killed_twice_within_seconds(self):
        name, mark = self.begin(SHORT)
        uid = self.kill(name, mark, 0)
        time.sleep(1)
        self.assertEqual(uid, self.kill(name, mark, 0))
        # The kubelet would wait 10 s and more: another pod takes its place.
        self.wait("another pod", lambda: uid not in self.uids(name))
        self.recovers(name, mark)
        self.ends_well(name, SHORT)

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
            now := self.mark(name)).functions and not doomed & {
                uid.rsplit(".", 1)[0] for uid in now.functions} and now)
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

    def test_service_deleted_behind_the_operators_back(self):
        name, mark = self.begin(MIDDLE)
        path, doomed = f"{SERVICES}/{name}-servers", self.uids(name, "servers")
        before = self.kube.get(path)["metadata"]["uid"]
        self.request("DELETE", path, None)

        def again():
            now = self.kube.get(path)
            return now and now["metadata"]["uid"] != before
        self.wait("another Service", again)
        self.moves_away(name, mark, doomed)
        self.ends_well(name, MIDDLE)

    def test_out_of_memory(self):
        """No worker starts with 64 MiB, which the profile says is enough."""
        tight = self.PLATFORM.replace("min: 128Mi", "min: 64Mi")
        self.assertNotEqual(tight, self.PLATFORM)
        with self.other_operator(tight):
            # More memory buys no time, so that the least there is costs least.
            profile = {**on_pods.spec(SHORT)["profile"], "workerBaseMemory": "32Mi",
                       "workerBytesPerSample": "1024",
                       "trainingRate": {"slope": "0", "intercept": "500"}}
            name, _ = self.begin(SHORT, {
                "objective": {"deadlineSeconds": 100000}, "profile": profile,
                "functions": {"min": WORKERS, "max": WORKERS}})
            job = self.ends_well(name, SHORT)
        status = job["status"]
        too_small = mebibytes(status["execution"]["tooSmallWorkerMemory"])
        self.assertGreaterEqual(too_small, 64)
        self.assertGreater(mebibytes(status["plan"]["memory"]), too_small)
        self.say(f"{status['plan']['revision']} plans, the last with "
                 f"{status['plan']['memory']} a worker")

    def test_tenth_of_a_cpu(self):
        """A start takes seconds then, and probes fail meanwhile."""
        slow = self.PLATFORM.replace("milliCpuPerGiB: 300", "milliCpuPerGiB: 267")
        self.assertNotEqual(slow, self.PLATFORM)
        aggregation = {**on_pods.spec(SHORT)["aggregation"], "serverMemory": "384Mi"}
        with self.other_operator(slow):
            name, mark = self.begin(SHORT, {"aggregation": aggregation})
            for pod in self.live_pods(name):
                container = next(each for each in pod["spec"]["containers"]
                                 if each["name"] == "function")
                self.assertEqual("100m", container["resources"]["limits"]["cpu"])
            pods = {pod["metadata"]["name"] for pod in self.live_pods(name)}
            late = [event for event in self.kube.get(EVENTS)["items"]
                    if event["reason"] == "Unhealthy" and event["involvedObject"]["name"] in pods]
            self.assertTrue(late, "no probe failed")
            self.kill(name, mark, 0)
            self.recovers(name, mark)
            self.ends_well(name, SHORT)

    def test_short_function_timeout(self):
        many = self.PLATFORM.replace("functionTimeoutSeconds: 300", "functionTimeoutSeconds: 20")
        self.assertNotEqual(many, self.PLATFORM)
        with self.other_operator(many):
            name, mark = self.begin(LONG)
            job = self.ends_well(name, LONG)
        rounds = job["status"]["usage"]["slices"] / len(mark.functions)
        self.assertGreaterEqual(rounds, 3)
        self.assertEqual(mark.incarnation, job["status"]["execution"]["incarnation"])
        self.say(f"{rounds:.0f} rounds of slices")

    # --- Nodes, networks, Kubernetes, Knative and the object store are away for a while.

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

    def cut_from_operator(self, seconds):
        """In the middle of slices: its way to the API server and to all pods."""
        name, mark = self.begin(LONG)
        with self.faults.cut_clients("10.244.0.0/16") as dropped:
            time.sleep(seconds)
            self.assertGreater(dropped(), 0)
        return name, mark

    def test_operator_cut_off_from_pods_for_a_moment(self):
        name, mark = self.cut_from_operator(15)
        self.goes_on(name, mark, self.mark(name))
        self.ends_well(name, LONG)

    def test_operator_cut_off_from_pods_until_they_are_given_up(self):
        name, mark = self.cut_from_operator(45)
        self.recovers(name, mark, falls_back=True)
        self.ends_well(name, LONG)

    def test_kubelet_stopped(self):
        """Until its node counts as lost, and its pods as unready: what runs there runs on."""
        name, mark = self.begin(LONG)
        before = self.uids(name)

        def lost():
            conditions = self.kube.get(f"{NODES}/{FAR_NODE.name}")["status"]["conditions"]
            return any(each["type"] == "Ready" and each["status"] == "Unknown"
                       for each in conditions)
        with self.faults.without_kubelet(FAR_NODE):
            self.wait("the node is lost", lost)
            self.assertTrue([pod for pod in self.live_pods(name)
                             if pod["spec"]["nodeName"] == FAR_NODE.name])
        self.goes_on(name, mark, self.mark(name))
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, LONG)

    def test_knative_restarted(self):
        name, mark = self.begin(LONG)
        before, ours = self.knative(), self.uids(name)
        for pod in before.values():
            self.request("DELETE", f"{KNATIVE_PODS}/{pod}", None)
        self.wait("Knative is back", lambda: (
            now := self.knative(ready=True)) and len(now) == len(before) and not
            now.keys() & before.keys())
        self.goes_on(name, mark, self.mark(name))
        self.assertEqual(ours, self.uids(name))
        self.ends_well(name, LONG)

    def knative(self, ready=False):
        """{uid: name} of what scales pods and carries requests."""
        selector = "labelSelector=app%20in%20(activator,autoscaler,controller)"
        return {pod["metadata"]["uid"]: pod["metadata"]["name"]
                for pod in self.kube.get(f"{KNATIVE_PODS}?{selector}")["items"]
                if "deletionTimestamp" not in pod["metadata"] and (not ready or any(
                    each["type"] == "Ready" and each["status"] == "True"
                    for each in pod["status"].get("conditions", [])))}

    def test_image_missing_at_first(self):
        late = "dev.local/late-worker:1"
        self.faults.forget_image(late)
        self.addCleanup(self.faults.forget_image, late)
        name = "image-missing-at-first"
        self.create(name, SHORT, {"podTemplate": {"spec": {"containers": [{"name": "worker", "image": late}]}}})

        def told():
            conditions = self.job(name).get("status", {}).get("conditions", [])
            return any(each["reason"] == "ImagePullFailed" for each in conditions)
        self.wait("the job tells of the image", told)
        loaded = time.monotonic()
        self.faults.name_image(f"dev.local/lambdadnn-worker:{TAG}", late)
        self.running(name, 1)
        seconds = time.monotonic() - loaded
        self.say(f"{seconds:.1f} s from the image's arrival to the first iteration")
        self.recovered_in(seconds)
        self.ends_well(name, SHORT)

    def test_unschedulable_for_too_long(self):
        """No node takes the pod that replaces another, until the job gives all of them back."""
        name, mark = self.begin(SHORT)
        with self.faults.closed_nodes():
            doomed = self.live_pods(name, "workers")[0]["metadata"]["name"]
            # Without a drain, which would save what it does.
            self.kube.kubectl("delete", "pod", doomed, "--grace-period=0", "--force")
            self.wait("the job releases its functions", lambda: not self.live_pods(name))
            self.say(f"{mark.seconds():.1f} s until all functions were released")
        self.recovers(name, mark, falls_back=True)
        self.ends_well(name, SHORT)

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

    def test_operators_node_cut_off(self):
        """In the middle of slices: it reaches neither the API server nor a pod."""
        name, mark = self.begin(LONG)
        before = self.uids(name)
        with self.faults.cut_clients(*CLIENTS) as dropped:
            time.sleep(20)
            self.assertGreater(dropped(), 0)
        self.goes_on(name, mark, self.wait("the API server", lambda: self.mark(name)))
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, LONG)
