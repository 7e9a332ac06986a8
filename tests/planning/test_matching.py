"""Which live object each declaration is matched with, and which objects a plan must not change."""

from __future__ import annotations

from itertools import product
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.approved import ApprovedItem
from reconciler.model.canonical import digests
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Verb
from reconciler.model.problem import Position
from reconciler.model.snapshot import Binding, Listing, Live, Snapshot
from reconciler.planning import planner
from reconciler.planning.matching.index import LiveIndex, describe_owner, parent_stack
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import (
    KINDS,
    LENIENT,
    actions,
    at,
    change_of,
    declare,
    errors,
    live,
    make_plan,
    manifest,
    record,
    ref,
    requests,
    snapshot,
)

EDGE = "edgtls_1"
KEY = "ssh-ed25519 AAAA"
DOMAIN = {"domain": "a.example.com"}


# --- owner records ----------------------------------------------------------------------------------------------------


def test_an_object_with_the_owner_record_of_a_declaration_is_in_sync() -> None:
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}))))
    assert (plan.changes, plan.problems) == ((), ())


def test_an_object_of_another_stack_with_the_same_address_is_not_matched() -> None:
    foreign = live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}, stack="other"))
    assert actions(make_plan(declare("TLSEdge/a"), seen=snapshot(foreign))) == {"TLSEdge/a": "create"}


def test_an_object_of_another_stack_is_never_deleted() -> None:
    foreign = live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}, stack="other"))
    assert make_plan(seen=snapshot(foreign), options=PlanOptions(destroy=True)).changes == ()


def test_an_unmanaged_object_is_never_deleted() -> None:
    plan = make_plan(seen=snapshot(live("TLSEdge", EDGE)), options=PlanOptions(destroy=True))
    assert (plan.changes, plan.unmanaged) == ((), (("TLSEdge", EDGE),))


def test_a_managed_object_that_is_no_longer_declared_is_deleted() -> None:
    plan = make_plan(seen=snapshot(live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}))), options=LENIENT)
    assert (actions(plan), requests(plan)) == ({"TLSEdge/a": "delete"}, [f"DELETE /edges/tls/{EDGE}"])


def test_undeclared_objects_are_deleted_in_the_order_of_their_addresses() -> None:
    live_objects = [live("TLSEdge", f"edgtls_{n}", owner=record(f"TLSEdge/{name}", {})) for n, name in enumerate("cab")]
    plan = make_plan(seen=snapshot(*live_objects), options=LENIENT)
    assert list(actions(plan)) == ["TLSEdge/a", "TLSEdge/b", "TLSEdge/c"]


def test_two_objects_with_one_owner_record_are_a_problem_that_names_both() -> None:
    copies = [live("TLSEdge", id, owner=record("TLSEdge/a", {})) for id in ("edgtls_2", "edgtls_1")]
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(*copies))
    assert (plan.changes, errors(plan)) == ((), ["2 objects carry its owner record: edgtls_1, edgtls_2"])


def test_objects_that_share_an_owner_record_are_not_deleted_with_their_declaration() -> None:
    copies = [live("TLSEdge", id, owner=record("TLSEdge/a", {})) for id in ("edgtls_2", "edgtls_1")]
    plan = make_plan(seen=snapshot(*copies), options=LENIENT)
    assert (plan.changes, errors(plan)) == ((), ["2 objects carry its owner record: edgtls_1, edgtls_2"])


def test_two_objects_created_for_one_address_are_both_deleted_with_its_declaration() -> None:
    pair = [live("TLSEdge", f"edgtls_{n}", owner=record("TLSEdge/a", {}, intent=f"intent-{n}")) for n in (1, 2)]
    plan = make_plan(seen=snapshot(*pair), options=LENIENT)
    assert [change.id for change in plan.changes] == ["edgtls_1", "edgtls_2"]


def test_an_owner_record_copied_to_another_kind_is_ignored() -> None:
    copied = live("ReservedDomain", "rd_1", DOMAIN, owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN), seen=snapshot(copied))
    assert change_of(plan, "ReservedDomain/a").action is Action.ADOPT
    assert [approval.flag for approval in plan.missing_approvals] == ["--allow adopt:ReservedDomain=1"]


def test_an_owner_record_copied_to_another_kind_deletes_nothing() -> None:
    copied = live("ReservedDomain", "rd_1", DOMAIN, owner=record("TLSEdge/a", {}))
    plan = make_plan(seen=snapshot(copied), options=LENIENT)
    assert (plan.changes, plan.unmanaged) == ((), (("ReservedDomain", "rd_1"),))


# --- interrupted replacements -----------------------------------------------------------------------------------------


def test_an_interrupted_replacement_is_completed_by_deleting_the_older_object() -> None:
    older = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    newer = live(
        "CertificateAuthority",
        "ca_2",
        {"ca_pem": "NEW"},
        owner=record("CertificateAuthority/a", {"ca_pem": "NEW"}, intent="intent-2", replaces="ca_1"),
    )
    plan = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}), seen=snapshot(newer, older))
    assert (requests(plan), errors(plan)) == (["DELETE /certificate_authorities/ca_1"], [])
    assert [change.reason for change in plan.changes] == [Reason.SUPERSEDED]


def test_the_older_object_remains_while_the_declaration_of_the_newer_has_a_problem() -> None:
    older = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    owner = record("CertificateAuthority/a", {"ca_pem": "NEW"}, intent="intent-2", replaces="ca_1")
    newer = live("CertificateAuthority", "ca_2", {"ca_pem": "NEW"}, owner=owner)
    declared = declare("CertificateAuthority/b", {"ca_pem": "NEWEST"}, id="ca_2", replace=False)
    plan = make_plan(declared, seen=snapshot(newer, older), options=LENIENT)
    assert (requests(plan), [problem.code for problem in plan.errors]) == ([], ["cannot-be-replaced"])


@pytest.mark.parametrize("targets", [("TLSEdge/old1",), ("TLSEdge/old1", "TLSEdge/new")])
def test_an_ambiguous_move_deletes_nothing_for_any_selection(
    targets: tuple[str, ...],
) -> None:
    pair = [live("TLSEdge", f"edgtls_{n}", owner=record(f"TLSEdge/old{n}", {}, intent=f"i{n}")) for n in (1, 2)]
    declared = declare("TLSEdge/new", moved=["TLSEdge/old1", "TLSEdge/old2"])
    plan = make_plan(declared, seen=snapshot(*pair), options=replace(LENIENT, targets=targets))
    assert (plan.changes, plan.calls) == ((), ())


def test_the_last_object_of_three_successive_replacements_remains() -> None:
    row = [
        live(
            "CertificateAuthority",
            f"ca_{n}",
            {"ca_pem": "P"},
            owner=record(
                "CertificateAuthority/a",
                {"ca_pem": "P"},
                intent=f"intent-{n}",
                replaces=f"ca_{n - 1}" if n > 1 else None,
            ),
        )
        for n in (3, 1, 2)
    ]
    plan = make_plan(declare("CertificateAuthority/a", {"ca_pem": "P"}), seen=snapshot(*row))
    assert requests(plan) == ["DELETE /certificate_authorities/ca_1", "DELETE /certificate_authorities/ca_2"]
    assert plan.calls[1].needs == (plan.calls[0].id,)


def test_a_credential_that_is_replaced_again_is_deleted_after_its_predecessor() -> None:
    """Only the owner record of the second shows that the first is unused, and deleting the first may fail."""
    first = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", intent="i1"))
    owner = record("TunnelCredential/c", intent="i2", pending=True, replaces="cr_1")
    second = live("TunnelCredential", "cr_2", owner=owner)
    plan = make_plan(declare("TunnelCredential/c"), seen=snapshot(second, first), options=LENIENT)
    deletes = {call.target: call for call in plan.calls if call.verb is Verb.DELETE}
    assert [change.action for change in plan.changes].count(Action.REPLACE) == 1
    assert (set(deletes), deletes["cr_1"].id in deletes["cr_2"].needs) == ({"cr_1", "cr_2"}, True)


def test_credentials_that_name_each_other_as_replaced_are_deleted() -> None:
    """Their owner records were edited by hand."""
    pair = [
        live("TunnelCredential", f"cr_{n}", owner=record("TunnelCredential/c", intent=f"i{n}", replaces=f"cr_{other}"))
        for n, other in ((1, 2), (2, 1))
    ]
    newest = live("TunnelCredential", "cr_3", owner=record("TunnelCredential/c", intent="i3", replaces="cr_2"))
    plan = make_plan(declare("TunnelCredential/c"), seen=snapshot(*pair, newest), options=LENIENT)
    assert (sorted(requests(plan)), errors(plan)) == (["DELETE /credentials/cr_1", "DELETE /credentials/cr_2"], [])


def test_both_objects_of_an_interrupted_replacement_are_deleted_with_the_declaration() -> None:
    older = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a"))
    newer = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", intent="intent-2", replaces="edgtls_1"))
    plan = make_plan(seen=snapshot(older, newer), options=LENIENT)
    assert sorted(requests(plan)) == ["DELETE /edges/tls/edgtls_1", "DELETE /edges/tls/edgtls_2"]


def test_a_copy_of_the_newer_object_of_an_interrupted_replacement_is_a_problem() -> None:
    older = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a"))
    newer, copy = (
        live("TLSEdge", id, owner=record("TLSEdge/a", intent="intent-2", replaces="edgtls_1"))
        for id in ("edgtls_2", "edgtls_3")
    )
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(older, newer, copy))
    assert (plan.changes, len(plan.errors)) == ((), 1)


def test_two_edges_that_name_each_other_as_replaced_are_a_problem() -> None:
    pair = [
        live("TLSEdge", f"edgtls_{n}", owner=record("TLSEdge/a", intent=f"i{n}", replaces=f"edgtls_{3 - n}"))
        for n in (1, 2)
    ]
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(*pair))
    assert (plan.changes, len(plan.errors)) == ((), 1)


# --- created by two concurrent runs -----------------------------------------------------------------------------------


