"""Comments of a review at GitHub or GitLab: finds our own one that begins with a marker, and keeps it current.

The token goes to one origin only: every request is built on it, no redirect and no link of a response is followed. What
somebody else wrote is never changed, whatever marker it carries, since its author could change it again after us.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from reconciler.api import answers, errors
from reconciler.api.exchange import Response, ask
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Gone, Refused, Transient
from reconciler.model.redaction import redact
from reconciler.model.value import Secret

_PAGE = 100  # comments: the largest page of both
_PAGES = 200  # a review with more comments than that has other troubles
_TIMEOUT = 30.0  # seconds
LARGEST = 64 * 2**20  # bytes; a full page of GitHub's longest comments is half of that
_WORKFLOWS = "Resource not accessible by integration"  # what GitHub tells a workflow's token that asks who it is


class CommentResult(StrEnum):
    ADDED = "added"
    UPDATED = "updated"
    CURRENT = "current"  # it said the same already


@dataclass(frozen=True, slots=True)
class Comment:
    id: int
    body: str


class Review(ABC):
    """One pull or merge request. Its requests raise a Failure."""

    def __init__(self, base_url: str, token: Secret) -> None:
        """ValueError says what is wrong with the address."""
        self._origin = Origin.parse(base_url)
        self._token = token

    def upsert_comment(self, body: str, marker: str) -> CommentResult:
        """The review has one comment of ours that begins with the marker, and this is what it says."""
        earlier = next((comment for comment in self._list_own() if comment.body.startswith(marker)), None)
        if earlier is not None and earlier.body.strip() == body.strip():
            return CommentResult.CURRENT
        if earlier is not None:
            try:
                self._change(earlier.id, body)
            except Gone:  # somebody deleted it since
                earlier = None
            else:
                return CommentResult.UPDATED
        self._add(body)
        return CommentResult.ADDED

    @abstractmethod
    def _headers(self) -> dict[str, str]: ...

    @abstractmethod
    def _list_own(self) -> Iterator[Comment]:
        """The comments that the token's owner wrote, oldest first."""

    @abstractmethod
    def _add(self, body: str) -> None: ...

    @abstractmethod
    def _change(self, comment: int, body: str) -> None: ...

    def _pages(self, path: str) -> Iterator[Any]:
        """Every item of a collection, page by page."""
        sign = "&" if "?" in path else "?"
        for number in range(1, _PAGES + 1):
            response = self._ask("GET", f"{path}{sign}per_page={_PAGE}&page={number}")
            items = self._decode(response)
            if not isinstance(items, list):
                raise Refused(f"{self._origin} did not answer with a list of comments")
            yield from (item for item in items if isinstance(item, dict))
            # The link is looked at, not followed: only the number of the page is ours to choose.
            if not items or not _NEXT.search(response.headers.get("Link", "")):
                return
        raise Refused(f"there are more than {_PAGES * _PAGE} comments")

    def _ask(self, method: str, path: str, body: Any = None) -> Response:
        headers = self._headers()
        content = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = answers.encode(body)
        address = self._origin.at(path)
        try:
            response = ask(self._origin, method, address, headers, content, seconds=_TIMEOUT, largest=LARGEST)
        except Transient as failure:
            raise Transient(f"{failure}; run it again") from None
        if response.is_success:
            return response
        raise self._failure(method, path, response)

    def _decode(self, response: Response) -> Any:
        body, is_json = answers.decode(response.content)
        if not is_json:
            raise Refused(f"{self._origin} did not answer with JSON")
        return body

    def _failure(self, method: str, path: str, response: Response) -> Failure:
        told = self._message(response)
        text = f"{self._origin} answered {response.status} to {method} {path}" + (f": {told}" if told else "")
        if response.status == HTTPStatus.NOT_FOUND and method != "GET":
            return Gone(text, status=404)
        if _is_limit(response, told) or response.status >= 500:
            return Transient(f"{text}; run it again", status=response.status)
        if response.status in (401, 403):
            return Refused(f"{text}; check the token and whether it may write comments", status=response.status)
        if response.status == HTTPStatus.NOT_FOUND:
            return Refused(f"{text}; check the repository, the number of the review, and what the token may see")
        if 300 <= response.status < 400:
            return Refused(f"{text}, a redirect; it was not followed, and the token was not sent there")
        return Refused(text, status=response.status)

    def _unknown_user(self) -> Refused:
        return Refused(f"{self._origin} did not say whose the token is")

    def _message(self, response: Response) -> str:
        """GitHub and GitLab say it as `message`, and GitLab of some tokens as OAuth does."""
        body, _ = answers.decode(response.content)
        said = [body.get(name) for name in ("message", "error", "error_description")] if isinstance(body, dict) else []
        told = ": ".join(str(each) for each in said if each)
        return errors.sanitize(redact(told, [self._token.reveal()]), 200)  # a piece of a token would not be found


