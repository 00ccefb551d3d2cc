# SPDX-License-Identifier: Apache-2.0
"""A proxy between an operator and a function host, and so between the operator and each function:
it tells the operator addresses of its own for them. Sees which functions are asked for, every slice
that is posted and every line of its answer.
"""
import collections
import concurrent.futures
import http.client
import json
import os
import socketserver
import threading
import urllib.parse

from api_proxy import Lost
from loopback_server import Handler, LoopbackServer
from unix_connection import UnixConnection

UPSTREAM_SECONDS = 120


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # a caller that was killed in the middle of a request


def read(handler):
    length = int(handler.headers.get("Content-Length", 0))
    return handler.rfile.read(length) if length else None


def ask(handler, upstream, body):
    """The request that came, made of `upstream`: its answer, not read."""
    fields = {name: value for name, value in handler.headers.items()
              if name.lower() not in ("connection", "host", "content-length")}
    upstream.request(handler.command, handler.path, body, fields)
    return upstream.getresponse()


def answer_whole(handler, status, data):
    handler.send_response_only(status)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


class HostProxy:
    """`before(role)` runs before a slice of that role ("worker-0") goes on to its function,
    `line(role, number)` before line `number` of the answer to its first request goes back; line 0 is
    the answer's head. Lost cuts the operator off.
    """

    def __init__(self, upstream, path):
        self.upstream, self.socket = upstream, str(path)
        self.lock = threading.Lock()
        self.functions = {}  # address of a function -> server in its place
        self.reset()
        proxy = self

        class HostHandler(Handler):
            def address_string(self):
                return "operator"

            def serve(self):
                proxy.serve_host(self)

        self.server = UnixServer(self.socket, HostHandler)
        os.chmod(self.socket, 0o600)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self):
        self.before = self.line = lambda *_: None
        with self.lock:
            self.lines = {}                     # role -> lines of the answer to its first request
            self.heard = collections.Counter()  # UID of a job -> lines of its longest answer
            self.most = collections.Counter()   # group -> living functions of one job at once

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        # Each notices it within half a second, and after a table of kills there are hundreds.
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            list(pool.map(LoopbackServer.close, self.functions.values()))

    def serve_host(self, handler):
        upstream = UnixConnection(self.upstream, UPSTREAM_SECONDS)
        try:
            answer = ask(handler, upstream, read(handler))
            data = answer.read()
            url = urllib.parse.urlsplit(handler.path)
            if handler.command == "GET" and url.path == "/v1/functions" and answer.status == 200:
                listed = json.loads(data)
                self.count(listed["functions"])
                for function in listed["functions"]:
                    if function.get("address"):
                        function["address"] = self.stand_in(function["address"])
                data = json.dumps(listed).encode()
            answer_whole(handler, answer.status, data)
        except (OSError, http.client.HTTPException):
            handler.hang_up()
        finally:
            upstream.close()

    def count(self, functions):
        living = collections.Counter(function["group"] for function in functions
                                     if function["phase"] in ("Pending", "Ready"))
        with self.lock:
            self.most |= living

    def stand_in(self, address):
        with self.lock:
            if address not in self.functions:
                proxy = self

                class FunctionHandler(Handler):
                    disable_nagle_algorithm = True

                    def serve(self):
                        proxy.serve_function(self, address)

                self.functions[address] = LoopbackServer(FunctionHandler)
            return self.functions[address].url.removeprefix("http://")

    def serve_function(self, handler, address):
        upstream = http.client.HTTPConnection(address, timeout=UPSTREAM_SECONDS)
        try:
            if handler.command != "POST":
                answer = ask(handler, upstream, read(handler))
                return answer_whole(handler, answer.status, answer.read())
            body = read(handler)
            # UID.rREVISION.iINCARNATION.ROLE.fFIRST.aATTEMPT
            job, _, _, role = json.loads(body)["invocation"].split(".")[:4]
            self.before(role)
            self.stream(handler, ask(handler, upstream, body), job, role)
        except (Lost, OSError, http.client.HTTPException):
            handler.hang_up()
        finally:
            upstream.close()

    def stream(self, handler, answer, job, role):
        with self.lock:
            first = role not in self.lines
            self.lines.setdefault(role, 0)
        hook = self.line if first else lambda *_: None
        hook(role, 0)
        handler.send_response_only(answer.status)
        handler.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        count = 0
        while text := answer.readline():
            count += 1
            self.heard[job] = max(self.heard[job], count)
            if first:
                self.lines[role] += 1
                hook(role, self.lines[role])
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")
