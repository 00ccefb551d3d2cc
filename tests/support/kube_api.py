# SPDX-License-Identifier: Apache-2.0
"""The ground that tests of the job's API stand on."""
import pathlib
import tempfile
import time
import unittest

import shared_planes
from kube_client import KubeApi, Kubectl

JOBS = "/apis/lambdadnn.io/v1alpha1/namespaces/{}/serverlesstrainingjobs"


def job_path(name, namespace="default"):
    return f"{JOBS.format(namespace)}/{name}"


def job_id(job):
    """The last folder of its prefix in the store, also of a job that no operator has seen."""
    metadata = job["metadata"]
    own = f"{metadata['name']}-{metadata['uid'].replace('-', '')[:12]}"
    return metadata.get("annotations", {}).get("lambdadnn.io/job-id", own)


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