_NEXT = re.compile(r'rel="?next\b')


def _is_limit(response: Response, told: str) -> bool:
    """Too many requests, of which GitHub speaks as 403 too, with one of three signs."""
    if response.status != HTTPStatus.FORBIDDEN:
        return response.status == HTTPStatus.TOO_MANY_REQUESTS
    headers = response.headers
    return "Retry-After" in headers or headers.get("X-RateLimit-Remaining") == "0" or "rate limit" in told.lower()


def _part(of: dict[str, Any], name: str) -> dict[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


class GitHub(Review):
    """`repository`: owner/name. `number`: of the pull request."""

    def __init__(self, base_url: str, token: Secret, repository: str, number: int) -> None:
        super().__init__(base_url, token)
        owner, _, name = repository.partition("/")
        self._repository = f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"
        self._number = number

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "reconciler",
        }

    def _list_own(self) -> Iterator[Comment]:
        login = self._login()
        for page in self._pages(f"{self._repository}/issues/{self._number}/comments"):
            author = _part(page, "user")
            # A workflow's token may not ask who it is: it writes as a bot, which no visitor of the review can be.
            ours = author.get("login") == login if login else author.get("type") == "Bot"
            if ours and isinstance(page.get("id"), int):
                yield Comment(page["id"], str(page.get("body") or ""))

    def _login(self) -> str:
        """Empty for a workflow's token."""
        try:
            said = self._decode(self._ask("GET", "/user"))
        except Refused as refused:
            if refused.status == HTTPStatus.FORBIDDEN and _WORKFLOWS in str(refused):
                return ""
            raise
        login = said.get("login") if isinstance(said, dict) else None
        if not login or not isinstance(login, str):
            raise self._unknown_user()
        return login

    def _add(self, body: str) -> None:
        self._ask("POST", f"{self._repository}/issues/{self._number}/comments", {"body": body})

    def _change(self, comment: int, body: str) -> None:
        self._ask("PATCH", f"{self._repository}/issues/comments/{comment}", {"body": body})


class GitLab(Review):
    """`base_url` ends with `/api/v4`. `project`: its number or path. `number`: of the merge request."""

    def __init__(self, base_url: str, token: Secret, project: str, number: int) -> None:
        super().__init__(base_url, token)
        self._notes = f"/projects/{quote(project, safe='')}/merge_requests/{number}/notes"

    def _headers(self) -> dict[str, str]:
        return {"PRIVATE-TOKEN": self._token.reveal(), "User-Agent": "reconciler"}

    def _list_own(self) -> Iterator[Comment]:
        said = self._decode(self._ask("GET", "/user"))
        user = said.get("id") if isinstance(said, dict) else None
        if user is None:
            raise self._unknown_user()
        for page in self._pages(f"{self._notes}?sort=asc&order_by=created_at"):
            ours = _part(page, "author").get("id") == user
            if ours and not page.get("system") and isinstance(page.get("id"), int):
                yield Comment(page["id"], str(page.get("body") or ""))

    def _add(self, body: str) -> None:
        self._ask("POST", self._notes, {"body": body})

    def _change(self, comment: int, body: str) -> None:
        self._ask("PUT", f"{self._notes}/{comment}", {"body": body})
