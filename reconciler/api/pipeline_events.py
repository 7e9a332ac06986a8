"""The event that started the pipeline of this process, as GitHub and GitLab describe it to their jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from reconciler.model.plan import Request

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_LARGEST = 32 * 2**20  # bytes of an event; GitHub sends at most 25 MB
_GITHUB_PIPELINE = ".github/workflows/apply.yml"
_GITLAB_PIPELINE = ".gitlab-ci.yml"


class UnusableEvent(ValueError):
    """The pipeline runs on another event than the command is for, or the event cannot be read."""


class Push(Struct, frozen=True):
    """A push to a branch.

    branch    its name
    before    the commit at its tip before the push; empty: there was none, or it is unknown
    after     the commit at its tip now
    pipeline  path of the file with the pipeline; empty: it is in another repository
    is_new    whether the push created the branch
    """

    branch: str
    before: str
    after: str
    pipeline: str
    is_new: bool


def read_request(environ: Mapping[str, str]) -> Request | None:
    """The pull or merge request that the pipeline is for; None if it is for none."""
    if environ.get("CI_MERGE_REQUEST_IID"):
        iid, project = environ["CI_MERGE_REQUEST_IID"], environ.get("CI_PROJECT_ID", "")
        # In a pipeline for merged results the job's commit is the merge.
        head = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environ.get("CI_COMMIT_SHA", "")
        number = int(iid) if re.fullmatch(r"[0-9]{1,12}", iid) else 0
        return _request(project, number, environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"), head)
    if not environ.get("GITHUB_REPOSITORY"):
        return None
    pull = _part(_read_event(environ), "pull_request")
    return _request(
        environ["GITHUB_REPOSITORY"], pull.get("number"), _part(pull, "base").get("ref"), _part(pull, "head").get("sha")
    )


def read_push(environ: Mapping[str, str]) -> Push:
    """The push that the pipeline runs on. Raises UnusableEvent."""
    if environ.get("CI_PROJECT_ID"):
        branch, after = environ.get("CI_COMMIT_BRANCH", ""), environ.get("CI_COMMIT_SHA", "")
        if environ.get("CI_PIPELINE_SOURCE") != "push" or not branch:
            raise UnusableEvent("this pipeline does not run on a push to a branch (CI_PIPELINE_SOURCE)")
        pipeline = environ.get("CI_CONFIG_PATH") or _GITLAB_PIPELINE
        is_elsewhere = "@" in pipeline or "://" in pipeline
        return _push(branch, environ.get("CI_COMMIT_BEFORE_SHA"), after, "" if is_elsewhere else pipeline)
    if environ.get("GITHUB_REPOSITORY"):
        event = _read_event(environ)
        ref, after = event.get("ref"), environ.get("GITHUB_SHA", "")
        if environ.get("GITHUB_EVENT_NAME") != "push" or not str(ref).startswith("refs/heads/"):
            raise UnusableEvent("this workflow does not run on a push to a branch (GITHUB_EVENT_NAME)")
        if event.get("after") != after:
            raise UnusableEvent("the event in GITHUB_EVENT_PATH is not about the commit in GITHUB_SHA")
        workflow = environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
        pipeline = workflow.removeprefix(f"{environ['GITHUB_REPOSITORY']}/") or _GITHUB_PIPELINE
        return _push(str(ref).removeprefix("refs/heads/"), event.get("before"), after, pipeline)
    raise UnusableEvent("--reviewed runs in a pipeline of GitHub or GitLab only, on a push to the default branch")


def _push(branch: str, before: object, after: str, pipeline: str) -> Push:
    if not _is_commit(after):
        raise UnusableEvent("the pipeline does not say which commit was pushed")
    is_new = isinstance(before, str) and bool(before) and not before.strip("0")
    return Push(branch, str(before) if _is_commit(before) else "", after, pipeline, is_new)


def _request(repository: str, number: object, base: object, head: object) -> Request | None:
    if repository and isinstance(number, int) and number and isinstance(base, str) and base and _is_commit(head):
        return Request(repository, number, base, str(head))
    return None


def _is_commit(name: object) -> bool:
    """Whether the text is the id of a commit; a host says with zeros that there is none."""
    return isinstance(name, str) and _COMMIT.fullmatch(name) is not None and bool(name.strip("0"))


def _read_event(environ: Mapping[str, str]) -> dict[str, Any]:
    """The event of a workflow; empty if it cannot be read."""
    path = environ.get("GITHUB_EVENT_PATH")
    if not path or not Path(path).is_file():  # a FIFO would block
        return {}
    try:
        with Path(path).open("rb") as file:
            event = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}
