"""The documentation uses the terms of the glossary: no page contains a retired phrase."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Files and folders that are covered. Generated pages take their text from code and help, which are not covered yet.
COVERED = ("README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs")
GENERATED = ("docs/errors.md", "docs/project-file.md", "docs/kinds", "docs/decisions/README.md")

# Retired phrase (a regular expression, in any case) and its replacement.
RETIRED = {
    r"at stake": "risks",
    r"can(not|'t) be had( back)?": "irreversible; cannot be recovered",
    r"(goes|went|go) unheard": "ignored",
    r"\bmovers?\b": "changed by",
    r"who moved": "what changed",
    r"what moved": "what changed on the platform",
    r"\bconsents?\b": "approval",
    r"\bwho(m|mso)?ever\b": "everyone who, a user who; or name the program",
    r"\btwins?\b": "alias",
    r"tombstones?": "`ensure: absent`",
    r"\b(a|each|every|first|second|third|fourth|last|recorded|later|next) looks?\b": "refresh, snapshot or drift check",
    r"\bstand-in\b": "local emulator",
    r"(belongs?|belonging) to nobody": "is not managed by any stack",
    r"(nobody|no one) (declares|owns)": "not declared; not managed by any stack",
    r"behind Git's back": "outside Git",
    r"made anew": "replaced, or created again",
    r"left alone": "not managed, or unchanged",
    r"whose (an|the) object is": "ownership",
    r"a ring of": "circular",
    r"is told (at|as|by|of|from|on)\b": "reported, or recognized",
    r"as (was|it was|they were) told": "as configured",
    r"everybody": "everyone",
    r"(carried|carries|carry) out": "apply, execute",
    r"broke off": "failed, blocked or aborted",
    r"keep equal": "reconcile",
    r"unless (said|told) otherwise": "[default: …]",
    r"the way out": "the remedy",
    r"\bspel(l|ls)\b": "drift period",
}


def pages() -> list[Path]:
    found = (
        page for name in COVERED for page in ([ROOT / name] if name.endswith(".md") else (ROOT / name).rglob("*.md"))
    )
    return sorted(page for page in found if not page.relative_to(ROOT).as_posix().startswith(GENERATED))


def prose(page: str) -> str:
    """A page without code blocks and inline code, in which line numbers are kept: output is not the page's own text."""
    without_blocks = re.sub(
        r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), page, flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"`[^`\n]*`", "`…`", without_blocks)


def retired_phrases(text: str) -> list[str]:
    """Each retired phrase in a text, with its line and its replacement."""
    return [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; write: {replacement}"
        for phrase, replacement in RETIRED.items()
        for match in re.finditer(phrase.replace(" ", r"\s+"), text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_no_retired_phrase(page: Path) -> None:
    assert retired_phrases(prose(page.read_text(encoding="utf-8"))) == []


def test_a_retired_phrase_is_reported_with_its_replacement() -> None:
    text = prose("```\nat stake\n```\nWhat is `at stake` is\nwhat is at\nstake.\n")
    assert retired_phrases(text) == ["line 5: 'at\\nstake'; write: risks"]
