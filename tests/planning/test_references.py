"""References to decided resources: their values, ids that follow them, and unavailable references."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.manifest import Manifest, Unread
from reconciler.model.problem import Problem
from reconciler.model.value import Template, Value
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.references import References
from reconciler.planning.matching.references import find_live_references
from tests.harness.builders import at, declare, live, ref, snapshot

ADDRESS = live("ReservedAddress", "ra_1", {"addr": "1.x:1", "nested": {"inner": "deep", "none": None}, "empty": ""})
TARGET = "ReservedAddress/a"
PROBLEM = Problem("text", "remedy", TARGET, code="credential-created-twice", confined=True)
USER = declare("TLSEdge/e")


def decide(address: str = TARGET, action: Action | None = None, **more: Any) -> Decision:
    return replace(Decision(at(address), kinds.get(at(address).kind), action=action), **more)


def references_to(*decisions: Decision, seen: Iterable[Any] = ()) -> References:
    return References({decision.address: decision for decision in decisions}, snapshot(*seen))


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("id", "ra_1"),
        ("addr", "1.x:1"),
        ("nested.inner", "deep"),
        ("empty", ""),
        ("nested.none", None),
        ("nested.missing", None),
        ("addr.inner", None),
        ("missing.inner", None),
    ],
)
def test_a_reference_to_a_live_object_is_its_value_or_remains_a_reference(output: str, value: str | None) -> None:
    reference = ref(TARGET, output)
    assert references_to(decide(live=ADDRESS)).resolve(reference) == (reference if value is None else value)


@pytest.mark.parametrize(
    ("decision", "is_resolved"),
    [
        (decide(live=ADDRESS), True),
        (decide(live=ADDRESS, problem=PROBLEM), True),
        (decide(action=Action.CREATE), False),
        (decide(), False),
        *((decide(action=action, live=ADDRESS), True) for action in (Action.UPDATE, Action.ADOPT, Action.MOVE)),
        (decide(action=Action.FORGET, live=ADDRESS), True),
        (decide(action=Action.DELETE, live=ADDRESS), False),
        (decide(action=Action.REPLACE, live=ADDRESS), False),
        # The old object remains for the overlap, but the reference is to the new one.
        (decide(action=Action.REPLACE, live=ADDRESS, keeps_predecessor=True), False),
    ],
)
def test_only_references_to_remaining_objects_are_resolved_before_the_apply(
    decision: Decision, is_resolved: bool
) -> None:
    reference = ref(TARGET)
    assert references_to(decision).resolve(reference) == ("ra_1" if is_resolved else reference)


def test_a_reference_to_an_undecided_resource_remains_a_reference() -> None:
    assert references_to().resolve(ref(TARGET)) == ref(TARGET)
    assert references_to(decide("ReservedAddress/b", live=ADDRESS)).resolve(ref(TARGET)) == ref(TARGET)


@pytest.mark.parametrize(
    ("decision", "value", "follows"),
    [
        (decide(action=Action.REPLACE, live=ADDRESS), "ra_1", True),
        (decide(action=Action.REPLACE, live=ADDRESS), ["ra_0", "ra_1"], True),
        (decide(action=Action.REPLACE, live=ADDRESS), "ra_2", False),
        (decide(action=Action.REPLACE, live=ADDRESS), ["ra_0", "ra_2"], False),
        (decide(action=Action.UPDATE, live=ADDRESS), "ra_1", False),
        (decide(action=Action.DELETE, live=ADDRESS), "ra_1", False),
        (decide(live=ADDRESS), "ra_1", False),
        # Created again: the id is that of the deleted object.
        (decide(action=Action.CREATE), "ra_9", True),
        (decide(action=Action.CREATE), ["ra_2", "ra_9"], True),
        (decide(action=Action.CREATE), "ra_2", False),
        (decide(action=Action.CREATE), ["ra_2"], False),
        (decide(action=Action.CREATE), None, False),
        (decide(action=Action.CREATE), [], False),
        (decide(action=Action.CREATE), {"id": "ra_9"}, False),
        (decide(), "ra_9", False),
    ],
)
def test_a_live_id_follows_its_replaced_or_recreated_object(decision: Decision, value: Value, follows: bool) -> None:
    others = [ADDRESS, live("ReservedAddress", "ra_2"), live("IPPolicy", "ra_9")]
    assert references_to(decision, seen=others).follows(ref(TARGET), value) is follows
    assert not references_to(decision, seen=others).follows(ref("ReservedAddress/other"), value)


def test_a_reference_to_a_resource_with_a_problem_is_found() -> None:
    references = references_to(
        decide("ReservedAddress/wrong", problem=PROBLEM),
        decide("ReservedAddress/fine", live=ADDRESS),
    )
    complete, partial = (
        Manifest("prod", {}, unread=unread) for unread in (None, Unread(frozenset({at("IPPolicy/p")})))
    )

    def find(spec: dict[str, Any], *hosts: Address, manifest: Manifest = complete) -> Address | None:
        return references.find_skipped(declare("TLSEdge/e", spec), hosts, manifest)

    for name in ("fine", "unknown"):
        assert find({"hostports": [ref(f"ReservedAddress/{name}", "addr")]}) is None
    found = [ref("ReservedAddress/fine"), Template(("x-", ref("ReservedAddress/wrong", "addr")))]
    assert find({"description": "x", "hostports": found}) == at("ReservedAddress/wrong")
    assert find({}, at("ReservedAddress/wrong")) == at("ReservedAddress/wrong")
    assert find({"description": ref("IPPolicy/p")}) is None
    assert find({"description": ref("IPPolicy/p")}, manifest=partial) == at("IPPolicy/p")
    assert find({"description": ref("IPPolicy/q")}, manifest=partial) is None
    assert find({"description": ref("IPPolicy/q")}, manifest=replace(partial, unread=Unread(has_unknown=True)))


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (None, "which does not exist and will not be created by this plan"),
        (decide(), "which does not exist and will not be created by this plan"),
        (decide(action=Action.DELETE, live=ADDRESS), "which will be deleted"),
        (decide(live=ADDRESS), "which the platform does not return"),
        (decide(action=Action.UPDATE, live=ADDRESS), "which the platform does not return"),
        (decide(action=Action.CREATE), None),
        (decide(action=Action.REPLACE, live=ADDRESS), None),
        (decide(problem=PROBLEM), None),
        (decide(live=ADDRESS, problem=PROBLEM), None),
    ],
)
def test_an_unresolved_reference_is_a_problem_unless_its_target_has_one(
    target: Decision | None, text: str | None
) -> None:
    references = references_to(*([target] if target is not None else []))
    for action in Action:
        user = decide("TLSEdge/e", action, spec={"hostports": [ref(TARGET, "addr")]})
        is_sent = action not in (Action.DELETE, Action.FORGET)
        problems = list(references.find_unavailable(USER, user, ()))
        assert [problem.text for problem in problems] == (
            [f"it refers to {TARGET}.addr, {text}"] if text is not None and is_sent else []
        )
        assert [(problem.subject, problem.position, problem.code) for problem in problems] == [
            (str(USER.address), USER.position, "reference-unavailable")
        ] * len(problems)
    assert list(references.find_unavailable(USER, decide("TLSEdge/e", spec={"a": ref(TARGET, "addr")}), ())) == []


def test_a_dependency_without_a_reference_must_exist_or_be_created() -> None:
    """For example, the domain of a host name."""
    names = ("missing", "deleted", "existing", "created", "blocked")
    missing, deleted, existing, created, blocked = (f"ReservedDomain/{name}" for name in names)
    references = references_to(
        decide(missing),
        decide(deleted, Action.DELETE, live=ADDRESS),
        decide(existing, live=ADDRESS),
        decide(created, Action.CREATE),
        decide(blocked, problem=PROBLEM),
    )
    user = decide("TLSEdge/e", Action.CREATE, spec={"hostports": ["a.x:443"]})
    needed = [at(address) for address in (existing, missing, deleted, created, blocked)]
    problems = list(references.find_unavailable(USER, user, needed))
    assert [(problem.text, problem.remedy, problem.values) for problem in problems] == [
        (
            "it refers to ReservedDomain/missing, which does not exist and will not be created by this plan",
            "select ReservedDomain/missing too, or correct the reference",
            {"reference": "ReservedDomain/missing"},
        )
    ]


def test_unavailable_references_have_one_order() -> None:
    spec: dict[str, Value] = {"hostports": [ref("ReservedAddress/b", "addr"), ref("ReservedAddress/a", "addr")]}
    problems = references_to().find_unavailable(USER, decide("TLSEdge/e", Action.CREATE, spec=spec), ())
    assert [problem.values["reference"] for problem in problems] == ["ReservedAddress/a.addr", "ReservedAddress/b.addr"]


# --- references of live objects ---------------------------------------------------------------------------------------


def test_a_live_object_refers_to_the_ids_in_its_modules_and_to_its_parent() -> None:
    route = live(
        "HTTPSEdgeRoute", "r", {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}, {"odd": 1}, None]}}, parent="e"
    )
    assert list(find_live_references(kinds.get("HTTPSEdgeRoute"), route)) == [
        ("ip_restriction", ("IPPolicy", "ipp_1")),
        ("edge_id", ("HTTPSEdge", "e")),
    ]


@pytest.mark.parametrize(
    ("name", "body", "parent", "found"),
    [
        ("IPPolicyRule", {"ip_policy": {"id": "ipp_1", "uri": "x"}}, None, [("ip_policy_id", ("IPPolicy", "ipp_1"))]),
        (
            "EventSubscription",
            {"destinations": [{"id": "ed_1"}, {"id": "ed_2"}]},
            None,
            [("destination_ids", ("EventDestination", "ed_1")), ("destination_ids", ("EventDestination", "ed_2"))],
        ),
        ("WeightedBackend", {"backends": [{"backend_id": "b_1", "weight": 1}, {"weight": 2}]}, None, ["b_1"]),
        ("FailoverBackend", {"backends": ["b_1", None, "b_2"]}, None, ["b_1", "b_2"]),
        ("TLSEdge", {"backend": {"backend": {"id": "b_1"}}, "mutual_tls": None}, None, ["b_1"]),
        ("EventSource", {}, "esb_1", [("subscription_id", ("EventSubscription", "esb_1"))]),
        ("EventSource", {}, None, []),
        ("IPPolicy", {}, None, []),
    ],
)
def test_a_live_object_refers_to_each_id_in_its_fields(
    name: str, body: dict[str, Any], parent: str | None, found: list[Any]
) -> None:
    """A field that may refer to several kinds yields one reference to each."""
    backends = ("FailoverBackend", "WeightedBackend", "TunnelGroupBackend", "HTTPResponseBackend", "StaticBackend")
    field = "backend" if name == "TLSEdge" else "backends"
    expected = [
        target
        for item in found
        for target in ([(field, (kind, item)) for kind in backends] if isinstance(item, str) else [item])
    ]
    assert list(find_live_references(kinds.get(name), live(name, "x_1", body, parent=parent))) == expected
