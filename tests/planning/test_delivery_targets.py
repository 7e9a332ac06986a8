"""Whose a delivery's target is: what needs consent before it is overwritten, and what is told to be gone."""

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
from tests.planning.builders import KINDS, at, declare, live, make_plan, manifest, record, snapshot

AGENT = at("TunnelCredential/agent")
HERE = Place("to_file", "secrets/agent", host="laptop", checkout="a")
ELSEWHERE = replace(HERE, host="runner", checkout="b")
RENEWED = PlanOptions(to_replace=frozenset([AGENT]))


def facts(
    declared: Declaration, there: bool | None, *issued: IssuedSecret, seen: Snapshot | None = None, here: Place = HERE
) -> Snapshot:
    """A snapshot with what is known on this machine of the target of a declaration."""
    seen, wanted = seen or snapshot(), manifest(declared)
    deliveries = delivery_targets.find_deliveries(wanted, KINDS)
    return replace(
        seen, targets=delivery_targets.find_targets(wanted, seen, deliveries, issued, lambda _: here, lambda _: there)
    )


def owned_credential(intent: str = "i1", address: str = str(AGENT), **flags: Any) -> Snapshot:
    return snapshot(live("TunnelCredential", "cr_1", owner=record(address, {}, intent=intent, **flags)))


@pytest.mark.parametrize(("way", "is_ours"), [("to_file", True), ("to_vault", False), ("to_github_secret", False)])
def test_a_place_that_no_store_recorded_can_only_be_on_a_machine(way: str, is_ours: bool) -> None:
    settings = {"name": "AGENT", "mount": "secret", "path": "agent", "key": "token"}
    declared = replace(declare(str(AGENT)), deliver={"token": Delivery(way, "x", settings=settings)})
    of_before = IssuedSecret("i1", AGENT, None, True)
    found = facts(declared, True, of_before, here=Place(way, "x")).targets[AGENT]
    assert (found.is_there, found.is_ours) == (True, is_ours)


@pytest.mark.parametrize(
    ("stack", "address"),
    [("laws", "TunnelCredential/other"), ("theirs", "TunnelCredential/other"), ("theirs", str(AGENT))],
)
def test_what_another_resource_delivered_is_not_ours_to_overwrite(stack: str, address: str) -> None:
    other = live("TunnelCredential", "cr_2", owner=record(address, {}, intent="i2", stack=stack))
    issued = IssuedSecret("i2", at("TunnelCredential/other"), HERE, True)
    assert not facts(declare(str(AGENT)), True, issued, seen=snapshot(other)).targets[AGENT].is_ours


def consents(plan: Plan) -> list[str]:
    return [approval.flag for approval in plan.approvals if approval.what == "overwrite"]


def list_missing_files(plan: Plan) -> list[str]:
    return [problem.text for problem in plan.problems if problem.code == "delivered-file-gone"]


@pytest.mark.parametrize(
    ("issued", "is_ours"),
    [
        ((), False),
        ((IssuedSecret("i1", AGENT, HERE, True),), True),
        ((IssuedSecret("i1", AGENT, ELSEWHERE, True),), True),  # the same target, delivered by another machine
        ((IssuedSecret("i1", AGENT, HERE, False),), True),  # a run died before it could say that the token had arrived
        ((IssuedSecret("i1", AGENT, None, True),), True),  # of a store of before
        ((IssuedSecret("i1", AGENT, replace(HERE, path="secrets/other"), True),), False),
        ((IssuedSecret("i1", AGENT, replace(HERE, way="to_dotenv", entry="A"), True),), False),
        ((IssuedSecret("i1", at("TunnelCredential/other"), HERE, True),), False),
        ((IssuedSecret("i1", at("APIKey/agent"), None, True),), False),
    ],
)
def test_what_is_there_is_overwritten_unasked_only_where_a_create_of_this_resource_explains_it(
    issued: tuple[IssuedSecret, ...], is_ours: bool
) -> None:
    declared = declare(str(AGENT))
    plan = make_plan(declared, seen=facts(declared, True, *issued))
    assert consents(plan) == ([] if is_ours else ["--allow overwrite:TunnelCredential=1"])
    assert [call.overwrites for call in plan.calls if call.deliver] == [True]
    allowed = PlanOptions(allow={("overwrite", "TunnelCredential"): 1})
    assert make_plan(declared, seen=facts(declared, True, *issued), options=allowed).missing_approvals == ()


