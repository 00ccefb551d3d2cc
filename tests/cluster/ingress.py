#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Knative's ingress.

    ingress.py KUBECONFIG ADDRESS:PORT CLASS NAME

Reports every KIngress of class CLASS ready, behind the load balancer NAME, once requests for its
hosts are routed here: to one of the splits of the host's last path (the one without conditions on
headers), by their percentages, with the headers that path and split append. Only the head of a
request is read and rewritten (one request a connection); bodies pass as they come in both
directions, whatever their length. Without a route: 404; with a route without endpoints: 503. `GET /healthz`
for a host that it does not know says whether the API server was heard lately.
"""
import asyncio
import datetime
import random
import sys
import time

import settings  # noqa: F401 it knows where kube_client is
from kube_client import KubeApi

GROUP = "/apis/networking.internal.knative.dev/v1alpha1"
SYNC_SECONDS = 0.3
API_SECONDS = 10
HEALTHY_SECONDS = 15
HEAD_SECONDS = 60
CONNECT_SECONDS = 10
HEAD_LIMIT = 1 << 18
CHUNK = 1 << 18


def status_of(ingress, name):
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    balancer = {"ingress": [{"domainInternal": name}]}
    return {"status": {
        "observedGeneration": ingress["metadata"]["generation"],
        "publicLoadBalancer": balancer, "privateLoadBalancer": balancer,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now}
                       for kind in ("LoadBalancerReady", "NetworkConfigured", "Ready")]}}


def is_reported(ingress):
    status = ingress.get("status", {})
    return (status.get("observedGeneration") == ingress["metadata"]["generation"] and
            any(each["type"] == "Ready" and each["status"] == "True"
                for each in status.get("conditions") or []))


class Router:
    def __init__(self, api, ingress_class, name):
        self.api = api
        self.ingress_class = ingress_class
        self.name = name
        self.routes = {}  # host: path with conditionless splits
        self.addresses = {}  # (namespace, service): cluster IP
        self.heard = 0.0

    def ask(self, method, path, body=None):
        status, answer = self.api.call(method, path, body, "application/merge-patch+json")
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def sync(self):
        """One resync with the API server. Routes are in place before an ingress is marked ready."""
        everything = self.ask("GET", GROUP + "/ingresses")["items"]
        ours = [item for item in everything if item["metadata"].get("annotations", {}).get(
            "networking.knative.dev/ingress.class") == self.ingress_class]
        if ours:
            self.addresses = {
                (item["metadata"]["namespace"], item["metadata"]["name"]):
                    item["spec"].get("clusterIP")
                for item in self.ask("GET", "/api/v1/services")["items"]}
        self.routes = {host: rule["http"]["paths"][-1] for item in ours
                       for rule in item["spec"].get("rules", []) for host in rule["hosts"]}
        for item in ours:
            if not is_reported(item) and self._is_routable(item):
                meta = item["metadata"]
                self.ask("PATCH", f"{GROUP}/namespaces/{meta['namespace']}/ingresses/"
                             f"{meta['name']}/status", status_of(item, self.name))
        self.heard = time.monotonic()

    def _is_routable(self, item):
        return all(self.addresses.get((split["serviceNamespace"], split["serviceName"]))
                   for rule in item["spec"].get("rules", [])
                   for split in rule["http"]["paths"][-1]["splits"])

    def is_healthy(self):
        return time.monotonic() - self.heard < HEALTHY_SECONDS


async def keep_synced(router):
    while True:
        try:
            await asyncio.to_thread(router.sync)
        except Exception as error:  # whatever it is, the next resync may succeed
            print("cannot look at the ingresses:", error, file=sys.stderr, flush=True)
        await asyncio.sleep(SYNC_SECONDS)


async def pipe(reader, writer):
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        pass


def parse_head(head):
    """(request line, [(name, value)], host)"""
    first, *lines = head[:-4].decode("latin1").split("\r\n")
    fields = [(name.strip(), value.strip())
              for name, _, value in (line.partition(":") for line in lines)]
    host = next((value for name, value in fields if name.lower() == "host"), "")
    return first, fields, host.split(":")[0]


def rewrite_head(first, fields, host, path, split):
    added = {**(path.get("appendHeaders") or {}), **(split.get("appendHeaders") or {})}
    if path.get("rewriteHost"):
        added["Host"] = path["rewriteHost"]
        added["X-Forwarded-Host"] = host
    replaced = {name.lower() for name in added}
    if not any(name.lower() == "upgrade" for name, _ in fields):
        added["Connection"] = "close"
        replaced.add("connection")
    lines = [first, *(f"{name}: {value}" for name, value in fields
                      if name.lower() not in replaced),
             *(f"{name}: {value}" for name, value in added.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin1")


def plain_answer(status):
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


async def serve(router, reader, writer):
    upstream = None
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        first, fields, host = parse_head(head)
        path = router.routes.get(host)
        if path is None:
            healthy = first.startswith("GET /healthz ") and router.is_healthy()
            writer.write(plain_answer("200 OK" if healthy else "404 Not Found"))
            await writer.drain()
            return
        splits = path["splits"]
        split = random.choices(splits, [each.get("percent", 100) for each in splits])[0]
        address = router.addresses.get((split["serviceNamespace"], split["serviceName"]))
        try:
            behind, upstream = await asyncio.wait_for(
                asyncio.open_connection(address, int(split["servicePort"]), limit=CHUNK),
                CONNECT_SECONDS)
        except (TimeoutError, OSError):
            writer.write(plain_answer("503 Service Unavailable"))
            await writer.drain()
            return
        upstream.write(rewrite_head(first, fields, host, path, split))
        there = asyncio.create_task(pipe(reader, upstream))
        await pipe(behind, writer)
        there.cancel()
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        pass
    finally:
        for each in (upstream, writer):
            if each is not None:
                each.close()


async def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    router = Router(KubeApi(sys.argv[1], API_SECONDS), sys.argv[3], sys.argv[4])
    address, _, port = sys.argv[2].rpartition(":")
    server = await asyncio.start_server(
        lambda reader, writer: serve(router, reader, writer), address, int(port),
        limit=HEAD_LIMIT)
    async with server:
        await asyncio.gather(server.serve_forever(), keep_synced(router))


if __name__ == "__main__":
    asyncio.run(main())
