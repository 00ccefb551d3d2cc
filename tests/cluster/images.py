# SPDX-License-Identifier: Apache-2.0
"""Images of the test cluster's own parts: one static program each, written as docker archives.
The product's are those of scripts/images.sh.

Archives are kept in the cache, named by what they were made of; the same input gives the same
bytes. Their names begin with dev.local, whose tags Knative does not look up in a registry.
"""
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile

from settings import ROOT, ClusterError, program

KNATIVE_PROGRAMS = ("activator", "autoscaler", "controller", "queue", "webhook")
USER = "65532:65532"  # a number: Kubernetes can see that it is not root
_PASSWD = b"root:x:0:0::/:/none\nnonroot:x:65532:65532::/:/none\n"


def _add(archive, name, data=None, mode=0o755):
    """A file, or without data a folder, with nothing in its head that differs from day to day."""
    member = tarfile.TarInfo(name)
    member.mode = mode
    if data is None:
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    else:
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))


def write_archive(path, name, binary, target):
    """An image `name` at `path` in which the program `binary` is /`target`, its entry point."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as files:
        _add(files, "tmp", mode=0o1777)
        _add(files, "etc")
        _add(files, "etc/passwd", _PASSWD, 0o644)
        _add(files, target, pathlib.Path(binary).read_bytes())
    digest = hashlib.sha256(layer.getbuffer()).hexdigest()
    settings = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": [f"/{target}"], "User": USER, "Env": ["PATH=/"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": "tests/cluster/images.py"}]}, sort_keys=True).encode()
    identity = hashlib.sha256(settings).hexdigest()
    manifest = [{"Config": f"{identity}.json", "RepoTags": [name],
                 "Layers": [f"{digest}/layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        _add(archive, f"{identity}.json", settings, 0o644)
        _add(archive, f"{digest}/layer.tar", layer.getvalue(), 0o644)
        _add(archive, "manifest.json", json.dumps(manifest).encode(), 0o644)


class Images:
    def __init__(self, config):
        self.folder = config.cache / "cluster-images"

    def _kept(self, stamp):
        return self.folder / hashlib.sha256(stamp).hexdigest()[:16]

    def of_program(self, name, binary):
        """The archive of image dev.local/NAME:1 with one program in it."""
        binary = pathlib.Path(binary).resolve()
        found = binary.stat()
        stamp = f"{binary} {found.st_size} {found.st_mtime_ns} {name}\n".encode()
        kept = self._kept(stamp + pathlib.Path(__file__).read_bytes()) / f"{name}.tar"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder) as work:
                fresh = pathlib.Path(work, "image.tar")
                write_archive(fresh, f"dev.local/{name}:1", binary, name)
                os.replace(fresh, kept)
        return kept

    def compiled(self, name):
        """Of tests/cluster/NAME.c."""
        source = ROOT / f"tests/cluster/{name}.c"
        binary = self._kept(source.read_bytes()) / name
        if not binary.exists():
            binary.parent.mkdir(parents=True, exist_ok=True)
            # Every node asks for it at the same time.
            with tempfile.TemporaryDirectory(dir=self.folder) as work:
                fresh = pathlib.Path(work, name)
                made = subprocess.run(["gcc", "-Os", "-static", "-s", "-Wall", "-Wextra", source,
                                       "-o", fresh], capture_output=True, text=True)
                if made.returncode != 0:
                    raise ClusterError(f"gcc could not compile {source}: {made.stderr.strip()}")
                os.replace(fresh, binary)
        return self.of_program(name, binary)

    def pause(self):
        """The program that holds a pod's namespaces."""
        return self.compiled("pause")

    def test_function(self):
        return self.of_program("test-function", program("test-function"))

    def knative(self):
        return [self.of_program(f"knative-{name}", program(f"knative-{name}"))
                for name in KNATIVE_PROGRAMS]
