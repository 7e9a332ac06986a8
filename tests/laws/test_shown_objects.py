"""The law of what plans and imports show of live objects: no secret and no unknown field.

All formats of `plan` and `drift`, plan files, events and reports are written from the plan, and all files of `import`
from the survey.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Live
from reconciler.planning.importing.survey import survey
from reconciler.planning.planner import PlanOptions
from reconciler.rendering.html.plan_page import render_page
from reconciler.rendering.plan.ci_annotations import render_github, render_gitlab
from reconciler.rendering.plan.findings import list_findings
from reconciler.rendering.plan.markdown import render_markdown
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.plan.sarif import render_sarif
from reconciler.rendering.plan.text import render_text
from reconciler.rendering.wire.plan_json import write_plan
from tests.harness.builders import KINDS, LENIENT, declare, live, make_plan, manifest, record, secret, snapshot
from tests.planning.test_odd_bodies import key_of, plain_value, spec_of

CANARY = "canary-4711-abcdefgh"
OPTIONS = (PlanOptions(), PlanOptions(adopt=True), LENIENT)


def fill(field: Field) -> Any:
    """A value of a response in which each secret, and one field that no version knows, is the canary."""
    if field.conceals is not None:  # a document, whose other keys users choose
        secret = {"type": "verify-webhook", "config": {"secret": CANARY}}
        return {"Authorization": CANARY} if field.shape is Shape.MAP else json.dumps(policy_with(secret))
    if Behavior.SENSITIVE in field:
        return CANARY
    if field.shape is Shape.OBJECT:
        return {**{key_of(inner): fill(inner) for inner in field.fields}, "new_secret_field": CANARY}
    if field.shape is Shape.LIST and field.item is not None:
        return [fill(field.item)]
    return plain_value(field)


def policy_with(action: Any) -> Any:
    return {"on_http_request": [{"actions": [action]}]}


def fill_body(kind: Kind) -> dict[str, Any]:
    """An object of the kind with its children, as a list may embed them."""
    fields = {key_of(field): fill(field) for field in kind.fields if field.name not in ("metadata", *kind.identity)}
    children = {
        child.parent.embedded: [fill_body(child)]
        for child in KINDS
        if child.parent is not None and child.parent.kind == kind.name and child.parent.embedded
    }
    one_time = {kind.one_time: CANARY} if kind.one_time else {}
    return {**spec_of(kind), **fields, **children, **one_time, "new_secret_field": CANARY}


def render_all(plan: Plan) -> Iterator[str]:
    """The plan file, and each format of `plan` and `drift`."""
    yield write_plan(plan)
    for flavour in Flavour:
        findings = list_findings(plan, flavour=flavour)
        yield render_text(plan, flavour=flavour)
        yield render_markdown(plan, flavour=flavour)
        yield render_page(plan, flavour=flavour)
        yield render_sarif(findings, version="", fallback="a.yaml")
        yield render_github(findings)
        yield render_gitlab(findings, fallback="a.yaml")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_no_plan_and_no_import_shows_a_secret_or_an_unknown_field(kind: Kind) -> None:
    address, spec = f"{kind.name}/a", spec_of(kind)
    parent = "id-1" if kind.parent else None
    body = {name: value for name, value in fill_body(kind).items() if name != kind.key}
    assert CANARY in repr(body)
    unmanaged = live(kind.name, "id-7", body, parent=parent)
    managed = live(kind.name, "id-7", body, parent=parent, owner=record(address, spec) if kind.keeps_owner else None)
    found = survey(manifest(), snapshot(unmanaged), KINDS)
    texts = [repr([replace(imported, live=Live("", "", {})) for imported in found.imported]), repr(found.left_out)]
    for account in (snapshot(unmanaged), snapshot(managed)):
        plans = [make_plan(declare(address, spec), seen=account, options=options) for options in OPTIONS]
        plans += [make_plan(declare(address, spec, id="id-7"), seen=account), make_plan(seen=account, options=LENIENT)]
        texts += [text for plan in plans for text in render_all(plan)]
    assert [text for text in texts if CANARY in text] == []


def endpoint_for(*users: str) -> dict[str, Any]:
    action = {"type": "basic-auth", "config": {"credentials": [f"{user}:{CANARY}-password" for user in users]}}
    policy = {"on_http_request": [{"actions": [action, {"type": "custom-response", "config": {"body": "hello"}}]}]}
    return {"url": "https://shop.example.com", "bindings": ["public"], "traffic_policy": json.dumps(policy)}


@pytest.mark.parametrize(("before", "after"), [("ann", "ann bob"), ("ann bob", "ann"), ("ann", "")])
def test_the_entry_points_of_a_plan_show_no_user_and_no_password_of_basic_auth(before: str, after: str) -> None:
    old, new = (endpoint_for(*(f"{CANARY}-{user}" for user in users.split())) for users in (before, after))
    seen = snapshot(live("CloudEndpoint", "ep_1", old, owner=record("CloudEndpoint/shop", old)))
    declared = declare("CloudEndpoint/shop", {**new, "traffic_policy": secret(new["traffic_policy"])})
    plan = make_plan(declared, seen=seen)
    assert [entry.entry_point for entry in plan.access] == ["https://shop.example.com"]
    assert [text for text in render_all(plan) if CANARY in text] == []
