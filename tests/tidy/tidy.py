#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rules of this repository that a compiler does not: who may include whom and must, names of
licences, formatting, sizes, what is left to do, paths and links in documents, what linters find.

    tests/tidy/tidy.py [--cli build/release/bin/lambdadnn]

Prints one line a finding and ends with the number of findings; exit code 1 when there is one.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

import documents
import linters

# Folder -> folders whose headers its files may include, beside its own. ARCHITECTURE.md draws it.
ARROWS = {
    "common/base": [],
    "common/json": ["common/base"],
    "common/plan": ["common/base"],
    "common/plan_json": ["common/base", "common/json", "common/plan"],
    "common/telemetry": ["common/base", "common/json"],
    "common/protocol": ["common/base", "common/json", "common/plan", "common/plan_json"],
    "common/http": ["common/base", "common/json"],
    "common/tracing": ["common/base", "common/json", "common/http", "common/telemetry"],
    "common/objectstore": ["common/base", "common/http"],
    "common/checkpoint_index": ["common/base", "common/json", "common/plan", "common/plan_json",
                                "common/protocol", "common/objectstore"],
    "operator/planner": ["common/base", "common/plan"],
    "operator/api": ["common/base", "common/json", "common/plan", "common/plan_json"],
    "operator/kube": ["common/base", "common/json", "common/http"],
    "operator/kinds": ["common/base", "common/json", "operator/api", "operator/kube"],
    "operator/cluster_view": ["common/base", "common/json", "common/plan", "operator/api"],
    "operator/resources": ["common/base", "common/json", "common/plan", "common/protocol",
                           "operator/api", "operator/cluster_view"],
    "operator/backends": ["operator/api", "operator/resources", "operator/cluster_view", "common/base",
                          "common/json", "common/http", "common/plan", "common/protocol",
                          "common/objectstore", "common/telemetry", "operator/kube"],
    "operator/controller": ["common", "operator/api", "operator/planner", "operator/resources",
                            "operator/backends", "operator/cluster_view", "operator/kube",
                            "operator/kinds"],
    "operator/server": ["common", "operator/api", "operator/backends", "operator/cluster_view", "operator/controller",
                        "operator/kinds", "operator/kube", "operator/resources",
                        "trainer_function/data"],
    "operator/cli": ["common", "operator", "trainer_function/data"],
    "operator/cmd": ["common", "operator"],
    "trainer_function/model": ["common/base", "common/plan", "common/protocol"],
    "trainer_function/data": ["common/base", "common/plan", "common/protocol", "common/json",
                              "common/objectstore", "trainer_function/model"],
    "trainer_function/peer": ["common/base", "common/plan", "common/protocol"],
    "trainer_function/transport": ["common/base", "common/plan", "common/protocol",
                                   "common/objectstore", "trainer_function/peer"],
    "trainer_function/collective": ["common/base", "common/plan", "common/protocol",
                                    "trainer_function/transport"],
    "trainer_function/checkpoint": ["common/base", "common/json", "common/plan", "common/protocol",
                                    "common/objectstore", "common/checkpoint_index",
                                    "trainer_function/transport"],
    "trainer_function/session": ["common/base", "common/plan", "common/protocol",
                                 "trainer_function/transport", "trainer_function/collective",
                                 "trainer_function/checkpoint"],
    "trainer_function/parameter_server": ["common/base", "common/plan", "common/protocol",
                                          "common/objectstore", "trainer_function/transport",
                                          "trainer_function/collective",
                                          "trainer_function/checkpoint",
                                          "trainer_function/session"],
    "trainer_function/training": ["common/base", "common/json", "common/plan", "common/protocol",
                                  "common/objectstore", "trainer_function/transport",
                                  "trainer_function/collective", "trainer_function/session",
                                  "trainer_function/parameter_server",
                                  "trainer_function/checkpoint", "trainer_function/model",
                                  "trainer_function/data"],
    "trainer_function/server": ["common", "trainer_function"],
    "trainer_function/cmd": ["common", "trainer_function"],
}
PROGRAM_FOLDERS = ("common", "operator", "trainer_function")
# Layers of a folder, and which of them may include which, beside themselves. "" = the files of the
# folder itself.
LAYERS = {
    "operator/backends": {
        "": [],
        "kubernetes": [""],
        "knative": ["", "kubernetes"],
        "openfaas": ["", "kubernetes"],
        "local": [""],
    },
    "operator/controller": {
        "planning": [],
        "store": [],
        "admission": ["", "planning"],
        "": ["admission", "store"],
        "observe": ["", "planning", "admission", "store"],
        "decide": ["", "planning", "admission", "store", "observe"],
        "apply": ["", "planning", "admission", "store", "observe", "decide"],
        "loop": ["", "planning", "admission", "store", "observe", "decide", "apply"],
    },
}

