# SPDX-License-Identifier: Apache-2.0
"""What linters find in the sources that no compiler reads: ruff in Python (pyproject.toml says which of its
rules), shellcheck in scripts."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINNED = ROOT / "tests/tidy/ruff.txt"


def ruff():
    """Where scripts/setup.sh puts the pinned one."""
    version = re.search(r"^ruff==([\d.]+)", PINNED.read_text(), re.MULTILINE)[1]
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache, f"lambdadnn/ruff-{version}/bin/ruff")


def findings(text, pattern):
    for line in text.splitlines():
        if found := re.match(pattern, line):
            yield found[1], int(found[2]), found[3]


def check_python(tree):
    program = ruff()
    if not program.exists():
        yield program.parents[1].name, 0, "is not installed; run scripts/setup.sh"
        return
    names = tree.sources(".py")
    if not names:
        return
    done = subprocess.run([program, "check", "--no-cache", "--output-format", "concise", "--config",
                           ROOT / "pyproject.toml", *names], cwd=tree.root, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        yield "pyproject.toml", 0, f"ruff could not check: {done.stderr.strip()[:500]}"
    yield from findings(done.stdout, r"(\S+?):(\d+):\d+: (.*)")


def is_shell(tree, name):
    suffix = pathlib.Path(name).suffix
    return suffix == ".sh" or (
        not suffix and re.match(r"#!.*\b(ba|da)?sh\b", tree.text(name).split("\n", 1)[0]) is not None)


def check_shell(tree):
    program = shutil.which("shellcheck")
    if program is None:
        yield "shellcheck", 0, "is not installed; run scripts/setup.sh"
        return

    def check(name):
        return subprocess.run([program, "--format", "gcc", name], cwd=tree.root, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(check, [name for name in tree.files if is_shell(tree, name)]):
            yield from findings(done.stdout, r"(\S+?):(\d+):\d+: (.*)")
            if done.returncode not in (0, 1):
                yield "shellcheck", 0, f"could not check: {done.stderr.strip()[:500]}"
