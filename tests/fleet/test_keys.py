"""The API key of a member: every form of its text, in a variable and in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.fleet.keys import KeyNotFound, find_key
from reconciler.model.fleet import KeyMethod, KeySource, Member

ACME = Member("acme")
METHODS = (KeyMethod.ENV, KeyMethod.FILE)
PLACES = {KeyMethod.ENV: "environment variable KEY_ACME", KeyMethod.FILE: "file KEY_acme"}


async def find(method: KeyMethod, text: str | None, folder: Path) -> str:
    """The key that is written as this text; None: nothing is written."""
    environ = {"KEY_ACME": text} if text is not None and method is KeyMethod.ENV else {}
    if text is not None and method is KeyMethod.FILE:
        (folder / "KEY_acme").write_bytes(text.encode(errors="surrogateescape"))
    return (await find_key(KeySource(method, "KEY_${{ member.name }}"), ACME, folder, environ)).reveal()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("around", ["", " ", "\t", "\n", "\r\n", "\n\n", " \n"])
async def test_white_space_around_a_key_is_not_a_part_of_it(tmp_path: Path, method: KeyMethod, around: str) -> None:
    """The tools that set a variable or write a file add a line break."""
    for text in (f"key{around}", f"{around}key", f"{around}key{around}"):
        assert await find(method, text, tmp_path) == "key"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "is missing"),
        ("", "is empty"),
        (" ", "is empty"),
        ("\r\n", "is empty"),
        ("two words", "contains a space, a line break"),
        ("two\nlines\n", "contains a space, a line break"),
        ("two\ttabs", "contains a space, a line break"),
        ("nul\0", "contains a space, a line break"),
        ("schlüssel", "a character that is not ASCII"),
    ],
)
async def test_a_text_that_is_no_key_is_refused_without_being_shown(
    tmp_path: Path, method: KeyMethod, text: str | None, problem: str
) -> None:
    with pytest.raises(KeyNotFound) as caught:
        await find(method, text, tmp_path)
    assert str(caught.value).startswith(f"no API key: the {PLACES[method]} ")
    assert problem in str(caught.value)
    assert not text or not text.strip() or text.strip() not in str(caught.value)
