"""Finds the API key of a member on the worker that runs its tasks. The key is not sent to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.engine.ports import Undeliverable
from reconciler.model.fleet import KeyMethod, KeySource, Member
from reconciler.model.value import Secret
from reconciler.project import named_files
from reconciler.project.files import Unreadable

_LONGEST = 4096  # characters of a file with a key


class KeyNotFound(Exception):
    """A worker has no key for a member. The message names the place that was searched."""


async def find_key(source: KeySource, member: Member, folder: Path, environ: Mapping[str, str]) -> Secret:
    """The API key of a member. Raises KeyNotFound.

    folder  of the fleet file, for relative paths of files
    """
    where = source.locate(member)
    match source.method:
        case KeyMethod.ENV:
            return _require(environ.get(where), f"environment variable {where}", f"env:{where}")
        case KeyMethod.FILE:
            return _require(_read(folder / where), f"file {where}", f"file:{where}")
        case KeyMethod.VAULT:
            return await _read_from_vault(source, where, environ)


def _require(text: str | None, what: str, source: str) -> Secret:
    if text is None:
        raise KeyNotFound(f"no API key: the {what} is missing on this worker")
    return _check(text, what, source)


def _check(text: str, what: str, source: str) -> Secret:
    """The key without white space around it, if it is valid in an HTTP header. Raises KeyNotFound."""
    key = text.strip()
    if not key:
        raise KeyNotFound(f"no API key: the {what} is empty")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise KeyNotFound(f"no API key: the {what} contains a space, a line break or a character that is not ASCII")
    return Secret(key, source)


def _read(file: Path) -> str | None:
    try:
        return named_files.read_text(file, _LONGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeyNotFound(f"no API key: {file} cannot be read: {error.strerror}") from None
    except Unreadable as error:
        raise KeyNotFound(f"no API key: {error}") from None


async def _read_from_vault(source: KeySource, path: str, environ: Mapping[str, str]) -> Secret:
    from reconciler.api.vault import Vault

    where = f"key {source.field} of {source.mount}/{path} in Vault"
    try:
        key = await Vault(environ).read_key(source.mount, path, source.field)
    except Undeliverable as error:
        raise KeyNotFound(f"no API key: the {where} cannot be read: {error}") from None
    if key is None:
        raise KeyNotFound(f"no API key: the {where} does not exist")
    return _check(key.reveal(), where, key.source)
