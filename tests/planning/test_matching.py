"""Which live object a declaration means, and which of them nobody may touch."""

from __future__ import annotations

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
from reconciler.planning.matching.index import LiveIndex, describe_owner, parent_stack
from reconciler.planning.planner import PlanOptions, plan
from tests.planning.builders import (
    KINDS,
    LENIENT,
    actions,
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


def test_an_object_with_our_record_is_the_declared_one() -> None:
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}))))
    assert (made.changes, made.problems) == ((), ())


def test_an_object_of_another_stack_is_not_the_declared_one() -> None:
    theirs = live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}, stack="theirs"))
    assert actions(make_plan(declare("TLSEdge/a"), seen=snapshot(theirs))) == {"TLSEdge/a": "create"}


def test_an_object_of_another_stack_is_never_deleted() -> None:
    theirs = live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}, stack="theirs"))
    assert make_plan(seen=snapshot(theirs), options=PlanOptions(destroy=True)).changes == ()


def test_an_object_that_nobody_owns_is_never_deleted() -> None:
    made = make_plan(seen=snapshot(live("TLSEdge", EDGE)), options=PlanOptions(destroy=True))
    assert (made.changes, made.unmanaged) == ((), (("TLSEdge", EDGE),))


def test_an_owned_object_that_is_no_longer_declared_is_deleted() -> None:
    made = make_plan(seen=snapshot(live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}))), options=LENIENT)
    assert (actions(made), requests(made)) == ({"TLSEdge/a": "delete"}, [f"DELETE /edges/tls/{EDGE}"])


def test_objects_that_are_no_longer_declared_come_in_the_order_of_their_addresses() -> None:
    lives = [live("TLSEdge", f"edgtls_{n}", owner=record(f"TLSEdge/{name}", {})) for n, name in enumerate("cab")]
    made = make_plan(seen=snapshot(*lives), options=LENIENT)
    assert list(actions(made)) == ["TLSEdge/a", "TLSEdge/b", "TLSEdge/c"]


def test_two_objects_with_one_record_are_a_problem_that_names_both() -> None:
    twins = [live("TLSEdge", id, owner=record("TLSEdge/a", {})) for id in ("edgtls_2", "edgtls_1")]
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(*twins))
    assert (made.changes, errors(made)) == ((), ["2 objects carry its owner record: edgtls_1, edgtls_2"])


def test_of_two_objects_with_one_record_none_is_deleted_when_the_declaration_is_gone() -> None:
    twins = [live("TLSEdge", id, owner=record("TLSEdge/a", {})) for id in ("edgtls_2", "edgtls_1")]
    made = make_plan(seen=snapshot(*twins), options=LENIENT)
    assert (made.changes, errors(made)) == ((), ["2 objects carry its owner record: edgtls_1, edgtls_2"])


def test_two_objects_that_were_made_one_by_one_for_an_address_are_both_deleted_with_it() -> None:
    pair = [live("TLSEdge", f"edgtls_{n}", owner=record("TLSEdge/a", {}, intent=f"intent-{n}")) for n in (1, 2)]
    made = make_plan(seen=snapshot(*pair), options=LENIENT)
    assert [change.id for change in made.changes] == ["edgtls_1", "edgtls_2"]


def test_a_record_copied_to_an_object_of_another_kind_says_nothing() -> None:
    copied = live("ReservedDomain", "rd_1", DOMAIN, owner=record("TLSEdge/a", {}))
    made = make_plan(declare("ReservedDomain/a", DOMAIN), seen=snapshot(copied))
    assert change_of(made, "ReservedDomain/a").action is Action.ADOPT
    assert [consent.flag for consent in made.missing_approvals] == ["--allow adopt:ReservedDomain=1"]


def test_a_record_copied_to_an_object_of_another_kind_does_not_delete_it() -> None:
    copied = live("ReservedDomain", "rd_1", DOMAIN, owner=record("TLSEdge/a", {}))
    made = make_plan(seen=snapshot(copied), options=LENIENT)
    assert (made.changes, made.unmanaged) == ((), (("ReservedDomain", "rd_1"),))


# --- interrupted replacements -----------------------------------------------------------------------------------------


def test_of_an_interrupted_replacement_the_newer_object_is_the_declared_one_and_the_older_goes() -> None:
    older = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    newer = live(
        "CertificateAuthority",
        "ca_2",
        {"ca_pem": "NEW"},
        owner=record("CertificateAuthority/a", {"ca_pem": "NEW"}, intent="intent-2", replaces="ca_1"),
    )
    made = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}), seen=snapshot(newer, older))
    assert (requests(made), errors(made)) == (["DELETE /certificate_authorities/ca_1"], [])
    assert [change.reason for change in made.changes] == [Reason.SUPERSEDED]


def test_the_older_object_stays_while_a_declaration_that_the_newer_moved_to_has_a_problem() -> None:
    older = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    owner = record("CertificateAuthority/a", {"ca_pem": "NEW"}, intent="intent-2", replaces="ca_1")
    newer = live("CertificateAuthority", "ca_2", {"ca_pem": "NEW"}, owner=owner)
    declared = declare("CertificateAuthority/b", {"ca_pem": "NEWEST"}, id="ca_2", replace=False)
    made = make_plan(declared, seen=snapshot(newer, older), options=LENIENT)
    assert (requests(made), [problem.code for problem in made.errors]) == ([], ["cannot-be-replaced"])


@pytest.mark.parametrize("targets", [("TLSEdge/old1",), ("TLSEdge/old1", "TLSEdge/new")])
def test_of_two_objects_that_one_declaration_may_have_none_is_deleted_whatever_is_selected(
    targets: tuple[str, ...],
) -> None:
    pair = [live("TLSEdge", f"edgtls_{n}", owner=record(f"TLSEdge/old{n}", {}, intent=f"i{n}")) for n in (1, 2)]
    declared = declare("TLSEdge/new", moved=["TLSEdge/old1", "TLSEdge/old2"])
    made = make_plan(declared, seen=snapshot(*pair), options=replace(LENIENT, targets=targets))
    assert (made.changes, made.calls) == ((), ())


def test_of_three_in_a_row_the_last_stays() -> None:
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
    made = make_plan(declare("CertificateAuthority/a", {"ca_pem": "P"}), seen=snapshot(*row))
    assert requests(made) == ["DELETE /certificate_authorities/ca_1", "DELETE /certificate_authorities/ca_2"]
    assert made.calls[1].needs == (made.calls[0].id,)


def test_a_credential_that_is_replaced_again_is_deleted_after_the_one_before_it() -> None:
    """The record of the second is all that says that the first is not in use any more: its delete may fail."""
    first = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", intent="i1"))
    owner = record("TunnelCredential/c", intent="i2", pending=True, replaces="cr_1")
    second = live("TunnelCredential", "cr_2", owner=owner)
    made = make_plan(declare("TunnelCredential/c"), seen=snapshot(second, first), options=LENIENT)
    deletes = {call.target: call for call in made.calls if call.verb is Verb.DELETE}
    assert [change.action for change in made.changes].count(Action.REPLACE) == 1
    assert (set(deletes), deletes["cr_1"].id in deletes["cr_2"].needs) == ({"cr_1", "cr_2"}, True)


def test_credentials_that_seem_to_replace_each_other_are_deleted_all_the_same() -> None:
    """As after their records were changed by hand."""
    pair = [
        live("TunnelCredential", f"cr_{n}", owner=record("TunnelCredential/c", intent=f"i{n}", replaces=f"cr_{other}"))
        for n, other in ((1, 2), (2, 1))
    ]
    newest = live("TunnelCredential", "cr_3", owner=record("TunnelCredential/c", intent="i3", replaces="cr_2"))
    made = make_plan(declare("TunnelCredential/c"), seen=snapshot(*pair, newest), options=LENIENT)
    assert (sorted(requests(made)), errors(made)) == (["DELETE /credentials/cr_1", "DELETE /credentials/cr_2"], [])


def test_all_of_an_interrupted_replacement_goes_when_the_declaration_is_gone() -> None:
    older = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a"))
    newer = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", intent="intent-2", replaces="edgtls_1"))
    made = make_plan(seen=snapshot(older, newer), options=LENIENT)
    assert sorted(requests(made)) == ["DELETE /edges/tls/edgtls_1", "DELETE /edges/tls/edgtls_2"]


def test_a_copy_of_the_newer_object_of_an_interrupted_replacement_is_a_problem() -> None:
    older = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a"))
    newer, copy = (
        live("TLSEdge", id, owner=record("TLSEdge/a", intent="intent-2", replaces="edgtls_1"))
        for id in ("edgtls_2", "edgtls_3")
    )
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(older, newer, copy))
    assert (made.changes, len(made.errors)) == ((), 1)


def test_two_that_name_each_other_are_a_problem() -> None:
    pair = [
        live("TLSEdge", f"edgtls_{n}", owner=record("TLSEdge/a", intent=f"i{n}", replaces=f"edgtls_{3 - n}"))
        for n in (1, 2)
    ]
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(*pair))
    assert (made.changes, len(made.errors)) == ((), 1)


# --- made twice by two runs at once -----------------------------------------------------------------------------------


def at(second: int, id: str, intent: str, kind: str = "TLSEdge", **more: Any) -> Live:
    made = {"created_at": f"2026-01-01T00:00:{second:02}Z"}
    return live(kind, id, made, owner=record(f"{kind}/a", {}, intent=intent, **more))


