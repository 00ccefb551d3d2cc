# SPDX-License-Identifier: Apache-2.0
"""Ports of 127.0.0.1 for servers that must be told theirs before they start.

A port that the kernel gave to a probe may be an outgoing connection's by the time the server
binds it, or while a test keeps the server stopped. These lie below the kernel's own range, and
a lock on a file holds each for this process: tests beside each other never share one."""
import fcntl
import os
import pathlib
import random
import socket
import tempfile

# s3_test_server.cc takes its ports from the same range by the same files.
FIRST, COUNT = 20000, 8000

_held = []


def reserve_port():
    """A port that nothing listens on, this process's own until it ends."""
    folder = pathlib.Path(tempfile.gettempdir(), f"lambdadnn-ports-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    for port in random.sample(range(FIRST, FIRST + COUNT), COUNT):
        lock = open(folder / str(port), "a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return port
    raise OSError(f"every port of 127.0.0.1 from {FIRST} on is taken")
