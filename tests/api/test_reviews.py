"""Merged requests and their plan files, as GitHub and GitLab return them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.reviews import GitHubReviews, GitLabReviews, MergedRequest, Reviews
from reconciler.engine.ports import Refused
from reconciler.model.value import Secret
from tests.cli.code_hosts import TOKEN
from tests.examples.forge import PROJECT, REPOSITORY, Forge, Run

HEAD, MERGE, SQUASH = "a" * 40, "b" * 40, "c" * 40
SECRET = Secret(TOKEN, "env:TOKEN")


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    forge = Forge(artifacts=tmp_path)
    with forge:
        yield forge


def github(forge: Forge) -> Reviews:
    return GitHubReviews(forge.url, SECRET, REPOSITORY)


def gitlab(forge: Forge) -> Reviews:
    return GitLabReviews(f"{forge.url}/api/v4", SECRET, PROJECT)


def keep(forge: Forge, *runs: int) -> MergedRequest:
    for run in runs:
        folder = forge.artifacts / str(run) / "plan"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text(str(run))
        forge.runs.append(Run(run, HEAD))
    return MergedRequest("12", 12, "main", HEAD, (MERGE,))


@pytest.mark.parametrize("host", [github, gitlab])
def test_plan_files_of_successful_runs_are_read_newest_first(forge: Forge, host: Any) -> None:
    request = keep(forge, 3, 20, 100)
    forge.runs[1].result = "failure"
    assert list(host(forge).read_plans(request, "plan.json")) == [b"100", b"3"]
    assert [found for found in host(forge).read_plans(request, "plan-other.json") if isinstance(found, bytes)] == []


@pytest.mark.parametrize("host", [github, gitlab])
def test_the_newest_twenty_runs_are_read(forge: Forge, host: Any) -> None:
    request = keep(forge, *range(1, 31))
    assert len(list(host(forge).read_plans(request, "plan.json"))) == 20


def test_open_pull_requests_and_those_of_forks_are_not_found_as_merged(forge: Forge) -> None:
    change = forge.open(HEAD)
    assert list(github(forge).find_merged(HEAD)) == []
    change.state, change.merge, change.merged = "merged", MERGE, [MERGE]
    assert list(github(forge).find_merged(MERGE)) == [MergedRequest("#12", 12, "main", HEAD, (MERGE,))]
    assert list(GitHubReviews(forge.url, SECRET, "octo/infra").find_merged("d" * 40)) == []
    pulls = f"GET /repos/{REPOSITORY}/commits/{SQUASH}/pulls"
    foreign = {"number": 1, "merged_at": "x", "base": {"ref": "main", "repo": {"full_name": "alice/infra"}}}
    forge.instead[pulls] = (200, {}, [foreign, {"number": "1", "merged_at": "x"}, {}, 7])
    forge.requests.clear()
    assert list(github(forge).find_merged(SQUASH)) == []


def test_a_merge_request_is_merged_as_its_merge_and_its_squashed_commit_or_else_as_its_head(forge: Forge) -> None:
    change = forge.open(HEAD)
    assert list(gitlab(forge).find_merged(HEAD)) == []
    change.state, change.merge, change.squash, change.merged = "merged", MERGE, SQUASH, [MERGE, SQUASH]
    assert list(gitlab(forge).find_merged(MERGE)) == [MergedRequest("!12", 12, "main", HEAD, (MERGE, SQUASH))]
    change.merge, change.squash, change.merged = None, None, [HEAD]
    assert list(gitlab(forge).find_merged(HEAD)) == [MergedRequest("!12", 12, "main", HEAD, (HEAD,))]


@pytest.mark.parametrize(
    "location", ["http://example.com/x", "https://user@example.com/x", "file:///etc/passwd", "", "//example.com", "x"]
)
def test_a_redirect_to_an_unsafe_address_is_not_followed(forge: Forge, location: str) -> None:
    request = keep(forge, 1)
    forge.location = location
    with pytest.raises(Refused, match="redirected to"):
        list(github(forge).read_plans(request, "plan.json"))
    assert forge.stored == []


def test_a_second_redirect_is_not_followed(forge: Forge) -> None:
    request = keep(forge, 1)
    forge.location = f"{forge.url}/repos/{REPOSITORY}/actions/artifacts/1/zip"
    with pytest.raises(Refused, match="the redirect was not followed"):
        list(github(forge).read_plans(request, "plan.json"))


@pytest.mark.parametrize("answer", [{}, "text", {"workflow_runs": {}}, [1]])
def test_a_response_of_another_form_is_refused(forge: Forge, answer: Any) -> None:
    request = keep(forge, 1)
    forge.answers["workflow_runs"] = answer
    with pytest.raises(Refused, match="is not a list"):
        list(github(forge).read_plans(request, "plan.json"))
