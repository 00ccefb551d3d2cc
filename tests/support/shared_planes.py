#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Control planes, with the CRD, that the tests of one run of run_ctest.py have one after the other: a
start costs more than many a test.

    shared_planes.py FOLDER DESCRIPTOR

lends a plane to each connection to the Unix socket that listens as this file descriptor, for as long as
it is open, and starts one below FOLDER where none is free. What its borrower made is deleted before
another gets it; one that is not as it was then is thrown away. Ends, with all planes, when its standard
input is closed.

Tests call with_jobs(). Outside such a run they get a plane of their own, as do those that stop its
servers or change what is told here as kept.
"""
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time

import api_lists
import job_crd
from kube_client import KubeApi, Kubectl
from kube_control_plane import ControlPlane, PlaneAccess

SOCKET = "LAMBDADNN_CONTROL_PLANES"
RESET_SECONDS = 40
POLL_SECONDS = 0.2
# What the servers themselves write all the time.
RESTLESS = {"leases", "events", "endpoints", "endpointslices"}
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")


def with_jobs(folder, own=None):
    """A plane with the CRD that is the caller's until down(). `folder` is for one of its own, which
    `own` asks for: with this API server."""
    address = os.environ.get(SOCKET)
    if address and own is None:
        return Borrowed(address)
    plane = ControlPlane(folder, own or "kube-apiserver")
    try:
        plane.up()
        job_crd.install(Kubectl(plane.kubeconfig, plane.folder).run)
    except BaseException:
        plane.down()
        raise
    return plane


class Borrowed(PlaneAccess):
    def __init__(self, address):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(address)
        with self.connection.makefile() as lines:
            told = lines.readline()
        if not told:
            raise RuntimeError("no control plane could be started; see the output of run_ctest.py")
        told = json.loads(told)
        super().__init__(told["folder"], told["port"])

    def down(self):
        self.connection.close()


class Plane:
    """One of those that are lent."""

    def __init__(self, folder):
        self.plane = with_jobs(folder)
        self.api = KubeApi(self.plane.kubeconfig)
        # Controllers make these in every namespace, soon.
        deadline = time.monotonic() + RESET_SECONDS
        for space in ("default", *SYSTEM):
            for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                while self.api.call("GET", f"/api/v1/namespaces/{space}/{path}")[0] != 200:
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"{path} in {space}: not within {RESET_SECONDS} s")
                    time.sleep(POLL_SECONDS)
        self.at_first = self.state()

    def state(self):
        """{path: object} of all but events."""
        found = {}
        for path, resource, namespaced in api_lists.lists(self.api.get):
            if resource == "events":
                continue
            for item in self.api.get(path).get("items", ()):
                space = f"/namespaces/{item['metadata']['namespace']}" if namespaced else ""
                group = path.removesuffix(f"/{resource}")
                found[f"{group}{space}/{resource}/{item['metadata']['name']}"] = item
        return found

    @staticmethod
    def kept(path):
        """Whether an object that came later may stay: Kubernetes makes it when it likes to."""
        return any(f"/namespaces/{space}/configmaps/" in path for space in SYSTEM)

    @staticmethod
    def print_of(item):
        """Changes with what a user may change of the object."""
        metadata = {key: item["metadata"].get(key) for key in ("labels", "annotations", "finalizers")}
        content = {key: value for key, value in item.items() if key not in ("metadata", "status")}
        return hashlib.sha256(json.dumps([metadata, content], sort_keys=True).encode()).digest()

    def reset(self):
        """Whether everything is as at first again."""
        deadline = time.monotonic() + RESET_SECONDS
        asked = set()
        while True:
            now = self.state()
            later = {path: item for path, item in now.items()
                     if path not in self.at_first and not self.kept(path)}
            if not later:
                break
            if time.monotonic() > deadline:
                print(f"of a control plane's borrower are left: {sorted(later)[:10]}", flush=True)
                return False
            for path, item in later.items():
                if path.rsplit("/", 2)[1] != "namespaces" and item["metadata"].get("finalizers"):
                    self.api.patch(path, {"metadata": {"finalizers": None}})
                # The members of a namespace go with it.
                if path not in asked and not any(path.startswith(each + "/") for each in later):
                    asked.add(path)
                    self.api.call("DELETE", path, {"gracePeriodSeconds": 0,
                                                   "propagationPolicy": "Background"})
            time.sleep(POLL_SECONDS)
        for space in ("default", *SYSTEM):
            self.api.call("DELETE", f"/apis/events.k8s.io/v1/namespaces/{space}/events")
        changed = [path for path, item in self.at_first.items()
                   if path not in now or (path.rsplit("/", 2)[1] not in RESTLESS and
                                          self.print_of(item) != self.print_of(now[path]))]
        if changed:
            print(f"a control plane's borrower changed {changed[:10]}", flush=True)
        return not changed

    def down(self):
        self.api.close()
        self.plane.down()


class Lender:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.changed = threading.Condition()
        self.all, self.free, self.returning, self.started = set(), [], 0, 0

    def borrow(self):
        with self.changed:
            # Waiting for one that comes back takes less of the machine than a start.
            self.changed.wait_for(lambda: self.free or not self.returning)
            if self.free:
                return self.free.pop()
            self.started += 1
            folder = self.folder / str(self.started)
        plane = Plane(folder)
        with self.changed:
            self.all.add(plane)
        return plane

    def take_back(self, plane):
        with self.changed:
            self.returning += 1
        clean = False
        try:
            clean = plane.reset()
        except OSError as error:
            print(f"a control plane does not answer after its borrower: {error}", flush=True)
        finally:
            with self.changed:
                self.returning -= 1
                if clean:
                    self.free.append(plane)
                self.changed.notify_all()
            if not clean:
                self.end(plane)

    def lend(self, connection):
        with connection:
            try:
                plane = self.borrow()
            except (OSError, RuntimeError, AssertionError) as error:
                print(f"no control plane: {error}", flush=True)
                return
            told = {"folder": str(plane.plane.folder), "port": plane.plane.port}
            # A borrower that has ended meanwhile releases it like any other.
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps(told).encode() + b"\n")
                connection.recv(1)
        self.take_back(plane)

    def end(self, plane):
        with self.changed:
            mine = plane in self.all
            self.all.discard(plane)
        if mine:
            plane.down()

    def close(self):
        for plane in list(self.all):
            self.end(plane)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.environ.pop(SOCKET, None)
    listener = socket.socket(fileno=int(sys.argv[2]))
    lender = Lender(sys.argv[1])

    def serve():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=lender.lend, args=(connection,), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    try:
        sys.stdin.read()
    finally:
        lender.close()


if __name__ == "__main__":
    main()
