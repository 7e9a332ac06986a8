"""`reconciler drift`: what moved since the last apply, and who moved it. A plan that is shown and dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import exits, forms, notifying, options, talk
from reconciler.cli.group import Command

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.model.plan import Plan
    from reconciler.model.snapshot import Snapshot
    from reconciler.planning.policy import Policy


@click.command(
    cls=Command,
    examples="""
        reconciler drift
        reconciler drift --exclude 'BotUser/*' --format json=drift.json
        reconciler drift --record --format markdown=drift.md
        reconciler drift --notify env:SLACK_WEBHOOK --notify mailto:ops@example.com
        reconciler drift --accept TLSEdge/payments
        reconciler drift --unowned
    """,
)
@forms.option
@click.option("--record", is_flag=True, help="Keep what was found, for `report`: names and paths, no values.")
@notifying.option
@click.option("--accept", is_flag=True, help="Write the platform's values into the manifests, and print the patch.")
@click.option("--both", is_flag=True, help="Of --accept: also what was changed in Git too, or nobody knows by whom.")
@click.option("--unowned", is_flag=True, help="Also name what exists and is declared by nobody.")
@click.argument("named", nargs=-1, metavar="[KIND/NAME]...")
@options.drifting
def command(
    common: options.Options,
    chosen: forms.Chosen,
    record: bool,
    targets_told: tuple[str, ...],
    accept: bool,
    both: bool,
    unowned: bool,
    named: tuple[str, ...],
) -> int:
    """Show what moved since the last apply, and who moved it; exit 2 if anything did.

    With --accept, what the platform moved is written into the manifests, of all resources or of those that are named.
    A webhook is signed if RECONCILER_NOTIFY_KEY is set; mail needs RECONCILER_SMTP_URL and RECONCILER_MAIL_FROM.
    """
    if record and (common.targets or common.excludes):
        raise exits.Stop(exits.USAGE, "error: --record is of the whole stack; leave --target and --exclude out")
    _refuse_to_mix(accept, both, unowned, named, chosen)
    notifying.check(targets_told)
    from reconciler.cli import plan, selection, session
    from reconciler.planning.policy import Policy
    from reconciler.rendering.wording import Flavour

    opened = session.opened(common)
    if record:
        _refuse_forgetfulness(opened)
    seen = session.run(session.seen(opened))
    wanted = Policy(targets=named)
    for policy in (opened.policy, wanted):
        selection.check(policy, opened.manifest, seen)
    made = opened.plan(seen)
    if record:
        _record(opened, made)
    if accept:
        code = _accept(opened, common, made, seen, wanted, both=both)
    else:
        plan.show(made, opened, common, chosen, Flavour.DRIFT)
        if unowned:
            _tell_unowned(made, seen)
        session.tell_problems(made)
        code = session.exit_of(made, changes=exits.CHANGES)
    # Others last: whatever becomes of that, it was shown here.
    notifying.tell(targets_told, made, opened.policy.now, quiet=common.quiet)
    return code


def _tell_unowned(made: Plan, seen: Snapshot) -> None:
    """Each newcomer with the name that `import` would give it."""
    from reconciler import kinds
    from reconciler.planning import naming

    there = {(name, live.locator): live for name, listing in seen.listings.items() for live in listing.objects}
    lines = [
        f"  {kind}/{naming.name(kinds.get(kind), there[kind, id], lambda *_: None, ())}  {id}"
        for kind, id in made.unowned
        if (kind, id) in there
    ]
    talk.answer("\n".join(["", "Declared by nobody:", *lines]) if lines else "\nNothing is declared by nobody.")


def _refuse_to_mix(accept: bool, both: bool, unowned: bool, named: tuple[str, ...], chosen: forms.Chosen) -> None:
    if not accept and (both or named):
        raise exits.Stop(exits.USAGE, f"error: {'--both' if both else named[0]} is for --accept; give that too")
    if accept and any(form != "text" or file for form, file in chosen):
        raise exits.Stop(exits.USAGE, "error: --accept prints a patch; leave --format out")
    if accept and unowned:
        raise exits.Stop(exits.USAGE, "error: --accept prints a patch; leave --unowned out")


def _accept(opened: Session, common: options.Options, made: Plan, seen: Snapshot, wanted: Policy, *, both: bool) -> int:
    """Exit 2 if anything still differs."""
    from reconciler.cli import accepting, session

    found = accepting.accept(opened, made, seen, common.variables, selects=wanted.selects, both=both)
    accepting.write(opened, found)
    accepting.tell(found, quiet=common.quiet)
    talk.problems(found.left.problems)
    return session.exit_of(found.left, changes=exits.CHANGES)


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
