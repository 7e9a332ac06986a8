"""The options that several commands share, parsed into one frozen `Options`. Reads no file."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.cli.terminal import addresses, completions, output
from reconciler.cli.terminal.group import COMMON
from reconciler.model.suggestions import closest

if TYPE_CHECKING:
    from reconciler.cli.terminal.telemetry import Telemetry
    from reconciler.operations.opening.source import ProjectSource
    from reconciler.operations.runtime import Runtime

Key = TypeVar("Key")


class Options(Struct, frozen=True):
    """The shared options of one invocation; a command without an option has its default.

    is_found  the project directory was found above the current directory, and not given
    events    a file for events as JSON lines; `-` is standard error
    secrets   `unchanged`: those that cannot be read are assumed to be as last applied
    allow     approvals: (rule, kind) → count, such as ("delete", "ReservedDomain") → 1
    runtime   replacements that the caller of `main` passed
    observer  traces and metrics of the run, if enabled
    """

    project: Path = Path()
    is_found: bool = False
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
    secrets: str = "read"
    runtime: Runtime | None = None
    observer: Telemetry | None = None

    def to_project_path(self, path: str) -> str:
        """A path that the user gave, relative to the project: as given, or from the current directory if the project
        was found above it."""
        return os.path.relpath(path, self.project) if self.is_found and not Path(path).is_absolute() else path

    @property
    def source(self) -> ProjectSource:
        """The project directory, environment and variables that the options select."""
        from dataclasses import replace as replace_fields

        from reconciler.operations.opening.source import ProjectSource
        from reconciler.operations.runtime import Runtime

        runtime = self.runtime or Runtime()
        if self.observer is not None:
            runtime = replace_fields(runtime, observer=self.observer)
        assumes = self.secrets == "unchanged"
        return ProjectSource(self.project, self.environment, self.variables, self.parallelism, runtime, assumes)

    @property
    def has_color(self) -> bool:
        return output.supports_color(sys.stdout, self.no_color)


def is_traced() -> bool:
    """Whether environment variables configure an exporter of traces or metrics."""
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
    if value == "":  # an unset variable of a pipeline
        raise click.BadParameter("is empty; name an environment, or omit --env")
    return value


def _parse_variables(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not name=value")
        pairs[name] = value
    return pairs


def count_approvals(values: Iterable[str], read: Callable[[str], tuple[Key, int]]) -> dict[Key, int]:
    """Parses every `--allow`, each with one approval or several between commas. Repeated approvals add up.

    read  what one text approves, and its count; raises BadParameter
    """
    counts: dict[Key, int] = {}
    for text in (part.strip() for value in values for part in value.split(",")):
        key, number = read(text)
        if number == 0:
            raise click.BadParameter(f"{text!r} has a count of zero; use at least 1, as in {text.rpartition('=')[0]}=1")
        counts[key] = counts.get(key, 0) + number
    return counts


def _parse_approvals(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[tuple[str, str], int]:
    """Parses `--allow delete:BotUser=1,adopt:BotUser=2`."""
    return count_approvals(values, _read_approval)


def _read_approval(text: str) -> tuple[tuple[str, str], int]:
    match = _APPROVAL.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not RULE:KIND=N, as in delete:ReservedDomain=1")
    what, kind, number = match["what"], match["kind"], int(match["number"])
    if what not in _SCOPES and what not in _RULE_RISKS:
        known = ", ".join((*_SCOPES, *_RULE_RISKS))
        raise click.BadParameter(f"{text!r} names an unknown rule; use one of {known}")
    if what in _RULE_RISKS:
        _check_rule(text, what, kind, number)
    else:
        _check_scope(text, what, kind, number)
    return (what, kind), number


_APPROVAL = re.compile(r"(?P<what>[a-z_-]+):(?P<kind>\*|[A-Za-z_.]+(?:/[^=,\s]+)?)=(?P<number>[0-9]{1,9})")
_SCOPES = {  # rule: (may be approved for one kind, may be approved for all kinds together with `*`)
    "delete": (True, True),
    "delete-protected": (True, False),
    "create": (True, False),
    "adopt": (True, False),
    "overwrite": (True, False),
    "update": (False, True),
    "empty": (False, True),
    "account": (False, True),
    # Risks for which a project may require approval; `guards.require_approval` of reconciler.yaml has the same.
    **dict.fromkeys(("widens_access", "locks_out", "exposes"), (True, True)),  # `*`: of entry points
    **dict.fromkeys(
        (
            "irreversible",
            "leaves_dns_record",
            "interrupts_traffic",
            "runs_command",
            "issues_credential",
            "disables_agent",
        ),
        (True, False),
    ),
}


_RULE_RISKS = ("loosens_rule", "changes_where_it_applies")  # of a branch that is compared with its base


def _list_rules(what: str) -> tuple[str, ...]:
    """The rules of a project that `loosens_rule` or `changes_where_it_applies` approves a change of."""
    if what not in _RULE_RISKS:
        return ()
    from reconciler.planning.judging.strictness import RULES

    return next(rules for risk, rules in RULES.items() if risk == what)


def _check_rule(text: str, what: str, rule: str, number: int) -> None:
    """Checks the name of a rule that a branch loosens."""
    known = _list_rules(what)
    if rule not in known:
        near = closest(rule, known)
        remedy = f"did you mean {what}:{near}={number}?" if near else f"use one of {', '.join(known)}"
        raise click.BadParameter(f"{text!r} names an unknown rule of a project; {remedy}")


def _check_scope(text: str, what: str, kind: str, number: int) -> None:
    of_one, of_all = _SCOPES[what]
    if kind == "*":
        if not of_all:
            raise click.BadParameter(f"{text!r} needs a kind instead of `*`, as in {what}:TLSEdge={number}")
        return
    from reconciler import kinds  # heavy, and needed only if a kind is named

    if not of_one:
        raise click.BadParameter(f"{text!r} cannot be limited to a kind; use {what}:*={number}")
    kind, named, _ = kind.partition("/")
    if named and what != "delete":
        raise click.BadParameter(f"{text!r} cannot be limited to one object; use {what}:{kind}={number}")
    if kinds.find(kind) is None:
        near = closest(kind, (known.name for known in kinds.list_planned()))
        remedy = f"did you mean {what}:{near}={number}?" if near else "`reconciler kinds` lists all kinds"
        raise click.BadParameter(f"{text!r} names an unknown kind; {remedy}")


def _complete_approval(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions such as `delete:ReservedDomain=1`: of the kinds of the project, or of all kinds after a colon."""
    what, colon, _ = incomplete.partition(":")
    if colon:
        from reconciler import kinds

        names = [kind.name for kind in kinds.list_planned()]
    else:
        names = sorted({name.partition("/")[0] for name in addresses.list_addresses(context)})
    found = [f"{what}:{rule}=1" for rule in _list_rules(what)]
    for rule, (of_one, of_all) in _SCOPES.items():
        if rule == what if colon else rule.startswith(what):
            found += [f"{rule}:{name}=1" for name in (*(names if of_one else ()), *("*" if of_all else ()))]
    return [CompletionItem(text) for text in found if text.startswith(incomplete)]


