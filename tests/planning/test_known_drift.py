"""Known drift: hidden until its last day and counted; changes by Git alone are never hidden."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Order, Reason
from reconciler.model.known_drift import IgnoredDifference, KnownDrift
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.planning.known_drift import ignore_known
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import declare, live, make_plan, record, snapshot

TODAY = "2026-06-15"
WAS = {"description": "was", "hostports": ["a.x:443"], "traffic_policy": {"value": "{}"}}
PLATFORM = {**WAS, "description": "by hand", "hostports": ["b.x:443"]}
DOMAIN = live("ReservedDomain", "rd_1", {"domain": "a.x"})
EDGE = snapshot(live("TLSEdge", "e", PLATFORM, owner=record("TLSEdge/e", WAS)), DOMAIN)
POLICY = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
RULE = live("IPPolicyRule", "ipr_9", {"ip_policy": {"id": "ipp_1"}, "cidr": "0.0.0.0/0", "action": "allow"})


def edge(**spec: object) -> Plan:
    return make_plan(declare("TLSEdge/e", {**WAS, **spec}), seen=EDGE)


def expect_drift(*globs: str, until: str = "") -> list[KnownDrift]:
    return [KnownDrift(glob, until, "because") for glob in globs]


def list_paths(plan: Plan) -> list[str]:
    return [field.path for change in plan.changes for field in change.fields]


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("TLSEdge/e.description", ["hostports"]),
        ("TLSEdge/*.description", ["hostports"]),
        ("*.hostports", ["description"]),
        ("TLSEdge/e.host", ["description", "hostports"]),
        ("TLSEdge/other.description", ["description", "hostports"]),
        ("TLSEdge/e", []),
        ("TLSEdge/e.*", []),
    ],
)
def test_a_glob_hides_fields_or_whole_resources(glob: str, paths: list[str]) -> None:
    found = ignore_known(edge(), expect_drift(glob), TODAY)
    assert list_paths(found) == paths
    assert found.has_drift is bool(paths)
    assert bool(found.ignored) is (len(paths) < 2)
    assert not (found.ignored and found.calls)


def test_a_glob_of_a_module_hides_what_is_inside_it() -> None:
    was = {"ip_restriction": {"enabled": True, "ip_policies": [{"id": "ipp_1"}]}}
    now = {"ip_restriction": {"enabled": False, "ip_policies": [{"id": "ipp_1"}]}}
    spec = {"ip_restriction": {"enabled": True, "ip_policy_ids": ["ipp_1"]}}
    seen = snapshot(live("TLSEdge", "e", now, owner=record("TLSEdge/e", spec)))
    plan = make_plan(declare("TLSEdge/e", spec), seen=seen)
    assert list_paths(plan) == ["ip_restriction.enabled"], was
    assert not ignore_known(plan, expect_drift("TLSEdge/e.ip_restriction"), TODAY).has_drift


def test_a_change_only_in_git_is_not_hidden() -> None:
    seen = snapshot(live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", WAS)))
    plan = make_plan(declare("TLSEdge/e", {**WAS, "description": "new"}), seen=seen)
    found = ignore_known(plan, expect_drift("TLSEdge/*"), TODAY)
    assert (found.changes, found.ignored, found.calls) == (plan.changes, (), plan.calls)


def test_a_change_in_git_beside_hidden_drift_is_pending() -> None:
    seen = snapshot(live("TLSEdge", "e", {**WAS, "description": "by hand"}, owner=record("TLSEdge/e", WAS)))
    plan = make_plan(declare("TLSEdge/e", {**WAS, "hostports": ["c.x:443"]}), seen=seen)
    assert plan.has_drift
    found = ignore_known(plan, expect_drift("TLSEdge/e.*"), TODAY)
    assert (list_paths(found), found.has_drift, found.has_pending) == (["hostports"], False, True)


def test_a_change_without_an_owner_record_beside_hidden_drift_is_drift() -> None:
    bare = snapshot(live("TLSEdge", "e", PLATFORM))
    plan = make_plan(declare("TLSEdge/e", WAS, adopt=True, id="e"), seen=bare)
    assert ignore_known(plan, expect_drift("*.description"), TODAY).has_drift


def test_a_replacement_with_a_hidden_cause_becomes_an_update() -> None:
    was = {"domain": "a.x", "description": "was"}
    seen = snapshot(
        live("ReservedDomain", "rd_1", {"domain": "b.x", "description": "x"}, owner=record("ReservedDomain/d", was))
    )
    found = ignore_known(make_plan(declare("ReservedDomain/d", was), seen=seen), expect_drift("*.domain"), TODAY)
    (change,) = found.changes
    assert (change.action, change.reason, change.risks) == (Action.UPDATE, Reason.FIELDS, ())


def test_deleted_and_added_objects_are_hidden_only_as_a_whole() -> None:
    plan = make_plan(declare("IPPolicy/p"), declare("TCPEdge/t", {"description": "x"}), seen=snapshot(POLICY, RULE))
    fields = ignore_known(plan, expect_drift("TCPEdge/t.description", "IPPolicyRule/ipr_9.cidr"), TODAY)
    assert (len(fields.changes), len(fields.additions), fields.ignored) == (1, 1, ())
    whole = ignore_known(plan, expect_drift("TCPEdge/t", "IPPolicyRule/*"), TODAY)
    assert (whole.changes, whole.additions, len(whole.ignored)) == ((), (), 2)


def test_an_entry_is_valid_through_its_day_and_then_reported_as_expired() -> None:
    for until, codes in [("2026-06-15", []), ("2026-06-16", []), ("2026-06-14", ["known-drift-expired"])]:
        found = ignore_known(edge(), expect_drift("TLSEdge/e", until=until), TODAY)
        assert ([problem.code for problem in found.problems], found.has_drift) == (codes, bool(codes))
        assert [ignored_difference.until for ignored_difference in found.ignored] == ([] if codes else [until])


def test_an_entry_that_hides_nothing_is_a_warning_unless_the_plan_is_limited() -> None:
    found = ignore_known(edge(), expect_drift("TLSEdge/misspelt"), TODAY)
    assert [(problem.code, problem.is_error) for problem in found.problems] == [("known-drift-unmatched", False)]
    limited = make_plan(declare("TLSEdge/e", WAS), seen=EDGE, options=PlanOptions(targets=("TLSEdge/e",)))
    assert ignore_known(limited, expect_drift("TLSEdge/misspelt"), TODAY).problems == ()


def test_a_hidden_difference_is_named_by_its_path_and_others_are_listed() -> None:
    found = ignore_known(edge(), expect_drift("*.description", until="2026-07-01"), TODAY)
    assert found.ignored == (IgnoredDifference("TLSEdge/e.description", "2026-07-01", "because"),)
    assert list_paths(found) == ["hostports"]
    whole = ignore_known(edge(), expect_drift("TLSEdge/e"), TODAY)
    assert [ignored.subject for ignored in whole.ignored] == ["TLSEdge/e"]


def test_a_glob_ends_at_a_dot_or_bracket_of_the_path_and_never_in_the_address() -> None:
    changes = [FieldChange(path, "old", "new", ChangedBy.PLATFORM) for path in ("a.b", "ab", "rules[0].x", "c.d.e")]
    change = Change(Address.parse("TLSEdge/v1.2"), Action.UPDATE, Reason.FIELDS, fields=tuple(changes))
    plan = replace(edge(), changes=(change,))

    def list_remaining(glob: str) -> list[str]:
        return list_paths(ignore_known(plan, expect_drift(glob), TODAY))

    assert list_remaining("TLSEdge/v1") == ["a.b", "ab", "rules[0].x", "c.d.e"]
    assert list_remaining("TLSEdge/v1.2.a") == ["ab", "rules[0].x", "c.d.e"]
    assert list_remaining("*.rules") == ["a.b", "ab", "c.d.e"]
    assert list_remaining("*.c.d") == ["a.b", "ab", "rules[0].x"]
    assert list_remaining("*.c") == ["a.b", "ab", "rules[0].x"]


@pytest.mark.parametrize(
    ("hidden_by", "rest_by", "pending"),
    [
        (ChangedBy.PLATFORM, [ChangedBy.GIT], True),
        (ChangedBy.BOTH, [ChangedBy.FOLLOWS], True),
        (ChangedBy.UNKNOWN, [ChangedBy.GIT], False),  # no record proves what the platform had
        (ChangedBy.PLATFORM, [ChangedBy.GIT, ChangedBy.PLATFORM], False),
        (ChangedBy.PLATFORM, [], False),
    ],
)
def test_a_change_is_pending_if_an_owner_record_proves_that_the_rest_is_from_git(
    hidden_by: ChangedBy, rest_by: list[ChangedBy], pending: bool
) -> None:
    rest = [FieldChange(f"rest{n}", "old", "new", by) for n, by in enumerate(rest_by)]
    hidden = FieldChange("hidden", "old", "new", hidden_by)
    change = Change(Address.parse("TLSEdge/e"), Action.MOVE, Reason.RENAMED, fields=(*rest, hidden))
    (remaining,) = ignore_known(replace(edge(), changes=(change,)), expect_drift("*.hidden"), TODAY).changes
    assert remaining == replace(change, fields=tuple(rest), is_pending=pending), "a move remains without fields"


@pytest.mark.parametrize(
    ("reason", "forces", "updated"),
    [
        (Reason.IMMUTABLE, False, True),
        (Reason.IMMUTABLE, True, False),
        (Reason.REQUESTED, False, False),
    ],
)
def test_a_replacement_remains_while_another_field_or_a_request_requires_it(
    reason: Reason, forces: bool, updated: bool
) -> None:
    fields = (
        FieldChange("domain", "old", "new", ChangedBy.PLATFORM, forces_replacement=True),
        FieldChange("other", "old", "new", ChangedBy.PLATFORM, forces_replacement=forces),
    )
    change = Change(Address.parse("ReservedDomain/d"), Action.REPLACE, reason, fields=fields, order=Order.DELETE_FIRST)
    (remaining,) = ignore_known(replace(edge(), changes=(change,)), expect_drift("*.domain"), TODAY).changes
    expected = replace(change, fields=fields[1:])
    assert remaining == (
        replace(expected, action=Action.UPDATE, reason=Reason.FIELDS, order=None) if updated else expected
    )


def test_a_change_without_hidden_fields_is_unchanged() -> None:
    plan = edge()
    found = ignore_known(plan, expect_drift("TLSEdge/misspelt"), TODAY)
    assert (found.changes, found.calls) == (plan.changes, plan.calls)


def test_each_entry_is_reported_with_its_remedy() -> None:
    entries = [
        *expect_drift("TLSEdge/e.description"),
        *expect_drift("TLSEdge/first"),
        KnownDrift("TLSEdge/second", "2026-07-01", "because"),
        KnownDrift("TLSEdge/third", "2026-06-01", "because"),
    ]
    edit = "remove the entry from `drift.ignore`, or set a later `until`"
    assert [(problem.text, problem.remedy) for problem in ignore_known(edge(), entries, TODAY).problems] == [
        ("known drift 'TLSEdge/first' matches no difference", "correct --ignore"),
        ("known drift 'TLSEdge/second' matches no difference", edit),
        ("known drift 'TLSEdge/third' expired on 2026-06-01 and has no effect", edit),
    ]


@pytest.mark.parametrize(
    "limit",
    [
        {"targets": ("TLSEdge/e",)},
        {"excludes": ("IPPolicy/*",)},
        {"problems": (Problem("wrong", "correct it", code="any"),)},
    ],
    ids=["targets", "excludes", "errors"],
)
def test_only_expired_entries_are_reported_in_a_limited_plan(limit: dict[str, Any]) -> None:
    entries = [*expect_drift("TLSEdge/misspelt"), KnownDrift("TLSEdge/old", "2026-06-01", "because")]
    found = ignore_known(replace(edge(), **limit), entries, TODAY)
    assert [problem.code for problem in found.problems if not problem.is_error] == ["known-drift-expired"]
