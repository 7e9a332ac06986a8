"""Comments of a review at GitHub or GitLab: finds our own one that begins with a marker, and keeps it current.

The token goes to one origin only: every request is built on it, no redirect and no link of an answer is followed. What
somebody else wrote is never changed, whatever marker it carries, since its author could change it again after us.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from reconciler.api.origin import Origin
from reconciler.api.proxies import proxy_of
from reconciler.engine.ports import Failure, Gone, Refused, Transient
from reconciler.model.concealing import conceal
from reconciler.model.value import Secret

_PAGE = 100  # comments: the largest page of both
_PAGES = 200  # a review with more comments than that has other troubles
_TIMEOUT = 30.0  # seconds


class Done(StrEnum):
    ADDED = "added"
    UPDATED = "updated"
    CURRENT = "current"  # it said the same already


@dataclass(frozen=True, slots=True)
class Comment:
    id: int
    body: str


class Review(ABC):
    """One pull or merge request. A context manager; requests raise a Failure."""

    def __init__(self, base_url: str, token: Secret) -> None:
        """ValueError says what is wrong with the address, Refused what with the proxy that the environment names."""
        self._origin = Origin.parse(base_url)
        self._token = token
        self._client = httpx.Client(
            headers=self._headers(),
            timeout=_TIMEOUT,
            follow_redirects=False,
            transport=httpx.HTTPTransport(proxy=proxy_of(self._origin)),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        self._client.close()

    def keep(self, body: str, marker: str) -> Done:
        """The review has one comment of ours that begins with the marker, and this is what it says."""
        earlier = next((each for each in self._own() if each.body.startswith(marker)), None)
        if earlier is not None and earlier.body.strip() == body.strip():
            return Done.CURRENT
        if earlier is not None:
            try:
                self._change(earlier.id, body)
            except Gone:  # somebody deleted it since
                earlier = None
            else:
                return Done.UPDATED
        self._add(body)
        return Done.ADDED

    @abstractmethod
    def _headers(self) -> dict[str, str]: ...

    @abstractmethod
    def _own(self) -> Iterator[Comment]:
        """The comments that the token's owner wrote, oldest first."""

    @abstractmethod
    def _add(self, body: str) -> None: ...

    @abstractmethod
    def _change(self, comment: int, body: str) -> None: ...

    def _pages(self, path: str) -> Iterator[Any]:
        """Every item of a collection, page by page."""
        sign = "&" if "?" in path else "?"
        for number in range(1, _PAGES + 1):
            answer = self._ask("GET", f"{path}{sign}per_page={_PAGE}&page={number}")
            items = self._decoded(answer)
            if not isinstance(items, list):
                raise Refused(f"{self._origin} did not answer with a list of comments")
            yield from (each for each in items if isinstance(each, dict))
            # The link is looked at, not followed: only the number of the page is ours to choose.
            if not items or "next" not in answer.links:
                return
        raise Refused(f"there are more than {_PAGES * _PAGE} comments")

    def _ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        try:
            answer = self._client.request(method, self._origin.at(path), json=body)
        except httpx.HTTPError as error:
            raise Transient(f"{self._origin} cannot be reached: {type(error).__name__}; run it again") from None
        if answer.is_success:
            return answer
        raise self._failure(method, path, answer)

    def _decoded(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError:
            raise Refused(f"{self._origin} did not answer with JSON") from None

    def _failure(self, method: str, path: str, answer: httpx.Response) -> Failure:
        told = self._said(answer)
        text = conceal(f"{self._origin} answered {answer.status_code} to {method} {path}{told}", [self._token.reveal()])
        if answer.status_code == 404 and method != "GET":
            return Gone(text, status=404)
        if answer.status_code in (401, 403):
            return Refused(f"{text}; check the token and whether it may write comments", status=answer.status_code)
        if answer.status_code == 404:
            return Refused(f"{text}; check the repository, the number of the review, and what the token may see")
        if answer.status_code == 429 or answer.status_code >= 500:
            return Transient(f"{text}; run it again", status=answer.status_code)
        if answer.is_redirect:
            return Refused(f"{text}, a redirect; it was not followed, and the token was not sent there")
        return Refused(text, status=answer.status_code)

    @staticmethod
    def _said(answer: httpx.Response) -> str:
        try:
            message = answer.json().get("message", "")
        except (ValueError, AttributeError):
            return ""
        return f": {str(message)[:200]}" if message else ""


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

    def _own(self) -> Iterator[Comment]:
        login = self._login()
        for each in self._pages(f"{self._repository}/issues/{self._number}/comments"):
            author = each.get("user") or {}
            # A workflow's token may not ask who it is: it writes as a bot, which no visitor of the review can be.
            ours = author.get("login") == login if login else author.get("type") == "Bot"
            if ours and isinstance(each.get("id"), int):
                yield Comment(each["id"], str(each.get("body") or ""))

    def _login(self) -> str:
        try:
            said = self._decoded(self._ask("GET", "/user"))
        except Refused as refused:
            if refused.status == 403:
                return ""
            raise
        return str(said.get("login", "")) if isinstance(said, dict) else ""

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

    def _own(self) -> Iterator[Comment]:
        said = self._decoded(self._ask("GET", "/user"))
        user = said.get("id") if isinstance(said, dict) else None
        for each in self._pages(f"{self._notes}?sort=asc&order_by=created_at"):
            ours = user is not None and (each.get("author") or {}).get("id") == user
            if ours and not each.get("system") and isinstance(each.get("id"), int):
                yield Comment(each["id"], str(each.get("body") or ""))

    def _add(self, body: str) -> None:
        self._ask("POST", self._notes, {"body": body})

    def _change(self, comment: int, body: str) -> None:
        self._ask("PUT", f"{self._notes}/{comment}", {"body": body})
