# SPDX-License-Identifier: Apache-2.0
"""tests/servers/versions is what people read and `cluster.sh status` prints; the pins of the folders
beside it are what is built. Holds one to the other."""
import pathlib
import re
import unittest

SERVERS = pathlib.Path(__file__).resolve().parents[2] / "tests/servers"


def table():
    rows = [line.split() for line in (SERVERS / "versions").read_text().splitlines()
            if line and not line.startswith("#")]
    return {name: (module, version) for name, module, version in rows}


class Versions(unittest.TestCase):
    def test_every_module_of_others_is_in_the_table(self):
        folders = {file.parent.name for file in SERVERS.glob("*/go.mod")
                   if (file.parent / "go.sum").exists()}
        folders |= {file.parent.name for file in SERVERS.glob("*/source")}
        self.assertEqual(set(table()), folders)

    def test_each_version_is_the_one_that_is_pinned(self):
        for name, (module, version) in table().items():
            if (SERVERS / name / "source").exists():
                self.assertEqual((SERVERS / name / "source").read_text().split(), [module, version])
                continue
            text = (SERVERS / name / "go.mod").read_text()
            pinned = re.findall(rf"(?m)^(?:require )?\s*{re.escape(module)} (\S+)", text)
            self.assertEqual([version], pinned, name)

    def test_kubernetes_says_the_version_that_it_is(self):
        for name in ("kubernetes", "kubernetes-node", "kube-apiserver-oldest"):
            flags = (SERVERS / name / "ldflags").read_text()
            said = set(re.findall(r"gitVersion=(\S+)", flags))
            self.assertEqual({table()[name][1]}, said, name)

    def test_nodes_are_of_the_control_planes_version(self):
        self.assertEqual(table()["kubernetes"], table()["kubernetes-node"])
