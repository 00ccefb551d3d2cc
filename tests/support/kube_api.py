# SPDX-License-Identifier: Apache-2.0
"""Requests to a test's API server over one connection, as a user of a kubeconfig that ControlPlane
wrote; kubectl, for what people do; and the ground that tests of a cluster stand on."""
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import shared_planes
from kube_control_plane import program

JOBS = "/apis/lambdadnn.io/v1alpha1/namespaces/{}/serverlesstrainingjobs"


class KubeApi:
    def __init__(self, kubeconfig):
        config = json.loads(pathlib.Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        address = urllib.parse.urlsplit(cluster["server"])
        self.connection = http.client.HTTPSConnection(address.hostname, address.port,
                                                      context=context, timeout=30)

    def call(self, method, path, body=None, content_type="application/json"):
        """(HTTP status, answer as JSON, or as text where it is none)."""
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else text

    def get(self, path):
        return self.call("GET", path)[1]

    def watch(self, path):
        """Yields (type, object) of what the server tells, until it ends the watch."""
        self.connection.request("GET", path + "?watch=1", headers={"Accept": "application/json"})
        answer = self.connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            event = json.loads(line)
            yield event["type"], event["object"]

    def create(self, path, body):
        return self.call("POST", path + "?fieldValidation=Strict", body)

    def patch(self, path, patch, query=""):
        return self.call("PATCH", path + query, patch, "application/merge-patch+json")

    def close(self):
        self.connection.close()


def job_path(name, namespace="default"):
    return f"{JOBS.format(namespace)}/{name}"


class Kubectl:
    """kubectl with a kubeconfig and a home of its own (its caches of what the server offers)."""

    def __init__(self, kubeconfig, home):
        self.program = program("kubectl")
        self.environment = {"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig),
                            "HOME": str(home)}

    def run(self, *arguments, stdin=None):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True,
                              env=self.environment, input=stdin, timeout=120)

    def ok(self, *arguments, stdin=None):
        """Standard output of a command that must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {arguments}: {done.stderr}"
        return done.stdout


class ClusterTest(unittest.TestCase):
    """A control plane with the CRD for all tests of a class: cls.api, cls.kubectl, cls.folder."""

    # The API server of an own one: for tests that stop it, or change what was there before them.
    own_plane = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.plane = shared_planes.with_jobs(cls.folder / "plane", cls.own_plane)
        cls.addClassCleanup(cls.plane.down)
        cls.kubectl = Kubectl(cls.plane.kubeconfig, cls.folder)
        cls.api = KubeApi(cls.plane.kubeconfig)
        cls.addClassCleanup(cls.api.close)
        cls.api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})

    def minimal(self, name, namespace="default", **changes):
        """A new job in the cluster; returns its path."""
        spec = {"model": {"builtin": {"name": "mlp"}}, "dataset": {"renderedDigits": {}},
                "training": {"epochs": 3, "globalBatchSize": 120},
                "objective": {"deadlineSeconds": 90}, **changes}
        code, answer = self.api.create(JOBS.format(namespace), {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name}, "spec": spec})
        self.assertEqual(code, 201, answer)
        return job_path(name, namespace)

    def write_status(self, path, **status):
        code, answer = self.api.patch(path + "/status", {"status": status})
        self.assertEqual(code, 200, answer)


def condition(kind, reason, message="", status="True"):
    return {"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
