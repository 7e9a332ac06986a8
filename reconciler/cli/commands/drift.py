"""`reconciler drift`: what changed on the platform since the last apply. A plan that is shown and dropped."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, formats, notifying, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.model.plan import Plan
    from reconciler.model.snapshot import Snapshot
    from reconciler.planning.deciding.options import Policy


@click.command(
    cls=Command,
    examples="""
        reconciler drift
        reconciler drift 'TLSEdge/*' --pending
        reconciler drift --exclude 'BotUser/*' --format json=drift.json
        reconciler drift --record --format markdown=drift.md
        reconciler drift --notify env:SLACK_WEBHOOK --notify mailto:ops@example.com
        reconciler drift --accept TLSEdge/payments
        reconciler drift --ignore 'TLSEdge/payments.description'
        reconciler drift --unmanaged
    """,
)
@formats.option
@click.option("--pending", is_flag=True, help="Exit 2 also if only Git has changes that were not applied yet.")
@click.option(
    "--ignore",
    "ignored",
    metavar="GLOB",
    multiple=True,
    help="Do not report this difference, as 'Kind/name.field'; may be repeated.",
)
@click.option("--record", is_flag=True, help="Keep what was found, for `report`: names and paths, no values.")
@notifying.option
@click.option("--accept", is_flag=True, help="Write the platform's values into the manifests, and print the patch.")
@click.option("--both", is_flag=True, help="Of --accept: also what was changed in Git too, or nobody knows by whom.")
@click.option("--unmanaged", is_flag=True, help="Also list the objects that no stack manages.")
@click.argument("named", nargs=-1, metavar="[KIND/NAME]...")
@options.drifting
def command(
    common: options.Options,
    chosen: formats.Chosen,
    pending: bool,
    ignored: tuple[str, ...],
    record: bool,
    targets_told: tuple[str, ...],
    accept: bool,
    both: bool,
    unmanaged: bool,
    named: tuple[str, ...],
) -> int:
    """Show what changed on the platform since the last apply; exit 2 if anything did.

    KIND/NAME narrows it, as --target does. Unapplied changes in Git are listed apart. With --accept, what the platform
    changed is written into the manifests, of all resources or of those that are named. A webhook is signed if
    RECONCILER_NOTIFY_KEY is set; mail needs RECONCILER_SMTP_URL and RECONCILER_MAIL_FROM.
    """
    if record and (common.targets or common.excludes or (named and not accept)):
        raise exit_codes.Stop(exit_codes.USAGE, "error: --record covers the whole stack; select no resources")
    _refuse_to_mix(accept, both, unmanaged, chosen)
    notifying.check(targets_told)
    from reconciler.cli import selection, session
    from reconciler.cli.commands import plan
    from reconciler.planning.deciding.options import Policy
    from reconciler.rendering.plan.phrases import Flavour

    if not accept:
        common = replace(common, targets=(*common.targets, *named))
    opened = session.opened(common)
    if record:
        _refuse_forgetfulness(opened)
    seen = session.run(session.seen(opened))
    wanted = Policy(targets=named)
    for policy in (opened.policy, wanted):
        selection.check(policy, opened.manifest, seen)
    made = _without_known(opened, opened.plan(seen), ignored)
    if record:
        _record(opened, made)
    if accept:
        code = _accept(opened, common, made, seen, wanted, ignored, both=both)
    else:
        plan.show(made, opened, common, chosen, Flavour.DRIFT)
        if unmanaged:
            _list_unmanaged(made, seen)
        session.tell_problems(made)
        code = _exit_of(made, pending=pending)
    # Others last: whatever becomes of that, it was shown here.
    notifying.tell(targets_told, made, opened.policy.now, quiet=common.quiet)
    return code


def _without_known(opened: Session, made: Plan, ignored: tuple[str, ...]) -> Plan:
    """The plan without known drift, as the project file and --ignore tell it."""
    from reconciler.model.known_drift import KnownDrift
    from reconciler.planning.known_drift import ignore_known

    today = datetime.fromtimestamp(opened.policy.now, UTC).date().isoformat()
    known = (*opened.config.known_drift, *(KnownDrift(each, reason="--ignore") for each in ignored))
    return ignore_known(made, known, today)


def _exit_of(made: Plan, *, pending: bool) -> int:
    from reconciler.cli import session

    if made.errors:
        return session.exit_of(made)
    return exit_codes.CHANGES if made.has_drift or (pending and made.has_pending) else exit_codes.DONE


def _list_unmanaged(made: Plan, seen: Snapshot) -> None:
    """Each object with the name that `import` would give it; what other stacks manage is counted."""
    from reconciler import kinds
    from reconciler.planning.importing import naming
    from reconciler.rendering import terminal_text

    there = {live.key: live for listing in seen.listings.values() for live in listing.objects}
    lines = [
        f"  {kind}/{naming.name(kinds.get(kind), there[kind, id], lambda *_: None, ())}  {id}"
        for kind, id in made.unmanaged
        if (kind, id) in there
    ]
    output.answer("\n".join(["", "Not managed:", *lines]) if lines else "\nEvery object is managed.")
    stacks = Counter(live.owner.stack for live in there.values() if live.owner is not None)
    stacks.update({stack: len(found) for stack, found in made.elsewhere.items()})
    del stacks[made.stack]
    if stacks:
        listed = ", ".join(
            f"{terminal_text.clean(stack)} ({output.count(stacks[stack], 'object')})" for stack in sorted(stacks)
        )
        output.answer(f"Managed by other stacks: {listed}.")


def _refuse_to_mix(accept: bool, both: bool, unmanaged: bool, chosen: formats.Chosen) -> None:
    if not accept and both:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --both is for --accept; give that too")
    if accept and any(form != "text" or file for form, file in chosen):
        raise exit_codes.Stop(exit_codes.USAGE, "error: --accept prints a patch; leave --format out")
    if accept and unmanaged:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --accept prints a patch; leave --unmanaged out")


def _accept(
    opened: Session,
    common: options.Options,
    made: Plan,
    seen: Snapshot,
    wanted: Policy,
    ignored: tuple[str, ...],
    *,
    both: bool,
) -> int:
    """Exit 2 if anything still differs that is not known drift."""
    from reconciler.cli import accepting

    found = accepting.accept(opened, made, seen, common.variables, selects=wanted.selects, both=both)
    accepting.write(opened, found)
    accepting.tell(found, quiet=common.quiet)
    output.problems(found.left.problems)
    return _exit_of(_without_known(opened, found.left, ignored), pending=True)


def _refuse_forgetfulness(opened: Session) -> None:
    from reconciler.cli import session
    from reconciler.store.errors import MEMORY

    if session.store_of(opened.config) == MEMORY:
        raise exit_codes.Stop(exit_codes.USAGE, f"error: --record needs a store that lasts, and this one is {MEMORY}")


def _record(opened: Session, made: Plan) -> None:
    from reconciler.cli import session
    from reconciler.model.history import Look, Moved
    from reconciler.rendering.plan import outline, phrases

    if made.errors:  # what could not be seen would pass for what no longer differs
        output.say("note: not recorded, because of the problems")
        return
    outlined = outline.outline(made)
    moved = tuple(
        Moved(
            change.address, change.action, change.reason, phrases.side(row), tuple(each.path for each in change.fields)
        )
        for change, row in zip((*made.additions, *made.changes), (*outlined.additions, *outlined.changes), strict=True)
    )
    look = Look(opened.policy.now, len(opened.manifest.declarations), made.commit, moved)
    session.run(session.record(opened, look))
