"""How the command line speaks: the answer on standard output, everything else on standard error, each failure as one
line and one exit code. Knows no command.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from reconciler.cli.terminal import exit_codes
from reconciler.model.problem import Problem, Rejected, Severity
from reconciler.operations.errors import NothingSelected, OperationError, UnusableSetting
from reconciler.rendering import terminal_text

FILE_WIDTH = 100  # columns where no terminal says otherwise: logs of pipelines are read in a browser


def print_result(text: str) -> None:
    """What the command was asked for."""
    _try(sys.stdout, lambda: sys.stdout.write(text if text.endswith("\n") or not text else text + "\n"))


def _write_note(line: str) -> None:
    _try(sys.stdout, sys.stdout.flush)  # keeps the two streams in order where both end in one log
    _try(sys.stderr, lambda: sys.stderr.write(line + "\n"))


_raises = True  # or else nobody has to be there


@contextmanager
def ignore_closed_output() -> Iterator[None]:
    """Meanwhile what cannot be written is dropped: what is done to an account is not torn for want of a listener."""
    global _raises
    _raises = False
    try:
        yield
    finally:
        _try(sys.stdout, sys.stdout.flush)
        _raises = True


def _try(stream: TextIO, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        if _raises:
            raise
        discard(stream)
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            print_note(f"warning: standard output: {reason(error)}")


def discard(stream: TextIO) -> None:
    """What is written there from now on, and what is still in its buffer, goes nowhere."""
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
}  # of a line that begins so
_format = ""  # as the environment says


def set_log_format(log_format: str) -> None:
    """From now on standard error reads like this: `text` or `json`."""
    global _format
    _format = log_format


def is_json_log() -> bool:
    return (_format or os.environ.get(_FORMAT)) == "json"


def print_note(text: str) -> None:
    """A line that the user should know beside the answer."""
    if is_json_log():
        log(_LEVELS.get(text.partition(":")[0], "info"), text)
        return
    _write_note(terminal_text.sanitize(text))


def log(level: str, text: str, fields: Mapping[str, object] | None = None) -> None:
    """A line of JSON on standard error."""
    import json
    from datetime import UTC, datetime

    told = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "message": terminal_text.sanitize(text),
    }
    line = json.dumps({**told, **(fields or {})})
    _write_note(line.replace("##", "#\\u0023"))  # a pipeline obeys `##[…]` anywhere in a line


def supports_color(stream: TextIO, no_color: bool) -> bool:
    """NO_COLOR counts when it is set to anything but the empty string (no-color.org)."""
    return stream.isatty() and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    return max(40, shutil.get_terminal_size((FILE_WIDTH, 24)).columns)


def read_file(file: Path) -> str:
    """A file the user named."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {file}: not UTF-8 text") from None


def print_problems(found: Sequence[Problem]) -> None:
    """Each on its line, then how many there are."""
    for problem in found:
        if is_json_log():
            log(str(problem.severity), str(problem), _fields(problem))
        else:
            print_note(str(problem))
    if found:
        print_note(tally(found))


def _fields(problem: Problem) -> dict[str, object]:
    at = problem.position
    where = {} if at is None else {"file": terminal_text.sanitize(at.file), "line": at.line, "column": at.column}
    words = {"subject": problem.subject, "problem": problem.text, "remedy": problem.remedy, "code": problem.code}
    values = {"values": dict(problem.values)} if problem.values else {}
    return {**where, **{name: terminal_text.sanitize(text) for name, text in words.items() if text}, **values}


def tally(found: Sequence[Problem]) -> str:
    """`3 problems, 1 warning`"""
    nouns = {"error": "problem"}
    counts = Counter(problem.severity for problem in found)
    counted = [(counts[severity], nouns.get(severity, severity)) for severity in Severity]
    return ", ".join(count(number, noun) for number, noun in counted if number) or "no problems"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`"""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def print_error(error: Exception) -> int:
    """Says what happened, and answers with the exit code that stands for it."""
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
    from reconciler.engine.ports import Failure, Refused, Undeliverable
    from reconciler.project.files import Unreadable
    from reconciler.store.errors import StoreError

    match error:
        case Refused() if error.is_permission:
            print_note(f"error: {error}; check the API key and what it may do")
            return exit_codes.AUTH
        case Unreadable():
            print_note(f"error: {error}" + (f"; {error.remedy}" if error.remedy else ""))
            return exit_codes.ERROR
        case Failure() | Undeliverable() | StoreError():
            print_note(f"error: {error}")
            return exit_codes.ERROR
    if os.environ.get("RECONCILER_DEBUG"):
        raise error
    print_note(f"error: unexpected {type(error).__name__}: {error}; RECONCILER_DEBUG=1 shows where it comes from")
    return exit_codes.ERROR


def _usage_text(error: click.UsageError) -> str:
    text = error.format_message().rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _usage(context: click.Context) -> str:
    return context.get_usage().removeprefix("Usage: ")
