# SPDX-License-Identifier: Apache-2.0
"""Runs an image as Kubernetes would under its strictest rules: as the image's user, without
capabilities, on a read-only root. By runc, in the machine's own network. Needs root. An image for another
architecture runs in qemu, which is mounted into the container: the kernel need not know of it."""
import http.client
import json
import os
import pathlib
import subprocess
import tarfile
import time

POLL_SECONDS = 0.002
MACHINE = {"aarch64": "arm64"}.get(os.uname().machine, "amd64")
EMULATORS = {"arm64": "/usr/bin/qemu-aarch64-static"}
# A server's. With the vectors of qemu's own choice the worker's LibTorch gives wrong numbers.
EMULATED_CPU = "neoverse-n1"


def unpack(image, folder):
    """The image's file system, owned by root as it is in the image."""
    for layer in image.layers():
        layer.extraction_filter = getattr(tarfile, "tar_filter", None)  # Python 3.11.2 has none
        layer.extractall(folder, numeric_owner=True)
    return folder


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no VmRSS")


class Container:
    """One run of an image unpacked at `rootfs`; end() removes it."""

    def __init__(self, image, rootfs, folder, words=(), environment=None, mounts=(),
                 processor=EMULATED_CPU):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.identity = f"lambdadnn-{os.getpid()}-{self.folder.name}"
        config = image.config["config"]
        self.emulated = image.config["architecture"] != MACHINE
        emulator = [EMULATORS[image.config["architecture"]]] if self.emulated else []
        mounts = [*mounts, *emulator]
        environment = {**(environment or {}), **({"QEMU_CPU": processor} if self.emulated else {})}
        uid, gid = (int(part) for part in config["User"].split(":"))
        variables = config.get("Env", []) + [f"{k}={v}" for k, v in environment.items()]
        (self.folder / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2",
            "process": {"user": {"uid": uid, "gid": gid}, "cwd": "/", "noNewPrivileges": True,
                        "args": emulator + config["Entrypoint"] + list(words), "env": variables},
            "root": {"path": str(rootfs), "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                        "options": ["nosuid", "mode=755"]},
                       *({"destination": str(path), "source": str(path), "type": "bind",
                          "options": ["bind", "ro"]} for path in mounts)],
            "linux": {"cgroupsPath": f"/{self.identity}",
                      "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]}}))
        self.log = self.folder / "log"
        self.began = time.monotonic()
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*self._runc(), "run", "--bundle", self.folder, self.identity],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _runc(self):
        return ["runc", "--root", self.folder / "state"]

    def ready(self, port, path="/readyz", seconds=None):
        """Seconds from the start until it answers 200."""
        seconds = seconds or (600 if self.emulated else 120)
        deadline = self.began + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}: {self.output()}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    return time.monotonic() - self.began
            except OSError:
                pass
            finally:
                connection.close()
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"{path} of port {port} not ready within {seconds} s: {self.output()}")

    def pid(self):
        state = subprocess.run([*self._runc(), "state", self.identity], capture_output=True,
                               text=True, check=True)
        return json.loads(state.stdout)["pid"]

    def output(self):
        return self.log.read_text()[-3000:]

    def wait(self, seconds=None):
        """The exit code of a program that ends by itself."""
        return self.process.wait(seconds or (600 if self.emulated else 120))

    def end(self, seconds=60):
        """SIGTERM, as the kubelet sends it. The exit code."""
        if self.process.poll() is None:
            subprocess.run([*self._runc(), "kill", self.identity, "TERM"], check=False)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                subprocess.run([*self._runc(), "kill", self.identity, "KILL"], check=False)
                self.process.wait()
        subprocess.run([*self._runc(), "delete", "--force", self.identity], capture_output=True,
                       check=False)
        return self.process.returncode
