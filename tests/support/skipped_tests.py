#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests of one ctest run left out, and why, one line each; ctest calls them passed.

    skipped_tests.py BUILD_FOLDER CTEST_OUTPUT

Reads Testing/Temporary/LastTest.log of the build folder for GoogleTest's and pytest's skips, and
what ctest printed for the programs that it says were skipped.
"""
import pathlib
import re
import sys


def programs(log):
    """Name and output of every program."""
    pattern = re.compile(r"^\d+/\d+ Test: (\S+)\n.*?^Output:\n-+\n(.*?)<end of output>$",
                         re.DOTALL | re.MULTILINE)
    return pattern.findall(log)


def google_test(output):
    """`FILE:LINE: Skipped`, the reason, a blank line, `[  SKIPPED ] NAME (N ms)`. The names are
    listed once more at the end, without times."""
    reason = ""
    for line in output.splitlines():
        ended = re.match(r"\[  SKIPPED \] (\S+) \(\d+ ms\)", line)
        if ended:
            yield ended[1], reason.strip()
        if re.match(r"\[ RUN      \]", line) or re.search(r":\d+: Skipped$", line):
            reason = ""
        else:
            reason += " " + line


def python(output):
    """`left out: CLASS::TEST: the reason`, of which tests/conftest.py writes one for each."""
    return re.findall(r"^left out: (.+?): (.*)$", output, re.MULTILINE)


def left_out(log, ctest_output):
    whole = set(re.findall(r"Test +#\d+: (\S+) .*\*\*\*Skipped", ctest_output))
    for program, output in programs(log):
        if program in whole:
            said = output.strip().splitlines()
            yield f"{program}: {said[-1].strip() if said else 'it did not say why'}"
            continue
        for name, reason in [*google_test(output), *python(output)]:
            yield f"{program}: {name}: {reason or 'it did not say why'}"


if __name__ == "__main__":
    folder, printed = map(pathlib.Path, sys.argv[1:])
    last = (folder / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    # In one order, whatever ran beside what.
    for sentence in sorted(left_out(last, printed.read_text(errors="replace"))):
        print(sentence)
