# SPDX-License-Identifier: Apache-2.0
"""As much of a registry (OCI distribution, version 1.1) as a push needs, in memory and without TLS. It
refuses content that is not what its digest says, and manifests that name content which it does not have."""
import hashlib
import json
import re
import urllib.parse
import uuid

from loopback_server import Handler, LoopbackServer

ROUTE = re.compile(r"/v2/(?P<name>[a-z0-9/._-]+)/(?P<kind>blobs|manifests)/"
                   r"(?P<reference>[^/]+)(?:/(?P<upload>[^/]+))?$")


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry(LoopbackServer):
    def __init__(self):
        self.blobs = {}      # {digest: bytes}
        self.manifests = {}  # {(repository, tag or digest): (media type, bytes)}
        self.uploads = {}
        super().__init__(RegistryHandler)
        self.address = self.url.removeprefix("http://")

    def manifest(self, name, reference):
        """(media type, the document)."""
        kind, data = self.manifests[name, reference]
        return kind, json.loads(data)

    def lacks(self, name, data):
        """What a manifest names that is not here."""
        document = json.loads(data)
        here = set(self.blobs) | {reference for repository, reference in self.manifests if repository == name}
        named = [document["config"], *document["layers"]] if "config" in document else document["manifests"]
        return [each["digest"] for each in named if each["digest"] not in here]


class RegistryHandler(Handler):
    def answer(self, status, data=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def body(self):
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def route(self):
        url = urllib.parse.urlsplit(self.path)
        found = ROUTE.match(url.path)
        return found, dict(urllib.parse.parse_qsl(url.query))

    def do_GET(self):
        found, _ = self.route()
        if self.path.rstrip("/") == "/v2":
            return self.answer(200)
        if found is None:
            return self.answer(404)
        if found["kind"] == "manifests":
            kind, data = self.server.manifests.get((found["name"], found["reference"]), (None, None))
        else:
            kind, data = "application/octet-stream", self.server.blobs.get(found["reference"])
        if data is None:
            return self.answer(404)
        return self.answer(200, data, Content_Type=kind, Docker_Content_Digest=digest_of(data))

    do_HEAD = do_GET

    def do_POST(self):
        self.body()
        upload = str(uuid.uuid4())
        self.server.uploads[upload] = b""
        self.answer(202, Location=f"{self.path.split('?')[0].rstrip('/')}/{upload}", Range="0-0")

    def do_PATCH(self):
        found, _ = self.route()
        self.server.uploads[found["upload"]] += self.body()
        size = len(self.server.uploads[found["upload"]])
        self.answer(202, Location=self.path.split("?")[0], Range=f"0-{size - 1}")

    def do_PUT(self):
        found, query = self.route()
        data = self.body()
        if found["kind"] == "blobs":
            data = self.server.uploads.pop(found["upload"]) + data
            if digest_of(data) != query["digest"]:
                return self.answer(400)
            self.server.blobs[query["digest"]] = data
            return self.answer(201, Location=f"/v2/{found['name']}/blobs/{query['digest']}",
                               Docker_Content_Digest=query["digest"])
        if self.server.lacks(found["name"], data):
            return self.answer(404)
        for reference in (found["reference"], digest_of(data)):
            self.server.manifests[found["name"], reference] = (self.headers["Content-Type"], data)
        return self.answer(201, Location=self.path, Docker_Content_Digest=digest_of(data))
