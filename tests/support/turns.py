# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is: what is too much for every commit's ci set is taken by parts, one commit after
the other."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def turn(parts):
    """Of this commit, by its number: one of 0 to parts - 1; 0 outside a checkout."""
    done = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True)
    return int(done.stdout or 0) % parts if done.returncode == 0 else 0


def share(text):
    """(0, 1) of "1/1", the I-th of N; "turn/N" is this commit's."""
    which, parts = text.split("/")
    return (turn(int(parts)) if which == "turn" else int(which) - 1), int(parts)
