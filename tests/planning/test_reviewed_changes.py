"""Reviewed changes: each part of a call counts, also what no field of a change shows."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.manifest import Delivery
from reconciler.model.plan import Plan, Verb
from reconciler.model.value import Secret
from reconciler.planning.reviewed_changes import digest_changes, find_unreviewed
from tests.harness.builders import declare, make_plan

CALL_PARTS: list[dict[str, Any]] = [
    {"verb": Verb.DELETE},
    {"path": "/ip_policies"},
    {"target": "cr_1"},
    {"body": {"acl": ["bind:*"]}},
    {"body": {"description": Secret("x", "env:OTHER")}},
    {"overwrites": True},
    {"deliver": {}},
    {"deliver": {"token": Delivery("to_file", "secrets/b")}},
    {"deliver": {"token": Delivery("to_dotenv", "secrets/a", settings={"name": "A"})}},
    {"deliver": {"token": Delivery("to_file", "secrets/a", settings={"name": "A"})}},
]
OWNER_PARTS: list[dict[str, Any]] = [{"applied": {"description": "x"}}, {"protect": True}, {"replaces": "cr_1"}]


@pytest.fixture
def reviewed() -> Plan:
    return make_plan(declare("TunnelCredential/a"))


@pytest.mark.parametrize("part", CALL_PARTS, ids=str)
def test_a_change_with_another_call_was_not_reviewed(reviewed: Plan, part: dict[str, Any]) -> None:
    call, *rest = reviewed.calls
    other = replace(reviewed, calls=(replace(call, **part), *rest))
    assert find_unreviewed(other, digest_changes(reviewed), has_begun=False) == ["TunnelCredential/a"]


@pytest.mark.parametrize("part", OWNER_PARTS, ids=str)
def test_a_change_with_another_owner_record_was_not_reviewed(reviewed: Plan, part: dict[str, Any]) -> None:
    call, *rest = reviewed.calls
    assert call.owner is not None
    other = replace(reviewed, calls=(replace(call, owner=replace(call.owner, **part)), *rest))
    assert find_unreviewed(other, digest_changes(reviewed), has_begun=False) == ["TunnelCredential/a"]