# Libraries that only these files may include; no header may.
WRAPPED = {
    "arrow/": "trainer_function/data/parquet/",
    "parquet/": "trainer_function/data/parquet/",
    "torch/": "trainer_function/model/",
    "ATen/": "trainer_function/model/",
    "cpprest/": "common/http/",
    "yaml-cpp/": "common/json/yaml",
    "spdlog/": "common/telemetry/",
}
# What only common/base may use: time, chance, threads and the environment are interfaces elsewhere.
BANNED = re.compile(
    r"std::this_thread::sleep|std::(jthread|thread)\b(?!::)|steady_clock::now|system_clock::now|"
    r"std::random_device|\bgetenv\(|\busleep\(|\bnanosleep\(|std::condition_variable")
BANNED_EXEMPT = ("common/base/",)
# It throws on text that is not UTF-8, which logs and stores may say.
STRICT_DUMP = re.compile(r"(?:\.|->)dump\(")
DUMP_JSON = "common/json/dump_json.h"
TYPE_DEFINITION = re.compile(r"(?:struct|class|enum class) (\w+)(?: final)?(?: :| ?\{)")
MAX_LINES = 600
REPORT_LINES = 400
SOURCE_SUFFIXES = {".h", ".cc", ".py", ".sh", ".cmake"}
TEXT_SUFFIXES = {".md", ".yaml", ".yml", ".txt", ".json"}  # .txt: CMakeLists.txt too
COMMENT_MARK = {".h": "//", ".cc": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".yaml": "#"}


class Tree:
    """The tracked and new files of a checkout."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, capture_output=True, text=True, check=True).stdout.split("\n")
        self.files = sorted(f for f in listed if f and (self.root / f).is_file())

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def sources(self, *suffixes):
        return [f for f in self.files if pathlib.Path(f).suffix in suffixes]


def folder_of(name):
    """The folder of ARROWS that a source lies in (backends/local belongs to backends)."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and parts[0] in PROGRAM_FOLDERS else None


def may_include(source_folder, target):
    allowed = [source_folder] + ARROWS[source_folder]
    return any(target == a or target.startswith(a + "/") for a in allowed)