def test_of_two_that_were_made_at_once_the_first_stays_and_the_later_one_goes() -> None:
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(at(2, "edgtls_1", "i1"), at(1, "edgtls_2", "i2")))
    assert (requests(made), errors(made)) == (["DELETE /edges/tls/edgtls_1"], [])
    assert [(change.id, change.reason) for change in made.changes] == [("edgtls_1", Reason.DUPLICATE)]


def test_of_two_that_were_made_in_the_same_second_the_lower_id_stays() -> None:
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(at(1, "edgtls_2", "i2"), at(1, "edgtls_1", "i1")))
    assert requests(made) == ["DELETE /edges/tls/edgtls_2"]


def test_of_two_replacements_that_were_made_at_once_the_first_stays_and_what_both_replace_goes_too() -> None:
    old = at(0, "edgtls_0", "i0")
    pair = at(1, "edgtls_1", "i1", replaces="edgtls_0"), at(2, "edgtls_2", "i2", replaces="edgtls_0")
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(old, *pair))
    assert sorted(requests(made)) == ["DELETE /edges/tls/edgtls_0", "DELETE /edges/tls/edgtls_2"]


def test_who_refers_to_the_later_one_is_pointed_to_the_first_before_it_goes() -> None:
    first, later = at(1, "ipp_1", "i1", "IPPolicy"), at(2, "ipp_2", "i2", "IPPolicy")
    edge = live("TLSEdge", EDGE, {"ip_restriction": {"ip_policies": [{"id": "ipp_2"}]}}, owner=record("TLSEdge/e", {}))
    declared = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/a")]}})
    made = make_plan(declare("IPPolicy/a"), declared, seen=snapshot(first, later, edge))
    assert [request.partition(" ")[0] for request in requests(made)][-1] == "DELETE"
    assert requests(made)[-1] == "DELETE /ip_policies/ipp_2"
    assert len(requests(made)) == 2


def test_of_two_credentials_that_were_made_at_once_none_is_touched() -> None:
    pair = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    made = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, receipts=["i2"]))
    told = "cr_1 (created 2026-01-01T00:00:01Z); cr_2 (created 2026-01-01T00:00:02Z, "
    told += "token delivered by a run with this store)"
    assert made.changes == ()
    assert errors(made) == [f"2 credentials exist for it, and the token of each may be in use: {told}"]
    assert made.blocking_errors == ()
    assert "`id: cr_1` or `id: cr_2`" in made.confined_errors[0].remedy


@pytest.mark.parametrize(("keep", "goes"), [("cr_1", "cr_2"), ("cr_2", "cr_1")])
def test_the_credential_that_the_manifest_names_stays_and_the_other_one_goes(keep: str, goes: str) -> None:
    pair = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    made = make_plan(declare("TunnelCredential/a", id=keep), seen=snapshot(*pair))
    assert (requests(made), errors(made)) == ([f"DELETE /credentials/{goes}"], [])


def test_two_credentials_keep_nothing_else_from_being_settled() -> None:
    pair = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    twice = [at(n, f"edgtls_{n}", f"i{n}") for n in (1, 2)]
    made = make_plan(
        declare("TunnelCredential/a"), declare("TLSEdge/a"), declare("IPPolicy/p"), seen=snapshot(*pair, *twice)
    )
    assert sorted(requests(made)) == ["DELETE /edges/tls/edgtls_2", "POST /ip_policies"]
    assert (made.blocking_errors, len(made.confined_errors)) == ((), 1)


def test_a_pending_credential_of_another_store_that_stays_alone_is_not_replaced_at_once() -> None:
    """Its run may be about to deliver the token."""
    pair = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential", pending=True) for n in (1, 2)]
    made = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, undelivered=["i2"]))
    assert (requests(made), errors(made)) == (["DELETE /credentials/cr_2"], [])


@given(st.data())
def test_stores_that_settle_credentials_at_the_same_moment_leave_one_and_delete_only_their_own(
    data: st.DataObject,
) -> None:
    """Each store knows its own intents alone. What it reads of the others may be of a moment before."""
    count = data.draw(st.integers(2, 4))
    seconds = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    owners = data.draw(st.lists(st.sampled_from("AB"), min_size=count, max_size=count))
    delivered = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    deleted: set[str] = set()
    for store in "AB":
        there = []
        for n in range(count):
            pending = not delivered[n] or data.draw(st.booleans())  # a record says so only some time later
            there.append(at(seconds[n], f"cr_{n}", f"i{n}", "TunnelCredential", pending=pending))
        own = [n for n in range(count) if owners[n] == store]
        seen = snapshot(
            *there,
            receipts=[f"i{n}" for n in own if delivered[n]],
            undelivered=[f"i{n}" for n in own if not delivered[n]],
        )
        made = make_plan(declare("TunnelCredential/a"), seen=seen)
        calls = requests(made)
        gone = {call.rpartition("/")[2] for call in calls if call.startswith("DELETE")}
        assert gone <= {f"cr_{n}" for n in own if not delivered[n]}
        deleted |= gone if not any(call.startswith("POST") for call in calls) else set()
        assert made.blocking_errors == ()
    assert len(deleted) < count


def test_of_two_credentials_the_one_whose_token_arrived_nowhere_goes_though_it_is_the_first() -> None:
    pair = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential", pending=True) for n in (1, 2)]
    seen = snapshot(*pair, receipts=["i2"], undelivered=["i1"])
    made = make_plan(declare("TunnelCredential/a"), seen=seen)
    assert errors(made) == []
    assert [request for request in requests(made) if request.startswith("DELETE")] == ["DELETE /credentials/cr_1"]
    assert not [request for request in requests(made) if request.startswith("POST")]


def test_a_credential_that_nothing_says_is_pending_is_not_taken_for_undelivered() -> None:
    pair = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 2)]
    made = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, undelivered=["i1"]))
    assert (made.changes, len(made.confined_errors)) == ((), 1)


def test_of_two_credentials_whose_tokens_arrived_nowhere_neither_stays() -> None:
    pair = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential", pending=True) for n in (1, 2)]
    made = make_plan(declare("TunnelCredential/a"), seen=snapshot(*pair, undelivered=["i1", "i2"]))
    deletes = sorted(request for request in requests(made) if request.startswith("DELETE"))
    assert (errors(made), deletes) == ([], ["DELETE /credentials/cr_1", "DELETE /credentials/cr_2"])
    assert [request for request in requests(made) if request.startswith("POST")] == ["POST /credentials"]


def test_a_credential_whose_token_was_overwritten_by_that_of_a_successor_now_gone_is_replaced() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/a", {}, intent="i1"))
    seen = replace(snapshot(there, receipts=["i1", "i2"]), overwritten={"i1": Address("TunnelCredential", "a")})
    made = make_plan(declare("TunnelCredential/a"), seen=seen, options=LENIENT)
    assert [(change.id, change.reason) for change in made.changes] == [("cr_1", Reason.OVERWRITTEN)]


REPLACED_TWICE = [at(n, f"cr_{n}", f"i{n}", "TunnelCredential") for n in (1, 3)]  # cr_2, which cr_3 replaces, is gone


def test_a_credential_whose_token_was_overwritten_by_that_of_another_one_is_deleted() -> None:
    seen = snapshot(*REPLACED_TWICE, receipts=["i1", "i3"])
    made = make_plan(
        declare("TunnelCredential/a"), seen=replace(seen, overwritten={"i1": Address("TunnelCredential", "a")})
    )
    assert errors(made) == []
    assert [each for each in requests(made) if each.startswith(("POST", "DELETE"))] == ["DELETE /credentials/cr_1"]


@pytest.mark.parametrize(
    ("receipts", "overwritten"),
    [
        (["i1", "i3"], {}),
        (["i1", "i3"], {"i1": "b"}),  # by the token of another address, before a move
        (["i1", "i2"], {"i1": "a"}),  # by that of cr_2, which is gone: cr_3 is another store's
    ],
)
def test_a_credential_whose_token_no_other_one_overwrote_is_for_a_person_to_delete(
    receipts: list[str], overwritten: dict[str, str]
) -> None:
    seen = replace(
        snapshot(*REPLACED_TWICE, receipts=receipts),
        overwritten={intent: Address("TunnelCredential", name) for intent, name in overwritten.items()},
    )
    made = make_plan(declare("TunnelCredential/a"), seen=seen)
    assert (made.changes, len(made.confined_errors)) == ((), 1)


def test_a_credential_that_moved_keeps_its_token_whatever_its_former_address_got() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/b", {}, intent="i1"))
    seen = replace(snapshot(there, receipts=["i1", "i2"]), overwritten={"i1": Address("TunnelCredential", "a")})
    assert make_plan(declare("TunnelCredential/b"), seen=seen, options=LENIENT).changes == ()


# --- moved ------------------------------------------------------------------------------------------------------------


def test_moved_takes_the_object_along_and_writes_the_new_address() -> None:
    old = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}))
    made = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(old))
    assert (actions(made), requests(made)) == ({"TLSEdge/new": "move"}, [f"PATCH /edges/tls/{EDGE}"])


def test_moved_keeps_the_intent_with_which_digests_are_salted() -> None:
    old = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}, intent="kept"))
    made = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(old))
    assert made.calls[0].owner is not None
    assert made.calls[0].owner.intent == "kept"


