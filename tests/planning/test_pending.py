"""Drift and pending changes: each row of the table in `docs/drift.md`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.change import Action, ChangedBy, FieldChange, Reason
from reconciler.model.manifest import Declaration, Ensure, Rotation
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.model.value import digest
from reconciler.planning.comparing.compare import Difference
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.pending import is_pending
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import (
    INTENT,
    KINDS,
    at,
    declare,
    live,
    make_plan,
    manifest,
    record,
    ref,
    secret,
    snapshot,
)

WAS = {"hostports": ["a.x:443"], "description": "was"}
PLATFORM = {**WAS, "description": "by hand"}
EDGE = live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", WAS))
MOVED = live("TLSEdge", "e", PLATFORM, owner=record("TLSEdge/e", WAS))
STRIPPED = live("TLSEdge", "e", WAS)
BOUND = {"TLSEdge/e": Binding("e")}
BOT = live("BotUser", "bot_1", {"name": "was"})
BOT_BOUND = {"BotUser/b": Binding("bot_1", {"name": digest("was", "BotUser/b")})}
OLD = "2020-01-01T00:00:00Z"
GRANTED = record("TunnelCredential/c", {})


@dataclass(frozen=True)
class Row:
    """One row of the table: declarations, snapshot, and whether the change is pending."""

    name: str
    declared: tuple[Declaration, ...]
    seen: Snapshot
    pending: bool
    options: PlanOptions = field(default_factory=PlanOptions)


def edge(description: str = "was", **words: object) -> Declaration:
    return declare("TLSEdge/e", {**WAS, "description": description}, **words)  # type: ignore[arg-type]


def secret_of(value: str) -> tuple[Declaration, ...]:
    return (declare("Secret/s", {"vault_id": "vault_1", "name": "s", "value": secret(value)}),)


SECRET = live(
    "Secret",
    "secret_1",
    {"vault": {"id": "vault_1"}, "name": "s"},
    owner=record("Secret/s", {"vault_id": "vault_1", "name": "s", "value": secret("was")}),
)
POLICY = declare("IPPolicy/new")
RESTRICTED = declare("TLSEdge/e", {**WAS, "ip_restriction": {"ip_policy_ids": [ref("IPPolicy/new")]}})


def credential(**owner: Any) -> Live:
    owner_record = record("TunnelCredential/c", {}, **owner)
    return live("TunnelCredential", "cr_1", {"created_at": OLD, "acl": []}, owner=owner_record)


def rotate(after: int = 60, overlap: int = 0) -> Declaration:
    return replace(declare("TunnelCredential/c"), rotate=Rotation(after, overlap))


ACL = {"acl": ["bind:*.example.com"]}


def credential_with_successor(old: Live, **successor: Any) -> tuple[Live, Live]:
    """A replaced credential and its successor."""
    owner_record = record("TunnelCredential/c", {}, **{"intent": "intent-2", "replaces": "cr_1", **successor})
    return old, live("TunnelCredential", "cr_2", {"created_at": OLD, "acl": []}, owner=owner_record)


TLS = {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}}
ROWS = [
    Row("a field, changed in Git", (edge("new"),), snapshot(EDGE), True),
    Row("a field, changed on the platform", (edge(),), snapshot(MOVED), False),
    Row("a field, changed on both sides", (edge("new"),), snapshot(MOVED), False),
    Row(
        "one field changed in Git, another on the platform",
        (declare("TLSEdge/e", {**WAS, "hostports": ["b.x:443"]}),),
        snapshot(MOVED),
        False,
    ),
    Row("a field of a bot, changed in Git", (bot := (declare("BotUser/b", {"name": "new"}),)), snapshot(BOT), False),
    Row("the same, with a binding", bot, snapshot(BOT, bindings=BOT_BOUND), True),
    Row(
        "a field of a bot, changed on the platform",
        (declare("BotUser/b", {"name": "was"}),),
        snapshot(live("BotUser", "bot_1", {"name": "x"}), bindings=BOT_BOUND),
        False,
    ),
    Row("a write-only field", secret_of("new"), snapshot(SECRET), True),
    Row("never created, known", (edge(),), snapshot(remembered=True), True),
    Row(
        "never created, known with another managed object",
        (edge(), declare("IPPolicy/p")),
        snapshot(
            live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {})),
            bindings={"IPPolicy/p": Binding("ipp_1")},
            remembered=True,
        ),
        True,
    ),
    Row("never created, not known", (edge(),), snapshot(), False),
    Row(
        "never created, by a store without the binding of a managed object",
        (edge(), declare("IPPolicy/p")),
        snapshot(live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {})), remembered=True),
        False,
    ),
    Row("deleted", (edge(),), snapshot(bindings=BOUND, remembered=True), False),
    Row("deleted, and renamed", (declare("TLSEdge/f", WAS, moved=["TLSEdge/e"]),), snapshot(bindings=BOUND), False),
    Row("removed from Git", (), snapshot(EDGE), True),
    Row("removed from Git, changed on the platform", (), snapshot(MOVED), False),
    Row(
        "removed from Git, a module added on the platform",
        (),
        snapshot(
            live(
                "TLSEdge",
                "e",
                {**WAS, "ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}},
                owner=record("TLSEdge/e", WAS),
            )
        ),
        False,
    ),
    Row(
        "removed from Git, a module removed on the platform",
        (),
        snapshot(live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", {**WAS, "mutual_tls": {}}))),
        False,
    ),
    Row(
        "removed from Git, a text added on the platform",
        (),
        snapshot(live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/e", {}))),
        False,
    ),
    Row(
        "removed from Git, with a choice of the platform",
        (),
        snapshot(live("TLSEdge", "e", TLS, owner=record("TLSEdge/e", {"tls_termination": {}}))),
        True,
    ),
    Row(
        "removed from Git, with a declared value that the platform chose again",
        (),
        snapshot(live("TLSEdge", "e", TLS, owner=record("TLSEdge/e", {"tls_termination": {"min_version": "1.3"}}))),
        False,
    ),
    Row("a secret removed from Git", (), snapshot(SECRET), True),
    Row("a bot removed from Git", (), snapshot(BOT, bindings=BOT_BOUND), True),
    Row("renamed", (declare("TLSEdge/f", WAS, moved=["TLSEdge/e"]),), snapshot(EDGE), True),
    Row("renamed, changed on the platform", (declare("TLSEdge/f", WAS, moved=["TLSEdge/e"]),), snapshot(MOVED), False),
    Row("absent", (edge(ensure=Ensure.ABSENT),), snapshot(EDGE), True),
    Row("absent, and unmanaged", (edge(ensure=Ensure.ABSENT, adopt=True, id="e"),), snapshot(STRIPPED), False),
    Row("forgotten", (edge(ensure=Ensure.FORGOTTEN),), snapshot(EDGE), True),
    Row("protect edited", (edge(protect=True),), snapshot(EDGE), True),
    Row("due for rotation", (rotate(),), snapshot(credential()), True, PlanOptions(now=2e9)),
    Row(
        "its overlap ended",
        (rotate(10**9, 60),),
        snapshot(*credential_with_successor(credential())),
        True,
        PlanOptions(now=1.6e9),
    ),
    Row(
        "its overlap was removed",
        (declare("TunnelCredential/c"),),
        snapshot(*credential_with_successor(credential())),
        True,
    ),
    Row(
        "its overlap ended, changed on the platform",
        (declare("TunnelCredential/c"),),
        snapshot(*credential_with_successor(credential().with_body({**credential().body, **ACL}))),
        False,
    ),
    Row(
        "a replaced credential that was not delivered",
        (declare("TunnelCredential/c"),),
        snapshot(*credential_with_successor(credential(pending=True))),
        False,
    ),
    Row(
        "a replaced credential with an undelivered successor",
        (declare("TunnelCredential/c"),),
        snapshot(*credential_with_successor(credential(), pending=True)),
        False,
    ),
    Row(
        "a duplicate of the credential that the manifest names",
        (declare("TunnelCredential/c", id="cr_2"),),
        snapshot(*credential_with_successor(credential(), replaces=None)),
        False,
    ),
    Row(
        "a replaced authority after an interrupted apply",
        (declare("CertificateAuthority/a", {"ca_pem": "NEW"}),),
        snapshot(
            live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a")),
            live(
                "CertificateAuthority",
                "ca_2",
                {"ca_pem": "NEW"},
                owner=record("CertificateAuthority/a", {"ca_pem": "NEW"}, intent="intent-2", replaces="ca_1"),
            ),
        ),
        False,
    ),
    Row("the owner record was removed", (edge(),), snapshot(STRIPPED, bindings=BOUND), False),
    Row("the owner record was removed, and Git changed", (edge("new"),), snapshot(STRIPPED, bindings=BOUND), False),
    Row("exists, and not managed", (edge(adopt=True, id="e"),), snapshot(STRIPPED), False),
    Row("an undelivered token", (declare("TunnelCredential/c"),), snapshot(credential(pending=True)), False),
    Row(
        "delivered, but pending in the owner record",
        (declare("TunnelCredential/c"),),
        snapshot(credential(pending=True), receipts=[INTENT]),
        False,
    ),
    Row(
        "a reference to a pending resource", (POLICY, RESTRICTED), snapshot(EDGE, bindings=BOUND, remembered=True), True
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_each_row_of_the_table_is_pending_or_drift(row: Row) -> None:
    plan = make_plan(*row.declared, seen=row.seen, options=row.options)
    assert plan.changes
    assert plan.errors == ()
    assert plan.has_pending is row.pending
    assert plan.has_drift is not row.pending


CAUSES = [(), (ChangedBy.GIT,), (ChangedBy.FOLLOWS,), (ChangedBy.GIT, ChangedBy.PLATFORM), (ChangedBy.UNKNOWN,)]


@pytest.mark.parametrize("causes", CAUSES)
@pytest.mark.parametrize(
    ("reason", "is_pending_by_itself"),
    [
        (Reason.FIELDS, None),
        (Reason.IMMUTABLE, True),
        (Reason.RENAMED, True),
        (Reason.ROTATION, True),
        (Reason.EXCHANGED, True),
        (Reason.PARENT, True),
        (Reason.REQUESTED, False),
        (Reason.UNDELIVERED, False),
        (Reason.OVERWRITTEN, False),
        (Reason.UNOWNED, False),
    ],
)
def test_a_reason_of_git_is_pending_unless_the_platform_changed_a_field(
    reason: Reason, is_pending_by_itself: bool | None, causes: tuple[ChangedBy, ...]
) -> None:
    kind = kinds.get("TLSEdge")
    changes = tuple(FieldChange(f"field{number}", 1, 2, cause) for number, cause in enumerate(causes))
    decision = Decision(
        at("TLSEdge/e"),
        kind,
        Action.REPLACE,
        reason,
        live=EDGE,
        differences=(Difference(kind.by_name["description"], changes),) if changes else (),
    )
    index = LiveIndex.of(manifest(), snapshot(EDGE), KINDS)
    only_git = set(causes) <= {ChangedBy.GIT, ChangedBy.FOLLOWS}
    is_git = bool(causes) if is_pending_by_itself is None else is_pending_by_itself
    assert is_pending(decision, index) is (is_git and only_git)
    # An unmanaged object was never applied.
    assert not is_pending(replace(decision, live=STRIPPED), index)


def test_a_change_known_only_from_the_store_is_drift_without_it() -> None:
    """Without bindings, no row that was drift becomes pending."""
    for row in ROWS:
        fresh = Snapshot(row.seen.listings, receipts=row.seen.receipts)
        plan = make_plan(*row.declared, seen=fresh, options=row.options)
        assert plan.has_drift or row.pending or not plan.changes or plan.errors, row.name
        created = [change for change in plan.changes if change.reason is Reason.DECLARED]
        assert not any(change.is_pending for change in created), row.name


def test_each_row_of_the_page_has_a_known_result() -> None:
    page = (Path(__file__).parents[2] / "docs/drift.md").read_text(encoding="utf-8")
    table = page.partition("| what differs |")[2].partition("\n\n")[0]
    rows = [line.split("|")[-2].strip() for line in table.splitlines()[2:]]
    assert {row.partition(":")[0] for row in rows} == {"pending", "drift", "waited for"}
