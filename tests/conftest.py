# SPDX-License-Identifier: Apache-2.0
"""Options of the Python tests, and how what they skip is told. docs/development.md says how they are run."""
import pathlib

from options import OPTIONS

ROOT = pathlib.Path(__file__).resolve().parents[1]


def folder(text):
    return pathlib.Path(text).resolve()


def program(text):
    name, path = text.split("=", 1)
    return name, path


def pytest_addoption(parser):
    group = parser.getgroup("lambdadnn")
    group.addoption("--bin", type=folder, default=ROOT / "build/release/bin", metavar="FOLDER",
                    help="of the programs under test (build/release/bin)")
    group.addoption("--sanitized-bin", type=folder, default=ROOT / "build/asan-torch/bin", metavar="FOLDER",
                    help="of the functions built with the address sanitizer (build/asan-torch/bin)")
    group.addoption("--preset", default="release", metavar="PRESET",
                    help="whose build the images and the operator on a cluster are of (release); for the "
                         "chart on a cluster also a folder of images")
    group.addoption("--compile-inside", action="store_true",
                    help="images compile in their Dockerfiles, as docker build does")
    group.addoption("--platform", default="", metavar="PLATFORM",
                    help="of the images under test: linux/amd64 or linux/arm64 (this machine's)")
    group.addoption("--program", type=program, action="append", default=[], metavar="IMAGE=PROGRAM",
                    help="a program that an image has, whose libraries are looked at")
    group.addoption("--oldest", action="store_true",
                    help="the oldest Kubernetes that docs/operations.md names")
    group.addoption("--share", default="1/1", metavar="I/N",
                    help="of long tables each N-th row, from the I-th on; turn/N: from the one on whose "
                         "turn it is for this commit")
    group.addoption("--clusters", type=int, default=1, metavar="N",
                    help="so many rows of a table at once, each in a cluster of its own")
    group.addoption("--only", default="", metavar="TEXT", help="rows of a table that hold this text")
    group.addoption("--record", action="store_true", help="write the list of what a table must hold anew")
    group.addoption("--kills", type=int, default=8, metavar="N",
                    help="of processes at random moments, at least twice as many as there are kinds (8)")
    group.addoption("--seed", type=int, default=1, metavar="N", help="of what is drawn (1)")
    group.addoption("--cycles", type=int, default=10, metavar="N", help="of suspending a job (10)")
    group.addoption("--jobs", type=int, default=60, metavar="N", help="at once, where there are many (60)")
    group.addoption("--finished", type=int, default=0, metavar="N", help="jobs that others run beside (0)")
    group.addoption("--seconds", type=int, default=10, metavar="N", help="that an operator is watched at rest (10)")
    group.addoption("--runs", type=int, default=5, metavar="N", help="that a median is of (5)")
    group.addoption("--run-folder", type=folder, default=None, metavar="FOLDER",
                    help="of `lambdadnn run`, whose report page is looked at")


def pytest_configure(config):
    vars(OPTIONS).update(vars(config.option))


def pytest_terminal_summary(terminalreporter):
    """A line for each, which tests/support/skipped_tests.py reads."""
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2].removeprefix("Skipped: ").replace("\n", " ")
        terminalreporter.write_line(f"left out: {report.nodeid.split('::', 1)[-1]}: {reason}")