def duplicate(second: int, id: str, intent: str, kind: str = "TLSEdge", **more: Any) -> Live:
    body = {"created_at": f"2026-01-01T00:00:{second:02}Z"}
    return live(kind, id, body, owner=record(f"{kind}/a", {}, intent=intent, **more))


def test_the_later_of_two_objects_created_by_concurrent_runs_is_deleted() -> None:
    plan = make_plan(
        declare("TLSEdge/a"), seen=snapshot(duplicate(2, "edgtls_1", "i1"), duplicate(1, "edgtls_2", "i2"))
    )
    assert (requests(plan), errors(plan)) == (["DELETE /edges/tls/edgtls_1"], [])
    assert [(change.id, change.reason) for change in plan.changes] == [("edgtls_1", Reason.DUPLICATE)]


def test_the_higher_id_of_two_objects_created_in_one_second_is_deleted() -> None:
    plan = make_plan(
        declare("TLSEdge/a"), seen=snapshot(duplicate(1, "edgtls_2", "i2"), duplicate(1, "edgtls_1", "i1"))
    )
    assert requests(plan) == ["DELETE /edges/tls/edgtls_2"]


def test_the_later_of_two_concurrent_replacements_is_deleted_with_their_predecessor() -> None:
    old = duplicate(0, "edgtls_0", "i0")
    pair = duplicate(1, "edgtls_1", "i1", replaces="edgtls_0"), duplicate(2, "edgtls_2", "i2", replaces="edgtls_0")
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(old, *pair))
    assert sorted(requests(plan)) == ["DELETE /edges/tls/edgtls_0", "DELETE /edges/tls/edgtls_2"]


def test_a_referrer_of_a_duplicate_is_updated_before_the_duplicate_is_deleted() -> None:
    first, later = duplicate(1, "ipp_1", "i1", "IPPolicy"), duplicate(2, "ipp_2", "i2", "IPPolicy")
    edge = live("TLSEdge", EDGE, {"ip_restriction": {"ip_policies": [{"id": "ipp_2"}]}}, owner=record("TLSEdge/e", {}))
    declared = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/a")]}})
    plan = make_plan(declare("IPPolicy/a"), declared, seen=snapshot(first, later, edge))
    assert [request.partition(" ")[0] for request in requests(plan)][-1] == "DELETE"
    assert requests(plan)[-1] == "DELETE /ip_policies/ipp_2"
    assert len(requests(plan)) == 2


def test_two_credentials_created_by_concurrent_runs_are_a_problem_and_unchanged() -> None:
    pair = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    plan = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, receipts=["i2"]))
    candidates = "cr_1 (created 2026-01-01T00:00:01Z); cr_2 (created 2026-01-01T00:00:02Z, "
    candidates += "token delivered by a run with this store)"
    assert plan.changes == ()
    assert errors(plan) == [f"2 credentials exist for it, and the token of each may be in use: {candidates}"]
    assert plan.blocking_errors == ()
    assert "`id: cr_1` or `id: cr_2`" in plan.confined_errors[0].remedy


@pytest.mark.parametrize(("named", "deleted"), [("cr_1", "cr_2"), ("cr_2", "cr_1")])
def test_a_duplicate_credential_that_the_manifest_does_not_name_is_deleted(named: str, deleted: str) -> None:
    pair = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    plan = make_plan(declare("TunnelCredential/a", id=named), seen=snapshot(*pair))
    assert (requests(plan), errors(plan)) == ([f"DELETE /credentials/{deleted}"], [])


def test_duplicate_credentials_do_not_block_other_changes() -> None:
    pair = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    twice = [duplicate(n, f"edgtls_{n}", f"i{n}") for n in (1, 2)]
    plan = make_plan(
        declare("TunnelCredential/a"), declare("TLSEdge/a"), declare("IPPolicy/p"), seen=snapshot(*pair, *twice)
    )
    assert sorted(requests(plan)) == ["DELETE /edges/tls/edgtls_2", "POST /ip_policies"]
    assert (plan.blocking_errors, len(plan.confined_errors)) == ((), 1)


def test_a_remaining_pending_credential_of_another_store_is_not_replaced_at_once() -> None:
    """The run that created it may still deliver the token."""
    pair = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential", pending=True) for n in (1, 2)]
    plan = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, undelivered=["i2"]))
    assert (requests(plan), errors(plan)) == (["DELETE /credentials/cr_2"], [])


@given(st.data())
def test_concurrent_stores_delete_only_their_own_credentials_and_one_remains(
    data: st.DataObject,
) -> None:
    """Each store contains its own intents only; its snapshot may be older than the changes of the others."""
    count = data.draw(st.integers(2, 4))
    seconds = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    owners = data.draw(st.lists(st.sampled_from("AB"), min_size=count, max_size=count))
    delivered = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    deleted: set[str] = set()
    for store in "AB":
        live_objects = []
        for n in range(count):
            pending = not delivered[n] or data.draw(st.booleans())  # the owner record is written after the delivery
            live_objects.append(duplicate(seconds[n], f"cr_{n}", f"i{n}", "TunnelCredential", pending=pending))
        own_numbers = [n for n in range(count) if owners[n] == store]
        seen = snapshot(
            *live_objects,
            receipts=[f"i{n}" for n in own_numbers if delivered[n]],
            undelivered=[f"i{n}" for n in own_numbers if not delivered[n]],
        )
        plan = make_plan(declare("TunnelCredential/a"), seen=seen)
        calls = requests(plan)
        deletes = {call.rpartition("/")[2] for call in calls if call.startswith("DELETE")}
        assert deletes <= {f"cr_{n}" for n in own_numbers if not delivered[n]}
        deleted |= deletes if not any(call.startswith("POST") for call in calls) else set()
        assert plan.blocking_errors == ()
    assert len(deleted) < count


def test_an_undelivered_duplicate_credential_is_deleted_even_if_it_is_the_first() -> None:
    pair = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential", pending=True) for n in (1, 2)]
    seen = snapshot(*pair, receipts=["i2"], undelivered=["i1"])
    plan = make_plan(declare("TunnelCredential/a"), seen=seen)
    assert errors(plan) == []
    assert [request for request in requests(plan) if request.startswith("DELETE")] == ["DELETE /credentials/cr_1"]
    assert not [request for request in requests(plan) if request.startswith("POST")]


def test_a_credential_that_is_not_pending_does_not_count_as_undelivered() -> None:
    pair = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    plan = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, undelivered=["i1"]))
    assert (plan.changes, len(plan.confined_errors)) == ((), 1)


def test_two_undelivered_credentials_are_deleted_and_a_new_one_is_created() -> None:
    pair = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential", pending=True) for n in (1, 2)]
    plan = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, undelivered=["i1", "i2"]))
    deletes = sorted(request for request in requests(plan) if request.startswith("DELETE"))
    assert (errors(plan), deletes) == ([], ["DELETE /credentials/cr_1", "DELETE /credentials/cr_2"])
    assert [request for request in requests(plan) if request.startswith("POST")] == ["POST /credentials"]


def test_a_credential_with_a_token_overwritten_by_a_deleted_successor_is_replaced() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/a", {}, intent="i1"))
    seen = replace(snapshot(credential, receipts=["i1", "i2"]), overwritten={"i1": Address("TunnelCredential", "a")})
    plan = make_plan(declare("TunnelCredential/a"), seen=seen, options=LENIENT)
    assert [(change.id, change.reason) for change in plan.changes] == [("cr_1", Reason.OVERWRITTEN)]


# cr_3 replaced cr_2, which was deleted.
REPLACED_TWICE = [duplicate(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 3)]


def test_a_duplicate_credential_with_an_overwritten_token_is_deleted() -> None:
    seen = snapshot(*REPLACED_TWICE, receipts=["i1", "i3"])
    plan = make_plan(
        declare("TunnelCredential/a"), seen=replace(seen, overwritten={"i1": Address("TunnelCredential", "a")})
    )
    assert errors(plan) == []
    assert [request for request in requests(plan) if request.startswith(("POST", "DELETE"))] == [
        "DELETE /credentials/cr_1"
    ]


@pytest.mark.parametrize(
    ("receipts", "overwritten"),
    [
        (["i1", "i3"], {}),
        (["i1", "i3"], {"i1": "b"}),  # by the token of another address, before a move
        (["i1", "i2"], {"i1": "a"}),  # by that of cr_2, which was deleted: another store created cr_3
    ],
)
def test_a_duplicate_credential_with_an_intact_token_is_a_problem(
    receipts: list[str], overwritten: dict[str, str]
) -> None:
    seen = replace(
        snapshot(*REPLACED_TWICE, receipts=receipts),
        overwritten={intent: Address("TunnelCredential", name) for intent, name in overwritten.items()},
    )
    plan = make_plan(declare("TunnelCredential/a"), seen=seen)
    assert (plan.changes, len(plan.confined_errors)) == ((), 1)


def test_a_moved_credential_is_in_sync_if_the_token_of_its_former_address_is_overwritten() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/b", {}, intent="i1"))
    seen = replace(snapshot(credential, receipts=["i1", "i2"]), overwritten={"i1": Address("TunnelCredential", "a")})
    assert make_plan(declare("TunnelCredential/b"), seen=seen, options=LENIENT).changes == ()


# --- moves ------------------------------------------------------------------------------------------------------------


def test_a_moved_object_is_updated_with_its_new_address() -> None:
    old = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}))
    plan = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(old))
    assert (actions(plan), requests(plan)) == ({"TLSEdge/new": "move"}, [f"PATCH /edges/tls/{EDGE}"])


def test_a_move_retains_the_intent_that_salts_the_digests() -> None:
    old = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}, intent="former"))
    plan = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(old))
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.intent == "former"


def test_an_applied_move_has_no_effect() -> None:
    edge = live("TLSEdge", EDGE, owner=record("TLSEdge/new", {}))
    assert make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(edge)).changes == ()


def test_a_move_that_matches_two_objects_is_a_problem_and_deletes_neither() -> None:
    pair = [live("TLSEdge", f"edgtls_{n}", owner=record(f"TLSEdge/{n}", {}, intent=f"i{n}")) for n in (1, 2)]
    plan = make_plan(declare("TLSEdge/new", moved=["TLSEdge/1", "TLSEdge/2"]), seen=snapshot(*pair))
    assert (plan.changes, len(plan.errors)) == ((), 1)


