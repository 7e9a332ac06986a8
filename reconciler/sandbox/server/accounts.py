"""The accounts of a sandbox besides its first: their names and API keys, numbered or read from a file."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from reconciler.sandbox.wire import parsing

Accounts = int | str | Path | Mapping[str, str]
"""A number of accounts, a file, or the API key of each account by its name."""

MOST = 100_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)  # such as the labels of a list of members

    name: str
    key: str


def read_accounts(accounts: Accounts, api_key: str) -> dict[str, str]:
    """The name of each account by its API key.

    A number N stands for the accounts `sandbox-0001` to N, whose keys are their names. A file is a JSON list of
    `{"name": …, "key": …}` or a CSV table with these columns; other fields are ignored. `api_key` is the key of the
    first account. Raises ValueError for an invalid number, file, name or key, and for a key that two accounts have.
    """
    if isinstance(accounts, str) and accounts.isdecimal():
        accounts = int(accounts)
    if isinstance(accounts, int):
        if accounts > MOST:
            raise ValueError(f"at most {MOST:,} accounts are supported")
        names = [f"sandbox-{number:04}" for number in range(1, accounts + 1)]
        return _index(zip(names, names, strict=True), api_key)
    if isinstance(accounts, Mapping):
        return _index(accounts.items(), api_key)
    try:
        return _index(_read_file(Path(accounts)), api_key)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{accounts}: {why}") from error


def _read_file(path: Path) -> list[tuple[str, str]]:
    text = path.read_text(encoding="utf-8-sig")
    rows = json.loads(text) if text.lstrip().startswith(("[", "{")) else list(csv.DictReader(io.StringIO(text)))
    if not isinstance(rows, list):
        raise ValueError("must be a JSON list or a CSV table with the columns name and key")
    found = []
    for number, row in enumerate(rows, 1):
        try:
            entry = parsing.validate(_Entry, row)
        except ValueError as error:
            raise ValueError(f"account {number}: {error}") from error
        found.append((entry.name, entry.key))
    return found


def _index(accounts: Iterable[tuple[str, str]], api_key: str) -> dict[str, str]:
    names, by_key = set[str](), dict[str, str]()
    for name, key in accounts:
        if not _NAME.fullmatch(name):
            raise ValueError(f"account {name!r}: a name has up to 100 letters, digits, '_', '.' and '-'")
        if name in names:
            raise ValueError(f"account {name!r}: the name is used twice")
        if not key.strip() or key != key.strip():
            raise ValueError(f"account {name!r}: the key is empty, or begins or ends with a space")
        if key == api_key or key in by_key:
            raise ValueError(f"account {name!r}: another account has the same key")
        names.add(name)
        by_key[key] = name
    return by_key
