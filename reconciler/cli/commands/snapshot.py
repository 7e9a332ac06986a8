"""`reconciler snapshot`: writes down the account without its secrets. `plan --snapshot` makes plans from such a file
where there is no key to the account, as in the pull request of a fork.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.model.plan import Plan
    from reconciler.model.value import Secret

KEY = "RECONCILER_SNAPSHOT_KEY"
_MODE = 0o644  # it is made to be given away
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@click.command(
    cls=Command,
    examples="""
        reconciler snapshot --out snapshot.json
        reconciler plan --snapshot snapshot.json --max-age 12h
    """,
)
@click.option(
    "--out",
    metavar="FILE",
    required=True,
    type=options.Place("name a file", path_type=Path),
    help="Where to write it.",
)
@options.looking
def command(common: options.Options, out: Path) -> int:
    """Write down the account without its secrets, so that plans can be made where there is no key.

    It is signed if RECONCILER_SNAPSHOT_KEY holds an Ed25519 private key in PEM. It tells what a plan could tell of the
    account: give it to nobody who may not read that.
    """
    from reconciler import kinds
    from reconciler.cli import session
    from reconciler.cli.terminal import atomic_write
    from reconciler.planning import redaction
    from reconciler.project import snapshots
    from reconciler.rendering.wire.snapshot_json import Taken

    key = _key()
    if key is not None:
        snapshots.check_private_key(key)
    opened = session.opened(common)
    seen = session.run(session.seen(opened))
    planned = kinds.planned()
    taken = Taken(
        redaction.redacted(seen, opened.manifest, planned),
        opened.manifest.stack,
        opened.account.base_url,
        opened.config.account,
        time.time(),
        opened.policy.commit,
        redaction.sealed(opened.manifest, seen, planned),
    )
    atomic_write.write(out, snapshots.write(taken, key), _MODE)
    incomplete = sorted(name for name, listing in seen.listings.items() if not listing.complete)
    for name in incomplete:
        output.say(f"warning: {name} could not be listed to the end: {seen.of(name).why}")
    if not common.quiet:
        count = sum(len(listing.objects) for listing in taken.snapshot.listings.values())
        signed = "signed" if key else f"not signed: {KEY} is not set"
        output.say(f"Wrote {output.count(count, 'object')} to {out}, {signed}.")
    return exit_codes.DONE


def _key() -> Secret | None:
    from reconciler.model.value import Secret

    text = os.environ.get(KEY)
    return Secret(text, f"env:{KEY}") if text else None


# --- plan --snapshot --------------------------------------------------------------------------------------------------


def parse_age(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})([smhdw])", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not an age; write a number and s, m, h, d or w, as in 12h")
    return int(found[1]) * _SECONDS[found[2]]


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags of a command that takes a snapshot file in the account's place."""
    for option in (
        click.option(
            "--max-age",
            metavar="AGE",
            default="48h",
            show_default=True,
            callback=parse_age,
            help="Of --snapshot: refuse an older one.",
        ),
        click.option(
            "--snapshot",
            "taken",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Plan from what `snapshot` wrote: needs no key and no network.",
        ),
    ):
        command = option(command)
    return command


def refuse_age_alone() -> None:
    """Of --max-age where no snapshot file is named."""
    if click.get_current_context().get_parameter_source("max_age") is not ParameterSource.DEFAULT:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --max-age is for --snapshot; give that too")


def planned(common: options.Options, file: Path, max_age: int) -> tuple[Session, Plan]:
    """The plan that the account of a snapshot file would give. It is to be looked at, and never carried out."""
    from reconciler.cli import selection, session
    from reconciler.model.problem import Problem, Severity
    from reconciler.project import snapshots
    from reconciler.project.settings import config

    project = config.load(common.project, os.environ, common.environment)
    public_key = project.snapshots.public_key
    taken = snapshots.read(output.read(file), str(file), public_key)
    now = time.time()
    snapshots.refuse_stale(taken, str(file), project.stack, project.account, now, max_age)
    opened, unread = session.opened_offline(common, project, taken)
    said = not common.quiet
    if said:
        output.say(f"Planned from {file}, which is {snapshots.in_words(now - taken.at)} old.")
    if said and public_key is None:
        output.say("note: its signature was not checked: there is no snapshots.public_key in reconciler.yaml")
    for source in unread if said else ():
        output.say(f"note: the secret of {source} is not here, and not in the snapshot either; it counts as a new one")
    when = datetime.fromtimestamp(taken.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    told = Problem(
        f"made from a snapshot of {when}, not from the account",
        "the account may have moved since",
        severity=Severity.WARNING,
        code="planned-from-snapshot",
    )
    selection.check(opened.policy, opened.manifest, taken.snapshot)
    made = opened.plan(taken.snapshot)
    return opened, replace(made, problems=(told, *made.problems), taken=taken.at)