@pytest.mark.parametrize("there", [False, None])
def test_a_free_target_needs_no_consent_and_may_not_be_overwritten_if_it_is_taken_by_then(there: bool | None) -> None:
    declared = declare(str(AGENT))
    plan = make_plan(declared, seen=facts(declared, there))
    assert consents(plan) == []
    assert [call.overwrites for call in plan.calls if call.deliver] == [False]


def test_a_rotation_elsewhere_may_overwrite_what_was_delivered_there_before() -> None:
    """Planned where the file is not, carried out where it is."""
    declared = declare(str(AGENT))
    plan = make_plan(
        declared, seen=facts(declared, False, IssuedSecret("i1", AGENT, ELSEWHERE, True), seen=owned_credential())
    )
    assert plan.changes == ()
    plan = make_plan(
        declared,
        seen=facts(declared, False, IssuedSecret("i1", AGENT, ELSEWHERE, True), seen=owned_credential()),
        options=RENEWED,
    )
    assert [call.overwrites for call in plan.calls if call.deliver] == [True]


@pytest.mark.parametrize("moved", [["TunnelCredential/before"], []])
def test_a_renamed_resource_knows_the_target_of_its_former_name(moved: list[str]) -> None:
    declared = declare(str(AGENT), moved=moved)
    former = at("TunnelCredential/before")
    seen = owned_credential(address=str(former if moved else AGENT))
    found = facts(declared, True, IssuedSecret("i1", former, HERE, True), seen=seen)
    assert found.targets[AGENT].is_ours


def test_nothing_is_asked_where_nothing_is_issued() -> None:
    declared = declare(str(AGENT))
    seen = owned_credential()
    assert consents(make_plan(declared, seen=facts(declared, True, seen=seen))) == []
    assert consents(make_plan(declared, seen=facts(declared, True, seen=seen), options=RENEWED)) != []


def test_a_command_and_a_tombstone_have_no_target_to_look_at() -> None:
    for declared in (
        replace(declare(str(AGENT)), deliver={"token": Delivery("to_command", "put", settings={"run": ["put"]})}),
        declare(str(AGENT), ensure=Ensure.ABSENT),
    ):
        assert delivery_targets.find_deliveries(manifest(declared), KINDS) == {}


@pytest.mark.parametrize(
    ("there", "place", "arrived", "intent", "told"),
    [
        (False, HERE, True, "i1", True),
        (True, HERE, True, "i1", False),
        (None, HERE, True, "i1", False),  # nobody can tell
        (False, ELSEWHERE, True, "i1", False),
        (False, None, True, "i1", False),  # a store of before does not say where
        (False, HERE, False, "i1", False),
        (False, HERE, True, "i0", False),  # of an earlier object
        (False, replace(HERE, path="secrets/former"), True, "i1", False),  # another target is declared by now
    ],
)
def test_a_delivered_file_that_is_gone_is_a_note_on_the_machine_that_had_it(
    there: bool | None, place: Place | None, arrived: bool, intent: str, told: bool
) -> None:
    declared = declare(str(AGENT))
    plan = make_plan(
        declared, seen=facts(declared, there, IssuedSecret(intent, AGENT, place, arrived), seen=owned_credential())
    )
    assert (plan.changes, plan.errors) == ((), ())
    assert bool(list_missing_files(plan)) == told
    if told:
        (note,) = plan.problems
        assert (note.severity, note.remedy) == (
            Severity.NOTE,
            "if the token is lost, issue a new one with `apply --replace TunnelCredential/agent`",
        )


