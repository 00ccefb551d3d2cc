# SPDX-License-Identifier: Apache-2.0
"""What can be held of the images without building one: that the Dockerfiles are well formed and
name files and programs that exist, and that the lists of packages are what the programs load."""
import gzip
import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import archive
import lowest_layer
from options import OPTIONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("operator", "worker", "server")
ALL = (*NAMES, "operator-torch", "worker-gpu")
INSTRUCTIONS = {"ARG", "FROM", "COPY", "RUN", "ENV", "USER", "EXPOSE", "LABEL", "ENTRYPOINT"}
ELF_MACHINES = {"amd64": 0x3E, "arm64": 0xB7}  # what an ELF file says of itself
NOT_LOADED = {"ca-certificates"}  # a file of it is copied


class Dockerfile:
    """Its instructions, continued lines joined: [(instruction, rest)]."""

    def __init__(self, text):
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        joined = re.sub(r"\\\n", " ", "\n".join(lines))
        self.steps = [(words[0], words[1].strip()) for words in
                      (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())]

    def all(self, instruction):
        return [rest for name, rest in self.steps if name == instruction]


def dockerfile(name):
    return Dockerfile((ROOT / f"images/{name}/Dockerfile").read_text())


def packages(name):
    text = (ROOT / f"images/{name}/packages").read_text()
    return [line for line in re.sub("#.*", "", text).split() if line]


def loaded_packages(program):
    """The Debian packages that the shared libraries of a program are from; not those that the
    program contains itself, which belong to none."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"(?:=> |^\s*)(/\S+) \(", listed, re.MULTILINE)
    found = set()
    for path in paths:
        real = pathlib.Path(path).resolve()
        for name in (real, re.sub("^/usr", "", str(real))):
            owner = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
            if owner.returncode == 0:
                found.add(owner.stdout.split(":")[0])
                break
    return found


def digest_of(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def write_layout(folder, name, data):
    """An OCI layout with an image of one layer, which has this file."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content):
        digest = digest_of(content)
        (blobs / digest.removeprefix("sha256:")).write_bytes(content)
        return {"digest": digest, "size": len(content)}
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as files:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        files.addfile(member, io.BytesIO(data))
    config = {"architecture": "amd64", "os": "linux", "config": {}, "history": [{"created_by": "a test"}],
              "rootfs": {"type": "layers", "diff_ids": [digest_of(layer.getvalue())]}}
    manifest = {"config": blob(json.dumps(config).encode()),
                "layers": [blob(gzip.compress(layer.getvalue(), mtime=0))]}
    described = {**blob(json.dumps(manifest).encode()), "annotations": {"org.opencontainers.image.ref.name": "x:1"}}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}))


def on_debian_12():
    try:
        release = pathlib.Path("/etc/os-release").read_text()
    except OSError:
        return False
    return "VERSION_CODENAME=bookworm" in release and shutil.which("dpkg-query") is not None


