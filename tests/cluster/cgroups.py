# SPDX-License-Identifier: Apache-2.0
"""Control groups of one cluster, in every hierarchy below one folder of the cluster's name.

Each daemon starts in a group of its own (NAME/parts/PART) and each node's pods live below
NAME/NODE; so whatever a cluster ever started, shims and grandchildren included, is found here and
nowhere else. Version 1 (one hierarchy a controller) and version 2 (one in all) of control groups.
"""
import os
import pathlib
import signal
import time

MOUNT = pathlib.Path("/sys/fs/cgroup")


def is_unified():
    """Version 2."""
    return (MOUNT / "cgroup.controllers").exists()


def hierarchies():
    """The folders of all mounted hierarchies; links are second names of the same."""
    if is_unified():
        return [MOUNT]
    return [folder for folder in sorted(MOUNT.iterdir())
            if not folder.is_symlink() and (folder / "cgroup.procs").exists()]


def is_zombie(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True


def limits_of(pid):
    """(bytes of memory, cores of CPU) that the kernel holds the process's own group to."""
    folders = {}
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            folders[controller] = path.lstrip("/")
    if is_unified():
        group = MOUNT / folders[""]
        quota, period = (group / "cpu.max").read_text().split()
        return int((group / "memory.max").read_text()), int(quota) / int(period)
    cpu = MOUNT / "cpu" / folders["cpu"]
    return (int((MOUNT / "memory" / folders["memory"] / "memory.limit_in_bytes").read_text()),
            int((cpu / "cpu.cfs_quota_us").read_text()) /
            int((cpu / "cpu.cfs_period_us").read_text()))


class Cgroups:
    def __init__(self, name):
        self.name = name

    def _make(self, hierarchy, *path):
        folder = hierarchy / self.name
        parents = [folder]
        for word in path:
            folder = folder / word
            parents.append(folder)
        for each in parents:
            each.mkdir(exist_ok=True)
            # A cpuset of version 1 admits no process until it has been given processors.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (each / "cgroup.procs").exists() and hierarchy.name == "cpuset":
                    if not (each / file).read_text().strip():
                        (each / file).write_text((each.parent / file).read_text())
        return folder

    def make_node(self, node):
        for hierarchy in hierarchies():
            self._make(hierarchy, node)

    def node_root(self, node):
        return f"/{self.name}/{node}"

    def part(self, name):
        """The file that a process joins the group of part `name` by writing its id to."""
        every = hierarchies()
        # Any hierarchy serves to find processes again; this one limits nothing.
        chosen = next((h for h in every if h.name == "pids"), every[0])
        return self._make(chosen, "parts", name) / "cgroup.procs"

    def folders(self):
        """All groups of the cluster, the deepest first."""
        for hierarchy in hierarchies():
            top = hierarchy / self.name
            for folder, _, _ in os.walk(top, topdown=False):
                yield pathlib.Path(folder)

    def processes(self):
        """The ids of all living processes of the cluster."""
        found = set()
        for folder in self.folders():
            try:
                found.update(int(word) for word in (folder / "cgroup.procs").read_text().split())
            except OSError:
                continue  # removed meanwhile
        return {pid for pid in found if not is_zombie(pid)}

    def _kill_one(self, pid):
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return
        try:
            # The number may be another process's by now; the descriptor cannot become one.
            if f"/{self.name}/" in pathlib.Path(f"/proc/{pid}/cgroup").read_text():
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except OSError:
            pass
        finally:
            os.close(descriptor)

    def kill_all(self, seconds=30):
        """Kills every process of the cluster; returns the ids that would not die."""
        deadline = time.monotonic() + seconds
        while True:
            left = self.processes()
            if not left or time.monotonic() > deadline:
                return left
            for pid in left:
                self._kill_one(pid)
            time.sleep(0.05)

    def remove(self, seconds=10):
        """Removes all groups; returns those that would not go."""
        deadline = time.monotonic() + seconds
        while True:
            left = []
            for folder in self.folders():
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    pass
                except OSError:
                    left.append(str(folder))
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.1)
