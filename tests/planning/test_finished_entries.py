from __future__ import annotations

from reconciler.model.manifest import Ensure
from reconciler.model.plan import Plan
from tests.harness.builders import LENIENT, apply_to, build_account, declare, plan_on, ref

OFFICE = declare("IPPolicy/office", {"description": "office"})
GONE = declare("IPPolicy/gone", {"description": "gone"}, ensure=Ensure.ABSENT)
KEPT = declare("IPPolicy/kept", {"description": "kept"}, ensure=Ensure.FORGOTTEN)
WAS = declare("IPPolicy/kept", {"description": "kept"})


def notes(plan: Plan) -> list[str]:
    return [problem.text for problem in plan.problems if problem.code == "manifest-finished"]


def test_finished_manifests_are_named_once_and_not_before() -> None:
    world = build_account(OFFICE, WAS)
    before = plan_on(world, OFFICE, KEPT, GONE)
    assert notes(before) == ["nothing is left to do for IPPolicy/gone (ensure: absent)"]
    after = plan_on(apply_to(world, OFFICE, KEPT, GONE), OFFICE, KEPT, GONE)
    assert (after.changes, after.blocking_errors) == ((), ())
    assert notes(after) == [
        "nothing is left to do for IPPolicy/gone (ensure: absent), IPPolicy/kept (ensure: forgotten)"
    ]


def test_a_part_of_a_forgotten_resource_is_named_only_with_it() -> None:
    part = {"ip_policy_id": ref("IPPolicy/kept"), "cidr": "192.0.2.0/24", "action": "allow"}
    rule, forgotten = declare("IPPolicyRule/a", part), declare("IPPolicyRule/a", part, ensure=Ensure.FORGOTTEN)
    edge = declare(
        "TLSEdge/e", {"hostports": ["a.example.com:443"], "ip_restriction": {"ip_policy_ids": [part["ip_policy_id"]]}}
    )
    after = apply_to(build_account(WAS, rule, edge), KEPT, forgotten, edge)
    assert notes(plan_on(after, KEPT, forgotten, edge)) == []
    [note] = notes(plan_on(apply_to(after, KEPT, forgotten), KEPT, forgotten))
    assert "IPPolicy/kept (" in note
    assert "IPPolicyRule/a (" in note


def test_a_forgotten_manifest_that_others_refer_to_is_still_needed() -> None:
    rule = declare("IPPolicyRule/a", {"ip_policy_id": ref("IPPolicy/kept"), "cidr": "192.0.2.0/24", "action": "allow"})
    world = build_account(WAS, rule)
    assert notes(plan_on(apply_to(world, KEPT, rule), KEPT, rule)) == []


def test_many_finished_manifests_are_one_note_about_the_selected_ones() -> None:
    many = [declare(f"IPPolicy/p{number}", ensure=Ensure.ABSENT) for number in range(7)]
    [note] = notes(plan_on(build_account(), *many, options=LENIENT))
    assert note.endswith("IPPolicy/p4 (ensure: absent), 2 more")
