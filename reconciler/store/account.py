"""The account that a stack belongs to, as the store remembers it. Importing this imports no database library."""

from __future__ import annotations

from msgspec import Struct


class AccountMembership(Struct, frozen=True):
    """The account of a stack.

    account    base URL, and the name that the project gives the account
    witnesses  `Kind:locator` of objects of the stack that existed at the last apply
    """

    account: str
    witnesses: tuple[str, ...] = ()
