"""The request and the push of a job at both code hosts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.pipeline_events import Push, UnusableEvent, read_push, read_request
from reconciler.model.plan import Request

HEAD, BEFORE, AFTER, ZERO = "a" * 40, "b" * 40, "c" * 40, "0" * 40
GITHUB = {
    "GITHUB_REPOSITORY": "octo/infra",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_SHA": AFTER,
    "GITHUB_WORKFLOW_REF": "octo/infra/.github/workflows/deploy.yml@refs/heads/main",
}
GITLAB = {
    "CI_PROJECT_ID": "42",
    "CI_PIPELINE_SOURCE": "push",
    "CI_COMMIT_BRANCH": "main",
    "CI_COMMIT_BEFORE_SHA": BEFORE,
    "CI_COMMIT_SHA": AFTER,
}
PUSHED = {"ref": "refs/heads/main", "before": BEFORE, "after": AFTER}
PULL: dict[str, Any] = {"number": 7, "base": {"ref": "main"}, "head": {"sha": HEAD}}


def github(tmp_path: Path, event: object, **more: str) -> dict[str, str]:
    file = tmp_path / "event.json"
    file.write_text(event if isinstance(event, str) else json.dumps(event))
    return {**GITHUB, "GITHUB_EVENT_PATH": str(file), **more}


def test_a_push_has_the_former_tip_of_its_branch(tmp_path: Path) -> None:
    assert read_push(github(tmp_path, PUSHED)) == Push(
        "main", BEFORE, AFTER, ".github/workflows/deploy.yml", is_new=False
    )
    assert read_push(GITLAB) == Push("main", BEFORE, AFTER, ".gitlab-ci.yml", is_new=False)
    slashed = read_push(github(tmp_path, {**PUSHED, "ref": "refs/heads/release/1.0"}))
    assert slashed.branch == "release/1.0"


@pytest.mark.parametrize(
    ("before", "is_new"), [(ZERO, True), (None, False), ("", False), ("main", False), (1, False), ("--help", False)]
)
def test_a_former_tip_that_is_no_commit_is_unknown(tmp_path: Path, before: Any, is_new: bool) -> None:
    push = read_push(github(tmp_path, {**PUSHED, "before": before}))
    assert (push.before, push.is_new) == ("", is_new)
    if isinstance(before, str):
        push = read_push({**GITLAB, "CI_COMMIT_BEFORE_SHA": before})
        assert (push.before, push.is_new) == ("", is_new)


@pytest.mark.parametrize("path", ["ci.yml@group/pipelines", "https://example.com/ci.yml"])
def test_a_pipeline_file_of_another_project_has_no_path_in_this_one(path: str) -> None:
    assert read_push({**GITLAB, "CI_CONFIG_PATH": path}).pipeline == ""
    assert read_push({**GITLAB, "CI_CONFIG_PATH": "ops/ci.yml"}).pipeline == "ops/ci.yml"


def test_other_events_are_refused(tmp_path: Path) -> None:
    for environ in (
        {},
        github(tmp_path, PUSHED, GITHUB_EVENT_NAME="pull_request"),
        github(tmp_path, {**PUSHED, "ref": "refs/tags/v1"}),
        github(tmp_path, {**PUSHED, "after": BEFORE}),  # the event of another run
        github(tmp_path, {**PUSHED, "after": ZERO}, GITHUB_SHA=ZERO),  # a deleted branch
        github(tmp_path, "[]"),
        github(tmp_path, "{"),
        github(tmp_path, "[" * 100_000),
        {**GITHUB, "GITHUB_EVENT_PATH": str(tmp_path / "missing")},
        GITHUB,
        {**GITLAB, "CI_PIPELINE_SOURCE": "web"},
        {name: value for name, value in GITLAB.items() if name != "CI_COMMIT_BRANCH"},
        {**GITLAB, "CI_COMMIT_SHA": ""},
    ):
        with pytest.raises(UnusableEvent):
            read_push(environ)


def test_a_pipeline_of_a_request_has_its_number_branch_and_commit(tmp_path: Path) -> None:
    request = Request("octo/infra", 7, "main", HEAD)
    assert read_request(github(tmp_path, {"pull_request": PULL})) == request
    merge = {"CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_COMMIT_SHA": HEAD}
    assert read_request({**GITLAB, **merge}) == Request("42", 7, "main", HEAD)
    of_result = {**GITLAB, **merge, "CI_COMMIT_SHA": AFTER, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": HEAD}
    assert read_request(of_result) == Request("42", 7, "main", HEAD)


def test_an_incomplete_request_is_none(tmp_path: Path) -> None:
    for pull in (
        {},
        {**PULL, "number": "7"},
        {**PULL, "number": 0},
        {**PULL, "base": []},
        {**PULL, "head": {"sha": "x"}},
    ):
        assert read_request(github(tmp_path, {"pull_request": pull})) is None
    assert read_request(github(tmp_path, PUSHED)) is None
    assert read_request({}) is None
    assert read_request({**GITLAB, "CI_MERGE_REQUEST_IID": "x", "CI_COMMIT_SHA": HEAD}) is None


def test_an_event_that_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "event.json")
    for path in (tmp_path / "event.json", tmp_path):
        assert read_request({**GITHUB, "GITHUB_EVENT_PATH": str(path)}) is None
