# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on a free port, of the loopback unless told, with a thread for each caller."""
import http.server
import socket
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Gives every request, whatever its method, to serve(self) of its subclass."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def hang_up(self):
        """Ends the connection as it is, in the middle of an answer too."""
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)


class LoopbackServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, handler, host="127.0.0.1"):
        super().__init__((host, 0), handler)
        self.url = f"http://{host}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a caller that has gone, or was killed in the middle of a request

    def close(self):
        self.shutdown()
        self.server_close()
