# SPDX-License-Identifier: Apache-2.0
"""What of the chart can be held without helm: its documents, its schema, its alerts and dashboard
against the sources of the programs."""
import json
import re
import unittest

import yaml

import readme
from chart_support import CHART, ROOT, documented_rights, rights

# Of Prometheus itself, and of every process.
KNOWN_ELSEWHERE = {"up"}


def leaves(values, path=()):
    """Paths of values.yaml down to what is no mapping, or an empty one."""
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from leaves(value, path + (key,))
    else:
        yield path


class Chart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.values = yaml.safe_load((CHART / "values.yaml").read_text())
        cls.schema = json.loads((CHART / "values.schema.json").read_text())

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.schema["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def test_readme_and_list_of_images_are_made_from_the_values(self):
        self.assertEqual((CHART / "README.md").read_text(), readme.readme())
        self.assertEqual((CHART / "images.txt").read_text(), readme.images())

    def test_the_documented_rights_are_the_rules(self):
        sets = yaml.safe_load((CHART / "files/rbac-rules.yaml").read_text())["sets"]
        self.assertEqual(documented_rights(), {name: rights(rules) for name, rules in sets.items()})

    def test_every_value_is_in_the_readme(self):
        rows = {name for name, _ in readme.described((CHART / "values.yaml").read_text())}
        for path in leaves(self.values):
            names = {".".join(path[:count + 1]) for count in range(len(path))}
            self.assertTrue(rows & names, path)

    def test_the_schema_has_every_value_and_no_other(self):
        def compare(schema, values, path):
            schema = self.resolve(schema)
            if "properties" not in schema:
                return
            if path != ("global",):  # of parent charts, too
                self.assertIs(schema.get("additionalProperties"), False, path)
            for name, value in values.items():
                self.assertIn(name, schema["properties"], path)
                if isinstance(value, dict):
                    compare(schema["properties"][name], value, path + (name,))
            # What is optional in objects of Kubernetes or of the platform has no default here.
            if path[:1] != ("platform",) and path and "robe" not in path[-1] and \
                    path[-1] != "resources":
                self.assertEqual(set(schema["properties"]), set(values), path)
        compare(self.schema, self.values, ())

    def test_versions_are_those_of_the_project(self):
        version = re.search(r"project\(lambdadnn VERSION (\S+)",
                            (ROOT / "CMakeLists.txt").read_text()).group(1)
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))

    def test_the_crds_are_the_source_itself(self):
        self.assertEqual((CHART / "files/crds").resolve(), (ROOT / "crds").resolve())

    def metrics(self):
        """Names that the programs export."""
        text = "".join(file.read_text() for folder in ("operator", "common")
                       for file in (ROOT / folder).rglob("*.cc"))
        return set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', text))

    def test_alerts_and_dashboard_name_metrics_that_there_are(self):
        rules = yaml.safe_load((CHART / "files/alerts.yaml").read_text())
        asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
        dashboard = json.loads((CHART / "files/dashboard.json").read_text())
        asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        asked += [each["query"]["query"] for each in dashboard["templating"]["list"]
                  if each["type"] == "query"]
        exported, used = self.metrics(), set()
        for text in asked:
            outside = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", text)
            used |= set(re.findall(r"\b(?:lambdadnn|controller_runtime|rest_client|workqueue|"
                                   r"leader_election|process)_\w+", outside))
        self.assertGreater(len(used), 15)
        for name in used - KNOWN_ELSEWHERE:
            self.assertIn(re.sub("_bucket$", "", name), exported)

    def test_operations_has_every_alert(self):
        text = (ROOT / "docs/operations.md").read_text()
        rules = yaml.safe_load((CHART / "files/alerts.yaml").read_text())
        for group in rules["groups"]:
            for rule in group["rules"]:
                self.assertIn(f"`{rule['alert']}`", text)