def test_a_file_that_will_be_delivered_anew_is_not_told_to_be_gone() -> None:
    declared, issued = declare(str(AGENT)), IssuedSecret("i1", AGENT, HERE, True)
    assert (
        list_missing_files(
            make_plan(declared, seen=facts(declared, False, issued, seen=owned_credential()), options=RENEWED)
        )
        == []
    )
    assert list_missing_files(make_plan(declared, seen=facts(declared, False, issued))) == []
    others = PlanOptions(excludes=(str(AGENT),))
    assert (
        list_missing_files(
            make_plan(declared, seen=facts(declared, False, issued, seen=owned_credential()), options=others)
        )
        == []
    )


@pytest.mark.parametrize(("way", "is_gone"), [("to_file", True), ("to_dotenv", True), ("to_vault", False)])
def test_only_a_file_is_told_to_be_gone(way: str, is_gone: bool) -> None:
    """An entry of a secret store that cannot be seen may be one that this key must not read."""
    settings = {"name": "AGENT", "mount": "secret", "path": "agent", "key": "token"}
    declared = replace(declare(str(AGENT)), deliver={"token": Delivery(way, "x", settings=settings)})
    place = replace(HERE, way=way)
    issued = IssuedSecret("i1", AGENT, place, True)
    assert facts(declared, False, issued, seen=owned_credential(), here=place).targets[AGENT].is_gone is is_gone


@pytest.mark.parametrize("action", [None, *Action])
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("is_ours", [True, False])
def test_only_a_new_secret_overwrites_and_only_what_is_there_and_not_ours(
    action: Action | None, is_there: bool, is_ours: bool
) -> None:
    decision = Decision(AGENT, kinds.get(AGENT.kind), action)
    seen = replace(snapshot(), targets={AGENT: Target("secrets/agent", is_there=is_there, is_ours=is_ours)})
    is_new = action in (Action.CREATE, Action.REPLACE)
    overwrites = is_new and is_there and not is_ours
    assert delivery_targets.overwrites_foreign_target(decision, seen) is overwrites
    assert not delivery_targets.overwrites_foreign_target(decision, snapshot())


def test_several_are_counted_by_kind() -> None:
    declared = [declare(f"TunnelCredential/{name}") for name in "abcde"]
    state = Target("secrets/x", is_there=True)
    seen = replace(snapshot(), targets={declaration.address: state for declaration in declared})
    (consent,) = (approval for approval in make_plan(*declared, seen=seen).approvals if approval.what == "overwrite")
    assert (consent.count, " and 2 more exist" in consent.why) == (5, True)
    assert {change.action for change in make_plan(*declared, seen=seen).changes} == {Action.CREATE}
    assert Address("TunnelCredential", "a") in seen.targets


@pytest.mark.parametrize(("pending", "is_told"), [(False, True), (True, False)])
def test_a_missing_file_is_told_of_a_credential_whose_record_says_that_it_was_delivered(
    pending: bool, is_told: bool
) -> None:
    seen = owned_credential(pending=pending)
    found = facts(declare(str(AGENT)), False, IssuedSecret("i1", AGENT, HERE, True), seen=seen)
    assert found.targets[AGENT].is_gone is is_told


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("a", "secrets/a exists"),
        ("ab", "secrets/a, secrets/b exist"),
        ("abc", "secrets/a, secrets/b, secrets/c exist"),
        ("abcd", "secrets/a, secrets/b, secrets/c and 1 more exist"),
    ],
)
def test_the_first_targets_that_would_be_overwritten_are_named(names: str, text: str) -> None:
    declared = [declare(f"TunnelCredential/{name}") for name in names]
    targets = {each.address: Target(f"secrets/{each.address.name}", is_there=True) for each in declared}
    (approval,) = make_plan(*declared, seen=replace(snapshot(), targets=targets)).approvals
    assert approval.why == f"{text}, not known to be from an earlier delivery, and will be overwritten"
    assert [item.subject for item in approval.items] == [str(each.address) for each in declared]
