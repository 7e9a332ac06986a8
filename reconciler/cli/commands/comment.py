"""`reconciler comment`: posts a plan as one comment on a pull or merge request, and updates it in later runs."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, formats, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.api.code_hosts import Review
    from reconciler.model.value import Secret

_PULL = re.compile(r"refs/pull/([0-9]+)/(?:merge|head)")


@click.command(
    cls=Command,
    examples="""
        reconciler plan --out plan.json && reconciler comment --plan plan.json
        reconciler plan --format json | reconciler comment --plan -
        reconciler comment --plan plan.json --number 12
    """,
)
@click.option("--plan", "file", metavar="FILE", required=True, help="Plan file; - is standard input.")
@click.option(
    "--number",
    metavar="N",
    type=click.IntRange(1),
    help="Number of the pull or merge request. [default: from the CI environment]",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only errors.")
def command(file: str, number: int | None, quiet: bool) -> int:
    """Post a plan as a comment on a pull or merge request, or update the comment of an earlier run.

    On GitHub, reads GITHUB_TOKEN, GITHUB_REPOSITORY, GITHUB_API_URL, and the number from GITHUB_EVENT_PATH or
    GITHUB_REF. On GitLab, reads GITLAB_TOKEN, CI_API_V4_URL, CI_PROJECT_ID and CI_MERGE_REQUEST_IID.
    """
    from reconciler.engine.ports import Refused
    from reconciler.operations.applying import plan_files
    from reconciler.rendering.plan import markdown, phrases
    from reconciler.rendering.wire import plan_json

    if file == "-":
        written, name = sys.stdin.read(), "standard input"
    else:
        written, name = plan_files.read_text(Path(file)), file
    plan, note = plan_files.read_plan(written, name, os.environ)
    if note:
        output.print_note(note)
    body = formats.PlanOutput(plan, plan_json.normalize(written), Path(), phrases.Flavour.PLAN).markdown()
    review = _find_review(number)
    try:
        result = review.upsert_comment(body, markdown.marker(plan.stack, plan.account))
    except Refused as refused:
        if not refused.is_permission:
            raise
        # Without the usual remedy: the code host's token is invalid, not the platform's API key.
        raise exit_codes.Stop(exit_codes.AUTH, f"error: {refused}") from None
    if not quiet:
        output.print_note(_RESULTS[result])
    return exit_codes.DONE


_RESULTS = {"added": "Comment created.", "updated": "Comment updated.", "current": "Comment unchanged."}


def _find_review(number: int | None) -> Review:
    """The pull or merge request that environment variables name. Raises Stop if they name none."""
    from reconciler.api.code_hosts import GitHub, GitLab

    try:
        if os.environ.get("CI_API_V4_URL"):
            project = _require_variable("CI_PROJECT_ID", "GitLab sets it in every job")
            iid = number or _parse_number(
                _require_variable("CI_MERGE_REQUEST_IID", "run the job in a merge request pipeline, or pass --number")
            )
            return GitLab(os.environ["CI_API_V4_URL"], _read_token("GITLAB_TOKEN"), project, iid)
        if os.environ.get("GITHUB_REPOSITORY"):
            repository = os.environ["GITHUB_REPOSITORY"]
            if not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", repository):
                raise _usage_error(f"invalid GITHUB_REPOSITORY {repository!r}; expected OWNER/NAME")
            base_url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
            return GitHub(base_url, _read_token("GITHUB_TOKEN"), repository, number or _find_pull_request())
    except ValueError as error:
        raise _usage_error(f"invalid API URL: {error}") from None
    raise _usage_error(
        "cannot determine the pull or merge request; run in a pipeline, or set GITHUB_REPOSITORY and GITHUB_TOKEN, "
        "or CI_API_V4_URL, CI_PROJECT_ID and GITLAB_TOKEN, and pass --number"
    )


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


def _read_token(name: str) -> Secret:
    from reconciler.model.value import Secret
    from reconciler.project.settings.connection import is_key

    token = _require_variable(name, "set it to a token that may write comments")
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
