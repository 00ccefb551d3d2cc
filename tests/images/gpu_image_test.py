# SPDX-License-Identifier: Apache-2.0
"""The image worker-gpu as scripts/images.sh built it, on a machine without a GPU: that all which its worker
may load is in it but the driver, and that it runs on processors and says why not on a GPU. Needs root. The image
takes gigabytes and is made on demand (scripts/images.sh build worker-gpu): without it this is skipped."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import archive
import container
from ports import reserve_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "build/images/worker-gpu.tar"
LOADER = "/lib64/ld-linux-x86-64.so.2"
PROGRAM = "/usr/bin/lambdadnn-worker"
FOLDER = "usr/lib/lambdadnn"
# What the node's NVIDIA container runtime brings.
DRIVER = {"libcuda.so.1"}
# No library names these; they are opened when something of them is first needed: linear algebra, kernels that
# are compiled at run time, Parquet files, and the parts of cuDNN.
OPENED_BY_NAME = re.compile(r"libtorch_cuda_linalg\.so|libcaffe2_nvrtc\.so|libnvrtc-builtins\.so|libcudnn_\w+\.so"
                            r"|liblambdadnn_parquet\.so")
GB_COMPRESSED = 3


def wheels():
    """{package: (version, names of its libraries)} of scripts/cuda_wheels.txt."""
    lines = [line.split() for line in (ROOT / "scripts/cuda_wheels.txt").read_text().splitlines()]
    return {words[0]: (words[1], {pathlib.Path(file).name for file in words[3:]})
            for words in lines if words and not words[0].startswith("#")}


@unittest.skipUnless(ARCHIVE.exists(), f"{ARCHIVE.name} is not there: scripts/images.sh build worker-gpu makes it")
class GpuImage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ldnn-images-", dir="/var/tmp")
        cls.addClassCleanup(scratch.cleanup)
        os.chmod(scratch.name, 0o755)
        cls.folder = pathlib.Path(scratch.name)
        cls.image = archive.Image(ARCHIVE)
        cls.addClassCleanup(cls.image.close)
        cls.root = cls.folder / "root"
        cls.root.mkdir()
        container.unpack(cls.image, cls.root)
        cls.libraries = {path.name for path in (cls.root / FOLDER).iterdir()}

    def loaded(self, path):
        """({name: where}, names not found) of all that the image's own loader would load with it, as ldd asks it."""
        variables = dict(each.split("=", 1) for each in self.image.config["config"]["Env"])
        listed = subprocess.run([LOADER, path], capture_output=True, text=True, cwd="/",
                                env={**variables, "LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": ""},
                                preexec_fn=lambda: os.chroot(self.root))
        self.assertEqual("", listed.stderr, path)
        found = dict(re.findall(r"^\s*(\S+) => (/\S+) \(", listed.stdout, re.MULTILINE))
        return found, set(re.findall(r"^\s*(\S+) => not found", listed.stdout, re.MULTILINE))

    def missing(self):
        starts = [PROGRAM, *(f"/{FOLDER}/{name}" for name in self.libraries if (self.root / FOLDER / name).exists())]
        return set().union(*(self.loaded(start)[1] for start in starts))

    def test_all_that_is_loaded_is_there_but_the_driver(self):
        self.assertEqual(DRIVER, self.missing())
        for name in ("libcudnn.so.9", "libnvrtc.so.13"):
            there, away = self.root / FOLDER / name, self.folder / name
            there.rename(away)
            self.assertEqual(DRIVER | {name}, self.missing(), "one that is not there is found out")
            away.rename(there)

    def test_no_library_is_there_that_nothing_loads(self):
        opened = {name for name in self.libraries if OPENED_BY_NAME.match(name)}
        needed = set().union(*(set(self.loaded(start)[0]) for start in
                               [PROGRAM, *(f"/{FOLDER}/{name}" for name in opened)]))
        self.assertEqual(set(), self.libraries - opened - needed)

    def test_nvidias_are_those_that_are_listed_with_their_licences(self):
        listed = json.loads((self.root / "usr/share/lambdadnn/sbom.spdx.json").read_text())
        told = {package["name"]: package["versionInfo"] for package in listed["packages"]}
        for package, (version, names) in wheels().items():
            self.assertEqual(version, told[package])
            self.assertLessEqual(names, self.libraries, package)
            licences = self.root / "usr/share/doc/libtorch" / package
            self.assertIn("license.txt", [path.name.lower() for path in licences.iterdir()], package)

    def test_its_configuration_asks_nvidias_runtime_for_the_driver(self):
        self.assertEqual("linux/amd64", self.image.platform)
        config = self.image.config["config"]
        self.assertEqual([PROGRAM], config["Entrypoint"])
        self.assertEqual("65532:65532", config["User"])
        self.assertLessEqual({"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
                             set(config["Env"]))
        # By it the runtime knows the folder in which the image's loader looks.
        self.assertTrue((self.root / "etc/debian_version").exists())
        self.assertEqual(2, len(self.image.manifest["layers"]), "libraries, and what changes with every version")
        self.assertLess(self.image.manifest["layers"][1]["size"], 50e6)
        self.assertLess(self.image.compressed_bytes, GB_COMPRESSED * 1e9)

    def start(self, device):
        port = reserve_port()
        environment = {"PORT": port, "LAMBDADNN_JOB_KEY": "00" * 32, "LAMBDADNN_DEVICE": device}
        return container.Container(self.image, self.root, self.folder / f"run-{device}", (), environment), port

    def test_it_runs_on_processors(self):
        run, port = self.start("cpu")
        try:
            seconds = run.ready(port)
            print(f"ready after {seconds:.2f} s, {container.resident_mib(run.pid()):.0f} MiB", flush=True)
        finally:
            code = run.end()
        self.assertEqual(0, code, run.output())

    def test_without_a_gpu_it_says_so_and_what_to_do(self):
        run, _ = self.start("cuda")
        self.assertEqual(2, run.wait(), run.output())
        run.end()
        print(run.output(), flush=True)
        self.assertRegex(run.output(), r"LAMBDADNN_DEVICE=cuda: no GPU is here that CUDA 13\.\d+, cuDNN \d+ can use; "
                                       r"see whether nvidia-smi finds one, .* or train with LAMBDADNN_DEVICE=cpu")
