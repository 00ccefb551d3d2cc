# SPDX-License-Identifier: Apache-2.0
"""`lambdadnn run` on a terminal: the live display at several widths, a window that is resized, and
the two interrupts."""
import os
import re
import unittest

from options import OPTIONS
from run_support import Bench
from terminal import Terminal

HEAD = re.compile(r"^digits  (Pending|Profiling|Planning|Starting|Running|Suspended|Complete)\b")


def heads(lines):
    return [line for line in lines if HEAD.match(line)]


def trains(lines):
    return any("iteration" in line or "%" in line for line in heads(lines)) and any(
        re.search(r"worker-\d +Running", line) for line in lines)


class OnATerminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)

    def start(self, columns, *options):
        self.out = self.bench.next_out()
        return Terminal([self.bench.lambdadnn, "run", str(self.bench.job), "--out", str(self.out),
                         *options], columns, cwd=self.bench.folder)

    def show(self, terminal, title):
        if os.environ.get("SHOW"):
            print(f"--- {title}", *terminal.lines(), sep="\n", flush=True)

    def check_display(self, shots, columns):
        seen = 0
        for shot in shots:
            # One display at a time, whatever was drawn before.
            self.assertLessEqual(len(heads(shot)), 1, "\n".join(shot))
            block = shot[shot.index(heads(shot)[0]):] if heads(shot) else []
            for line in block:
                self.assertLess(len(line), columns, line)
            seen += 1 if heads(shot) else 0
        self.assertGreater(seen, 5)

    def test_the_display_fits_every_width(self):
        for columns in (80, 40, 200):
            with self.subTest(columns=columns):
                terminal = self.start(columns)
                self.assertTrue(terminal.until(trains), terminal.text())
                self.show(terminal, f"{columns} columns, while it trains")
                self.assertEqual(terminal.wait(), 0, terminal.text()[-3000:])
                self.show(terminal, f"{columns} columns, at the end")
                self.check_display(terminal.shots, columns)
                end = terminal.text()
                self.assertIn("report:", end)
                self.assertNotIn("\x1b[31", end)

    def test_a_window_that_is_resized_keeps_one_display(self):
        # Long enough for all its widths on a fast machine.
        terminal = self.start(100, "--set", "spec.training.epochs=48")
        self.assertTrue(terminal.until(trains), terminal.text())
        for columns in (45, 120, 60):
            terminal.resize(columns)
            before = len(terminal.shots)
            # Some drawings later.
            terminal.until(lambda lines: len(terminal.shots) > before + 5)
            self.show(terminal, f"resized to {columns}")
            self.assertEqual(len(heads(terminal.lines())), 1, "\n".join(terminal.lines()))
            for line in heads(terminal.lines()):
                self.assertLess(len(line), columns)
        self.assertEqual(terminal.wait(), 0)

    def test_the_first_interrupt_suspends_and_says_how_to_go_on(self):
        terminal = self.start(80)
        self.assertTrue(terminal.until(trains), terminal.text())
        terminal.press_ctrl_c()
        self.assertEqual(terminal.wait(), 130)
        self.show(terminal, "suspended")
        self.assertIn("stopping at a checkpoint (interrupt once more to abort)", terminal.text())
        self.assertIn("resume it with: lambdadnn run --resume", terminal.text())
        resumed = Terminal([self.bench.lambdadnn, "run", "--resume", str(self.out)], 80,
                           cwd=self.bench.folder)
        self.assertEqual(resumed.wait(), 0)

    def test_the_second_interrupt_aborts_at_once_and_leaves_no_process(self):
        terminal = self.start(80)
        self.assertTrue(terminal.until(trains), terminal.text())
        terminal.press_ctrl_c()
        terminal.until(lambda lines: any("interrupt once more" in line for line in lines))
        terminal.press_ctrl_c()
        self.assertEqual(terminal.wait(20), 130)
        self.show(terminal, "aborted")
        # The first may have come to its end before the second was heard.
        self.assertRegex(terminal.text(), "aborted; resume it from the last checkpoint|suspended; resume it")
        from run_support import processes
        self.assertEqual(processes("lambdadnn-worker", "lambdadnn-server", mark=str(self.out)), {})
        resumed = Terminal([self.bench.lambdadnn, "run", "--resume", str(self.out)], 80,
                           cwd=self.bench.folder)
        self.assertEqual(resumed.wait(), 0)
