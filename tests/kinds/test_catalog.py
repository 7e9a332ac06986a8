"""Rules that each kind's declaration follows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler import kinds
from reconciler.model import owner_record
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Home, Kind
from reconciler.project.documents.validation import findings_of
from reconciler.rendering.reference import kind_page
from tests.kinds import manifests

EVERY = kinds.every()
NAMES = {kind.name for kind in EVERY}

each_kind = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)


def walk(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield field
        yield from walk(field.fields)
        if field.item is not None:
            yield from walk((field.item,))


def test_every_kind_of_the_platform_is_declared() -> None:
    assert sorted(NAMES) == [
        "APIKey",
        "AgentIngress",
        "BotUser",
        "CertificateAuthority",
        "CloudEndpoint",
        "EventDestination",
        "EventSource",
        "EventSubscription",
        "FailoverBackend",
        "HTTPResponseBackend",
        "HTTPSEdge",
        "HTTPSEdgeRoute",
        "IPPolicy",
        "IPPolicyRule",
        "IPRestriction",
        "ReservedAddress",
        "ReservedDomain",
        "SSHCertificateAuthority",
        "SSHCredential",
        "SSHHostCertificate",
        "SSHUserCertificate",
        "Secret",
        "StaticBackend",
        "TCPEdge",
        "TLSCertificate",
        "TLSEdge",
        "TunnelCredential",
        "TunnelGroupBackend",
        "Vault",
        "WeightedBackend",
    ]


@each_kind
def test_a_kind_is_found_by_its_name(kind: Kind) -> None:
    assert kinds.get(kind.name) is kind


def test_a_plan_can_change_every_kind_but_those_of_files() -> None:
    assert kinds.list_planned() == tuple(kind for kind in kinds.declarable() if kind.home is not Home.FILE)
    assert kinds.list_planned() != kinds.declarable()


@pytest.mark.parametrize("name", ["", "Nothing", "tls_edge", "TlsEdge", "Canon", "Fields"])
def test_an_unknown_kind_is_not_found(name: str) -> None:
    assert kinds.find(name) is None


@each_kind
def test_the_example_of_a_kind_breaks_no_rule(kind: Kind) -> None:
    assert [*findings_of(kind.spec.model_validate(manifests.spec(kind)))] == []


@each_kind
def test_each_field_has_a_shape_and_a_description(kind: Kind) -> None:
    for field in walk(kind.fields):
        assert field.shape is not Shape.ANY or field.canonical is not None, field.name
    for field in kind.fields:
        assert field.doc, field.name


@each_kind
def test_a_kind_refers_to_kinds_that_exist(kind: Kind) -> None:
    named = {target for field in walk(kind.fields) for target in field.refs}
    assert named <= NAMES


@each_kind
def test_identity_consists_of_declared_fields(kind: Kind) -> None:
    assert set(kind.identity) <= set(kind.by_name)
    assert set(kind.required_unless_id) <= set(kind.by_name)
    assert set(kind.modules_by_id) <= {field.name for field in kind.fields if field.module}


@each_kind
def test_a_path_is_filled_from_the_field_that_names_the_parent(kind: Kind) -> None:
    in_path = {name for name in kind.by_name if f"{{{name}}}" in kind.path}
    assert in_path == ({kind.parent.field} if kind.parent else set())
    assert in_path == {field.name for field in kind.fields if Behavior.PATH_ONLY in field}


@each_kind
def test_an_omitted_optional_field_has_its_default(kind: Kind) -> None:
    spec = kind.spec.model_validate(manifests.spec(kind))
    for field in kind.fields:
        if field.name not in spec.model_fields_set:
            assert getattr(spec, field.name) == field.default


@each_kind
def test_an_unknown_field_is_refused(kind: Kind) -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        kind.spec.model_validate({**manifests.spec(kind), "surprise": 1})


@each_kind
def test_a_response_with_unknown_and_missing_fields_can_be_read(kind: Kind) -> None:
    answer = kind.read.model_validate({"surprise": 1})
    assert set(kind.read.model_fields) <= set(answer.model_dump())


@each_kind
def test_the_page_of_a_kind_has_the_number_of_bytes_of_metadata_that_are_the_users(kind: Kind) -> None:
    is_stated = f"At least {owner_record.LIMIT - owner_record.MOST} bytes are yours" in kind_page.page(kind)
    assert is_stated is kind.keeps_owner