def test_moved_is_without_effect_once_it_was_applied() -> None:
    there = live("TLSEdge", EDGE, owner=record("TLSEdge/new", {}))
    assert make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(there)).changes == ()


def test_moved_that_leads_to_two_objects_is_a_problem_and_neither_is_deleted() -> None:
    pair = [live("TLSEdge", f"edgtls_{n}", owner=record(f"TLSEdge/{n}", {}, intent=f"i{n}")) for n in (1, 2)]
    made = make_plan(declare("TLSEdge/new", moved=["TLSEdge/1", "TLSEdge/2"]), seen=snapshot(*pair))
    assert (made.changes, len(made.errors)) == ((), 1)


def test_moved_beside_an_object_of_its_own_is_a_problem_and_neither_is_deleted() -> None:
    own = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/new", {}))
    old = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/old", {}))
    made = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(own, old))
    assert made.changes == ()
    assert errors(made) == [
        "`moved` matches more than one object: edgtls_1 is TLSEdge/new already, edgtls_2 was TLSEdge/old"
    ]


def test_two_declarations_cannot_have_moved_from_one_address() -> None:
    old = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}))
    made = make_plan(
        declare("TLSEdge/a", moved=["TLSEdge/old"]), declare("TLSEdge/b", moved=["TLSEdge/old"]), seen=snapshot(old)
    )
    assert errors(made) == [f"{EDGE} is already declared as TLSEdge/a"]


def test_moved_from_an_address_that_two_objects_carry_is_a_problem() -> None:
    twins = [live("TLSEdge", id, owner=record("TLSEdge/old", {})) for id in ("edgtls_1", "edgtls_2")]
    made = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(*twins), options=LENIENT)
    assert (made.changes, len(made.errors)) == ((), 1)


def test_a_unique_key_that_an_undeclared_object_of_ours_has_is_a_move() -> None:
    old = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/old", DOMAIN))
    made = make_plan(declare("ReservedDomain/new", DOMAIN), seen=snapshot(old))
    change = change_of(made, "ReservedDomain/new")
    assert (change.action, str(change.former), made.approvals) == (Action.MOVE, "ReservedDomain/old", ())


def test_an_object_promised_by_moved_is_not_found_by_its_key() -> None:
    old = live("SSHCredential", "sshcr_1", {"public_key": KEY}, owner=record("SSHCredential/old", {"public_key": KEY}))
    made = make_plan(
        declare("SSHCredential/a", {"public_key": KEY}),
        declare("SSHCredential/z", {"public_key": "ssh-ed25519 BBBB"}, moved=["SSHCredential/old"]),
        seen=snapshot(old),
    )
    assert (actions(made), errors(made)) == ({"SSHCredential/a": "create", "SSHCredential/z": "replace"}, [])


def test_of_several_former_addresses_the_first_that_has_the_object_is_the_former_one() -> None:
    bot = live("BotUser", "bot_1", {"name": "b"})
    seen = snapshot(bot, bindings={f"BotUser/{name}": Binding("bot_1") for name in "xyz"})
    made = make_plan(declare("BotUser/b", {"name": "b"}, moved=["BotUser/y", "BotUser/x"]), seen=seen)
    assert str(change_of(made, "BotUser/b").former) == "BotUser/y"


@pytest.mark.parametrize(
    ("own", "remedy"),
    [
        (True, "remove `moved`; the object with the former address will then be deleted"),
        (False, "keep one address in `moved`"),
    ],
)
def test_an_ambiguous_move_says_what_to_do(own: bool, remedy: str) -> None:
    names = ["new", "1"] if own else ["1", "2"]
    pair = [live("TLSEdge", f"e_{name}", owner=record(f"TLSEdge/{name}", {})) for name in names]
    made = make_plan(declare("TLSEdge/new", moved=["TLSEdge/1", "TLSEdge/2"]), seen=snapshot(*pair))
    assert [(problem.code, problem.remedy) for problem in made.errors] == [("ambiguous-match", remedy)]


def test_a_replaced_object_that_is_taken_back_under_a_new_name_is_moved() -> None:
    def key(number: int, name: str, **more: Any) -> Live:
        body = {"public_key": f"{KEY}{number}"}
        return live("SSHCredential", f"k{number}", body, owner=record(f"SSHCredential/{name}", body, **more))

    seen = snapshot(key(1, "old", intent="i1"), key(2, "new", intent="i2", replaces="k1"))
    declared = declare("SSHCredential/new", {"public_key": f"{KEY}1"}, moved=["SSHCredential/old"])
    made = make_plan(declared, seen=seen, options=LENIENT)
    assert [(change.id, change.action, str(change.former)) for change in made.changes] == [
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
def test_a_record_on_several_objects_is_told_by_how_it_came_there(
    kind: str, intents: list[str], replaces: list[str | None], code: str, text: str, remedy: str
) -> None:
    lives = [
        live(kind, f"x_{n}", owner=record(f"{kind}/a", {}, intent=intent, replaces=former))
        for n, (intent, former) in enumerate(zip(intents, replaces, strict=True))
    ]
    made = make_plan(declare(f"{kind}/a"), seen=snapshot(*lives[::-1]))
    assert [(problem.code, problem.text, problem.remedy) for problem in made.errors] == [(code, text, remedy)]
    assert made.calls == ()


# --- ids --------------------------------------------------------------------------------------------------------------


def test_an_id_finds_an_object_that_nobody_owns_and_is_no_approval_to_adopt_it() -> None:
    def plan(*, adopt: bool = False, options: PlanOptions | None = None) -> tuple[dict[str, str], list[str]]:
        declared = declare("TLSEdge/a", id=EDGE, adopt=adopt)
        made = make_plan(declared, seen=snapshot(live("TLSEdge", EDGE)), options=options or PlanOptions())
        return actions(made), [approval.flag for approval in made.missing_approvals]

    assert plan() == ({"TLSEdge/a": "adopt"}, ["--allow adopt:TLSEdge=1"])
    assert plan(adopt=True) == plan(options=PlanOptions(adopt=True)) == ({"TLSEdge/a": "adopt"}, [])


def test_an_id_that_no_object_has_is_created_with_an_approval() -> None:
    made = make_plan(declare("TLSEdge/a", id=EDGE), declare("IPPolicy/other"))
    assert (actions(made), errors(made)) == ({"TLSEdge/a": "create", "IPPolicy/other": "create"}, [])
    assert [str(change.reason) for change in made.changes] == ["declared", "no_such_id"]
    assert [approval.flag for approval in made.missing_approvals] == ["--allow create:TLSEdge=1"]
    (item,) = made.missing_approvals[0].items
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
def test_an_id_that_was_ours_is_created_again_without_one(seen: Snapshot) -> None:
    made = make_plan(declare("TLSEdge/a", id=EDGE, moved=["TLSEdge/former"]), seen=seen)
    assert [(str(change.action), str(change.reason)) for change in made.changes] == [("create", "vanished")]
    assert made.missing_approvals == ()


def test_an_id_that_another_stack_or_kind_once_had_is_not_ours() -> None:
    seen = replace(snapshot(), once_ours=frozenset({("TCPEdge", EDGE)}), elsewhere={("TLSEdge", EDGE): "theirs"})
    made = make_plan(declare("TLSEdge/a", id=EDGE), seen=seen)
    assert [str(change.reason) for change in made.changes] == ["no_such_id"]


def test_the_id_of_an_object_of_another_kind_is_a_problem_of_this_resource_only() -> None:
    line = Position("m.yaml", 3, 1)
    made = make_plan(
        replace(declare("TLSEdge/a", id="ipp_1"), positions={("id",): line}),
        declare("IPPolicy/other"),
        seen=snapshot(live("IPPolicy", "ipp_1")),
    )
    assert actions(made) == {"IPPolicy/other": "create"}
    assert errors(made) == ["ipp_1 is the id of an object of the kind IPPolicy"]
    assert ([problem.position for problem in made.problems], made.blocking_errors) == ([line], ())


def test_after_the_object_was_created_again_its_record_counts_and_never_the_id() -> None:
    anew = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}))
    made = make_plan(declare("TLSEdge/a", id=EDGE), seen=snapshot(anew))
    assert (made.changes, made.problems) == ((), ())


def test_after_the_object_was_created_again_its_binding_counts_and_never_the_id() -> None:
    anew = live("BotUser", "bot_2", {"name": "b"})
    seen = snapshot(anew, bindings={"BotUser/b": Binding("bot_2")})
    made = make_plan(declare("BotUser/b", {"name": "b"}, id="bot_1"), seen=seen)
    assert (made.changes, made.problems) == ((), ())


def test_an_object_that_was_created_again_by_hand_is_adopted_by_its_natural_key() -> None:
    by_hand = live("ReservedDomain", "rd_2", {"domain": "a.x"})
    seen = snapshot(by_hand, bindings={"ReservedDomain/a": Binding("rd_1")})
    made = make_plan(declare("ReservedDomain/a", {"domain": "a.x"}, id="rd_1"), seen=seen)
    assert actions(made) == {"ReservedDomain/a": "adopt"}
    assert [approval.flag for approval in made.missing_approvals] == ["--allow adopt:ReservedDomain=1"]


