#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants defects in copies of the sources that they change, for the simulator's build (CMakeLists.txt).

    tests/simulation/plant.py COPIES PATCH...

Each source that a patch names is copied below the folder COPIES and changed there by all patches; a line
of a copy is told by the compiler as the line of the source, or of the patch, that it comes from. Copies
are written only when every patch applies, and only those that have become others.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What every copy begins with.
INCLUDE = '#include "tests/simulation/planted_bug.h"\n'
# Behind each line that comes from a patch, until the copies are written.
MARK = "\1"


def sources_of(text):
    """What the patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)


def marked(name, text):
    """The patch, with the name and number of each line behind those that it adds."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("+") and not line.startswith("+++ "):
            line += f"{MARK}{name}{MARK}{number}"
        lines.append(line + "\n")
    return "".join(lines)


def apply(name, text, folder):
    done = subprocess.run(["patch", "--strip=1", "--forward", "--batch", "--no-backup-if-mismatch",
                           "--reject-file=-", f"--directory={folder}"],
                          input=marked(name, text), capture_output=True, text=True)
    if done.returncode == 0:
        return
    sys.exit(f"{done.stdout}{done.stderr}error: {name} no longer applies to {', '.join(sources_of(text))}; make "
             "it anew (docs/development.md, Planted defects)")


def numbered(source, planted, original, to_root):
    """The copy's text: marks become #line directives."""
    lines = original.splitlines(keepends=True)
    text = [INCLUDE]
    at, expected = 0, None
    for line in planted.splitlines(keepends=True):
        if MARK in line:
            line, name, number = line.rstrip("\n").split(MARK)
            place = (name, int(number))
            line += "\n"
        else:
            while lines[at] != line:  # taken out by a patch
                at += 1
            at += 1
            place = (source, at)
        if place != expected:
            text.append(f'#line {place[1]} "{to_root}/{place[0]}"\n')
        text.append(line)
        expected = (place[0], place[1] + 1)
    return "".join(text)


def plant(root, copies, patches):
    """Texts by patch name; the sources are below `root`."""
    # As the compiler, which runs in the build folder, finds them; the same in every checkout.
    to_root = os.path.relpath(root)
    sources = sorted({source for text in patches.values() for source in sources_of(text)})
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            copy = pathlib.Path(folder, source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((root / source).read_bytes())
        for name, text in sorted(patches.items()):
            apply(name, text, folder)
        for source in sources:
            text = numbered(source, pathlib.Path(folder, source).read_text(), (root / source).read_text(), to_root)
            copy = copies / source
            if copy.is_file() and copy.read_text() == text:
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    patches = {}
    for name in sys.argv[2:]:
        path = pathlib.Path(name).resolve()
        patches[path.relative_to(ROOT).as_posix()] = path.read_text()
    plant(ROOT, pathlib.Path(sys.argv[1]), patches)


if __name__ == "__main__":
    main()
