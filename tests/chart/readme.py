#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of values in the chart's README.md, and images.txt, made from values.yaml.

    tests/chart/readme.py            print what is not as it would be written; 1 if anything is
    tests/chart/readme.py --write    write both
"""
import json
import re
import sys

import yaml

from chart_support import CHART, ROOT

BEGIN = "<!-- values: written by tests/chart/readme.py --write -->"
END = "<!-- end of values -->"
KEY = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]\w*):(?P<rest>.*)$")


def described(text):
    """[(dotted name, description)] in order: every leaf, and what is described as a whole."""
    rows, stack, said, skipped = [], [], None, None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.strip().startswith("# --"):
            said = line.strip()[4:].strip()
            continue
        match = KEY.match(line)
        if not match:
            said = None
            continue
        indent = len(match["indent"])
        if skipped is not None and indent > skipped:
            continue
        skipped = None
        stack = [each for each in stack if each[0] < indent]
        name = ".".join([key for _, key in stack] + [match["key"]])
        after = KEY.match(lines[number + 1]) if number + 1 < len(lines) else None
        nested = not match["rest"].strip() and (
            after is None or len(after["indent"]) > indent)
        # The comment above the first of several keys is that key's own.
        if said is not None or not nested:
            rows.append((name, said or ""))
            skipped = indent if nested else None
        if nested:
            stack.append((indent, match["key"]))
        said = None
    return rows


def value_of(values, name):
    for key in name.split("."):
        values = values[key]
    return values


def table():
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    lines = ["| value | default | what it is |", "|---|---|---|"]
    for name, said in described(text):
        default = json.dumps(value_of(values, name), ensure_ascii=False)
        shown = f"`{default}`" if len(default) <= 60 else "see values.yaml"
        lines.append(f"| `{name}` | {shown} | {said} |")
    return "\n".join(lines)


def readme():
    text = (CHART / "README.md").read_text()
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1]


def images():
    """What the defaults pull, for registries that are filled by hand."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    named = [values[each] for each in ("image", "workerImage", "serverImage")]
    return "".join(f"{each['registry']}/{each['repository']}:{chart['appVersion']}\n"
                   for each in named)


def main():
    wanted = {CHART / "README.md": readme(), CHART / "images.txt": images()}
    stale = [file for file, text in wanted.items() if not file.exists() or file.read_text() != text]
    for file in stale:
        if "--write" in sys.argv:
            file.write_text(wanted[file])
        else:
            print(f"{file.relative_to(ROOT)} is not what values.yaml says; "
                  "run tests/chart/readme.py --write")
    return 1 if stale and "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
