"""Notices of drift: short, and what the platform or Git says in them is text and nothing else."""

from __future__ import annotations

import json

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, FieldChange, Mover, Reason
from reconciler.model.plan import Plan
from reconciler.rendering.notice import notice
from tests.planning.builders import declare, planned, settled


def test_a_long_list_ends_with_how_many_more_there_are() -> None:
    said = notice(planned(*(declare(f"IPPolicy/{number}", {}) for number in range(30))))
    assert len(said.text.splitlines()) <= 25
    assert "- and 10 more resources" in said.text
    assert len(said.written["changes"]) == 30


def test_in_slack_nobody_is_mentioned_and_nothing_is_formatted() -> None:
    office = declare("IPPolicy/office", {"description": "x"})
    world = settled(office)
    plan = planned(declare("IPPolicy/office", {"description": "y"}), seen=world.snapshot())
    told = json.loads(notice(plan.__class__(**{**plan.__dict__, "account": "<!channel> @here *b* `c` & <@U1>"})).slack)
    assert "&lt;!channel&gt; @\u200bhere \u2217b\u2217 \u02cbc\u02cb &amp; &lt;@\u200bU1&gt;" in told["text"]


def test_what_is_not_applied_yet_is_said_so() -> None:
    assert "- IPPolicy/a: added in Git, not applied yet" in notice(planned(declare("IPPolicy/a", {}))).text


def test_each_side_is_told_with_the_fields_that_it_moved_and_no_others() -> None:
    moved = {"a": Mover.GIT, "b": Mover.PLATFORM, "c": Mover.FOLLOWS, "d": Mover.UNKNOWN, "e": Mover.PLATFORM}
    fields = tuple(FieldChange(path, 1, 2, mover) for path, mover in moved.items())
    plan = Plan("prod", changes=(Change(Address("IPPolicy", "a"), Action.UPDATE, Reason.FIELDS, "ipp_1", fields),))
    assert notice(plan).text.splitlines()[2] == (
        "- IPPolicy/a: changed on the platform: b, e; changed in Git: a; follows what it refers to: c; "
        "who changed it is not known: d"
    )
