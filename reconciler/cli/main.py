"""The `reconciler` command: its table of subcommands, and the one place where whatever went wrong becomes a line
on standard error and an exit code. Imports nothing heavy: each command's module is loaded when it is invoked.
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

COMMANDS = {
    "init": "write a new project",
    "validate": "check the manifests; needs no network",
    "fmt": "lay out the manifests in one style",
    "kinds": "list the kinds of resources",
    "schema": "print the JSON Schema of a kind",
    "explain": "say what a kind, a field or the code of a problem means",
    "plan": "show what would change, and the exact calls",
    "apply": "carry out a plan",
    "import": "write manifests for what exists and is not declared",
    "adopt": "take over what exists and belongs to nobody",
    "destroy": "delete everything this stack owns",
    "drift": "show what moved since the last apply, and who moved it",
    "snapshot": "write down the account, for plans where there is no key",
    "graph": "draw what depends on what",
    "show": "show a plan file",
    "list": "list what there is of a kind, whoever it belongs to",
    "comment": "write a plan as a comment on a pull or merge request",
    "history": "list how the calls of earlier runs ended",
    "report": "write a page about drift over time and past applies",
    "agent": "write the configuration file of an agent",
    "sandbox": "run a stand-in of the platform on this machine",
    "completion": "print the completion script of a shell",
}

_COMPLETE = "_RECONCILER_COMPLETE"  # click's protocol: the completion script sets it


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    help="Keeps a tunnel platform's account equal to what is written in Git.",
    examples="""
        reconciler validate
        reconciler plan --out plan.json
        reconciler apply plan.json
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
    """The installed command: runs the command line and ends the process.

    At once, when nothing is left to be told or waited for: Python's own way out takes apart, piece by piece, all that
    was built, which is a twentieth of a large plan.
    """
    code = main()
    # Whoever interrupts does not wait for a thread that waits for a database.
    if (threading.active_count() > 1 and code != exit_codes.INTERRUPTED) or sys.getprofile() is not None:
        sys.exit(code)
    atexit._run_exitfuncs()  # what others asked for, such as telemetry's last words
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # gone, or never there
            stream.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None, runtime: Runtime | None = None) -> int:
    """Runs the command line and returns its exit code. Never raises, unless RECONCILER_DEBUG is set.

    runtime  what a test replaces: clock, platform, sinks
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    # pydantic would read what every installed package says of itself, in search of plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # What a command builds lives until it ends: to look for garbage in it would be a third of the work.
    gc.set_threshold(1_000_000, 20, 100)
    lean_imports.install()
    with _handle_sigterm():
        return _main(arguments, runtime)


def _main(arguments: Sequence[str], runtime: Runtime | None) -> int:
    _open_streams()
    try:
        code = _run(list(arguments), runtime)
        sys.stdout.flush()
    except BrokenPipeError:
        return _handle_closed_pipe()
    except (KeyboardInterrupt, click.Abort, EOFError):
        return _print_error(exit_codes.Stop(exit_codes.INTERRUPTED, "interrupted"))
    except Exception as error:  # noqa: BLE001 - the last stop before a traceback
        return _print_error(error)
    return code


def _open_streams() -> None:
    """Those that were closed before we began lead nowhere: a file that is opened later must not take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - a stream, for as long as we live
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 still shows what it can


@contextmanager
def _handle_sigterm() -> Iterator[None]:
    """SIGTERM is an interrupt like SIGINT, from the first moment on."""
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
        from click.shell_completion import shell_complete

        return shell_complete(reconciler, {}, "reconciler", _COMPLETE, instruction)
    try:
        # Not reconciler.main(), which takes any EPIPE, also of a socket, for a reader that left.
        with reconciler.make_context("reconciler", arguments, obj=runtime) as context:
            answer = reconciler.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return answer if isinstance(answer, int) else exit_codes.DONE


def _handle_closed_pipe() -> int:
    """Whoever read our output has left, as `head` does: no reason to complain."""
    from reconciler.cli.terminal import output

    output.discard(sys.stdout)  # what is still buffered has nowhere to go, and the interpreter would say so at its end
    return exit_codes.ERROR


def _print_error(error: Exception) -> int:
    from reconciler.cli.terminal import output

    try:
        return output.print_error(error)
    except BrokenPipeError:
        return exit_codes.ERROR
