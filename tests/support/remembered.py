# SPDX-License-Identifier: Apache-2.0
"""Which tests passed with the same inputs before, so that scripts/test.sh need not run them again.

A result is kept in ${XDG_CACHE_HOME:-~/.cache}/lambdadnn/results under a hash of all that the test
depends on: its command and environment, the program, what READS names (cmake/lambdadnn.cmake; for
a test that is no program of ours every file of the repository), the installed packages, the machine.
Only what passed whole is kept. Programs are the same in every checkout, and so are the hashes."""
import datetime
import functools
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEEP_DAYS = 30
# Of this file's own meaning: another number forgets everything.
VERSION = 1
# What tests may see of the caller's environment.
VARIABLES = ("LANG", "LC_ALL", "TZ", "PATH")
PREFIXES = ("LAMBDADNN_", "GTEST_", "OMP_", "OPENBLAS_")
# Names of one run, of which no test depends.
OF_A_RUN = ("LAMBDADNN_TEST_RUN", "LAMBDADNN_TEST")


def folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                        "lambdadnn/results")


def digest(data):
    return hashlib.sha256(data).hexdigest()


@functools.cache
def of_file(path):
    if os.path.islink(path):
        return "link " + os.readlink(path)
    with open(path, "rb") as file:
        return digest(file.read()) + (" x" if os.access(path, os.X_OK) else "")


def output(*command):
    """Of a tool; empty where it is not installed."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""


@functools.cache
def of_repository(below="."):
    """The tracked and new files below it. Empty: it is not there, or this is no checkout."""
    names = output("git", "ls-files", "-co", "--exclude-standard", "-z", "--", below).split(b"\0")
    lines = []
    for name in sorted(set(names) - {b""}):
        path = ROOT / os.fsdecode(name)
        if path.is_symlink() or path.is_file():
            lines.append(f"{os.fsdecode(name)} {of_file(path)}")
    return digest("\n".join(lines).encode()) if lines else ""


@functools.cache
def of_machine():
    """Processor, kernel, user, packages and Go."""
    processor = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith(("model name", "flags"))][:2]
    return digest(json.dumps([
        VERSION, platform.machine(), platform.release(), processor, os.cpu_count(), os.getuid(),
        digest(output("dpkg-query", "-W")), output("go", "env", "GOVERSION").decode(),
        {name: value for name, value in sorted(os.environ.items())
         if (name in VARIABLES or name.startswith(PREFIXES)) and name not in OF_A_RUN},
    ]).encode())


def properties(test):
    return {entry["name"]: entry["value"] for entry in test.get("properties", [])}


def environment(test):
    return dict(entry.split("=", 1) for entry in properties(test).get("ENVIRONMENT", []))


def key(test, build):
    """Of a test as `ctest --show-only=json-v1` describes it; None: it cannot be told what it reads."""
    build = pathlib.Path(build).resolve()
    command = test.get("command")
    if not command:
        return None
    files = [part for word in command for part in (word, word.split("=", 1)[-1])]
    inputs = sorted({(path, of_file(path)) for path in files if os.path.isfile(path)})
    variables = environment(test)
    if pathlib.Path(command[0]).parent == build / "bin":
        for name in filter(None, variables.get("LAMBDADNN_TEST_READS", "").split(":")):
            program = build / name
            inputs.append((name, of_file(program) if program.is_file() else of_repository(name)))
    else:
        inputs.append(("repository", of_repository()))
    if not all(value for _, value in inputs):
        return None
    definition = json.dumps([command, variables, inputs])
    # The same in every checkout.
    definition = definition.replace(str(build), "BUILD").replace(str(ROOT), "ROOT")
    return digest((of_machine() + definition).encode())


def find(test_key):
    """{"seconds", "date"} of when it passed, or None."""
    path = folder() / (test_key or "none")
    try:
        found = json.loads(path.read_text())
        os.utime(path)
        return found
    except (OSError, ValueError):
        return None


def keep(test_key, name, seconds):
    folder().mkdir(parents=True, exist_ok=True)
    path = folder() / test_key
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({"name": name, "seconds": seconds,
                               "date": datetime.date.today().isoformat()}))
    new.rename(path)


def forget_old():
    if not folder().is_dir():
        return
    for path in folder().iterdir():
        if path.stat().st_mtime < time.time() - KEEP_DAYS * 86400:
            path.unlink(missing_ok=True)


def _costs():
    return folder().parent / "test_seconds.json"


def known_seconds():
    """How long each test took last, in whatever checkout; by its name."""
    try:
        return json.loads(_costs().read_text())
    except (OSError, ValueError):
        return {}


def keep_seconds(seconds):
    _costs().parent.mkdir(parents=True, exist_ok=True)
    new = _costs().with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({**known_seconds(), **seconds}))
    new.rename(_costs())


def tell_ctest_seconds(build):
    """In a new build folder, so that ctest begins with the longest test: the last one to end runs alone."""
    file = pathlib.Path(build, "Testing/Temporary/CTestCostData.txt")
    if file.exists() or not known_seconds():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name} 1 {seconds}\n" for name, seconds in known_seconds().items()) + "---\n")
