# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own, seen through a terminal emulator (pyte)."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pyte

SETTLED_SECONDS = 0.04  # without output: the drawing is complete


class Terminal:
    def __init__(self, command, columns, rows=24, cwd=None, environment=None):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.shots = []  # the screen each time that it settled
        self.code = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(cwd or "/")
            self._size(0, columns, rows)
            os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", **(environment or {})})
        self._size(self.master, columns, rows)

    @staticmethod
    def _size(descriptor, columns, rows):
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows=24):
        self.screen.resize(rows, columns)
        self._size(self.master, columns, rows)
        os.kill(self.pid, signal.SIGWINCH)

    def press_ctrl_c(self):
        os.write(self.master, b"\x03")

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def _read(self, timeout):
        """False at the end."""
        if not select.select([self.master], [], [], timeout)[0]:
            shot = self.lines()
            if not self.shots or self.shots[-1] != shot:
                self.shots.append(shot)
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        if not data:
            return False
        self.raw += data
        self.stream.feed(data)
        return True

    def until(self, condition, timeout=120):
        """Reads until condition(lines) holds for a settled screen, or the program ends."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not self._read(SETTLED_SECONDS):
                self.wait()
                return condition(self.lines())
            if self.shots and condition(self.shots[-1]):
                return True
        raise AssertionError("not seen in time:\n" + "\n".join(self.lines()))

    def wait(self, timeout=120):
        end = time.monotonic() + timeout
        while self.code is None and time.monotonic() < end:
            if self._read(SETTLED_SECONDS):
                continue
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            raise AssertionError("no end:\n" + "\n".join(self.lines()))
        return self.code

    def text(self):
        return self.raw.decode(errors="replace")
