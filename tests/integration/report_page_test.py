# SPDX-License-Identifier: Apache-2.0
"""Opens report pages in headless Chromium: nothing on the console, nothing loaded, every figure has
data, nothing wider than a phone's screen, every text readable in light and in dark colours.

Without --run-folder it renders tests/data/report/report.json.
"""
import html
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from options import OPTIONS

FIGURES = {
    "Training loss": "<polyline",
    "Test accuracy": "<circle",
    "Predicted and actual time by phase": "<rect",
    "Functions over time": "<rect",
    "Time against cost": "<circle",
}
READABLE = 4.5  # contrast of normal text, as WCAG 2 (AA) asks for
# Of every element with text of its own: contrast with the nearest colour behind it. An element of
# a figure has the figure's own colour, and its text is filled.
CONTRASTS = """<script>addEventListener('load', () => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = colour => parts(colour).slice(0, 3).map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce(
    (sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0.5) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const worst = {};
  for (const e of document.body.querySelectorAll('*')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || ['SCRIPT', 'STYLE', 'TITLE', 'DESC'].includes(e.tagName.toUpperCase())) continue;
    const style = getComputedStyle(e);
    const ink = e instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [luminance(ink), luminance(behind(e))].sort((x, y) => y - x);
    worst[`${ink} on ${behind(e)}`] = (a + 0.05) / (b + 0.05);
  }
  document.title = JSON.stringify({
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    background: getComputedStyle(document.body).backgroundColor, contrasts: worst});
})</script>"""


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
    @classmethod
    def setUpClass(cls):
        cls.folder = OPTIONS.run_folder
        if cls.folder is None:
            scratch = tempfile.TemporaryDirectory()
            cls.addClassCleanup(scratch.cleanup)
            cls.folder = pathlib.Path(scratch.name)
            source = pathlib.Path(__file__).parent.parent / "data/report/report.json"
            subprocess.run([OPTIONS.bin / "lambdadnn", "report", source, "-o", "html", "--file",
                            cls.folder / "report.html"], check=True)
        cls.page = cls.folder / "report.html"
        assert cls.page.exists(), f"{cls.page} was not written"

    def test_every_figure_has_data(self):
        page = self.page
        dom = chromium(page, "--dump-dom").stdout
        figures = dict(re.findall(r'<svg[^>]*aria-label="([^"]*)"[^>]*>(.*?)</svg>', dom, re.S))
        for title, mark in FIGURES.items():
            matching = [svg for name, svg in figures.items() if name.startswith(title)]
            self.assertEqual(len(matching), 1, f"{page}: no figure '{title}'")
            self.assertIn(mark, matching[0], f"{page}: '{title}' has no data")
            self.assertNotRegex(matching[0], r'="-?(nan|inf)', f"{page}: '{title}'")

    def test_the_console_stays_silent(self):
        page = self.page
        log = chromium(page, "--dump-dom").stderr
        self.assertNotIn("CONSOLE", log)

    def test_nothing_is_wider_than_a_narrow_screen(self):
        # The page itself must not scroll sideways: a probe writes its width into the title.
        probe = ("<script>addEventListener('load',()=>{document.title="
                 "document.documentElement.scrollWidth+'/'+innerWidth})</script>")
        page = self.page
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "page.html"
            copy.write_text(page.read_text().replace("</head>", probe + "</head>"))
            dom = chromium(copy, "--window-size=500,900", "--dump-dom").stdout
        width, screen = map(int, re.search(r"<title>(\d+)/(\d+)</title>", dom).groups())
        self.assertLessEqual(width, screen, page)

    def test_nothing_is_wider_than_a_phone(self):
        """In a frame of 390 pixels: a window of its own is never that narrow."""
        page = self.page
        with tempfile.TemporaryDirectory() as folder:
            holder = pathlib.Path(folder) / "holder.html"
            holder.write_text(
                "<!doctype html><title></title><iframe style='width:390px;height:800px;border:0' "
                "onload=\"document.title=this.contentDocument.documentElement.scrollWidth+'/'+"
                "this.contentWindow.innerWidth+'/'+this.contentDocument.body.innerText.length\" "
                f'srcdoc="{html.escape(page.read_text())}"></iframe>')
            dom = chromium(holder, "--dump-dom").stdout
        width, screen, text = map(int, re.search(r"<title>(\d+)/(\d+)/(\d+)</title>",
                                                 dom).groups())
        self.assertEqual(screen, 390)
        self.assertGreater(text, 100, "the frame is empty")
        self.assertLessEqual(width, screen, page)

    def test_every_text_is_readable_in_light_and_in_dark(self):
        page = self.page
        backgrounds = {}
        for dark in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                copy = pathlib.Path(folder) / "page.html"
                copy.write_text(page.read_text().replace("</head>", CONTRASTS + "</head>"))
                scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
                dom = chromium(copy, scheme, "--dump-dom").stdout
            seen = json.loads(html.unescape(re.search(r"<title>(\{.*?\})</title>", dom)[1]))
            self.assertEqual(seen["dark"], dark)
            backgrounds[dark] = seen["background"]
            self.assertGreater(len(seen["contrasts"]), 1)
            for pair, contrast in seen["contrasts"].items():
                self.assertGreaterEqual(contrast, READABLE, f"{page}, dark={dark}: {pair}")
        self.assertNotEqual(backgrounds[False], backgrounds[True])
