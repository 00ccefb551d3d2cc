# SPDX-License-Identifier: Apache-2.0
"""HTTP over a Unix socket, as a function host speaks it."""
import http.client
import socket


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("host", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
