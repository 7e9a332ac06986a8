"""Drift that the project knows of: hidden until its day, counted, and never what only Git changed."""

from __future__ import annotations

import pytest

from reconciler.model.change import Action, Reason
from reconciler.model.known_drift import KnownDrift
from reconciler.model.plan import Plan
from reconciler.planning.known_drift import ignore_known
from reconciler.planning.planner import PlanOptions
from tests.planning.builders import declare, live, make_plan, record, snapshot

TODAY = "2026-06-15"
WAS = {"description": "was", "hostports": ["a.x:443"], "traffic_policy": {"value": "{}"}}
PLATFORM = {**WAS, "description": "by hand", "hostports": ["b.x:443"]}
EDGE = snapshot(live("TLSEdge", "e", PLATFORM, owner=record("TLSEdge/e", WAS)))
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
    made = make_plan(declare("TLSEdge/e", spec), seen=seen)
    assert list_paths(made) == ["ip_restriction.enabled"], was
    assert not ignore_known(made, expect_drift("TLSEdge/e.ip_restriction"), TODAY).has_drift


def test_what_only_git_changed_is_not_hidden() -> None:
    seen = snapshot(live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", WAS)))
    made = make_plan(declare("TLSEdge/e", {**WAS, "description": "new"}), seen=seen)
    found = ignore_known(made, expect_drift("TLSEdge/*"), TODAY)
    assert (found.changes, found.ignored, found.calls) == (made.changes, (), made.calls)


def test_beside_hidden_drift_a_change_of_gits_is_pending() -> None:
    seen = snapshot(live("TLSEdge", "e", {**WAS, "description": "by hand"}, owner=record("TLSEdge/e", WAS)))
    made = make_plan(declare("TLSEdge/e", {**WAS, "hostports": ["c.x:443"]}), seen=seen)
    assert made.has_drift
    found = ignore_known(made, expect_drift("TLSEdge/e.*"), TODAY)
    assert (list_paths(found), found.has_drift, found.has_pending) == (["hostports"], False, True)


def test_without_a_record_nothing_beside_hidden_drift_is_pending() -> None:
    bare = snapshot(live("TLSEdge", "e", PLATFORM))
    made = make_plan(declare("TLSEdge/e", WAS, adopt=True, id="e"), seen=bare)
    assert ignore_known(made, expect_drift("*.description"), TODAY).has_drift


def test_a_replacement_whose_cause_is_hidden_is_an_update() -> None:
    was = {"domain": "a.x", "description": "was"}
    seen = snapshot(
        live("ReservedDomain", "rd_1", {"domain": "b.x", "description": "x"}, owner=record("ReservedDomain/d", was))
    )
    found = ignore_known(make_plan(declare("ReservedDomain/d", was), seen=seen), expect_drift("*.domain"), TODAY)
    (change,) = found.changes
    assert (change.action, change.reason, change.risks) == (Action.UPDATE, Reason.FIELDS, ())


def test_what_vanished_and_what_was_added_is_hidden_whole_only() -> None:
    made = make_plan(declare("IPPolicy/p"), declare("TCPEdge/t", {"description": "x"}), seen=snapshot(POLICY, RULE))
    fields = ignore_known(made, expect_drift("TCPEdge/t.description", "IPPolicyRule/ipr_9.cidr"), TODAY)
    assert (len(fields.changes), len(fields.additions), fields.ignored) == (1, 1, ())
    whole = ignore_known(made, expect_drift("TCPEdge/t", "IPPolicyRule/*"), TODAY)
    assert (whole.changes, whole.additions, len(whole.ignored)) == ((), (), 2)


def test_an_entry_hides_through_its_day_and_then_says_that_it_expired() -> None:
    for until, codes in [("2026-06-15", []), ("2026-06-16", []), ("2026-06-14", ["known-drift-expired"])]:
        found = ignore_known(edge(), expect_drift("TLSEdge/e", until=until), TODAY)
        assert ([problem.code for problem in found.problems], found.has_drift) == (codes, bool(codes))
        assert [ignored_difference.until for ignored_difference in found.ignored] == ([] if codes else [until])


def test_an_entry_that_hides_nothing_is_a_warning_unless_the_plan_is_limited() -> None:
    found = ignore_known(edge(), expect_drift("TLSEdge/misspelt"), TODAY)
    assert [(problem.code, problem.is_error) for problem in found.problems] == [("known-drift-unmatched", False)]
    limited = make_plan(declare("TLSEdge/e", WAS), seen=EDGE, options=PlanOptions(targets=("TLSEdge/e",)))
    assert ignore_known(limited, expect_drift("TLSEdge/misspelt"), TODAY).problems == ()