def test_a_move_to_an_address_that_has_an_object_is_a_problem_and_deletes_neither() -> None:
    own = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/new", {}))
    old = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/old", {}))
    plan = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(own, old))
    assert plan.changes == ()
    assert errors(plan) == [
        "`moved` matches more than one object: edgtls_1 is TLSEdge/new already, edgtls_2 was TLSEdge/old"
    ]


def test_two_declarations_cannot_move_from_one_address() -> None:
    old = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}))
    plan = make_plan(
        declare("TLSEdge/a", moved=["TLSEdge/old"]), declare("TLSEdge/b", moved=["TLSEdge/old"]), seen=snapshot(old)
    )
    assert errors(plan) == [f"{EDGE} is already declared as TLSEdge/a"]


def test_a_move_from_an_address_of_two_objects_is_a_problem() -> None:
    copies = [live("TLSEdge", id, owner=record("TLSEdge/old", {})) for id in ("edgtls_1", "edgtls_2")]
    plan = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(*copies), options=LENIENT)
    assert (plan.changes, len(plan.errors)) == ((), 1)


def test_a_unique_key_of_an_undeclared_managed_object_is_a_move() -> None:
    old = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/old", DOMAIN))
    plan = make_plan(declare("ReservedDomain/new", DOMAIN), seen=snapshot(old))
    change = change_of(plan, "ReservedDomain/new")
    assert (change.action, str(change.former), plan.approvals) == (Action.MOVE, "ReservedDomain/old", ())


def test_an_object_reserved_by_moved_is_not_matched_by_its_key() -> None:
    old = live("SSHCredential", "sshcr_1", {"public_key": KEY}, owner=record("SSHCredential/old", {"public_key": KEY}))
    plan = make_plan(
        declare("SSHCredential/a", {"public_key": KEY}),
        declare("SSHCredential/z", {"public_key": "ssh-ed25519 BBBB"}, moved=["SSHCredential/old"]),
        seen=snapshot(old),
    )
    assert (actions(plan), errors(plan)) == ({"SSHCredential/a": "create", "SSHCredential/z": "replace"}, [])


def test_the_first_former_address_that_is_bound_to_the_object_is_reported() -> None:
    bot = live("BotUser", "bot_1", {"name": "b"})
    seen = snapshot(bot, bindings={f"BotUser/{name}": Binding("bot_1") for name in "xyz"})
    plan = make_plan(declare("BotUser/b", {"name": "b"}, moved=["BotUser/y", "BotUser/x"]), seen=seen)
    assert str(change_of(plan, "BotUser/b").former) == "BotUser/y"


@pytest.mark.parametrize(
    ("own", "remedy"),
    [
        (True, "remove `moved`; the object with the former address will then be deleted"),
        (False, "keep one address in `moved`"),
    ],
)
def test_an_ambiguous_move_reports_a_remedy(own: bool, remedy: str) -> None:
    names = ["new", "1"] if own else ["1", "2"]
    pair = [live("TLSEdge", f"e_{name}", owner=record(f"TLSEdge/{name}", {})) for name in names]
    plan = make_plan(declare("TLSEdge/new", moved=["TLSEdge/1", "TLSEdge/2"]), seen=snapshot(*pair))
    assert [(problem.code, problem.remedy) for problem in plan.errors] == [("ambiguous-match", remedy)]


def test_a_replaced_object_that_is_declared_again_under_a_new_name_is_moved() -> None:
    def key(number: int, name: str, **more: Any) -> Live:
        body = {"public_key": f"{KEY}{number}"}
        return live("SSHCredential", f"k{number}", body, owner=record(f"SSHCredential/{name}", body, **more))

    seen = snapshot(key(1, "old", intent="i1"), key(2, "new", intent="i2", replaces="k1"))
    declared = declare("SSHCredential/new", {"public_key": f"{KEY}1"}, moved=["SSHCredential/old"])
    plan = make_plan(declared, seen=seen, options=LENIENT)
    assert [(change.id, change.action, str(change.former)) for change in plan.changes] == [
        ("k2", Action.DELETE, "None"),
        ("k1", Action.MOVE, "SSHCredential/old"),
    ]


# --- records on several objects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "intents", "replaces", "code", "text", "remedy"),
    [
        (
            "TLSEdge",
            ["i", "i"],
            [None, None],
            "shared-owner-record",
            "2 objects carry its owner record: x_0, x_1",
            "remove the owner record from the metadata of all but one, or delete the others",
        ),
        (
            "TLSEdge",
            ["i", "j"],
            ["x_1", "x_0"],
            "shared-owner-record",
            "2 objects were created for it: x_0, x_1",
            "delete all of them but the one in use",
        ),
        (
            "APIKey",
            ["i", "i"],
            [None, None],
            "shared-owner-record",
            "2 objects carry its owner record: x_0, x_1",
            "remove the owner record from the metadata of all but one, or delete the others",
        ),
        (
            "APIKey",
            ["i", "j"],
            [None, None],
            "credential-created-twice",
            "2 credentials exist for it, and the token of each may be in use: x_0; x_1",
            "set `id: x_0` or `id: x_1` in its manifest to choose the one to keep, and run "
            "`reconciler apply --target APIKey/a`; the others will be deleted",
        ),
    ],
    ids=["copies", "each replaces the other", "copies of a credential", "two credentials"],
)
def test_an_owner_record_on_several_objects_is_reported_with_its_cause(
    kind: str, intents: list[str], replaces: list[str | None], code: str, text: str, remedy: str
) -> None:
    live_objects = [
        live(kind, f"x_{n}", owner=record(f"{kind}/a", {}, intent=intent, replaces=former))
        for n, (intent, former) in enumerate(zip(intents, replaces, strict=True))
    ]
    plan = make_plan(declare(f"{kind}/a"), seen=snapshot(*live_objects[::-1]))
    assert [(problem.code, problem.text, problem.remedy) for problem in plan.errors] == [(code, text, remedy)]
    assert plan.calls == ()


# --- ids --------------------------------------------------------------------------------------------------------------


def test_an_id_matches_an_unmanaged_object_but_does_not_approve_its_adoption() -> None:
    def plan_by_id(*, adopt: bool = False, options: PlanOptions | None = None) -> tuple[dict[str, str], list[str]]:
        declared = declare("TLSEdge/a", id=EDGE, adopt=adopt)
        plan = make_plan(declared, seen=snapshot(live("TLSEdge", EDGE)), options=options or PlanOptions())
        return actions(plan), [approval.flag for approval in plan.missing_approvals]

    assert plan_by_id() == ({"TLSEdge/a": "adopt"}, ["--allow adopt:TLSEdge=1"])
    assert plan_by_id(adopt=True) == plan_by_id(options=PlanOptions(adopt=True)) == ({"TLSEdge/a": "adopt"}, [])


def test_a_resource_with_an_unknown_id_is_created_with_an_approval() -> None:
    plan = make_plan(declare("TLSEdge/a", id=EDGE), declare("IPPolicy/other"))
    assert (actions(plan), errors(plan)) == ({"TLSEdge/a": "create", "IPPolicy/other": "create"}, [])
    assert [str(change.reason) for change in plan.changes] == ["declared", "no_such_id"]
    assert [approval.flag for approval in plan.missing_approvals] == ["--allow create:TLSEdge=1"]
    (item,) = plan.missing_approvals[0].items
    assert (item.subject, item.id) == ("TLSEdge/a", "")


@pytest.mark.parametrize(
    "seen",
    [
        snapshot(bindings={"TLSEdge/a": Binding(EDGE)}),
        snapshot(bindings={"TLSEdge/former": Binding(EDGE)}),
        replace(snapshot(), once_ours=frozenset({("TLSEdge", EDGE)})),
    ],
    ids=["binding", "binding of the former address", "history"],
)
def test_a_vanished_object_named_by_id_is_created_again_without_an_approval(seen: Snapshot) -> None:
    plan = make_plan(declare("TLSEdge/a", id=EDGE, moved=["TLSEdge/former"]), seen=seen)
    assert [(str(change.action), str(change.reason)) for change in plan.changes] == [("create", "vanished")]
    assert plan.missing_approvals == ()


def test_an_id_once_managed_by_another_stack_or_kind_is_unknown() -> None:
    seen = replace(snapshot(), once_ours=frozenset({("TCPEdge", EDGE)}), elsewhere={("TLSEdge", EDGE): "other"})
    plan = make_plan(declare("TLSEdge/a", id=EDGE), seen=seen)
    assert [str(change.reason) for change in plan.changes] == ["no_such_id"]


def test_the_id_of_an_object_of_another_kind_is_a_problem_of_this_resource_only() -> None:
    line = Position("m.yaml", 3, 1)
    plan = make_plan(
        replace(declare("TLSEdge/a", id="ipp_1"), positions={("id",): line}),
        declare("IPPolicy/other"),
        seen=snapshot(live("IPPolicy", "ipp_1")),
    )
    assert actions(plan) == {"IPPolicy/other": "create"}
    assert errors(plan) == ["ipp_1 is the id of an object of the kind IPPolicy"]
    assert ([problem.position for problem in plan.problems], plan.blocking_errors) == ([line], ())


def test_the_owner_record_of_a_recreated_object_takes_precedence_over_the_old_id() -> None:
    recreated = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", id=EDGE), seen=snapshot(recreated))
    assert (plan.changes, plan.problems) == ((), ())


def test_the_binding_of_a_recreated_object_takes_precedence_over_the_old_id() -> None:
    recreated = live("BotUser", "bot_2", {"name": "b"})
    seen = snapshot(recreated, bindings={"BotUser/b": Binding("bot_2")})
    plan = make_plan(declare("BotUser/b", {"name": "b"}, id="bot_1"), seen=seen)
    assert (plan.changes, plan.problems) == ((), ())


