"""The flags that commands share, read into one frozen value. Knows no command, reads no file."""

from __future__ import annotations

import difflib
import functools
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.terminal import addresses, output

if TYPE_CHECKING:
    from reconciler.cli.terminal.telemetry import Telemetry
    from reconciler.operations.runtime import Runtime


@dataclass(frozen=True)
class Options:
    """
    events    a file for one JSON object per line and event; `-` is standard error
    allow     consents given: ("delete", "ReservedDomain") → how many
    runtime   what the caller of `main` replaces, if anything
    observer  traces and metrics of the run, if they are asked for
    """

    project: Path = Path()
    environment: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    parallelism: int | None = None
    no_color: bool = False
    quiet: bool = False
    events: str | None = None
    trace: bool = False
    log_format: str = "text"
    adopt: bool = False
    to_replace: tuple[str, ...] = ()
    allow: Mapping[tuple[str, str], int] = field(default_factory=dict)
    runtime: Runtime | None = None
    observer: Telemetry | None = None

    @property
    def has_color(self) -> bool:
        return output.supports_color(sys.stdout, self.no_color)


def _is_traced() -> bool:
    """Whether the environment says where traces or metrics go."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    return any(os.environ.get(name, "none") not in ("", "none") for name in _TRACED)


_TRACED = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_METRICS_EXPORTER",
    "OTEL_TRACES_EXPORTER",
)


def _check_environment(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value == "":  # a variable of a pipeline that is not set
        raise click.BadParameter("names no environment; leave the flag out for none")
    return value


def _parse_variables(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{each!r} is not name=value")
        pairs[name] = value
    return pairs


def _parse_approvals(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[tuple[str, str], int]:
    """Consents add up, in one flag or in several: `--allow delete:BotUser=1,adopt:BotUser=2`."""
    given: dict[tuple[str, str], int] = {}
    for each in (part.strip() for value in values for part in value.split(",")):
        found = _APPROVAL.fullmatch(each)
        if found is None:
            raise click.BadParameter(f"{each!r} is not what:Kind=N, as in delete:ReservedDomain=1")
        what, kind, number = found["what"], found["kind"], int(found["number"])
        if what not in _SCOPES:
            known = ", ".join(_SCOPES)
            raise click.BadParameter(f"{each!r} allows nothing that a guard holds back; say one of {known}")
        if number == 0:
            raise click.BadParameter(f"{each!r} allows nothing; say how many, as in {what}:{kind}=1")
        _check_scope(each, what, kind, number)
        given[what, kind] = given.get((what, kind), 0) + number
    return given


_APPROVAL = re.compile(r"(?P<what>[a-z-]+):(?P<kind>\*|[A-Za-z]+)=(?P<number>[0-9]{1,9})")
_SCOPES = {  # what may be allowed: of one kind, of all kinds together
    "delete": (True, True),
    "delete-protected": (True, False),
    "adopt": (True, False),
    "overwrite": (True, False),
    "update": (False, True),
    "empty": (False, True),
    "account": (False, True),
}


def _check_scope(each: str, what: str, kind: str, number: int) -> None:
    of_one, of_all = _SCOPES[what]
    if kind == "*":
        if not of_all:
            raise click.BadParameter(f"{each!r} names no kind; say which, as in {what}:TLSEdge={number}")
        return
    from reconciler import kinds  # heavy, and wanted only where a kind is named

    if not of_one:
        raise click.BadParameter(f"{each!r} is not given by kind; say {what}:*={number}")
    if kinds.find(kind) is None:
        close = difflib.get_close_matches(kind, [known.name for known in kinds.list_planned()], 1)
        remedy = f"did you mean {what}:{close[0]}={number}?" if close else "`reconciler kinds` lists all kinds"
        raise click.BadParameter(f"{each!r} names an unknown kind; {remedy}")


class OutputPath(click.Path):
    """Where to write, which is never standard output; `instead` says what to do for that. `whole`: in one piece."""

    def __init__(self, instead: str, *, whole: bool = True, **more: Any) -> None:
        super().__init__(**more)
        self._instead = instead
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail(f"'-' is not standard output here; {self._instead}", param, ctx)
        if self._whole and (there := _describe_other(value)):
            self.fail(f"{value!r} is {there}, and no file; {self._instead}", param, ctx)
        return super().convert(value, param, ctx)


def _describe_other(place: Any) -> str:
    from reconciler.project import atomic_write

    return atomic_write.describe_non_file(Path(place))


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
        "--env",
        "environment",
        metavar="NAME",
        callback=_check_environment,
        help="As environments/NAME.yaml has it; RECONCILER_ENV may name one too.",
    ),
    click.option(
        "--var",
        "variables",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_parse_variables,
        help="Set a ${{ var.NAME }}.",
    ),
]
_PARALLELISM = [
    click.option(
        "--parallelism",
        metavar="N",
        type=click.IntRange(1, 256),
        help="Requests at a time; as the project says, or 16.",
    ),
]
_OUTPUT = [
    click.option("--no-color", is_flag=True, help="Plain text, as NO_COLOR asks for too."),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but the answer and what is wrong."),
    click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        envvar="RECONCILER_LOG_FORMAT",
        help="How standard error reads: lines of text, or of JSON.",
    ),
    click.option("--trace", is_flag=True, help="Send traces and metrics by OpenTelemetry, as OTEL_* says."),
]
_SELECTION = [
    click.option(
        "--target",
        "targets",
        metavar="KIND/NAME",
        multiple=True,
        shell_complete=addresses.complete,
        help="Only these; * and ? are globs.",
    ),
    click.option(
        "--exclude",
        "excludes",
        metavar="KIND/NAME",
        multiple=True,
        shell_complete=addresses.complete,
        help="All but these; globs too.",
    ),
    *_PARALLELISM,
]
_ALLOW = [
    click.option(
        "--allow",
        metavar="WHAT:KIND=N[,…]",
        multiple=True,
        callback=_parse_approvals,
        help="Consent to what a guard holds back, as the plan spells it.",
    ),
]
_APPROVALS = [
    click.option("--adopt", is_flag=True, help="Take over what exists and belongs to nobody."),
    *_ALLOW,
]
_REPLACE = [
    click.option(
        "--replace",
        "to_replace",
        metavar="KIND/NAME",
        multiple=True,
        shell_complete=addresses.complete,
        help="Make it anew, whether or not anything differs.",
    ),
]
_EVENTS = [click.option("--events", metavar="FILE", help="Write what happens to FILE, one JSON object a line.")]


def _add_options(options: list[Callable[[Any], Any]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Adds flags to a command, which receives them as its first argument."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def packed(**flags: Any) -> int:
            own = {name: value for name, value in flags.items() if name not in Options.__dataclass_fields__}
            shared = {name: value for name, value in flags.items() if name in Options.__dataclass_fields__}
            context = click.get_current_context()
            options = Options(**shared, runtime=context.find_root().obj)
            output.set_log_format(options.log_format)
            if options.trace or _is_traced():
                from reconciler.cli.terminal import telemetry

                name = context.info_name or "reconciler"
                return telemetry.run_traced(
                    name, lambda observer: command(replace(options, observer=observer), **own), required=options.trace
                )
            return command(options, **own)

        packed_command: Callable[..., int] = packed
        for option in reversed(options):
            packed_command = option(packed_command)
        return packed_command

    return decorate


project_options = _add_options([*_PROJECT, *_OUTPUT])
account_options = _add_options([*_PROJECT, *_PARALLELISM, *_OUTPUT])
import_options = _add_options([*_PROJECT, *_SELECTION, *_OUTPUT])
adopt_options = _add_options([*_PROJECT, *_PARALLELISM, *_ALLOW, *_EVENTS, *_OUTPUT])
drift_options = _add_options([*_PROJECT, *_SELECTION, *_APPROVALS, *_OUTPUT])
plan_options = _add_options([*_PROJECT, *_SELECTION, *_REPLACE, *_APPROVALS, *_OUTPUT])
apply_options = _add_options([*_PROJECT, *_SELECTION, *_REPLACE, *_APPROVALS, *_EVENTS, *_OUTPUT])
destroy_options = _add_options([*_PROJECT, *_SELECTION, *_APPROVALS, *_EVENTS, *_OUTPUT])