def test_an_id_that_no_object_has_adopts_no_pool_member_with_the_same_values() -> None:
    values = {"url": "https://a.x", "pooling_enabled": True}
    seen = snapshot(live("CloudEndpoint", "ep_2", {**values, "type": "cloud"}))
    made = make_plan(declare("CloudEndpoint/a", values, id="ep_1", adopt=True), seen=seen)
    assert [(str(change.action), str(change.reason)) for change in made.changes] == [("create", "no_such_id")]
    assert actions(make_plan(declare("CloudEndpoint/a", values, adopt=True), seen=seen)) == {"CloudEndpoint/a": "adopt"}


def test_two_declarations_with_one_id_that_no_object_has_are_created_apart() -> None:
    made = make_plan(declare("TLSEdge/a", id=EDGE), declare("TLSEdge/b", id=EDGE))
    assert [approval.flag for approval in made.missing_approvals] == ["--allow create:TLSEdge=2"]


def test_modules_of_an_object_that_does_not_exist_are_not_created() -> None:
    made = make_plan(
        declare("HTTPSEdgeRoute/a", {"edge_id": "e", "compression": {"enabled": True}}, id="edghtsrt_1"),
        declare("IPPolicy/other"),
    )
    assert actions(made) == {"IPPolicy/other": "create"}
    assert [problem.code for problem in made.errors] == ["unknown-id"]


def test_an_id_that_leads_nowhere_in_a_list_cut_short_is_not_said_to_be_wrong() -> None:
    made = make_plan(declare("TLSEdge/a", id=EDGE), seen=snapshot(cut=["TLSEdge"]))
    assert errors(made) == ["the list of TLSEdge objects is incomplete: cut"]


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.FORGOTTEN])
def test_a_tombstone_with_the_id_of_what_is_gone_is_content(ensure: Ensure) -> None:
    made = make_plan(declare("TLSEdge/a", id=EDGE, ensure=ensure))
    assert (made.changes, made.problems) == ((), ())


def test_the_id_of_what_another_stack_owns_is_a_problem_that_names_the_stack() -> None:
    theirs = live("TLSEdge", EDGE, owner=record("TLSEdge/b", {}, stack="theirs"))
    made = make_plan(declare("TLSEdge/a", id=EDGE), seen=snapshot(theirs))
    assert errors(made) == [f"{EDGE} is managed by stack 'theirs' as TLSEdge/b"]


def test_the_id_of_what_another_declaration_owns_is_a_problem() -> None:
    there = live("TLSEdge", EDGE, owner=record("TLSEdge/b", {}))
    made = make_plan(declare("TLSEdge/a", id=EDGE), declare("TLSEdge/b"), seen=snapshot(there))
    assert (made.changes, errors(made)) == ((), [f"{EDGE} is already declared as TLSEdge/b"])


def test_an_id_beside_an_owner_record_elsewhere_is_a_problem_and_nothing_is_deleted() -> None:
    made = make_plan(
        declare("TLSEdge/a", id="edgtls_2"),
        seen=snapshot(live("TLSEdge", EDGE, owner=record("TLSEdge/a", {})), live("TLSEdge", "edgtls_2")),
    )
    assert (made.changes, errors(made)) == (
        (),
        [f"its manifest names the id edgtls_2, but its owner record is on {EDGE}"],
    )


def test_an_id_of_what_was_replaced_leads_to_what_took_its_place() -> None:
    old, new = live("TLSEdge", EDGE), live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, replaces=EDGE))
    for seen in (snapshot(old, new), snapshot(new)):
        made = make_plan(declare("TLSEdge/a", id=EDGE), seen=seen)
        assert (made.changes, errors(made)) == ((), [])


@pytest.mark.parametrize(("ensure", "action"), [(Ensure.ABSENT, "delete"), (Ensure.FORGOTTEN, "forget")])
@pytest.mark.parametrize("replaces", [EDGE, None])
def test_the_owner_record_of_an_absent_declaration_counts_and_never_its_stale_id(
    ensure: Ensure, action: str, replaces: str | None
) -> None:
    anew = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, replaces=replaces))
    made = make_plan(declare("TLSEdge/a", id=EDGE, ensure=ensure), seen=snapshot(anew), options=LENIENT)
    assert [(str(change.action), change.id) for change in made.changes] == [(action, "edgtls_2")]
    assert made.errors == ()


@pytest.mark.parametrize(("ensure", "action"), [(Ensure.ABSENT, "delete"), (Ensure.FORGOTTEN, "forget")])
def test_the_binding_of_an_absent_declaration_counts_and_never_its_stale_id(ensure: Ensure, action: str) -> None:
    anew = live("BotUser", "bot_2", {"name": "b"})
    seen = snapshot(anew, bindings={"BotUser/b": Binding("bot_2")})
    made = make_plan(declare("BotUser/b", {"name": "b"}, id="bot_1", ensure=ensure), seen=seen, options=LENIENT)
    assert [(str(change.action), change.id) for change in made.changes] == [(action, "bot_2")]
    assert made.errors == ()


def test_the_deletion_of_a_created_again_object_needs_the_usual_approval() -> None:
    anew = live("ReservedDomain", "rd_2", DOMAIN, owner=record("ReservedDomain/a", DOMAIN))
    made = make_plan(declare("ReservedDomain/a", DOMAIN, id="rd_1", ensure=Ensure.ABSENT), seen=snapshot(anew))
    assert actions(made) == {"ReservedDomain/a": "delete"}
    assert [approval.flag for approval in made.missing_approvals] == ["--allow delete:ReservedDomain=1"]


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.FORGOTTEN])
@pytest.mark.parametrize("owner", [None, record("TLSEdge/b", {}), record("TLSEdge/b", {}, stack="theirs")])
def test_an_absent_declaration_whose_id_is_a_living_object_of_another_is_a_problem(
    ensure: Ensure, owner: Owner | None
) -> None:
    seen = snapshot(live("TLSEdge", EDGE, owner=owner), live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {})))
    declared = [declare("TLSEdge/a", id=EDGE, ensure=ensure), declare("TLSEdge/b")]
    made = make_plan(*declared, seen=seen, options=LENIENT)
    assert {problem.code for problem in made.errors} == {"conflicting-id"}
    assert all(call.address.name == "b" and call.verb is Verb.CREATE for call in made.calls)


def test_an_absent_declaration_of_a_child_with_a_living_id_and_no_parent_is_a_problem() -> None:
    edge = live("HTTPSEdge", "edghts_1", owner=record("HTTPSEdge/e", {}))
    routes = [
        live("HTTPSEdgeRoute", "edghtsrt_1", parent="edghts_1"),
        live("HTTPSEdgeRoute", "edghtsrt_2", parent="edghts_1", owner=record("HTTPSEdgeRoute/a", {})),
    ]
    absent = declare("HTTPSEdgeRoute/a", id="edghtsrt_1", ensure=Ensure.ABSENT)
    made = make_plan(absent, declare("HTTPSEdge/e"), seen=snapshot(edge, *routes), options=LENIENT)
    assert [problem.code for problem in made.errors if problem.subject == "HTTPSEdgeRoute/a"] == ["conflicting-id"]
    assert not [call for call in made.calls if call.verb is Verb.DELETE]


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.FORGOTTEN])
def test_an_absent_declaration_with_a_stale_id_deletes_no_unmanaged_object_with_its_natural_key(
    ensure: Ensure,
) -> None:
    by_hand = live("ReservedDomain", "rd_2", DOMAIN)
    absent = declare("ReservedDomain/a", DOMAIN, id="rd_1", ensure=ensure, adopt=True)
    made = make_plan(absent, seen=snapshot(by_hand), options=LENIENT)
    assert (made.changes, made.errors) == ((), ())


def test_a_former_object_counts_if_no_object_has_the_id() -> None:
    other = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/old", {}, replaces=EDGE))
    moved = declare("TLSEdge/new", id=EDGE, moved=["TLSEdge/old"])
    assert actions(make_plan(moved, seen=snapshot(other), options=LENIENT)) == {"TLSEdge/new": "move"}
    both = make_plan(moved, seen=snapshot(other, live("TLSEdge", EDGE)), options=LENIENT)
    assert (both.calls, [problem.code for problem in both.errors]) == ((), ["conflicting-id"])


def test_an_id_beside_a_binding_to_another_bot_is_a_problem() -> None:
    bots = [live("BotUser", f"bot_{n}", {"name": f"b{n}"}) for n in (1, 2)]
    seen = snapshot(*bots, bindings={"BotUser/b": Binding("bot_1")})
    made = make_plan(declare("BotUser/b", {"name": "b2"}, id="bot_2"), seen=seen, options=LENIENT)
    assert (made.calls, [problem.code for problem in made.errors]) == ((), ["conflicting-id"])


def test_the_id_of_a_bot_that_others_are_bound_to_is_a_problem_that_names_the_first_declared_one() -> None:
    bound = {f"BotUser/{name}": Binding("bot_1") for name in ("a", "b", "c")}
    seen = snapshot(live("BotUser", "bot_1", {"name": "x"}), bindings=bound)
    declared = [declare(f"BotUser/{name}", {"name": "x"}, id="bot_1") for name in ("d",)]
    others = [declare(f"BotUser/{name}", {"name": name}, ensure=Ensure.FORGOTTEN) for name in ("b", "c")]
    made = make_plan(*declared, *others, seen=seen)
    told = [problem.text for problem in made.errors if problem.subject == "BotUser/d"]
    assert told == ["bot_1 is already declared as BotUser/b"]
    (moved,) = make_plan(*declared, seen=seen).changes
    assert (moved.action, str(moved.former)) == (Action.MOVE, "BotUser/a")


