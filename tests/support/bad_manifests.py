# SPDX-License-Identifier: Apache-2.0
"""The manifests of tests/data/bad_manifests.yaml, which says what its fields are."""
import collections
import pathlib

import yaml

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"

# What `lambdadnn` prints of NAME.yaml; the lines of an API server that says something else.
BadManifest = collections.namedtuple("BadManifest", "text error server")


def manifest(case):
    if "text" in case:
        return case["text"]
    good = (DATA / "good/minimal.yaml").read_text()
    if "add" in case:
        place = case["after"] + "\n" if "after" in case else good
        replaced, by = place, place + case["add"].rstrip("\n") + "\n"
    else:
        replaced, by = case["replace"], case.get("by", "")
    assert good.count(replaced) == 1, replaced
    return good.replace(replaced, by)


def lines(value):
    return [value] if isinstance(value, str) else value or []


def bad_manifests():
    """By name."""
    cases = yaml.safe_load((DATA / "bad_manifests.yaml").read_text())
    return {name: BadManifest(
        manifest(case),
        "".join(f"error: {name}.yaml:{line}\n" for line in lines(case["error"])),
        lines(case.get("server"))) for name, case in cases.items()}


def write_bad_manifests(folder):
    """Each as NAME.yaml into the folder, which is made."""
    folder.mkdir()
    made = bad_manifests()
    for name, bad in made.items():
        (folder / f"{name}.yaml").write_text(bad.text)
    return made
