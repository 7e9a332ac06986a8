"""Output of the command line: results on standard output, messages on standard error, and errors as exit codes."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from reconciler.cli.terminal import exit_codes
from reconciler.model.problem import Problem, ReconcilerError, Rejected, Severity, merge_repeated, select_problems
from reconciler.operations.errors import (
    ApprovalRequired,
    ChangedWaves,
    NothingSelected,
    NotReviewed,
    OperationError,
    UnusableSetting,
)
from reconciler.rendering import terminal_text
from reconciler.rendering.text_tools import count

FILE_WIDTH = 100  # columns, if standard output is not a terminal; also for logs of pipelines


def print_result(text: str) -> None:
    """Writes a result to standard output. Raises OSError, if it cannot be written, before the caller goes on."""
    _write(sys.stdout, text if text.endswith("\n") or not text else text + "\n")


def _write_note(line: str) -> None:
    _write(sys.stderr, line + "\n")


_raises_write_errors = True


@contextmanager
def ignore_closed_output() -> Iterator[None]:
    """Ignores write errors on stdout and stderr inside the block, so that a closed pipe cannot interrupt an apply."""
    global _raises_write_errors
    _raises_write_errors = False
    try:
        yield
    finally:
        _raises_write_errors = True


_progress = ""


def show_progress(text: str) -> None:
    """Shows what a command is doing on the last line of a terminal, until the next output or an empty text.

    On standard error, and only at a terminal: a pipeline's log has no such lines.
    """
    global _progress
    text = text[: width() - 1]
    if text == _progress or is_json_log() or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return
    line = f"\r{' ' * len(_progress)}\r{text}"  # erased without escape sequences, which NO_COLOR excludes
    _progress = text
    _emit(sys.stderr, line)


def _write(stream: TextIO, text: str) -> None:
    show_progress("")
    _emit(stream, text)


def _emit(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        discard(stream)  # otherwise what remains in its buffer fails again at the next flush
        if _raises_write_errors:
            raise
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            print_note(f"warning: standard output: {reason(error)}")


def discard(stream: TextIO) -> None:
    """Redirects a stream, with the content of its buffer, to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def reason(error: OSError) -> str:
    """`no space left on device`"""
    return (error.strerror or str(error)).lower()


_FORMAT = "RECONCILER_LOG_FORMAT"
_LEVELS = {
    "warning": "warning",
    "error": "error",
    "blocked": "error",
    "failed": "error",
    "skipped": "warning",
    "unknown": "warning",
}  # by the text before the first colon of a message
_format = ""  # empty: RECONCILER_LOG_FORMAT


def set_log_format(log_format: str) -> None:
    """Sets the format of messages on standard error: `text` or `json`."""
    global _format
    _format = log_format


def is_json_log() -> bool:
    return (_format or os.environ.get(_FORMAT)) == "json"


def print_note(text: str) -> None:
    """Writes a message to standard error, as text or as JSON."""
    if is_json_log():
        log(_LEVELS.get(text.partition(":")[0], "info"), text)
        return
    _write_note(terminal_text.sanitize(text))


def log(level: str, text: str, fields: Mapping[str, object] | None = None) -> None:
    """Writes a message with a level and further fields as a line of JSON to standard error."""
    import json
    from datetime import UTC, datetime

    record = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "message": terminal_text.sanitize(text),
    }
    line = json.dumps({**record, **(fields or {})})
    _write_note(line.replace("##", "#\\u0023"))  # CI runners execute `##[…]` anywhere in a line


def supports_color(stream: TextIO, no_color: bool) -> bool:
    """Whether to use colors: on a terminal, without --no-color and NO_COLOR (not empty, see no-color.org)."""
    return stream.isatty() and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    return max(40, shutil.get_terminal_size((FILE_WIDTH, 24)).columns)