def test_an_object_named_by_id_is_not_found_by_the_key_of_another() -> None:
    there = live("ReservedDomain", "rd_1", DOMAIN)
    made = make_plan(
        declare("ReservedDomain/a", DOMAIN, adopt=True),
        declare("ReservedDomain/z", DOMAIN, id="rd_1"),
        seen=snapshot(there),
    )
    assert actions(made)["ReservedDomain/z"] == "adopt"
    assert errors(made) == [
        "ReservedDomain/z has a.example.com already, and the platform allows it on one object at a time"
    ]


# --- natural keys -----------------------------------------------------------------------------------------------------


def test_a_unique_key_finds_what_nobody_owns_and_asks_for_consent() -> None:
    made = make_plan(declare("ReservedDomain/a", DOMAIN), seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)))
    assert (actions(made), [approval.what for approval in made.missing_approvals]) == (
        {"ReservedDomain/a": "adopt"},
        ["adopt"],
    )


@pytest.mark.parametrize("by", ["lifecycle", "flag"])
def test_consent_to_adopt_is_given_in_git_or_by_flag(by: str) -> None:
    made = make_plan(
        declare("ReservedDomain/a", DOMAIN, adopt=by == "lifecycle"),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
        options=PlanOptions(adopt=by == "flag"),
    )
    assert (actions(made), made.missing_approvals) == ({"ReservedDomain/a": "adopt"}, ())


def test_what_another_stack_has_the_unique_key_of_is_refused_even_with_consent() -> None:
    theirs = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/x", DOMAIN, stack="theirs"))
    made = make_plan(declare("ReservedDomain/a", DOMAIN, adopt=True), seen=snapshot(theirs), options=LENIENT)
    assert (made.changes, errors(made)) == ((), ["rd_1 is managed by stack 'theirs' as ReservedDomain/x"])


def test_a_key_that_is_not_unique_finds_nothing_without_consent_in_git() -> None:
    made = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}),
        seen=snapshot(live("CertificateAuthority", "ca_1", {"ca_pem": "P"})),
        options=PlanOptions(adopt=True),
    )
    assert actions(made) == {"CertificateAuthority/a": "create"}


def test_a_key_that_is_not_unique_finds_one_with_consent_in_git() -> None:
    made = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}, adopt=True),
        seen=snapshot(live("CertificateAuthority", "ca_1", {"ca_pem": " P \n"})),
    )
    assert actions(made) == {"CertificateAuthority/a": "adopt"}


def test_a_key_that_two_objects_answer_to_is_a_problem_that_names_both() -> None:
    made = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}, adopt=True),
        seen=snapshot(*(live("CertificateAuthority", id, {"ca_pem": "P"}) for id in ("ca_2", "ca_1"))),
    )
    assert errors(made) == ["2 objects match it: ca_1, ca_2"]


def test_two_declarations_do_not_adopt_one_object() -> None:
    made = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "P"}, adopt=True),
        declare("CertificateAuthority/b", {"ca_pem": "P"}, adopt=True),
        seen=snapshot(live("CertificateAuthority", "ca_1", {"ca_pem": "P"})),
    )
    assert actions(made) == {"CertificateAuthority/a": "adopt", "CertificateAuthority/b": "create"}


def test_a_key_that_a_declared_object_is_about_to_give_up_is_free_whatever_the_names_are() -> None:
    there = live("SSHCredential", "sshcr_1", {"public_key": KEY}, owner=record("SSHCredential/m", {"public_key": KEY}))
    made = make_plan(
        declare("SSHCredential/a", {"public_key": KEY}),
        declare("SSHCredential/m", {"public_key": "ssh-ed25519 BBBB"}),
        seen=snapshot(there),
    )
    assert errors(made) == []
    assert requests(made) == ["POST /ssh_credentials", "DELETE /ssh_credentials/sshcr_1", "POST /ssh_credentials"]


def test_adoption_never_replaces_what_belongs_to_nobody() -> None:
    rule = {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "allow"}
    made = make_plan(
        declare("IPPolicyRule/a", {"ip_policy_id": "ipp_1", "cidr": "10.0.0.0/8", "action": "deny"}, adopt=True),
        seen=snapshot(live("IPPolicyRule", "ipr_1", rule)),
        options=LENIENT,
    )
    assert (made.changes, made.calls) == ((), ())
    assert errors(made) == [
        "ipr_1 is not managed by any stack, and differs in action, which cannot be updated in place"
    ]


def test_an_id_never_replaces_what_belongs_to_nobody() -> None:
    made = make_plan(
        declare("ReservedAddress/a", {"region": "eu"}, id="ra_1"),
        seen=snapshot(live("ReservedAddress", "ra_1", {"region": "us", "addr": "1.tcp.example.net:20000"})),
        options=LENIENT,
    )
    assert (made.calls, len(made.errors)) == ((), 1)


# --- kinds without metadata -------------------------------------------------------------------------------------------


def test_what_has_been_replaced_is_not_taken_for_another_that_is_to_have_its_key() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    spec = {"ip_policy_id": ref("IPPolicy/p"), "action": "allow"}
    first, second = ({**spec, "cidr": cidr} for cidr in ("10.0.0.0/24", "10.0.1.0/24"))
    shown = {"ip_policy": {"id": "ipp_1"}, "action": "allow"}
    old = live("IPPolicyRule", "ipr_1", {**shown, "cidr": "10.0.0.0/24"}, owner=record("IPPolicyRule/a", intent="i1"))
    new = live(
        "IPPolicyRule",
        "ipr_2",
        {**shown, "cidr": "10.0.1.0/24"},
        owner=record("IPPolicyRule/a", intent="i2", replaces="ipr_1"),
    )
    made = make_plan(
        declare("IPPolicy/p"),
        declare("IPPolicyRule/a", second),
        declare("IPPolicyRule/b", first),
        seen=snapshot(policy, old, new),
    )
    assert made.errors == ()
    assert [call.id for call in made.calls if call.address.name != "p" and call.verb.method != "PATCH"] == [
        "delete IPPolicyRule/a ipr_1",
        "create IPPolicyRule/b",
    ]


def test_a_half_done_replacement_that_git_takes_back_keeps_the_first_and_ends_the_second() -> None:
    first = live("ReservedDomain", "rd_1", {"domain": "a.example.com"}, owner=record("ReservedDomain/a", intent="i1"))
    second = live(
        "ReservedDomain",
        "rd_2",
        {"domain": "b.example.com"},
        owner=record("ReservedDomain/a", intent="i2", replaces="rd_1"),
    )
    made = make_plan(
        declare("ReservedDomain/a", {"domain": "a.example.com"}), seen=snapshot(first, second), options=LENIENT
    )
    assert [call.target for call in made.calls if call.method == "DELETE"] == ["rd_2"]
    assert not any(call.method == "POST" for call in made.calls)


BOT = live("BotUser", "bot_1", {"name": "berlin", "active": True})


def test_a_bot_is_found_by_the_stores_binding_under_any_name() -> None:
    made = make_plan(
        declare("BotUser/b", {"name": "munich"}), seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")})
    )
    assert (actions(made), requests(made)) == ({"BotUser/b": "update"}, ["PATCH /bot_users/bot_1"])


TUNNEL = live(
    "AgentTunnel", "t", {"name": "t", "proto": "tcp", "config": {"addr": "localhost:22"}, "public_url": "tcp://a.x:1"}
)
TCP = {"name": "t", "proto": "tcp", "addr": "22"}


def listed(there: Live, bindings: dict[str, Binding] | None = None) -> Snapshot:
    """An account with one object, of a kind of the platform or of an agent."""
    return replace(snapshot(bindings=bindings), listings={**snapshot().listings, there.kind: Listing((there,))})


of_each_kind_without_a_record = pytest.mark.parametrize(
    ("there", "spec"), [(BOT, {"name": "berlin"}), (TUNNEL, TCP)], ids=["BotUser", "AgentTunnel"]
)


@of_each_kind_without_a_record
def test_an_object_without_metadata_is_found_by_its_name_and_needs_no_approval_if_nothing_changes(
    there: Live, spec: dict[str, Any]
) -> None:
    address = f"{there.kind}/b"
    made = plan(manifest(declare(address, spec)), listed(there), kinds.list_planned(), PlanOptions())
    assert (made.changes, made.calls, made.errors, made.approvals) == ((), (), (), ())
    assert made.bindings[Address.parse(address)] == Binding(there.id, ANY, adopted=True)
    assert made.unmanaged == ()
    assert plan(manifest(), listed(there), kinds.list_planned(), LENIENT).unmanaged == (there.key,)


def test_a_bot_that_is_found_by_its_name_and_would_be_changed_needs_approval() -> None:
    made = make_plan(declare("BotUser/b", {"name": "berlin", "active": False}), seen=snapshot(BOT))
    assert (actions(made), [approval.flag for approval in made.missing_approvals]) == (
        {"BotUser/b": "adopt"},
        ["--allow adopt:BotUser=1"],
    )
    (call,) = made.calls
    assert call.owner is not None
    assert not call.owner.adopted  # it was approved


