"""The API key of a member: every form of its text, in a variable, a file and Vault."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api import vault
from reconciler.api.vault import Vault
from reconciler.engine.ports import Undeliverable
from reconciler.fleet.keys import KeyNotFound, find_key
from reconciler.model.fleet import KeyMethod, KeySource, Member
from reconciler.model.value import Secret

ACME = Member("acme")
PLACES = {
    KeyMethod.ENV: "environment variable KEY_ACME",
    KeyMethod.FILE: "file KEY_acme",
    KeyMethod.VAULT: "key value of secret/KEY_acme in Vault",
}
NAMES = {KeyMethod.ENV: "env:KEY_ACME", KeyMethod.FILE: "file:KEY_acme", KeyMethod.VAULT: "vault:secret/KEY_acme"}


async def find(method: KeyMethod, text: str | None, folder: Path) -> str:
    """The key that is written as this text; None: nothing is written."""

    class StubVault(Vault):
        async def read_key(self, mount: str, path: str, key: str) -> Secret | None:
            assert (mount, path, key) == ("secret", "KEY_acme", "value")
            return None if text is None else Secret(text, f"vault:{mount}/{path}")

    environ = {"KEY_ACME": text} if text is not None and method is KeyMethod.ENV else {}
    if text is not None and method is KeyMethod.FILE:
        (folder / "KEY_acme").write_bytes(text.encode(errors="surrogateescape"))
    source = KeySource(method, "KEY_${{ member.name }}", field="value")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vault, "Vault", StubVault)
        found = await find_key(source, ACME, folder, {**environ, "VAULT_ADDR": "https://vault", "VAULT_TOKEN": "t"})
    assert found.source == NAMES[method]
    return found.reveal()


@pytest.mark.parametrize("method", KeyMethod)
@pytest.mark.parametrize("around", ["", " ", "\t", "\n", "\r\n", "\n\n", " \n"])
async def test_white_space_around_a_key_is_not_a_part_of_it(tmp_path: Path, method: KeyMethod, around: str) -> None:
    """Tools that write a file, or a file into a variable or Vault, add a line break."""
    for text in (f"key{around}", f"{around}key", f"{around}key{around}"):
        assert await find(method, text, tmp_path) == "key"


@pytest.mark.parametrize("method", KeyMethod)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, ""),
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
    assert (problem or ("does not exist" if method is KeyMethod.VAULT else "is missing")) in str(caught.value)
    assert not text or not text.strip() or text.strip() not in str(caught.value)


async def test_a_key_is_of_printable_ascii_without_spaces_and_not_long(tmp_path: Path) -> None:
    long, wrong = "k" * 4096, "contains a space, a line break or a character that is not ASCII"
    for text in ("!#$~", "k", long):
        for method in KeyMethod:
            assert await find(method, text, tmp_path) == text
    for text, problem in {
        "a b": wrong,
        "a\u00a0b": wrong,
        "a\x7fb": wrong,
        "é": wrong,
        "": "is empty",
        "\n": "is empty",
    }.items():
        for method in KeyMethod:
            with pytest.raises(KeyNotFound) as caught:
                await find(method, text, tmp_path)
            assert str(caught.value) == f"no API key: the {PLACES[method]} {problem}"
    for method in KeyMethod:
        with pytest.raises(KeyNotFound) as caught:
            await find(method, None, tmp_path.parent)
        where = "does not exist" if method is KeyMethod.VAULT else "is missing on this worker"
        assert str(caught.value) == f"no API key: the {PLACES[method]} {where}"


async def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "long").write_text("k" * 4097)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    reasons = {
        "folder": f"{tmp_path}/folder cannot be read: Is a directory",
        "long": f"{tmp_path}/long is larger than 4 KiB",
        "bytes": f"{tmp_path}/bytes: not UTF-8 text",
    }
    for name, reason in reasons.items():
        with pytest.raises(KeyNotFound) as caught:
            await find_key(KeySource(KeyMethod.FILE, name), ACME, tmp_path, {})
        assert str(caught.value) == f"no API key: {reason}"
        assert caught.value.__suppress_context__


async def test_a_vault_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SealedVault(Vault):
        async def read_key(self, mount: str, path: str, key: str) -> Secret | None:
            raise Undeliverable("it is sealed")

    monkeypatch.setattr(vault, "Vault", SealedVault)
    source = KeySource(KeyMethod.VAULT, "KEY_${{ member.name }}", field="value")
    with pytest.raises(KeyNotFound) as caught:
        await find_key(source, ACME, tmp_path, {"VAULT_ADDR": "https://vault", "VAULT_TOKEN": "t"})
    assert str(caught.value) == f"no API key: the {PLACES[KeyMethod.VAULT]} cannot be read: it is sealed"
    assert caught.value.__suppress_context__
