"""What refers to another by its name is the same as what refers to it by its id."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.change import Action, Order
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.snapshot import Live
from reconciler.model.value import Ref, Value
from tests.planning.builders import (
    LENIENT,
    actions,
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
    settle,
    snapshot,
)

VALUE = secret("what is kept")


def vault(called: str, name: str = "v") -> Declaration:
    return declare(f"Vault/{name}", {"name": called})


def declare_secret(
    name: str = "s", *, ensure: Ensure = Ensure.PRESENT, adopt: bool = False, **where: Value
) -> Declaration:
    return declare(f"Secret/{name}", {"name": "key", "value": VALUE, **where}, ensure=ensure, adopt=adopt)


def live_secret(id: str = "secret_1", vault: str = "vault_1", called: str = "team") -> Live:
    body: dict[str, Any] = {"name": "key", "vault": {"id": vault}, "vault_name": called}
    return live("Secret", id, body)


@pytest.mark.parametrize("name", ["team", ref("Vault/v", "name")], ids=["its name", "a reference to its name"])
def test_a_name_that_is_declared_is_a_reference(name: str | Ref) -> None:
    made = make_plan(vault("team"), declare_secret(vault_name=name))
    create = call_of(made, "create Secret/s")
    assert create.body is not None
    assert (create.body["vault_id"], "vault_name" in create.body) == (ref("Vault/v"), False)
    assert create.needs == ("create Vault/v",)


def test_by_id_and_by_name_are_one_and_the_same() -> None:
    world = settle(vault("team"), declare_secret(vault_name="team"))
    assert plan_on(world, vault("team"), declare_secret(vault_id=ref("Vault/v"))).is_empty
    assert plan_on(world, vault("team"), declare_secret(vault_id=id_of(world, "Vault"))).is_empty


def test_a_name_that_follows_what_bears_it_is_no_change() -> None:
    world = settle(vault("team"), declare_secret(vault_name="team"))
    assert actions(plan_on(world, vault("crew"), declare_secret(vault_name="crew"))) == {"Vault/v": "update"}


def test_a_name_that_goes_over_to_another_leads_there() -> None:
    world = settle(vault("x", "a"), vault("y", "b"), declare_secret(vault_name="x"))
    change = change_of(plan_on(world, vault("z", "a"), vault("x", "b"), declare_secret(vault_name="x")), "Secret/s")
    assert (change.action, change.order) == (Action.REPLACE, Order.CREATE_FIRST)
    assert [(field.path, field.new) for field in change.fields] == [("vault_id", id_of(world, "Vault", 1))]


def test_another_address_for_what_is_there_is_a_move() -> None:
    world = settle(vault("team"), declare_secret("old", vault_name="team"))
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
def test_what_nobody_owns_is_found_by_the_name_that_it_shows(declared: Declaration, calls: list[str]) -> None:
    assert requests(make_plan(declared, seen=snapshot(live_secret()), options=LENIENT)) == calls


def test_a_name_that_two_seem_to_bear_leads_nowhere() -> None:
    seen = snapshot(live_secret(), live_secret("secret_2", "vault_2"))
    assert requests(make_plan(declare_secret(vault_name="team", adopt=True, ensure=Ensure.ABSENT), seen=seen)) == []


def test_two_of_one_key_are_told_of_whichever_way_they_spell_it() -> None:
    world = settle(vault("team"))
    made = plan_on(
        world, vault("team"), declare_secret("a", vault_name="team"), declare_secret("b", vault_id=ref("Vault/v"))
    )
    assert [text.partition(" takes ")[0] for text in errors(made)] == ["Secret/a"]


def test_a_name_that_is_left_to_others_is_not_looked_at() -> None:
    world = settle(vault("team"), declare_secret(vault_name="team"))
    left = declare("Secret/s", {"name": "key", "value": VALUE, "vault_name": "gone"}, ignore=("vault_name",))
    assert plan_on(world, vault("team"), left).is_empty
