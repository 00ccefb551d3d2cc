# SPDX-License-Identifier: Apache-2.0
"""A collector of traces (OTLP over HTTP, JSON) that keeps what it gets."""
import http.server
import json
import threading


class Collector:
    def __init__(self):
        collector = self
        self.requests = []  # (path, headers, body)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def spans(self):
        """[(attributes of the resource, span, its attributes)]"""
        return [(attributes(part["resource"]), span, attributes(span))
                for _, _, body in list(self.requests) for part in body["resourceSpans"]
                for scope in part["scopeSpans"] for span in scope["spans"]]


def attributes(of):
    return {each["key"]: next(iter(each["value"].values())) for each in of["attributes"]}
