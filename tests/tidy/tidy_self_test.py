#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one violation of each rule in a small tree and asserts that tidy finds it, and only it."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tidy  # noqa: E402

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


class TidyFindsPlantedViolations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write(".clang-format", "BasedOnStyle: Google\nColumnLimit: 100\n")
        self.write("common/base/x.h", LICENCE + "#pragma once\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def messages(self):
        return [f"{n}: {m}" for n, _, m in tidy.findings(tidy.Tree(self.root))]

    def expect(self, part):
        messages = self.messages()
        self.assertEqual(len(messages), 1, messages)
        self.assertIn(part, messages[0])

    def test_a_clean_tree_has_no_findings(self):
        self.assertEqual(self.messages(), [])

    def test_forbidden_include(self):
        self.write("operator/planner/p.cc", LICENCE + '#include "common/json/json_reader.h"\n')
        self.expect("operator/planner must not include")

    def test_operator_never_includes_the_function(self):
        self.write("operator/cli/c.cc", LICENCE + '#include "trainer_function/data/dataset.h"\n')
        self.expect("operator/cli must not include")

    def test_forbidden_link(self):
        mark = "# SPDX-License-Identifier: Apache-2.0\n"
        self.write("common/json/CMakeLists.txt", mark + "lambdadnn_library(lambdadnn_json)\n")
        self.write("operator/planner/CMakeLists.txt",
                   mark + "lambdadnn_library(lambdadnn_planner DEPS lambdadnn_json)\n")
        self.expect("must not link lambdadnn_json")

    def test_wrapped_library_in_a_header(self):
        self.write("trainer_function/model/m.h",
                   LICENCE + "#pragma once\n#include <torch/torch.h>\n")
        self.expect("torch/")

    def test_missing_licence(self):
        self.write("common/base/y.cc", "int y;\n")
        self.expect("SPDX")

    def test_sleep_outside_base(self):
        self.write("operator/planner/s.cc",
                   LICENCE + "void F() { std::this_thread::sleep_for(x); }\n")
        self.expect("outside common/base")

    def test_own_header_must_come_first(self):
        self.write("common/base/x.cc", LICENCE + '#include <string>\n\n#include "common/base/x.h"\n')
        # The formatter, which would have moved it, complains as well.
        self.assertTrue(any("first include" in m for m in self.messages()))

    def test_simulated_source_that_is_not_listed(self):
        mark = "# SPDX-License-Identifier: Apache-2.0\n"
        self.write("tests/simulation/CMakeLists.txt", mark + "set(sources\n  common/base/a.cc)\n")
        include = '#include "common/base/planted_bug.h"\n\n'
        use = "bool b = Planted(PlantedBug::kNone);\n"
        self.write("common/base/a.cc", LICENCE + include + use)
        self.assertEqual(self.messages(), [])
        self.write("common/base/b.cc", LICENCE + include + use)
        self.expect("common/base/b.cc: depends on LAMBDADNN_SIMULATION and is not in tests")

    def test_listed_source_that_is_not_simulated(self):
        mark = "# SPDX-License-Identifier: Apache-2.0\n"
        self.write("tests/simulation/CMakeLists.txt", mark + "set(sources\n  common/base/a.cc)\n")
        self.expect("common/base/a.cc does not depend on LAMBDADNN_SIMULATION")

    def test_bad_format(self):
        self.write("common/base/z.cc", LICENCE + "int   z;\n")
        self.expect("not formatted")

    def test_too_long(self):
        self.write("common/base/long.cc", LICENCE + "int a;\n" * 601)
        self.expect("no file may have more")

    def test_todo_without_an_entry(self):
        self.write("common/base/t.cc", LICENCE + "// TO" + "DO: write it\n")
        self.expect("docs/limits.md")
        self.write("docs/limits.md", "* write it\n")
        self.assertEqual(self.messages(), [])

    def test_machine_path(self):
        self.write("docs/a.md", "see /ho" + "me/me/build\n")
        self.expect("path of one machine")

    def test_dead_link(self):
        self.write("docs/a.md", "[x](nowhere.md)\n")
        self.expect("does not exist")

    def test_dead_script(self):
        self.write("docs/a.md", "run scripts/nothing.sh\n")
        self.expect("scripts/nothing.sh")


if __name__ == "__main__":
    unittest.main()