class OutputPath(click.Path):
    """The path of an output file or folder; rejects `-`.

    instead  the remedy for `-`
    whole    the file is replaced atomically, so that devices, pipes and folders are rejected too
    """

    def __init__(self, instead: str, *, whole: bool = True, **more: Any) -> None:
        super().__init__(**more)
        self._instead = instead
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail(f"'-' is not supported; {self._instead}", param, ctx)
        if self._whole and (file_type := _describe_other(value)):
            self.fail(f"{value!r} is {file_type}, not a regular file; {self._instead}", param, ctx)
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
        help="Project directory. [env: RECONCILER_PROJECT; default: the nearest directory above with reconciler.yaml]",
    ),
    click.option(
        "--env",
        "environment",
        metavar="NAME",
        callback=_check_environment,
        shell_complete=completions.complete_environment,
        help="Environment to use. [env: RECONCILER_ENV]",
    ),
    click.option(
        "--var",
        "variables",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_parse_variables,
        help="Set a variable, used in manifests as ${{ var.NAME }} (repeatable).",
    ),
]
_PARALLELISM = [
    click.option(
        "--parallelism",
        metavar="N",
        type=click.IntRange(1, 256),
        help="Number of concurrent requests. [default: as set in reconciler.yaml, or 16]",
    ),
]
MESSAGE_OPTIONS = [
    click.option("--no-color", is_flag=True, help="Disable color output. [env: NO_COLOR]"),
    click.option("--quiet", "-q", is_flag=True, help="Print only results and errors."),
    click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        default="text",
        envvar="RECONCILER_LOG_FORMAT",
        help="Format of messages on standard error. [env: RECONCILER_LOG_FORMAT; default: text]",
    ),
]
OUTPUT_OPTIONS = [
    *MESSAGE_OPTIONS,
    click.option("--trace", is_flag=True, help="Export OpenTelemetry traces and metrics, configured by OTEL_*."),
]
_SELECTION = [
    click.option(
        "--target",
        "targets",
        metavar="KIND/NAME",
        multiple=True,
        shell_complete=addresses.complete,
        help="Limit to this resource; * and ? are wildcards (repeatable).",
    ),
    click.option(
        "--exclude",
        "excludes",
        metavar="KIND/NAME",
        multiple=True,
        shell_complete=addresses.complete,
        help="Exclude this resource; * and ? are wildcards (repeatable).",
    ),
    *_PARALLELISM,
]
_ALLOW = [
    click.option(
        "--allow",
        metavar="RULE:KIND=N",
        multiple=True,
        callback=_parse_approvals,
        shell_complete=_complete_approval,
        help="Approve N blocked changes, such as delete:ReservedDomain=1 (repeatable; counts add up).",
    ),
]
_APPROVALS = [
    click.option("--adopt", is_flag=True, help="Adopt existing unmanaged objects."),
    *_ALLOW,
]
_SECRETS = [
    click.option(
        "--secrets",
        type=click.Choice(("read", "unchanged")),
        default="read",
        help="unchanged: assume that secrets which cannot be read here are as last applied. [default: read]",
    ),
]
_REPLACE = [
    click.option(
        "--replace",
        "to_replace",
        metavar="KIND/NAME",
        multiple=True,
        shell_complete=addresses.complete,
        help="Force replacement of this resource (repeatable).",
    ),
]
_EVENTS = [click.option("--events", metavar="FILE", help="Write events as JSON lines to FILE; - is standard error.")]


