# SPDX-License-Identifier: Apache-2.0
"""A small S3 server whose answers a test controls: it can refuse with 503, delay, and call back
before and after the effect of every operation, with the process that asked for it.

It checks no signatures: the strict stand-in of the conformance suite does that.
"""
import hashlib
import os
import random
import re
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

from loopback_server import Handler, LoopbackServer

CREDENTIALS = {"LAMBDADNN_S3_ACCESS_KEY_ID": "test",
               "LAMBDADNN_S3_SECRET_ACCESS_KEY": "test-secret"}


class Operation:
    def __init__(self, method, key, pid):
        self.method, self.key, self.pid = method, key, pid

    def __repr__(self):
        return f"{self.method} {self.key} by {self.pid}"


def pid_of_peer(connection):
    """The process on this machine that holds the other end of this loopback connection."""
    # Both ends are compared: a port of the client's may serve several connections to different
    # servers, most of them long closed.
    wanted = [f"0100007F:{end[1]:04X}" for end in (connection.getpeername(),
                                                   connection.getsockname())]
    inode = "0"
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table:
            fields = line.split()
            if fields[1:3] == wanted:
                inode = fields[9]
                break
    if inode == "0":
        return None
    return next((int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
                 if holds(pid, f"socket:[{inode}]")), None)


def holds(pid, file):
    """Whether it is among the open files of the process, which may close others meanwhile."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            if os.readlink(f"/proc/{pid}/fd/{descriptor}") == file:
                return True
        except OSError:
            continue
    return False


class FaultStore:
    """Serves one bucket, "test", on a free loopback port until close()."""

    def __init__(self, seed=1, unavailable=0.0, delayed=0.0, delay_seconds=0.2):
        self.objects, self.lock = {}, threading.Lock()
        self.random = random.Random(seed)
        self.unavailable, self.delayed, self.delay_seconds = unavailable, delayed, delay_seconds
        self.refused = self.slowed = self.requests = 0
        # Called as before(operation) and after(operation); an answer of False cuts the connection.
        self.before = self.after = None
        store = self

        class StoreHandler(Handler):
            wbufsize = 1 << 16
            peer = None  # the process at the other end: found once per connection

            def serve(self):
                store.serve(self)

        self.server = LoopbackServer(StoreHandler)
        self.endpoint = self.server.url

    def options(self):
        """What makes `lambdadnn run` use this store."""
        return ["--set", f"spec.objectStore.endpoint={self.endpoint}",
                "--set", "spec.objectStore.bucket=test"]

    def close(self):
        self.server.close()

    def keys(self):
        with self.lock:
            return sorted(self.objects)

    def draw(self):
        with self.lock:
            self.requests += 1
            if self.random.random() < self.unavailable:
                self.refused += 1
                return "refuse"
            if self.random.random() < self.delayed:
                self.slowed += 1
                return "delay"
        return None

    def serve(self, request):
        length = int(request.headers.get("Content-Length", 0))
        body = request.rfile.read(length) if length else b""
        url = urllib.parse.urlsplit(request.path)
        key = urllib.parse.unquote(url.path).removeprefix("/test").removeprefix("/")
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        if not (url.path + "/").startswith("/test/"):
            return self.error(request, 404, "NoSuchBucket", "no such bucket")
        if "Credential=test/" not in request.headers.get("Authorization", ""):
            return self.error(request, 403, "InvalidAccessKeyId", "no such key")
        fault = self.draw()
        if fault == "delay":
            time.sleep(self.delay_seconds)
        if fault == "refuse":
            return self.error(request, 503, "SlowDown", "try again")
        operation = None
        if self.before or self.after:
            request.peer = request.peer or pid_of_peer(request.connection)
            operation = self.operation(request, key, query, body)
        if self.before and self.before(operation) is False:
            return request.hang_up()
        answer = self.apply(request, key, query, body)
        if self.after and self.after(operation) is False:
            return request.hang_up()
        return self.answer(request, *answer)

    @staticmethod
    def operation(request, key, query, body):
        """A bulk delete goes by the first of its keys, a listing by its prefix."""
        if request.command == "POST" and "delete" in query:
            names = re.findall(r"<Key>(.*?)</Key>", body.decode())
            return Operation("DELETE", min(names, default=""), request.peer)
        if request.command == "GET" and not key:
            return Operation("LIST", query.get("prefix", ""), request.peer)
        return Operation(request.command, key, request.peer)

    def apply(self, request, key, query, body):
        method = request.command
        with self.lock:
            if method == "POST" and "delete" in query:
                for name in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                    self.objects.pop(name.replace("&amp;", "&").replace("&lt;", "<"), None)
                return 200, b"<DeleteResult></DeleteResult>", {}
            if method == "GET" and not key:
                return 200, self.list(query), {}
            if method == "HEAD" and not key:
                return 200, b"", {}
            if method == "PUT":
                if request.headers.get("If-None-Match") == "*" and key in self.objects:
                    return self.failure(412, "PreconditionFailed")
                self.objects[key] = body
                return 200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}
            if method == "DELETE":
                self.objects.pop(key, None)
                return 204, b"", {}
            if key not in self.objects:
                return self.failure(404, "NoSuchKey")
            data = self.objects[key]
        headers = {"ETag": f'"{hashlib.md5(data).hexdigest()}"'}
        wanted = re.match(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
        if wanted:
            first = int(wanted.group(1))
            if first >= len(data):
                return self.failure(416, "InvalidRange")
            last = min(int(wanted.group(2) or len(data) - 1), len(data) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            return 206, data[first:last + 1], headers
        return 200, data, headers

    def list(self, query):
        prefix = query.get("prefix", "")
        start = query.get("continuation-token") or query.get("start-after", "")
        limit = int(query.get("max-keys", 1000))
        names = [k for k in sorted(self.objects) if k.startswith(prefix) and k > start]
        page, more = names[:limit], len(names) > limit
        contents = "".join(
            f"<Contents><Key>{escape(k)}</Key><Size>{len(self.objects[k])}</Size></Contents>"
            for k in page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        return (f'<?xml version="1.0"?><ListBucketResult><IsTruncated>{str(more).lower()}'
                f"</IsTruncated>{contents}{token}</ListBucketResult>").encode()

    @staticmethod
    def failure(code, name):
        return code, f"<Error><Code>{name}</Code><Message>{name}</Message></Error>".encode(), {}

    def error(self, request, code, name, _message):
        self.answer(request, *self.failure(code, name))

    @staticmethod
    def answer(request, code, body, headers):
        head = request.command == "HEAD"
        try:
            request.send_response(code)
            for name, value in headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            if not head:
                request.wfile.write(body)
            request.wfile.flush()
        except OSError:
            request.close_connection = True
