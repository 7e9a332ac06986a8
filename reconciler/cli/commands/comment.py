"""`reconciler comment`: a plan as one comment on the pull or merge request under way, kept current from run to run."""

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
@click.option("--plan", "file", metavar="FILE", required=True, help="A plan file; `-` is standard input.")
@click.option("--number", metavar="N", type=click.IntRange(1), help="Which review; a pipeline's environment says it.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but what is wrong.")
def command(file: str, number: int | None, quiet: bool) -> int:
    """Write a plan as a comment on a pull or merge request, or bring the comment of an earlier run up to date.

    On GitHub it reads GITHUB_TOKEN, GITHUB_REPOSITORY, GITHUB_API_URL, and the number from the event's file or
    GITHUB_REF; on GitLab GITLAB_TOKEN, CI_API_V4_URL, CI_PROJECT_ID and CI_MERGE_REQUEST_IID.
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
        done = review.upsert_comment(body, markdown.marker(plan.stack, plan.account))
    except Refused as refused:
        if not refused.is_permission:
            raise
        raise exit_codes.Stop(
            exit_codes.AUTH, f"error: {refused}"
        ) from None  # the token is what is wrong, not the API key
    if not quiet:
        output.print_note(
            {"added": "Commented.", "updated": "The comment was updated.", "current": "The comment says so already."}[
                done
            ]
        )
    return exit_codes.DONE


def _find_review(number: int | None) -> Review:
    """The review that the environment tells of."""
    from reconciler.api.code_hosts import GitHub, GitLab

    try:
        if os.environ.get("CI_API_V4_URL"):
            project = _require_variable("CI_PROJECT_ID", "GitLab sets it in every job")
            found = number or _parse_number(
                _require_variable("CI_MERGE_REQUEST_IID", "run the job in a merge request's pipeline")
            )
            return GitLab(os.environ["CI_API_V4_URL"], _read_token("GITLAB_TOKEN"), project, found)
        if os.environ.get("GITHUB_REPOSITORY"):
            repository = os.environ["GITHUB_REPOSITORY"]
            if not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", repository):
                raise _usage_error(f"GITHUB_REPOSITORY is not owner/name: {repository}")
            base_url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
            return GitHub(base_url, _read_token("GITHUB_TOKEN"), repository, number or _find_pull_request())
    except ValueError as error:
        raise _usage_error(f"the API's address: {error}") from None
    raise _usage_error(
        "nothing tells which review to comment on; run it in a pipeline, or set GITHUB_REPOSITORY and GITHUB_TOKEN, "
        "or CI_API_V4_URL, CI_PROJECT_ID and GITLAB_TOKEN"
    )


def _find_pull_request() -> int:
    """Of the event that started the workflow, or of the ref it runs on."""
    file = os.environ.get("GITHUB_EVENT_PATH")
    if file and Path(file).is_file():
        try:
            event = json.loads(output.read_file(Path(file)))
        except ValueError:
            event = {}
        for part in ("pull_request", "issue"):
            found = event.get(part) if isinstance(event, dict) else None
            if isinstance(found, dict) and isinstance(found.get("number"), int):
                return int(found["number"])
    if found_ref := _PULL.fullmatch(os.environ.get("GITHUB_REF", "")):
        return int(found_ref[1])
    raise _usage_error(
        "neither the event nor GITHUB_REF names a pull request; run it on pull_request, or give --number"
    )


def _read_token(name: str) -> Secret:
    from reconciler.model.value import Secret
    from reconciler.project.settings.connection import is_key

    token = _require_variable(name, "give the step a token that may write comments")
    if not is_key(token):
        raise _usage_error(f"{name} holds a character that no token has; set it to the token alone")
    return Secret(token, f"env:{name}")


def _require_variable(name: str, remedy: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise _usage_error(f"{name} is not set; {remedy}")
    return value


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise _usage_error(f"CI_MERGE_REQUEST_IID is not a number: {text}")
    return int(text)


def _usage_error(what: str) -> exit_codes.Stop:
    return exit_codes.Stop(exit_codes.USAGE, f"error: {what}")
