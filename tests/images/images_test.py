# SPDX-License-Identifier: Apache-2.0
"""The images as scripts/images.sh builds them: what is in them, that their list of packages is true,
that they start without rights and on a read-only root, how large they are, and that the same tree
gives the same bytes. Needs root, and network once for the base and LibTorch. With --compile-inside they
are compiled in their Dockerfiles, as docker build does; with --platform they are for another architecture
than this machine's, and their programs run in qemu."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import unittest

import archive
import container
import job_crd
import kube_control_plane
from definitions_test import ELF_MACHINES, NAMES, packages
from options import OPTIONS
from ports import reserve_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/images"
# Aims: compressed megabytes, seconds from the container's start to /readyz, megabytes at rest.
AIMS = {"operator": (40, 0.3, None), "worker": (200, 0.7, 125), "server": (25, 0.1, 20)}
LIBRARY = re.compile(r"\(NEEDED\).*\[(.*)\]")
JOB_KEY = "00" * 32


def archive_path(name, architecture=container.MACHINE):
    suffix = "" if architecture == container.MACHINE else f"-{architecture}"
    return FOLDER / f"{name}{suffix}.tar"


class Images:
    """The archives of build/images for one architecture, unpacked below `folder`, and a control plane
    for the operator."""

    def __init__(self, folder, architecture=container.MACHINE, names=NAMES):
        self.folder = pathlib.Path(folder)
        self.images = {name: archive.Image(archive_path(name, architecture)) for name in names}
        self.roots = {}
        for name, image in self.images.items():
            self.roots[name] = self.folder / name
            self.roots[name].mkdir()
            container.unpack(image, self.roots[name])
        self.plane = None
        self.runs = 0

    def control_plane(self):
        if self.plane is None:
            self.plane = kube_control_plane.ControlPlane(self.folder / "plane").up()
            kubectl = kube_control_plane.program("kubectl")
            job_crd.install(lambda *words: subprocess.run(
                [kubectl, "--kubeconfig", self.plane.kubeconfig, *words], capture_output=True,
                text=True))
        return self.plane

    def end(self):
        for image in self.images.values():
            image.close()
        if self.plane is not None:
            self.plane.down()

    def start(self, name, words=None):
        """(container, port): a function with its job's key, or an operator of the control plane."""
        port = reserve_port()
        self.runs += 1
        given, environment, mounts = [], {"PORT": port, "LAMBDADNN_JOB_KEY": JOB_KEY}, []
        if name == "operator" and words is None:
            folder = self.readable_plane()
            (folder / "platform.yaml").write_text("memory: {min: 128Mi, max: 1024Mi, step: 64Mi}\n"
                                                  "maxFunctions: 4\n")
            mounts, environment = [folder], {"NO_PROXY": "*"}
            given = ["--kubeconfig", folder / "admin.conf", "--backend", "Knative",
                     "--platform", folder / "platform.yaml",
                     "--worker-image", "dev.local/w:1", "--server-image", "dev.local/s:1",
                     "--health-address", f"127.0.0.1:{port}", "--metrics-address", "0"]
        run = container.Container(self.images[name], self.roots[name],
                                  self.folder / f"run-{self.runs}", [str(w) for w in words or given],
                                  environment, mounts)
        return run, port

    def readable_plane(self):
        """The control plane's kubeconfig and certificates where the image's user can read them."""
        source = self.control_plane().folder
        for path in [source, *source.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
            elif path.suffix in (".conf", ".crt", ".key"):
                path.chmod(0o644)
        return source

    def measure(self, name, runs):
        """(median seconds to /readyz, megabytes at rest)."""
        seconds, resident = [], []
        for _ in range(runs):
            run, port = self.start(name)
            try:
                seconds.append(run.ready(port))
                resident.append(container.resident_mib(run.pid()) * 1.048576)
            finally:
                run.end()
        return statistics.median(seconds), statistics.median(resident)


def is_elf(data):
    return data is not None and data[:4] == b"\x7fELF"


class BuiltImages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.architecture = OPTIONS.platform.removeprefix("linux/") or container.MACHINE
        cls.build()
        scratch = tempfile.TemporaryDirectory(prefix="ldnn-images-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        os.chmod(scratch.name, 0o755)
        cls.built = Images(scratch.name, cls.architecture)
        cls.addClassCleanup(cls.built.end)
        cls.files = {name: image.files() for name, image in cls.built.images.items()}

    @classmethod
    def build(cls, *more):
        made_of = ["--compile-inside"] if OPTIONS.compile_inside else ["--preset", OPTIONS.preset]
        made_of += ["--platform", f"linux/{cls.architecture}"]
        done = subprocess.run([ROOT / "scripts/images.sh", "build", *made_of, *more],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        print(done.stdout, flush=True)

    def test_nobody_is_root_and_labels_say_what_it_is(self):
        for name, image in self.built.images.items():
            config = image.config["config"]
            self.assertEqual(f"linux/{self.architecture}", image.platform)
            self.assertEqual("65532:65532", config["User"])
            self.assertEqual([f"/usr/bin/lambdadnn-{name}"], config["Entrypoint"])
            labels = {key.removeprefix("org.opencontainers.image."): value
                      for key, value in config["Labels"].items()}
            self.assertEqual(f"lambdadnn-{name}", labels["title"])
            self.assertEqual("Apache-2.0", labels["licenses"])
            self.assertTrue(image.name.endswith(f"/lambdadnn-{name}:{labels['version']}"))
            self.assertTrue(labels["revision"])

    def test_no_shell_no_setuid_nothing_writable_but_tmp(self):
        for name, files in self.files.items():
            programs = {pathlib.Path(path).name for path, (member, _) in files.items()
                        if path.startswith("usr/bin/")}
            expected = {f"lambdadnn-{name}"}
            if name == "operator":
                expected |= {"lambdadnn", "kubectl-lambdadnn", "lambdadnn-dataset"}
            self.assertEqual(expected, programs)
            for path, (member, _) in files.items():
                self.assertFalse(member.mode & 0o6000, path)
                if not member.issym() and path != "tmp":
                    self.assertFalse(member.mode & 0o022, path)
                self.assertEqual(0, member.uid, path)

    def test_every_program_and_library_is_of_the_platform(self):
        for name, files in self.files.items():
            machines = {path: int.from_bytes(data[18:20], "little")
                        for path, (_, data) in files.items() if is_elf(data)}
            self.assertIn(f"usr/bin/lambdadnn-{name}", machines)
            others = {path for path, machine in machines.items()
                      if machine != ELF_MACHINES[self.architecture]}
            self.assertEqual(set(), others, name)

    def test_every_library_that_is_named_is_there_and_no_other(self):
        for name, files in self.files.items():
            libraries = {pathlib.Path(path).name for path in files
                         if path.startswith(("usr/lib/", "usr/lib64/")) and ".so" in path}
            needed = set()
            for path, (_, data) in files.items():
                if is_elf(data):
                    listed = subprocess.run(["readelf", "-dW", self.built.roots[name] / path],
                                            capture_output=True, text=True, check=True).stdout
                    needed |= set(LIBRARY.findall(listed))
            # Nothing names it: programs load it when a data set is Parquet.
            loaded = {"liblambdadnn_parquet.so"} if name in ("operator", "worker") else set()
            self.assertEqual(needed | loaded, libraries, name)
            self.assertEqual(bool(loaded), any(library.startswith("libparquet.so.") for library in libraries), name)

    def test_the_list_of_packages_is_true_and_every_licence_is_there(self):
        for name, files in self.files.items():
            listed = json.loads(files["usr/share/lambdadnn/sbom.spdx.json"][1])
            self.assertEqual("SPDX-2.3", listed["spdxVersion"])
            debian = {}
            for package in listed["packages"]:
                self.assertTrue(package["versionInfo"], package)
                for reference in package.get("externalRefs", []):
                    debian[package["name"]] = package["versionInfo"]
                    self.assertTrue(reference["referenceLocator"].startswith("pkg:deb/debian/"))
            self.assertEqual(set(packages(name)), set(debian))
            for package in debian:
                self.assertIn(f"usr/share/doc/{package}/copyright", files)
            compiled_in = {package["name"] for package in listed["packages"]} - set(debian)
            expected = {f"lambdadnn-{name}", "nlohmann-json", "Boost"}
            expected |= {"operator": {"Apache Arrow", "CLI11"}, "worker": {"Apache Arrow", "LibTorch"}}.get(name, set())
            if (name, self.architecture) == ("worker", "arm64"):
                expected |= {"Arm Compute Library", "NVPL"}
            self.assertEqual(expected, compiled_in)
            self.assertEqual((ROOT / "LICENSE").read_bytes(),
                             files["usr/share/doc/lambdadnn/LICENSE"][1])
            related = {each["relatedSpdxElement"] for each in listed["relationships"]}
            self.assertEqual({each["SPDXID"] for each in listed["packages"]}, related)
        self.assertIn("usr/share/doc/libtorch/LICENSE", self.files["worker"])
        for name in ("operator", "worker"):
            self.assertIn("usr/share/doc/arrow/LICENSE.txt", self.files[name])

    def test_the_operators_image_has_the_crds_and_the_commands(self):
        for crd in ROOT.glob("crds/*.yaml"):
            self.assertEqual(crd.read_bytes(),
                             self.files["operator"][f"usr/share/lambdadnn/crds/{crd.name}"][1])
        run, _ = self.built.start("operator", ["--version"])
        self.assertEqual(0, run.wait(), run.output())
        run.end()

    def test_sizes_are_within_the_aims(self):
        for name, image in self.built.images.items():
            self.assertLessEqual(image.compressed_bytes / 1e6, AIMS[name][0], name)

    def test_each_starts_on_a_read_only_root_without_rights_and_ends_when_told(self):
        for name in NAMES:
            run, port = self.built.start(name)
            try:
                run.ready(port)
                status = pathlib.Path(f"/proc/{run.pid()}/status").read_text()
                resident_mb = container.resident_mib(run.pid()) * 1.048576
            finally:
                code = run.end()
            self.assertEqual(0, code, run.output())
            self.assertRegex(status, r"Uid:\s65532\s65532")
            self.assertRegex(status, r"CapEff:\s0{16}")
            self.assertRegex(status, r"NoNewPrivs:\s1")
            if AIMS[name][2] and not run.emulated:
                self.assertLessEqual(resident_mb, AIMS[name][2], name)

    def test_the_same_tree_gives_the_same_bytes(self):
        before = {name: archive_path(name, self.architecture).read_bytes() for name in ("operator", "server")}
        digests = {name: image.digest for name, image in self.built.images.items()}
        # Where compiling is a part of it, one that takes a minute.
        self.build(*(["server"] if OPTIONS.compile_inside else ["--no-compile"]))
        for name in NAMES:
            with archive.Image(archive_path(name, self.architecture)) as image:
                self.assertEqual(digests[name], image.digest, name)
        for name, data in before.items():
            self.assertEqual(data, archive_path(name, self.architecture).read_bytes(), name)
