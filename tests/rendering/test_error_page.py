"""The entry of a code on a terminal."""

from __future__ import annotations

import pytest

from reconciler.model.codes import CODES, Code
from reconciler.model.problem import Severity
from reconciler.rendering.reference import error_page

CODE = Code(
    "It is made up.", "A test needs an entry with a long cause.", "Read on.", (Severity.ERROR, Severity.WARNING), True
)


def test_the_entry_of_a_code_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CODES, "made-up", CODE)
    assert error_page.text("made-up", 24).splitlines() == [
        "made-up (error or",
        "warning, strict): It is",
        "made up.",
        "",
        "Cause: A test needs an",
        "entry with a long cause.",
        "",
        "Remedy: Read on.",
    ]


@pytest.mark.parametrize(
    ("severities", "is_strict", "words"),
    [
        ((Severity.ERROR,), False, "error"),
        ((Severity.WARNING,), True, "warning, strict"),
        ((Severity.ERROR, Severity.NOTE), False, "error or note"),
    ],
)
def test_an_entry_has_the_severities_of_its_problems(
    severities: tuple[Severity, ...], is_strict: bool, words: str
) -> None:
    assert error_page.severity(Code("", "", "", severities, is_strict)) == words
