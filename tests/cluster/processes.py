# SPDX-License-Identifier: Apache-2.0
"""Daemons of the cluster: started from files, found again by files, stopped by process id.

A Part says how a daemon is run and how one sees that it is well. Its id, the kernel's time of its
start (an id may come back as another process), its command line and its namespace stand in
RUN/pid/NAME, what it prints in RUN/log/NAME.log.
"""
import dataclasses
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import typing

import cgroups
from settings import ClusterError

START_SECONDS = 120
STOP_SECONDS = 5
# How long a part that was found running may fail its health check before it is restarted.
PATIENCE_SECONDS = 30
PROBE_SECONDS = 5
POLL_SECONDS = 0.1


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    namespace: str
    command: list
    # Called in the part's network namespace; well when it returns True, unwell when it raises.
    probe: typing.Callable[[], bool]
    version: str
    environment: dict = dataclasses.field(default_factory=dict)


def http_probe(address, path, context=None, accept=(200,)):
    """A probe that asks `address` ("host:port"), with TLS when there is a context."""
    def probe():
        if context is None:
            connection = http.client.HTTPConnection(address, timeout=PROBE_SECONDS)
        else:
            connection = http.client.HTTPSConnection(address, timeout=PROBE_SECONDS,
                                                     context=context())
        try:
            connection.request("GET", path)
            return connection.getresponse().status in accept
        finally:
            connection.close()
    return probe


def socket_probe(path):
    def probe():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PROBE_SECONDS)
            connection.connect(str(path))
        return True
    return probe


def start_ticks(pid):
    """The kernel's time of the process's start; None when there is no such process, or a dead one."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def resident_mib(pids):
    """Memory that the processes have in RAM, in MiB."""
    total = 0
    for pid in pids:
        try:
            pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        total += pages * os.sysconf("SC_PAGE_SIZE")
    return total / 2**20


class Processes:
    def __init__(self, config, network):
        self.config = config
        self.network = network
        self.groups = cgroups.Cgroups(config.name)

    def _record(self, name):
        try:
            return json.loads((self.config.pids / name).read_text())
        except (OSError, ValueError):
            return None

    def pid(self, name):
        """The id of the running daemon; None when it does not run."""
        record = self._record(name)
        if record and start_ticks(record["pid"]) == record["started"]:
            return record["pid"]
        return None

    def _is_as_described(self, part):
        record = self._record(part.name)
        return (record is not None and self.pid(part.name) is not None
                and record["command"] == [str(word) for word in part.command]
                and record["namespace"] == self.network.identity(part.namespace))

    def healthy(self, part):
        if self.pid(part.name) is None:
            return False
        try:
            return self.network.call(part.namespace, part.probe)
        except (OSError, http.client.HTTPException, ClusterError):
            return False

    def start(self, part):
        self.config.pids.mkdir(parents=True, exist_ok=True)
        self.config.logs.mkdir(parents=True, exist_ok=True)
        command = [str(word) for word in part.command]
        # The shell joins the group and becomes nsenter, which becomes the daemon: one process id.
        with open(self.config.logs / f"{part.name}.log", "ab") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', self.groups.part(part.name),
                 *self.network.prefix(part.namespace), *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.config.run,
                start_new_session=True, env={**os.environ, "NO_PROXY": "*", "no_proxy": "*", **part.environment})
        record = {"pid": process.pid, "started": start_ticks(process.pid), "command": command,
                  "namespace": self.network.identity(part.namespace)}
        file = self.config.pids / part.name
        file.with_suffix(".new").write_text(json.dumps(record))
        file.with_suffix(".new").rename(file)

    def signal(self, name, how):
        """Sends the signal to the daemon itself; its children are not touched. False: it is gone."""
        record = self._record(name)
        if record is None:
            return False
        try:
            descriptor = os.pidfd_open(record["pid"])
        except OSError:
            return False
        try:
            if start_ticks(record["pid"]) != record["started"]:
                return False
            signal.pidfd_send_signal(descriptor, how)
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def stop(self, name):
        """Ends a daemon, by force when it does not go by itself; what it started lives on."""
        self.signal(name, signal.SIGTERM)
        # One that was stopped by a signal would not see the other one.
        self.signal(name, signal.SIGCONT)
        if not self._wait_gone(name):
            self.signal(name, signal.SIGKILL)
            if not self._wait_gone(name):
                raise ClusterError(f"{name} (process {self.pid(name)}) does not end; "
                                   "run scripts/cluster.sh down")
        (self.config.pids / name).unlink(missing_ok=True)

    def _wait_gone(self, name):
        deadline = time.monotonic() + STOP_SECONDS
        while self.pid(name) is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def log_tail(self, name, lines=15):
        try:
            text = (self.config.logs / f"{name}.log").read_text(errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def ensure(self, part):
        """Starts the part unless it runs as described; True when it was started."""
        if self._is_as_described(part):
            return False
        if self.pid(part.name) is not None:
            self.stop(part.name)
        self.start(part)
        return True

    def wait_healthy(self, part, was_started):
        """Waits until the part is well. One that ran before and is not well is started anew; True
        when the part has been started, by this call or before it."""
        if not was_started:
            if self._wait_probe(part, PATIENCE_SECONDS):
                return False
            self.stop(part.name)
            self.start(part)
        if not self._wait_probe(part, START_SECONDS):
            state = "does not answer" if self.pid(part.name) else "has ended"
            raise ClusterError(
                f"{part.name} {state} within {START_SECONDS} s; its log ({self.config.logs}/"
                f"{part.name}.log) ends with:\n{self.log_tail(part.name)}")
        return True

    def _wait_probe(self, part, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.healthy(part):
                return True
            if self.pid(part.name) is None:
                return False
            time.sleep(POLL_SECONDS)
        return False

    def up(self, parts):
        """Brings all of `parts` up at once and waits for each; True when one had to be started."""
        started = [(part, self.ensure(part)) for part in parts]
        waited = [self.wait_healthy(part, was_started) for part, was_started in started]
        return any(waited)
