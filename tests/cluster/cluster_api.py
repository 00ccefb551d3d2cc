# SPDX-License-Identifier: Apache-2.0
"""What the cluster's own scripts ask its API server: by kubectl where manifests are YAML, by HTTP
where something is waited for."""
import json
import os
import subprocess
import time

import network
from kube_client import KubeApi
from settings import ClusterError, program

POLL_SECONDS = 0.2


class Kubernetes:
    def __init__(self, config, net):
        self.config = config
        self.network = net
        self.api = None  # once there are certificates

    def environment(self):
        return {**os.environ, "KUBECONFIG": str(self.config.kubeconfig()), "NO_PROXY": "*",
                "no_proxy": "*"}

    def kubectl(self, *words, text=None, check=True):
        done = subprocess.run([*self.network.prefix(network.LAB), program("kubectl"), *words],
                              input=text, text=True, capture_output=True,
                              env=self.environment())
        if check and done.returncode != 0:
            raise ClusterError(f"`kubectl {' '.join(words)}` failed: {done.stderr.strip()}")
        return done

    def apply(self, text, check=True):
        """Applies manifests (YAML documents or a JSON list) as they are."""
        return self.kubectl("apply", "-f", "-", text=text, check=check)

    def apply_objects(self, objects):
        self.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def request(self, method, path, body=None, content="application/json"):
        """(HTTP status, decoded answer). An OSError when there is no answer."""
        if self.api is None:
            self.api = KubeApi(self.config.kubeconfig(), seconds=20)
        status, answer = self.network.call(
            network.LAB, lambda: self.api.call(method, path, body, content))
        return status, answer if isinstance(answer, dict) or not answer else {"message": answer}

    def get(self, path):
        """The object at `path`; None when there is none."""
        status, answer = self.request("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise ClusterError(f"GET {path}: {status} {(answer or {}).get('message', '')}")
        return answer

    def wait(self, what, seconds, check):
        """Waits until check() returns an empty text; else that text is why it is not so yet."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                missing = check()
            except OSError as error:
                missing = str(error)
            if not missing:
                return
            if time.monotonic() > deadline:
                raise ClusterError(f"{what}: not within {seconds} s: {missing}")
            time.sleep(POLL_SECONDS)


def condition(item, kind):
    """The status ("True", "False", "Unknown", "") of an object's condition."""
    for each in item.get("status", {}).get("conditions") or []:
        if each["type"] == kind:
            return each["status"]
    return ""
