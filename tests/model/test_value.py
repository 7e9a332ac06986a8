"""Plain values, references, templates and secrets."""

from __future__ import annotations

import pickle

import pytest

from reconciler.model.address import Address
from reconciler.model.value import (
    JsonTemplate,
    Ref,
    Secret,
    Template,
    canonical,
    digest,
    has_secret,
    is_known,
    references,
    reveal,
    secrets_in,
    substitute,
)

EDGE = Ref(Address("TLSEdge", "a"))
ADDR = Ref(Address("ReservedAddress", "a"), "addr")


def test_a_secret_does_not_print_itself() -> None:
    secret = Secret("hunter2", "env:PASSWORD")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"


def test_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Secret("hunter2", "env:PASSWORD"))


def test_secrets_are_equal_by_value_and_not_by_source() -> None:
    assert Secret("a", "env:A") == Secret("a", "file:b")


def test_a_secret_is_not_equal_to_its_own_text() -> None:
    assert Secret("a", "env:A") != "a"


def test_references_are_found_in_maps_lists_and_templates() -> None:
    value = {"a": [EDGE], "b": Template(("tcp://", ADDR)), "c": "plain"}
    assert list(references(value)) == [EDGE, ADDR]


def test_a_value_without_references_is_known() -> None:
    assert (is_known({"a": [1, "x"]}), is_known({"a": [1, EDGE]})) == (True, False)


def test_a_template_of_resolved_references_is_text() -> None:
    assert (
        substitute(Template(("tcp://", ADDR)), lambda ref: "1.tcp.example.net:20000") == "tcp://1.tcp.example.net:20000"
    )


def test_a_partly_resolved_template_has_the_unresolved_references() -> None:
    half = substitute(Template((EDGE, " and ", ADDR)), lambda ref: "edge-1" if ref == EDGE else ref)
    assert half == Template(("edge-1", " and ", ADDR))


@pytest.mark.parametrize(("answer", "text"), [(True, "x-true"), (7, "x-7"), ([], "x-[]"), ("a", "x-a")])
def test_values_in_text_are_rendered_as_json(answer: object, text: str) -> None:
    assert substitute(Template(("x-", EDGE)), lambda ref: answer) == text


def test_values_in_a_json_document_are_rendered_as_json() -> None:
    waiting = JsonTemplate(('{"a": ', EDGE, ', "b": ', Template(("x-", ADDR)), "}"))
    assert list(references(waiting)) == [EDGE, ADDR]
    half = substitute(waiting, lambda ref: True if ref == EDGE else ref)
    assert half == JsonTemplate(('{"a": ', "true", ', "b": ', Template(("x-", ADDR)), "}"))
    assert substitute(half, lambda ref: '"') == '{"a": true, "b": "x-\\""}'


def test_secrets_in_maps_and_lists_are_revealed() -> None:
    assert reveal({"a": [Secret("x", "env:X")]}) == {"a": ["x"]}


def test_a_nested_secret_is_found() -> None:
    assert has_secret({"a": [{"b": Secret("x", "env:X")}]})


def test_secrets_are_listed_as_often_as_they_occur() -> None:
    one, other = Secret("x", "env:X"), Secret("y", "env:Y")
    assert list(secrets_in({"a": [{"b": one}, "text", 1, None], "c": (other, one), "d": EDGE})) == [one, other, one]


def test_the_order_of_keys_does_not_change_the_canonical_form() -> None:
    assert (
        canonical({"b": 1, "a": [True, None]}) == canonical({"a": [True, None], "b": 1}) == b'{"a":[true,null],"b":1}'
    )


def test_lone_surrogates_have_different_canonical_forms() -> None:
    assert canonical("\ud800") != canonical("\ud801")


def test_true_and_one_have_different_digests() -> None:
    assert digest(True) != digest(1)


def test_the_digest_of_a_plain_value_does_not_depend_on_the_salt() -> None:
    assert digest("x", "one") == digest("x", "two")


def test_the_digest_of_a_secret_depends_on_the_salt() -> None:
    secret = Secret("hunter2", "env:PASSWORD")
    assert digest(secret, "one") != digest(secret, "two")


def test_the_digest_of_a_secret_is_not_that_of_its_text() -> None:
    assert digest(Secret("hunter2", "env:PASSWORD"), "one") != digest("hunter2", "one")


def test_a_lone_surrogate_can_be_a_salt() -> None:
    assert len(digest(Secret("hunter2", "env:PASSWORD"), "\ud800")) == 10
