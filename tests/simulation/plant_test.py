# SPDX-License-Identifier: Apache-2.0
"""How defects are planted in copies of sources, on a small tree: what is written, and what is not."""
import contextlib
import pathlib
import tempfile
import unittest

import plant

LINES = [f"line {number}\n" for number in range(1, 31)]


def patch(number, new, source="common/a.cc"):
    """Puts `new` behind the line of that number; its first line says what is wrong then."""
    old, changed = LINES[number - 3:number + 3], LINES[number - 3:number] + [new] + LINES[number:number + 3]
    body = [(" " if line in old else "+") + line for line in changed]
    return (f"It goes wrong.\n--- a/{source}\n+++ b/{source}\n"
            f"@@ -{number - 2},6 +{number - 2},7 @@\n" + "".join(body))


class PlantTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.build = self.root / "build/release"
        self.build.mkdir(parents=True)
        self.copies = self.build / "planted"
        self.write(LINES)
        stay = contextlib.chdir(self.build)
        stay.__enter__()
        self.addCleanup(stay.__exit__, None, None, None)

    def write(self, lines, source="common/a.cc"):
        path = self.root / source
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(lines))

    def plant(self, **patches):
        plant.plant(self.root, self.copies, {f"planted/{name}.patch": text for name, text in patches.items()})

    def refused(self, **patches):
        with self.assertRaises(SystemExit) as raised:
            self.plant(**patches)
        return str(raised.exception)

    def text(self, source="common/a.cc"):
        return (self.copies / source).read_text()

    def test_lines_are_told_by_where_they_come_from(self):
        self.plant(early=patch(5, "A\n"), late=patch(20, "B\n"))
        source = '"../../common/a.cc"\n'
        self.assertEqual(self.text(), "".join([
            plant.INCLUDE, "#line 1 ", source, *LINES[:5], '#line 8 "../../planted/early.patch"\n', "A\n",
            "#line 6 ", source, *LINES[5:20], '#line 8 "../../planted/late.patch"\n', "B\n",
            "#line 21 ", source, *LINES[20:]]))

    def test_lines_that_a_patch_takes_out_are_counted(self):
        text = patch(5, "A\n").replace(" line 5\n", "-line 5\n").replace("-3,6 +3,7", "-3,6 +3,6")
        self.plant(one=text)
        self.assertIn('line 4\n#line 8 "../../planted/one.patch"\nA\n#line 6 "../../common/a.cc"\nline 6\n',
                      self.text())

    def test_a_source_that_has_grown_elsewhere_is_no_hindrance(self):
        self.write(["new\n"] * 40 + LINES)
        self.plant(one=patch(5, "A\n"))
        self.assertIn('line 5\n#line 8 "../../planted/one.patch"\nA\n#line 46 "../../common/a.cc"\nline 6\n',
                      self.text())

    def test_a_changed_line_at_the_edge_of_its_context_is_no_hindrance(self):
        self.write([line.replace("line 3\n", "other\n") for line in LINES])
        self.plant(one=patch(5, "A\n"))
        self.assertIn("line 5\n#line", self.text())

    def test_a_patch_that_does_not_apply_is_named_and_nothing_is_written(self):
        self.plant(good=patch(20, "B\n"))
        before = self.text()
        self.write(["moved\n"] + [line for line in LINES if line not in LINES[3:7]])
        message = self.refused(bad=patch(5, "A\n"), good=patch(20, "C\n"))
        self.assertIn("error: planted/bad.patch no longer applies to common/a.cc; make it anew (docs/development.md",
                      message)
        self.assertEqual(self.text(), before)

    def test_a_patch_of_which_one_source_has_gone_astray_is_not_half_applied(self):
        self.write(["something else\n"] * 30, "common/b.cc")
        message = self.refused(both=patch(5, "A\n") + patch(9, "B\n", "common/b.cc").split("\n", 1)[1])
        self.assertIn("planted/both.patch no longer applies to common/a.cc, common/b.cc", message)
        self.assertFalse(self.copies.exists())

    def test_a_patch_that_the_source_has_already_is_refused(self):
        self.write([*LINES[:5], "A\n", *LINES[5:]])
        self.assertIn("planted/one.patch no longer applies", self.refused(one=patch(5, "A\n")))

    def test_only_copies_that_change_are_written(self):
        self.write(LINES, "common/b.cc")
        patches = {"a": patch(5, "A\n"), "b": patch(5, "B\n", "common/b.cc")}
        self.plant(**patches)
        old = [(self.copies / f"common/{name}.cc").stat().st_mtime_ns for name in "ab"]
        self.plant(**{**patches, "b": patch(5, "C\n", "common/b.cc")})
        new = [(self.copies / f"common/{name}.cc").stat().st_mtime_ns for name in "ab"]
        self.assertEqual([was == is_now for was, is_now in zip(old, new, strict=True)], [True, False])