def test_two_bots_of_one_name_are_a_problem_that_names_both() -> None:
    made = make_plan(
        declare("BotUser/b", {"name": "berlin"}), seen=snapshot(BOT, live("BotUser", "bot_2", {"name": "berlin"}))
    )
    assert (made.calls, errors(made)) == ((), ["2 objects match it: bot_1, bot_2"])


def test_a_bot_that_another_stack_of_the_store_manages_is_not_found_by_its_name() -> None:
    seen = replace(snapshot(BOT), elsewhere={BOT.key: "theirs"})
    made = make_plan(declare("BotUser/b", {"name": "berlin"}), seen=seen, options=LENIENT)
    assert (made.calls, dict(made.bindings)) == ((), {})
    assert errors(made) == ["bot_1 is managed by stack 'theirs', as the store says"]


ADOPTED = {"BotUser/b": Binding("bot_1", adopted=True)}


@pytest.mark.parametrize("declared", [[], [declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.ABSENT)]], ids=len)
def test_a_bot_that_was_adopted_without_approval_is_deleted_only_with_an_approval_that_names_it(
    declared: list[Declaration],
) -> None:
    seen = snapshot(BOT, bindings=ADOPTED)
    keep = declare("IPPolicy/p")
    made = make_plan(keep, *declared, seen=seen, options=LENIENT)
    assert [approval.flag for approval in made.missing_approvals] == ["--allow delete:BotUser/b=1"]
    (item,) = made.missing_approvals[0].items
    assert (item.subject, item.id) == ("BotUser/b", "bot_1")
    granted = {**LENIENT.allow, ("delete", "BotUser/b"): 1}
    assert make_plan(keep, *declared, seen=seen, options=PlanOptions(allow=granted)).missing_approvals == ()
    entry = ApprovedItem("delete", "BotUser/b", "bot_1", item.digest, "2999-01-01")
    approved = PlanOptions(approved=(entry,))
    assert make_plan(keep, *declared, seen=seen, options=approved).missing_approvals == ()


def test_a_bot_that_the_stack_created_or_adopted_with_approval_is_deleted_with_an_approval_of_its_kind() -> None:
    made = make_plan(declare("IPPolicy/p"), seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")}))
    assert [approval.flag for approval in made.missing_approvals] == ["--allow delete:BotUser=1"]
    adopted = make_plan(declare("BotUser/b", {"name": "berlin"}, adopt=True), seen=snapshot(BOT))
    assert adopted.bindings[Address.parse("BotUser/b")] == Binding("bot_1", ANY, adopted=False)


def test_an_update_and_a_rename_leave_that_a_bot_was_adopted_without_approval() -> None:
    seen = snapshot(BOT, bindings=ADOPTED)
    (call,) = make_plan(declare("BotUser/b", {"name": "munich"}), seen=seen).calls
    assert call.owner is not None
    assert call.owner.adopted
    moved = make_plan(declare("BotUser/c", {"name": "berlin"}, moved=["BotUser/b"]), seen=seen)
    assert moved.bindings[Address.parse("BotUser/c")] == Binding("bot_1", ANY, adopted=True)


def test_a_replacement_of_an_adopted_tunnel_needs_an_approval_that_names_it() -> None:
    seen = listed(TUNNEL, {"AgentTunnel/b": Binding("t", adopted=True)})
    declared = manifest(declare("AgentTunnel/b", {**TCP, "addr": "2222"}))
    made = plan(declared, seen, kinds.list_planned(), LENIENT)
    assert [approval.flag for approval in made.missing_approvals] == ["--allow delete:AgentTunnel/b=1"]
    create = next(call for call in made.calls if call.method == "POST")
    assert create.owner is not None
    assert not create.owner.adopted


def test_a_bot_without_a_binding_is_never_deleted() -> None:
    assert make_plan(seen=snapshot(BOT), options=LENIENT).calls == ()
    for options in (LENIENT, PlanOptions(adopt=True)):
        declared = declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.ABSENT, adopt=True)
        made = make_plan(declared, seen=snapshot(BOT), options=options)
        assert (made.calls, [problem.code for problem in made.errors]) == ((), ["not-owned"])


def test_a_bot_that_is_adopted_as_it_is_costs_no_call_and_is_bound() -> None:
    made = make_plan(declare("BotUser/b", {"name": "berlin"}, adopt=True), seen=snapshot(BOT))
    assert (made.changes, made.calls) == ((), ())
    assert [(str(address), binding and binding.id) for address, binding in made.bindings.items()] == [
        ("BotUser/b", "bot_1")
    ]


def test_a_bound_bot_that_is_no_longer_declared_is_deleted() -> None:
    made = make_plan(seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")}), options=LENIENT)
    assert requests(made) == ["DELETE /bot_users/bot_1"]


def test_neither_of_two_objects_with_one_record_is_touched_if_a_key_finds_one_of_them() -> None:
    domains = [
        live("ReservedDomain", f"rd_{name}", {"domain": f"{name}.example.com"}, owner=record("ReservedDomain/old"))
        for name in ("a", "b")
    ]
    made = make_plan(declare("ReservedDomain/new", DOMAIN), seen=snapshot(*domains), options=LENIENT)
    assert (made.changes, made.calls) == ((), ())
    assert {problem.code for problem in made.errors} == {"shared-owner-record"}


@pytest.mark.parametrize("stack", ["laws", "theirs"])
def test_equal_values_adopt_no_object_that_has_an_owner(stack: str) -> None:
    pem = {"ca_pem": "-----BEGIN CERTIFICATE-----"}
    there = live("CertificateAuthority", "ca_1", pem, owner=record("CertificateAuthority/old", pem, stack=stack))
    made = make_plan(declare("CertificateAuthority/new", pem, adopt=True), seen=snapshot(there), options=LENIENT)
    assert (actions(made)["CertificateAuthority/new"], made.errors) == ("create", ())


@pytest.mark.parametrize("stack", ["theirs", None])
def test_a_source_below_a_subscription_that_is_not_ours_is_not_deleted(stack: str | None) -> None:
    above = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", stack=stack) if stack else None)
    source = live("EventSource", "ip_policy_created.v0", {"type": "ip_policy_created.v0"}, parent="esb_1")
    spec = {"subscription_id": "esb_1", "type": "ip_policy_created.v0"}
    made = make_plan(declare("EventSource/x", spec, ensure=Ensure.ABSENT), seen=snapshot(above, source))
    assert made.calls == ()
    assert [problem.code for problem in made.errors] == ["not-owned"]


def test_an_id_that_a_list_cut_short_does_not_show_may_exist() -> None:
    """The object with our record is not its successor, which only the end of the list could show."""
    ours = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}))
    declared = declare("TLSEdge/a", {"description": "new"}, id=EDGE)
    made = make_plan(declared, seen=snapshot(ours, cut=["TLSEdge"]))
    assert (made.calls, [problem.code for problem in made.errors]) == ((), ["kind-not-listed"])
    assert requests(make_plan(declared, seen=snapshot(ours))) == ["PATCH /edges/tls/edgtls_2"]


def test_a_bot_that_was_moved_keeps_what_was_applied_under_its_former_address() -> None:
    bound = {"BotUser/old": Binding("bot_1", digests({"name": "berlin"}, "BotUser/old"))}
    there = live("BotUser", "bot_1", {"name": "renamed by hand"})
    declared = declare("BotUser/new", {"name": "berlin"}, moved=["BotUser/old"])
    made = make_plan(declared, seen=snapshot(there, bindings=bound))
    (field,) = change_of(made, "BotUser/new").fields
    assert (field.path, field.changed_by) == ("name", ChangedBy.PLATFORM)


def test_a_bot_that_was_moved_and_has_vanished_is_said_to_have_vanished() -> None:
    declared = declare("BotUser/new", {"name": "berlin"}, moved=["BotUser/old"])
    made = make_plan(declared, seen=snapshot(bindings={"BotUser/old": Binding("bot_1")}))
    assert change_of(made, "BotUser/new").reason is Reason.VANISHED


def test_a_bot_that_nobody_bound_is_never_deleted() -> None:
    assert make_plan(seen=snapshot(BOT), options=PlanOptions(destroy=True)).changes == ()


def test_a_bot_declared_under_another_address_is_moved_by_its_name_without_consent() -> None:
    made = make_plan(
        declare("BotUser/new", {"name": "berlin"}), seen=snapshot(BOT, bindings={"BotUser/old": Binding("bot_1")})
    )
    assert (actions(made), made.calls, made.missing_approvals) == ({"BotUser/new": "move"}, (), ())
    assert {str(address): binding and binding.id for address, binding in made.bindings.items()} == {
        "BotUser/new": "bot_1",
        "BotUser/old": None,
    }


def test_a_bot_that_two_addresses_are_bound_to_is_deleted_once() -> None:
    made = make_plan(
        seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1"), "BotUser/a": Binding("bot_1")}), options=LENIENT
    )
    assert (actions(made), requests(made)) == ({"BotUser/a": "delete"}, ["DELETE /bot_users/bot_1"])


def test_a_bot_that_two_declarations_are_bound_to_is_a_problem() -> None:
    made = make_plan(
        declare("BotUser/a", {"name": "berlin"}),
        declare("BotUser/b", {"name": "munich"}),
        seen=snapshot(BOT, bindings={"BotUser/a": Binding("bot_1"), "BotUser/b": Binding("bot_1")}),
    )
    assert errors(made) == ["bot_1 is already declared as BotUser/a"]


