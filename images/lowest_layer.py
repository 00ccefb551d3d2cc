#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts a folder under the one image of an OCI layout as its lowest layer: what is gigabytes and the same in
many versions need not go through an image builder's storage, and nodes pull it once.

    images/lowest_layer.py LAYOUT FOLDER

The layer's bytes depend on names, modes and content of the files alone.
"""
import gzip
import hashlib
import json
import os
import pathlib
import sys
import tarfile

LEVEL = 6  # gzip's own; the libraries are hardly smaller at 9, which takes several times as long


class Hashed:
    """A file that is written to, and the digest of what was."""

    def __init__(self, file):
        self.file = file
        self.hash = hashlib.sha256()
        self.size = 0

    def write(self, data):
        self.hash.update(data)
        self.size += len(data)
        return self.file.write(data)

    def flush(self):
        self.file.flush()

    @property
    def digest(self):
        return f"sha256:{self.hash.hexdigest()}"


def _plain(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def write_layer(folder, path):
    """(descriptor, digest of what is compressed)"""
    with open(path, "wb") as file:
        compressed = Hashed(file)
        with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, compresslevel=LEVEL, mtime=0) as packed:
            plain = Hashed(packed)
            with tarfile.open(fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT) as layer:
                for found in sorted(folder.rglob("*")):
                    layer.add(found, found.relative_to(folder), recursive=False, filter=_plain)
    return ({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": compressed.digest,
             "size": compressed.size}, plain.digest)


def add_lowest(layout, folder):
    blobs = layout / "blobs/sha256"

    def read(digest):
        return json.loads((blobs / digest.removeprefix("sha256:")).read_text())

    def replace(descriptor, document):
        """The blob that it describes by another; the new descriptor."""
        data = json.dumps(document, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        (blobs / descriptor["digest"].removeprefix("sha256:")).unlink()
        (blobs / digest).write_bytes(data)
        return {**descriptor, "digest": f"sha256:{digest}", "size": len(data)}

    index = json.loads((layout / "index.json").read_text())
    manifest = read(index["manifests"][0]["digest"])
    config = read(manifest["config"]["digest"])
    fresh = blobs / "lowest"
    layer, plain = write_layer(folder, fresh)
    os.replace(fresh, blobs / layer["digest"].removeprefix("sha256:"))
    manifest["layers"].insert(0, layer)
    config["rootfs"]["diff_ids"].insert(0, plain)
    config.setdefault("history", []).insert(0, {"created_by": "images/lowest_layer.py"})
    manifest["config"] = replace(manifest["config"], config)
    index["manifests"][0] = replace(index["manifests"][0], manifest)
    (layout / "index.json").write_text(json.dumps(index, sort_keys=True))


if __name__ == "__main__":
    add_lowest(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
