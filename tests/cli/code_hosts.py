"""An HTTP server that emulates comments and issues of GitHub and GitLab, as far as the commands use them."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "canary" + "OfTheCodeHost"
ALICE = {"id": 7, "login": "alice", "type": "User", "username": "alice"}
US = {"id": 1, "login": "deployer", "type": "User", "username": "deployer"}
BOT = {"id": 2, "login": "github-actions[bot]", "type": "Bot"}


@dataclass
class CodeHost:
    """The host of one review. `me` is the owner of the token, or None if the token may not read its owner."""

    me: dict[str, Any] | None = field(default_factory=lambda: dict(US))
    comments: list[dict[str, Any]] = field(default_factory=list)
    largest_page: int = 100
    elsewhere: str = ""  # the target of redirects of all requests
    failing: int = 0  # the status of all responses
    instead: dict[str, tuple[int, dict[str, str], Any]] = field(
        default_factory=dict
    )  # responses by method and end of the path
    issues: list[dict[str, Any]] = field(default_factory=list)  # with the keys of both hosts
    vanishing: bool = False  # comments are deleted between the list and the update
    asked: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)

    def say(self, author: dict[str, Any], body: str) -> int:
        number = len(self.comments) + 1
        self.comments.append({"id": number, "body": body, "user": author, "author": author, "system": False})
        return number

    @property
    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [request for request in self.asked if request[0] != "GET"]

    def __enter__(self) -> CodeHost:
        host = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                status, headers, response = host.answer(self.command, self.path, self.headers, body)
                text = response if isinstance(response, bytes) else json.dumps(response).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_PUT = answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, method: str, target: str, headers: Message, body: Any) -> tuple[int, dict[str, str], Any]:
        parts = urlsplit(target)
        self.asked.append((method, parts.path))
        self.tokens.add(headers.get("PRIVATE-TOKEN") or headers.get("Authorization", "").removeprefix("Bearer "))
        if self.elsewhere:
            return 302, {"Location": f"{self.elsewhere}{target}"}, None
        if self.failing:
            return self.failing, {}, {"message": "not now"}
        for method_and_path, response in self.instead.items():
            if method_and_path.startswith(f"{method} ") and parts.path.endswith(method_and_path.partition(" ")[2]):
                return response
        if TOKEN not in self.tokens:
            return 401, {}, {"message": f"Bad credentials {self.tokens}"}
        if parts.path.endswith("/user"):
            return (200, {}, self.me) if self.me else (403, {}, {"message": "Resource not accessible by integration"})
        if re.search(r"/issues(/\d+)?$", parts.path):
            return self._issue(method, parts.path, body)
        if method == "GET":
            return self._page(parts.path, {key: values[0] for key, values in parse_qs(parts.query).items()})
        if method == "POST":
            self.say(self.me or BOT, body["body"])
            return 201, {}, self.comments[-1]
        found = re.search(r"/(\d+)$", parts.path)
        comment = next((comment for comment in self.comments if found and comment["id"] == int(found[1])), None)
        if comment is None or self.vanishing:
            return 404, {}, {"message": "Not Found"}
        comment["body"] = body["body"]
        return 200, {}, comment

    def _issue(self, method: str, path: str, body: Any) -> tuple[int, dict[str, str], Any]:
        if method == "GET":
            return 200, {}, [issue for issue in self.issues if issue["state"] == "open"]
        text = body.get("description", body.get("body"))
        fields = {"title": body["title"], "body": text, "description": text}
        if method == "POST":
            author, number = self.me or BOT, len(self.issues) + 1
            self.issues.append(
                {**fields, "number": number, "iid": number, "state": "open", "user": author, "author": author}
            )
            return 201, {}, self.issues[-1]
        issue = self.issues[int(path.rpartition("/")[2]) - 1]
        closed = body.get("state") == "closed" or body.get("state_event") == "close"
        issue.update(fields, **({"state": "closed"} if closed else {}))
        return 200, {}, issue

    def _page(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        size, number = min(int(query["per_page"]), self.largest_page), int(query["page"])
        comments = self.comments[(number - 1) * size : number * size]
        more = number * size < len(self.comments)
        # The link leads to another address on purpose: a client that follows it sends the token there.
        links = {"Link": f'<http://127.0.0.1:9/{path}?page={number + 1}>; rel="next"'} if more else {}
        return 200, links, comments
