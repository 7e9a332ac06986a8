"""Creates and updates one comment or one issue at GitHub or GitLab, found by its marker.

The token is sent to one origin only: no redirect and no link of a response is followed. Comments and issues of other
authors are never changed, even with the marker, since their authors could change them afterwards.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import StrEnum
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from reconciler.api import answers, errors
from reconciler.api.exchange import Response, ask
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Gone, Refused, Transient
from reconciler.model.redaction import redact
from reconciler.model.value import Secret

_PAGE = 100  # comments: the largest page that both hosts allow
_PAGES = 200  # of comments that are read at most
_TIMEOUT = 30.0  # seconds
LABEL = "reconciler-drift"  # of the issues about drift
LARGEST = 64 * 2**20  # bytes; a page of GitHub's longest comments is half of that
_WORKFLOWS = "Resource not accessible by integration"  # GitHub's error for GET /user with a workflow's token


class CommentResult(StrEnum):
    """What `upsert_comment` did."""

    ADDED = "added"
    UPDATED = "updated"
    CURRENT = "current"  # it had this text already


class IssueResult(StrEnum):
    """What `upsert_issue` or `close_issue` did."""

    OPENED = "opened"
    UPDATED = "updated"
    CURRENT = "current"  # it had this text already
    CLOSED = "closed"
    NONE = "none"  # there is no open issue to close


class Comment(Struct, frozen=True):
    id: int
    body: str


class Issue(Struct, frozen=True):
    number: int
    title: str
    body: str


class CodeHost(ABC):
    """The requests to one code host. Every method raises a Failure if the code host cannot be used."""

    def __init__(self, base_url: str, token: Secret) -> None:
        """Raises ValueError for an invalid base URL."""
        self._origin = Origin.parse(base_url)
        self._token = token

    @abstractmethod
    def _headers(self) -> dict[str, str]: ...

    def _pages(self, path: str) -> Iterator[Any]:
        """Yields every item of a collection, page by page."""
        sign = "&" if "?" in path else "?"
        for number in range(1, _PAGES + 1):
            response = self._ask("GET", f"{path}{sign}per_page={_PAGE}&page={number}")
            items = self._decode(response)
            if not isinstance(items, list):
                raise Refused(f"the response of {self._origin} is not a list")
            yield from (item for item in items if isinstance(item, dict))
            # The link only tells whether there is a next page; it is not followed.
            if not items or not _NEXT.search(response.headers.get("Link", "")):
                return
        raise Refused(f"{path} lists more than {_PAGES * _PAGE} items, which is not supported")

    def _ask(self, method: str, path: str, body: Any = None) -> Response:
        response = self._send(method, path, body)
        if response.is_success:
            return response
        raise self._failure(method, path, response)

    def _send(self, method: str, path: str, body: Any = None) -> Response:
        """The response, whatever its status."""
        headers = self._headers()
        content = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = answers.encode(body)
        address = self._origin.at(path)
        try:
            return ask(self._origin, method, address, headers, content, seconds=_TIMEOUT, largest=LARGEST)
        except Transient as failure:
            raise Transient(f"{failure}; run it again") from None

    def _decode(self, response: Response) -> Any:
        body, is_json = answers.decode(response.content)
        if not is_json:
            raise Refused(f"the response of {self._origin} is not JSON")
        return body

    def _failure(self, method: str, path: str, response: Response) -> Failure:
        message = self._message(response)
        text = f"{self._origin} returned {response.status} for {method} {path}" + (f": {message}" if message else "")
        if response.status == HTTPStatus.NOT_FOUND and method != "GET":
            return Gone(text, status=404)
        if _is_limit(response, message) or response.status >= 500:
            return Transient(f"{text}; run it again", status=response.status)
        if response.status in (401, 403):
            return Refused(f"{text}; check the token and its permissions", status=response.status)
        if response.status == HTTPStatus.NOT_FOUND:
            return Refused(f"{text}; check the repository, the number, and what the token can read")
        if 300 <= response.status < 400:
            return Refused(f"{text}; the redirect was not followed, and the token was not sent to its target")
        return Refused(text, status=response.status)

    def _unknown_user(self) -> Refused:
        return Refused(f"the response of {self._origin} does not name the owner of the token")

    def _message(self, response: Response) -> str:
        """The error text: in `message`, and for some tokens of GitLab in the fields of OAuth."""
        body, _ = answers.decode(response.content)
        texts = [body.get(name) for name in ("message", "error", "error_description")] if isinstance(body, dict) else []
        message = ": ".join(str(text) for text in texts if text)
        # Redacted before it is shortened: a part of the token would not be found.
        return errors.sanitize(redact(message, [self._token.reveal()]), 200)


_NEXT = re.compile(r'rel="?next\b')


def _is_limit(response: Response, message: str) -> bool:
    """Whether the rate limit is exceeded: 429, or at GitHub a 403 with one of three signs."""
    if response.status != HTTPStatus.FORBIDDEN:
        return response.status == HTTPStatus.TOO_MANY_REQUESTS
    headers = response.headers
    return "Retry-After" in headers or headers.get("X-RateLimit-Remaining") == "0" or "rate limit" in message.lower()


def part(of: dict[str, Any], name: str) -> dict[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


class Review(CodeHost):
    """One pull or merge request."""

    def find_comment(self, is_wanted: Callable[[str], bool]) -> Comment | None:
        """The oldest comment of the token's owner whose text is wanted."""
        return next((comment for comment in self._list_own() if is_wanted(comment.body)), None)

    def upsert_comment(self, body: str, earlier: Comment | None) -> CommentResult:
        """Sets the text of a comment that `find_comment` returned; creates one if there is none."""
        if earlier is not None and earlier.body.strip() == body.strip():
            return CommentResult.CURRENT
        if earlier is not None:
            try:
                self._change(earlier.id, body)
            except Gone:  # it was deleted meanwhile
                pass
            else:
                return CommentResult.UPDATED
        self._add(body)
        return CommentResult.ADDED

    @abstractmethod
    def _list_own(self) -> Iterator[Comment]:
        """Yields the comments written by the owner of the token, oldest first."""

    @abstractmethod
    def _add(self, body: str) -> None: ...

    @abstractmethod
    def _change(self, comment: int, body: str) -> None: ...


