"""Fields of changes in a plan: secrets as digests, positions in the manifest."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.value import Hidden, Secret, Value, digest
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.comparing.plan_fields import hide_secrets, list_created_fields, show_fields
from tests.harness.builders import at, declare, make_plan, ref, secret


def test_a_secret_in_a_plan_is_a_digest_for_its_path() -> None:
    address = at("Secret/s")
    hidden = hide_secrets(secret("x"), address, "value")
    assert hidden == Hidden(digest(secret("x"), "Secret/s:value"))
    assert hidden != hide_secrets(secret("x"), at("Secret/t"), "value")
    assert hidden != hide_secrets(secret("x"), address, "other")
    assert hidden != hide_secrets(secret("y"), address, "value")
    inside = hide_secrets({"a": [secret("x"), "plain"], "b": {"c": secret("x")}}, address, "top")
    assert inside == {
        "a": [hide_secrets(secret("x"), address, "top.a"), "plain"],
        "b": {"c": hide_secrets(secret("x"), address, "top.b.c")},
    }
    plain: Value = {"a": [1, None], "b": ref("IPPolicy/p")}
    assert hide_secrets(plain, address, "top") is plain
    assert hide_secrets(UNREAD, address, "top") is None


def test_fields_of_an_object_are_listed_without_unread_values() -> None:
    form: Any = {"value": UNREAD, "name": "s", "token": Secret("x", "live")}
    listed = show_fields(kinds.get("Secret"), form, at("Secret/s"))
    assert listed == {"name": "s", "token": hide_secrets(secret("x"), at("Secret/s"), "token")}


def test_the_fields_of_a_create_have_their_positions_in_the_manifest() -> None:
    declared = declare("TLSEdge/e", {"description": "x"})
    position = replace(declared.position, line=7)
    declared = replace(declared, positions={("spec", "description"): position})
    (change,) = list_created_fields(kinds.get("TLSEdge"), {"description": "x", "metadata": ""}, declared)
    assert (change.path, change.old, change.new, change.position) == ("description", None, "x", position)


def test_a_module_of_defaults_is_shown_by_its_values_and_sent_as_it_is_written() -> None:
    policy = "certificate_management_policy"
    for written in ({}, {"authority": "letsencrypt"}):
        plan = make_plan(declare("ReservedDomain/d", {"domain": "d.example.com", policy: written}))
        assert [(change.path, change.new) for change in plan.changes[0].fields] == [
            ("domain", "d.example.com"),
            (f"{policy}.authority", "letsencrypt"),
            (f"{policy}.private_key_type", "ecdsa"),
        ]
        assert plan.calls[0].body == {"domain": "d.example.com", policy: written}
    (change,) = make_plan(declare("HTTPSEdge/e", {"tls_termination": {}})).changes
    assert [path.path for path in change.fields if path.path.startswith("tls_termination")] == [
        "tls_termination.enabled"
    ]
    unmanaged = make_plan(declare("ReservedDomain/d", {"domain": "d.example.com"}))
    assert unmanaged.calls[0].body == {"domain": "d.example.com"}
