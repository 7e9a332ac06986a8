"""`reconciler drift`: what moved since the last apply, and who moved it. A plan that is shown and dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import exits, forms, options, talk
from reconciler.cli.group import Command

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.model.plan import Plan


@click.command(
    cls=Command,
    examples="""
        reconciler drift
        reconciler drift --exclude 'BotUser/*' --format json=drift.json
        reconciler drift --record --format markdown=drift.md
    """,
)
@forms.option
@click.option("--record", is_flag=True, help="Keep what was found, for `report`: names and paths, no values.")
@options.reading
def command(common: options.Options, chosen: forms.Chosen, record: bool) -> int:
    """Show what moved since the last apply, and who moved it; exit 2 if anything did."""
    if record and (common.targets or common.excludes):
        raise exits.Stop(exits.USAGE, "error: --record is of the whole stack; leave --target and --exclude out")
    from reconciler.cli import plan, session
    from reconciler.rendering.wording import Flavour

    opened = session.opened(common)
    if record:
        _refuse_forgetfulness(opened)
    made = session.run(session.planned(opened))
    if record:
        _record(opened, made)
    plan.show(made, opened, common, chosen, Flavour.DRIFT)
    session.tell_problems(made)
    return session.exit_of(made, changes=exits.CHANGES)


def _refuse_forgetfulness(opened: Session) -> None:
    from reconciler.cli import session
    from reconciler.store.failures import MEMORY

    if session.store_of(opened.config) == MEMORY:
        raise exits.Stop(exits.USAGE, f"error: --record needs a store that lasts, and this one is {MEMORY}")


def _record(opened: Session, made: Plan) -> None:
    from reconciler.cli import session
    from reconciler.model.history import Look, Moved
    from reconciler.rendering import outline, wording

    if made.errors:  # what could not be seen would pass for what no longer differs
        talk.say("note: not recorded, because of the problems")
        return
    rows = outline.outline(made).changes
    moved = tuple(
        Moved(
            change.address, change.action, change.reason, wording.side(row), tuple(each.path for each in change.fields)
        )
        for change, row in zip(made.changes, rows, strict=True)
    )
    look = Look(opened.policy.now, len(opened.manifest.declarations), made.commit, moved)
    session.run(session.record(opened, look))
