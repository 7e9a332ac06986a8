"""Notices of drift: short, and what the platform or Git says in them is text and nothing else."""

from __future__ import annotations

import json

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.plan import Plan
from reconciler.rendering.notice import build_notice
from tests.planning.builders import declare, live, make_plan, record, settle, snapshot


def test_a_long_list_ends_with_how_many_more_there_are() -> None:
    said = build_notice(make_plan(*(declare(f"IPPolicy/{number}", {}) for number in range(30))))
    assert len(said.text.splitlines()) <= 25
    assert "- and 10 more resources" in said.text
    assert len(said.document["changes"]) == 30


def test_in_slack_nobody_is_mentioned_and_nothing_is_formatted() -> None:
    office = declare("IPPolicy/office", {"description": "x"})
    world = settle(office)
    plan = make_plan(declare("IPPolicy/office", {"description": "y"}), seen=world.snapshot())
    told = json.loads(build_notice(replace(plan, account="<!channel> @here *b* `c` & <@U1>")).slack)
    assert "&lt;!channel&gt; @\u200bhere \u2217b\u2217 \u02cbc\u02cb &amp; &lt;@\u200bU1&gt;" in told["text"]


def test_what_only_git_changed_is_counted_and_what_is_not_known_is_told() -> None:
    said = build_notice(make_plan(declare("IPPolicy/a", {})))
    assert "- IPPolicy/a: declared, does not exist on the platform; not known whether it was ever created" in said.text
    said = build_notice(make_plan(declare("IPPolicy/a", {}), seen=snapshot(remembered=True)))
    assert "IPPolicy/a" not in said.text
    assert (said.document["changes"], said.document["pending"]) == ([], 1)


def test_an_addition_is_told_with_its_parent_and_without_values() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/a", {}))
    rule = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": "0.0.0.0/0", "action": "allow"})
    said = build_notice(make_plan(declare("IPPolicy/a", {}), seen=snapshot(policy, rule)))
    assert said.subject == "Drift in laws: 1 resource added on the platform"
    assert "- IPPolicyRule/ipr_1: added to IPPolicy/a on the platform, not declared (m.yaml:1)" in said.text
    (told,) = said.document["changes"]
    assert (told["action"], told["changed_by"], told["parent"]) == ("added", "platform", "IPPolicy/a")
    assert said.document["summary"] == {"added": 1}
    assert "0.0.0.0" not in said.text + said.json


def test_each_side_is_told_with_the_fields_that_it_moved_and_no_others() -> None:
    moved = {
        "a": ChangedBy.GIT,
        "b": ChangedBy.PLATFORM,
        "c": ChangedBy.FOLLOWS,
        "d": ChangedBy.UNKNOWN,
        "e": ChangedBy.PLATFORM,
    }
    fields = tuple(FieldChange(path, 1, 2, mover) for path, mover in moved.items())
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
