#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on every C++ source by itself, without the batches and precompiled headers of the build:
what compiles here includes all that it uses. .clang-tidy says which checks.

    tests/tidy/clang_tidy.py [--changed] [--seconds N] [FILE...]

What passed before with the same content, headers of ours, checks and packages is not checked again. With
--changed only what the last commit or the working tree has changed is checked. With --seconds no file is
begun after N seconds; the last line says how many were not reached. Exit code 1 when something was found.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import remembered  # noqa: E402

PROGRAM = "clang-tidy-19"
FLAGS = ["-std=c++20", "-I.", "-w", '-DLAMBDADNN_VERSION="0"', '-DLAMBDADNN_MODULE_FOLDER="lib"']
# clang does not compile Debian's LibTorch.
NOT_FOR_CLANG = ["torch", "ATen", "c10"]
ARROW = subprocess.run(["bash", ROOT / "scripts/arrow.sh", "path"], capture_output=True, text=True).stdout.strip()
if pathlib.Path(ARROW, "version").is_file():
    FLAGS += ["-isystem", f"{ARROW}/include"]
else:
    NOT_FOR_CLANG += ["arrow", "parquet"]
NOT_FOR_CLANG = re.compile(rf"^#include [<\"]({'|'.join(NOT_FOR_CLANG)})/", re.MULTILINE)


@functools.cache
def text(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


@functools.cache
def includes(name):
    return [header for header in re.findall(r'^#include "([^"]+)"', text(name), re.MULTILINE)
            if (ROOT / header).is_file()]


def closure(name):
    """The file and all headers of ours that it sees."""
    have, todo = set(), [name]
    while todo:
        one = todo.pop()
        if one not in have:
            have.add(one)
            todo += includes(one)
    return have


def key(name, installed):
    content = {one: text(one) for one in sorted(closure(name))}
    return "clang-tidy-" + remembered.digest(
        json.dumps([installed, FLAGS, text(".clang-tidy"), name, content]).encode())


def git(*arguments):
    return remembered.output("git", *arguments).decode().split("\n")


def needs_build(name):
    """It includes a file that the build makes."""
    return any(not (ROOT / header).is_file() for header in re.findall(r'^#include "([^"]+)"', text(name), re.MULTILINE))


def sources(changed):
    """All; or, `changed`, those that the last commit or the working tree has changed."""
    names = set(git("ls-files", "-co", "--exclude-standard", "--", "*.cc"))
    if changed:
        names &= {*git("diff", "--name-only", "HEAD"), *git("diff", "--name-only", "HEAD~1", "HEAD"),
                  *git("ls-files", "-o", "--exclude-standard")}
    return [name for name in sorted(names) if (ROOT / name).is_file() and not needs_build(name)
            and not any(NOT_FOR_CLANG.search(text(one)) for one in closure(name))]


def check(name):
    """What was found, and the seconds that it took."""
    begin = time.monotonic()
    done = subprocess.run([PROGRAM, "--quiet", name, "--", *FLAGS], cwd=ROOT, capture_output=True, text=True)
    said = "\n".join(line for line in (done.stdout + (done.stderr if done.returncode else "")).split("\n")
                     if not re.search(r"warnings? (generated|treated)|^Suppressed|^Use -header-filter", line))
    return (said.strip() or f"{PROGRAM} ended with {done.returncode}") if done.returncode else "", \
        time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if shutil.which(PROGRAM) is None:
        print(f"{PROGRAM} is not installed; run scripts/setup.sh")
        return 1
    # What headers of the system say follows from the packages.
    installed = remembered.digest(remembered.output(PROGRAM, "--version") + remembered.output("dpkg-query", "-W"))
    names = options.files or sources(options.changed)
    keys = {name: key(name, installed) for name in names}
    begin = time.monotonic()
    wanted = [name for name in names if remembered.find(keys[name]) is None]
    bad, checked = [], 0

    def run(name):
        """None: it was not begun."""
        return check(name) if time.monotonic() - begin < options.seconds else None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, result in zip(wanted, pool.map(run, wanted), strict=True):
            if result is None:
                continue
            checked += 1
            said, seconds = result
            if said:
                bad.append(name)
                print(said, flush=True)
            else:
                remembered.keep(keys[name], name, round(seconds, 1))
    print(f"clang-tidy: {checked - len(bad)} files passed, {len(bad)} failed, {len(names) - len(wanted)} had passed "
          f"before, {len(wanted) - checked} not reached")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
