# SPDX-License-Identifier: Apache-2.0
"""Running jobs on pods of Knative while what they stand on fails: the rows of chaos_case.py, which
tells what they print, and those of Knative.

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays. The rest is
told by on_pods.py.
"""
import time

import chaos_case
import on_pods
import settings
from chaos_case import FAR_NODE, LONG, MIDDLE, SHORT, WORKERS
from memory import mebibytes
from on_pods import SERVICES, TAG

KNATIVE_PODS = "/api/v1/namespaces/knative-serving/pods"
EVENTS = "/api/v1/namespaces/default/events"
NODES = "/api/v1/nodes"
# What docs/benchmarks.md says that a row took, in seconds; those without a figure recover from nothing.
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


class Chaos(chaos_case.CommonRows):
    RECOVERY = RECOVERY

    # --- Containers and pods end.

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

    # --- Networks, kubelets, Knative, images and room on nodes are away for a while.

    def test_operator_cut_off_from_pods_for_a_moment(self):
        name, mark = self.cut_from_operator(15, settings.POD_RANGE)
        self.goes_on(name, mark, self.mark(name))
        self.ends_well(name, LONG)

    def test_operator_cut_off_from_pods_until_they_are_given_up(self):
        name, mark = self.cut_from_operator(45, settings.POD_RANGE)
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
