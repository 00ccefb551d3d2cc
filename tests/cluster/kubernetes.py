# SPDX-License-Identifier: Apache-2.0
"""What the cluster's own scripts ask its API server: by kubectl where manifests are YAML, by HTTP
where something is waited for."""
import http.client
import json
import os
import subprocess
import time

import network
from control_plane import client_context
from settings import ClusterError, Node, program

POLL_SECONDS = 0.2


class Kubernetes:
    def __init__(self, config, net):
        self.config = config
        self.network = net

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
        def ask():
            connection = http.client.HTTPSConnection(
                f"{Node(1).address}:6443", timeout=20, context=client_context(self.config))
            try:
                connection.request(method, path, None if body is None else json.dumps(body),
                                   {"Content-Type": content})
                answer = connection.getresponse()
                data = answer.read()
                try:
                    return answer.status, json.loads(data) if data else None
                except ValueError:
                    return answer.status, {"message": data.decode(errors="replace")}
            finally:
                connection.close()
        return self.network.call(network.LAB, ask)

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
            except (OSError, http.client.HTTPException) as error:
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
