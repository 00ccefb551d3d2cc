#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes control plane without nodes: etcd, kube-apiserver and kube-controller-manager on free
ports of 127.0.0.1, with TLS and RBAC.

    tests/support/kube_control_plane.py DIR

prints one line of JSON once it answers, {"kubeconfig": DIR/admin.conf, "server": URL, "pids": {...}},
and ends (everything stopped) when its standard input is closed or on SIGTERM. The programs are
those of `scripts/test_servers.sh build etcd kubernetes`. Tests in Python import ControlPlane.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from certificates import Authority, write_kubeconfig
from control_plane_commands import api_server_command, controller_manager_command, etcd_command
from ports import reserve_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 120
# For the endpoints of the service "kubernetes", which nothing here uses; loopback is refused.
ADVERTISED = "192.0.2.1"


def program(name):
    found = subprocess.run([ROOT / "scripts/test_servers.sh", "path", name], capture_output=True,
                           text=True)
    if found.returncode != 0:
        sys.exit(f"error: {name} is not built; run scripts/test_servers.sh build etcd kubernetes")
    return found.stdout.strip()


class PlaneAccess:
    """Where a control plane is, and who may ask it: what ControlPlane left in its folder."""

    def __init__(self, folder, port):
        self.folder, self.port = pathlib.Path(folder), port
        self.pki = Authority(self.folder / "pki")
        self.server = f"https://127.0.0.1:{port}"
        self.kubeconfig = str(self.folder / "admin.conf")

    def user(self, name, subject):
        """A kubeconfig for a new user (or group: "/O=group/CN=name") with a client certificate."""
        self.pki.leaf(name, subject)
        return write_kubeconfig(self.folder / f"{name}.conf", self.server, self.pki.folder, name)


class ControlPlane(PlaneAccess):
    def __init__(self, folder, api_server="kube-apiserver"):
        super().__init__(folder, reserve_port())
        self.processes = {}
        self.commands = {}
        self.pki.leaf("apiserver", "/CN=kube-apiserver",
                      "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1")
        self.pki.service_account_keys()
        self.etcd_port, self.peer_port, self.manager_port = (reserve_port() for _ in range(3))
        self.user("admin", "/O=system:masters/CN=admin")
        self._describe(api_server)

    def _describe(self, api_server):
        pki = self.pki.folder
        etcd = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{self.peer_port}"
        self.commands["etcd"] = etcd_command(program("etcd"), self.folder / "etcd", etcd, peer)
        self.commands["kube-apiserver"] = api_server_command(
            program(api_server), etcd, self.port, pki, "RBAC") + [
                "--bind-address", "127.0.0.1", "--advertise-address", ADVERTISED,
                "--endpoint-reconciler-type", "none"]
        self.commands["kube-controller-manager"] = controller_manager_command(
            program("kube-controller-manager"),
            self.user("controller-manager", "/CN=system:kube-controller-manager"), pki,
            "garbagecollector,namespace,serviceaccount,serviceaccount-token,"
            "root-ca-cert-publisher") + ["--secure-port", str(self.manager_port)]

    def start(self, name):
        """One of etcd, kube-apiserver, kube-controller-manager; its state is kept in the folder."""
        log = open(self.folder / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen(
            [str(word) for word in self.commands[name]], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, cwd=self.folder, start_new_session=True)
        log.close()

    def up(self):
        self.start("etcd")
        self.start("kube-apiserver")
        self.wait_ready()
        self.start("kube-controller-manager")
        return self

    def wait_ready(self, seconds=START_SECONDS):
        from kube_client import KubeApi  # which asks program()

        api = KubeApi(self.kubeconfig, seconds=5)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    tail = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{tail}")
            try:
                if api.call("GET", "/readyz")[0] == 200:
                    api.close()
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"kube-apiserver is not ready after {seconds} s; see {self.folder}")

    def kill(self, name, how=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait()

    def down(self):
        """At once: nothing of it is kept, and an API server with open watches takes its time."""
        for name in reversed(list(self.processes)):
            self.kill(name)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    plane = ControlPlane(os.path.abspath(sys.argv[1]))
    try:
        plane.up()
        print(json.dumps({"kubeconfig": plane.kubeconfig, "server": plane.server,
                          "pids": {name: p.pid for name, p in plane.processes.items()}}),
              flush=True)
        sys.stdin.read()
    finally:
        plane.down()


if __name__ == "__main__":
    main()
