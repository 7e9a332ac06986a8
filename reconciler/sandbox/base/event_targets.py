"""Validation of the target of an event destination."""

from __future__ import annotations

from typing import Any

from reconciler.sandbox.base.draft import Draft
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause

# The required fields of each member, besides `auth`.
_NEEDS = {
    "delivery": ("delivery_stream_arn",),
    "stream": ("stream_arn",),
    "logs": ("log_group_arn",),
    "metrics": ("api_key",),
    "ingestion": (
        "tenant_id",
        "client_id",
        "client_secret",
        "logs_ingestion_uri",
        "data_collection_rule_id",
        "data_collection_stream_name",
    ),
}
_AUTH = {"role": ("role_arn",), "creds": ("cloud_access_key_id", "cloud_secret_access_key")}
_AUTHENTICATED = ("delivery", "stream", "logs")


def check_target(draft: Draft) -> None:
    if draft.doc["format"] != "json":
        raise refusal.FORMAT(value=draft.doc["format"])
    used = _list_set_members(draft.doc["target"])
    if not used:
        raise refusal.TARGET_MISSING()
    if len(used) > 1:
        raise refusal.TARGET_COUNT(count=len(used))
    if draft.before is not None and (old := _list_set_members(draft.before["target"])) != used:
        raise refusal.TARGET_FIXED(old=old[0], new=used[0])
    member, where = draft.doc["target"][used[0]], f"target.{used[0]}"
    if used[0] in _AUTHENTICATED:
        if member["auth"] is None:
            raise refusal.AUTH_MISSING(field=f"{where}.auth")
        _check_auth(member["auth"], f"{where}.auth")
    for name in _NEEDS[used[0]]:
        if not member[name]:
            raise refusal.REQUIRED(field=f"{where}.{name}")
        _check_arn(name, member[name], where, refusal.ARN)


def _list_set_members(target: dict[str, Any]) -> list[str]:
    return [name for name, member in target.items() if member is not None]


def _check_auth(auth: dict[str, Any], where: str) -> None:
    used = _list_set_members(auth)
    if not used:
        raise refusal.AUTH_EMPTY(field=where)
    if len(used) > 1:
        raise refusal.AUTH_COUNT(field=where, count=len(used))
    for name in _AUTH[used[0]]:
        if not auth[used[0]][name]:
            raise refusal.REQUIRED(field=f"{where}.{used[0]}.{name}")
        _check_arn(name, auth[used[0]][name], f"{where}.{used[0]}", refusal.ROLE_ARN)


def _check_arn(name: str, value: str, where: str, cause: Cause) -> None:
    if name.endswith("_arn") and not value.startswith("arn:"):
        raise cause(field=f"{where}.{name}", value=value)
