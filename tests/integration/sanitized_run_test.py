# SPDX-License-Identifier: Apache-2.0
"""A small real training by functions built with the address sanitizer, LibTorch inside: two workers,
one server, a store of files. Ends well, with the bits that its own repeat has, and no report of the
sanitizer, leaks at exit included."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from options import OPTIONS
from run_support import FUNCTION_PROGRAMS, Bench


class SanitizedRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lambdadnn-sanitized-")
        self.addCleanup(folder.cleanup)
        self.programs = pathlib.Path(folder.name) / "bin"
        self.programs.mkdir()
        # lambdadnn takes the functions that lie beside it.
        for program in ("lambdadnn", "lambdadnn-dataset"):
            shutil.copy(OPTIONS.bin / program, self.programs)
        for program in FUNCTION_PROGRAMS:
            shutil.copy(OPTIONS.sanitized_bin / program, self.programs)
            linked = subprocess.run(["ldd", self.programs / program], capture_output=True,
                                    text=True, check=True).stdout
            self.assertIn("libasan", linked, f"{program} was not built with the sanitizer")
        self.reports = pathlib.Path(folder.name) / "reports"
        self.reports.mkdir()

    def test_a_training_ends_without_a_report(self):
        bench = Bench(self.programs, train=240, test=60)
        self.addCleanup(bench.close)
        suppressions = bench.folder / "leaks.txt"
        # LibTorch's and OpenMP's own singletons, which are never freed.
        suppressions.write_text("leak:libtorch\nleak:libc10\nleak:libgomp\nleak:libprotobuf\n")
        environment = {
            # A small quarantine: freed memory counts against the function's limit.
            "ASAN_OPTIONS": f"log_path={self.reports}/asan:quarantine_size_mb=16:detect_leaks=1",
            "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0",
        }
        options = ("--set", "spec.objective.fixed={functions: 2, memory: 1024Mi}",
                   "--set", "spec.aggregation.layers=[1, 2]",
                   "--set", "spec.aggregation.serverMemory=512Mi",
                   "--set", "spec.profile.trainingSamples=240",
                   "--set", "spec.training.epochs=2",
                   "--platform", bench.platform(milliCpuPerGiB=600))
        digests = []
        for _ in range(2):
            run = bench.start(*options, environment=environment).wait(timeout=400)
            reports = sorted(self.reports.iterdir())
            self.assertEqual(reports, [], reports and reports[0].read_text()[:6000])
            digests.append(run.digest())
        self.assertEqual(digests[0], digests[1])
