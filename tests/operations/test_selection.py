"""Targets, exclusions and replacements that name nothing are errors: a misspelled name would look unchanged."""

from __future__ import annotations

import pytest

from reconciler.model.manifest import Ensure, Manifest
from reconciler.model.snapshot import Binding, Snapshot
from reconciler.operations.errors import NothingSelected, OperationError
from reconciler.operations.reporting import Note, OperationEvent, ignore_event
from reconciler.operations.selection import check_selection, resources_to_replace
from reconciler.planning.deciding.options import PlanOptions
from tests.harness.builders import at, declare, live, manifest, record, snapshot

OFFICE = manifest(declare("IPPolicy/office"), declare("IPPolicy/lan"), declare("BotUser/gone", ensure=Ensure.ABSENT))


def lines(
    targets: tuple[str, ...], seen: Snapshot, excludes: tuple[str, ...] = (), declared: Manifest = OFFICE
) -> list[str]:
    try:
        check_selection(PlanOptions(targets=targets, excludes=excludes), declared, seen, ignore_event)
    except NothingSelected as error:
        return list(error.lines)
    return []


@pytest.mark.parametrize(
    ("glob", "seen"),
    [
        ("IPPolicy/office", snapshot()),
        ("IPPolicy/o*", snapshot()),
        ("*", snapshot()),
        ("IPPolicy/*", snapshot()),
        ("TLSEdge/*", snapshot()),  # of which there may be none
        ("BotUser/bound", snapshot(bindings={"BotUser/bound": Binding("b")})),
        ("TLSEdge/ours", snapshot(live("TLSEdge", "e", owner=record("TLSEdge/ours", {})))),
        ("TLSEdge/unread", snapshot(cut=["TLSEdge"])),
        ("TLS*/unread", snapshot(cut=["TLSEdge"])),
        # What somebody added to a policy has no address but its id.
        ("IPPolicyRule/ipr_1", snapshot(live("IPPolicyRule", "ipr_1", {"ip_policy_id": "p"}))),
    ],
)
def test_a_target_that_matches_a_resource_is_accepted(glob: str, seen: Snapshot) -> None:
    assert lines((glob,), seen) == []
    assert lines((), seen, (glob,)) == []


NO_SUCH = "matches nothing that is declared, or owned by this stack; "


@pytest.mark.parametrize(
    ("glob", "seen", "line"),
    [
        ("IPPolicy/ofice", snapshot(), f"IPPolicy/ofice {NO_SUCH}did you mean IPPolicy/office?"),
        ("IPPolicy", snapshot(), f"IPPolicy {NO_SUCH}write IPPolicy/* for all of the kind"),
        ("Cloud/*", snapshot(), f"Cloud/* {NO_SUCH}write KIND/NAME as shown in plans, for example TLSEdge/payments"),
        ("Cloud", snapshot(), f"Cloud {NO_SUCH}write KIND/NAME as shown in plans, for example TLSEdge/payments"),
        ("TLSEdge/o*", snapshot(cut=["TCPEdge"]), f"TLSEdge/o* {NO_SUCH}"),
        (
            "TLSEdge/e",
            snapshot(live("TLSEdge", "e", owner=record("TLSEdge/e", {}, stack="theirs"))),
            f"TLSEdge/e {NO_SUCH}",
        ),
        ("TLSEdge/e", snapshot(live("TLSEdge", "e")), f"TLSEdge/e {NO_SUCH}"),
        (
            "IPPolicyRule/ipr_1",
            snapshot(live("IPPolicyRule", "ipr_1", owner=record("IPPolicyRule/r", {}, stack="theirs"))),
            f"IPPolicyRule/ipr_1 {NO_SUCH}",
        ),
        (
            "EventSource/http_request_complete.v0",
            snapshot(live("EventSource", "http_request_complete.v0", parent="esb_1")),
            f"EventSource/http_request_complete.v0 {NO_SUCH}",
        ),
    ],
)
def test_a_target_that_matches_nothing_is_refused_with_a_suggestion(glob: str, seen: Snapshot, line: str) -> None:
    (reported,) = lines((glob,), seen)
    assert reported.startswith(line)
    assert lines((), seen, (glob,)) == [reported]
    assert lines(("IPPolicy/office", glob), seen) == [reported]


def test_each_target_that_matches_nothing_is_reported() -> None:
    assert [line.split()[0] for line in lines(("Cloud/a", "Cloud/b"), snapshot(), ("Cloud/c",))] == [
        "Cloud/a",
        "Cloud/b",
        "Cloud/c",
    ]


def test_a_name_of_the_same_kind_is_proposed_first() -> None:
    declared = manifest(declare("TCPEdge/payment"), declare("TLSEdge/payments-of-the-shop"), declare("TLSEdge/other"))
    (reported,) = lines(("TCPEdge/payments",), snapshot(), declared=declared)
    assert reported.endswith("did you mean TCPEdge/payment?")
    (reported,) = lines(("TCPEdges/payment",), snapshot(), declared=declared)
    assert reported.endswith("did you mean TCPEdge/payment?")


def test_a_target_of_destroy_may_be_deleted_already() -> None:
    events: list[OperationEvent] = []
    options = PlanOptions(targets=("IPPolicy/zzz", "Cloud/a"), destroy=True)
    check_selection(options, OFFICE, snapshot(), events.append)
    assert [event.text.split(" matches")[0] for event in events if isinstance(event, Note)] == [
        "warning: IPPolicy/zzz",
        "warning: Cloud/a",
    ]


def test_a_declared_resource_can_be_replaced() -> None:
    assert resources_to_replace((), OFFICE, PlanOptions()) == frozenset()
    assert resources_to_replace(("IPPolicy/lan", "IPPolicy/lan"), OFFICE, PlanOptions()) == {at("IPPolicy/lan")}


@pytest.mark.parametrize(
    ("word", "options", "line"),
    [
        (
            "IPPolicy/ofice",
            PlanOptions(),
            "IPPolicy/ofice matches nothing that is declared; did you mean IPPolicy/office?",
        ),
        ("IPPolicy", PlanOptions(), "IPPolicy matches nothing that is declared; write IPPolicy/* for all of the kind"),
        ("office", PlanOptions(), "office matches nothing that is declared; "),
        ("BotUser/gone", PlanOptions(), "BotUser/gone matches nothing that is declared; "),
        (
            "IPPolicy/lan",
            PlanOptions(targets=("IPPolicy/office",)),
            "IPPolicy/lan cannot be replaced, because --target or --exclude leaves it out",
        ),
        (
            "IPPolicy/lan",
            PlanOptions(excludes=("IPPolicy/l*",)),
            "IPPolicy/lan cannot be replaced, because --target or --exclude leaves it out",
        ),
    ],
)
def test_a_resource_that_cannot_be_replaced_is_reported(word: str, options: PlanOptions, line: str) -> None:
    with pytest.raises(NothingSelected) as refused:
        resources_to_replace((word, "IPPolicy/office"), OFFICE, options)
    (reported,) = [reported for reported in refused.value.lines if reported.startswith(word)]
    assert reported.startswith(line)


def test_the_remedy_of_an_error_is_its_last_line() -> None:
    assert str(OperationError("a", "b", remedy="c")) == "a\nb\nc"
    assert str(OperationError("a", "b")) == "a\nb"
    assert OperationError("a", remedy="c").lines == ("a",)
