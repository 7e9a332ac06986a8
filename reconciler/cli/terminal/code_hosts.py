"""The code host of a CI job, from its environment variables: one request, merged requests, and the issues."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli.terminal import exit_codes, output

if TYPE_CHECKING:
    from reconciler.api.code_hosts import IssueTracker, Review
    from reconciler.api.reviews import Reviews
    from reconciler.model.value import Secret

_PULL = re.compile(r"refs/pull/([0-9]+)/(?:merge|head)")
_DEFAULT_URL = "https://api.github.com"


def find_review(number: int | None) -> Review:
    """The pull or merge request that environment variables name. Raises Stop if they name none."""
    from reconciler.api.code_hosts import GitHub, GitLab

    try:
        if os.environ.get("CI_API_V4_URL"):
            project = _read_project()
            iid = number or _parse_number(
                _require_variable("CI_MERGE_REQUEST_IID", "run the job in a merge request pipeline, or pass --number")
            )
            return GitLab(os.environ["CI_API_V4_URL"], _read_token("GITLAB_TOKEN", "write comments"), project, iid)
        if os.environ.get("GITHUB_REPOSITORY"):
            repository = _read_repository()
            token = _read_token("GITHUB_TOKEN", "write comments")
            return GitHub(_read_github_url(), token, repository, number or _find_pull_request())
    except ValueError as error:
        raise _usage_error(f"invalid API URL: {error}") from None
    raise _usage_error(
        "cannot determine the pull or merge request; run in a pipeline, or set GITHUB_REPOSITORY and GITHUB_TOKEN, "
        "or CI_API_V4_URL, CI_PROJECT_ID and GITLAB_TOKEN, and pass --number"
    )


def find_reviews() -> Reviews:
    """The requests of the repository that environment variables name. Raises Stop if they name none."""
    from reconciler.api.reviews import GitHubReviews, GitLabReviews

    try:
        if os.environ.get("CI_API_V4_URL"):
            token = _read_token("GITLAB_TOKEN", "read pipelines")
            return GitLabReviews(os.environ["CI_API_V4_URL"], token, _read_project())
        if os.environ.get("GITHUB_REPOSITORY"):
            token = _read_token("GITHUB_TOKEN", "read pull requests and actions")
            return GitHubReviews(_read_github_url(), token, _read_repository())
    except ValueError as error:
        raise _usage_error(f"invalid API URL: {error}") from None
    raise _usage_error("--reviewed runs in a pipeline of GitHub or GitLab only, on a push to the default branch")


def find_issues() -> IssueTracker:
    """The issues of the repository that environment variables name. Raises Stop if they name none."""
    from reconciler.api.code_hosts import GitHubIssues, GitLabIssues

    try:
        if os.environ.get("CI_API_V4_URL"):
            project = _read_project()
            return GitLabIssues(os.environ["CI_API_V4_URL"], _read_token("GITLAB_TOKEN", "write issues"), project)
        if os.environ.get("GITHUB_REPOSITORY"):
            repository = _read_repository()
            return GitHubIssues(_read_github_url(), _read_token("GITHUB_TOKEN", "write issues"), repository)
    except ValueError as error:
        raise _usage_error(f"invalid API URL: {error}") from None
    raise _usage_error(
        "cannot determine the repository for --issue; run in a pipeline, or set GITHUB_REPOSITORY and GITHUB_TOKEN, "
        "or CI_API_V4_URL, CI_PROJECT_ID and GITLAB_TOKEN"
    )


def _read_project() -> str:
    return _require_variable("CI_PROJECT_ID", "GitLab sets it in every job")


def _read_repository() -> str:
    repository = os.environ["GITHUB_REPOSITORY"]
    if not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", repository):
        raise _usage_error(f"invalid GITHUB_REPOSITORY {repository!r}; expected OWNER/NAME")
    return repository


def _read_github_url() -> str:
    return os.environ.get("GITHUB_API_URL") or _DEFAULT_URL


def _find_pull_request() -> int:
    """The number from the event that started the workflow, or from the ref on which the workflow runs."""
    file = os.environ.get("GITHUB_EVENT_PATH")
    if file and Path(file).is_file():
        try:
            event = json.loads(output.read_file(Path(file)))
        except ValueError:
            event = {}
        for part in ("pull_request", "issue"):
            subject = event.get(part) if isinstance(event, dict) else None
            if isinstance(subject, dict) and isinstance(subject.get("number"), int):
                return int(subject["number"])
    if ref := _PULL.fullmatch(os.environ.get("GITHUB_REF", "")):
        return int(ref[1])
    raise _usage_error(
        "cannot determine the pull request from GITHUB_EVENT_PATH or GITHUB_REF; "
        "run on the event pull_request, or pass --number"
    )


def _read_token(name: str, purpose: str) -> Secret:
    from reconciler.model.value import Secret
    from reconciler.project.settings.connection import is_key

    token = _require_variable(name, f"set it to a token that may {purpose}")
    if not is_key(token):
        raise _usage_error(f"{name} contains whitespace or other invalid characters; set it to the token alone")
    return Secret(token, f"env:{name}")


def _require_variable(name: str, remedy: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise _usage_error(f"{name} is not set; {remedy}")
    return value


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise _usage_error(f"invalid CI_MERGE_REQUEST_IID {text!r}; expected a number")
    return int(text)


def _usage_error(what: str) -> exit_codes.Stop:
    return exit_codes.Stop(exit_codes.USAGE, f"error: {what}")