def test_a_source_that_two_declarations_are_bound_to_counts_for_one_of_them() -> None:
    """It was deleted outside Git and created again for `b` under the same id, before `a` got a new one."""
    bound = {f"EventSource/{name}": Binding(SOURCE.locator) for name in ("a", "b")}
    updated = {**SOURCE_SPEC, "type": "ip_policy_updated.v0"}
    made = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/a", updated),
        declare("EventSource/b", {**updated, "type": "ip_policy_deleted.v0"}),
        seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bound),
    )
    assert made.problems == ()
    assert actions(made) == {"EventSource/a": "replace", "EventSource/b": "create"}


def test_a_binding_of_an_address_that_is_not_declared_leaves_a_source_to_the_declared_one() -> None:
    bindings = {f"EventSource/{name}": Binding(SOURCE.locator) for name in ("a", "x")}
    declared = declare("EventSource/x", {"subscription_id": "esb_1", "type": SOURCE.id})
    made = make_plan(
        declared,
        seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bindings),
        options=replace(LENIENT, excludes=("EventSubscription/*",)),
    )
    assert (made.calls, made.errors) == ((), ())


def test_a_source_that_is_to_be_absent_leaves_a_double_binding_to_the_present_one() -> None:
    bound = {f"EventSource/{name}": Binding(SOURCE.locator) for name in ("a", "b")}
    made = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/a", SOURCE_SPEC, ensure=Ensure.ABSENT),
        declare("EventSource/b", SOURCE_SPEC),
        seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bound),
    )
    assert (made.problems, made.calls) == ((), ())


SUBSCRIPTION = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))
SOURCE = live("EventSource", "ip_policy_created.v0", {"type": "ip_policy_created.v0"}, parent="esb_1")
SOURCE_SPEC = {"subscription_id": ref("EventSubscription/s"), "type": "ip_policy_created.v0"}


def test_a_source_below_our_subscription_is_ours_without_a_binding() -> None:
    made = make_plan(
        declare("EventSubscription/s"), declare("EventSource/x", SOURCE_SPEC), seen=snapshot(SUBSCRIPTION, SOURCE)
    )
    assert (made.changes, made.missing_approvals) == ((), ())


def test_a_source_below_somebody_elses_subscription_asks_for_consent() -> None:
    made = make_plan(
        declare("EventSource/x", {"subscription_id": "esb_1", "type": "ip_policy_created.v0"}),
        seen=snapshot(live("EventSubscription", "esb_1"), SOURCE),
    )
    assert [approval.what for approval in made.missing_approvals] == ["adopt"]


def test_an_undeclared_source_that_nobody_bound_stays() -> None:
    made = make_plan(declare("EventSubscription/s"), seen=snapshot(SUBSCRIPTION, SOURCE))
    assert made.changes == ()


def test_a_source_that_its_subscription_declares_is_nobodys_but_the_subscriptions() -> None:
    bare = make_plan(declare("EventSubscription/s"), seen=snapshot(SUBSCRIPTION, SOURCE))
    assert [addition.id for addition in bare.additions] == [SOURCE.id]
    whole = declare("EventSubscription/s", {"sources": [{"type": SOURCE.id}]})
    made = make_plan(whole, seen=snapshot(SUBSCRIPTION, SOURCE))
    assert (made.additions, made.unmanaged) == ((), ())


def test_a_bound_source_that_is_no_longer_declared_goes_alone() -> None:
    bound = {"EventSource/x": Binding("esb_1/ip_policy_created.v0")}
    made = make_plan(declare("EventSubscription/s"), seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bound))
    assert requests(made) == ["DELETE /event_subscriptions/esb_1/sources/ip_policy_created.v0"]


def test_a_source_that_stands_where_it_is_declared_is_kept_and_the_bound_one_elsewhere_goes() -> None:
    """As two runs leave it that each made the subscription and, below it, the source."""
    later = live("EventSubscription", "esb_2", owner=record("EventSubscription/s", {}, intent="intent-1"))
    ours = live("EventSource", SOURCE.id, {"type": SOURCE.id}, parent="esb_2")
    made = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", SOURCE_SPEC),
        seen=snapshot(SUBSCRIPTION, later, SOURCE, ours, bindings={"EventSource/x": Binding(ours.locator)}),
        options=LENIENT,
    )
    assert made.problems == ()
    assert [(change.action, change.id) for change in made.changes] == [
        (Action.DELETE, ours.id),
        (Action.DELETE, "esb_2"),
    ]
    assert {str(address): binding and binding.id for address, binding in made.bindings.items()} == {
        "EventSource/x": SOURCE.locator
    }


def test_a_binding_to_what_is_gone_is_forgotten_before_somebody_makes_the_like_by_hand() -> None:
    made = make_plan(
        declare("EventSubscription/s"),
        seen=snapshot(SUBSCRIPTION, bindings={"EventSource/x": Binding("esb_1/ip_policy_created.v0")}),
    )
    assert {str(address): binding for address, binding in made.bindings.items()} == {"EventSource/x": None}


def test_a_binding_to_what_a_list_cut_short_does_not_show_is_kept() -> None:
    made = make_plan(seen=snapshot(bindings={"BotUser/b": Binding("bot_1")}, cut=["BotUser"]))
    assert made.bindings == {}


# --- tombstones -------------------------------------------------------------------------------------------------------


def test_a_tombstone_deletes_what_is_ours() -> None:
    there = live("TLSEdge", EDGE, owner=record("TLSEdge/a", {}))
    made = make_plan(declare("TLSEdge/a", ensure=Ensure.ABSENT), seen=snapshot(there))
    assert (change_of(made, "TLSEdge/a").reason, requests(made)) == (Reason.ABSENT, [f"DELETE /edges/tls/{EDGE}"])


def test_a_tombstone_whose_object_is_gone_is_content() -> None:
    assert make_plan(declare("TLSEdge/a", ensure=Ensure.ABSENT)).changes == ()


@pytest.mark.parametrize("options", [PlanOptions(), PlanOptions(adopt=True)])
def test_a_tombstone_does_not_delete_what_belongs_to_nobody(options: PlanOptions) -> None:
    made = make_plan(
        declare("ReservedDomain/a", DOMAIN, ensure=Ensure.ABSENT),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
        options=replace(LENIENT, adopt=options.adopt),
    )
    assert (made.calls, errors(made)) == ((), ["rd_1 is declared `ensure: absent`, but is not managed by any stack"])


def test_a_tombstone_deletes_what_belongs_to_nobody_with_consent_in_git() -> None:
    made = make_plan(
        declare("ReservedDomain/a", DOMAIN, ensure=Ensure.ABSENT, adopt=True),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
    )
    assert requests(made) == ["DELETE /reserved_domains/rd_1"]


def test_a_tombstone_of_a_bot_that_belongs_to_nobody_does_not_bind_it() -> None:
    made = make_plan(declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.ABSENT), seen=snapshot(BOT))
    assert (made.bindings, len(made.errors)) == ({}, 1)


def test_a_binding_is_no_claim_to_an_object_that_another_stack_marked() -> None:
    theirs = live("TLSEdge", EDGE, owner=record("TLSEdge/x", {}, stack="theirs"))
    seen = snapshot(theirs, bindings={"TLSEdge/a": Binding(EDGE)})
    assert actions(make_plan(declare("TLSEdge/a"), seen=seen)) == {"TLSEdge/a": "create"}
    assert make_plan(seen=seen, options=PlanOptions(destroy=True)).calls == ()


def test_a_former_address_that_is_declared_again_keeps_its_object() -> None:
    there = live("TLSEdge", EDGE, owner=record("TLSEdge/old", {}))
    made = make_plan(declare("TLSEdge/new", moved=["TLSEdge/old"]), declare("TLSEdge/old"), seen=snapshot(there))
    assert (actions(made), made.errors) == ({"TLSEdge/new": "create"}, ())


def test_a_child_below_an_object_of_ours_belongs_to_no_other_stack() -> None:
    declared = declare("EventSubscription/s", unmanaged_children="ignore")
    made = make_plan(declared, seen=snapshot(SUBSCRIPTION, SOURCE))
    assert (made.unmanaged, made.elsewhere) == ((SOURCE.key,), {})


def test_a_child_below_an_object_of_another_stack_belongs_to_that_stack() -> None:
    theirs = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}, stack="theirs"))
    made = make_plan(seen=snapshot(theirs, SOURCE))
    assert (made.unmanaged, made.elsewhere) == ((), {"theirs": (SOURCE.key,)})


def test_a_child_that_is_to_be_deleted_is_observed_with_the_owner_of_its_parent() -> None:
    """Whoever applies the plan file compares it: the subscription may belong to another stack by then."""
    bound = {"EventSource/x": Binding(SOURCE.locator)}
    for parent, owner in ((SUBSCRIPTION, "laws"), (live("EventSubscription", "esb_1"), "")):
        made = make_plan(seen=snapshot(parent, SOURCE, bindings=bound), options=LENIENT)
        assert made.observed[Address.parse("EventSource/x")].owner == owner


def test_a_child_whose_parent_is_not_listed_is_observed_without_an_owner() -> None:
    made = make_plan(seen=snapshot(SOURCE, bindings={"EventSource/x": Binding(SOURCE.locator)}), options=LENIENT)
    assert made.observed[Address.parse("EventSource/x")].owner == ""


