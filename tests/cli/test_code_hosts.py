"""Which request, repository and token the environment of a pipeline names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.code_hosts import GitHub, GitLab
from reconciler.cli.terminal import code_hosts, exit_codes

ON_GITHUB = {"GITHUB_REPOSITORY": "octo/infra", "GITHUB_TOKEN": "t" * 20, "GITHUB_REF": "refs/pull/12/merge"}
ON_GITLAB = {
    "CI_API_V4_URL": "https://gitlab.example.com/api/v4",
    "CI_PROJECT_ID": "7",
    "GITLAB_TOKEN": "t" * 20,
    "CI_MERGE_REQUEST_IID": "3",
}


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets variables, after those of every code host were removed."""

    def set_variables(**variables: str) -> None:
        for name in (*ON_GITHUB, *ON_GITLAB, "GITHUB_API_URL", "GITHUB_EVENT_PATH"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_variables


def event(folder: Path, content: object) -> str:
    file = folder / "event.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


@pytest.mark.parametrize(
    ("content", "ref", "number", "expected"),
    [
        ({"pull_request": {"number": 5}}, "refs/pull/12/merge", None, 5),
        ({"issue": {"number": 6}}, "refs/heads/main", None, 6),
        ({"pull_request": {"number": 5}, "issue": {"number": 6}}, "", None, 5),
        ({"pull_request": {"number": "5"}}, "refs/pull/12/head", None, 12),
        ({}, "refs/pull/12/merge", None, 12),
        ([], "refs/pull/12/merge", None, 12),
        ("{", "refs/pull/12/merge", None, 12),
        (None, "refs/pull/12/merge", None, 12),
        ({"pull_request": {"number": 5}}, "refs/pull/12/merge", 9, 9),
        ({}, "refs/heads/main", 9, 9),
        ({}, "refs/pull/12/other", None, 0),
        ({}, "refs/heads/main", None, 0),
    ],
)
def test_the_pull_request_is_that_of_the_option_the_event_or_the_ref(
    tmp_path: Path, environ: Any, content: object, ref: str, number: int | None, expected: int
) -> None:
    path = event(tmp_path, content) if content is not None else str(tmp_path / "none")
    environ(**{**ON_GITHUB, "GITHUB_REF": ref}, GITHUB_EVENT_PATH=path)
    if expected:
        review = code_hosts.find_review(number)
        assert isinstance(review, GitHub)
        assert str(expected) in vars_of(review)
        return
    with pytest.raises(exit_codes.Stop, match="cannot determine the pull request"):
        code_hosts.find_review(number)


def vars_of(review: object) -> set[str]:
    """The texts and numbers that a client of a code host was made of."""
    names = {*getattr(review, "__dict__", {}), *getattr(type(review), "__slots__", ())}
    values = [getattr(review, name) for name in names]
    return {part for value in values for part in str(value).replace("?", "/").split("/")}


def test_the_default_address_is_that_of_github(environ: Any) -> None:
    environ(**ON_GITHUB)
    assert code_hosts._read_github_url() == "https://api.github.com"
    environ(**ON_GITHUB, GITHUB_API_URL="https://github.example.com/api/v3")
    assert code_hosts._read_github_url() == "https://github.example.com/api/v3"


def find_review() -> object:
    return code_hosts.find_review(None)


@pytest.mark.parametrize("find", [find_review, code_hosts.find_reviews, code_hosts.find_issues])
@pytest.mark.parametrize("variables", [ON_GITHUB, ON_GITLAB], ids=["github", "gitlab"])
def test_each_missing_variable_is_a_usage_error_that_names_it(
    environ: Any, find: Any, variables: dict[str, str]
) -> None:
    environ(**variables)
    assert find() is not None
    for name in variables:
        for value in ("", " "):
            environ(**{**variables, name: value})
            if name in ("GITHUB_REF", "CI_MERGE_REQUEST_IID") and find is not find_review:
                assert find() is not None  # only a comment needs a number
                continue
            with pytest.raises(exit_codes.Stop) as stop:
                find()
            is_host = name in ("CI_API_V4_URL", "GITHUB_REPOSITORY", "GITHUB_REF")  # without them there is no host
            assert stop.value.code == 64
            assert stop.value.lines[0].startswith("error: " if is_host else f"error: {name} is not set; ")


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({**ON_GITHUB, "GITHUB_REPOSITORY": "infra"}, "invalid GITHUB_REPOSITORY 'infra'; expected OWNER/NAME"),
        ({**ON_GITHUB, "GITHUB_TOKEN": "a b"}, "GITHUB_TOKEN contains whitespace"),
        ({**ON_GITHUB, "GITHUB_API_URL": "ftp://x"}, "invalid API URL: "),
        ({**ON_GITLAB, "CI_MERGE_REQUEST_IID": "x"}, "invalid CI_MERGE_REQUEST_IID 'x'; expected a number"),
        ({**ON_GITLAB, "CI_API_V4_URL": "gitlab"}, "invalid API URL: "),
        ({}, "cannot determine the pull or merge request; run in a pipeline"),
    ],
)
def test_an_invalid_variable_is_a_usage_error(environ: Any, variables: dict[str, str], problem: str) -> None:
    environ(**variables)
    with pytest.raises(exit_codes.Stop) as stop:
        code_hosts.find_review(None)
    assert (stop.value.code, stop.value.lines[0].startswith(f"error: {problem}")) == (64, True)


def test_a_merge_request_is_that_of_the_option_or_of_the_variable(environ: Any) -> None:
    environ(**ON_GITLAB)
    for number, expected in ((None, "3"), (9, "9")):
        review = code_hosts.find_review(number)
        assert isinstance(review, GitLab)
        assert expected in vars_of(review)
