# SPDX-License-Identifier: Apache-2.0
"""What is compiled for arm64 on amd64, run in qemu: that it computes what amd64 does where that is promised,
that its workers say that theirs are other bits, and that images of both platforms are pushed under one name.
Needs root, and network once (tests/images/images_test.py has the images themselves)."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import container
import images_test
from options import OPTIONS
from registry import Registry
from run_support import Bench

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of byte order, formats, checksums and arithmetic.
UNIT_TESTS = ("protocol_test", "collective_test", "parameter_server_test", "checkpoint_test", "data_test")
# An epoch of a small model: emulated, it takes about a minute.
SHORT = ("--set", "spec.training.epochs=1", "--set", "spec.objective.fixed.functions=2",
         "--set", "spec.objective.fixed.memory=768Mi", "--set", "spec.aggregation.serverMemory=256Mi",
         "--set", "spec.aggregation.layers=[1, 2]", "--set", "spec.aggregation.shards=1")


def run(*words, seconds=3600):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=ROOT, timeout=seconds)
    assert done.returncode == 0, f"{words}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@unittest.skipUnless(container.MACHINE == "amd64", "programs for arm64 are compiled on amd64 machines")
class Programs(unittest.TestCase):
    def test_unit_tests_of_formats_and_arithmetic_pass(self):
        run(ROOT / "scripts/sysroot.sh", "make")
        run("cmake", "--preset", "arm64")
        run("cmake", "--build", "build/arm64", "--target", *UNIT_TESTS)
        said = run("ctest", "--test-dir", "build/arm64", "-R", f"^({'|'.join(UNIT_TESTS)})$", "--timeout", "1200")
        self.assertIn(f"0 tests failed out of {len(UNIT_TESTS)}", said)


@unittest.skipUnless(container.MACHINE == "amd64", "images for arm64 are built on amd64 machines")
class Emulated(unittest.TestCase):
    """Jobs of `lambdadnn run` with some functions of the arm64 images; all else is this machine's."""

    @classmethod
    def setUpClass(cls):
        run(ROOT / "scripts/images.sh", "build", "--platform", "linux/arm64", "--reuse", "worker", "server")
        scratch = tempfile.TemporaryDirectory(prefix="ldnn-arm64-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.built = images_test.Images(cls.folder, "arm64", ("worker", "server"))
        cls.addClassCleanup(cls.built.end)
        cls.native = cls.run_with("native")

    @classmethod
    def run_with(cls, name, *emulated):
        """The report of a job whose functions of these programs run in qemu."""
        programs = cls.folder / name
        programs.mkdir()
        for program in ("lambdadnn", "lambdadnn-dataset", "lambdadnn-worker", "lambdadnn-server"):
            shutil.copy(OPTIONS.bin / program, programs)
        for function in emulated:
            root = cls.built.roots[function]
            wrapper = programs / f"lambdadnn-{function}"
            # Without /sys: LibTorch fails at start where it describes another processor than qemu's.
            wrapper.write_text("#!/bin/sh\nexec unshare --mount sh -c 'mount -t tmpfs none /sys && exec "
                               f"{container.EMULATORS['arm64']} -cpu {container.EMULATED_CPU} -L {root} "
                               f"{root}/usr/bin/lambdadnn-{function}'\n")
        bench = Bench(programs)
        try:
            done = bench.start(*SHORT, "--platform", bench.platform()).wait(1200)
            done.digest()
            return done.report()
        finally:
            bench.close()

    def test_a_server_gives_the_bits_of_amd64(self):
        report = self.run_with("server-of-arm64", "server")
        self.assertEqual(self.native["model"]["digest"], report["model"]["digest"])

    def test_a_worker_refuses_a_processor_on_which_products_are_wrong(self):
        """As qemu's is with vectors of 256 bits."""
        done = container.Container(self.built.images["worker"], self.built.roots["worker"], self.folder / "refusing",
                                   environment={"PORT": 0, "LAMBDADNN_JOB_KEY": images_test.JOB_KEY},
                                   processor="max,sve384=off")
        code = done.wait()
        done.end()
        self.assertEqual(4, code, done.output())
        self.assertIn("LibTorch computes wrong matrix products on this processor", done.output())

    def test_a_worker_trains_and_says_that_its_bits_are_others(self):
        report = self.run_with("worker-of-arm64", "worker")
        self.assertRegex(report["plan"]["isa"], "^(neon|sve)")
        self.assertNotEqual(self.native["plan"]["isa"], report["plan"]["isa"])
        self.assertNotEqual(self.native["plan"]["libtorch"], report["plan"]["libtorch"])
        # Other roundings, the same training.
        losses = [[each["loss"] for each in of["curves"]["iterations"]] for of in (self.native, report)]
        self.assertEqual(len(losses[0]), len(losses[1]))
        for native, emulated in zip(*losses, strict=True):
            self.assertAlmostEqual(native, emulated, delta=1e-4 * native)


@unittest.skipUnless(container.MACHINE == "amd64", "images for arm64 are built on amd64 machines")
class Pushed(unittest.TestCase):
    def test_both_platforms_are_one_list_under_one_name(self):
        both = ("--platform", "linux/amd64,linux/arm64")
        run(ROOT / "scripts/images.sh", "build", *both, "--reuse", "--preset", OPTIONS.preset, "server")
        registry = Registry()
        self.addCleanup(registry.close)
        run(ROOT / "scripts/images.sh", "push", *both, "--registry", f"{registry.address}/team", "--tag", "7",
            "--plain-http", "server")
        kind, index = registry.manifest("team/lambdadnn-server", "7")
        self.assertEqual("application/vnd.oci.image.index.v1+json", kind)
        for each in index["manifests"]:
            _, manifest = registry.manifest("team/lambdadnn-server", each["digest"])
            config = json.loads(registry.blobs[manifest["config"]["digest"]])
            self.assertEqual(each["platform"]["architecture"], config["architecture"])
        self.assertEqual(["amd64", "arm64"], sorted(each["platform"]["architecture"] for each in index["manifests"]))
        listed = run(ROOT / "scripts/images.sh", "list", "server")
        self.assertEqual(["linux/amd64", "linux/arm64"], sorted(line.split()[1] for line in listed.splitlines()[1:]))