def test_a_declared_child_below_an_object_of_another_stack_is_not_said_to_belong_to_it() -> None:
    theirs = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}, stack="theirs"))
    declared = declare("EventSource/x", {"subscription_id": "esb_1", "type": SOURCE.id})
    seen = snapshot(theirs, SOURCE, bindings={"EventSource/x": Binding(SOURCE.locator)})
    assert make_plan(declared, seen=seen).elsewhere == {}
    assert make_plan(seen=snapshot(theirs, SOURCE)).elsewhere == {"theirs": (SOURCE.key,)}


OURS = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))


@pytest.mark.parametrize(
    ("there", "about", "stack"),
    [
        ([OURS], live("EventSource", "a.v0", parent="esb_1"), "laws"),
        ([live("EventSubscription", "esb_1")], live("EventSource", "a.v0", parent="esb_1"), ""),
        ([], live("EventSource", "a.v0", parent="esb_1"), ""),
        ([OURS], live("EventSource", "a.v0"), ""),
        ([live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))], live("HTTPSEdgeRoute", "r", parent="e_1"), ""),
        ([OURS], live("BotUser", "bot_1"), ""),
    ],
    ids=["ours", "nobody's", "not listed", "no parent", "a kind with metadata", "a kind without parents"],
)
def test_the_parent_says_whose_a_child_without_metadata_is(there: list[Live], about: Live, stack: str) -> None:
    assert parent_stack(LiveIndex.of(manifest(), snapshot(*there, about), KINDS), about) == stack


def test_the_owner_of_an_object_is_told_with_its_protection() -> None:
    owners = [None, record("TLSEdge/a", {}), record("TLSEdge/a", {}, stack="theirs", protect=True)]
    assert [describe_owner(live("TLSEdge", EDGE, owner=owner)) for owner in owners] == [
        "",
        "laws TLSEdge/a",
        "theirs TLSEdge/a, protected",
    ]


@pytest.mark.parametrize("bound", ["esb_0", "esb_2"])
def test_a_source_below_the_declared_subscription_is_kept_wherever_the_bound_one_is(bound: str) -> None:
    parents = [live("EventSubscription", id, owner=record(f"EventSubscription/{id}", {})) for id in (bound, "esb_1")]
    sources = [live("EventSource", "a.v0", parent=id) for id in (bound, "esb_1")]
    declared = [declare(f"EventSubscription/{id}") for id in (bound, "esb_1")]
    declared.append(declare("EventSource/x", {"subscription_id": "esb_1", "type": "a.v0"}))
    seen = snapshot(*parents, *sources, bindings={"EventSource/x": Binding(f"{bound}/a.v0")})
    made = make_plan(*declared, seen=seen, options=LENIENT)
    assert [call.method for call in made.calls if "esb_1" in str(call.path)] == []


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
def test_an_object_is_the_sole_one_only_if_nothing_else_could_lead_to_another(
    declared: Declaration, records: list[dict[str, Any]], sole: bool
) -> None:
    lives = [live("TLSEdge", f"e_{n}", owner=record("TLSEdge/a", {}, **more)) for n, more in enumerate(records)]
    index = LiveIndex.of(manifest(declared), snapshot(*lives, cut=["IPPolicy"]), KINDS)
    assert index.find_sole(declared) == (lives[0] if sole else None)
    assert index.complete_kinds == {kind.name for kind in KINDS} - {"IPPolicy"}


def test_forgetting_writes_the_users_own_metadata_back() -> None:
    there = live("TLSEdge", EDGE, {"metadata": "mine"}, owner=record("TLSEdge/a", {}))
    made = make_plan(declare("TLSEdge/a", ensure=Ensure.FORGOTTEN), seen=snapshot(there))
    assert [(call.method, call.path, call.body) for call in made.calls] == [
        ("PATCH", f"/edges/tls/{EDGE}", {"metadata": "mine"})
    ]


def test_forgetting_what_is_not_ours_does_nothing() -> None:
    made = make_plan(
        declare("ReservedDomain/a", DOMAIN, ensure=Ensure.FORGOTTEN),
        seen=snapshot(live("ReservedDomain", "rd_1", DOMAIN)),
    )
    assert (made.changes, made.problems) == ((), ())


def test_forgetting_a_bot_costs_no_call_and_is_remembered() -> None:
    made = make_plan(
        declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.FORGOTTEN),
        seen=snapshot(BOT, bindings={"BotUser/b": Binding("bot_1")}),
    )
    assert (actions(made), made.calls) == ({"BotUser/b": "forget"}, ())
    assert list(made.bindings.values()) == [None]


@pytest.mark.parametrize("moved", [["BotUser/old"], []], ids=["moved", "found by its name"])
def test_forgetting_a_bot_under_a_new_name_forgets_all_that_it_was_called(moved: list[str]) -> None:
    bound = {"BotUser/old": Binding("bot_1"), "BotUser/older": Binding("bot_1"), "BotUser/x": Binding("bot_2")}
    declared = declare("BotUser/new", {"name": "berlin"}, moved=moved, ensure=Ensure.FORGOTTEN)
    made = make_plan(declared, seen=snapshot(BOT, live("BotUser", "bot_2", {"name": "x"}), bindings=bound))
    assert {str(each): binding for each, binding in made.bindings.items()} == dict.fromkeys(
        ("BotUser/new", "BotUser/old", "BotUser/older")
    )


def test_forgetting_a_source_under_a_new_name_does_not_delete_it_later() -> None:
    bindings = {"EventSource/old": Binding(SOURCE.locator)}
    new = declare("EventSource/new", SOURCE_SPEC, moved=["EventSource/old"], ensure=Ensure.FORGOTTEN)
    made = make_plan(declare("EventSubscription/s"), new, seen=snapshot(SUBSCRIPTION, SOURCE, bindings=bindings))
    left = {name: each for name, each in bindings.items() if Address(*name.split("/")) not in made.bindings}
    later = make_plan(
        declare("EventSubscription/s"), seen=snapshot(SUBSCRIPTION, SOURCE, bindings=left), options=LENIENT
    )
    assert later.changes == ()


def test_forgetting_an_edge_forgets_the_bindings_of_its_former_names() -> None:
    there = live("TLSEdge", EDGE, owner=record("TLSEdge/new", {}))
    made = make_plan(
        declare("TLSEdge/new", ensure=Ensure.FORGOTTEN),
        seen=snapshot(there, bindings={"TLSEdge/old": Binding(EDGE), "TLSEdge/x": Binding("edgtls_2")}),
    )
    assert {str(each): binding for each, binding in made.bindings.items()} == {"TLSEdge/new": None, "TLSEdge/old": None}


@pytest.mark.parametrize("record_of", [record("TLSEdge/new", {}), record("TLSEdge/old", {}, stack="theirs")])
def test_a_binding_to_what_says_that_it_is_called_otherwise_is_forgotten(record_of: Owner) -> None:
    made = make_plan(
        declare("TLSEdge/new"),
        seen=snapshot(live("TLSEdge", EDGE, owner=record_of), bindings={"TLSEdge/old": Binding(EDGE)}),
    )
    assert {str(each): binding for each, binding in made.bindings.items()} == {"TLSEdge/old": None}


@pytest.mark.parametrize("owner", [record("TLSEdge/old", {}), None], ids=["told by its record", "record lost"])
def test_a_binding_is_kept_until_the_move_is_made(owner: Owner | None) -> None:
    there = live("TLSEdge", EDGE, owner=owner)
    made = make_plan(
        declare("TLSEdge/new", moved=["TLSEdge/old"]), seen=snapshot(there, bindings={"TLSEdge/old": Binding(EDGE)})
    )
    assert (actions(made), made.bindings) == ({"TLSEdge/new": "move"}, {})


@pytest.mark.parametrize("id", [None, "rd_1"])
def test_what_was_forgotten_and_belongs_to_another_stack_by_now_is_no_problem(id: str | None) -> None:
    theirs = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/x", DOMAIN, stack="theirs"))
    made = make_plan(declare("ReservedDomain/a", DOMAIN, id=id, ensure=Ensure.FORGOTTEN), seen=snapshot(theirs))
    assert (made.changes, made.calls, made.problems, made.bindings) == ((), (), (), {})


@pytest.mark.parametrize("ensure", [Ensure.PRESENT, Ensure.ABSENT])
def test_what_belongs_to_another_stack_is_a_problem_unless_it_is_forgotten(ensure: Ensure) -> None:
    theirs = live("ReservedDomain", "rd_1", DOMAIN, owner=record("ReservedDomain/x", DOMAIN, stack="theirs"))
    made = make_plan(declare("ReservedDomain/a", DOMAIN, ensure=ensure, adopt=True), seen=snapshot(theirs))
    assert (made.changes, errors(made)) == ((), ["rd_1 is managed by stack 'theirs' as ReservedDomain/x"])


def test_a_forgotten_bot_stays_forgotten() -> None:
    made = make_plan(declare("BotUser/b", {"name": "berlin"}, ensure=Ensure.FORGOTTEN), seen=snapshot(BOT))
    assert (made.changes, made.bindings) == ((), {})


def test_a_forgotten_source_below_our_subscription_stays_forgotten() -> None:
    made = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", SOURCE_SPEC, ensure=Ensure.FORGOTTEN),
        seen=snapshot(SUBSCRIPTION, SOURCE),
    )
    assert (made.changes, made.bindings) == ((), {})
