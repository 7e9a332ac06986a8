"""A part of a store, in which names of stacks are unique: the members of a fleet may have stacks of the same name."""

from __future__ import annotations

import os
import secrets

from msgspec import Struct

from reconciler.store.sql import Condition

_AFTER_SLASH = chr(ord("/") + 1)


class Scope(Struct, frozen=True):
    """Translates between the names of stacks and the keys of rows. Names of stacks contain no slash.

    name  empty: the stacks of a store without scopes, whose keys are their names
    """

    name: str = ""

    @property
    def _prefix(self) -> str:
        return f"{self.name}/" if self.name else ""

    def key(self, name: str) -> str:
        """The key, in rows, of a stack or of a plan file's digest."""
        return f"{self._prefix}{name}"

    def stack(self, key: str) -> str:
        """The stack with a key of this scope."""
        return key.removeprefix(self._prefix)

    def contains(self, column: str) -> Condition:
        """Whether the key in a column belongs to this scope; with an index of the column, reads only its rows.

        LIKE would ignore upper and lower case on SQLite, and a range of texts depends on the language on a server.
        """
        if not self.name:
            return Condition(f"{column} NOT LIKE '%/%'", {})
        begins = f"{column} {{ge}} :scope AND {column} {{lt}} :after_scope"
        rest = f"substr({column}, {len(self._prefix) + 1})"
        values = {"scope": self._prefix, "after_scope": f"{self.name}{_AFTER_SLASH}"}
        return Condition(f"{begins} AND {rest} NOT LIKE '%/%'", values)


WITHOUT_SCOPE = Scope()


def row_id(moment: float) -> str:
    """The id of a run or a drift check. A process works on many members at once: there the time is not enough."""
    return f"{moment:.6f}-{os.getpid()}-{secrets.token_hex(4)}"
