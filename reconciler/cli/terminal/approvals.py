"""Prints the approvals that a plan lacks, as a pipeline shows them: with the entries of `approvals.yaml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.cli.terminal import output

if TYPE_CHECKING:
    from reconciler.model.plan import Plan

_NAMED = 10  # resources that the reason of an approval names


def print_missing(plan: Plan) -> None:
    """Prints the resources that need approval, and the entries that give it."""
    from reconciler.rendering.plan import outline, phrases
    from reconciler.rendering.plan.approval_entries import render_entries

    for row in outline.build_outline(plan).missing_approvals:
        output.print_note(f"blocked: {phrases.name_subjects(row, _NAMED)}: {row.why}")
    if entries := render_entries(plan):
        output.print_note("error: approval required: add to approvals.yaml, in a reviewed commit:")
        for line in entries.splitlines():
            output.print_note(line)
    if flags := " ".join(approval.flag for approval in plan.missing_approvals if not approval.items):
        output.print_note(f"error: approval required that approvals.yaml cannot give: apply at a terminal with {flags}")
