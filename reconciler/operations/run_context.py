"""Reads where a run takes place from the variables of GitHub Actions and GitLab CI."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.rendering.run_context import Link, RunContext
from reconciler.rendering.terminal_text import sanitize

_LINK = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.:-]*(/[A-Za-z0-9._~%/?=&#+-]*)?")
_PULL = re.compile(r"refs/pull/([0-9]+)/(merge|head)")


def read_run_context(variables: Mapping[str, str], *, environment: str = "", commit: str = "") -> RunContext:
    """The context from the environment variables that GitHub Actions and GitLab CI set in every job.

    commit  id of the planned commit; only this commit is linked
    """
    environment, commit = sanitize(environment), sanitize(commit)
    short = Link(commit[:12]) if commit else None
    if variables.get("GITHUB_ACTIONS") and variables.get("GITHUB_REPOSITORY"):
        server = variables.get("GITHUB_SERVER_URL", "https://github.com")
        site, author = f"{server}/{variables['GITHUB_REPOSITORY']}", variables.get("GITHUB_ACTOR", "")
        pull = _PULL.fullmatch(variables.get("GITHUB_REF", ""))
        review = _link(f"#{pull[1]}", f"{site}/pull/{pull[1]}") if pull else None
        number = variables.get("GITHUB_RUN_ID", "")
        run = _link(f"{variables.get('GITHUB_WORKFLOW') or 'run'} {number}", f"{site}/actions/runs/{number}")
        return RunContext(
            environment,
            _link(commit[:12], f"{site}/commit/{commit}") if commit else None,
            sanitize(author),
            review,
            run if number else None,
        )
    if variables.get("GITLAB_CI") and variables.get("CI_PROJECT_URL"):
        site = variables["CI_PROJECT_URL"]
        number, pipeline = variables.get("CI_MERGE_REQUEST_IID", ""), variables.get("CI_PIPELINE_ID", "")
        return RunContext(
            environment,
            _link(commit[:12], f"{site}/-/commit/{commit}") if commit else None,
            sanitize(variables.get("GITLAB_USER_LOGIN", "")),
            _link(f"!{number}", f"{site}/-/merge_requests/{number}") if number else None,
            _link(f"pipeline {pipeline}", variables.get("CI_PIPELINE_URL", "")) if pipeline else None,
        )
    return RunContext(environment, short)


def _link(text: str, url: str) -> Link:
    """The link; only its text if the address is not a plain web address."""
    return Link(sanitize(text), url if _LINK.fullmatch(url) else "")
