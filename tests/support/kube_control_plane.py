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
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 120
STOP_SECONDS = 5
# For the endpoints of the service "kubernetes", which nothing here uses; loopback is refused.
ADVERTISED = "192.0.2.1"


def program(name):
    found = subprocess.run([ROOT / "scripts/test_servers.sh", "path", name], capture_output=True,
                           text=True)
    if found.returncode != 0:
        sys.exit(f"error: {name} is not built; run scripts/test_servers.sh build etcd kubernetes")
    return found.stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", "ca.key")
        self.openssl("req", "-x509", "-new", "-key", "ca.key", "-days", "2", "-subj", "/CN=test-ca",
                     "-out", "ca.crt")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def leaf(self, name, subject, names=""):
        """NAME.crt and NAME.key for `subject` ("/O=group/CN=user"), valid for `names` ("DNS:…")."""
        self.openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", f"{name}.key")
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        extensions = ["basicConstraints=CA:FALSE", "keyUsage=digitalSignature,keyEncipherment",
                      "extendedKeyUsage=serverAuth,clientAuth"]
        if names:
            extensions.append(f"subjectAltName={names}")
        (self.folder / f"{name}.ext").write_text("\n".join(extensions) + "\n")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out",
                     f"{name}.crt")


class ControlPlane:
    def __init__(self, folder, api_server="kube-apiserver"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.processes = {}
        self.commands = {}
        self.pki = Authority(self.folder / "pki")
        self.pki.leaf("apiserver", "/CN=kube-apiserver",
                      "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1")
        self.pki.openssl("genrsa", "-out", "sa.key", "2048")
        self.pki.openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        self.port, self.etcd_port, self.peer_port, self.manager_port = (
            free_port() for _ in range(4))
        self.server = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = self.user("admin", "/O=system:masters/CN=admin")
        self._describe(api_server)

    def user(self, name, subject):
        """A kubeconfig for a new user (or group: "/O=group/CN=name") with a client certificate."""
        self.pki.leaf(name, subject)
        pki = self.pki.folder
        path = self.folder / f"{name}.conf"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.server, "certificate-authority": str(pki / "ca.crt")}}],
            "users": [{"name": "test", "user": {
                "client-certificate": str(pki / f"{name}.crt"),
                "client-key": str(pki / f"{name}.key")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))
        return str(path)

    def _describe(self, api_server):
        pki = self.pki.folder
        etcd = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{self.peer_port}"
        self.commands["etcd"] = [
            program("etcd"), "--data-dir", self.folder / "etcd", "--listen-client-urls", etcd,
            "--advertise-client-urls", etcd, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--unsafe-no-fsync", "--log-level", "warn"]
        self.commands["kube-apiserver"] = [
            program(api_server), "--etcd-servers", etcd, "--bind-address", "127.0.0.1",
            "--secure-port", str(self.port), "--advertise-address", ADVERTISED,
            "--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.96.0.0/16",
            "--tls-cert-file", pki / "apiserver.crt", "--tls-private-key-file",
            pki / "apiserver.key", "--client-ca-file", pki / "ca.crt", "--authorization-mode",
            "RBAC", "--service-account-issuer", "https://kubernetes.default.svc.cluster.local",
            "--service-account-key-file", pki / "sa.pub", "--service-account-signing-key-file",
            pki / "sa.key"]
        manager = self.user("controller-manager", "/CN=system:kube-controller-manager")
        self.commands["kube-controller-manager"] = [
            program("kube-controller-manager"), "--kubeconfig", manager,
            "--authentication-kubeconfig", manager, "--authorization-kubeconfig", manager,
            "--service-account-private-key-file", pki / "sa.key", "--root-ca-file", pki / "ca.crt",
            "--use-service-account-credentials", "--leader-elect=false", "--bind-address",
            "127.0.0.1", "--secure-port", str(self.manager_port), "--controllers",
            "garbagecollector,namespace,serviceaccount,serviceaccount-token,root-ca-cert-publisher"]

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
        import ssl

        context = ssl.create_default_context(cafile=self.pki.folder / "ca.crt")
        context.load_cert_chain(self.pki.folder / "admin.crt", self.pki.folder / "admin.key")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPSHandler(context=context))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    tail = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{tail}")
            try:
                if opener.open(f"{self.server}/readyz", timeout=5).status == 200:
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
        # An API server with open watches takes its time on SIGTERM; nothing of it is kept.
        for name in reversed(list(self.processes)):
            self.processes[name].terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes.values():
            try:
                process.wait(max(0, deadline - time.monotonic()) if process.poll() is None else 0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()


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
