"""What a snapshot file keeps of each object, and what takes the place of secrets.

That plans do not change by it is a law in tests/laws/test_redacted.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.snapshot import Binding, Live
from reconciler.model.value import Sealed, digest
from reconciler.planning.redaction import redact_snapshot, seal
from tests.planning.builders import KINDS, STACK, at, declare, live, manifest, record, secret, snapshot

TEXT = "canary-redaction1"


def redact(*lives: Live, declared: Any = (), **seen: Any) -> Live:
    """The first of these objects as a snapshot file has it."""
    taken = redact_snapshot(replace(snapshot(*lives), **seen), manifest(*declared), KINDS)
    found = next(each for each in taken.of(lives[0].kind).objects if each.key == lives[0].key)
    assert (found.parent_id, found.owner, found.metadata) == (lives[0].parent_id, lives[0].owner, lives[0].metadata)
    return found


def keep(there: Live) -> dict[str, Any]:
    """The values of the redacted object that are set, without id and metadata."""
    body = redact(there).body
    return {name: value for name, value in body.items() if value is not None and name not in ("id", "metadata")}


@pytest.mark.parametrize(
    ("kind", "body", "kept"),
    [
        ("TunnelCredential", {"token": TEXT, "acl": ["a"], "uri": TEXT}, {"acl": ["a"]}),
        ("TunnelCredential", {"created_at": "2026", "description": "d"}, {"created_at": "2026", "description": "d"}),
        ("APIKey", {"token": TEXT, "description": "d"}, {"description": "d"}),
        # No response shows it, and yet one might.
        ("Secret", {"value": TEXT, "name": "s", "vault": {"id": "v", "uri": TEXT}}, {"name": "s", "vault_id": "v"}),
        ("TLSCertificate", {"private_key_pem": TEXT, "certificate_pem": "C"}, {"certificate_pem": "C"}),
        # Outputs that references may read, and not what is listed below them.
        ("ReservedAddress", {"addr": "1.x:1", "region": "us"}, {"addr": "1.x:1", "region": "us"}),
        ("TLSCertificate", {"key_usages": ["a"], "serial_number": "1"}, {"key_usages": ["a"], "serial_number": "1"}),
        ("HTTPSEdge", {"routes": [{"oidc": {"client_secret": TEXT}}], "hostports": ["a:1"]}, {"hostports": ["a:1"]}),
        ("TLSCertificate", {"subject_alternative_names": {"dns": [TEXT]}}, {}),
        # The write shape, of values that responses show in another one.
        ("EventSubscription", {"sources": [{"type": "a", "uri": TEXT}]}, {"sources": [{"type": "a"}]}),
    ],
)
def test_a_file_keeps_what_plans_read(kind: str, body: dict[str, Any], kept: dict[str, Any]) -> None:
    assert keep(live(kind, "id-1", body)) == kept
    assert keep(live(kind, "id-1", {**body, "metadata": "text"}, owner=record(f"{kind}/a", {}))) == kept


def test_a_field_of_a_module_that_no_response_shows_is_left_out_of_it() -> None:
    destination = live("EventDestination", "ed_1", {"target": {"metrics": {"api_key": TEXT, "service": "edge"}}})
    assert keep(destination)["target"]["metrics"] == {"service": "edge", "tags": None, "site": None}


def test_a_child_keeps_its_parent_by_its_path_alone() -> None:
    route = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "edge": {"id": "e_1"}}, parent="e_1")
    assert keep(route) == {"match": "/"}


def test_kinds_that_are_not_planned_are_left_out() -> None:
    seen = snapshot(live("IPPolicy", "ipp_1"), live("TLSEdge", "e"))
    assert list(redact_snapshot(seen, manifest(), [kinds.get("TLSEdge")]).listings) == ["TLSEdge"]


OIDC = {"issuer": "https://i.x", "client_id": "c", "client_secret": TEXT}
ROUTE = live("HTTPSEdgeRoute", "rt_1", {"match": "/", "match_type": "exact_path", "oidc": OIDC}, parent="e_1")
SPEC = {"edge_id": "e_1", "match": "/", "match_type": "exact_path"}
PATH = "oidc.client_secret"


def sealed_in(there: Live) -> Sealed:
    value = there.body["oidc"]["client_secret"]
    assert isinstance(value, Sealed)
    assert TEXT not in repr(there)
    return value


def knows(sealed: Sealed, salt: str) -> bool:
    """Whether the digest with this salt is the one of the text."""
    return sealed.digest(salt) == digest(secret(TEXT), salt)


def test_a_secret_that_responses_show_is_digests_with_the_salts_of_its_object() -> None:
    owned = live(ROUTE.kind, ROUTE.id, ROUTE.body, owner=record("HTTPSEdgeRoute/r", {}, intent="i1"), parent="e_1")
    sealed = sealed_in(redact(owned))
    known = {"i1", STACK, f"HTTPSEdgeRoute/r:{PATH}"}
    others = {"i2", f"HTTPSEdgeRoute/other:{PATH}", "HTTPSEdgeRoute/r:saml.idp_metadata", "another stack"}
    assert {salt for salt in known | others if knows(sealed, salt)} == known
    assert sealed == secret(TEXT)
    assert sealed != secret("another")
    # The manifest renames it: plans of both names compare it.
    renamed = declare("HTTPSEdgeRoute/new", SPEC, moved=["HTTPSEdgeRoute/r"])
    sealed = sealed_in(redact(owned, declared=[renamed]))
    names = [f"HTTPSEdgeRoute/{name}:{PATH}" for name in ("r", "new")]
    assert all(knows(sealed, salt) for salt in (*known, *names, "HTTPSEdgeRoute/new"))


def test_a_secret_of_an_object_without_a_record_has_the_salts_of_its_declaration_and_its_binding() -> None:
    assert not knows(sealed_in(redact(ROUTE)), f"HTTPSEdgeRoute/r:{PATH}")
    declared = declare("HTTPSEdgeRoute/r", SPEC, adopt=True)
    assert knows(sealed_in(redact(ROUTE, declared=[declared])), f"HTTPSEdgeRoute/r:{PATH}")
    bound = {at("HTTPSEdgeRoute/b"): Binding(ROUTE.locator), at("IPPolicy/b"): Binding("other")}
    sealed = sealed_in(redact(ROUTE, bindings=bound))
    assert knows(sealed, f"HTTPSEdgeRoute/b:{PATH}")
    assert not knows(sealed, f"IPPolicy/b:{PATH}")


@pytest.mark.parametrize("empty", ["", None])
def test_a_secret_that_is_not_set_stays_so(empty: str | None) -> None:
    route = live("HTTPSEdgeRoute", "rt_1", {"oidc": {**OIDC, "client_secret": empty}}, parent="e_1")
    assert redact(route).body["oidc"]["client_secret"] is None


@pytest.mark.parametrize("odd", [{"value": "s3cret"}, ["s3cret"], 12345])
def test_a_secret_that_is_no_text_is_left_out(odd: object) -> None:
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
    assert {salt for salt in known | others if knows(found["env:A"], salt)} == known
    assert knows(found["file:x"], f"HTTPSEdgeRoute/r:{PATH}")
    assert found["env:A"] == secret(TEXT)
    assert found["env:C"] == secret("another")
    assert found["env:C"] != secret(TEXT)
    assert TEXT not in repr(found)
