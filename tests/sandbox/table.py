"""The written table of operations, and what must exist for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.sandbox.account import BODIES, MODULES, UPDATES, Account

TABLE = yaml.safe_load((Path(__file__).parent / "operations.yaml").read_text())


@dataclass(frozen=True)
class Row:
    method: str
    path: str
    status: int
    shape: str = ""
    list_key: str = ""
    paged: bool = True

    @classmethod
    def parse(cls, text: str) -> Row:
        left, _, right = text.partition(" -> ")
        method, path = left.split()
        status, *answer = right.split()
        if not answer:
            return cls(method, path, int(status))
        key = answer[1] if len(answer) > 1 else ""
        return cls(method, path, int(status), answer[0].strip("[]"), key, "unpaged" not in answer)


ROWS = [Row.parse(text) for text in TABLE["specified"] + TABLE["beyond"]]


def prepare(account: Account, row: Row) -> tuple[str, Any]:
    """Creates what the operation needs. Returns its path and its body."""
    path, shape = account.place(row.path), re.sub(r"{\w+}", "{}", row.path)
    match row.method:
        case "POST":
            return path, BODIES[shape](account) if row.shape else None
        case "PUT":
            return path, MODULES[path.rpartition("/")[2]](account)
        case "PATCH":
            return path, UPDATES.get(shape, {"description": "changed"})
    if row.list_key:
        account.make(path)
    return path, None
