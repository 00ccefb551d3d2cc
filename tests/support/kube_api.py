# SPDX-License-Identifier: Apache-2.0
"""Requests to a test's API server over one connection, as a user of a kubeconfig that ControlPlane
wrote; and kubectl, for what people do."""
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import urllib.parse

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
        """(HTTP status, answer as JSON)."""
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def get(self, path):
        return self.call("GET", path)[1]

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
