"""Tables of outcomes: a row for each command line, a column for each state, and what the command does in a cell.

A cell is the exit code, `o` and `e` for text on standard output and standard error, and marks of what was changed. An
answer at a terminal is in parentheses behind the command line; without one, there is no terminal.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model import exit_codes
from tests.harness.project import Output

Table = dict[str, dict[str, str]]  # row → state → cell


def read_table(file: Path) -> Table:
    header, *lines = (line for line in file.read_text(encoding="utf-8").splitlines() if line)
    states = header.split()
    rows = (line.split() for line in lines)
    return {" ".join(words[: -len(states)]): dict(zip(states, words[-len(states) :], strict=True)) for words in rows}


def code_of(cell: str) -> int:
    return int(re.match(r"\d+", cell)[0])  # type: ignore[index]


def choose_quick(table: Table) -> set[tuple[str, str]]:
    """The cells of `make test`: where the flags of a row matter first, each exit code of a command, each state."""
    chosen, seen = set(), set[object]()
    for row, cells in table.items():
        command = row.split()[0]
        plain = f"{command} -y" if f"{command} -y" in table else command
        bare = table.get(plain, {})
        state = next((state for state, cell in cells.items() if cell != bare.get(state)), "")
        if not state:
            continue
        chosen |= {(row, state), *([(plain, state)] if bare else [])}  # with the flags, and without
        seen |= {(command, code_of(cells[state])), state}
    for row, cells in table.items():
        for state, cell in cells.items():
            features: set[object] = {(row.split()[0], code_of(cell)), state}
            if not features <= seen:
                seen |= features
                chosen.add((row, state))
    return chosen


class Terminal(io.StringIO):
    """A terminal at which somebody has typed an answer."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self._reader, writer = os.pipe()
        os.write(writer, answer.encode())
        os.close(writer)

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._reader

    def close(self) -> None:
        if not self.closed:
            os.close(self._reader)
        super().close()


def run_row(words: list[str], command: Callable[..., Output]) -> Output:
    """Runs the command line of a row, at a terminal if it ends with an answer."""
    typed = Terminal(f"{words.pop()[1:-1]}\n") if words[-1].startswith("(") else io.StringIO()
    with pytest.MonkeyPatch.context() as patch, typed:
        patch.setattr("sys.stdin", typed)
        return command(*words)


def check_streams(row: str, result: Output, reason: str) -> None:
    """Laws of all commands: JSON is whole or absent, and a failure has a reason."""
    if "json" in row.split() and result.out:
        json.loads(f"[{','.join(result.out.splitlines())}]" if row.startswith("history") else result.out)
    if result.code not in (exit_codes.DONE, exit_codes.CHANGES, exit_codes.DEGRADED):
        assert reason, row
    assert "Traceback" not in result.err, row
    assert "unexpected" not in result.err, row
