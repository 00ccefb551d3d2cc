# SPDX-License-Identifier: Apache-2.0
"""Running jobs behind a gateway of OpenFaaS while what they stand on fails: functions, pods, the
gateway, the provider, a node, the object store, the operator. Every job ends with the bits of an
undisturbed run, and leaves nothing. Rows are as those of chaos_test.py, which tells what they print.
"""
import contextlib
import signal
import time

import openfaas
from chaos_test import FAR_NODE, LONG, MIDDLE, SHORT, WORKERS, Disturbed
from on_openfaas import DEPLOYMENTS, OnOpenFaas

# What docs/benchmarks.md says that a row took, in seconds.
RECOVERY = {
    "worker_killed": 5.7, "root_server_killed": 13.0, "function_deleted_behind_the_operators_back": 5.3,
    "deployment_deleted_behind_the_gateways_back": 5.9, "one_pod_deleted": 4.3, "gateway_restarted": 5.0,
    "provider_restarted": 1.0, "provider_away": 1.1, "gateway_times_out_in_every_slice": None,
    "node_cut_off_for_a_moment": 14.4, "store_stopped": 5.1, "operator_killed": 12.7,
}


class OpenFaasChaos(OnOpenFaas, Disturbed):
    RECOVERY = RECOVERY

    def restarts(self, pod):
        return pod["status"]["containerStatuses"][0]["restartCount"]

    def killed(self, index, falls_back):
        name, mark = self.begin(SHORT)
        uid = mark.functions[index].rsplit(".", 1)[0]
        self.wait("a process to kill", lambda: self.faults.kill_function(uid), 60)
        self.recovers(name, mark, falls_back)
        pod = next(pod for pod in self.pods(name) if pod["metadata"]["uid"] == uid)
        self.assertEqual(1, self.restarts(pod))
        self.ends_well(name, SHORT)

    def test_worker_killed(self):
        self.killed(0, falls_back=False)

    def test_root_server_killed(self):
        self.killed(WORKERS, falls_back=True)

    def worker_of(self, name):
        """The name of a function and the uid of its pod."""
        pod = self.live_pods(name, "workers")[0]
        return pod["metadata"]["labels"]["faas_function"], pod["metadata"]["uid"]

    def moves_on(self, name, mark, doomed):
        now = self.wait(f"{name} goes on without the pod", lambda: (
            now := self.mark(name)).functions and now.iteration > mark.iteration and doomed not in {
                uid.rsplit(".", 1)[0] for uid in now.functions} and now)
        seconds = mark.seconds()
        self.say(f"{seconds:.1f} s until it trained without it, at iteration {now.iteration} after {mark.iteration}, "
                 f"{now.incarnation - mark.incarnation} fall-backs")
        self.recovered_in(seconds)

    def test_function_deleted_behind_the_operators_back(self):
        name, mark = self.begin(MIDDLE)
        function, doomed = self.worker_of(name)
        status, text = self.gateway("DELETE", "/system/functions", {"functionName": function})
        self.assertEqual(202, status, text)
        self.moves_on(name, mark, doomed)
        self.assertIn(function, self.functions())
        self.ends_well(name, MIDDLE)

    def test_deployment_deleted_behind_the_gateways_back(self):
        """Its Service stays."""
        name, mark = self.begin(MIDDLE)
        function, doomed = self.worker_of(name)
        self.request("DELETE", f"{DEPLOYMENTS}/{function}", None)
        self.moves_on(name, mark, doomed)
        self.ends_well(name, MIDDLE)

    def test_one_pod_deleted(self):
        name, mark = self.begin(MIDDLE)
        _, doomed = self.worker_of(name)
        pod = self.live_pods(name, "workers")[0]
        self.request("DELETE", f"{self.PODS}/{pod['metadata']['name']}", None)
        self.moves_on(name, mark, doomed)
        self.ends_well(name, MIDDLE)

    # --- The gateway and the provider.

    def restarted(self, part):
        name, mark = self.begin(LONG)
        before = self.uids(name)
        openfaas.restart(self.kube, part)
        openfaas.wait_ready(self.kube)
        self.goes_on(name, mark, self.mark(name))
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, LONG)

    def test_gateway_restarted(self):
        self.restarted("gateway")

    def test_provider_restarted(self):
        self.restarted("faas-netes")

    @contextlib.contextmanager
    def without(self, part):
        self.kube.kubectl("scale", "--replicas=0", "--namespace", openfaas.NAMESPACE, f"deployment/{part}")
        try:
            yield
        finally:
            openfaas.restore(self.kube)

    def test_provider_away(self):
        """The operator hears of no slice meanwhile, and functions train on."""
        name, mark = self.begin(LONG)
        before = self.uids(name)
        with self.without("faas-netes"):
            time.sleep(15)
        self.goes_on(name, mark, self.mark(name))
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, LONG)

    def test_gateway_times_out_in_every_slice(self):
        """After 2 s, again and again: a slice takes longer, and no request does."""
        self.kube.apply_objects(openfaas.objects(timeout="2s"))
        self.addCleanup(openfaas.restore, self.kube)
        openfaas.wait_ready(self.kube)
        name, mark = self.begin(LONG)
        job = self.ends_well(name, LONG)
        self.assertEqual(mark.incarnation, job["status"]["execution"]["incarnation"])
        slices = job["status"]["usage"]["slices"] / len(mark.functions)
        self.assertLess(slices, 5, "slices were cut by the gateway")
        self.say(f"{slices:.1f} slices a function, each longer than the gateway's time-out")

    # --- What else they stand on.

    def test_node_cut_off_for_a_moment(self):
        name, mark = self.begin(MIDDLE)
        before = self.uids(name)
        with self.faults.cut_node(FAR_NODE):
            time.sleep(20)
        self.goes_on(name, mark, self.mark(name))
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, MIDDLE)

    def test_store_stopped(self):
        name, mark = self.begin(MIDDLE)
        with self.faults.without_store():
            time.sleep(15)
        self.goes_on(name, mark, self.mark(name))
        self.ends_well(name, MIDDLE)

    def test_operator_killed(self):
        name, mark = self.begin(SHORT)
        before = self.uids(name)
        self.stop(self.operator, signal.SIGKILL)
        type(self).operator = self.start_operator()
        self.goes_on(name, mark)
        self.assertEqual(before, self.uids(name))
        self.ends_well(name, SHORT)
