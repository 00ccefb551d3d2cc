# SPDX-License-Identifier: Apache-2.0
"""Plants one violation of each rule in a small tree and asserts that tidy finds it, and only it."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import tidy

ROOT = pathlib.Path(__file__).resolve().parents[2]
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
MARK = "# SPDX-License-Identifier: Apache-2.0\n"


class SmallTree(unittest.TestCase):
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


class TidyFindsPlantedViolations(SmallTree):
    def test_a_clean_tree_has_no_findings(self):
        self.assertEqual(self.messages(), [])

    def test_forbidden_include(self):
        self.write("operator/planner/p.cc", LICENCE + '#include "common/json/json_reader.h"\n')
        self.expect("operator/planner must not include")

    def test_operator_never_includes_the_function(self):
        self.write("operator/cli/c.cc", LICENCE + '#include "trainer_function/training/worker_role.h"\n')
        self.expect("operator/cli must not include")

    def test_a_layer_does_not_include_one_that_comes_after_it(self):
        folder = "operator/controller"
        self.write(f"{folder}/apply/a.h", LICENCE + "#pragma once\n")
        self.write(f"{folder}/loop/l.cc", LICENCE + f'#include "{folder}/apply/a.h"\n')
        self.assertEqual(self.messages(), [])
        self.write(f"{folder}/decide/d.cc", LICENCE + f'#include "{folder}/apply/a.h"\n')
        self.expect("decide must not include apply")

    def test_a_file_of_no_layer(self):
        self.write("operator/controller/elsewhere/e.h", LICENCE + "#pragma once\n")
        self.expect("elsewhere is no layer")

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

    def test_json_that_throws_on_bad_text(self):
        self.write("operator/planner/s.cc", LICENCE + "auto F() { return json.dump(); }\n")
        self.expect("DumpJson")

    def test_own_header_must_come_first(self):
        self.write("common/base/x.cc", LICENCE + '#include <string>\n\n#include "common/base/x.h"\n')
        # The formatter, which would have moved it, complains as well.
        self.assertTrue(any("first include" in m for m in self.messages()))

    def test_type_defined_twice(self):
        self.write("common/json/y.h", LICENCE + "#pragma once\nstruct Thing {};\n")
        self.write("operator/api/z.h", LICENCE + "#pragma once\nstruct Thing {};\n")
        self.expect("Thing is defined in common/json/y.h as well")

    def test_types_of_unnamed_namespaces_are_their_own(self):
        for name in ("common/json/y.cc", "operator/api/z.cc"):
            self.write(name, LICENCE + "namespace {\nstruct Thing {};\n}  // namespace\n")
        self.assertEqual(self.messages(), [])

    def test_planted_defect_in_production(self):
        use = "bool b = Planted(PlantedBug::kNone);\n"
        self.write("tests/simulation/a.cc", LICENCE + use)
        self.assertEqual(self.messages(), [])
        self.write("common/base/b.cc", LICENCE + use)
        self.expect("common/base/b.cc: asks for a planted defect")

    def test_a_test_that_is_not_marked(self):
        text = "# SPDX-License-Identifier: Apache-2.0\nlambdadnn_add_test(NAME a COMMAND a)\n"
        self.write("tests/unit/CMakeLists.txt", text)
        self.assertEqual(self.messages(), [])
        self.write("tests/unit/CMakeLists.txt", text + "add_test(NAME b COMMAND b)\n")
        self.expect("tests/unit/CMakeLists.txt: adds a test by add_test; use lambdadnn_add_test")

    def test_a_backend_told_by_its_name(self):
        table = 'Backend b = {BackendKind::kA, "Alpha", {}};\n'
        self.write("operator/api/backend_kind.cc", LICENCE + table)
        self.write("operator/cli/c.cc", LICENCE + 'std::string label = "Alpha";\n')
        self.assertEqual(self.messages(), [])
        for line in ('bool a = name == "Alpha";\n', 'bool a = name != "Alpha";\n',
                     'bool a = "Alpha" == name;\n', 'bool a = name == std::string("Alpha");\n',
                     'bool a = name.compare("Alpha") == 0;\n'):
            self.write("operator/cli/c.cc", LICENCE + line)
            self.expect("operator/cli/c.cc: compares a backend's name")
        self.write("operator/cli/c.cc", LICENCE + "int c;\n")
        self.write("tests/unit/c_test.cc", LICENCE + 'bool a = name == "Alpha";\n')
        self.assertEqual(self.messages(), [])

    def test_bad_format(self):
        self.write("common/base/z.cc", LICENCE + "int   z;\n")
        self.expect("not formatted")

    def test_what_linters_find(self):
        self.write("tests/a.py", MARK + "import os\n")
        self.expect("tests/a.py: F401")
        self.write("tests/a.py", MARK)
        self.write("scripts/b.sh", "#!/bin/sh\n" + MARK + 'for a in $(ls $1); do echo "$a"; done\n')
        self.assertTrue(any("scripts/b.sh: " in m and "[SC2086]" in m for m in self.messages()))
        self.write("scripts/b.sh", "#!/bin/sh\n" + MARK)
        # Without an ending: by its first line.
        self.write(".ci/run", "#!/usr/bin/env bash\ncd $1\n")
        self.assertTrue(any(".ci/run: " in m and "[SC2086]" in m for m in self.messages()))

    def test_a_linter_that_is_not_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("git", "clang-format-19"):
                os.symlink(shutil.which(name), f"{folder}/{name}")
            with mock.patch.dict(os.environ, PATH=folder, XDG_CACHE_HOME=folder):
                self.assertEqual([m.split(":")[1] for m in self.messages()],
                                 [" is not installed; run scripts/setup.sh"] * 2)

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

    def test_todo_in_a_text(self):
        todo = "TO" + "DO: write it\n"
        for name, text in (("common/CMakeLists.txt", f"# SPDX-License-Identifier: Apache-2.0\n# {todo}"),
                           ("charts/a.yaml", f"# SPDX-License-Identifier: Apache-2.0\n# {todo}"),
                           ("docs/a.md", todo)):
            self.write(name, text)
            self.expect(f"{name}: a TO" + "DO needs its sentence")
            (self.root / name).unlink()

    def test_dead_path(self):
        for text in ("see tests/nothing/x_test.py", "`tests/nothing`", "```\ncat examples/no.yaml\n```",
                     "all of common/*/nothing.h"):
            self.write("docs/a.md", text + "\n")
            self.expect("which does not exist")
        self.write("docs/a.md", "`common/base/x.h`, `common/base/`, common/base/x and common/*/x.h; "
                                "operator/cli/NAME_command.cc, common/base/<name>.h. In common/base.\n")
        self.assertEqual(self.messages(), [])

    def test_dead_anchor(self):
        self.write("docs/b.md", "# One, *two* and `three`\n## Again\n## Again\n```\n# code\n```\n")
        for link in ("b.md#once", "b.md#code", "b.md#again-2", "#again"):
            self.write("docs/a.md", f"[x]({link})\n")
            self.expect("which is no section of")
        self.write("docs/a.md", "[x](b.md#one-two-and-three) [y](b.md#again-1) [z](#own)\n# Own\n")
        self.assertEqual(self.messages(), [])

    def test_dead_flag_of_a_script(self):
        self.write("scripts/a.sh",
                   "#!/bin/sh\n" + MARK + "case $1 in --all) ;; --list-bugs) ;; esac\n")
        for text in ("`scripts/a.sh --al`", "```\nscripts/a.sh --all | less --al\nscripts/a.sh --list\n```"):
            self.write("docs/a.md", text + "\n")
            self.expect("gives scripts/a.sh the flag")
        self.write("docs/a.md", "`scripts/a.sh\n--all`\n")
        self.assertEqual(self.messages(), [])


class TidyHoldsCommandsAgainstTheirHelp(SmallTree):
    """With programs whose help is known."""

    def setUp(self):
        super().setUp()
        self.programs = tempfile.TemporaryDirectory()
        self.addCleanup(self.programs.cleanup)
        self.program("lambdadnn", """
            case "$1" in
            run) echo "  --out TEXT   Folder"; echo "  -o,--output TEXT"; echo "  --resume" ;;
            plan) echo "  -f,--file TEXT" ;;
            dataset) [ "$2" = inspect ] && echo "  --format TEXT" ;;
            *) printf 'Options:\\n  -h,--help\\nSubcommands:\\n  run   Train\\n  plan  Plan\\n  dataset\\n' ;;
            esac""")
        self.program("lambdadnn-operator", 'echo "  --store TEXT"')

    def program(self, name, body):
        path = pathlib.Path(self.programs.name) / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def messages(self):
        cli = pathlib.Path(self.programs.name) / "lambdadnn"
        return [f"{n}: {m}" for n, _, m in tidy.findings(tidy.Tree(self.root), str(cli))]

    def test_dead_command(self):
        for text in ("`lambdadnn rnu job.yaml`", "`build/release/bin/lambdadnn plan|perdict`",
                     "`kubectl lambdadnn rnu`", "```\n$ lambdadnn run a && lambdadnn rnu b\n```",
                     "```sh\nkubectl lambdadnn rnu\n```", "a `lambdadnn\nrnu x` of two lines"):
            self.write("docs/a.md", text + "\n")
            self.expect("which does not exist")
        self.write("docs/a.md", "`lambdadnn run`, and lambdadnn knows; `kubectl lambdadnn plan -f F`\n"
                                "```\nlambdadnn plan \\\n  -f F  # --not a flag\n```\n")
        self.assertEqual(self.messages(), [])

    def test_dead_flag(self):
        for text in ("`lambdadnn run job.yaml --uot x`", "`lambdadnn plan --out x`",
                     "`lambdadnn dataset inspect --fromat idx`", "`--uot`",
                     "`lambdadnn-operator --sotre s`",
                     "```\nlambdadnn plan -f x | less --tricky\nlambdadnn run \\\n  -x y\n```"):
            self.write("docs/a.md", text + "\n")
            self.expect("the flag")
        self.write("docs/a.md", "`lambdadnn run --out=x -o json`, `lambdadnn dataset inspect --format x`, "
                                "`lambdadnn-operator --store s &`, `--resume` and `--store`\n")
        self.assertEqual(self.messages(), [])


class ClangTidy(SmallTree):
    def setUp(self):
        super().setUp()
        for name in (".clang-tidy", "tests/tidy/clang_tidy.py", "tests/support/remembered.py"):
            self.write(name, (ROOT / name).read_text())
        self.write("common/base/z.h", LICENCE + "#pragma once\nint Zed();\n")

    def run_it(self, *options):
        """Its exit code, and what it printed."""
        done = subprocess.run(["/usr/bin/python3", self.root / "tests/tidy/clang_tidy.py", *options],
                              env={**os.environ, "XDG_CACHE_HOME": str(self.root / "cache")},
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_source_that_does_not_stand_by_itself(self):
        self.write("common/base/y.cc", LICENCE + "int y = Zed();\n")
        code, said = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("use of undeclared identifier 'Zed'", said)
        self.assertIn("0 files passed, 1 failed, 0 had passed before, 0 not reached", said)

    def test_what_passed_is_checked_again_when_a_header_of_it_is_another(self):
        self.write("common/base/y.cc", LICENCE + '#include "common/base/z.h"\n\nint y = Zed();\n')
        self.assertEqual(self.run_it("--seconds", "0"), (
            0, "clang-tidy: 0 files passed, 0 failed, 0 had passed before, 1 not reached\n"))
        for passed, before in ((1, 0), (0, 1)):
            self.assertEqual(self.run_it(), (
                0, f"clang-tidy: {passed} files passed, 0 failed, {before} had passed before, 0 not reached\n"))
        self.write("common/base/z.h", LICENCE + "#pragma once\nvoid Zed();\n")
        code, said = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("0 files passed, 1 failed, 0 had passed before", said)

    def test_what_the_last_commit_changed(self):
        for number, name in enumerate(("first", "second")):
            self.write(f"common/base/{name}.cc", LICENCE + f"int {name} = 1;\n")
            subprocess.run(["git", "add", "."], cwd=self.root, check=True)
            subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", str(number)],
                           cwd=self.root, check=True)
        self.write("common/base/own.cc", LICENCE + "int own = 1;\n")
        code, said = self.run_it("--changed")
        self.assertEqual(code, 0)
        self.assertIn("clang-tidy: 2 files passed, 0 failed", said)

    def test_a_mistake_that_compiles(self):
        self.write("common/base/y.cc", LICENCE + "#include <string>\n#include <utility>\n\n"
                                       "std::string F(std::string x) {\n"
                                       "  std::string y = std::move(x);\n  return y + x;\n}\n")
        code, said = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("bugprone-use-after-move", said)
