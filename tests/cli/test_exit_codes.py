"""Exit codes: each has a meaning, and docs/commands.md lists the same."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.cli.terminal import exit_codes

ROOT = Path(__file__).parents[2]


def test_the_page_of_commands_has_the_same_exit_codes() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert {int(code): text for code, text in rows} == exit_codes.MEANINGS


def test_every_exit_code_has_a_meaning() -> None:
    assert set(exit_codes.MEANINGS) == {
        value for name, value in vars(exit_codes).items() if name.isupper() and type(value) is int
    }
