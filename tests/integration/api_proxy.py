# SPDX-License-Identifier: Apache-2.0
"""A proxy between an operator and kube-apiserver that sees every request and can do to it what
networks and servers do: refuse it, lose it, lose its reply, cut or freeze a watch.

Operators speak plain HTTP to it; it speaks TLS to the server, as the user of a kubeconfig.
"""
import collections
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse

from loopback_server import Handler, LoopbackServer

UPSTREAM_SECONDS = 90

Request = collections.namedtuple(
    "Request", "number method resource subresource namespace name watch query body")


def parse(number, method, target, body):
    url = urllib.parse.urlsplit(target)
    query = dict(urllib.parse.parse_qsl(url.query))
    words = [urllib.parse.unquote(word) for word in url.path.strip("/").split("/")]
    # /api/VERSION/... or /apis/GROUP/VERSION/...
    words = words[2:] if words[:1] == ["api"] else words[3:]
    namespace = ""
    if len(words) > 2 and words[0] == "namespaces":
        namespace, words = words[1], words[2:]
    words += [""] * (3 - len(words))
    try:
        parsed = json.loads(body) if body else None
    except ValueError:
        parsed = None
    return Request(number, method, words[0], words[2], namespace, words[1],
                   query.get("watch") in ("1", "true"), query, parsed)


class Lost(Exception):
    """Closes the operator's connection without an answer."""


class ApiProxy:
    """`before(request)` runs before a request goes on: None lets it, (status, headers, body)
    answers in the server's place, Lost drops it. `after(request, status)` runs when the server has
    answered, before the operator hears it (Lost = it never does); `done(request, status)` when it
    has been told.
    """

    def __init__(self, plane, user="admin"):
        pki = plane.pki.folder
        self.context = ssl.create_default_context(cafile=pki / "ca.crt")
        self.context.load_cert_chain(pki / f"{user}.crt", pki / f"{user}.key")
        self.upstream_port = plane.port
        self.before = self.after = self.done = lambda *_: None
        self.requests, self.lock = [], threading.Lock()
        self.watches, self.frozen = set(), False
        proxy = self

        class ProxyHandler(Handler):
            disable_nagle_algorithm = True

            def serve(self):
                proxy.serve(self)

        self.server = LoopbackServer(ProxyHandler)
        self.url = self.server.url

    def close(self):
        self.cut_watches()
        self.server.close()

    def kubeconfig(self, folder, name="proxy"):
        path = folder / f"{name}.conf"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}]}))
        return str(path)

    def reset(self):
        self.before = self.after = self.done = lambda *_: None
        with self.lock:
            self.requests.clear()

    def cut_watches(self):
        with self.lock:
            watches = list(self.watches)
        for connection in watches:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        return len(watches)

    def freeze_watches(self, frozen=True):
        """Open watches stay open and say nothing any more (new ones work)."""
        self.frozen = time.monotonic() if frozen else False

    def serve(self, handler):
        length = int(handler.headers.get("Content-Length", 0))
        body = handler.rfile.read(length) if length else b""
        with self.lock:
            number = len(self.requests)
            request = parse(number, handler.command, handler.path, body)
            self.requests.append(request)
        try:
            answer = self.before(request)
            if answer is not None:
                status, fields, text = answer
                return self.reply(handler, status, list(fields.items()), text.encode())
            self.forward(handler, request, body)
        except (Lost, OSError, http.client.HTTPException):
            handler.hang_up()

    def forward(self, handler, request, body):
        upstream = http.client.HTTPSConnection(
            "127.0.0.1", self.upstream_port, context=self.context, timeout=UPSTREAM_SECONDS)
        try:
            upstream.putrequest(handler.command, handler.path, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                if name.lower() not in ("connection", "host"):
                    upstream.putheader(name, value)
            upstream.endheaders(body or None)
            answer = upstream.getresponse()
            if request.watch and answer.status == 200:
                return self.stream(handler, upstream, answer)
            data = answer.read()
            self.after(request, answer.status)
            fields = [(name, value) for name, value in answer.getheaders() if name.lower() not in
                      ("connection", "transfer-encoding", "content-length")]
            self.reply(handler, answer.status, fields, data)
            self.done(request, answer.status)
        finally:
            upstream.close()

    def reply(self, handler, status, fields, data):
        handler.send_response_only(status)
        for name, value in fields:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
        handler.wfile.flush()

    def stream(self, handler, upstream, answer):
        handler.send_response_only(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        begun = time.monotonic()
        with self.lock:
            self.watches.add(handler.connection)
        try:
            while data := answer.read1(1 << 16):
                while self.frozen and begun < self.frozen:
                    time.sleep(0.1)
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
        finally:
            with self.lock:
                self.watches.discard(handler.connection)
            handler.close_connection = True