class Definitions(unittest.TestCase):
    def test_every_instruction_is_known(self):
        for name in ALL:
            self.assertLessEqual({each for each, _ in dockerfile(name).steps}, INSTRUCTIONS, name)

    def test_every_stage_that_is_named_is_there_before(self):
        for name in ALL:
            stages, arguments = {"scratch"}, {}
            for instruction, rest in dockerfile(name).steps:
                if instruction == "ARG" and "=" in rest and stages == {"scratch"}:
                    key, value = rest.split("=", 1)
                    arguments[f"${{{key}}}"] = value
                if instruction == "FROM":
                    words = rest.split()
                    source = arguments.get(words[0], words[0])
                    self.assertTrue(source in stages or ":" in source, f"{name}: FROM {rest}")
                    self.assertFalse(source.endswith(":latest"), f"{name}: FROM {rest}")
                    stages.add(words[2] if words[1:2] == ["AS"] else "")
                for stage in re.findall(r"--from=(\S+)", rest):
                    self.assertIn(stage, stages, f"{name}: {rest}")

    def test_every_source_that_is_copied_exists(self):
        for name in ALL:
            made_by_the_script = f"build/images/{name}/install"
            self.assertIn(f"{made_by_the_script} /install", dockerfile(name).all("COPY"))
            for rest in dockerfile(name).all("COPY"):
                if rest.startswith("--from"):
                    continue
                for source in rest.split()[:-1]:
                    self.assertTrue(source == made_by_the_script or (ROOT / source).exists(),
                                    f"images/{name}/Dockerfile copies {source}")

    def test_each_wheel_of_nvidias_is_pinned(self):
        lines = [line for line in (ROOT / "scripts/cuda_wheels.txt").read_text().splitlines() if line[:1] != "#"]
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.assertRegex(line, r"^nvidia-[a-z0-9-]+ [0-9][0-9.]* [0-9a-f]{64}( [\w./-]+\.so[0-9.]*)+$")

    def test_a_folder_becomes_the_lowest_layer_of_an_image(self):
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            (scratch / "folder/usr/lib").mkdir(parents=True)
            (scratch / "folder/usr/lib/libone.so").write_bytes(b"one" * 1000)
            digests = []
            for turn in ("first", "second"):
                layout = scratch / turn
                write_layout(layout, "etc/passwd", b"root")
                lowest_layer.add_lowest(layout, scratch / "folder")
                with tarfile.open(scratch / f"{turn}.tar", "w") as whole:
                    whole.add(layout, ".")
                with archive.Image(scratch / f"{turn}.tar") as image:
                    self.assertEqual([["usr", "usr/lib", "usr/lib/libone.so"], ["etc/passwd"]],
                                     [[member.name for member in layer] for layer in image.layers()])
                    self.assertEqual(b"one" * 1000, image.files()["usr/lib/libone.so"][1])
                    for layer, plain in zip(image.manifest["layers"], image.config["rootfs"]["diff_ids"], strict=True):
                        blob = layout / "blobs/sha256" / layer["digest"].removeprefix("sha256:")
                        self.assertEqual(layer["size"], blob.stat().st_size)
                        self.assertEqual(plain, digest_of(gzip.decompress(blob.read_bytes())))
                    self.assertEqual(len(image.manifest["layers"]), len(image.config["history"]))
                    digests.append(image.digest)
                # Nothing that no document names is left.
                self.assertEqual(4, len(list((layout / "blobs/sha256").iterdir())))
            self.assertEqual(1, len(set(digests)), "the same files give the same bytes")

    def test_the_version_is_the_projects(self):
        version = re.search(r"project\(lambdadnn VERSION (\S+)",
                            (ROOT / "CMakeLists.txt").read_text())[1]
        for name in ALL:
            stated = [rest.split("=")[1] for rest in dockerfile(name).all("ARG")
                      if rest.startswith("VERSION=")]
            self.assertEqual([version, version], stated, name)

    def test_the_user_is_a_number_and_the_program_needs_no_shell(self):
        for name in ALL:
            self.assertEqual(["65532:65532"], dockerfile(name).all("USER"))
            self.assertEqual([f'["/usr/bin/lambdadnn-{name.split("-")[0]}"]'],
                             dockerfile(name).all("ENTRYPOINT"))

    def test_no_dockerfile_and_nothing_of_the_chart_is_of_one_architecture(self):
        chart = [path for path in (ROOT / "charts").rglob("*") if path.is_file()]
        self.assertGreater(len(chart), 10)
        for path in [*(ROOT / f"images/{name}/Dockerfile" for name in ALL), *(ROOT / "images").glob("*.sh"), *chart]:
            named = re.findall(r"amd64|x86[-_]64|arm64|aarch64|FROM --platform|kubernetes\.io/arch", path.read_text())
            self.assertEqual([], named, path)

    def test_the_architectures_are_the_same_everywhere(self):
        machines = {"amd64": "x86_64", "arm64": "aarch64"}
        self.assertEqual(set(machines), set(ELF_MACHINES))
        doctor = (ROOT / "operator/cli/cluster/node_check.cc").read_text()
        self.assertEqual(list(machines), re.findall(r'"(\w+)"', re.search(r"kArchitectures = \{(.*?)\}", doctor)[1]))
        for name in ("libtorch", "arrow"):
            script = (ROOT / f"scripts/{name}.sh").read_text()
            self.assertEqual(list(machines.values()), re.findall(r"^  (\w+)\)(?:$| sha256)", script, re.MULTILINE))
            self.assertEqual(len(machines), len(set(re.findall("sha256=([0-9a-f]{64})", script))))
        # CUDA's libraries are of one, which is where the image that has them is built.
        self.assertIn("[ \"$architecture\" = x86_64 ] ||", (ROOT / "scripts/libtorch.sh").read_text())
        for architecture in machines:
            self.assertIn(f'"$platform" = linux/{architecture}', (ROOT / "scripts/images.sh").read_text())

    def test_lists_of_packages_are_sorted_and_without_repetition(self):
        for name in ALL:
            self.assertEqual(sorted(set(packages(name))), packages(name), name)

    @unittest.skipUnless(on_debian_12(), "the packages are Debian 12's")
    def test_lists_of_packages_are_what_the_programs_load(self):
        self.assertTrue(OPTIONS.program, "no --program was given")
        for name in sorted({name for name, _ in OPTIONS.program}):
            programs = [path for image, path in OPTIONS.program if image == name]
            loaded = set().union(*(loaded_packages(program) for program in programs))
            self.assertEqual(loaded, set(packages(name)) - NOT_LOADED,
                             f"images/{name}/packages and what {programs} load")
