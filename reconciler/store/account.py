"""What is remembered of the account that a stack belongs to. Light: importing this imports no database library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccountMembership:
    """`account` in a few words, and `witnesses` (`Kind:locator`): objects that were there when it was last applied."""

    account: str
    witnesses: tuple[str, ...] = ()
