"""Validation of vaults and secrets."""

from __future__ import annotations

import re

from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause

REQUIRED: dict[str, dict[str, Cause]] = {
    "Vault": {"name": refusal.VAULT_NAME},
    "Secret": {"name": refusal.SECRET_NAME},
}
_NAME = re.compile(r"[a-zA-Z0-9_/.-]+")


def _check_vault(draft: Draft, world: World) -> None:
    if not _NAME.fullmatch(draft.doc["name"]):
        raise refusal.VAULT_NAME(value=draft.doc["name"])


def _check_secret(draft: Draft, world: World) -> None:
    doc = draft.doc
    if not _NAME.fullmatch(doc["name"]):
        raise refusal.SECRET_NAME(value=doc["name"])
    if not doc["value"]:
        raise refusal.SECRET_VALUE()
    if doc["vault_name"] and not doc["vault_id"]:
        found = world.database.find_by_name("vault", doc["vault_name"])
        if found is None:
            raise refusal.NO_VAULT(field="vault_name", id=doc["vault_name"])
        doc["vault_id"] = found.id
    if not doc["vault_id"]:
        raise refusal.REQUIRED(field="vault_id")


RULES: dict[str, Rule] = {
    "Vault": _check_vault,
    "Secret": _check_secret,
}