def check_arrows(tree):
    for name in tree.sources(".h", ".cc"):
        folder = folder_of(name)
        if folder is None:
            continue
        if folder not in ARROWS:
            yield name, 0, f"folder {folder} is not in the table of arrows (tests/tidy/tidy.py)"
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            match = re.match(r'\s*#include\s+([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            path = match.group(2)
            if match.group(1) == '"' and path.split("/")[0] in PROGRAM_FOLDERS:
                if not may_include(folder, "/".join(path.split("/")[:2])):
                    yield name, number, f"{folder} must not include {path}"
            for library, home in WRAPPED.items():
                if path.startswith(library) and (name.endswith(".h") or not name.startswith(home)):
                    yield name, number, f"{library}… may be included by .cc files of {home} only"


def layer_of(folder, path):
    """The layer of a folder that a file lies in; "" = none."""
    parts = path[len(folder) + 1:].split("/")
    return parts[0] if len(parts) > 1 else ""


def check_layers(tree):
    for name in tree.sources(".h", ".cc"):
        folder = folder_of(name)
        if folder not in LAYERS:
            continue
        layer = layer_of(folder, name)
        if layer not in LAYERS[folder]:
            yield name, 0, f"{layer} is no layer of {folder} (tests/tidy/tidy.py)"
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            match = re.match(r'#include "([^"]+)"', line)
            if not match or not match.group(1).startswith(folder + "/"):
                continue
            target = layer_of(folder, match.group(1))
            if target not in [layer] + LAYERS[folder][layer]:
                yield name, number, f"{folder}: {layer or 'its own files'} must not include {target}"


def check_cmake_links(tree):
    """The targets that a folder's CMakeLists.txt links must be those it may include."""
    owner = {}
    for name in tree.files:
        if name.endswith("CMakeLists.txt") and name.split("/")[0] in PROGRAM_FOLDERS:
            for target in re.findall(r"lambdadnn_library\((\w+)", tree.text(name)):
                owner[target] = "/".join(name.split("/")[:2])
    for name in tree.files:
        if not name.endswith("CMakeLists.txt"):
            continue
        folder = folder_of(name)
        if folder not in ARROWS:
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            for target in re.findall(r"\blambdadnn_\w+", line.split("#")[0]):
                home = owner.get(target)
                if home and not may_include(folder, home):
                    yield name, number, f"{folder} must not link {target}"


def check_licences(tree):
    for name in tree.files:
        suffix = pathlib.Path(name).suffix
        if name.endswith("CMakeLists.txt"):
            suffix = ".cmake"
        mark = COMMENT_MARK.get(suffix)
        if mark is None or name.startswith(("tests/data/", "tests/fuzz/corpus/")):
            continue
        head = tree.text(name).split("\n")[:2]
        if not any(line.startswith(f"{mark} SPDX-License-Identifier: Apache-2.0") for line in head):
            yield name, 1, "the first lines lack the SPDX-License-Identifier line"


def check_banned(tree):
    for name in tree.sources(".h", ".cc"):
        if name.split("/")[0] not in PROGRAM_FOLDERS or name.startswith(BANNED_EXEMPT):
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            match = BANNED.search(line.split("//")[0])
            if match:
                yield name, number, f"{match.group(0)} outside common/base; use Runtime"
            if name != DUMP_JSON and STRICT_DUMP.search(line.split("//")[0]):
                yield name, number, f"dump() throws on what is not UTF-8; use DumpJson ({DUMP_JSON})"


def check_header_order(tree):
    """x.cc includes x.h first, which proves that x.h needs nothing before it."""
    have = set(tree.files)
    for name in tree.sources(".cc"):
        header = name[:-3] + ".h"
        if name.split("/")[0] not in PROGRAM_FOLDERS or header not in have:
            continue
        first = re.search(r'^#include\s+[<"]([^>"]+)[>"]', tree.text(name), re.MULTILINE)
        if first and first.group(1) != header:
            yield name, 1, f"the first include must be {header}"


def check_types(tree):
    """Two types of one name in a program that links both are undefined behaviour without a diagnostic."""
    first = {}
    for name in tree.sources(".h", ".cc"):
        unnamed = False
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            unnamed = (unnamed or line == "namespace {") and line != "}  // namespace"
            found = TYPE_DEFINITION.match(line)
            if found is None or unnamed:
                continue
            other = first.setdefault(found[1], name)
            if other != name:
                yield name, number, f"{found[1]} is defined in {other} as well; rename one of them"


def check_planted(tree):
    """Only the simulator's build has defects planted in it; the sources of programs know of none."""
    for name in tree.sources(".h", ".cc"):
        if name.startswith("tests/simulation/"):
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            if re.search(r"\bPlanted\(|PlantedBug|planted_bug", line):
                yield name, number, "asks for a planted defect; make it a patch of tests/simulation/planted"


def check_tests_are_marked(tree):
    """What a test leaves running is found by the variable that lambdadnn_add_test gives it."""
    for name in (name for name in tree.files if name.endswith("CMakeLists.txt")):
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            if re.match(r"\s*add_test\(", line):
                yield name, number, "adds a test by add_test; use lambdadnn_add_test"


BACKENDS = "operator/api/backend_kind.cc"


def check_backend_names(tree):
    """A backend is told by its kind; what its name stands for is written down once."""
    if BACKENDS not in tree.files:
        return
    names = "|".join(re.findall(r'\{BackendKind::k\w+,\s*"(\w+)"', tree.text(BACKENDS)))
    text = rf'(?:std::string(?:_view)?[({{]\s*)?"(?:{names})"(?:sv?\b)?[)}}]?'
    compared = re.compile(rf"[=!]=\s*{text}|{text}\s*[=!]=|\b(?:compare|starts_with)\({text}")
    for name in tree.sources(".h", ".cc"):
        if name.split("/")[0] not in PROGRAM_FOLDERS:
            continue
        lines = re.sub(r"//.*", "", tree.text(name))
        for match in compared.finditer(lines):
            number = lines[:match.start()].count("\n") + 1
            yield name, number, f"compares a backend's name; ask FindBackend ({BACKENDS}) for its kind"


def check_format(tree):
    program = shutil.which("clang-format-19")
    if program is None:
        yield "clang-format-19", 0, "is not installed; run scripts/setup.sh"
        return
    names = tree.sources(".h", ".cc")
    if not names:
        return
    result = subprocess.run([program, "--dry-run", "-Werror", *names], cwd=tree.root,
                            capture_output=True, text=True)
    for name in sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", result.stderr, re.MULTILINE))):
        yield name, 0, "is not formatted; run clang-format-19 -i on it"


def check_sizes(tree):
    for name in tree.sources(".h", ".cc", ".py", ".sh"):
        lines = tree.text(name).count("\n")
        if lines > MAX_LINES:
            yield name, 0, f"has {lines} lines; no file may have more than {MAX_LINES}"


def check_todo(tree):
    limits = tree.text("docs/limits.md") if "docs/limits.md" in tree.files else ""
    for name in tree.sources(*SOURCE_SUFFIXES, *TEXT_SUFFIXES):
        if name.startswith(("tests/tidy/", "tests/data/", "tests/fuzz/corpus/")):
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            match = re.search(r"\b(TODO|FIXME|XXX)\b:?\s*(.*)", line)
            if match and match.group(2).strip() not in limits:
                yield name, number, "a TODO needs its sentence in docs/limits.md"


def check_paths(tree):
    """No path of one developer's machine."""
    pattern = re.compile(r"(?<![\w.])/(home|Users|work|farm|root)/\w+")
    for name in tree.files:
        if pathlib.Path(name).suffix not in SOURCE_SUFFIXES | TEXT_SUFFIXES:
            continue
        if name.startswith(("tests/data/", "tests/tidy/")):
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            if pattern.search(line):
                yield name, number, "names a path of one machine"


def check_document_links(tree):
    for name in tree.sources(".md"):
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            for target in re.findall(r"\]\(([^)#\s]+)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                if not (tree.root / pathlib.Path(name).parent / target).exists():
                    yield name, number, f"links to {target}, which does not exist"


def report_sizes(tree):
    """Not a failure: the aim is that nine files in ten have at most 400 lines."""
    counts = {n: tree.text(n).count("\n") for n in tree.sources(".cc")
              if n.split("/")[0] in PROGRAM_FOLDERS}
    if not counts:
        return
    ordered = sorted(counts.values())
    print(f"sizes: {len(ordered)} .cc files, median {ordered[len(ordered) // 2]} lines, "
          f"largest {ordered[-1]}")
    for name, lines in sorted(counts.items()):
        if lines > REPORT_LINES:
            print(f"sizes: {name} has {lines} lines (aim: {REPORT_LINES})")


def findings(tree, cli=None):
    for check in (check_arrows, check_layers, check_cmake_links, check_licences, check_banned,
                  check_header_order, check_types, check_planted,
                  check_tests_are_marked, check_backend_names, check_format, check_sizes,
                  check_todo, check_paths, check_document_links,
                  documents.check_paths_exist, documents.check_anchors, documents.check_scripts,
                  linters.check_python, linters.check_shell):
        yield from check(tree)
    yield from documents.check_commands(tree, cli)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli", help="the lambdadnn program, to check the commands in documents")
    arguments = parser.parse_args()
    tree = Tree(".")
    report_sizes(tree)
    count = 0
    for name, number, message in findings(tree, arguments.cli):
        count += 1
        print(f"{name}:{number}: {message}" if number else f"{name}: {message}")
    print(f"{count} findings in {len(tree.files)} files")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
