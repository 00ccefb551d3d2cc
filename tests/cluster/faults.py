# SPDX-License-Identifier: Apache-2.0
"""Faults of a running cluster, each made by one call and taken back by another; taking back what is
whole changes nothing."""
import contextlib
import os
import signal

import control_plane
import network
import nodes
import object_store
import pod_processes
import settings


class Faults:
    def __init__(self, cluster):
        self.cluster = cluster

    # --- The network.

    def _port(self, node, state):
        self.cluster.network.run(network.LAB, "ip", "link", "set", f"{node.name}-port", state)

    @contextlib.contextmanager
    def cut_node(self, node):
        """No traffic to or from the node and its pods."""
        self._port(node, "down")
        try:
            yield
        finally:
            self._port(node, "up")

    @contextlib.contextmanager
    def cut_clients(self, *ranges, port=None):
        """Those among the clients (the operator is one) do not reach these addresses, or this port of
        theirs; the object store, which lives among them, answers others. Yields how many packets were
        lost so far."""
        to_port = ("--dport", str(port)) if port else ()
        rules = [("OUTPUT", "-d", each, "-p", "tcp", "!", "--sport", "9000", *to_port, "-j", "DROP")
                 for each in ranges]
        for rule in rules:
            self._iptables("-I", *rule)
        try:
            yield self._dropped
        finally:
            for rule in rules:
                self._iptables("-D", *rule)

    def _iptables(self, *words):
        return self.cluster.network.run(network.LAB, "iptables", *words).stdout

    def _dropped(self):
        return sum(int(line.split()[0]) for line in self._iptables("-vnxL", "OUTPUT").splitlines()
                   if " DROP " in line)

    # --- Daemons.

    def _down(self, name):
        """At once, as when its machine fails."""
        self.cluster.processes.signal(name, signal.SIGKILL)
        self.cluster.processes.stop(name)

    @contextlib.contextmanager
    def _without(self, name, parts):
        self._down(name)
        try:
            yield
        finally:
            self.cluster.processes.up(parts)

    def without_kubelet(self, node):
        return self._without(f"{node.name}-kubelet", nodes.agents(self.cluster.config, node))

    def without_store(self):
        return self._without("minio", [object_store.part(self.cluster.config)])

    def without_api_server(self):
        return self._without("kube-apiserver",
                             control_plane.store_and_server(self.cluster.config))

    # --- Containers and images.

    def kill_function(self, pod_uid):
        """The function's process in the pod, not its queue-proxy. False: none runs."""
        pid = pod_processes.function_of(self.cluster, pod_uid)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def _images(self, *words):
        for node in settings.nodes(self.cluster.count()):
            self.cluster.network.run(
                node.name, "ctr", "--address",
                nodes.containerd_socket(self.cluster.config, node), "--namespace", "k8s.io",
                "images", *words, check=False)

    def name_image(self, name, other):
        """Gives an image of all nodes another name, too."""
        self._images("tag", name, other)

    def forget_image(self, name):
        self._images("rm", name)

    # --- Nodes as the scheduler sees them.

    @contextlib.contextmanager
    def closed_nodes(self):
        """No node takes another pod."""
        self._close(True)
        try:
            yield
        finally:
            self._close(False)

    def _close(self, closed):
        for node in settings.nodes(self.cluster.count()):
            self.cluster.kubernetes.kubectl("cordon" if closed else "uncordon", node.name)
