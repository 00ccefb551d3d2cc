# SPDX-License-Identifier: Apache-2.0
"""A collector of traces (OTLP over HTTP, JSON) that keeps what it gets."""
import json

from loopback_server import Handler, LoopbackServer


class Collector(LoopbackServer):
    def __init__(self):
        self.requests = []  # (path, headers, body)
        super().__init__(CollectorHandler)

    def spans(self):
        """[(attributes of the resource, span, its attributes)]"""
        return [(attributes(part["resource"]), span, attributes(span))
                for _, _, body in list(self.requests) for part in body["resourceSpans"]
                for scope in part["scopeSpans"] for span in scope["spans"]]


class CollectorHandler(Handler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def attributes(of):
    return {each["key"]: next(iter(each["value"].values())) for each in of["attributes"]}
