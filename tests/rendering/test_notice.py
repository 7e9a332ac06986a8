"""Notices of drift: limited in size, and with text of the platform and of Git escaped."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.plan import Plan
from reconciler.model.problem import Position
from reconciler.rendering import notice
from reconciler.rendering.notice import build_notice
from reconciler.rendering.text_tools import count
from tests.harness.builders import build_account, declare, live, make_plan, record, snapshot
from tests.harness.golden import compare_golden
from tests.rendering.crowded import CROWDED
from tests.rendering.plans import ACCESS

ILL = HealthRow("TLSEdge/a", "e_1", Health(State.DEGRADED, "it is off"))
DRIFT = Plan(
    "prod",
    changes=(
        Change(
            Address("BotUser", "b"),
            Action.UPDATE,
            Reason.FIELDS,
            fields=(FieldChange("name", "a", "b", ChangedBy.PLATFORM),),
        ),
    ),
)


def test_a_long_notice_ends_with_the_number_of_omitted_resources() -> None:
    notice = build_notice(make_plan(*(declare(f"IPPolicy/{number}", {}) for number in range(30))))
    assert len(notice.text.splitlines()) <= 25
    assert "- and 10 more resources" in notice.text
    assert len(notice.document["changes"]) == 30


def test_mentions_and_formatting_are_escaped_for_slack() -> None:
    office = declare("IPPolicy/office", {"description": "x"})
    world = build_account(office)
    plan = make_plan(declare("IPPolicy/office", {"description": "y"}), seen=world.snapshot())
    message = json.loads(build_notice(replace(plan, account="<!channel> @here *b* `c` & <@U1>")).slack)
    assert "&lt;!channel&gt; @\u200bhere \u2217b\u2217 \u02cbc\u02cb &amp; &lt;@\u200bU1&gt;" in message["text"]


def test_unapplied_git_changes_are_counted_and_unknown_causes_are_listed() -> None:
    notice = build_notice(make_plan(declare("IPPolicy/a", {})))
    assert (
        "- IPPolicy/a: declared, does not exist on the platform; not known whether it was ever created" in notice.text
    )
    notice = build_notice(make_plan(declare("IPPolicy/a", {}), seen=snapshot(remembered=True)))
    assert "IPPolicy/a" not in notice.text
    assert (notice.document["changes"], notice.document["pending"]) == ([], 1)


def test_an_addition_is_listed_with_its_parent_and_without_values() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/a", {}))
    rule = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": "0.0.0.0/0", "action": "allow"})
    notice = build_notice(make_plan(declare("IPPolicy/a", {}), seen=snapshot(policy, rule)))
    assert notice.subject == "Drift in laws: 1 resource added on the platform"
    assert "- IPPolicyRule/ipr_1: added to IPPolicy/a on the platform, not declared (m.yaml:1)" in notice.text
    (change,) = notice.document["changes"]
    assert (change["action"], change["changed_by"], change["parent"]) == ("added", "platform", "IPPolicy/a")
    assert notice.document["summary"] == {"added": 1}
    assert "0.0.0.0" not in notice.text + notice.json


def test_fields_are_listed_by_what_changed_them() -> None:
    moved = {
        "a": ChangedBy.GIT,
        "b": ChangedBy.PLATFORM,
        "c": ChangedBy.FOLLOWS,
        "d": ChangedBy.UNKNOWN,
        "e": ChangedBy.PLATFORM,
    }
    fields = tuple(FieldChange(path, 1, 2, side) for path, side in moved.items())
    plan = Plan("prod", changes=(Change(Address("IPPolicy", "a"), Action.UPDATE, Reason.FIELDS, "ipp_1", fields),))
    assert build_notice(plan).text.splitlines()[2] == (
        "- IPPolicy/a: changed on the platform: b, e; changed in Git: a; refers to a replaced resource: c; "
        "unknown cause: d"
    )


def test_a_notice_links_to_the_run_that_found_the_drift() -> None:
    notice = build_notice(make_plan(declare("IPPolicy/a", {})), "https://ci.example.com/runs/7")
    assert notice.text.endswith("\nRun: https://ci.example.com/runs/7\n")
    assert json.loads(notice.json)["run"] == "https://ci.example.com/runs/7"
    assert "Run:" not in build_notice(make_plan(declare("IPPolicy/a", {}))).text


def test_health_is_apart_from_drift_in_the_subject_the_text_and_the_document() -> None:
    rows = (
        HealthRow(
            "ReservedDomain/shop", "rd_1", Health(State.DEGRADED, "the certificate waits for DNS", actor=Actor.YOU)
        ),
        HealthRow("TLSEdge/shop", "edgtls_1", Health(State.UNKNOWN, "its list could not be read")),
        HealthRow("TLSEdge/other", "edgtls_2", Health(State.HEALTHY)),
    )
    notice = build_notice(Plan("prod", health=rows))
    assert notice.subject.startswith("Health in prod: ReservedDomain/shop is degraded; ")
    assert notice.lines[:3] == (
        "Health: 1 degraded, 1 unknown, 1 healthy.",
        "- degraded: ReservedDomain/shop: the certificate waits for DNS (you act)",
        "- unknown: TLSEdge/shop: its list could not be read",
    )
    assert [(row["address"], row["state"]) for row in notice.document["health"]] == [
        ("ReservedDomain/shop", "degraded"),
        ("TLSEdge/shop", "unknown"),
    ]
    assert build_notice(Plan("prod")).document["health"] is None
    many = tuple(HealthRow(f"TLSEdge/{number}", "", Health(State.DEGRADED)) for number in range(30))
    assert "- and 10 more objects" in build_notice(Plan("prod", health=many)).lines


def test_a_notice_has_the_expected_lines_and_document() -> None:
    rows = (HealthRow("TLSEdge/edge-1", "e_1", Health(State.DEGRADED, "it is off", "turn it on", Actor.AGENT)),)
    notice = build_notice(replace(CROWDED, health=rows), "https://ci.example.com/7")
    document = json.dumps(notice.document, indent=1, ensure_ascii=False)
    slack = json.loads(notice.slack)["text"]
    compare_golden(Path(__file__).parent / "pages" / "notice.txt", "\n\n".join((notice.text, slack, document, "")))


@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_a_notice_lists_resources_up_to_its_limit(more: int) -> None:
    number = notice._LISTED + more
    changed = FieldChange("name", "a", "b", ChangedBy.PLATFORM)
    drifted = tuple(
        Change(Address("BotUser", f"b{place}"), Action.UPDATE, Reason.FIELDS, fields=(changed,))
        for place in range(number)
    )
    text = build_notice(Plan("prod", changes=drifted), "").text
    assert text.count("- BotUser/b") == min(number, notice._LISTED)
    assert re.findall(r"- and (.*)\n", text + "\n") == ([count(more, "more resource")] if more > 0 else [])


@pytest.mark.parametrize(
    ("number", "paths"),
    [
        (1, "f0"),
        (4, "f0, f1, f2, f3"),
        (5, "f0, f1, f2, f3, f4"),
        (6, "f0, f1, f2, f3, f4 and 1 more"),
        (13, "f0, f1, f2, f3, f4 and 8 more"),
    ],
)
def test_five_fields_of_a_resource_are_named(number: int, paths: str) -> None:
    fields = tuple(FieldChange(f"f{place}", "a", "b", ChangedBy.PLATFORM) for place in range(number))
    changed = Change(Address("BotUser", "b"), Action.UPDATE, Reason.FIELDS, fields=fields)
    assert build_notice(Plan("prod", changes=(changed,))).lines[0] == f"- BotUser/b: changed on the platform: {paths}"


@pytest.mark.parametrize("length", [299, 300, 301, 700])
def test_a_line_has_at_most_three_hundred_characters(length: int) -> None:
    account = "x" * (length - len("Account: "))
    found = build_notice(Plan("prod", account=account))
    assert len(found.lines[-1]) == min(300, length)
    assert found.lines[-1].endswith("…") is (length > 300)
    assert found.document["account"] == account


@pytest.mark.parametrize("number", [0, 19, 20, 21, 43])
def test_twenty_rows_of_each_sort_are_listed(number: int) -> None:
    entries = tuple(
        replace(ACCESS[0], entry_point=f"https://{place}", before=f"192.0.2.{place}") for place in range(number)
    )
    failed = tuple(
        AccessResult(f"GET {place}", AccessStatus.FAILED, Expected.DENY, Expected.ALLOW, "all", Position("a", 1, 1))
        for place in range(number)
    )
    ill = tuple(HealthRow(f"TLSEdge/{place}", "", Health(State.DEGRADED, "off")) for place in range(number))
    found = build_notice(Plan("prod", access=entries, access_tests=failed, health=ill))
    listed = [
        sum(line.startswith(start) for line in found.lines) for start in ("- Access test", "- Access was", "- degraded")
    ]
    assert listed == [min(20, number), min(20, number), min(20, number)]
    more = [line for line in found.lines if line.startswith("- and ")]
    one = ["- and 1 more failed access test", "- and 1 more change of access", "- and 1 more object"]
    many = ["- and 23 more failed access tests", "- and 23 more changes of access", "- and 23 more objects"]
    assert more == {21: one, 43: many}.get(number, [])
    assert [len(found.document[name]) for name in ("failed_tests", "access", "health")] == [number] * 3


@pytest.mark.parametrize(
    ("plan", "subject"),
    [
        (Plan("prod"), "Drift in prod: No drift. The platform matches the manifests"),
        (Plan("prod", health=()), "Drift and health in prod: No drift. The platform matches the manifests"),
        (
            Plan("prod", health=(ILL,)),
            "Health in prod: TLSEdge/a is degraded; No drift. The platform matches the manifests",
        ),
        (
            Plan("prod", health=(replace(ILL, health=Health(State.HEALTHY)),)),
            "Drift and health in prod: No drift. The platform matches the manifests",
        ),
        (DRIFT, "Drift in prod: 1 resource changed on the platform"),
        (
            replace(DRIFT, health=(ILL,)),
            "Drift and health in prod: TLSEdge/a is degraded; 1 resource changed on the platform",
        ),
    ],
)
def test_a_subject_has_drift_and_health_apart(plan: Plan, subject: str) -> None:
    assert build_notice(plan).subject == subject


def test_a_notice_names_the_account_and_the_run_that_are_known() -> None:
    endings = {("", ""): [], ("a", ""): ["Account: a"], ("", "r"): ["Run: r"], ("a", "r"): ["Account: a", "Run: r"]}
    for (account, run), lines in endings.items():
        assert build_notice(replace(DRIFT, account=account), run).lines[1:] == tuple(lines)
