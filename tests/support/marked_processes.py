# SPDX-License-Identifier: Apache-2.0
"""Ends what tests leave running, wherever it went: by variables that every process of a test has.

LAMBDADNN_TEST_RUN is of one run of tests/support/run_ctest.py, LAMBDADNN_TEST of one test in it
(lambdadnn_add_test). The parts of a cluster (scripts/cluster.sh) outlive the test that started them:
they lie in control groups of their own, and its last test ends them."""
import os
import pathlib
import signal
import time

OF_A_CLUSTER = "/lambdadnn-cluster"
WAIT_SECONDS = 10
EXEC_SECONDS = 0.2


def _read(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _parent(pid):
    stat = _read(pid, "stat")
    # The name in parentheses may hold anything.
    fields = stat[stat.rfind(b")") + 2:].split()
    return int(fields[1]) if len(fields) > 1 and fields[0] != b"Z" else 0


def _environment(pid):
    """What the process was started with. It is empty for a moment while the process becomes another
    program, so that an empty one is read again."""
    deadline = time.monotonic() + EXEC_SECONDS
    try:
        while True:
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            if environment or time.monotonic() > deadline:
                return environment.split(b"\0")
            time.sleep(0.005)
    except OSError:  # it ended, is of the kernel, or another user's
        return []


def find(run, test=None):
    """Process ids: those marked, and their descendants, whatever their environment is."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    marks = [f"LAMBDADNN_TEST_RUN={run}".encode()]
    if test is not None:
        marks.append(f"LAMBDADNN_TEST={test}".encode())
    parents = {pid: _parent(pid) for pid in pids}
    found = {pid for pid in pids if parents[pid] and
             set(marks) <= set(_environment(pid))}
    grown = True
    while grown:
        more = {pid for pid in pids if parents[pid] in found} - found
        found |= more
        grown = bool(more)
    return {pid for pid in found - {os.getpid()}
            if OF_A_CLUSTER.encode() not in _read(pid, "cgroup")}


def end(run, test=None):
    """Kills them all, and returns their command lines."""
    commands = {}
    deadline = time.monotonic() + WAIT_SECONDS
    while (pids := find(run, test)) and time.monotonic() < deadline:
        for pid in pids:
            command = _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")
            commands.setdefault(pid, command.strip() or str(pid))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    return list(commands.values())
