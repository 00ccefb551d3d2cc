# SPDX-License-Identifier: Apache-2.0
"""Folders, addresses and node sizes of a test cluster.

Addresses are the same in every cluster: they exist in the cluster's own network namespaces only.
"""
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

DEFAULT_RUN = "/tmp/lambdadnn-cluster"
# Sockets below the run folder have names of up to 60 characters, and the kernel's limit is 107.
LONGEST_RUN = 45

LAB_IP = "10.240.0.254"  # clients, tests and the object store
SERVICE_RANGE = "10.96.0.0/16"
POD_RANGE = "10.244.0.0/16"
DNS_IP = "10.96.0.10"
API_SERVER = "https://10.240.0.1:6443"
S3_ADDRESS = f"{LAB_IP}:9000"
S3_USER = "test-root"
S3_PASSWORD = "test-root-secret"
CONTROL_NODE = "n1"  # the control plane runs in its network namespace, beside its kube-proxy
MOST_NODES = 8

# What the control plane, the nodes' daemons, the store and the caller's own tools may take: the
# parts of an idle cluster take 1.5 GiB.
RESERVED_MIB = 3072
EVICTION_MIB = 100
SMALLEST_NODE_MIB = 1024


class ClusterError(Exception):
    """What went wrong and what to do next, in one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Node:
    number: int

    @property
    def name(self):
        return f"n{self.number}"

    @property
    def address(self):
        return f"10.240.0.{self.number}"

    @property
    def pods(self):
        return f"10.244.{self.number}.0/24"


class Settings:
    def __init__(self, run=None):
        self.run = pathlib.Path(run or os.environ.get("LAMBDADNN_CLUSTER_DIR", DEFAULT_RUN))
        if not self.run.is_absolute() or len(str(self.run)) > LONGEST_RUN:
            raise ClusterError(f"the run folder {self.run} must be an absolute path of at most "
                               f"{LONGEST_RUN} characters; set LAMBDADNN_CLUSTER_DIR")
        self.pki = self.run / "pki"
        self.logs = self.run / "log"
        self.pids = self.run / "pid"
        self.cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                                  os.path.expanduser("~/.cache")) / "lambdadnn"
        # Of control groups and of the CNI plugins' own files, which lie outside the run folder.
        tag = hashlib.sha256(str(self.run).encode()).hexdigest()[:6]
        self.name = f"lambdadnn-cluster-{tag}"

    def kubeconfig(self, user="admin"):
        return self.run / f"{user}.conf"

    def node_folder(self, node):
        return self.run / node.name

    def saved(self):
        """What the last `up` was asked for; None when there is no cluster."""
        try:
            return json.loads((self.run / "cluster.json").read_text())
        except (OSError, ValueError):
            return None

    def save(self, state):
        (self.run / "cluster.json").write_text(json.dumps(state))


def nodes(count):
    return [Node(number) for number in range(1, count + 1)]


def machine():
    """(CPU cores, MiB of memory) of this machine."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return len(os.sched_getaffinity(0)), int(line.split()[1]) // 1024
    raise ClusterError("/proc/meminfo has no MemTotal")


def node_share(count):
    """(milli-CPU, MiB) that each of `count` nodes offers to pods: together no more than there is."""
    cores, memory_mib = machine()
    share_mib = (memory_mib - RESERVED_MIB) // count
    if share_mib < SMALLEST_NODE_MIB:
        raise ClusterError(
            f"{count} nodes would have {share_mib} MiB each on this machine of {memory_mib} MiB, "
            f"and a node needs {SMALLEST_NODE_MIB}; take fewer (--nodes)")
    return cores * 1000 // count, share_mib


_programs = {}


def program(name):
    """The path of a program that scripts/test_servers.sh has built."""
    if name not in _programs:
        found = subprocess.run([ROOT / "scripts/test_servers.sh", "path", name],
                               capture_output=True, text=True)
        if found.returncode != 0:
            raise ClusterError(f"{name} is not built: {found.stderr.strip() or 'run scripts/cluster.sh build'}")
        _programs[name] = found.stdout.strip()
    return _programs[name]


def versions():
    """{name: version} of tests/servers/versions."""
    table = {}
    for line in (ROOT / "tests/servers/versions").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            table[words[0]] = words[-1]
    return table


def log(text):
    print(text, flush=True)