def test_an_object_that_was_created_again_by_hand_is_adopted_by_its_natural_key() -> None:
    by_hand = live("ReservedDomain", "rd_2", {"domain": "a.x"})
    seen = snapshot(by_hand, bindings={"ReservedDomain/a": Binding("rd_1")})
    plan = make_plan(declare("ReservedDomain/a", {"domain": "a.x"}, id="rd_1"), seen=seen)
    assert actions(plan) == {"ReservedDomain/a": "adopt"}
    assert [approval.flag for approval in plan.missing_approvals] == ["--allow adopt:ReservedDomain=1"]


def test_an_unknown_id_adopts_no_pool_member_with_the_same_values() -> None:
    values = {"url": "https://a.x", "pooling_enabled": True}
    seen = snapshot(live("CloudEndpoint", "ep_2", {**values, "type": "cloud"}))
    plan = make_plan(declare("CloudEndpoint/a", values, id="ep_1", adopt=True), seen=seen)
    assert [(str(change.action), str(change.reason)) for change in plan.changes] == [("create", "no_such_id")]
    assert actions(make_plan(declare("CloudEndpoint/a", values, adopt=True), seen=seen)) == {"CloudEndpoint/a": "adopt"}


def test_two_declarations_with_one_unknown_id_are_both_created() -> None:
    plan = make_plan(declare("TLSEdge/a", id=EDGE), declare("TLSEdge/b", id=EDGE))
    assert [approval.flag for approval in plan.missing_approvals] == ["--allow create:TLSEdge=2"]


def test_modules_of_an_object_that_does_not_exist_are_not_created() -> None:
    plan = make_plan(
        declare("HTTPSEdgeRoute/a", {"edge_id": "e", "compression": {"enabled": True}}, id="edghtsrt_1"),
        declare("IPPolicy/other"),
    )
    assert actions(plan) == {"IPPolicy/other": "create"}
    assert [problem.code for problem in plan.errors] == ["unknown-id"]


def test_an_id_missing_from_an_incomplete_list_is_not_reported_as_unknown() -> None:
    plan = make_plan(declare("TLSEdge/a", id=EDGE), seen=snapshot(cut=["TLSEdge"]))
    assert errors(plan) == ["the list of TLSEdge objects is incomplete: cut"]


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.FORGOTTEN])
def test_an_absent_or_forgotten_resource_with_the_id_of_a_deleted_object_is_in_sync(ensure: Ensure) -> None:
    plan = make_plan(declare("TLSEdge/a", id=EDGE, ensure=ensure))
    assert (plan.changes, [problem.code for problem in plan.problems]) == ((), ["manifest-finished"])


def test_the_id_of_an_object_of_another_stack_is_a_problem_that_names_the_stack() -> None:
    foreign = live("TLSEdge", EDGE, owner=record("TLSEdge/b", {}, stack="other"))
    plan = make_plan(declare("TLSEdge/a", id=EDGE), seen=snapshot(foreign))
    assert errors(plan) == [f"{EDGE} is managed by stack 'other' as TLSEdge/b"]


def test_the_id_of_an_object_of_another_declaration_is_a_problem() -> None:
    edge = live("TLSEdge", EDGE, owner=record("TLSEdge/b", {}))
    plan = make_plan(declare("TLSEdge/a", id=EDGE), declare("TLSEdge/b"), seen=snapshot(edge))
    assert (plan.changes, errors(plan)) == ((), [f"{EDGE} is already declared as TLSEdge/b"])


def test_an_id_that_contradicts_the_owner_record_is_a_problem_and_deletes_nothing() -> None:
    plan = make_plan(
        declare("TLSEdge/a", id="edgtls_2"),
        seen=snapshot(live("TLSEdge", EDGE, owner=record("TLSEdge/a", {})), live("TLSEdge", "edgtls_2")),
    )
    assert (plan.changes, errors(plan)) == (
        (),
        [f"its manifest names the id edgtls_2, but its owner record is on {EDGE}"],
    )


def test_the_id_of_a_replaced_object_matches_its_successor() -> None:
    old, new = live("TLSEdge", EDGE), live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, replaces=EDGE))
    for seen in (snapshot(old, new), snapshot(new)):
        plan = make_plan(declare("TLSEdge/a", id=EDGE), seen=seen)
        assert (plan.changes, errors(plan)) == ((), [])


@pytest.mark.parametrize(("ensure", "action"), [(Ensure.ABSENT, "delete"), (Ensure.FORGOTTEN, "forget")])
@pytest.mark.parametrize("replaces", [EDGE, None])
def test_the_owner_record_of_an_absent_resource_takes_precedence_over_a_stale_id(
    ensure: Ensure, action: str, replaces: str | None
) -> None:
    recreated = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, replaces=replaces))
    plan = make_plan(declare("TLSEdge/a", id=EDGE, ensure=ensure), seen=snapshot(recreated), options=LENIENT)
    assert [(str(change.action), change.id) for change in plan.changes] == [(action, "edgtls_2")]
    assert plan.errors == ()


@pytest.mark.parametrize(("ensure", "action"), [(Ensure.ABSENT, "delete"), (Ensure.FORGOTTEN, "forget")])
def test_the_binding_of_an_absent_resource_takes_precedence_over_a_stale_id(ensure: Ensure, action: str) -> None:
    recreated = live("BotUser", "bot_2", {"name": "b"})
    seen = snapshot(recreated, bindings={"BotUser/b": Binding("bot_2")})
    plan = make_plan(declare("BotUser/b", {"name": "b"}, id="bot_1", ensure=ensure), seen=seen, options=LENIENT)
    assert [(str(change.action), change.id) for change in plan.changes] == [(action, "bot_2")]
    assert plan.errors == ()


def test_the_deletion_of_a_recreated_object_requires_the_usual_approval() -> None:
    recreated = live("ReservedDomain", "rd_2", DOMAIN, owner=record("ReservedDomain/a", DOMAIN))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN, id="rd_1", ensure=Ensure.ABSENT), seen=snapshot(recreated))
    assert actions(plan) == {"ReservedDomain/a": "delete"}
    assert [approval.flag for approval in plan.missing_approvals] == ["--allow delete:ReservedDomain=1"]


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.FORGOTTEN])
@pytest.mark.parametrize("owner", [None, record("TLSEdge/b", {}), record("TLSEdge/b", {}, stack="other")])
def test_an_absent_resource_with_the_id_of_another_object_is_a_problem(ensure: Ensure, owner: Owner | None) -> None:
    seen = snapshot(live("TLSEdge", EDGE, owner=owner), live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {})))
    declared = [declare("TLSEdge/a", id=EDGE, ensure=ensure), declare("TLSEdge/b")]
    plan = make_plan(*declared, seen=seen, options=LENIENT)
    assert {problem.code for problem in plan.errors} == {"conflicting-id"}
    assert all(call.address.name == "b" and call.verb is Verb.CREATE for call in plan.calls)


def test_an_absent_route_without_a_parent_and_with_the_id_of_another_is_a_problem() -> None:
    edge = live("HTTPSEdge", "edghts_1", owner=record("HTTPSEdge/e", {}))
    routes = [
        live("HTTPSEdgeRoute", "edghtsrt_1", parent="edghts_1"),
        live("HTTPSEdgeRoute", "edghtsrt_2", parent="edghts_1", owner=record("HTTPSEdgeRoute/a", {})),
    ]
    absent = declare("HTTPSEdgeRoute/a", id="edghtsrt_1", ensure=Ensure.ABSENT)
    plan = make_plan(absent, declare("HTTPSEdge/e"), seen=snapshot(edge, *routes), options=LENIENT)
    assert [problem.code for problem in plan.errors if problem.subject == "HTTPSEdgeRoute/a"] == ["conflicting-id"]
    assert not [call for call in plan.calls if call.verb is Verb.DELETE]


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.FORGOTTEN])
def test_an_absent_resource_with_a_stale_id_deletes_no_unmanaged_object_by_its_key(
    ensure: Ensure,
) -> None:
    by_hand = live("ReservedDomain", "rd_2", DOMAIN)
    absent = declare("ReservedDomain/a", DOMAIN, id="rd_1", ensure=ensure, adopt=True)
    plan = make_plan(absent, seen=snapshot(by_hand), options=LENIENT)
    assert (plan.changes, plan.errors) == ((), ())


def test_a_former_address_matches_if_no_object_has_the_id() -> None:
    other = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/old", {}, replaces=EDGE))
    moved = declare("TLSEdge/new", id=EDGE, moved=["TLSEdge/old"])
    assert actions(make_plan(moved, seen=snapshot(other), options=LENIENT)) == {"TLSEdge/new": "move"}
    both = make_plan(moved, seen=snapshot(other, live("TLSEdge", EDGE)), options=LENIENT)
    assert (both.calls, [problem.code for problem in both.errors]) == ((), ["conflicting-id"])


def test_an_id_that_contradicts_a_binding_is_a_problem() -> None:
    bots = [live("BotUser", f"bot_{n}", {"name": f"b{n}"}) for n in (1, 2)]
    seen = snapshot(*bots, bindings={"BotUser/b": Binding("bot_1")})
    plan = make_plan(declare("BotUser/b", {"name": "b2"}, id="bot_2"), seen=seen, options=LENIENT)
    assert (plan.calls, [problem.code for problem in plan.errors]) == ((), ["conflicting-id"])


def test_the_id_of_a_bot_bound_to_other_declarations_is_a_problem_that_names_the_first() -> None:
    bound = {f"BotUser/{name}": Binding("bot_1") for name in ("a", "b", "c")}
    seen = snapshot(live("BotUser", "bot_1", {"name": "x"}), bindings=bound)
    declared = [declare(f"BotUser/{name}", {"name": "x"}, id="bot_1") for name in ("d",)]
    others = [declare(f"BotUser/{name}", {"name": name}, ensure=Ensure.FORGOTTEN) for name in ("b", "c")]
    plan = make_plan(*declared, *others, seen=seen)
    texts = [problem.text for problem in plan.errors if problem.subject == "BotUser/d"]
    assert texts == ["bot_1 is already declared as BotUser/b"]
    (moved,) = make_plan(*declared, seen=seen).changes
    assert (moved.action, str(moved.former)) == (Action.MOVE, "BotUser/a")