def read_file(file: Path) -> str:
    """The text of a file that the user named. Raises Unreadable if it is too large, not a regular file or not UTF-8."""
    from reconciler.project import named_files

    return named_files.read_text(file, named_files.LARGEST_TEXT)


MOST_PROBLEMS = 100  # as text: more would hide the first ones


def print_problems(problems: Sequence[Problem]) -> None:
    """Prints each problem on a line, errors before others if there are too many, and their number.

    As text, a problem that several instances of a manifest have is one.
    """
    if is_json_log():
        for problem in problems:
            log(str(problem.severity), str(problem), _fields(problem))
    else:
        problems = merge_repeated(problems)
        for problem in select_problems(problems, MOST_PROBLEMS):
            print_note(str(problem))
        if (more := len(problems) - MOST_PROBLEMS) > 0:
            print_note(
                f"… and {more:,} more {'problem' if more == 1 else 'problems'}; --log-format json prints all of them"
            )
    if problems:
        print_note(tally(problems))


def _fields(problem: Problem) -> dict[str, object]:
    at = problem.position
    location = {} if at is None else {"file": terminal_text.sanitize(at.file), "line": at.line, "column": at.column}
    texts = {"subject": problem.subject, "problem": problem.text, "remedy": problem.remedy, "code": problem.code}
    values = {"values": dict(problem.values)} if problem.values else {}
    return {**location, **{name: terminal_text.sanitize(text) for name, text in texts.items() if text}, **values}


def tally(problems: Sequence[Problem]) -> str:
    """`3 errors, 1 warning`"""
    counts = Counter(problem.severity for problem in problems)
    return ", ".join(count(counts[severity], severity) for severity in Severity if counts[severity]) or "no problems"


def print_error(error: Exception) -> int:
    """Prints an exception as error messages and returns its exit code. Re-raises an unexpected one if
    RECONCILER_DEBUG is set."""
    match error:
        case exit_codes.Stop():
            for line in error.lines:
                print_note(line)
            return error.code
        case Rejected():
            print_problems(error.problems)
            return exit_codes.ERROR
        case OperationError():
            for line in error.lines:
                print_note(f"error: {line}")
            if error.remedy:
                print_note(error.remedy)
            if isinstance(error, (ChangedWaves, NotReviewed)):
                return exit_codes.STALE
            if isinstance(error, ApprovalRequired):
                return exit_codes.BLOCKED
            return exit_codes.USAGE if isinstance(error, (NothingSelected, UnusableSetting)) else exit_codes.ERROR
        case click.UsageError():
            print_note(f"error: {_usage_text(error)}")
            if error.ctx is not None:
                print_note(f"usage: {_usage(error.ctx)}")
            return exit_codes.USAGE
        case click.ClickException():
            print_note(f"error: {error.format_message()}")
            return exit_codes.ERROR
        case OSError() if error.strerror:
            name = f"{error.filename}: " if error.filename else ""
            print_note(f"error: {name}{error.strerror.lower()}")
            return exit_codes.ERROR
    return _print_failure(error)


def _print_failure(error: Exception) -> int:
    from reconciler.engine.ports import Refused
    from reconciler.project.files import Unreadable

    match error:
        case Refused() if error.is_permission:
            print_note(f"error: {error}; check the API key and its permissions")
            return exit_codes.AUTH
        case Unreadable():
            print_note(f"error: {error}" + (f"; {error.remedy}" if error.remedy else ""))
            return exit_codes.ERROR
        case ReconcilerError():
            print_note(f"error: {error}")
            return exit_codes.ERROR
    if os.environ.get("RECONCILER_DEBUG"):
        raise error
    print_note(f"error: unexpected {type(error).__name__}: {error}; set RECONCILER_DEBUG=1 for a traceback")
    return exit_codes.ERROR


def _usage_text(error: click.UsageError) -> str:
    text = error.format_message().rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _usage(context: click.Context) -> str:
    return context.get_usage().removeprefix("Usage: ")
