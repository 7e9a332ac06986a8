"""References by name: a field with the name of an object is the same as one with its id."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.change import Action, Order
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.snapshot import Live
from reconciler.model.value import Ref, Value
from reconciler.planning.comparing.name_references import resolve_names
from tests.harness.builders import (
    KINDS,
    LENIENT,
    actions,
    at,
    build_account,
    call_of,
    change_of,
    declare,
    errors,
    id_of,
    live,
    make_plan,
    plan_on,
    ref,
    requests,
    secret,
    snapshot,
)

VALUE = secret("value of the secret")


def vault(vault_name: str, name: str = "v") -> Declaration:
    return declare(f"Vault/{name}", {"name": vault_name})


def declare_secret(
    name: str = "s", *, ensure: Ensure = Ensure.PRESENT, adopt: bool = False, **where: Value
) -> Declaration:
    return declare(f"Secret/{name}", {"name": "key", "value": VALUE, **where}, ensure=ensure, adopt=adopt)


def live_secret(id: str = "secret_1", vault: str = "vault_1", vault_name: str = "team") -> Live:
    body: dict[str, Any] = {"name": "key", "vault": {"id": vault}, "vault_name": vault_name}
    return live("Secret", id, body)


@pytest.mark.parametrize("name", ["team", ref("Vault/v", "name")], ids=["its name", "a reference to its name"])
def test_a_name_of_a_declared_object_is_a_reference(name: str | Ref) -> None:
    plan = make_plan(vault("team"), declare_secret(vault_name=name))
    create = call_of(plan, "create Secret/s")
    assert create.body is not None
    assert (create.body["vault_id"], "vault_name" in create.body) == (ref("Vault/v"), False)
    assert create.needs == ("create Vault/v",)


def test_a_reference_by_name_equals_a_reference_by_id() -> None:
    world = build_account(vault("team"), declare_secret(vault_name="team"))
    assert plan_on(world, vault("team"), declare_secret(vault_id=ref("Vault/v"))).is_empty
    assert plan_on(world, vault("team"), declare_secret(vault_id=id_of(world, "Vault"))).is_empty


def test_a_name_that_follows_its_renamed_object_is_no_change() -> None:
    world = build_account(vault("team"), declare_secret(vault_name="team"))
    assert actions(plan_on(world, vault("crew"), declare_secret(vault_name="crew"))) == {"Vault/v": "update"}


def test_a_name_that_another_object_has_now_refers_to_that_object() -> None:
    world = build_account(vault("x", "a"), vault("y", "b"), declare_secret(vault_name="x"))
    change = change_of(plan_on(world, vault("z", "a"), vault("x", "b"), declare_secret(vault_name="x")), "Secret/s")
    assert (change.action, change.order) == (Action.REPLACE, Order.CREATE_FIRST)
    assert [(field.path, field.new) for field in change.fields] == [("vault_id", id_of(world, "Vault", 1))]


def test_a_new_address_of_a_referrer_by_name_is_a_move() -> None:
    world = build_account(vault("team"), declare_secret("old", vault_name="team"))
    assert actions(plan_on(world, vault("team"), declare_secret("new", vault_name="team"))) == {"Secret/new": "move"}


@pytest.mark.parametrize(
    ("declared", "calls"),
    [
        (declare_secret(vault_name="team", adopt=True), ["PATCH /vault_secrets/secret_1"]),
        (declare_secret(vault_name="team", adopt=True, ensure=Ensure.ABSENT), ["DELETE /vault_secrets/secret_1"]),
        (declare_secret(vault_name="other", adopt=True), ["POST /vault_secrets"]),
        (declare_secret(vault_name="other", adopt=True, ensure=Ensure.ABSENT), []),
    ],
    ids=["adopted", "absent", "of another", "absent from another"],
)
def test_an_unmanaged_object_is_matched_by_the_name_of_its_parent(declared: Declaration, calls: list[str]) -> None:
    assert requests(make_plan(declared, seen=snapshot(live_secret()), options=LENIENT)) == calls


def test_an_ambiguous_name_matches_nothing() -> None:
    seen = snapshot(live_secret(), live_secret("secret_2", "vault_2"))
    assert requests(make_plan(declare_secret(vault_name="team", adopt=True, ensure=Ensure.ABSENT), seen=seen)) == []


def test_two_objects_with_one_key_are_a_problem_in_either_notation() -> None:
    world = build_account(vault("team"))
    plan = plan_on(
        world, vault("team"), declare_secret("a", vault_name="team"), declare_secret("b", vault_id=ref("Vault/v"))
    )
    assert [text.partition(" takes ")[0] for text in errors(plan)] == ["Secret/a"]


def test_an_ignored_name_is_not_resolved() -> None:
    world = build_account(vault("team"), declare_secret(vault_name="team"))
    declared = declare("Secret/s", {"name": "key", "value": VALUE, "vault_name": "other"}, ignore=("vault_name",))
    assert plan_on(world, vault("team"), declared).is_empty


# --- names of live objects --------------------------------------------------------------------------------------------


def resolve_vault_id(
    secret_spec: dict[str, Any], *others: Declaration, live_objects: tuple[Live, ...] = (), **more: Any
) -> Any:
    """The `vault_id` that a secret refers to; None if its declaration is unchanged."""
    declared = declare("Secret/s", {"name": "k", **secret_spec}, **more)
    declared = replace(declared, positions={("spec", "vault_name"): replace(declared.position, line=9)})
    declarations = {declaration.address: declaration for declaration in (declared, *others)}
    resolved = resolve_names(
        declarations, {kind.name: kind for kind in KINDS}, lambda kind: live_objects if kind == "Secret" else ()
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


def team_vault(name: str, **more: Any) -> Declaration:
    return declare(f"Vault/{name}", {"name": "team"}, **more)


def secret_in_vault(vault_id: str, name: Any = "team") -> Live:
    return live("Secret", f"secret_{vault_id}", {"name": "other", "vault": {"id": vault_id}, "vault_name": name})


@pytest.mark.parametrize(
    ("name", "others", "live_objects", "target"),
    [
        ("team", (team_vault("a"),), (), Ref(at("Vault/a"))),
        ("team", (team_vault("b"), team_vault("a")), (), Ref(at("Vault/a"))),
        ("team", (team_vault("a", ensure=Ensure.ABSENT),), (), None),
        ("team", (team_vault("a", ensure=Ensure.ABSENT), team_vault("b")), (), Ref(at("Vault/b"))),
        ("team", (declare("BotUser/a", {"name": "team"}),), (), None),
        ("team", (declare("Vault/a", {"name": ref("BotUser/b")}),), (), None),
        ("Team", (team_vault("a"),), (), None),
        ("team", (), (secret_in_vault("v1"),), "v1"),
        ("team", (team_vault("a"),), (secret_in_vault("v1"),), Ref(at("Vault/a"))),
        ("team", (), (secret_in_vault("v1"), secret_in_vault("v1")), "v1"),
        ("team", (), (secret_in_vault("v1"), secret_in_vault("v2")), None),
        ("team", (), (secret_in_vault("v1"), secret_in_vault("v2", "another")), "v1"),
        ("team", (), (secret_in_vault("v1", None),), None),
        (ref("Vault/z", "name"), (), (), Ref(at("Vault/z"))),
        (ref("Vault/z", "id"), (), (), None),
        (ref("BotUser/z", "name"), (), (), Ref(at("BotUser/z"))),
        (None, (team_vault("a"),), (), None),
        ("", (team_vault("a"),), (), None),
    ],
)
def test_a_name_is_that_of_a_declared_object_or_else_of_a_live_one(
    name: Any, others: tuple[Declaration, ...], live_objects: tuple[Live, ...], target: Any
) -> None:
    assert resolve_vault_id({"vault_name": name}, *others, live_objects=live_objects) == target
    assert resolve_vault_id({"vault_name": name}, *others, live_objects=live_objects, ignore=("vault_name",)) is None
    assert resolve_vault_id({"vault_id": "v"}, *others, live_objects=live_objects) is None