def test_an_object_named_by_id_is_not_matched_by_the_key_of_another_declaration() -> None:
    domain = live("ReservedDomain", "rd_1", DOMAIN)
    plan = make_plan(
        declare("ReservedDomain/a", DOMAIN, adopt=True),
        declare("ReservedDomain/z", DOMAIN, id="rd_1"),
        seen=snapshot(domain),
    )
    assert actions(plan)["ReservedDomain/z"] == "adopt"
    assert errors(plan) == [
        "ReservedDomain/z has a.example.com already, and the platform allows it on one object at a time"
    ]


# --- natural keys -----------------------------------------------------------------------------------------------------


def test_a_unique_key_matches_an_unmanaged_object_and_requires_approval() -> None:
    plan = make_plan(declare("ReservedDomain/a", DOMAIN), seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)))
    assert (actions(plan), [approval.what for approval in plan.missing_approvals]) == (
        {"ReservedDomain/a": "adopt"},
        ["adopt"],
    )


@pytest.mark.parametrize("by", ["lifecycle", "flag"])
def test_adoption_is_approved_by_lifecycle_or_by_flag(by: str) -> None:
    plan = make_plan(
        declare("ReservedDomain/a", DOMAIN, adopt=by == "lifecycle"),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
        options=PlanOptions(adopt=by == "flag"),
    )
    assert (actions(plan), plan.missing_approvals) == ({"ReservedDomain/a": "adopt"}, ())


@pytest.mark.parametrize("is_requested", [False, True])
@pytest.mark.parametrize("by_flag", [False, True])
@pytest.mark.parametrize("adopting", [None, (), ("a",), ("b",), ("a", "b")])
def test_lifecycle_adopt_approves_only_where_it_counts_and_the_flag_everywhere(
    is_requested: bool, by_flag: bool, adopting: tuple[str, ...] | None
) -> None:
    """Objects with and without owner records, that differ or are in sync. A branch cannot give itself the approval."""
    is_approved = by_flag or (is_requested and (adopting is None or "a" in adopting))
    for kind, body in (
        ("ReservedDomain", DOMAIN),
        ("ReservedDomain", {**DOMAIN, "description": "x"}),
        ("BotUser", {"name": "a", "active": False}),
        ("BotUser", {"name": "a", "active": True}),
    ):
        counted = None if adopting is None else frozenset(at(f"{kind}/{name}") for name in adopting)
        plan = make_plan(
            declare(f"{kind}/a", DOMAIN if kind == "ReservedDomain" else {"name": "a"}, adopt=is_requested),
            seen=snapshot(live(kind, "x1", body)),
            options=PlanOptions(adopt=by_flag, adopting=counted),
        )
        assert plan.errors == ()
        if plan.changes:
            missing = [approval.what for approval in plan.missing_approvals]
            assert (actions(plan), missing) == ({f"{kind}/a": "adopt"}, [] if is_approved else ["adopt"])
        else:  # found by its name and in sync: the store records that nobody approved it
            binding = plan.bindings[at("BotUser/a")]
            assert binding is not None
            assert binding.adopted is not is_approved


def test_a_unique_key_of_another_stack_is_refused_even_with_approval() -> None:
    foreign = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/x", DOMAIN, stack="other"))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN, adopt=True), seen=snapshot(foreign), options=LENIENT)
    assert (plan.changes, errors(plan)) == ((), ["rd_1 is managed by stack 'other' as ReservedDomain/x"])


def test_a_key_that_is_not_unique_matches_nothing_without_lifecycle_adopt() -> None:
    plan = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}),
        seen=snapshot(live("CertificateAuthority", "ca_1", {"ca_pem": "P"})),
        options=PlanOptions(adopt=True),
    )
    assert actions(plan) == {"CertificateAuthority/a": "create"}


def test_a_key_that_is_not_unique_matches_an_object_with_lifecycle_adopt() -> None:
    plan = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}, adopt=True),
        seen=snapshot(live("CertificateAuthority", "ca_1", {"ca_pem": " P \n"})),
    )
    assert actions(plan) == {"CertificateAuthority/a": "adopt"}


def test_a_key_of_two_objects_is_a_problem_that_names_both() -> None:
    plan = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}, adopt=True),
        seen=snapshot(*(live("CertificateAuthority", id, {"ca_pem": "P"}) for id in ("ca_2", "ca_1"))),
    )
    assert errors(plan) == ["2 objects match it: ca_1, ca_2"]


def test_two_declarations_do_not_adopt_one_object() -> None:
    plan = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}, adopt=True),
        declare("CertificateAuthority/b", {"ca_pem": "P"}, adopt=True),
        seen=snapshot(live("CertificateAuthority", "ca_1", {"ca_pem": "P"})),
    )
    assert actions(plan) == {"CertificateAuthority/a": "adopt", "CertificateAuthority/b": "create"}


def test_a_key_that_a_declared_object_releases_is_free_for_any_address() -> None:
    credential = live(
        "SSHCredential", "sshcr_1", {"public_key": KEY}, owner=record("SSHCredential/m", {"public_key": KEY})
    )
    plan = make_plan(
        declare("SSHCredential/a", {"public_key": KEY}),
        declare("SSHCredential/m", {"public_key": "ssh-ed25519 BBBB"}),
        seen=snapshot(credential),
    )
    assert errors(plan) == []
    assert requests(plan) == ["POST /ssh_credentials", "DELETE /ssh_credentials/sshcr_1", "POST /ssh_credentials"]


def test_adoption_never_replaces_an_unmanaged_object() -> None:
    rule = {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "allow"}
    plan = make_plan(
        declare("IPPolicyRule/a", {"ip_policy_id": "ipp_1", "cidr": "10.0.0.0/8", "action": "deny"}, adopt=True),
        seen=snapshot(live("IPPolicyRule", "ipr_1", rule)),
        options=LENIENT,
    )
    assert (plan.changes, plan.calls) == ((), ())
    assert errors(plan) == [
        "ipr_1 is not managed by any stack, and differs in action, which cannot be updated in place"
    ]


def test_an_id_never_replaces_an_unmanaged_object() -> None:
    plan = make_plan(
        declare("ReservedAddress/a", {"region": "eu"}, id="ra_1"),
        seen=snapshot(live("ReservedAddress", "ra_1", {"region": "us", "addr": "1.tcp.example.net:20000"})),
        options=LENIENT,
    )
    assert (plan.calls, len(plan.errors)) == ((), 1)


# --- kinds without metadata -------------------------------------------------------------------------------------------


def test_a_replaced_object_is_not_matched_by_the_key_of_another_declaration() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    spec = {"ip_policy_id": ref("IPPolicy/p"), "action": "allow"}
    first, second = ({**spec, "cidr": cidr} for cidr in ("10.0.0.0/24", "10.0.1.0/24"))
    body = {"ip_policy": {"id": "ipp_1"}, "action": "allow"}
    old = live("IPPolicyRule", "ipr_1", {**body, "cidr": "10.0.0.0/24"}, owner=record("IPPolicyRule/a", intent="i1"))
    new = live(
        "IPPolicyRule",
        "ipr_2",
        {**body, "cidr": "10.0.1.0/24"},
        owner=record("IPPolicyRule/a", intent="i2", replaces="ipr_1"),
    )
    plan = make_plan(
        declare("IPPolicy/p"),
        declare("IPPolicyRule/a", second),
        declare("IPPolicyRule/b", first),
        seen=snapshot(policy, old, new),
    )
    assert plan.errors == ()
    assert [call.id for call in plan.calls if call.address.name != "p" and call.verb.method != "PATCH"] == [
        "delete IPPolicyRule/a ipr_1",
        "create IPPolicyRule/b",
    ]


def test_an_interrupted_replacement_that_is_reverted_in_git_deletes_the_second_object() -> None:
    first = live("ReservedDomain", "rd_1", {"domain": "a.example.com"}, owner=record("ReservedDomain/a", intent="i1"))
    second = live(
        "ReservedDomain",
        "rd_2",
        {"domain": "b.example.com"},
        owner=record("ReservedDomain/a", intent="i2", replaces="rd_1"),
    )
    plan = make_plan(
        declare("ReservedDomain/a", {"domain": "a.example.com"}), seen=snapshot(first, second), options=LENIENT
    )
    assert [call.target for call in plan.calls if call.method == "DELETE"] == ["rd_2"]
    assert not any(call.method == "POST" for call in plan.calls)


BOT = live("BotUser", "bot_1", {"name": "berlin", "active": True})


def test_a_bot_is_matched_by_its_binding_under_any_name() -> None:
    plan = make_plan(
        declare("BotUser/b", {"name": "munich"}), seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")})
    )
    assert (actions(plan), requests(plan)) == ({"BotUser/b": "update"}, ["PATCH /bot_users/bot_1"])


TUNNEL = live(
    "AgentTunnel", "t", {"name": "t", "proto": "tcp", "config": {"addr": "localhost:22"}, "public_url": "tcp://a.x:1"}
)
TCP = {"name": "t", "proto": "tcp", "addr": "22"}
ENDPOINT = live(
    "AgentEndpoint", "t", {"name": "t", "url": "https://a.example.com", "upstream": {"url": "http://localhost:80"}}
)
SHOP = {"name": "t", "url": "https://a.example.com", "upstream": {"url": "80"}}


def account_with(live_object: Live, bindings: dict[str, Binding] | None = None) -> Snapshot:
    """An account with one object, of a kind of the platform or of an agent."""
    return replace(
        snapshot(bindings=bindings), listings={**snapshot().listings, live_object.kind: Listing((live_object,))}
    )


of_each_kind_without_a_record = pytest.mark.parametrize(
    ("live_object", "spec"),
    [(BOT, {"name": "berlin"}), (TUNNEL, TCP), (ENDPOINT, SHOP)],
    ids=["BotUser", "AgentTunnel", "AgentEndpoint"],
)