class IssueTracker(CodeHost):
    """The issues of one repository."""

    def find_issue(self, marker: str) -> Issue | None:
        """The token owner's open issue whose text begins with the marker."""
        return next((issue for issue in self._list_open() if issue.body.startswith(marker)), None)

    def upsert_issue(self, title: str, body: str, earlier: Issue | None) -> IssueResult:
        """Sets title and text of an issue that `find_issue` returned; opens one if there is none."""
        if earlier is None:
            self._open(title, body)
            return IssueResult.OPENED
        if (earlier.title, earlier.body.strip()) == (title, body.strip()):
            return IssueResult.CURRENT
        self._edit(earlier.number, title, body, is_closed=False)
        return IssueResult.UPDATED

    def close_issue(self, body: str, earlier: Issue | None) -> IssueResult:
        """Closes an issue that `find_issue` returned, with a last text; its title stays."""
        if earlier is None:
            return IssueResult.NONE
        self._edit(earlier.number, earlier.title, body, is_closed=True)
        return IssueResult.CLOSED

    @abstractmethod
    def _list_open(self) -> Iterator[Issue]:
        """Yields the open issues with the label LABEL that the owner of the token opened."""

    @abstractmethod
    def _open(self, title: str, body: str) -> None: ...

    @abstractmethod
    def _edit(self, number: int, title: str, body: str, *, is_closed: bool) -> None: ...


class GitHubRepository(CodeHost):
    """A repository at GitHub.

    repository  OWNER/NAME
    """

    def __init__(self, base_url: str, token: Secret, repository: str) -> None:
        super().__init__(base_url, token)
        owner, _, name = repository.partition("/")
        self._repository = f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "reconciler",
        }

    def _own(self, path: str) -> Iterator[dict[str, Any]]:
        """Yields the items of a collection that the owner of the token wrote."""
        login = self._login()
        for item in self._pages(path):
            author = part(item, "user")
            # A workflow's token may not read its user: it writes as a bot, which no visitor of the repository can be.
            if author.get("login") == login if login else author.get("type") == "Bot":
                yield item

    def _login(self) -> str:
        """The login of the token's owner; empty for a workflow's token."""
        try:
            user = self._decode(self._ask("GET", "/user"))
        except Refused as refused:
            if refused.status == HTTPStatus.FORBIDDEN and _WORKFLOWS in str(refused):
                return ""
            raise
        login = user.get("login") if isinstance(user, dict) else None
        if not login or not isinstance(login, str):
            raise self._unknown_user()
        return login


