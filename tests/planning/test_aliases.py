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
    on,
    planned,
    ref,
    requests,
    secret,
    settled,
    snapshot,
)

VALUE = secret("what is kept")


def vault(called: str, name: str = "v") -> Declaration:
    return declare(f"Vault/{name}", {"name": called})


def kept(name: str = "s", *, ensure: Ensure = Ensure.PRESENT, adopt: bool = False, **where: Value) -> Declaration:
    return declare(f"Secret/{name}", {"name": "key", "value": VALUE, **where}, ensure=ensure, adopt=adopt)


def theirs(id: str = "secret_1", vault: str = "vault_1", called: str = "team") -> Live:
    body: dict[str, Any] = {"name": "key", "vault": {"id": vault}, "vault_name": called}
    return live("Secret", id, body)


@pytest.mark.parametrize("name", ["team", ref("Vault/v", "name")], ids=["its name", "a reference to its name"])
def test_a_name_that_is_declared_is_a_reference(name: str | Ref) -> None:
    made = planned(vault("team"), kept(vault_name=name))
    create = call_of(made, "create Secret/s")
    assert create.body is not None
    assert (create.body["vault_id"], "vault_name" in create.body) == (ref("Vault/v"), False)
    assert create.needs == ("create Vault/v",)


def test_by_id_and_by_name_are_one_and_the_same() -> None:
    world = settled(vault("team"), kept(vault_name="team"))
    assert on(world, vault("team"), kept(vault_id=ref("Vault/v"))).is_empty
    assert on(world, vault("team"), kept(vault_id=id_of(world, "Vault"))).is_empty


def test_a_name_that_follows_what_bears_it_is_no_change() -> None:
    world = settled(vault("team"), kept(vault_name="team"))
    assert actions(on(world, vault("crew"), kept(vault_name="crew"))) == {"Vault/v": "update"}


def test_a_name_that_goes_over_to_another_leads_there() -> None:
    world = settled(vault("x", "a"), vault("y", "b"), kept(vault_name="x"))
    change = change_of(on(world, vault("z", "a"), vault("x", "b"), kept(vault_name="x")), "Secret/s")
    assert (change.action, change.order) == (Action.REPLACE, Order.CREATE_FIRST)
    assert [(each.path, each.new) for each in change.fields] == [("vault_id", id_of(world, "Vault", 1))]


def test_another_address_for_what_is_there_is_a_move() -> None:
    world = settled(vault("team"), kept("old", vault_name="team"))
    assert actions(on(world, vault("team"), kept("new", vault_name="team"))) == {"Secret/new": "move"}


@pytest.mark.parametrize(
    ("declared", "calls"),
    [
        (kept(vault_name="team", adopt=True), ["PATCH /vault_secrets/secret_1"]),
        (kept(vault_name="team", adopt=True, ensure=Ensure.ABSENT), ["DELETE /vault_secrets/secret_1"]),
        (kept(vault_name="other", adopt=True), ["POST /vault_secrets"]),
        (kept(vault_name="other", adopt=True, ensure=Ensure.ABSENT), []),
    ],
    ids=["adopted", "absent", "of another", "absent from another"],
)
def test_what_nobody_owns_is_found_by_the_name_that_it_shows(declared: Declaration, calls: list[str]) -> None:
    assert requests(planned(declared, seen=snapshot(theirs()), policy=LENIENT)) == calls


def test_a_name_that_two_seem_to_bear_leads_nowhere() -> None:
    seen = snapshot(theirs(), theirs("secret_2", "vault_2"))
    assert requests(planned(kept(vault_name="team", adopt=True, ensure=Ensure.ABSENT), seen=seen)) == []


def test_two_of_one_key_are_told_of_whichever_way_they_spell_it() -> None:
    world = settled(vault("team"))
    made = on(world, vault("team"), kept("a", vault_name="team"), kept("b", vault_id=ref("Vault/v")))
    assert [text.partition(" takes ")[0] for text in errors(made)] == ["Secret/a"]


def test_a_name_that_is_left_to_others_is_not_looked_at() -> None:
    world = settled(vault("team"), kept(vault_name="team"))
    left = declare("Secret/s", {"name": "key", "value": VALUE, "vault_name": "gone"}, ignore=("vault_name",))
    assert on(world, vault("team"), left).is_empty