@of_each_kind_without_a_record
def test_an_object_without_metadata_is_matched_by_name_without_approval_if_in_sync(
    live_object: Live, spec: dict[str, Any]
) -> None:
    address = f"{live_object.kind}/b"
    plan = planner.plan(
        manifest(declare(address, spec)), account_with(live_object), kinds.list_planned(), PlanOptions()
    )
    assert (plan.changes, plan.calls, plan.errors, plan.approvals) == ((), (), (), ())
    assert plan.bindings[Address.parse(address)] == Binding(live_object.id, ANY, adopted=True)
    assert plan.unmanaged == ()
    assert planner.plan(manifest(), account_with(live_object), kinds.list_planned(), LENIENT).unmanaged == (
        live_object.key,
    )


def test_a_bot_matched_by_name_needs_approval_for_a_change() -> None:
    plan = make_plan(declare("BotUser/b", {"name": "berlin", "active": False}), seen=snapshot(BOT))
    assert (actions(plan), [approval.flag for approval in plan.missing_approvals]) == (
        {"BotUser/b": "adopt"},
        ["--allow adopt:BotUser=1"],
    )
    (call,) = plan.calls
    assert call.owner is not None
    assert not call.owner.adopted  # it was approved


def test_two_bots_of_one_name_are_a_problem_that_names_both() -> None:
    plan = make_plan(
        declare("BotUser/b", {"name": "berlin"}), seen=snapshot(BOT, live("BotUser", "bot_2", {"name": "berlin"}))
    )
    assert (plan.calls, errors(plan)) == ((), ["2 objects match it: bot_1, bot_2"])


def test_a_bot_of_another_stack_in_the_store_is_not_matched_by_name() -> None:
    seen = replace(snapshot(BOT), elsewhere={BOT.key: "other"})
    plan = make_plan(declare("BotUser/b", {"name": "berlin"}), seen=seen, options=LENIENT)
    assert (plan.calls, dict(plan.bindings)) == ((), {})
    assert errors(plan) == ["bot_1 is managed by stack 'other', as the store says"]


ADOPTED = {"BotUser/b": Binding("bot_1", adopted=True)}


@pytest.mark.parametrize("declared", [[], [declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.ABSENT)]], ids=len)
def test_a_bot_that_was_adopted_without_approval_is_deleted_only_with_an_approval_that_names_it(
    declared: list[Declaration],
) -> None:
    seen = snapshot(BOT, bindings=ADOPTED)
    keep = declare("IPPolicy/p")
    plan = make_plan(keep, *declared, seen=seen, options=LENIENT)
    assert [approval.flag for approval in plan.missing_approvals] == ["--allow delete:BotUser/b=1"]
    (item,) = plan.missing_approvals[0].items
    assert (item.subject, item.id) == ("BotUser/b", "bot_1")
    granted = {**LENIENT.allow, ("delete", "BotUser/b"): 1}
    assert make_plan(keep, *declared, seen=seen, options=PlanOptions(allow=granted)).missing_approvals == ()
    entry = ApprovedItem("delete", "BotUser/b", "bot_1", item.digest, "2999-01-01")
    approved = PlanOptions(approved=(entry,))
    assert make_plan(keep, *declared, seen=seen, options=approved).missing_approvals == ()


def test_a_bot_created_or_adopted_with_approval_is_deleted_with_approval_of_its_kind() -> None:
    plan = make_plan(declare("IPPolicy/p"), seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")}))
    assert [approval.flag for approval in plan.missing_approvals] == ["--allow delete:BotUser=1"]
    adopted = make_plan(declare("BotUser/b", {"name": "berlin"}, adopt=True), seen=snapshot(BOT))
    assert adopted.bindings[Address.parse("BotUser/b")] == Binding("bot_1", ANY, adopted=False)


def test_an_update_and_a_rename_retain_that_a_bot_was_adopted_without_approval() -> None:
    seen = snapshot(BOT, bindings=ADOPTED)
    (call,) = make_plan(declare("BotUser/b", {"name": "munich"}), seen=seen).calls
    assert call.owner is not None
    assert call.owner.adopted
    moved = make_plan(declare("BotUser/c", {"name": "berlin"}, moved=["BotUser/b"]), seen=seen)
    assert moved.bindings[Address.parse("BotUser/c")] == Binding("bot_1", ANY, adopted=True)


@pytest.mark.parametrize(
    ("live_object", "spec"),
    [(TUNNEL, {**TCP, "addr": "2222"}), (ENDPOINT, {**SHOP, "url": "https://b.example.com"})],
    ids=["AgentTunnel", "AgentEndpoint"],
)
def test_a_replacement_of_an_adopted_object_of_an_agent_needs_an_approval_that_names_it(
    live_object: Live, spec: dict[str, Any]
) -> None:
    address = f"{live_object.kind}/b"
    seen = account_with(live_object, {address: Binding("t", adopted=True)})
    plan = planner.plan(manifest(declare(address, spec)), seen, kinds.list_planned(), LENIENT)
    assert [approval.flag for approval in plan.missing_approvals] == [f"--allow delete:{address}=1"]
    create = next(call for call in plan.calls if call.method == "POST")
    assert create.owner is not None
    assert not create.owner.adopted


def test_a_bot_without_a_binding_is_never_deleted() -> None:
    assert make_plan(seen=snapshot(BOT), options=LENIENT).calls == ()
    for options in (LENIENT, PlanOptions(adopt=True)):
        declared = declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.ABSENT, adopt=True)
        plan = make_plan(declared, seen=snapshot(BOT), options=options)
        assert (plan.calls, [problem.code for problem in plan.errors]) == ((), ["not-owned"])


def test_a_bot_in_sync_is_adopted_by_a_binding_without_a_call() -> None:
    plan = make_plan(declare("BotUser/b", {"name": "berlin"}, adopt=True), seen=snapshot(BOT))
    assert (plan.changes, plan.calls) == ((), ())
    assert [(str(address), binding and binding.id) for address, binding in plan.bindings.items()] == [
        ("BotUser/b", "bot_1")
    ]


def test_a_bound_bot_that_is_no_longer_declared_is_deleted() -> None:
    plan = make_plan(seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")}), options=LENIENT)
    assert requests(plan) == ["DELETE /bot_users/bot_1"]


def test_objects_that_share_an_owner_record_are_unchanged_if_a_key_matches_one() -> None:
    domains = [
        live("ReservedDomain", f"rd_{name}", {"domain": f"{name}.example.com"}, owner=record("ReservedDomain/old"))
        for name in ("a", "b")
    ]
    plan = make_plan(declare("ReservedDomain/new", DOMAIN), seen=snapshot(*domains), options=LENIENT)
    assert (plan.changes, plan.calls) == ((), ())
    assert {problem.code for problem in plan.errors} == {"shared-owner-record"}


@pytest.mark.parametrize("stack", ["laws", "other"])
def test_equal_values_adopt_no_managed_object(stack: str) -> None:
    pem = {"ca_pem": "-----BEGIN CERTIFICATE-----"}
    authority = live("CertificateAuthority", "ca_1", pem, owner=record("CertificateAuthority/old", pem, stack=stack))
    plan = make_plan(declare("CertificateAuthority/new", pem, adopt=True), seen=snapshot(authority), options=LENIENT)
    assert (actions(plan)["CertificateAuthority/new"], plan.errors) == ("create", ())


@pytest.mark.parametrize("stack", ["other", None])
def test_a_source_of_a_subscription_that_the_stack_does_not_manage_is_not_deleted(stack: str | None) -> None:
    above = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", stack=stack) if stack else None)
    source = live("EventSource", "ip_policy_created.v0", {"type": "ip_policy_created.v0"}, parent="esb_1")
    spec = {"subscription_id": "esb_1", "type": "ip_policy_created.v0"}
    plan = make_plan(declare("EventSource/x", spec, ensure=Ensure.ABSENT), seen=snapshot(above, source))
    assert plan.calls == ()
    assert [problem.code for problem in plan.errors] == ["not-owned"]


def test_an_id_missing_from_an_incomplete_list_may_exist() -> None:
    """The object with the owner record does not replace it; the rest of the list may show one that does."""
    managed = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}))
    declared = declare("TLSEdge/a", {"description": "new"}, id=EDGE)
    plan = make_plan(declared, seen=snapshot(managed, cut=["TLSEdge"]))
    assert (plan.calls, [problem.code for problem in plan.errors]) == ((), ["kind-not-listed"])
    assert requests(make_plan(declared, seen=snapshot(managed))) == ["PATCH /edges/tls/edgtls_2"]


def test_a_moved_bot_retains_the_digests_of_its_former_address() -> None:
    bound = {"BotUser/old": Binding("bot_1", digests({"name": "berlin"}, "BotUser/old"))}
    bot = live("BotUser", "bot_1", {"name": "renamed by hand"})
    declared = declare("BotUser/new", {"name": "berlin"}, moved=["BotUser/old"])
    plan = make_plan(declared, seen=snapshot(bot, bindings=bound))
    (field,) = change_of(plan, "BotUser/new").fields
    assert (field.path, field.changed_by) == ("name", ChangedBy.PLATFORM)


def test_a_moved_bot_that_vanished_is_reported_as_vanished() -> None:
    declared = declare("BotUser/new", {"name": "berlin"}, moved=["BotUser/old"])
    plan = make_plan(declared, seen=snapshot(bindings={"BotUser/old": Binding("bot_1")}))
    assert change_of(plan, "BotUser/new").reason is Reason.VANISHED


def test_a_bot_without_a_binding_is_not_destroyed() -> None:
    assert make_plan(seen=snapshot(BOT), options=PlanOptions(destroy=True)).changes == ()


def test_a_bot_declared_under_another_address_is_moved_by_its_name_without_approval() -> None:
    plan = make_plan(
        declare("BotUser/new", {"name": "berlin"}), seen=snapshot(BOT, bindings={"BotUser/old": Binding("bot_1")})
    )
    assert (actions(plan), plan.calls, plan.missing_approvals) == ({"BotUser/new": "move"}, (), ())
    assert {str(address): binding and binding.id for address, binding in plan.bindings.items()} == {
        "BotUser/new": "bot_1",
        "BotUser/old": None,
    }


