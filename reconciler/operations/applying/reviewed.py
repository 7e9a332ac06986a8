"""Finds what was reviewed of the commits that a push merged: `apply --reviewed`.

The plan file that the pipeline of a request kept authorizes nothing, since anyone who can push a branch can write it.
It can only narrow a plan of the merged checkout: of a change that is not in it, nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler.api.artifacts import UnusableArchive
from reconciler.api.pipeline_events import Push, UnusableEvent, read_push
from reconciler.api.reviews import MergedRequest, Reviews
from reconciler.model.plan import Plan, Request
from reconciler.model.problem import Rejected
from reconciler.model.value import digest
from reconciler.operations.applying import plan_files
from reconciler.operations.errors import NotReviewed, UnusableSetting
from reconciler.operations.opening.git import Git, GitError, find_worktree, open_git
from reconciler.operations.opening.plan_key import PLAN_KEY, find_plan_key
from reconciler.planning.reviewed_changes import digest_changes, find_unreviewed

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject

_GIT_TIMEOUT = 60.0  # seconds
_MOST_COMMITS = 100  # of the branch itself whose requests are looked up, newest first: GitHub rebases at most as many
_FETCH = "check out the whole history: `fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` in GitLab"


class FirstPush(Struct, frozen=True):
    """The push that adds the pipeline: no request could be reviewed before."""

    note: str


class Reviewed(Struct, frozen=True):
    """What was reviewed of a push.

    base     the commit at the tip of the branch before the push
    names    the merged requests, such as `#12`
    changes  of each reviewed plan, the result of `digest_changes`
    missing  why there is no reviewed plan of a request
    digest   identifies the push and the stack: the same for a second run of the pipeline
    unread   the sources of secrets that a reviewed plan did not read
    """

    base: str
    names: tuple[str, ...]
    changes: tuple[Mapping[str, str], ...]
    missing: tuple[str, ...]
    digest: str
    unread: frozenset[str] = frozenset()

    def find_unreviewed(self, plan: Plan, *, has_begun: bool) -> list[str]:
        """The addresses with changes or calls that are in none of the reviewed plans.

        has_begun  an earlier run of the pipeline began to apply them, and did not end
        """
        found = set(digest_changes(plan))
        for changes in self.changes:
            found &= set(find_unreviewed(plan, changes, has_begun=has_begun))
        return sorted(found)


class Merged(Struct, frozen=True):
    """The requests that a push merged, the oldest first."""

    push: Push
    requests: tuple[MergedRequest, ...]


def find_merged(folder: Path, environ: Mapping[str, str], reviews: Reviews) -> Merged | FirstPush:
    """What the push merged that this pipeline runs on. Raises NotReviewed or a Failure.

    folder  in the checkout
    """
    try:
        push = read_push(environ)
    except UnusableEvent as error:
        raise NotReviewed(str(error)) from None
    with _open_checkout(folder, environ) as git:
        _check_checkout(git, push)
        requests = _find_requests(reviews, push, git)
        if not requests and (push.is_new or (push.before and _adds_pipeline(git, push))):
            added = push.pipeline or "the pipeline"
            return FirstPush(f"{push.after} adds {added}; requests will be applied from now on")
    if not requests:
        raise NotReviewed(
            f"{push.after} was pushed to {push.branch}, not merged, so that no plan of it was reviewed; "
            "revert it, and open a pull or merge request with the change"
        )
    if not push.before:
        raise NotReviewed(
            f"the commit at the tip of {push.branch} before this push is unknown, so that nothing tells which rules "
            "were in effect; open another request"
        )
    return Merged(push, tuple(requests))


def find_reviewed(project: OpenProject, reviews: Reviews, merged: Merged, file: str) -> Reviewed:
    """What was reviewed of merged requests. Raises UnusableSetting or a Failure.

    file  the plan file that the pipelines of requests keep, relative to the folder in which they run
    """
    if find_plan_key(project.runtime.environ) is None:
        raise UnusableSetting(f"{PLAN_KEY} is not set; --reviewed accepts signed plans only")
    changes, missing, unread = [], [], set[str]()
    for request in merged.requests:
        plan, reason = _find_plan(project, reviews, request, file)
        if plan is not None:
            changes.append(digest_changes(plan))
            unread.update(plan.unread)
        else:
            missing.append(f"{request.name}: {reason}")
    names = tuple(request.name for request in merged.requests)
    identity = _identify(project, reviews, merged.push)
    return Reviewed(merged.push.before, names, tuple(changes), tuple(missing), identity, frozenset(unread))


def _identify(project: OpenProject, reviews: Reviews, push: Push) -> str:
    return f"reviewed:{push.after}:{digest([reviews.repository, push.branch, project.config.stack])}"


def _find_requests(reviews: Reviews, push: Push, git: Git) -> list[MergedRequest]:
    """The requests that this push merged into its branch, the oldest first."""
    found: dict[int, MergedRequest] = {}
    pushed = set(_list_pushed(git, push))
    for commit in _list_pushed(git, push, "--first-parent", f"--max-count={_MOST_COMMITS}"):
        for request in reviews.find_merged(commit):
            if request.base == push.branch and not pushed.isdisjoint(request.merged_as):
                found.setdefault(request.number, request)
    return list(reversed(found.values()))


def _find_plan(project: OpenProject, reviews: Reviews, request: MergedRequest, file: str) -> tuple[Plan | None, str]:
    """The newest plan that the pipeline of a request kept for what was merged; or why there is none."""
    expected = Request(reviews.repository, request.number, request.base, request.head)
    first_reason = ""
    for content in reviews.read_plans(request, file):
        try:
            plan = _read_plan(content, file, project.runtime.environ)
        except Rejected as rejected:
            reason = str(rejected.problems[0])
        except UnusableArchive as error:
            reason = f"the artifact {error}"
        else:
            reason = next(_find_differences(plan, expected, project), "")
            if not reason:
                return plan, ""
        first_reason = first_reason or reason
    missing = (
        "its pipeline kept no plan, or the plan expired (for a fork, and without secrets, plans are for review only)"
    )
    return None, first_reason or missing


def _read_plan(content: bytes | UnusableArchive, file: str, environ: Mapping[str, str]) -> Plan:
    if isinstance(content, UnusableArchive):
        raise content
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UnusableArchive(f"has {file}, which is not UTF-8 text") from None
    return plan_files.read_plan(text, file, environ)[0]


def _find_differences(plan: Plan, expected: Request, project: OpenProject) -> Iterator[str]:
    """Yields what shows that a plan is not the reviewed one of the request."""
    if plan.request is None:
        yield "its plan does not say for which request it was created"
    elif plan.request != expected:
        of = plan.request
        yield (
            f"its plan is for request {of.number} of {of.repository} into {of.base} at {of.head[:12]}, "
            f"not for what was merged: request {expected.number} into {expected.base} at {expected.head[:12]}"
        )
    if plan.snapshot_time:
        yield "its plan was created from a snapshot, for review only"
    if plan.stack != project.config.stack:
        yield f"its plan is for the stack {plan.stack}, not {project.config.stack}"
    if plan.account != project.account_name:
        yield f"its plan is for the account {plan.account}, not {project.account_name}"


@contextmanager
def _open_checkout(folder: Path, environ: Mapping[str, str]) -> Iterator[Git]:
    """Git on the checkout that the pipeline runs in. Raises NotReviewed."""
    try:
        worktree = find_worktree(folder, environ)
        if worktree is None:
            raise NotReviewed(f"{folder.resolve()} is in no Git repository; --reviewed runs in a checkout")
        with open_git(worktree, environ, _GIT_TIMEOUT) as git:
            yield git
    except GitError as error:
        raise NotReviewed(f"Git cannot read the checkout: {error}", remedy=error.remedy or _FETCH) from error


def _check_checkout(git: Git, push: Push) -> None:
    """Raises NotReviewed if the checkout is not the pushed commit, or does not know the branch before the push."""
    head = git.run("rev-parse", "--verify", "HEAD").decode().strip()
    if head != push.after:
        raise NotReviewed(f"the checkout is at {head}, not at {push.after}, which was pushed")
    if not push.before:
        return
    if not _exists(git, f"{push.before}^{{commit}}"):
        text = f"{push.before}, the tip of {push.branch} before this push, is not in the checkout"
        raise NotReviewed(text, remedy=_FETCH)
    if int(git.run("rev-list", "--count", f"{push.after}..{push.before}")):
        raise NotReviewed(
            f"the push replaced the history of {push.branch}: it does not contain {push.before}, its tip before; "
            "merge a request on top of that commit"
        )


def _list_pushed(git: Git, push: Push, *options: str) -> list[str]:
    """The commits that the push added to the branch, the newest first. `options`: of `git rev-list`."""
    if not push.before:
        return [push.after]
    return git.run("rev-list", "--topo-order", *options, f"{push.before}..{push.after}").decode().split()


def _adds_pipeline(git: Git, push: Push) -> bool:
    """Whether the branch did not have the pipeline before the push."""
    return bool(push.pipeline) and not _exists(git, f"{push.before}:{push.pipeline}")


def _exists(git: Git, name: str) -> bool:
    try:
        git.run("cat-file", "-e", name)
    except GitError:
        return False
    return True
