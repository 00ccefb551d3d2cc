# SPDX-License-Identifier: Apache-2.0
"""The cluster's network: one namespace for clients and the switch, one for each node.

    lab   switch 10.240.0.254/24: clients, tests, the object store
    nK    uplink 10.240.0.K/24, cni0 10.244.K.1/24: node nK; n1 also has the control plane

Nothing has a default route and no link ends outside these namespaces: nothing leaves the cluster,
and the machine's own network is not touched. Namespaces are files in the run folder; with the last
process and the file gone, the kernel deletes links, routes and rules in them.
"""
import ctypes
import os
import pathlib
import subprocess
import threading

import settings
from settings import ClusterError

LAB = "lab"
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def mounts_below(folder):
    """Mount points at or below `folder`, the innermost first."""
    prefix = str(folder)
    found = []
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        point = line.split()[1].encode().decode("unicode_escape")
        if point == prefix or point.startswith(prefix + "/"):
            found.append(point)
    return found[::-1]


class Network:
    def __init__(self, config):
        self.folder = config.run / "net"

    def file(self, namespace):
        return self.folder / namespace

    def identity(self, namespace):
        """Which namespace it is at this moment; None when there is none."""
        try:
            found = os.stat(self.file(namespace))
        except OSError:
            return None
        # Without the mount it is an ordinary file.
        return None if found.st_dev == os.stat(self.folder).st_dev else found.st_ino

    def prefix(self, namespace):
        """What a command line begins with to run in the namespace; the process id stays."""
        return ["nsenter", f"--net={self.file(namespace)}"]

    def run(self, namespace, *words, text=None, check=True):
        done = subprocess.run([*self.prefix(namespace), *map(str, words)], input=text, text=True,
                              capture_output=True)
        if check and done.returncode != 0:
            raise ClusterError(f"`{' '.join(map(str, words))}` in namespace {namespace} failed: "
                               f"{done.stderr.strip()}")
        return done

    def call(self, namespace, function):
        """The result of function() in a thread of its own that is in the namespace."""
        return self.call_in(self.file(namespace), function)

    @staticmethod
    def call_in(file, function):
        """The same in the namespace that the file is, e.g. /proc/PID/ns/net."""
        outcome = {}

        def body():
            try:
                with open(file, "rb") as handle:
                    if _libc.setns(handle.fileno(), CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), f"cannot enter namespace {file}")
                outcome["value"] = function()
            except BaseException as error:  # handed to the caller
                outcome["error"] = error

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if "error" in outcome:
            raise outcome["error"]
        return outcome["value"]

    def _namespace(self, name):
        if self.identity(name) is None:
            self.file(name).touch()
            made = subprocess.run(["unshare", f"--net={self.file(name)}", "true"],
                                  capture_output=True, text=True)
            if made.returncode != 0:
                raise ClusterError("cannot make a network namespace (the cluster needs root with "
                                   f"the right to): {made.stderr.strip()}")
        self.run(name, "ip", "link", "set", "lo", "up")

    def _has_link(self, namespace, link):
        return self.run(namespace, "ip", "link", "show", link, check=False).returncode == 0

    def _batch(self, namespace, *lines):
        self.run(namespace, "ip", "-batch", "-", text="\n".join(lines) + "\n")

    def up(self, nodes):
        """Makes what is missing, and sets again what may have been changed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in [LAB, *(node.name for node in nodes)]:
            self._namespace(name)
        if not self._has_link(LAB, "switch"):
            self.run(LAB, "ip", "link", "add", "switch", "type", "bridge")
        self._batch(LAB, f"address replace {settings.LAB_IP}/24 dev switch", "link set switch up")
        for node in nodes:
            self._node(node, nodes)
        self._batch(LAB, *(f"route replace {node.pods} via {node.address}" for node in nodes),
                    f"route replace {settings.SERVICE_RANGE} via {nodes[0].address}")

    def _node(self, node, nodes):
        port = f"{node.name}-port"
        if not self._has_link(node.name, "uplink") or not self._has_link(LAB, port):
            self.run(LAB, "ip", "link", "delete", port, check=False)
            self.run(LAB, "ip", "link", "add", port, "type", "veth", "peer", "name", "uplink",
                     "netns", self.file(node.name))
        self._batch(LAB, f"link set {port} master switch up")
        self._batch(node.name, f"address replace {node.address}/24 dev uplink",
                    "link set uplink up",
                    # Processes of the node itself need some route to a service before the address
                    # is rewritten to a pod's.
                    f"route replace {settings.SERVICE_RANGE} dev uplink",
                    *(f"route replace {other.pods} via {other.address}" for other in nodes
                      if other != node))
        self.run(node.name, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; "
                 "echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet")
        # Lets rules of services and partitions act between two pods on one bridge. Absent where the
        # kernel has it as a module that is not loaded.
        self.run(node.name, "sh", "-c", "[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || "
                 "echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables")
