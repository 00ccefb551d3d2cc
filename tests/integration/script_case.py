# SPDX-License-Identifier: Apache-2.0
"""What tests of the scripts of scripts/ begin with: a copy of these, beside stand-ins for what installs and
compiles."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
DONE, FAILED, USAGE, ENVIRONMENT = 0, 1, 2, 4


class ScriptTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lambdadnn-scripts-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name).resolve()
        self.calls = self.root / "calls"
        self.calls.write_text("")
        self.tools = self.root / "tools"
        self.tools.mkdir()
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        (self.root / "tests/support").mkdir(parents=True)
        for file in (ROOT / "tests/support").glob("*.py"):
            shutil.copy(file, self.root / "tests/support")

    def tool(self, name, body):
        """A stand-in that writes down how it was called."""
        path = self.tools / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>{self.calls}\n{body}\n')
        path.chmod(0o755)

    def run_script(self, name, *arguments, path=None, **environment):
        done = subprocess.run(
            ["bash", self.root / "scripts" / name, *arguments], capture_output=True, text=True,
            timeout=200, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": path or f"{self.tools}:{os.environ['PATH']}",
                 "XDG_CACHE_HOME": str(self.root / "cache"), **environment})
        self.said = done.stdout + done.stderr
        return done

    def one_error(self, done, code, *words):
        self.assertEqual(done.returncode, code, self.said)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, self.said)
        for word in words:
            self.assertIn(word, errors[0])
