#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads images from OCI archives.

    images/archive.py FILE...      prints a line each: name, platform, digest, compressed and unpacked size
"""
import gzip
import hashlib
import json
import pathlib
import sys
import tarfile


class Image:
    """The one image of an OCI archive; open until close() or the end of a `with`."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._archive = tarfile.open(path)
        self._members = {member.name.removeprefix("./"): member for member in self._archive}
        entry = json.loads(self._read("index.json"))["manifests"][0]
        self.name = entry["annotations"]["org.opencontainers.image.ref.name"]
        self.digest = entry["digest"]
        self.manifest = json.loads(self._blob(self.digest))
        self.config = json.loads(self._blob(self.manifest["config"]["digest"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._archive.close()

    def _read(self, name):
        return self._archive.extractfile(self._members[name]).read()

    def _open_blob(self, digest):
        blob = self._archive.extractfile(self._members["blobs/" + digest.replace(":", "/")])
        if "sha256:" + hashlib.file_digest(blob, "sha256").hexdigest() != digest:
            raise ValueError(f"{self.path}: {digest} is not what its name says")
        blob.seek(0)
        return blob

    def _blob(self, digest):
        return self._open_blob(digest).read()

    @property
    def platform(self):
        return f"{self.config['os']}/{self.config['architecture']}"

    @property
    def compressed_bytes(self):
        return sum(layer["size"] for layer in self.manifest["layers"])

    def layers(self):
        """The layers as open tar files, to be read from begin to end, the lowest first: one may have gigabytes."""
        for layer in self.manifest["layers"]:
            yield tarfile.open(fileobj=gzip.GzipFile(fileobj=self._open_blob(layer["digest"])), mode="r|")

    def files(self):
        """{path: (tar member, its bytes or None)} of the whole file system."""
        found = {}
        for layer in self.layers():
            for member in layer:
                data = layer.extractfile(member).read() if member.isfile() else None
                found[member.name.strip("/").removeprefix("./")] = (member, data)
        return found


def main(paths):
    print(f"{'IMAGE':<40} {'PLATFORM':<12} {'DIGEST':<20} {'COMPRESSED':>11} {'UNPACKED':>10}")
    for path in paths:
        with Image(path) as image:
            unpacked = sum(member.size for layer in image.layers() for member in layer)
            print(f"{image.name:<40} {image.platform:<12} {image.digest[:19]:<20} "
                  f"{image.compressed_bytes / 1e6:>8.1f} MB "
                  f"{unpacked / 1e6:>7.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
