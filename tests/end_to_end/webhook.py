"""A webhook of a chat or pager, on this machine."""

from __future__ import annotations

import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH = "/services/T000/" + "canary" + "HookToken"


class Hook:
    """A webhook: what was posted to it. `status` is what it answers with."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, Message, bytes]] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.posted.append((self.path, self.headers, body))
                self.send_response(hook.status)
                self.send_header("Location", f"{hook.url}elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}{PATH}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