def test_a_bot_bound_to_two_addresses_is_deleted_once() -> None:
    plan = make_plan(
        seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1"), "BotUser/a": Binding("bot_1")}), options=LENIENT
    )
    assert (actions(plan), requests(plan)) == ({"BotUser/a": "delete"}, ["DELETE /bot_users/bot_1"])


def test_a_bot_bound_to_two_declarations_is_a_problem() -> None:
    plan = make_plan(
        declare("BotUser/a", {"name": "berlin"}),
        declare("BotUser/b", {"name": "munich"}),
        seen=snapshot(BOT, bindings={"BotUser/a": Binding("bot_1"), "BotUser/b": Binding("bot_1")}),
    )
    assert errors(plan) == ["bot_1 is already declared as BotUser/a"]


def test_a_source_bound_to_two_declarations_is_matched_to_one_of_them() -> None:
    """It was deleted outside Git and created again for `b` under the same id, before `a` got a new one."""
    bound = {f"EventSource/{name}": Binding(SOURCE.locator) for name in ("a", "b")}
    updated = {**SOURCE_SPEC, "type": "ip_policy_updated.v0"}
    plan = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/a", updated),
        declare("EventSource/b", {**updated, "type": "ip_policy_deleted.v0"}),
        seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bound),
    )
    assert plan.problems == ()
    assert actions(plan) == {"EventSource/a": "replace", "EventSource/b": "create"}


def test_a_source_bound_to_an_undeclared_address_is_matched_to_the_declared_one() -> None:
    bindings = {f"EventSource/{name}": Binding(SOURCE.locator) for name in ("a", "x")}
    declared = declare("EventSource/x", {"subscription_id": "esb_1", "type": SOURCE.id})
    plan = make_plan(
        declared,
        seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bindings),
        options=replace(LENIENT, excludes=("EventSubscription/*",)),
    )
    assert (plan.calls, plan.errors) == ((), ())


def test_a_source_bound_to_an_absent_and_a_present_declaration_is_in_sync() -> None:
    bound = {f"EventSource/{name}": Binding(SOURCE.locator) for name in ("a", "b")}
    plan = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/a", SOURCE_SPEC, ensure=Ensure.ABSENT),
        declare("EventSource/b", SOURCE_SPEC),
        seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bound),
    )
    assert ([problem.code for problem in plan.problems], plan.calls) == (["manifest-finished"], ())


SUBSCRIPTION = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))
SOURCE = live("EventSource", "ip_policy_created.v0", {"type": "ip_policy_created.v0"}, parent="esb_1")
SOURCE_SPEC = {"subscription_id": ref("EventSubscription/s"), "type": "ip_policy_created.v0"}


def test_a_source_of_a_managed_subscription_is_managed_without_a_binding() -> None:
    plan = make_plan(
        declare("EventSubscription/s"), declare("EventSource/x", SOURCE_SPEC), seen=snapshot(SUBSCRIPTION, SOURCE)
    )
    assert (plan.changes, plan.missing_approvals) == ((), ())


def test_a_source_of_an_unmanaged_subscription_requires_approval() -> None:
    plan = make_plan(
        declare("EventSource/x", {"subscription_id": "esb_1", "type": "ip_policy_created.v0"}),
        seen=snapshot(live("EventSubscription", "esb_1"), SOURCE),
    )
    assert [approval.what for approval in plan.missing_approvals] == ["adopt"]


def test_an_undeclared_source_without_a_binding_is_unchanged() -> None:
    plan = make_plan(declare("EventSubscription/s"), seen=snapshot(SUBSCRIPTION, SOURCE))
    assert plan.changes == ()


def test_a_bound_source_that_is_no_longer_declared_is_deleted_by_itself() -> None:
    bound = {"EventSource/x": Binding("esb_1/ip_policy_created.v0")}
    plan = make_plan(declare("EventSubscription/s"), seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bound))
    assert requests(plan) == ["DELETE /event_subscriptions/esb_1/sources/ip_policy_created.v0"]


def test_a_source_of_the_declared_subscription_remains_and_a_bound_duplicate_is_deleted() -> None:
    """Two concurrent runs created the subscription and its source."""
    later = live("EventSubscription", "esb_2", owner=record("EventSubscription/s", {}, intent="intent-1"))
    managed = live("EventSource", SOURCE.id, {"type": SOURCE.id}, parent="esb_2")
    plan = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", SOURCE_SPEC),
        seen=snapshot(SUBSCRIPTION, later, SOURCE, managed, bindings={"EventSource/x": Binding(managed.locator)}),
        options=LENIENT,
    )
    assert plan.problems == ()
    assert [(change.action, change.id) for change in plan.changes] == [
        (Action.DELETE, managed.id),
        (Action.DELETE, "esb_2"),
    ]
    assert {str(address): binding and binding.id for address, binding in plan.bindings.items()} == {
        "EventSource/x": SOURCE.locator
    }


def test_a_binding_to_a_deleted_object_is_removed() -> None:
    plan = make_plan(
        declare("EventSubscription/s"),
        seen=snapshot(SUBSCRIPTION, bindings={"EventSource/x": Binding("esb_1/ip_policy_created.v0")}),
    )
    assert {str(address): binding for address, binding in plan.bindings.items()} == {"EventSource/x": None}


def test_a_binding_to_an_object_missing_from_an_incomplete_list_remains() -> None:
    plan = make_plan(seen=snapshot(bindings={"BotUser/b": Binding("bot_1")}, cut=["BotUser"]))
    assert plan.bindings == {}


# --- absent and forgotten ---------------------------------------------------------------------------------------------


def test_an_absent_resource_deletes_a_managed_object() -> None:
    edge = live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", ensure=Ensure.ABSENT), seen=snapshot(edge))
    assert (change_of(plan, "TLSEdge/a").reason, requests(plan)) == (Reason.ABSENT, [f"DELETE /edges/tls/{EDGE}"])


def test_an_absent_resource_without_an_object_is_in_sync() -> None:
    assert make_plan(declare("TLSEdge/a", ensure=Ensure.ABSENT)).changes == ()


@pytest.mark.parametrize("options", [PlanOptions(), PlanOptions(adopt=True)])
def test_an_absent_resource_does_not_delete_an_unmanaged_object(options: PlanOptions) -> None:
    plan = make_plan(
        declare("ReservedDomain/a", DOMAIN, ensure=Ensure.ABSENT),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
        options=replace(LENIENT, adopt=options.adopt),
    )
    assert (plan.calls, errors(plan)) == ((), ["rd_1 is declared `ensure: absent`, but is not managed by any stack"])


def test_an_absent_resource_with_lifecycle_adopt_deletes_an_unmanaged_object() -> None:
    plan = make_plan(
        declare("ReservedDomain/a", DOMAIN, ensure=Ensure.ABSENT, adopt=True),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
    )
    assert requests(plan) == ["DELETE /reserved_domains/rd_1"]


def test_an_absent_bot_that_is_unmanaged_is_not_bound() -> None:
    plan = make_plan(declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.ABSENT), seen=snapshot(BOT))
    assert (plan.bindings, len(plan.errors)) == ({}, 1)


def test_a_binding_to_an_object_of_another_stack_is_ignored() -> None:
    foreign = live("TLSEdge", EDGE, owner=record("TLSEdge/x", {}, stack="other"))
    seen = snapshot(foreign, bindings={"TLSEdge/a": Binding(EDGE)})
    assert actions(make_plan(declare("TLSEdge/a"), seen=seen)) == {"TLSEdge/a": "create"}
    assert make_plan(seen=seen, options=PlanOptions(destroy=True)).calls == ()


def test_a_former_address_that_is_declared_again_retains_its_object() -> None:
    edge = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}))
    plan = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), declare("TLSEdge/old"), seen=snapshot(edge))
    assert (actions(plan), plan.errors) == ({"TLSEdge/new": "create"}, ())


@pytest.mark.parametrize(("kind", "spec"), [("TLSEdge", {}), ("ReservedDomain", DOMAIN), ("BotUser", {"name": "b"})])
@pytest.mark.parametrize("id", [None, "x1", "x2"])
def test_a_former_address_that_is_declared_in_any_state_leads_to_nothing(
    kind: str, spec: dict[str, Any], id: str | None
) -> None:
    """The plan is that of the same manifests without `moved`, whatever becomes of the object and of both resources."""
    new, old = f"{kind}/new", f"{kind}/old"
    keeps_owner = kinds.get(kind).keeps_owner
    objects = [live(kind, "x1", spec, owner=record(old, spec) if keeps_owner else None), live(kind, "x2")]
    seen = snapshot(*objects, bindings={} if keeps_owner else {old: Binding("x1")})
    for states in product(Ensure, Ensure, (None, "zz")):
        plans = [
            make_plan(
                declare(new, {"name": "n"} if kind == "BotUser" else {}, id=id, ensure=states[0], moved=moved),
                declare(old, spec, id=states[2], ensure=states[1]),
                seen=seen,
                options=LENIENT,
            )
            for moved in ([old], [f"{kind}/older", old], [])
        ]
        found = [(plan.changes, plan.calls, plan.bindings, errors(plan)) for plan in plans]
        assert found[0] == found[1] == found[2], states


def test_a_child_of_a_managed_object_is_not_managed_by_another_stack() -> None:
    declared = declare("EventSubscription/s", unmanaged_children="ignore")
    plan = make_plan(declared, seen=snapshot(SUBSCRIPTION, SOURCE))
    assert (plan.unmanaged, plan.elsewhere) == ((SOURCE.key,), {})


def test_a_child_of_an_object_of_another_stack_is_managed_by_that_stack() -> None:
    foreign = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}, stack="other"))
    plan = make_plan(seen=snapshot(foreign, SOURCE))
    assert (plan.unmanaged, plan.elsewhere) == ((), {"other": (SOURCE.key,)})


def test_a_child_that_will_be_deleted_is_observed_with_the_owner_of_its_parent() -> None:
    """An apply of the plan file compares it: another stack may manage the subscription by then."""
    bound = {"EventSource/x": Binding(SOURCE.locator)}
    for parent, owner in ((SUBSCRIPTION, "laws"), (live("EventSubscription", "esb_1"), "")):
        plan = make_plan(seen=snapshot(parent, SOURCE, bindings=bound), options=LENIENT)
        assert plan.observed[Address.parse("EventSource/x")].owner == owner


