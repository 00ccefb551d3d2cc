# SPDX-License-Identifier: Apache-2.0
"""Finds what a cluster may have left on its machine by its own marks (run folder, control
groups, process ids), so that whatever else the machine does meanwhile is not mistaken for it."""
import os
import pathlib

import processes

CNI_STATE = pathlib.Path("/var/lib/cni")


def _processes_naming(text):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes() + (folder / "cgroup").read_bytes()
        except OSError:
            continue
        # A zombie does not count, though its parent has not waited for it yet.
        alive = processes.start_ticks(folder.name) is not None
        if text.encode() in words and alive and folder.name != str(os.getpid()):
            yield folder.name


class Leftovers:
    """Made while the cluster is up; all() is empty once it is down."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.marks = [cluster.config.name, str(cluster.config.run)]
        self.alive = {pid: processes.start_ticks(pid)
                      for pid in cluster.processes.groups.processes()}

    def all(self):
        mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        found = [f"process {pid}" for mark in self.marks for pid in _processes_naming(mark)]
        found += [f"process {pid}" for pid, started in self.alive.items()
                  if started and started == processes.start_ticks(pid)]
        found += [f"mount {line}" for line in mounts if any(mark in line for mark in self.marks)]
        found += [f"group {folder}" for folder in self.cluster.processes.groups.folders()]
        found += [str(file) for file in CNI_STATE.glob(f"**/{self.cluster.config.name}*")]
        if self.cluster.config.run.exists():
            found.append(str(self.cluster.config.run))
        return found
