"""The `reconciler` command: the table of subcommands, and the conversion of exceptions to messages and exit codes.

Imports nothing heavy: the module of a command is loaded when the command is invoked.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import click

from reconciler import __version__
from reconciler.cli.terminal import exit_codes, lean_imports
from reconciler.cli.terminal.group import LazyGroup

if TYPE_CHECKING:
    from reconciler.operations.runtime import Runtime

GROUPS = {  # the commands, in the order of `--help`
    "Every day": {
        "validate": "Check manifests and policies, without network access",
        "plan": "Show the changes that apply would make, with each API call",
        "apply": "Create, update and delete resources according to a plan",
        "drift": "Show what changed on the platform since the last apply",
        "status": "Show whether the stack is in sync and works, and what comes due",
        "access": "List every way in and who gets through, or explain one request",
    },
    "Write manifests": {
        "init": "Create a new project",
        "import": "Write manifests for existing objects",
        "fmt": "Format manifests",
        "rename": "Rename a resource in the manifests, with all references",
        "explain": "Explain a kind, a field, a resource's values or an error code",
        "kinds": "List the kinds of resources",
        "schema": "Print the JSON Schema of a kind",
        "graph": "Draw the dependency graph",
    },
    "Review": {
        "comment": "Post a plan as a comment on a pull or merge request",
        "show": "Show a plan file",
        "snapshot": "Save the account to a file, to plan without an API key",
    },
    "Ownership": {
        "adopt": "Adopt existing unmanaged objects, by name",
        "accept": "Write the platform's values into the manifests",
        "forget": "Stop managing resources, and keep their objects",
        "destroy": "Delete all objects that the stack manages",
    },
    "Operations": {
        "list": "List the objects in the account, of all kinds or one",
        "dns": "Print the DNS records that the account needs, or verify them",
        "history": "List the API calls of earlier runs and their outcomes",
        "report": "Create an HTML report of drift and applies",
        "agent": "Write the configuration file of an agent",
    },
    "Many accounts": {
        "fleet": "Plan and apply the same projects in many accounts",
    },
    "Tools": {
        "sandbox": "Run a local emulator of the platform",
        "completion": "Print the shell completion script",
    },
}
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

_COMPLETE = "_RECONCILER_COMPLETE"  # click's protocol: the completion script sets it


class Root(LazyGroup):
    """The whole command line, whose help has the options that most commands have."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from reconciler.cli.terminal.options import list_common_options

        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)
        with formatter.section("Options of most commands"):
            formatter.write_dl([record for option in list_common_options() if (record := option.get_help_record(ctx))])


@click.group(
    cls=Root,
    groups=GROUPS,
    help="Reconcile a tunnel platform's account with manifests in Git.",
    examples="""
        reconciler validate
        reconciler plan --out .reconciler/plan.json
        reconciler apply .reconciler/plan.json
        reconciler drift
    """,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, message="reconciler %(version)s")
@click.pass_context
def reconciler(context: click.Context) -> int | None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        return exit_codes.USAGE
    return None


def entry() -> NoReturn:
    """Entry point of the installed script: runs the command line and ends the process.

    Skips the interpreter's teardown where no thread is running: freeing all objects takes 5% of a large plan's time.
    """
    code = main()
    # After an interrupt, threads that wait for a database are not joined.
    if (threading.active_count() > 1 and code != exit_codes.INTERRUPTED) or sys.getprofile() is not None:
        sys.exit(code)
    atexit._run_exitfuncs()  # exit handlers of libraries, such as the final export of telemetry
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or missing
            stream.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None, runtime: Runtime | None = None) -> int:
    """Runs the command line and returns its exit code. Never raises, unless RECONCILER_DEBUG is set.

    arguments  without the program's name; those of the process by default
    runtime    replacements for tests: clock, platform, sinks
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    # Most objects of a command live until it ends: default garbage collection would take a third of the run time.
    gc.set_threshold(1_000_000, 20, 100)
    lean_imports.install()
    with _handle_sigterm():
        return _main(arguments, runtime)


def _main(arguments: Sequence[str], runtime: Runtime | None) -> int:
    _open_streams()
    try:
        return _run(list(arguments), runtime)
    except BrokenPipeError:
        return _handle_closed_pipe()
    except (KeyboardInterrupt, click.Abort, EOFError):
        return _print_error(exit_codes.Stop(exit_codes.INTERRUPTED, "interrupted"))
    except Exception as error:  # noqa: BLE001 - the last stop before a traceback
        return _print_error(error)


def _open_streams() -> None:
    """Connects closed standard streams to the null device, so that no other file gets their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for terminals without UTF-8


@contextmanager
def _handle_sigterm() -> Iterator[None]:
    """Treats SIGTERM as an interrupt, like SIGINT, inside the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _run(arguments: list[str], runtime: Runtime | None) -> int:
    if instruction := os.environ.get(_COMPLETE):
        from click.shell_completion import add_completion_class, shell_complete

        from reconciler.cli.terminal.completions import BashCompletion

        add_completion_class(BashCompletion)
        return shell_complete(reconciler, {}, "reconciler", _COMPLETE, instruction)
    try:
        # Not reconciler.main(): it treats every EPIPE as a closed standard output, also that of a socket.
        with reconciler.make_context("reconciler", arguments, obj=runtime) as context:
            answer = reconciler.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return answer if isinstance(answer, int) else exit_codes.DONE


def _handle_closed_pipe() -> int:
    """Ends quietly after the reader of the output closed the pipe, as `head` does."""
    from reconciler.cli.terminal import output

    output.discard(sys.stdout)  # otherwise the interpreter reports an error when it flushes the buffer at exit
    return exit_codes.ERROR


def _print_error(error: Exception) -> int:
    from reconciler.cli.terminal import output

    with output.ignore_closed_output():
        return output.print_error(error)
