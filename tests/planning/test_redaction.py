"""The fields of each object in a snapshot file, and the seals that replace secrets.

That plans do not change is a law in tests/laws/test_redacted.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Binding, Live
from reconciler.model.value import Sealed, digest
from reconciler.planning.redaction import redact_snapshot, seal
from reconciler.rendering.wire import snapshot_json
from tests.harness.builders import KINDS, STACK, at, declare, live, manifest, record, secret, snapshot

TEXT = "canary-redaction1"


def redact(*live_objects: Live, declared: Any = (), **seen: Any) -> Live:
    """The first of these objects as a snapshot file has it."""
    redacted = redact_snapshot(replace(snapshot(*live_objects), **seen), manifest(*declared), KINDS)
    found = next(
        candidate for candidate in redacted.of(live_objects[0].kind).objects if candidate.key == live_objects[0].key
    )
    assert (found.parent_id, found.owner, found.metadata) == (
        live_objects[0].parent_id,
        live_objects[0].owner,
        live_objects[0].metadata,
    )
    return found


def list_set_fields(live_object: Live) -> dict[str, Any]:
    """The values of the redacted object that are set, without id and metadata."""
    body = redact(live_object).body
    return {name: value for name, value in body.items() if value is not None and name not in ("id", "metadata")}


@pytest.mark.parametrize(
    ("kind", "body", "set_fields"),
    [
        ("TunnelCredential", {"token": TEXT, "acl": ["a"], "uri": TEXT}, {"acl": ["a"]}),
        ("TunnelCredential", {"created_at": "2026", "description": "d"}, {"created_at": "2026", "description": "d"}),
        ("APIKey", {"token": TEXT, "description": "d"}, {"description": "d"}),
        # Responses should not contain it.
        ("Secret", {"value": TEXT, "name": "s", "vault": {"id": "v", "uri": TEXT}}, {"name": "s", "vault_id": "v"}),
        ("TLSCertificate", {"private_key_pem": TEXT, "certificate_pem": "C"}, {"certificate_pem": "C"}),
        # Outputs that references may read, and not what is listed below them.
        ("ReservedAddress", {"addr": "1.x:1", "region": "us"}, {"addr": "1.x:1", "region": "us"}),
        ("TLSCertificate", {"key_usages": ["a"], "serial_number": "1"}, {"key_usages": ["a"], "serial_number": "1"}),
        ("HTTPSEdge", {"routes": [{"oidc": {"client_secret": TEXT}}], "hostports": ["a:1"]}, {"hostports": ["a:1"]}),
        ("TLSCertificate", {"subject_alternative_names": {"dns": [TEXT]}}, {}),
        # The write shape, of values that responses show in another one.
        ("EventSubscription", {"destinations": [{"id": "ed_1", "uri": TEXT}]}, {"destination_ids": ["ed_1"]}),
        (
            "ReservedAddress",
            {"endpoint_configuration": {"id": "ec_1", "uri": TEXT}},
            {"endpoint_configuration_id": "ec_1"},
        ),
    ],
)
def test_a_snapshot_file_contains_the_fields_that_plans_read(
    kind: str, body: dict[str, Any], set_fields: dict[str, Any]
) -> None:
    assert list_set_fields(live(kind, "id-1", body)) == set_fields
    assert (
        list_set_fields(live(kind, "id-1", {**body, "metadata": "text"}, owner=record(f"{kind}/a", {}))) == set_fields
    )


def test_a_write_only_field_of_a_module_is_omitted() -> None:
    destination = live("EventDestination", "ed_1", {"target": {"metrics": {"api_key": TEXT, "service": "edge"}}})
    assert list_set_fields(destination)["target"]["metrics"] == {"service": "edge", "tags": None, "site": None}


def test_a_child_has_its_parent_in_its_path_only() -> None:
    route = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "edge": {"id": "e_1"}}, parent="e_1")
    assert list_set_fields(route) == {"match": "/"}


def test_kinds_that_are_not_planned_are_omitted() -> None:
    seen = snapshot(live("IPPolicy", "ipp_1"), live("TLSEdge", "e"))
    assert list(redact_snapshot(seen, manifest(), [kinds.get("TLSEdge")]).listings) == ["TLSEdge"]


OIDC = {"issuer": "https://i.x", "client_id": "c", "client_secret": TEXT}
ROUTE = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "match_type": "exact_path", "oidc": OIDC}, parent="e_1")
SPEC = {"edge_id": "e_1", "match": "/", "match_type": "exact_path"}
PATH = "oidc.client_secret"


def seal_of(live_object: Live) -> Sealed:
    value = live_object.body["oidc"]["client_secret"]
    assert isinstance(value, Sealed)
    assert TEXT not in repr(live_object)
    return value


def has_salt(sealed: Sealed, salt: str) -> bool:
    """Whether the digest with this salt is the one of the text."""
    return sealed.digest(salt) == digest(secret(TEXT), salt)


def test_a_readable_secret_is_sealed_with_the_salts_of_its_object() -> None:
    managed = live(ROUTE.kind, ROUTE.id, ROUTE.body, owner=record("HTTPSEdgeRoute/r", {}, intent="i1"), parent="e_1")
    sealed = seal_of(redact(managed))
    known = {"i1", STACK, f"HTTPSEdgeRoute/r:{PATH}"}
    others = {"i2", f"HTTPSEdgeRoute/other:{PATH}", "HTTPSEdgeRoute/r:saml.idp_metadata", "another stack"}
    assert {salt for salt in known | others if has_salt(sealed, salt)} == known
    assert sealed == secret(TEXT)
    assert sealed != secret("another")
    # The manifest renames it: plans with either name compare it.
    renamed = declare("HTTPSEdgeRoute/new", SPEC, moved=["HTTPSEdgeRoute/r"])
    sealed = seal_of(redact(managed, declared=[renamed]))
    names = [f"HTTPSEdgeRoute/{name}:{PATH}" for name in ("r", "new")]
    assert all(has_salt(sealed, salt) for salt in (*known, *names, "HTTPSEdgeRoute/new"))


def test_a_secret_without_an_owner_record_has_the_salts_of_declaration_and_binding() -> None:
    assert not has_salt(seal_of(redact(ROUTE)), f"HTTPSEdgeRoute/r:{PATH}")
    declared = declare("HTTPSEdgeRoute/r", SPEC, adopt=True)
    assert has_salt(seal_of(redact(ROUTE, declared=[declared])), f"HTTPSEdgeRoute/r:{PATH}")
    bound = {at("HTTPSEdgeRoute/b"): Binding(ROUTE.locator), at("IPPolicy/b"): Binding("other")}
    sealed = seal_of(redact(ROUTE, bindings=bound))
    assert has_salt(sealed, f"HTTPSEdgeRoute/b:{PATH}")
    assert not has_salt(sealed, f"IPPolicy/b:{PATH}")


@pytest.mark.parametrize("empty", ["", None])
def test_an_unset_secret_remains_unset(empty: str | None) -> None:
    route = live("HTTPSEdgeRoute", "rt_1", {"oidc": {**OIDC, "client_secret": empty}}, parent="e_1")
    assert redact(route).body["oidc"]["client_secret"] is None


@pytest.mark.parametrize("odd", [{"value": "s3cret"}, ["s3cret"], 12345])
def test_a_secret_that_is_no_text_is_omitted(odd: object) -> None:
    route = live("HTTPSEdgeRoute", "rt_1", {"oidc": {**OIDC, "client_secret": odd}}, parent="e_1")
    assert redact(route).body["oidc"]["client_secret"] is None


# --- declared secrets -------------------------------------------------------------------------------------------------


def vault_secret(name: str, text: str, source: str) -> Any:
    return declare(f"Secret/{name}", {"vault_id": "v", "name": name, "value": secret(text, source)})


def test_each_source_of_secrets_is_sealed_once_with_the_salts_of_all_its_uses() -> None:
    live_secret = live(
        "Secret", "secret_1", {"name": "a", "vault": {"id": "v"}}, owner=record("Secret/a", {}, intent="i1")
    )
    other = live("Secret", "secret_2", {"name": "z", "vault": {"id": "v"}}, owner=record("Secret/z", {}, intent="i2"))
    declared = [
        vault_secret("a", TEXT, "env:A"),
        vault_secret("b", TEXT, "env:A"),
        vault_secret("c", "another", "env:C"),
        vault_secret("d", TEXT, "manifest:m.yaml"),
        declare("HTTPSEdgeRoute/r", {**SPEC, "oidc": {**OIDC, "client_secret": secret(TEXT, "file:x")}}),
    ]
    found = seal(manifest(*declared), snapshot(live_secret, other), KINDS)
    assert sorted(found) == ["env:A", "env:C", "file:x"]
    assert {source: sealed.source for source, sealed in found.items()} == {source: source for source in found}
    known = {"Secret/a", "Secret/b", "Secret/a:value", "Secret/b:value", "i1", STACK}
    others = {"Secret/c", "Secret/d", "Secret/d:value", "i2"}
    assert {salt for salt in known | others if has_salt(found["env:A"], salt)} == known
    assert has_salt(found["file:x"], f"HTTPSEdgeRoute/r:{PATH}")
    assert found["env:A"] == secret(TEXT)
    assert found["env:C"] == secret("another")
    assert found["env:C"] != secret(TEXT)
    assert TEXT not in repr(found)


# --- secrets and unknown fields -------------------------------------------------------------------------------------

CANARY = "canary-4711-abcdefgh"
WRONG: tuple[Any, ...] = ({"unknown": CANARY}, [{"unknown": CANARY}], [[{"unknown": CANARY}]])
POLICY = json.dumps({"on_http_request": [{"actions": [{"type": "verify-webhook", "config": {"secret": CANARY}}]}]})


def values_with_secrets(field: Field) -> Iterator[Any]:
    """Values of a field that show a secret, or that hold an unknown field at some depth."""
    if Behavior.SENSITIVE in field:
        yield CANARY
    elif field.conceals is not None and field.shape is Shape.MAP:
        yield {"Authorization": CANARY}
    elif field.conceals is not None:
        yield POLICY
        yield f"# {CANARY}\non_http_request: {{"
    else:
        yield from (wrong for wrong in WRONG if field.shape is not Shape.MAP)
        yield from ({"key": wrong} for wrong in WRONG if field.shape is Shape.MAP)
    if field.shape is not Shape.MAP:  # users choose the keys of maps
        yield from bodies_with_secrets(field.fields)
    for item in values_with_secrets(field.item) if field.item is not None else ():
        yield [item]


def bodies_with_secrets(fields: tuple[Field, ...]) -> Iterator[dict[str, Any]]:
    yield {"new_secret_field": CANARY}
    for field in fields:
        yield from ({field.name: value} for value in values_with_secrets(field))


def objects_with_secrets(kind: Kind) -> Iterator[dict[str, Any]]:
    """Bodies of an object, by itself and with children in its body."""
    yield from bodies_with_secrets(kind.fields)
    yield from ({name: wrong} for name in ("created_at", "uri", *kind.outputs) for wrong in WRONG)
    if kind.one_time:
        yield {kind.one_time: CANARY}
    for child in KINDS:
        if child.parent is not None and child.parent.kind == kind.name and child.parent.embedded:
            yield from ({child.parent.embedded: [body]} for body in objects_with_secrets(child))


def show(text: str) -> str:
    at = text.find(CANARY)
    return text[max(0, at - 80) : at + 30]


@pytest.mark.parametrize(
    ("kind", "is_managed"),
    [(kind, is_managed) for kind in KINDS for is_managed in (False, True) if kind.keeps_owner or not is_managed],
    ids=lambda value: getattr(value, "name", "managed" if value else "found"),
)
def test_a_snapshot_file_has_no_secret_and_no_unknown_field_of_an_object(kind: Kind, is_managed: bool) -> None:
    owner = record(f"{kind.name}/a", {}) if is_managed else None
    for body in objects_with_secrets(kind):
        if owner is not None and "metadata" in body:
            continue  # the metadata of a managed object has its owner record
        seen = snapshot(live(kind.name, "id-1", body, owner=owner, parent="id-0" if kind.parent else None))
        redacted = redact_snapshot(seen, manifest(), KINDS)
        file = snapshot_json.SnapshotFile(redacted, "ours", "https://a", None, 0.0, "", {})
        text = json.dumps(snapshot_json.encode(file), default=str)
        assert CANARY not in text, (body, show(text))
