# SPDX-License-Identifier: Apache-2.0
"""Thousands of jobs at an API server, for tests of what runs beside them."""
import concurrent.futures
import json
import pathlib
import threading

from kube_api import JOBS, job_path
from kube_client import KubeApi

COMPLETE = pathlib.Path(__file__).resolve().parents[1] / "data/statuses/complete.json"
WRITERS = 6


def job(name, namespace, spec, **metadata):
    return {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}


def create(api, wanted):
    code, made = api.create(JOBS.format(wanted["metadata"]["namespace"]), wanted)
    assert code == 201, made


def create_finished(api, wanted, status):
    """A job that completed long ago, as an operator leaves it."""
    create(api, wanted)
    path = job_path(wanted["metadata"]["name"], wanted["metadata"]["namespace"])
    code, answer = api.patch(path + "/status", {"status": status})
    assert code == 200, answer


class ManyJobs:
    """Several requests at once, each over a connection of its own, as the user of a kubeconfig."""

    def __init__(self, kubeconfig):
        self.kubeconfig = kubeconfig
        self.connections = []

    def each(self, ask, items):
        """ask(api, item) for each."""
        local = threading.local()

        def run(item):
            if not hasattr(local, "api"):
                local.api = KubeApi(self.kubeconfig)
                self.connections.append(local.api)
            ask(local.api, item)
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(run, items))

    def create(self, jobs):
        self.each(create, jobs)

    def create_finished(self, namespace, count, spec):
        status = json.loads(COMPLETE.read_text())["status"]
        finalizers = ["lambdadnn.io/cleanup"]
        self.each(lambda api, number: create_finished(
            api, job(f"finished-{number:05}", namespace, spec, finalizers=finalizers), status), range(count))

    def close(self):
        for each in self.connections:
            each.close()
