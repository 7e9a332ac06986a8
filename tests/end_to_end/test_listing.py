"""What a plan asks the platform: each collection page by page, and never an object by itself."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest

from reconciler import kinds
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies

PAGE = 100
COLLECTIONS = {kind.path for kind in kinds.every() if kind.parent is None}


@pytest.mark.parametrize("count", [0, 100, 101, 250])
def test_a_plan_requests_each_page_of_each_collection_once(on_sandbox: Project, sandbox: Sandbox, count: int) -> None:
    sandbox.plant("/ip_policies", *({"description": f"policy {number}"} for number in range(count)))
    sandbox.forget_log()
    assert on_sandbox("plan").code == 0
    asked = Counter(request["path"].partition("?")[0] for request in sandbox.log())
    assert asked == {path: max(1, ceil(count / PAGE)) if path == "/ip_policies" else 1 for path in COLLECTIONS}


def test_a_plan_of_many_declared_objects_gets_none_of_them_by_itself(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies(*(f"p{number}" for number in range(250))))
    assert on_sandbox("apply", "-y", "--quiet").out == "Applied: 250 created.\n"
    sandbox.forget_log()
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
    assert {request["method"] for request in sandbox.log()} == {"GET"}
    asked = Counter(request["path"].partition("?")[0] for request in sandbox.log())
    assert asked == {path: 3 if path == "/ip_policies" else 1 for path in COLLECTIONS}


def test_children_are_read_with_their_parent(on_sandbox: Project, sandbox: Sandbox) -> None:
    for _ in range(5):
        edge = sandbox.post("/edges/https", {})["id"]
        sandbox.post(f"/edges/https/{edge}/routes", {"match_type": "path_prefix", "match": "/"})
        sandbox.post("/event_subscriptions", {"sources": [{"type": "ip_policy_created.v0"}]})
    sandbox.forget_log()
    assert on_sandbox("plan").code == 0
    assert len(sandbox.log()) == len(COLLECTIONS)
