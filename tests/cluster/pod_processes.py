# SPDX-License-Identifier: Apache-2.0
"""The processes in pods, as the machine sees them."""
import os
import pathlib

FUNCTIONS = ("lambdadnn-worker", "lambdadnn-server")


def of_pod(cluster, uid):
    """Yields the ids of all."""
    for pid in cluster.processes.groups.processes():
        try:
            if f"pod{uid}" in pathlib.Path(f"/proc/{pid}/cgroup").read_text():
                yield pid
        except OSError:
            pass  # has ended meanwhile


def function_of(cluster, uid):
    """The id of the function; None while there is none."""
    for pid in of_pod(cluster, uid):
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            continue
        if os.path.basename(command.decode()) in FUNCTIONS:
            return pid
    return None