class GitHub(GitHubRepository, Review):
    """A pull request at GitHub.

    repository  OWNER/NAME
    number      of the pull request
    """

    def __init__(self, base_url: str, token: Secret, repository: str, number: int) -> None:
        super().__init__(base_url, token, repository)
        self._number = number

    def _list_own(self) -> Iterator[Comment]:
        for item in self._own(f"{self._repository}/issues/{self._number}/comments"):
            if isinstance(item.get("id"), int):
                yield Comment(item["id"], str(item.get("body") or ""))

    def _add(self, body: str) -> None:
        self._ask("POST", f"{self._repository}/issues/{self._number}/comments", {"body": body})

    def _change(self, comment: int, body: str) -> None:
        self._ask("PATCH", f"{self._repository}/issues/comments/{comment}", {"body": body})


class GitHubIssues(GitHubRepository, IssueTracker):
    """The issues of a repository at GitHub."""

    def _list_open(self) -> Iterator[Issue]:
        for item in self._own(f"{self._repository}/issues?state=open&labels={LABEL}"):
            if isinstance(item.get("number"), int) and "pull_request" not in item:  # GitHub lists these too
                yield Issue(item["number"], str(item.get("title") or ""), str(item.get("body") or ""))

    def _open(self, title: str, body: str) -> None:
        self._ask("POST", f"{self._repository}/issues", {"title": title, "body": body, "labels": [LABEL]})

    def _edit(self, number: int, title: str, body: str, *, is_closed: bool) -> None:
        state = {"state": "closed", "state_reason": "completed"} if is_closed else {}
        self._ask("PATCH", f"{self._repository}/issues/{number}", {"title": title, "body": body, **state})


class GitLabProject(CodeHost):
    """A project at GitLab.

    base_url  ends with `/api/v4`
    project   number or path
    """

    def __init__(self, base_url: str, token: Secret, project: str) -> None:
        super().__init__(base_url, token)
        self._project = f"/projects/{quote(project, safe='')}"

    def _headers(self) -> dict[str, str]:
        return {"PRIVATE-TOKEN": self._token.reveal(), "User-Agent": "reconciler"}

    def _own(self, path: str) -> Iterator[dict[str, Any]]:
        """Yields the items of a collection that the owner of the token wrote."""
        user = self._decode(self._ask("GET", "/user"))
        user_id = user.get("id") if isinstance(user, dict) else None
        if user_id is None:
            raise self._unknown_user()
        for item in self._pages(path):
            if part(item, "author").get("id") == user_id:
                yield item


class GitLab(GitLabProject, Review):
    """A merge request at GitLab.

    base_url  ends with `/api/v4`
    project   number or path
    number    of the merge request
    """

    def __init__(self, base_url: str, token: Secret, project: str, number: int) -> None:
        super().__init__(base_url, token, project)
        self._notes = f"{self._project}/merge_requests/{number}/notes"

    def _list_own(self) -> Iterator[Comment]:
        for item in self._own(f"{self._notes}?sort=asc&order_by=created_at"):
            if not item.get("system") and isinstance(item.get("id"), int):
                yield Comment(item["id"], str(item.get("body") or ""))

    def _add(self, body: str) -> None:
        self._ask("POST", self._notes, {"body": body})

    def _change(self, comment: int, body: str) -> None:
        self._ask("PUT", f"{self._notes}/{comment}", {"body": body})


class GitLabIssues(GitLabProject, IssueTracker):
    """The issues of a project at GitLab."""

    def _list_open(self) -> Iterator[Issue]:
        for item in self._own(f"{self._project}/issues?state=opened&labels={LABEL}"):
            if isinstance(item.get("iid"), int):
                yield Issue(item["iid"], str(item.get("title") or ""), str(item.get("description") or ""))

    def _open(self, title: str, body: str) -> None:
        self._ask("POST", f"{self._project}/issues", {"title": title, "description": body, "labels": LABEL})

    def _edit(self, number: int, title: str, body: str, *, is_closed: bool) -> None:
        state = {"state_event": "close"} if is_closed else {}
        self._ask("PUT", f"{self._project}/issues/{number}", {"title": title, "description": body, **state})