def test_a_child_of_an_unlisted_parent_is_observed_without_an_owner() -> None:
    plan = make_plan(seen=snapshot(SOURCE, bindings={"EventSource/x": Binding(SOURCE.locator)}), options=LENIENT)
    assert plan.observed[Address.parse("EventSource/x")].owner == ""


def test_a_declared_child_is_not_reported_as_managed_by_the_stack_of_its_parent() -> None:
    foreign = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}, stack="other"))
    declared = declare("EventSource/x", {"subscription_id": "esb_1", "type": SOURCE.id})
    seen = snapshot(foreign, SOURCE, bindings={"EventSource/x": Binding(SOURCE.locator)})
    assert make_plan(declared, seen=seen).elsewhere == {}
    assert make_plan(seen=snapshot(foreign, SOURCE)).elsewhere == {"other": (SOURCE.key,)}


MANAGED = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))


@pytest.mark.parametrize(
    ("live_objects", "child", "stack"),
    [
        ([MANAGED], live("EventSource", "a.v0", parent="esb_1"), "laws"),
        ([live("EventSubscription", "esb_1")], live("EventSource", "a.v0", parent="esb_1"), ""),
        ([], live("EventSource", "a.v0", parent="esb_1"), ""),
        ([MANAGED], live("EventSource", "a.v0"), ""),
        ([live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))], live("HTTPSEdgeRoute", "r", parent="e_1"), ""),
        ([MANAGED], live("BotUser", "bot_1"), ""),
    ],
    ids=["managed", "unmanaged", "not listed", "no parent", "a kind with metadata", "a kind without parents"],
)
def test_a_child_without_metadata_is_managed_by_the_stack_of_its_parent(
    live_objects: list[Live], child: Live, stack: str
) -> None:
    assert parent_stack(LiveIndex.of(manifest(), snapshot(*live_objects, child), KINDS), child) == stack


def test_the_owner_of_an_object_is_described_with_its_protection() -> None:
    owners = [None, record("TLSEdge/a", {}), record("TLSEdge/a", {}, stack="other", protect=True)]
    assert [describe_owner(live("TLSEdge", EDGE, owner=owner)) for owner in owners] == [
        "",
        "laws TLSEdge/a",
        "other TLSEdge/a, protected",
    ]


@pytest.mark.parametrize("bound", ["esb_0", "esb_2"])
def test_a_source_of_the_declared_subscription_remains_if_another_source_is_bound(bound: str) -> None:
    parents = [live("EventSubscription", id, owner=record(f"EventSubscription/{id}", {})) for id in (bound, "esb_1")]
    sources = [live("EventSource", "a.v0", parent=id) for id in (bound, "esb_1")]
    declared = [declare(f"EventSubscription/{id}") for id in (bound, "esb_1")]
    declared.append(declare("EventSource/x", {"subscription_id": "esb_1", "type": "a.v0"}))
    seen = snapshot(*parents, *sources, bindings={"EventSource/x": Binding(f"{bound}/a.v0")})
    plan = make_plan(*declared, seen=seen, options=LENIENT)
    assert [call.method for call in plan.calls if "esb_1" in str(call.path)] == []


@pytest.mark.parametrize(
    ("declared", "records", "sole"),
    [
        (declare("TLSEdge/a"), [{}], True),
        (declare("TLSEdge/a"), [], False),
        (declare("TLSEdge/a"), [{}, {}], False),
        (declare("TLSEdge/a"), [{}, {"replaces": "e_0", "intent": "i2"}], False),
        (declare("TLSEdge/a", moved=["TLSEdge/b"]), [{}], False),
        (declare("TLSEdge/a", id="e_0"), [{}], False),
    ],
    ids=["one", "none", "copies", "a replaced one", "moved", "named by id"],
)
def test_a_declaration_has_a_sole_object_only_if_no_other_object_can_match(
    declared: Declaration, records: list[dict[str, Any]], sole: bool
) -> None:
    live_objects = [live("TLSEdge", f"e_{n}", owner=record("TLSEdge/a", {}, **more)) for n, more in enumerate(records)]
    index = LiveIndex.of(manifest(declared), snapshot(*live_objects, cut=["IPPolicy"]), KINDS)
    assert index.find_sole(declared) == (live_objects[0] if sole else None)
    assert index.complete_kinds == {kind.name for kind in KINDS} - {"IPPolicy"}


def test_forgetting_an_object_restores_the_metadata_of_the_user() -> None:
    edge = live("TLSEdge", EDGE, {"metadata": "of the user"}, owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", ensure=Ensure.FORGOTTEN), seen=snapshot(edge))
    assert [(call.method, call.path, call.body) for call in plan.calls] == [
        ("PATCH", f"/edges/tls/{EDGE}", {"metadata": "of the user"})
    ]


def test_forgetting_an_unmanaged_object_changes_nothing() -> None:
    plan = make_plan(
        declare("ReservedDomain/a", DOMAIN, ensure=Ensure.FORGOTTEN),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
    )
    assert (plan.changes, [problem.code for problem in plan.problems]) == ((), ["manifest-finished"])


def test_forgetting_a_bot_removes_its_binding_without_a_call() -> None:
    plan = make_plan(
        declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.FORGOTTEN),
        seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")}),
    )
    assert (actions(plan), plan.calls) == ({"BotUser/b": "forget"}, ())
    assert list(plan.bindings.values()) == [None]


@pytest.mark.parametrize("moved", [["BotUser/old"], []], ids=["moved", "found by its name"])
def test_forgetting_a_renamed_bot_removes_all_its_bindings(moved: list[str]) -> None:
    bound = {"BotUser/old": Binding("bot_1"), "BotUser/older": Binding("bot_1"), "BotUser/x": Binding("bot_2")}
    declared = declare("BotUser/new", {"name": "berlin"}, moved=moved, ensure=Ensure.FORGOTTEN)
    plan = make_plan(declared, seen=snapshot(BOT, live("BotUser", "bot_2", {"name": "x"}), bindings=bound))
    assert {str(address): binding for address, binding in plan.bindings.items()} == dict.fromkeys(
        ("BotUser/new", "BotUser/old", "BotUser/older")
    )


def test_forgetting_a_renamed_source_does_not_delete_it_later() -> None:
    bindings = {"EventSource/old": Binding(SOURCE.locator)}
    new = declare("EventSource/new", SOURCE_SPEC, moved=["EventSource/old"], ensure=Ensure.FORGOTTEN)
    plan = make_plan(declare("EventSubscription/s"), new, seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bindings))
    remaining = {name: binding for name, binding in bindings.items() if Address(*name.split("/")) not in plan.bindings}
    later = make_plan(
        declare("EventSubscription/s"), seen=snapshot(SUBSCRIPTION, SOURCE, bindings=remaining), options=LENIENT
    )
    assert later.changes == ()


def test_forgetting_an_edge_removes_the_bindings_of_its_former_addresses() -> None:
    edge = live("TLSEdge", EDGE, owner=record("TLSEdge/new", {}))
    plan = make_plan(
        declare("TLSEdge/new", ensure=Ensure.FORGOTTEN),
        seen=snapshot(edge, bindings={"TLSEdge/old": Binding(EDGE), "TLSEdge/x": Binding("edgtls_2")}),
    )
    assert {str(address): binding for address, binding in plan.bindings.items()} == {
        "TLSEdge/new": None,
        "TLSEdge/old": None,
    }


@pytest.mark.parametrize("record_of", [record("TLSEdge/new", {}), record("TLSEdge/old", {}, stack="other")])
def test_a_binding_that_contradicts_the_owner_record_is_removed(record_of: Owner) -> None:
    plan = make_plan(
        declare("TLSEdge/new"),
        seen=snapshot(live("TLSEdge", EDGE, owner=record_of), bindings={"TLSEdge/old": Binding(EDGE)}),
    )
    assert {str(address): binding for address, binding in plan.bindings.items()} == {"TLSEdge/old": None}


@pytest.mark.parametrize("owner", [record("TLSEdge/old", {}), None], ids=["owner record", "owner record lost"])
def test_a_binding_remains_until_the_move_is_applied(owner: Owner | None) -> None:
    edge = live("TLSEdge", EDGE, owner=owner)
    plan = make_plan(
        declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(edge, bindings={"TLSEdge/old": Binding(EDGE)})
    )
    assert (actions(plan), plan.bindings) == ({"TLSEdge/new": "move"}, {})


@pytest.mark.parametrize("id", [None, "rd_1"])
def test_a_forgotten_object_that_another_stack_manages_now_is_no_problem(id: str | None) -> None:
    foreign = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/x", DOMAIN, stack="other"))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN, id=id, ensure=Ensure.FORGOTTEN), seen=snapshot(foreign))
    assert (plan.changes, plan.calls, plan.bindings) == ((), (), {})
    assert [problem.code for problem in plan.problems] == ["manifest-finished"]


@pytest.mark.parametrize("ensure", [Ensure.PRESENT, Ensure.ABSENT])
def test_an_object_of_another_stack_is_a_problem_unless_it_is_forgotten(ensure: Ensure) -> None:
    foreign = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/x", DOMAIN, stack="other"))
    plan = make_plan(declare("ReservedDomain/a", DOMAIN, ensure=ensure, adopt=True), seen=snapshot(foreign))
    assert (plan.changes, errors(plan)) == ((), ["rd_1 is managed by stack 'other' as ReservedDomain/x"])


def test_a_forgotten_bot_is_not_bound_again() -> None:
    plan = make_plan(declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.FORGOTTEN), seen=snapshot(BOT))
    assert (plan.changes, plan.bindings) == ((), {})


def test_a_forgotten_source_of_a_managed_subscription_is_not_bound_again() -> None:
    plan = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", SOURCE_SPEC, ensure=Ensure.FORGOTTEN),
        seen=snapshot(SUBSCRIPTION, SOURCE),
    )
    assert (plan.changes, plan.bindings) == ((), {})
