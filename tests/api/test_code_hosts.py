"""Comments and issues at emulated code hosts: ownership, requests, and failures with their remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.api import code_hosts
from reconciler.api.code_hosts import (
    CommentResult,
    GitHub,
    GitHubIssues,
    GitLab,
    GitLabIssues,
    IssueResult,
    IssueTracker,
    Review,
)
from reconciler.engine.ports import Failure, Gone, Refused, Transient
from reconciler.model.value import Secret
from tests.cli.code_hosts import ALICE, TOKEN, US, CodeHost

SECRET = Secret(TOKEN, "test")
MARK = "<!-- marker -->"


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with CodeHost() as running:
        yield running


def github(host: CodeHost) -> Review:
    return GitHub(host.url, SECRET, "octo/infra", 12)


def gitlab(host: CodeHost) -> Review:
    return GitLab(f"{host.url}/api/v4", SECRET, "group/infra", 7)


def github_issues(host: CodeHost) -> IssueTracker:
    return GitHubIssues(host.url, SECRET, "octo/infra")


def gitlab_issues(host: CodeHost) -> IssueTracker:
    return GitLabIssues(f"{host.url}/api/v4", SECRET, "group/infra")


each_review = pytest.mark.parametrize("review", [github, gitlab])
each_tracker = pytest.mark.parametrize("tracker", [github_issues, gitlab_issues])
Opening = Callable[[CodeHost], Any]

COMMENTS: dict[Opening, str] = {
    github: "/repos/octo/infra/issues/12/comments",
    gitlab: "/projects/group%2Finfra/merge_requests/7/notes",
}


def upsert(review: Review, body: str) -> CommentResult:
    return review.upsert_comment(body, review.find_comment(lambda text: text.startswith(MARK)))


@each_review
def test_a_comment_is_added_found_and_updated(host: CodeHost, review: Opening) -> None:
    assert upsert(review(host), f"{MARK} one") is CommentResult.ADDED
    assert upsert(review(host), f"{MARK} one") is CommentResult.CURRENT
    assert upsert(review(host), f"\n{MARK} one ") is CommentResult.CURRENT
    assert upsert(review(host), f"{MARK} two") is CommentResult.UPDATED
    assert host.bodies == [f"{MARK} two"]
    prefix = "" if review is github else "/api/v4"
    where = prefix + COMMENTS[review]
    changed = "/repos/octo/infra/issues/comments/1" if review is github else f"{where}/1"
    assert host.changes == [("POST", where), ("PATCH" if review is github else "PUT", changed)]


@each_review
def test_the_first_own_comment_that_starts_with_the_marker_is_updated(host: CodeHost, review: Opening) -> None:
    host.say(ALICE, f"{MARK} of another user")
    host.say(US, f"quoted: {MARK}")
    host.comments.append({"id": "4", "body": f"{MARK} odd", "user": US, "author": US})
    host.comments.append({"id": 8, "body": None, "user": US, "author": US})
    host.say(US, f"{MARK} old")
    host.say(US, f"{MARK} later")
    before = host.bodies
    assert upsert(review(host), f"{MARK} new") is CommentResult.UPDATED
    assert host.bodies == [*before[:4], f"{MARK} new", f"{MARK} later"]


def test_system_notes_of_gitlab_are_ignored(host: CodeHost) -> None:
    host.say(US, f"{MARK} changed the title")
    host.comments[0]["system"] = True
    assert upsert(gitlab(host), f"{MARK} new") is CommentResult.ADDED
    assert host.bodies == [f"{MARK} changed the title", f"{MARK} new"]


@each_review
def test_a_comment_deleted_during_its_update_is_added_again(host: CodeHost, review: Opening) -> None:
    host.say(US, f"{MARK} old")
    host.vanishing = True
    assert upsert(review(host), f"{MARK} new") is CommentResult.ADDED
    assert host.bodies == [f"{MARK} old", f"{MARK} new"]


@each_tracker
def test_an_issue_is_opened_updated_and_closed(host: CodeHost, tracker: Opening) -> None:
    issues = tracker(host)
    assert issues.close_issue(MARK, issues.find_issue(MARK)) is IssueResult.NONE
    assert host.issues == []
    assert issues.upsert_issue("t", f"{MARK} one", issues.find_issue(MARK)) is IssueResult.OPENED
    assert issues.upsert_issue("t", f"{MARK} one", issues.find_issue(MARK)) is IssueResult.CURRENT
    assert issues.upsert_issue("other", f"{MARK} one", issues.find_issue(MARK)) is IssueResult.UPDATED
    assert issues.upsert_issue("other", f"{MARK} two", issues.find_issue(MARK)) is IssueResult.UPDATED
    assert [(issue["title"], issue["body"], issue["state"]) for issue in host.issues] == [
        ("other", f"{MARK} two", "open")
    ]
    assert issues.close_issue(f"{MARK} three", issues.find_issue(MARK)) is IssueResult.CLOSED
    assert [(issue["title"], issue["body"], issue["state"]) for issue in host.issues] == [
        ("other", f"{MARK} three", "closed")
    ]
    assert issues.upsert_issue("t", f"{MARK} one", issues.find_issue(MARK)) is IssueResult.OPENED
    assert len(host.issues) == 2


@each_tracker
def test_issues_of_other_users_and_without_the_marker_are_unchanged(host: CodeHost, tracker: Opening) -> None:
    def issue(author: dict[str, Any], body: str | None, **more: Any) -> dict[str, Any]:
        number = len(host.issues) + 1
        fields = {"number": number, "iid": number, "title": "t", "body": body, "description": body}
        return {**fields, "user": author, "author": author, "state": "open", **more}

    host.issues.append(issue(ALICE, f"{MARK} of another user"))
    host.issues.append(issue(US, f"quoted: {MARK}"))
    host.issues.append(issue(US, None))
    host.issues.append(issue(US, f"{MARK} odd", number="4", iid=None))
    if tracker is github_issues:
        host.issues.append(issue(US, f"{MARK} a pull request", pull_request={}))
    before = [dict(issue) for issue in host.issues]
    assert tracker(host).close_issue(MARK, tracker(host).find_issue(MARK)) is IssueResult.NONE
    assert tracker(host).upsert_issue("t", f"{MARK} new", tracker(host).find_issue(MARK)) is IssueResult.OPENED
    assert host.issues[:-1] == before


@each_tracker
def test_a_missing_title_of_an_issue_equals_an_empty_one(host: CodeHost, tracker: Opening) -> None:
    fields = {"number": 1, "iid": 1, "title": None, "body": f"{MARK} x", "description": f"{MARK} x", "state": "open"}
    host.issues.append({**fields, "user": US, "author": US})
    assert tracker(host).upsert_issue("", f"{MARK} x", tracker(host).find_issue(MARK)) is IssueResult.CURRENT


def test_a_workflow_token_updates_comments_of_bots(host: CodeHost) -> None:
    host.me = None
    host.say(ALICE, f"{MARK} of another user")
    assert upsert(github(host), f"{MARK} one") is CommentResult.ADDED
    assert upsert(github(host), f"{MARK} two") is CommentResult.UPDATED
    assert host.bodies == [f"{MARK} of another user", f"{MARK} two"]


@each_review
@pytest.mark.parametrize("user", [{}, {"login": "", "id": None}, {"login": 7}, ["x"]], ids=str)
def test_a_token_without_a_known_owner_is_refused(host: CodeHost, review: Opening, user: Any) -> None:
    host.instead["GET /user"] = (200, {}, user)
    with pytest.raises(Refused, match="does not name the owner of the token"):
        upsert(review(host), MARK)
    assert host.changes == []


@each_review
@pytest.mark.parametrize("author", [None, "deployer", {}, {"login": None, "id": None}], ids=str)
def test_a_comment_without_a_known_author_is_not_updated(host: CodeHost, review: Opening, author: Any) -> None:
    host.comments.append({"id": 1, "body": f"{MARK} x", "user": author, "author": author})
    assert upsert(review(host), f"{MARK} y") is CommentResult.ADDED


@each_review
def test_comments_are_read_up_to_the_last_page(
    host: CodeHost, review: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.largest_page = 2
    for number in range(5):
        host.say(ALICE, f"comment {number}")
    host.say(US, f"{MARK} old")
    monkeypatch.setattr(code_hosts, "_PAGES", 3)
    assert upsert(review(host), f"{MARK} new") is CommentResult.UPDATED
    assert [method for method, _ in host.asked].count("GET") == 1 + 3  # the user, and three pages
    monkeypatch.setattr(code_hosts, "_PAGES", 2)
    with pytest.raises(Refused, match="lists more than 200 items"):
        upsert(review(host), f"{MARK} new")


@pytest.mark.parametrize(
    ("link", "pages"),
    [
        ('<x>; rel="next"', 2),
        ("<x>; rel=next", 2),
        ('<x>; rel="prev", <y>; rel="next"', 2),
        ('<x>; rel="last"', 1),
        ("", 1),
    ],
)
def test_the_link_header_decides_about_a_next_page(host: CodeHost, link: str, pages: int) -> None:
    """An empty page ends the list, whatever its link."""
    path = "/comments"
    host.instead[f"GET {path}"] = (200, {"Link": link}, [{"id": 1, "body": "x", "user": ALICE}, "odd"])
    targets: list[str] = []
    answer = host.answer

    def answer_second(method: str, target: str, headers: Any, body: Any) -> Any:
        targets.append(target)
        if "&page=2" in target:
            return 200, {"Link": link}, []
        return answer(method, target, headers, body)

    host.answer = answer_second  # type: ignore[method-assign]
    upsert(github(host), MARK)
    pages_read = [target for target in targets if "per_page" in target]
    assert pages_read == [
        f"/repos/octo/infra/issues/12/comments?per_page=100&page={number + 1}" for number in range(pages)
    ]


FAILURES: list[tuple[int, dict[str, str], Any, type[Failure], str]] = [
    (401, {}, {"message": "Bad"}, Refused, ": Bad; check the token and its permissions"),
    (403, {}, {"message": "No"}, Refused, ": No; check the token and its permissions"),
    (403, {"Retry-After": "9"}, {"message": "No"}, Transient, ": No; run it again"),
    (403, {"X-RateLimit-Remaining": "0"}, {"message": "No"}, Transient, ": No; run it again"),
    (403, {"X-RateLimit-Remaining": "1"}, {"message": "No"}, Refused, ": No; check the token and its permissions"),
    (403, {}, {"message": "API Rate Limit exceeded"}, Transient, ": API Rate Limit exceeded; run it again"),
    (404, {}, {}, Refused, "; check the repository, the number, and what the token can read"),
    (429, {}, {}, Transient, "; run it again"),
    (499, {}, {"error": "a", "error_description": "b"}, Refused, ": a: b"),
    (500, {}, ["x"], Transient, "; run it again"),
    (503, {"Retry-After": "9"}, None, Transient, "; run it again"),
    (300, {}, {}, Refused, "; the redirect was not followed, and the token was not sent to its target"),
    (308, {}, {}, Refused, "; the redirect was not followed, and the token was not sent to its target"),
    (400, {"X-RateLimit-Remaining": "0"}, {"message": "rate limit"}, Refused, ": rate limit"),
    (422, {}, {"message": f"{TOKEN} is bad"}, Refused, ": (secret) is bad"),
    (422, {}, {"message": "x" * 190 + TOKEN}, Refused, f": {'x' * 190}(secret)"),
]


@pytest.mark.parametrize(("status", "headers", "body", "kind", "text"), FAILURES)
def test_a_failure_of_a_code_host_has_its_remedy(
    host: CodeHost, status: int, headers: dict[str, str], body: Any, kind: type[Failure], text: str
) -> None:
    host.instead["GET /user"] = (status, headers, body)
    with pytest.raises(Failure) as failed:
        upsert(github(host), MARK)
    assert str(failed.value) == f"{host.url} returned {status} for GET /user{text}"
    assert type(failed.value) is kind
    assert TOKEN not in str(failed.value)


def test_an_issue_deleted_before_its_update_is_reported_as_missing(host: CodeHost) -> None:
    github_issues(host).upsert_issue("t", MARK, github_issues(host).find_issue(MARK))
    host.instead["PATCH /issues/1"] = (404, {}, {"message": "Not Found"})
    with pytest.raises(Gone, match="returned 404 for PATCH /repos/octo/infra/issues/1: Not Found") as gone:
        github_issues(host).upsert_issue("t", f"{MARK} x", github_issues(host).find_issue(MARK))
    assert gone.value.status == 404


@pytest.mark.parametrize("body", [{"a": 1}, "x", None])
def test_a_response_without_a_list_of_comments_is_refused(host: CodeHost, body: Any) -> None:
    host.instead["GET /comments"] = (200, {}, body)
    with pytest.raises(Refused, match="is not a list"):
        upsert(github(host), MARK)
    assert host.changes == []


def test_an_unreachable_code_host_is_transient() -> None:
    with CodeHost() as host:
        review = github(host)
    with pytest.raises(Transient, match=r"cannot reach .*; run it again"):
        upsert(review, MARK)
