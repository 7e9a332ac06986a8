"""`reconciler plan`: what would change, and the exact calls. Changes nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import judging
from reconciler.cli.commands import snapshot
from reconciler.cli.terminal import exit_codes, formats, options
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.model.plan import Plan
    from reconciler.rendering.plan.phrases import Flavour, Resources


@click.command(
    cls=Command,
    examples="""
        reconciler plan
        reconciler plan --out plan.json --detailed-exitcode
        reconciler plan --target 'TLSEdge/*' --format json | jq .summary
        reconciler plan --snapshot snapshot.json --max-age 12h
        reconciler plan --format text --format markdown=plan.md --format html=plan.html --format sarif=plan.sarif
    """,
)
@click.option(
    "--out",
    metavar="FILE",
    type=options.Place("name a file, or print the plan by --format json", path_type=Path),
    help="Write the plan for `apply FILE`; signed if RECONCILER_PLAN_KEY is set.",
)
@formats.option
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if there are changes.")
@snapshot.reading
@options.planning
def command(
    common: options.Options,
    out: Path | None,
    chosen: formats.Chosen,
    detailed_exitcode: bool,
    taken: Path | None,
    max_age: int,
) -> int:
    """Show what would change, and the exact calls."""
    from reconciler.cli import session

    if taken is None:
        snapshot.refuse_age_alone()
        opened = session.opened(common)
        plan = session.run(session.planned(opened))
    else:
        opened, plan = snapshot.planned(common, taken, max_age)
    plan = judging.judged(plan, judging.rules(opened.config), opened.policy.now, opened.manifest)
    plan = replace(plan, created=time.time())
    if out is not None:
        from reconciler.cli import planfile

        planfile.write(out, plan)
    show(plan, opened, common, chosen)
    session.tell_problems(plan)
    return session.exit_of(plan, changes=exit_codes.CHANGES if detailed_exitcode else exit_codes.DONE)


def show(
    plan: Plan, opened: Session, common: options.Options, chosen: formats.Chosen, flavour: Flavour | None = None
) -> None:
    """In each form asked for, to its file or to standard output."""
    from reconciler.rendering.plan import phrases

    shown = formats.Show(
        plan,
        "" if all(form == "text" for form, _ in chosen) else _written(plan),
        opened.config.root,
        flavour or phrases.Flavour.PLAN,
        budget=opened.account.budget,
        resources=_resources(opened),
        coloured=common.coloured,
    )
    shown.to(chosen)


def _resources(opened: Session) -> Resources:
    from reconciler.rendering.plan import phrases

    declared, policy = opened.manifest.declarations, opened.policy
    if not policy.is_limited:
        return len(declared)
    return phrases.Selected(sum(policy.selects(address) for address in declared), of=len(declared))


def _written(plan: Plan) -> str:
    from reconciler.cli import planfile
    from reconciler.rendering.wire import plan_json

    return plan_json.write(plan, planfile.key())
