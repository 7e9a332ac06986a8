"""Parts of decisions: their risks, the bindings that they leave, removals, and names that stand for ids."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.canonical import canonical_spec, collect_applied, digests
from reconciler.model.change import Action, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.manifest import Declaration, Delivery, Ensure
from reconciler.model.owner_record import Owner
from reconciler.model.snapshot import Binding, Live
from reconciler.model.value import Ref
from reconciler.planning.comparing.compare import Difference
from reconciler.planning.comparing.name_references import resolve_names
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.risks import find_risks
from reconciler.planning.planner import PlanOptions
from tests.planning.builders import KINDS, at, declare, live, make_plan, record, ref, snapshot

# --- risks ------------------------------------------------------------------------------------------------------------


def decide(kind: str, action: Action | None, **more: Any) -> Decision:
    return replace(Decision(at(f"{kind}/a"), kinds.get(kind), action=action), **more)


@pytest.mark.parametrize("kind", ["TLSEdge", "IPPolicy", "ReservedDomain", "TunnelCredential"])
def test_each_action_has_the_risks_of_its_kind(kind: str) -> None:
    ways = product((None, *Action), (None, *Order), (False, True), ("to_file", "to_command"))
    for action, order, keeps_predecessor, way in ways:
        declared = replace(declare(f"{kind}/a"), deliver={"token": Delivery(way, "x")})
        there = None if action is Action.CREATE else live(kind, "id-1")
        decision = decide(
            kind, action, order=order, live=there, declaration=declared, keeps_predecessor=keeps_predecessor
        )
        found = set(find_risks(decision))
        is_new = action in (Action.CREATE, Action.REPLACE)
        ends = action in (Action.DELETE, Action.REPLACE) and not keeps_predecessor
        interrupts = action is Action.DELETE or order is Order.DELETE_FIRST
        assert (Risk.INTERRUPTS_TRAFFIC in found) is (kind in ("TLSEdge", "ReservedDomain") and interrupts), decision
        assert (Risk.IRREVERSIBLE in found) is (kind == "ReservedDomain" and ends), decision
        assert (Risk.ISSUES_CREDENTIAL in found) is (kind == "TunnelCredential" and is_new), decision
        runs = kind == "TunnelCredential" and is_new and way == "to_command"
        assert (Risk.RUNS_COMMAND in found) is runs, decision
        # Whoever uses the credential fails once it is deleted; its successor does not help.
        disables = kind == "TunnelCredential" and (action is Action.DELETE or (action is Action.REPLACE and ends))
        assert (Risk.DISABLES_AGENT in found) is disables, decision


RULE = {"ip_policy_id": "p", "cidr": "10.0.0.0/8", "action": "allow"}


@pytest.mark.parametrize(
    ("action", "old", "new", "widens"),
    [
        (Action.UPDATE, {"action": "deny"}, {"action": "allow"}, True),
        (Action.UPDATE, {"action": "allow"}, {"action": "deny"}, False),
        (Action.CREATE, None, {"action": "allow"}, True),
        (Action.CREATE, None, {"action": "deny"}, False),
        (Action.DELETE, {"action": "deny"}, {"action": "deny"}, True),
        (Action.DELETE, {"action": "allow"}, {"action": "allow"}, False),
        (Action.FORGET, {"action": "deny"}, {"action": "allow"}, False),
        (None, {"action": "deny"}, {"action": "allow"}, False),
    ],
)
def test_a_kind_judges_its_object_as_a_whole(
    action: Action | None, old: Mapping[str, Any] | None, new: Mapping[str, Any], widens: bool
) -> None:
    there = None if old is None else live("IPPolicyRule", "ipr_1")
    forms = {"have": {**RULE, **(old or {})}, "want": {**RULE, **new}}
    found = find_risks(decide("IPPolicyRule", action, live=there, **forms))
    assert found == ((Risk.WIDENS_ACCESS,) if widens else ())


def differ(kind: str, top: str, *paths: str) -> tuple[Difference, ...]:
    changes = tuple(FieldChange(path, None, None, ChangedBy.GIT) for path in paths)
    return (Difference(kinds.get(kind).by_name[top], changes),)


OIDC = {"issuer": "https://a", "client_id": "c", "options_passthrough": False}


@pytest.mark.parametrize(
    ("old", "new", "paths", "widens"),
    [
        (OIDC, {**OIDC, "issuer": "https://b"}, ["oidc.issuer"], True),
        (OIDC, {**OIDC, "options_passthrough": True}, ["oidc.options_passthrough"], True),
        ({**OIDC, "options_passthrough": True}, OIDC, ["oidc.options_passthrough"], False),
        (OIDC, {**OIDC, "issuer": ref("Vault/v", "name")}, ["oidc.issuer"], True),
        (OIDC, None, ["oidc"], True),
        (None, OIDC, ["oidc.issuer", "oidc.client_id"], False),
        # Only what differs is judged.
        (OIDC, {**OIDC, "issuer": "https://b"}, ["oidc.maximum_duration"], False),
    ],
)
def test_a_field_judges_its_change(old: Any, new: Any, paths: list[str], widens: bool) -> None:
    decision = decide(
        "HTTPSEdgeRoute",
        Action.UPDATE,
        live=live("HTTPSEdgeRoute", "rt_1"),
        have={"oidc": old},
        want={"oidc": new},
        differences=differ("HTTPSEdgeRoute", "oidc", *paths),
    )
    assert (Risk.WIDENS_ACCESS in find_risks(decision)) is widens


def test_risks_come_by_their_weight() -> None:
    declared = replace(declare("TunnelCredential/a"), deliver={"token": Delivery("to_command", "x")})
    decision = decide(
        "TunnelCredential",
        Action.REPLACE,
        live=live("TunnelCredential", "cr_1"),
        declaration=declared,
        have={"acl": ["bind:a"]},
        want={"acl": []},
        differences=differ("TunnelCredential", "acl", "acl"),
    )
    found = find_risks(decision)
    assert found == (Risk.WIDENS_ACCESS, Risk.RUNS_COMMAND, Risk.ISSUES_CREDENTIAL, Risk.DISABLES_AGENT)


# --- removals ---------------------------------------------------------------------------------------------------------

OURS, THEIRS = record("ReservedDomain/d", {}), record("ReservedDomain/x", {}, stack="theirs")
DOMAIN = {"domain": "a.x"}


@pytest.mark.parametrize(
    ("ensure", "owner", "adopt", "outcome"),
    [
        (Ensure.ABSENT, OURS, False, (Action.DELETE, Reason.ABSENT)),
        (Ensure.ABSENT, OURS, True, (Action.DELETE, Reason.ABSENT)),
        (Ensure.ABSENT, None, False, "not-owned"),
        (Ensure.ABSENT, None, True, (Action.DELETE, Reason.ABSENT)),
        (Ensure.ABSENT, THEIRS, False, "owned-by-another-stack"),
        (Ensure.ABSENT, THEIRS, True, "owned-by-another-stack"),
        (Ensure.FORGOTTEN, OURS, False, (Action.FORGET, Reason.FORGOTTEN)),
        (Ensure.FORGOTTEN, None, False, None),
        (Ensure.FORGOTTEN, None, True, None),
        (Ensure.FORGOTTEN, THEIRS, True, None),
    ],
)
def test_what_is_not_to_be_there_is_deleted_or_forgotten_only_if_it_is_ours(
    ensure: Ensure, owner: Owner | None, adopt: bool, outcome: tuple[Action, Reason] | str | None
) -> None:
    there = live("ReservedDomain", "rd_1", DOMAIN, owner=owner)
    # Values that differ, a forbidden replacement and a request for one do not matter.
    declared = declare("ReservedDomain/d", {**DOMAIN, "description": "x"}, ensure=ensure, adopt=adopt, replace=False)
    options = PlanOptions(to_replace=frozenset({declared.address}))
    for chosen in (PlanOptions(), options):
        made = make_plan(declared, seen=snapshot(there), options=chosen)
        decided = [(change.action, change.reason) for change in made.changes]
        assert decided == ([outcome] if isinstance(outcome, tuple) else [])
        assert [problem.code for problem in made.errors] == ([outcome] if isinstance(outcome, str) else [])
        assert [field for change in made.changes for field in change.fields] == []
    assert make_plan(declared, seen=snapshot()).is_empty


# --- bindings ---------------------------------------------------------------------------------------------------------

BOT = live("BotUser", "bot_1", {"name": "b", "active": True})


def bind(address: str = "BotUser/b", name: str = "b", **more: Any) -> Binding:
    kind = kinds.get("BotUser")
    return Binding("bot_1", digests(collect_applied(kind, canonical_spec(kind, {"name": name})), address), **more)


def find_bindings(
    declared: Declaration | None, bindings: Mapping[str, Binding], *lives: Live, **options: Any
) -> dict[str, Binding | None]:
    plan = make_plan(
        *([declared] if declared is not None else []),
        seen=snapshot(*lives, bindings=bindings),
        options=PlanOptions(**options),
    )
    return {str(address): binding for address, binding in plan.bindings.items()}


PRESENT = declare("BotUser/b", {"name": "b"})
REPLACED = live("BotUser", "bot_0", {"name": "a", "active": True})
FORGOTTEN, ABSENT = (replace(PRESENT, ensure=ensure) for ensure in (Ensure.FORGOTTEN, Ensure.ABSENT))


@pytest.mark.parametrize(
    ("declared", "bindings", "lives", "updates"),
    [
        (PRESENT, {"BotUser/b": bind()}, [BOT], {}),
        (PRESENT, {"BotUser/b": bind(name="old")}, [BOT], {"BotUser/b": bind()}),
        (PRESENT, {"BotUser/b": bind(protect=True)}, [BOT], {"BotUser/b": bind()}),
        (PRESENT, {"BotUser/b": bind(replaces="bot_0")}, [BOT], {"BotUser/b": bind()}),
        (
            PRESENT,
            {"BotUser/b": bind(replaces="bot_0")},
            [BOT, REPLACED],
            {"BotUser/b": bind(replaces="bot_0")},
        ),
        (
            declare("BotUser/b", {"name": "c"}),
            {"BotUser/b": bind(replaces="bot_0")},
            [BOT, REPLACED],
            {"BotUser/b": bind(replaces="bot_0")},
        ),
        # A field differs: the call writes the binding.
        (declare("BotUser/b", {"name": "c"}), {"BotUser/b": bind()}, [BOT], {}),
        (PRESENT, {"BotUser/b": bind()}, [], {}),
        (
            replace(PRESENT, moved=(at("BotUser/old"),)),
            {"BotUser/old": bind("BotUser/old")},
            [BOT],
            {"BotUser/b": bind(), "BotUser/old": None},
        ),
        (FORGOTTEN, {"BotUser/b": bind()}, [BOT], {"BotUser/b": None}),
        (
            FORGOTTEN,
            {"BotUser/b": bind(), "BotUser/old": bind("BotUser/old")},
            [BOT],
            {"BotUser/b": None, "BotUser/old": None},
        ),
        (FORGOTTEN, {"BotUser/b": bind()}, [], {"BotUser/b": None}),
        (ABSENT, {"BotUser/b": bind()}, [BOT], {}),  # the delete removes it
        (ABSENT, {"BotUser/b": bind()}, [], {"BotUser/b": None}),
        (None, {"BotUser/b": bind()}, [BOT], {}),
        (None, {"BotUser/b": bind()}, [], {"BotUser/b": None}),
        # Another object has the id by now: of an object with a record, the record counts.
        (None, {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e", owner=record("TLSEdge/e", {}))], {}),
        (None, {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e", owner=record("TLSEdge/f", {}))], {"TLSEdge/e": None}),
        (
            None,
            {"TLSEdge/e": Binding("e")},
            [live("TLSEdge", "e", owner=record("TLSEdge/e", {}, stack="theirs"))],
            {"TLSEdge/e": None},
        ),
        (None, {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e")], {}),
        (None, {"TLSEdge/e": Binding("e")}, [], {}),
        (declare("TLSEdge/e"), {"TLSEdge/e": Binding("e")}, [live("TLSEdge", "e", owner=record("TLSEdge/f", {}))], {}),
    ],
)
def test_which_bindings_a_plan_writes_and_deletes(
    declared: Declaration | None, bindings: dict[str, Binding], lives: list[Live], updates: dict[str, Binding | None]
) -> None:
    assert find_bindings(declared, bindings, *lives) == updates
    excluded = (*bindings, "BotUser/b")
    assert find_bindings(declared, bindings, *lives, excludes=excluded) == {}
    assert find_bindings(declared, bindings, *lives, targets=("IPPolicy/*",)) == {}


# --- names that stand for ids -----------------------------------------------------------------------------------------


def resolve(secret_spec: dict[str, Any], *others: Declaration, lives: tuple[Live, ...] = (), **more: Any) -> Any:
    """The `vault_id` that a secret refers to; None if its declaration stays as it is."""
    declared = declare("Secret/s", {"name": "k", **secret_spec}, **more)
    declared = replace(declared, positions={("spec", "vault_name"): replace(declared.position, line=9)})
    declarations = {each.address: each for each in (declared, *others)}
    resolved = resolve_names(
        declarations, {kind.name: kind for kind in KINDS}, lambda kind: lives if kind == "Secret" else ()
    )
    assert resolved.keys() <= {declared.address}
    if declared.address not in resolved:
        return None
    found = resolved[declared.address]
    assert found.spec.keys() == {"name", "vault_id"}
    position = found.at("vault_id")
    assert position is not None
    assert position.line == 9
    return found.spec["vault_id"]


def vault(name: str, **more: Any) -> Declaration:
    return declare(f"Vault/{name}", {"name": "team"}, **more)


def shown(vault_id: str, name: Any = "team") -> Live:
    return live("Secret", f"secret_{vault_id}", {"name": "other", "vault": {"id": vault_id}, "vault_name": name})


@pytest.mark.parametrize(
    ("name", "others", "lives", "target"),
    [
        ("team", (vault("a"),), (), Ref(at("Vault/a"))),
        ("team", (vault("b"), vault("a")), (), Ref(at("Vault/a"))),
        ("team", (vault("a", ensure=Ensure.ABSENT),), (), None),
        ("team", (vault("a", ensure=Ensure.ABSENT), vault("b")), (), Ref(at("Vault/b"))),
        ("team", (declare("BotUser/a", {"name": "team"}),), (), None),
        ("team", (declare("Vault/a", {"name": ref("BotUser/b")}),), (), None),
        ("Team", (vault("a"),), (), None),
        ("team", (), (shown("v1"),), "v1"),
        ("team", (vault("a"),), (shown("v1"),), Ref(at("Vault/a"))),
        ("team", (), (shown("v1"), shown("v1")), "v1"),
        ("team", (), (shown("v1"), shown("v2")), None),
        ("team", (), (shown("v1"), shown("v2", "another")), "v1"),
        ("team", (), (shown("v1", None),), None),
        (ref("Vault/z", "name"), (), (), Ref(at("Vault/z"))),
        (ref("Vault/z", "id"), (), (), None),
        (ref("BotUser/z", "name"), (), (), Ref(at("BotUser/z"))),
        (None, (vault("a"),), (), None),
        ("", (vault("a"),), (), None),
    ],
)
def test_a_name_is_that_of_a_declared_object_or_else_of_a_live_one(
    name: Any, others: tuple[Declaration, ...], lives: tuple[Live, ...], target: Any
) -> None:
    assert resolve({"vault_name": name}, *others, lives=lives) == target
    assert resolve({"vault_name": name}, *others, lives=lives, ignore=("vault_name",)) is None
    assert resolve({"vault_id": "v"}, *others, lives=lives) is None
