"""The shared types: limits in bytes, values known after apply, and secrets in messages."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from reconciler.kinds.types import fields
from reconciler.model.address import Address
from reconciler.model.value import PENDING, Ref, Secret, Template
from tests.kinds import pems

REF = Ref(Address("ReservedDomain", "app"), "domain")


def wrong(type_: Any, value: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(type_).validate_python(value, strict=True)
    return [error["msg"] for error in caught.value.errors()]


def right(type_: Any, value: Any) -> bool:
    return bool(TypeAdapter(type_).validate_python(value, strict=True) == value)


@pytest.mark.parametrize(("type_", "limit"), [(fields.Description, 255), (fields.Metadata, 4096)])
def test_a_limit_counts_bytes_and_not_characters(type_: Any, limit: int) -> None:
    assert right(type_, "é" * (limit // 2))
    assert wrong(type_, "é" * (limit // 2 + 1)) == [
        f"{2 * (limit // 2 + 1)} bytes, and at most {limit} are allowed; shorten it"
    ]
    assert right(type_, "x" * limit)
    assert len(wrong(type_, "x" * (limit + 1))) == 1
    assert len(wrong(type_, "🚇" * (limit // 4 + 1))) == 1


@pytest.mark.parametrize(("number", "fits"), [(0, True), (2**32 - 1, True), (-1, False), (2**32, False)])
def test_an_unsigned_number_has_bounds(number: int, fits: bool) -> None:
    assert right(fields.UInt32, number) if fits else wrong(fields.UInt32, number)


@pytest.mark.parametrize("value", [True, "1", 1.0])
def test_a_number_is_not_converted_from_another_type(value: Any) -> None:
    assert wrong(fields.UInt32, value)


TEXTS = [
    fields.Description,
    fields.Host,
    fields.Hostport,
    fields.Url,
    fields.Cidr,
    fields.Instant,
    fields.CaPem,
    fields.PrivateKeyPem,
    fields.SshLine,
    fields.SshPublicKey,
    fields.AclRule,
    fields.TrafficPolicy,
    fields.Region,
    fields.Id,
]


@pytest.mark.parametrize("type_", TEXTS)
@pytest.mark.parametrize("value", [REF, Template(("a.", REF))])
def test_a_value_known_after_apply_is_accepted_anywhere(type_: Any, value: Any) -> None:
    assert right(type_, value)
    assert right(type_ | None, value)
    assert right(list[type_], [value])
    assert right(dict[str, type_], {"a": value})


def test_a_secret_is_checked_like_the_text_it_hides() -> None:
    assert right(fields.Host, Secret("app.example.com", "env:HOST"))
    assert right(fields.Region, Secret("eu", "env:REGION"))
    assert right(fields.PrivateKeyPem, Secret(pems.private_key(), "file:key.pem"))
    assert wrong(fields.Region, Secret("xx", "env:REGION"))


@pytest.mark.parametrize("type_", [type_ for type_ in TEXTS if type_ not in (fields.Description, fields.Id)])
def test_an_error_about_a_secret_does_not_contain_the_secret(type_: Any) -> None:
    (text,) = wrong(type_, Secret("hunter2: [", "env:PASSWORD"))
    assert "hunter2" not in text


def test_an_error_about_a_secret_names_its_source() -> None:
    assert wrong(fields.Host, Secret("hunter2", "env:HOST")) == [
        "the value of env:HOST is not valid for this field; correct it at its source"
    ]


def test_a_policy_is_text_or_a_document_and_its_error_names_the_field() -> None:
    assert right(fields.TrafficPolicy, "on_http_request: []")
    assert right(fields.TrafficPolicy, {"on_http_request": []})
    adapter = TypeAdapter(dict[str, Annotated[fields.TrafficPolicy, "nested"]])
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python({"value": 7})
    assert [error["loc"] for error in caught.value.errors()] == [("value",)]


def test_a_duplicate_is_reported_at_its_second_place() -> None:
    assert [finding.path for finding in fields.find_repeated(["a", "b", "a"], "bindings")] == [("bindings", 2)]
    assert list(fields.find_repeated([PENDING, PENDING], "bindings")) == []
