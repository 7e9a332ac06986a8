"""The digests of the last apply: values that have none, secrets, and owner records that are current."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model import owner_record
from reconciler.model.canonical import canonical_spec, digests
from reconciler.planning.comparing.last_applied import ABSENT, SERVER_CHOICE, LastApplied, is_record_current
from tests.harness.builders import (
    find_leaf,
    last_applied,
    ref,
    secret,
)

EDGE = kinds.get("TLSEdge")


def test_a_leaf_without_a_digest_had_its_default_or_a_server_default_or_was_absent() -> None:
    empty, tls = last_applied(), last_applied(tls_termination={"terminate_at": "upstream"})
    assert empty.digest_at(*find_leaf("description")) == digests({"": ""}, "i")[""]
    assert empty.digest_at(*find_leaf("ip_restriction.enabled")) == ABSENT
    assert empty.digest_at(*find_leaf("ip_restriction")) == digests({"": None}, "i")[""]
    assert tls.digest_at(*find_leaf("tls_termination.terminate_at")) == digests({"": "upstream"}, "i")[""]
    assert tls.digest_at(*find_leaf("tls_termination.min_version")) == SERVER_CHOICE
    assert LastApplied(None).digest_at(*find_leaf("description")) is None


def test_an_object_inside_another_was_absent_unless_a_part_of_it_was_applied() -> None:
    metrics = {"metrics": {"api_key": secret("k"), "service": "edge"}}
    applied = last_applied("EventDestination", target=metrics)
    assert applied.digest_at(*find_leaf("target.logs.log_group_arn", "EventDestination")) == ABSENT
    assert applied.digest_at(*find_leaf("target.metrics.tags", "EventDestination")) == digests({"": ""}, "i")[""]
    assert [applied.holds(name) for name in ("target", "target.metrics", "target.logs")] == [True, True, False]
    assert not LastApplied(None).holds("target")


def test_a_secret_matches_its_salted_and_its_plain_digest() -> None:
    value = secret("password")
    applied = LastApplied({}, "i")
    assert applied.matches(digests({"": value}, "i")[""], value)
    assert applied.matches(digests({"": "password"}, "i")[""], value)
    assert not applied.matches(digests({"": value}, "another salt")[""], value)
    assert not applied.matches(digests({"": "Password"}, "i")[""], value)
    assert not applied.matches(digests({"": value}, "i")[""], "password")


@pytest.mark.parametrize(
    ("want", "is_current"),
    [
        ({"description": "x", "ip_restriction": {"ip_policy_ids": ["p"]}}, True),
        ({"description": "x", "ip_restriction": {"ip_policy_ids": ["p"], "enabled": True}}, True),
        ({"description": "x", "ip_restriction": {"ip_policy_ids": ["p"], "enabled": False}}, False),
        ({"description": "x", "ip_restriction": {"ip_policy_ids": ["q"]}}, False),
        ({"description": "x", "ip_restriction": {"ip_policy_ids": [ref("IPPolicy/p")]}}, False),
        ({"description": "x"}, False),
        ({"ip_restriction": {"ip_policy_ids": ["p"]}}, False),
        ({"description": "y", "ip_restriction": {"ip_policy_ids": ["p"]}}, False),
        ({"description": "x", "ip_restriction": {"ip_policy_ids": ["p"]}, "hostports": ["a.x:443"]}, False),
    ],
)
@pytest.mark.parametrize("bundled", [False, True])
def test_an_owner_record_is_current_if_an_apply_would_write_the_same(
    bundled: bool, want: dict[str, Any], is_current: bool
) -> None:
    was = last_applied(description="x", ip_restriction={"ip_policy_ids": ["p"]})
    assert was.applied is not None
    if bundled:
        was = replace(was, applied=owner_record.fold(EDGE.by_name["ip_restriction"], was.applied))
    assert is_record_current(EDGE, canonical_spec(EDGE, want), was) is is_current
    assert not is_record_current(EDGE, canonical_spec(EDGE, want), LastApplied(None))
