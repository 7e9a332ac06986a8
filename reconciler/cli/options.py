"""The flags that commands share, read into one frozen value. Knows no command, reads no file."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from reconciler.cli import talk


@dataclass(frozen=True)
class Options:
    """
    events    a file for one JSON object per line and event; `-` is standard error
    allow     consents given: ("delete", "ReservedDomain") → how many
    """

    project: Path = Path()
    variables: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    parallelism: int | None = None
    no_color: bool = False
    quiet: bool = False
    events: str | None = None
    adopt: bool = False
    allow: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def coloured(self) -> bool:
        return talk.is_coloured(sys.stdout, self.no_color)


def _pairs(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{each!r} is not name=value")
        pairs[name] = value
    return pairs


def _consents(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[tuple[str, str], int]:
    given: dict[tuple[str, str], int] = {}
    for each in values:
        what, colon, rest = each.partition(":")
        kind, equals, number = rest.partition("=")
        if not (what and colon and kind and equals and number.isdecimal()):
            raise click.BadParameter(f"{each!r} is not what:Kind=N, as in delete:ReservedDomain=1")
        given[what, kind] = given.get((what, kind), 0) + int(number)
    return given


_PROJECT = [
    click.option(
        "--project",
        metavar="DIR",
        envvar="RECONCILER_PROJECT",
        type=click.Path(path_type=Path),
        default=Path(),
        help="The folder of reconciler.yaml; this one unless said otherwise.",
    ),
    click.option(
        "--var", "variables", metavar="NAME=VALUE", multiple=True, callback=_pairs, help="Set a ${{ var.NAME }}."
    ),
]
_TALK = [
    click.option("--no-color", is_flag=True, help="Plain text, as NO_COLOR asks for too."),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but the answer and what is wrong."),
]
_SELECTION = [
    click.option("--target", "targets", metavar="KIND/NAME", multiple=True, help="Only these; * and ? are globs."),
    click.option("--exclude", "excludes", metavar="KIND/NAME", multiple=True, help="All but these; globs too."),
    click.option(
        "--parallelism", metavar="N", type=click.IntRange(1, 256), help="Requests at a time; the project says how many."
    ),
]
_CONSENT = [
    click.option("--adopt", is_flag=True, help="Take over what exists and belongs to nobody."),
    click.option(
        "--allow",
        metavar="WHAT:KIND=N",
        multiple=True,
        callback=_consents,
        help="Consent to what a guard holds back, as the plan spells it.",
    ),
]
_EVENTS = [click.option("--events", metavar="FILE", help="Write what happens to FILE, one JSON object a line.")]


def _with(options: list[Callable[[Any], Any]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Adds flags to a command, which receives them as its first argument."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def packed(**flags: Any) -> int:
            own = {name: value for name, value in flags.items() if name not in Options.__dataclass_fields__}
            shared = {name: value for name, value in flags.items() if name in Options.__dataclass_fields__}
            return command(Options(**shared), **own)

        packed_command: Callable[..., int] = packed
        for option in reversed(options):
            packed_command = option(packed_command)
        return packed_command

    return decorate


offline = _with([*_PROJECT, *_TALK])
reading = _with([*_PROJECT, *_SELECTION, *_CONSENT, *_TALK])
writing = _with([*_PROJECT, *_SELECTION, *_CONSENT, *_EVENTS, *_TALK])
