# SPDX-License-Identifier: Apache-2.0
"""Running jobs behind a gateway of OpenFaaS while what they stand on fails: the rows of chaos_case.py,
which tells what they print, and those of functions, the gateway and the provider.
"""
import contextlib
import time

import chaos_case
import openfaas
from chaos_case import API_SERVER, LONG, MIDDLE
from on_openfaas import DEPLOYMENTS, OnOpenFaas

# What docs/benchmarks.md says that a row took, in seconds.
RECOVERY = {
    "worker_killed": 6.3, "root_server_killed": 6.6, "leaf_server_killed": 6.7,
    "function_deleted_behind_the_operators_back": 5.8, "all_workers_deleted_behind_the_operators_back": 9.0,
    "all_servers_deleted_behind_the_operators_back": 4.8, "deployment_deleted_behind_the_gateways_back": 5.9,
    "one_pod_deleted": 4.0, "all_workers_deleted": 6.1, "all_servers_deleted": 3.8,
    "gateway_restarted": 3.9, "provider_restarted": 2.1, "provider_away": 1.6,
    "gateway_times_out_in_every_slice": None, "operator_cut_off_from_the_gateway_for_a_moment": 1.1,
    "operator_cut_off_from_the_gateway_until_functions_are_given_up": 47.8,
    "node_cut_off_for_a_moment": 1.7, "node_cut_off_until_it_is_given_up": 53.5, "store_stopped": 6.7,
    "api_server_restarted": 2.1, "operator_killed": 5.9, "leader_killed": 17.9, "leader_frozen_and_thawed": 17.2,
    "operators_node_cut_off": 8.5,
}


class OpenFaasChaos(OnOpenFaas, chaos_case.CommonRows):
    RECOVERY = RECOVERY

    def deleted_at_the_gateway(self, group, count=None):
        """By another user of it."""
        name, mark = self.begin(MIDDLE)
        doomed = self.live_pods(name, group)[:count]
        functions = [pod["metadata"]["labels"]["faas_function"] for pod in doomed]
        for function in functions:
            status, text = self.gateway("DELETE", "/system/functions", {"functionName": function})
            self.assertEqual(202, status, text)
        self.moves_away(name, mark, {pod["metadata"]["uid"] for pod in doomed})
        self.assertLessEqual(set(functions), set(self.functions()))
        self.ends_well(name, MIDDLE)

    def test_function_deleted_behind_the_operators_back(self):
        self.deleted_at_the_gateway("workers", 1)

    def test_all_workers_deleted_behind_the_operators_back(self):
        self.deleted_at_the_gateway("workers")

    def test_all_servers_deleted_behind_the_operators_back(self):
        self.deleted_at_the_gateway("servers")

    def test_deployment_deleted_behind_the_gateways_back(self):
        """Its Service stays."""
        name, mark = self.begin(MIDDLE)
        pod = self.live_pods(name, "workers")[0]["metadata"]
        self.request("DELETE", f"{DEPLOYMENTS}/{pod['labels']['faas_function']}", None)
        self.moves_away(name, mark, {pod["uid"]})
        self.ends_well(name, MIDDLE)

    # --- The gateway and the provider.

    def undisturbed(self, name, mark):
        """Goes on, on the same pods, to the end."""
        self.goes_on(name, mark, self.mark(name))
        self.assertEqual(mark.pods(), self.uids(name))
        self.ends_well(name, LONG)

    def restarted(self, part):
        name, mark = self.begin(LONG)
        openfaas.restart(self.kube, part)
        openfaas.wait_ready(self.kube)
        self.undisturbed(name, mark)

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
        with self.without("faas-netes"):
            time.sleep(15)
        self.undisturbed(name, mark)

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

    def test_operator_cut_off_from_the_gateway_for_a_moment(self):
        """It reaches the API server, which shows it that all pods are there."""
        self.undisturbed(*self.cut_from_operator(15, API_SERVER, port=openfaas.NODE_PORT))

    def test_operator_cut_off_from_the_gateway_until_functions_are_given_up(self):
        name, mark = self.cut_from_operator(45, API_SERVER, port=openfaas.NODE_PORT)
        self.recovers(name, mark)
        self.ends_well(name, LONG)
