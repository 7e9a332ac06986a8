"""Delivery targets: which need approval before they are overwritten, and which are reported as missing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.manifest import Declaration, Delivery, Ensure
from reconciler.model.plan import Plan
from reconciler.model.problem import Severity
from reconciler.model.snapshot import IssuedSecret, Place, Snapshot, Target
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import KINDS, at, declare, live, make_plan, manifest, record, snapshot

AGENT = at("TunnelCredential/agent")
HERE = Place("to_file", "secrets/agent", host="laptop", checkout="a")
ELSEWHERE = replace(HERE, host="runner", checkout="b")
REPLACED = PlanOptions(to_replace=frozenset([AGENT]))


def observe_target(
    declared: Declaration,
    is_there: bool | None,
    *issued: IssuedSecret,
    seen: Snapshot | None = None,
    here: Place = HERE,
) -> Snapshot:
    """A snapshot with the target of a declaration as observed on this machine."""
    seen, wanted = seen or snapshot(), manifest(declared)
    deliveries = delivery_targets.find_deliveries(wanted, KINDS)
    return replace(
        seen,
        targets=delivery_targets.find_targets(wanted, seen, deliveries, issued, lambda _: here, lambda _: is_there),
    )


def credential_snapshot(intent: str = "i1", address: str = str(AGENT), **flags: Any) -> Snapshot:
    return snapshot(live("TunnelCredential", "cr_1", owner=record(address, {}, intent=intent, **flags)))


@pytest.mark.parametrize(
    ("stack", "address"),
    [("laws", "TunnelCredential/other"), ("other", "TunnelCredential/other"), ("other", str(AGENT))],
)
def test_a_target_of_another_resource_is_not_overwritten_without_approval(stack: str, address: str) -> None:
    other = live("TunnelCredential", "cr_2", owner=record(address, {}, intent="i2", stack=stack))
    issued = IssuedSecret("i2", at("TunnelCredential/other"), HERE, True)
    assert not observe_target(declare(str(AGENT)), True, issued, seen=snapshot(other)).targets[AGENT].is_ours


def list_overwrite_flags(plan: Plan) -> list[str]:
    return [approval.flag for approval in plan.approvals if approval.what == "overwrite"]


def list_missing_files(plan: Plan) -> list[str]:
    return [problem.text for problem in plan.problems if problem.code == "delivered-file-gone"]


@pytest.mark.parametrize(
    ("issued", "is_ours"),
    [
        ((), False),
        ((IssuedSecret("i1", AGENT, HERE, True),), True),
        ((IssuedSecret("i1", AGENT, ELSEWHERE, True),), True),  # the same target, delivered by another machine
        ((IssuedSecret("i1", AGENT, HERE, False),), True),  # a run was killed before it recorded the delivery
        ((IssuedSecret("i1", AGENT, replace(HERE, path="secrets/other"), True),), False),
        ((IssuedSecret("i1", AGENT, replace(HERE, way="to_dotenv", entry="A"), True),), False),
        ((IssuedSecret("i1", at("TunnelCredential/other"), HERE, True),), False),
        ((IssuedSecret("i1", at("APIKey/agent"), HERE, True),), False),
    ],
)
def test_an_existing_target_is_overwritten_without_approval_only_after_a_recorded_create(
    issued: tuple[IssuedSecret, ...], is_ours: bool
) -> None:
    declared = declare(str(AGENT))
    plan = make_plan(declared, seen=observe_target(declared, True, *issued))
    assert list_overwrite_flags(plan) == ([] if is_ours else ["--allow overwrite:TunnelCredential=1"])
    assert [call.overwrites for call in plan.calls if call.deliver] == [True]
    allowed = PlanOptions(allow={("overwrite", "TunnelCredential"): 1})
    assert make_plan(declared, seen=observe_target(declared, True, *issued), options=allowed).missing_approvals == ()


@pytest.mark.parametrize("is_there", [False, None])
def test_a_free_target_needs_no_approval_and_must_not_be_overwritten(is_there: bool | None) -> None:
    declared = declare(str(AGENT))
    plan = make_plan(declared, seen=observe_target(declared, is_there))
    assert list_overwrite_flags(plan) == []
    assert [call.overwrites for call in plan.calls if call.deliver] == [False]


def test_a_rotation_on_another_machine_may_overwrite_its_earlier_delivery() -> None:
    """Planned on a machine without the file, applied on the machine with it."""
    declared = declare(str(AGENT))
    plan = make_plan(
        declared,
        seen=observe_target(declared, False, IssuedSecret("i1", AGENT, ELSEWHERE, True), seen=credential_snapshot()),
    )
    assert plan.changes == ()
    plan = make_plan(
        declared,
        seen=observe_target(declared, False, IssuedSecret("i1", AGENT, ELSEWHERE, True), seen=credential_snapshot()),
        options=REPLACED,
    )
    assert [call.overwrites for call in plan.calls if call.deliver] == [True]


@pytest.mark.parametrize("moved", [["TunnelCredential/before"], []])
def test_a_renamed_resource_has_the_target_of_its_former_address(moved: list[str]) -> None:
    declared = declare(str(AGENT), moved=moved)
    former = at("TunnelCredential/before")
    seen = credential_snapshot(address=str(former if moved else AGENT))
    found = observe_target(declared, True, IssuedSecret("i1", former, HERE, True), seen=seen)
    assert found.targets[AGENT].is_ours


def test_no_approval_is_required_if_no_secret_is_issued() -> None:
    declared = declare(str(AGENT))
    seen = credential_snapshot()
    assert list_overwrite_flags(make_plan(declared, seen=observe_target(declared, True, seen=seen))) == []
    assert (
        list_overwrite_flags(make_plan(declared, seen=observe_target(declared, True, seen=seen), options=REPLACED))
        != []
    )


def test_a_command_and_an_absent_resource_have_no_target() -> None:
    for declared in (
        replace(declare(str(AGENT)), deliver={"token": Delivery("to_command", "put", settings={"run": ["put"]})}),
        declare(str(AGENT), ensure=Ensure.ABSENT),
    ):
        assert delivery_targets.find_deliveries(manifest(declared), KINDS) == {}


@pytest.mark.parametrize(
    ("is_there", "place", "arrived", "intent", "is_reported"),
    [
        (False, HERE, True, "i1", True),
        (True, HERE, True, "i1", False),
        (None, HERE, True, "i1", False),  # unknown
        (False, ELSEWHERE, True, "i1", False),
        (False, HERE, False, "i1", False),
        (False, HERE, True, "i0", False),  # of an earlier object
        (False, replace(HERE, path="secrets/former"), True, "i1", False),  # another target is declared now
    ],
)
def test_a_missing_delivered_file_is_a_note_on_the_machine_that_had_it(
    is_there: bool | None, place: Place, arrived: bool, intent: str, is_reported: bool
) -> None:
    declared = declare(str(AGENT))
    plan = make_plan(
        declared,
        seen=observe_target(
            declared, is_there, IssuedSecret(intent, AGENT, place, arrived), seen=credential_snapshot()
        ),
    )
    assert (plan.changes, plan.errors) == ((), ())
    assert bool(list_missing_files(plan)) == is_reported
    if is_reported:
        (note,) = plan.problems
        assert (note.severity, note.remedy) == (
            Severity.NOTE,
            "if the token is lost, issue a new one with `apply --replace TunnelCredential/agent`",
        )


def test_a_file_that_will_be_delivered_again_is_not_reported_as_missing() -> None:
    declared, issued = declare(str(AGENT)), IssuedSecret("i1", AGENT, HERE, True)
    assert (
        list_missing_files(
            make_plan(
                declared, seen=observe_target(declared, False, issued, seen=credential_snapshot()), options=REPLACED
            )
        )
        == []
    )
    assert list_missing_files(make_plan(declared, seen=observe_target(declared, False, issued))) == []
    others = PlanOptions(excludes=(str(AGENT),))
    assert (
        list_missing_files(
            make_plan(
                declared, seen=observe_target(declared, False, issued, seen=credential_snapshot()), options=others
            )
        )
        == []
    )


@pytest.mark.parametrize(("way", "is_gone"), [("to_file", True), ("to_dotenv", True), ("to_vault", False)])
def test_only_a_missing_file_is_reported(way: str, is_gone: bool) -> None:
    """An entry of a secret store that cannot be seen may be one that this key must not read."""
    settings = {"name": "AGENT", "mount": "secret", "path": "agent", "key": "token"}
    declared = replace(declare(str(AGENT)), deliver={"token": Delivery(way, "x", settings=settings)})
    place = replace(HERE, way=way)
    issued = IssuedSecret("i1", AGENT, place, True)
    assert (
        observe_target(declared, False, issued, seen=credential_snapshot(), here=place).targets[AGENT].is_gone
        is is_gone
    )


@pytest.mark.parametrize("action", [None, *Action])
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("is_ours", [True, False])
def test_only_a_new_secret_overwrites_an_existing_target_of_another_delivery(
    action: Action | None, is_there: bool, is_ours: bool
) -> None:
    decision = Decision(AGENT, kinds.get(AGENT.kind), action)
    seen = replace(snapshot(), targets={AGENT: Target("secrets/agent", is_there=is_there, is_ours=is_ours)})
    is_new = action in (Action.CREATE, Action.REPLACE)
    overwrites = is_new and is_there and not is_ours
    assert delivery_targets.overwrites_foreign_target(decision, seen) is overwrites
    assert not delivery_targets.overwrites_foreign_target(decision, snapshot())


def test_several_overwritten_targets_are_counted_by_kind() -> None:
    declared = [declare(f"TunnelCredential/{name}") for name in "abcde"]
    state = Target("secrets/x", is_there=True)
    seen = replace(snapshot(), targets={declaration.address: state for declaration in declared})
    (approval,) = (approval for approval in make_plan(*declared, seen=seen).approvals if approval.what == "overwrite")
    assert (approval.count, " and 2 more exist" in approval.why) == (5, True)
    assert {change.action for change in make_plan(*declared, seen=seen).changes} == {Action.CREATE}
    assert Address("TunnelCredential", "a") in seen.targets


@pytest.mark.parametrize(("pending", "is_reported"), [(False, True), (True, False)])
def test_a_missing_file_is_reported_only_for_a_delivered_credential(pending: bool, is_reported: bool) -> None:
    seen = credential_snapshot(pending=pending)
    found = observe_target(declare(str(AGENT)), False, IssuedSecret("i1", AGENT, HERE, True), seen=seen)
    assert found.targets[AGENT].is_gone is is_reported


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("a", "secrets/a exists"),
        ("ab", "secrets/a, secrets/b exist"),
        ("abc", "secrets/a, secrets/b, secrets/c exist"),
        ("abcd", "secrets/a, secrets/b, secrets/c and 1 more exist"),
    ],
)
def test_the_first_overwritten_targets_are_named(names: str, text: str) -> None:
    declared = [declare(f"TunnelCredential/{name}") for name in names]
    targets = {
        declaration.address: Target(f"secrets/{declaration.address.name}", is_there=True) for declaration in declared
    }
    (approval,) = make_plan(*declared, seen=replace(snapshot(), targets=targets)).approvals
    assert approval.why == f"{text}, not known to be from an earlier delivery, and will be overwritten"
    assert [item.subject for item in approval.items] == [str(declaration.address) for declaration in declared]
