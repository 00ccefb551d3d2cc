#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens report pages in headless Chromium: nothing on the console, nothing loaded, every figure has
data, nothing wider than a phone's screen.

    report_page_test.py LAMBDADNN [RUN_FOLDER...]

Without folders it renders tests/data/report/report.json.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LAMBDADNN = ""
FOLDERS = []
FIGURES = {
    "Training loss": "<polyline",
    "Test accuracy": "<circle",
    "Predicted and actual time by phase": "<rect",
    "Functions over time": "<rect",
    "Time against cost": "<circle",
}


def chromium(page, *options):
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "chromium is not installed; run scripts/setup.sh"
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--enable-logging=stderr", "--log-level=0",
             f"--user-data-dir={profile}", *options, page.as_uri()],
            capture_output=True, text=True, timeout=120)


class ReportPage(unittest.TestCase):
    def pages(self):
        for folder in FOLDERS:
            page = pathlib.Path(folder) / "report.html"
            self.assertTrue(page.exists(), f"{page} was not written")
            yield page

    def test_every_figure_has_data(self):
        for page in self.pages():
            dom = chromium(page, "--dump-dom").stdout
            figures = dict(re.findall(r'<svg[^>]*aria-label="([^"]*)"[^>]*>(.*?)</svg>', dom, re.S))
            for title, mark in FIGURES.items():
                matching = [svg for name, svg in figures.items() if name.startswith(title)]
                self.assertEqual(len(matching), 1, f"{page}: no figure '{title}'")
                self.assertIn(mark, matching[0], f"{page}: '{title}' has no data")
                self.assertNotRegex(matching[0], r'="-?(nan|inf)', f"{page}: '{title}'")

    def test_the_console_stays_silent(self):
        for page in self.pages():
            log = chromium(page, "--dump-dom").stderr
            self.assertNotIn("CONSOLE", log)

    def test_nothing_is_wider_than_a_narrow_screen(self):
        # The page itself must not scroll sideways: a probe writes its width into the title.
        probe = ("<script>addEventListener('load',()=>{document.title="
                 "document.documentElement.scrollWidth+'/'+innerWidth})</script>")
        for page in self.pages():
            with tempfile.TemporaryDirectory() as folder:
                copy = pathlib.Path(folder) / "page.html"
                copy.write_text(page.read_text().replace("</head>", probe + "</head>"))
                dom = chromium(copy, "--window-size=500,900", "--dump-dom").stdout
            width, screen = map(int, re.search(r"<title>(\d+)/(\d+)</title>", dom).groups())
            self.assertLessEqual(width, screen, page)


def main():
    global LAMBDADNN
    LAMBDADNN = sys.argv[1]
    FOLDERS.extend(sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        if not FOLDERS:
            source = pathlib.Path(__file__).parent.parent / "data/report/report.json"
            subprocess.run([LAMBDADNN, "report", source, "-o", "html", "--file",
                            f"{folder}/report.html"], check=True)
            FOLDERS.append(folder)
        result = unittest.main(argv=[sys.argv[0]], exit=False).result
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
