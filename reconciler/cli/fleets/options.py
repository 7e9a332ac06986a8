"""The options that `fleet` commands share, parsed into one frozen `FleetOptions`."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.cli.terminal import exit_codes, formats, options, output
from reconciler.cli.terminal.formats import Outputs

if TYPE_CHECKING:
    from reconciler.cli.terminal.telemetry import Telemetry
    from reconciler.model.fleet import Selector
    from reconciler.operations.runtime import Runtime

FORMS = ("text", "markdown", "html", "json", "junit")


class FleetOptions(Struct, frozen=True):
    """The shared options of one invocation; a command without an option has its default.

    file       the fleet file; None: the nearest one above the current directory
    selector   of members; empty: all
    workers    number of local worker processes; None: this process
    scheduler  address of a Dask scheduler; empty: none
    repository Git URL that the workers of a scheduler fetch; empty: the remote `origin`
    runtime    replacements that the caller of `main` passed
    observer   traces and metrics of the run, if enabled
    """

    file: Path | None = None
    selector: Selector = field(default_factory=dict)
    workers: int | None = None
    scheduler: str = ""
    repository: str = ""
    chosen: Outputs = field(default_factory=lambda: [("text", "")])
    quiet: bool = False
    no_color: bool = False
    log_format: str = "text"
    trace: bool = False
    runtime: Runtime | None = None
    observer: Telemetry | None = None

    def locate(self) -> tuple[Path, str]:
        """The folder and the name of the fleet file. Raises Stop if --file names none."""
        from reconciler.project.fleets.load import FILE, find_fleet_file

        if self.file is None:
            found = find_fleet_file(Path())
            return found.parent, found.name
        path = self.file / FILE if self.file.is_dir() else self.file
        if not path.is_file():
            raise exit_codes.Stop(exit_codes.USAGE, f"error: --file: there is no file {path}")
        return path.parent, path.name

    def describe(self) -> dict[str, str]:
        """The fleet as attributes for telemetry; empty if its file is not valid, which the command reports."""
        from reconciler.cli.terminal import resource_attributes
        from reconciler.model.problem import Rejected
        from reconciler.operations.runtime import Runtime
        from reconciler.project.files import Unreadable
        from reconciler.project.fleets.load import load_fleet

        try:
            folder, file = self.locate()
            name = load_fleet(folder, file).name
        except (exit_codes.Stop, Rejected, Unreadable, OSError):
            return {}
        return resource_attributes.describe_fleet(name, folder, self.runtime or Runtime())

    @property
    def has_color(self) -> bool:
        return output.supports_color(sys.stdout, self.no_color)

    @property
    def prints_text(self) -> bool:
        """Whether standard output is for people: no other format is written to it."""
        return all(form == "text" or file for form, file in self.chosen)


def _parse_selector(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> Selector:
    """Parses `region=eu` and `name=shop-*`; several values of one label are alternatives."""
    selector: dict[str, tuple[str, ...]] = {}
    for text in values:
        label, equals, value = text.partition("=")
        if not equals or not label or not value:
            raise click.BadParameter(f"{text!r} is not LABEL=VALUE, as in region=eu or name=shop-*")
        selector[label] = (*selector.get(label, ()), value)
    return selector


def _parse_limits(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """Parses `members=100` and `deletes=5`."""
    return options.count_approvals(values, _read_limit)


def _read_limit(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(members|deletes)=([0-9]{1,9})", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not members=N or deletes=N")
    return match[1], int(match[2])


def _parse_scheduler(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"(tls|tcp)://[^/\s]+:[0-9]+/?", value):
        raise click.BadParameter(f"{value!r} is not an address such as tls://host:8786")
    return value


def _parse_formats(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> Outputs:
    return formats.parse_outputs(values, FORMS, "json=run.json")


def _complete_format(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(form) for form in FORMS if form.startswith(incomplete)]


def _check_file(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and str(value) in ("", "-"):
        raise click.BadParameter("is not a file; name a fleet file")
    return value


_FILE = [
    click.option(
        "--file",
        "-f",
        metavar="FILE",
        type=click.Path(path_type=Path),
        callback=_check_file,
        help="Fleet file. [default: the nearest fleet.yaml in a directory above]",
    )
]
_SELECT = [
    click.option(
        "--select",
        "selector",
        metavar="LABEL=VALUE",
        multiple=True,
        callback=_parse_selector,
        help="Limit to members with this label; name=GLOB selects by name (repeatable).",
    )
]
_POOL = [
    click.option(
        "--workers",
        metavar="N",
        type=click.IntRange(1, 256),
        help="Run on N worker processes of this machine. Needs the extra fleet. [default: this process]",
    ),
    click.option(
        "--scheduler",
        metavar="URL",
        default="",
        callback=_parse_scheduler,
        help="Run on the workers of this Dask scheduler, such as tls://host:8786. Needs the extra fleet.",
    ),
    click.option(
        "--repository",
        metavar="URL",
        default="",
        help="With --scheduler: Git repository that workers fetch. [default: the remote origin]",
    ),
]
_FORMAT = [
    click.option(
        "--format",
        "chosen",
        metavar="FORM[=FILE]",
        multiple=True,
        callback=_parse_formats,
        shell_complete=_complete_format,
        help=f"Output format: {', '.join(FORMS)} (repeatable). [default: text]",
    )
]
_OUTPUT = options.OUTPUT_OPTIONS

approve_option = click.option(
    "--approve",
    "shapes",
    metavar="SHAPE",
    multiple=True,
    help="Approve a shape that needs approval, by its digest (repeatable).",
)
no_wait_option = click.option(
    "--no-wait", is_flag=True, help="Exit where a later wave has to wait; `fleet resume` continues."
)
limits_option = click.option(
    "--allow",
    "limits",
    metavar="GUARD=N",
    multiple=True,
    callback=_parse_limits,
    help="Exceed a guard of the fleet: change members=N, or delete deletes=N objects (repeatable; counts add up).",
)


def _add_options(chosen: list[Callable[[Any], Any]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator that adds options to a command, which receives them as one `FleetOptions` in its first argument."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run_with_options(**flags: Any) -> int:
            names = FleetOptions.__struct_fields__
            shared = {name: value for name, value in flags.items() if name in names}
            own = {name: value for name, value in flags.items() if name not in names}
            context = click.get_current_context()
            opened = FleetOptions(**shared, runtime=context.find_root().obj)
            output.set_log_format(opened.log_format)
            if opened.workers and opened.scheduler:
                raise click.UsageError("--workers and --scheduler exclude each other")
            if opened.repository and not opened.scheduler:
                raise click.UsageError("--repository requires --scheduler")
            if opened.trace or options.is_traced():
                from reconciler.cli.terminal import telemetry

                return telemetry.run_traced(
                    f"fleet {context.info_name}",
                    lambda observer: command(replace(opened, observer=observer), **own),
                    opened.describe,
                    required=opened.trace,
                )
            return command(opened, **own)

        command_with_options: Callable[..., int] = run_with_options
        for option in reversed(chosen):
            command_with_options = option(command_with_options)
        return command_with_options

    return decorate


file_options = _add_options([*_FILE, *_OUTPUT])
report_options = _add_options([*_FILE, *_FORMAT, *_OUTPUT])
run_options = _add_options([*_FILE, *_SELECT, *_POOL, *_FORMAT, *_OUTPUT])
resume_options = _add_options([*_FILE, *_POOL, *_FORMAT, *_OUTPUT])
