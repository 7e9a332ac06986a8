"""`reconciler plan`: what would change, and the exact calls. Changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import exits, options, talk
from reconciler.cli.group import Command

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.model.plan import Plan
    from reconciler.rendering.text import Flavour

FORMATS = ("text", "json")


def forms(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    """`text` or `json=FILE`, as (form, file); no file is standard output, which holds one."""
    chosen = []
    for each in values or ("text",):
        form, _, file = each.partition("=")
        if form not in FORMATS:
            raise click.BadParameter(f"{form!r} is not one of {', '.join(FORMATS)}")
        chosen.append((form, file))
    if sum(not file for _, file in chosen) > 1:
        raise click.BadParameter("only one can go to standard output; give the others a file, as in json=plan.json")
    return chosen


formats = click.option(
    "--format",
    "chosen",
    metavar="FORM[=FILE]",
    multiple=True,
    callback=forms,
    help=f"How to show it: {' or '.join(FORMATS)}; may be given several times.",
)


@click.command(
    cls=Command,
    examples="""
        reconciler plan
        reconciler plan --out plan.json --detailed-exitcode
        reconciler plan --target 'TLSEdge/*' --format json | jq .summary
        reconciler plan --format text --format json=plan-for-review.json
    """,
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the plan for `apply FILE`; signed if RECONCILER_PLAN_KEY is set.",
)
@formats
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if there are changes.")
@options.reading
def command(common: options.Options, out: Path | None, chosen: list[tuple[str, str]], detailed_exitcode: bool) -> int:
    """Show what would change, and the exact calls."""
    from reconciler.cli import planfile, session

    opened = session.opened(common)
    plan = session.run(session.planned(opened))
    if out is not None:
        planfile.write(out, plan)
    show(plan, opened, common, chosen)
    session.tell_problems(plan)
    return session.exit_of(plan, changes=exits.CHANGES if detailed_exitcode else exits.DONE)


def show(
    plan: Plan,
    opened: Session,
    common: options.Options,
    chosen: list[tuple[str, str]],
    flavour: Flavour | None = None,
) -> None:
    """In each form asked for, to its file or to standard output."""
    from reconciler.cli import planfile
    from reconciler.rendering import json, text

    def page(width: int, colour: bool) -> str:
        return text.text(
            plan,
            width=width,
            colour=colour,
            budget=opened.account.budget,
            resources=len(opened.manifest.declarations),
            flavour=flavour or text.Flavour.PLAN,
        )

    for form, file in chosen:
        if form == "json" and file:
            Path(file).write_text(json.write(plan, planfile.key()), encoding="utf-8")
        elif form == "json":
            sys.stdout.write(json.write(plan, planfile.key()))
        elif file:
            Path(file).write_text(page(talk.FILE_WIDTH, colour=False), encoding="utf-8")
        else:
            sys.stdout.write(page(talk.width(), colour=common.coloured))
