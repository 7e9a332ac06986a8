"""Targets, exclusions and replacements that name nothing are errors: a misspelled name would look unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import Selection, Status, Workspace
from reconciler.model.manifest import Ensure, Manifest
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Binding, Snapshot
from reconciler.operations.errors import NothingSelected, OperationError
from reconciler.operations.reporting import Note, OperationEvent, ignore_event
from reconciler.operations.selection import check_selection, resources_to_replace
from reconciler.planning.deciding.options import PlanOptions
from reconciler.testing import Sandbox
from tests.harness.builders import at, declare, live, manifest, record, snapshot
from tests.harness.workspaces import bot, domain, open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


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


async def find_read_paths(sandbox: Sandbox, workspace: Workspace, *targets: str) -> tuple[Plan, set[str]]:
    """The plan of the selected resources, and the lists that were read for it. The plan of all lists is the same."""
    selection = Selection(targets)
    whole = (await workspace.plan(selection=selection)).plan
    sandbox.forget_log()
    plan = (await workspace.plan(selection=selection, whole=False)).plan
    for name in ("changes", "calls", "problems", "approvals", "access", "additions"):
        assert getattr(plan, name) == getattr(whole, name)
    return plan, {entry["path"].partition("?")[0] for entry in sandbox.log()}


EDGE = {"kind": "TLSEdge", "name": "e", "spec": {"hostports": ["a.example.com:443"]}}


async def test_a_plan_of_selected_resources_reads_only_the_lists_that_they_need(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, domain("a"), policy("p"), bot("b"), EDGE))
    assert (await workspace.apply()).status is Status.APPLIED
    plan, paths = await find_read_paths(sandbox, workspace, "BotUser/*")
    assert (plan.is_empty, paths) == (True, {"/bot_users"})
    plan, paths = await find_read_paths(sandbox, workspace, "ReservedDomain/a")
    assert plan.is_empty
    assert {"/reserved_domains", "/tls_certificates", "/agent_ingresses"} == paths
    _, paths = await find_read_paths(sandbox, workspace, "TLSEdge/e")
    assert "/ip_policies" in paths  # who can reach an edge depends on them
    assert paths.isdisjoint({"/event_destinations", "/vaults", "/ssh_certificate_authorities"})


@pytest.mark.parametrize("reason", ["delete", "policy", "access test", "update of few"])
async def test_a_plan_that_may_depend_on_other_lists_reads_all(sandbox: Sandbox, tmp_path: Path, reason: str) -> None:
    """Such as the share of the account that it deletes or updates."""
    root = write_project(tmp_path, domain("d"), policy("p"), settings="policies: [rules/]\n")
    (root / "rules").mkdir()
    assert (await open_on(sandbox, root).apply()).status is Status.APPLIED
    match reason:
        case "delete":
            write_project(tmp_path, policy("p"), settings="policies: [rules/]\n")
        case "update of few":
            write_project(
                tmp_path, {**domain("d"), "spec": {"domain": "d.example.com", "description": "x"}}, policy("p")
            )
        case "policy":
            (root / "rules" / "all.yaml").write_text("policy: a\ncheck: size(plan.changes) < 5\nmessage: many\n")
        case "access test":
            (root / "tests").mkdir()
            (root / "tests" / "access.yaml").write_text(
                "- {from: 203.0.113.9, to: 'tls://a.example.com', expect: deny}\n"
            )
    _, paths = await find_read_paths(sandbox, open_on(sandbox, root), "ReservedDomain/d")
    assert "/ip_policies" in paths


async def test_all_lists_are_read_unless_an_object_of_the_last_apply_exists(sandbox: Sandbox, tmp_path: Path) -> None:
    """The API key may be of another account."""
    workspace = open_on(sandbox, write_project(tmp_path, policy("p")))
    assert (await workspace.apply()).status is Status.APPLIED
    (live,) = sandbox.get("/ip_policies")["ip_policies"]
    _, paths = await find_read_paths(sandbox, workspace, "BotUser/*")
    assert paths == {"/bot_users", f"/ip_policies/{live['id']}"}
    sandbox.delete(f"/ip_policies/{live['id']}")
    _, paths = await find_read_paths(sandbox, workspace, "BotUser/*")
    assert "/ip_policies" in paths
