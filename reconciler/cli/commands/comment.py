"""`reconciler comment`: posts plans as one comment on a pull or merge request, and updates it in later runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from reconciler.cli.terminal import code_hosts, exit_codes, formats, output
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler plan --out .reconciler/plan.json && reconciler comment .reconciler/plan.json
        reconciler plan --format json | reconciler comment -
        reconciler comment .reconciler/plan-staging.json .reconciler/plan-prod.json
        reconciler comment .reconciler/plan.json --number 12
        reconciler comment --dry-run .reconciler/plan.json
    """,
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--failed",
    metavar="ENV",
    multiple=True,
    help="Name of an environment that could not be planned, to be listed in the comment. Repeatable.",
)
@click.option(
    "--number",
    metavar="N",
    type=click.IntRange(1),
    help="Number of the pull or merge request. [default: from the CI environment]",
)
@click.option("--dry-run", is_flag=True, help="Print the comment as a first run would post it. Sends no request.")
@click.option("--quiet", "-q", is_flag=True, help="Print only errors.")
def command(files: tuple[str, ...], failed: tuple[str, ...], number: int | None, dry_run: bool, quiet: bool) -> int:
    """Post plan files as one comment on a pull or merge request, or update the comment of an earlier run.

    Several plan files, such as those of all environments, are shown together: a row for each, and each change once with
    the environments that it is for. - is standard input.

    If this run plans only some stacks of the earlier comment, the comment lists its other stacks as not planned, or the
    environments that --failed names. With --failed and no plan, the comment says that no environment could be planned.

    On GitHub, reads GITHUB_TOKEN, GITHUB_REPOSITORY, GITHUB_API_URL, and the number from GITHUB_EVENT_PATH or
    GITHUB_REF. On GitLab, reads GITLAB_TOKEN, CI_API_V4_URL, CI_PROJECT_ID and CI_MERGE_REQUEST_IID.
    """
    from reconciler.engine.ports import Refused
    from reconciler.rendering.plan import markdown

    if not files and not failed:
        raise exit_codes.Stop(exit_codes.USAGE, "error: missing argument FILE, or option --failed ENV")
    if files.count("-") > 1:
        raise exit_codes.Stop(exit_codes.USAGE, "error: standard input holds one plan; pass - once")
    outputs = [_read_plan(file) for file in files]
    plans = [plan_output.plan for plan_output in outputs]
    planned = list(dict.fromkeys(markdown.marker(plan.stack, plan.account) for plan in plans))
    if dry_run:
        output.print_result(_render(outputs, planned, (), failed))
        return exit_codes.DONE
    review = code_hosts.find_review(number)
    try:
        earlier = review.find_comment(lambda text: _is_wanted(text, planned))
        known = markdown.read_markers(earlier.body) if earlier else []
        unplanned = [marker for marker in known if marker not in planned]
        result = review.upsert_comment(_render(outputs, planned, unplanned, failed), earlier)
    except Refused as refused:
        if not refused.is_permission:
            raise
        # Without the usual remedy: the code host's token is invalid, not the platform's API key.
        raise exit_codes.Stop(exit_codes.AUTH, f"error: {refused}") from None
    if not quiet:
        output.print_note(_RESULTS[result])
    return exit_codes.DONE


def _is_wanted(text: str, planned: Sequence[str]) -> bool:
    """Whether a comment is one of these stacks; without any, one of any stack."""
    from reconciler.rendering.plan import markdown

    if text.startswith(markdown.NO_PLAN):
        return True
    known = markdown.read_markers(text)
    return bool(known) and (not planned or not set(planned).isdisjoint(known))


def _render(
    outputs: Sequence[formats.PlanOutput], planned: Sequence[str], unplanned: Sequence[str], failed: Sequence[str]
) -> str:
    """The comment: a marker per stack, and the plans with what this run did not plan."""
    from reconciler.operations.run_context import read_run_context
    from reconciler.rendering.plan import markdown

    head = "".join(f"{marker}\n" for marker in (*planned, *unplanned) or (markdown.NO_PLAN,))
    run = read_run_context(os.environ).run_address
    what = "See the log"
    if outputs:
        what = "The pages are artifacts" if len(outputs) > 1 else "The page with the dependency graph is an artifact"
    foot = f"\n{what} of [this run]({run}).\n" if run else ""
    missing = failed or [markdown.name_stack(marker) for marker in unplanned]
    return head + formats.render_markdown(outputs, missing, markdown.LIMIT - len(head) - len(foot)) + foot


_RESULTS = {"added": "Comment created.", "updated": "Comment updated.", "current": "Comment unchanged."}


def _read_plan(file: str) -> formats.PlanOutput:
    from reconciler.operations.applying import plan_files
    from reconciler.project import named_files
    from reconciler.rendering.plan import phrases
    from reconciler.rendering.wire import plan_json

    if file == "-":
        name = "standard input"
        written = named_files.read_stream(sys.stdin, name, named_files.LARGEST_PLAN)
    else:
        written, name = plan_files.read_text(Path(file)), file
    plan, note = plan_files.read_plan(written, name, os.environ)
    if note:
        output.print_note(note)
    return formats.PlanOutput(plan, plan_json.normalize(written), Path(), phrases.Flavour.PLAN)
