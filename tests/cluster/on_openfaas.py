# SPDX-License-Identifier: Apache-2.0
"""What tests of jobs behind a gateway of OpenFaaS begin with, beside on_pods.py: OpenFaaS in the
cluster, and an operator that is told of it.

Needs the sources that LAMBDADNN_OPENFAAS_SOURCES names, or a network (openfaas.py).
"""
import contextlib
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request

import network
import openfaas
from on_pods import SECRETS, OnPods

FUNCTION_PODS = f"/api/v1/namespaces/{openfaas.FUNCTIONS}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{openfaas.FUNCTIONS}/deployments"


class OnOpenFaas(OnPods):
    BACKEND = "OpenFaaS"
    PODS = FUNCTION_PODS
    MADE = (SECRETS, DEPLOYMENTS, f"/api/v1/namespaces/{openfaas.FUNCTIONS}/services",
            f"/api/v1/namespaces/{openfaas.FUNCTIONS}/secrets")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(openfaas.restore, cls.kube)

    @classmethod
    def operator_flags(cls):
        """The first operator comes after the gateway."""
        folder = cls.folder / "gateway"
        if not folder.exists():
            openfaas.build(cls.config)
            cls.cluster.add_openfaas()
            cls.until_it_answers()
            folder.mkdir()
            (folder / "basic-auth-user").write_text(openfaas.USER)
            (folder / "basic-auth-password").write_text(f"{openfaas.PASSWORD}\n")
        return ["--openfaas-gateway", openfaas.address(), "--openfaas-auth-dir", str(folder)]

    @classmethod
    def until_it_answers(cls):
        """The gateway, at a port of the nodes that is set up a moment after its pod is ready."""
        def ask():
            with contextlib.closing(http.client.HTTPConnection(
                    urllib.parse.urlsplit(openfaas.address()).netloc, timeout=5)) as connection:
                connection.request("GET", "/healthz")
                return "" if connection.getresponse().status == 200 else "the gateway is not healthy"
        cls.kube.wait("the gateway's port", openfaas.READY_SECONDS, lambda: cls.cluster.network.call(network.LAB, ask))

    def gateway(self, method, path, body=None, authorization=None):
        """(HTTP status, text) of the gateway's answer."""
        def call():
            asked = urllib.request.Request(openfaas.address() + path, method=method,
                                           data=json.dumps(body).encode() if body is not None else None,
                                           headers={"Authorization": authorization or openfaas.authorization()})
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                with opener.open(asked, timeout=20) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()
        return self.cluster.network.call(network.LAB, call)

    def functions(self):
        """{name: labels} of what the gateway lists."""
        status, text = self.gateway("GET", "/system/functions")
        self.assertEqual(200, status, text)
        return {each["name"]: each["labels"] for each in json.loads(text) or []}