name_server_option = click.option(
    "--nameserver",
    "name_server",
    metavar="HOST:PORT",
    help="Ask this server instead of those of each zone, such as an internal one.",
)


def check_name_server(name_server: str | None, *, verify: bool) -> None:
    """Raises UsageError for `--nameserver` without `--verify`."""
    if name_server is not None and not verify:
        raise click.UsageError("--nameserver needs --verify")


ignore_option = click.option(
    "--ignore",
    "ignored",
    metavar="GLOB",
    multiple=True,
    help="Ignore this difference, such as 'TLSEdge/*.description' (repeatable).",
)


def _add_options(options: list[Callable[[Any], Any]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator that adds options to a command, which receives them as one `Options` in its first argument."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run_with_options(**flags: Any) -> int:
            own = {name: value for name, value in flags.items() if name not in Options.__struct_fields__}
            shared = {name: value for name, value in flags.items() if name in Options.__struct_fields__}
            context = click.get_current_context()
            options = Options(**shared, runtime=context.find_root().obj)
            project = find_project(context, options.project)
            options = replace(options, project=project, is_found=project != options.project)
            output.set_log_format(options.log_format)
            if options.trace or is_traced():
                from reconciler.cli.terminal import resource_attributes, telemetry

                return telemetry.run_traced(
                    context.info_name or "reconciler",
                    lambda observer: command(replace(options, observer=observer), **own),
                    lambda: resource_attributes.describe_project(options.source),
                    required=options.trace,
                )
            return command(options, **own)

        command_with_options: Callable[..., int] = run_with_options
        for option in reversed(options):
            command_with_options = option(command_with_options)
        return command_with_options

    return decorate


def list_common_options() -> list[click.Option]:
    """The options that most commands have, for the help of the whole command line."""

    @click.command()
    @_add_options([*_PROJECT, *OUTPUT_OPTIONS])
    def command(_common: Options) -> int:
        return 0

    return [param for param in command.params if isinstance(param, click.Option) and param.name in COMMON]


def find_project(context: click.Context, project: Path) -> Path:
    """The project directory: the value of --project or its variable, or the nearest project above this directory."""
    from reconciler.project import discovery

    is_default = context.get_parameter_source("project") is ParameterSource.DEFAULT
    return discovery.find_project(Path()) if is_default else project


project_options = _add_options([*_PROJECT, *OUTPUT_OPTIONS])
account_options = _add_options([*_PROJECT, *_PARALLELISM, *OUTPUT_OPTIONS])
snapshot_options = _add_options([*_PROJECT, *_SECRETS, *_PARALLELISM, *OUTPUT_OPTIONS])
status_options = import_options = _add_options([*_PROJECT, *_SELECTION, *OUTPUT_OPTIONS])
adopt_options = _add_options([*_PROJECT, *_PARALLELISM, *_ALLOW, *_EVENTS, *OUTPUT_OPTIONS])
drift_options = _add_options([*_PROJECT, *_SELECTION, *_SECRETS, *_APPROVALS, *OUTPUT_OPTIONS])
plan_options = _add_options([*_PROJECT, *_SELECTION, *_REPLACE, *_SECRETS, *_APPROVALS, *OUTPUT_OPTIONS])
apply_options = _add_options([*_PROJECT, *_SELECTION, *_REPLACE, *_APPROVALS, *_EVENTS, *OUTPUT_OPTIONS])
destroy_options = _add_options([*_PROJECT, *_SELECTION, *_APPROVALS, *_EVENTS, *OUTPUT_OPTIONS])
