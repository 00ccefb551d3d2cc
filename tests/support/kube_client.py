# SPDX-License-Identifier: Apache-2.0
"""How every test asks an API server: KubeApi where objects are JSON, Kubectl for what people do."""
import json
import os
import socket
import subprocess

import kubernetes.client
import kubernetes.config
import kubernetes.watch
import urllib3

from kube_control_plane import program


class KubeApi:
    """Requests as the user of a kubeconfig, from any thread; connections are kept. Where no answer
    comes that is an OSError."""

    def __init__(self, kubeconfig, seconds=30):
        configuration = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(str(kubeconfig), client_configuration=configuration,
                                           persist_config=False)
        # Who repeats a request says so; and proxies of the environment are not for loopback.
        configuration.retries, configuration.proxy = False, None
        self.host, self.seconds = configuration.host, seconds
        self.rest = kubernetes.client.rest.RESTClientObject(configuration)
        self.watched = None

    def _ask(self, method, path, body=None, content_type="application/json", **options):
        """Anything with a status and data."""
        try:
            return self.rest.request(
                method, self.host + path, body=body,
                headers={"Content-Type": content_type, "Accept": "application/json"}, **options)
        except urllib3.exceptions.HTTPError as error:
            raise OSError(f"{method} {path}: {error}") from error
        except kubernetes.client.ApiException as error:
            if not error.status:  # of TLS
                raise OSError(f"{method} {path}: {error.reason}") from error
            error.data = error.body
            return error

    def call(self, method, path, body=None, content_type="application/json"):
        """(HTTP status, answer as JSON, or as text where it is none)."""
        answer = self._ask(method, path, body, content_type, _request_timeout=self.seconds)
        text = answer.data or ""
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        return answer.status, json.loads(text) if text.startswith("{") else text

    def get(self, path):
        return self.call("GET", path)[1]

    def watch(self, path):
        """Yields (type, object) of what the server tells, until it ends the watch: an OSError when
        end_watch() does."""
        self.watched = self._ask("GET", path + "?watch=1", _preload_content=False)
        assert self.watched.status == 200, self.watched.data
        try:
            for line in kubernetes.watch.watch.iter_resp_lines(self.watched):
                event = json.loads(line)
                yield event["type"], event["object"]
        except urllib3.exceptions.HTTPError as error:
            raise OSError(f"watch of {path}: {error}") from error

    def end_watch(self):
        self.watched.connection.sock.shutdown(socket.SHUT_RDWR)

    def create(self, path, body):
        return self.call("POST", path + "?fieldValidation=Strict", body)

    def patch(self, path, patch, query=""):
        return self.call("PATCH", path + query, patch, "application/merge-patch+json")

    def close(self):
        self.rest.pool_manager.clear()


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
