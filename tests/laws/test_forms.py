"""What a form reads by itself, pydantic accepts with the same value; and what is plainly valid needs no pydantic."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.kinds import read_only
from reconciler.model.address import Address
from reconciler.model.fields import judge
from reconciler.model.fields.form import Form
from reconciler.model.kind import Kind
from reconciler.model.value import PENDING, Ref, Sealed, Secret, Template
from reconciler.project.documents.manifest_document import ManifestDocument
from reconciler.project.fleets.fleet_file import FleetFile
from reconciler.project.fleets.members import MemberList
from reconciler.project.policies.load import PolicyDocument
from reconciler.project.settings.project_file import ProjectFile
from tests.harness.tiers import examples
from tests.kinds import manifests, pems

KINDS = kinds.declarable()
DOCUMENTS = (FleetFile, ManifestDocument, MemberList, PolicyDocument, ProjectFile)
FORMS = [
    *DOCUMENTS,
    *(kind.spec for kind in KINDS),
    *dict.fromkeys(kind.read for kind in (*KINDS, *read_only.KINDS)),
]
TEXTS = [
    *("", "a", "a.example.com", "*.example.com:443", "https://a.internal", "tcp://", "10.0.0.0/8", "1.2", "90d", "eu"),
    *("2026-01-01T00:00:00Z", "2026-12-31", "allow", "text/plain", "Kind/name", "Kind/name.field", "owner/name"),
    *("x" * 300, "é" * 200, "🚇", "\ud800", "a\0b", "a\nb", pems.certificate("a"), pems.private_key("a")),
    *("on_http_request: [{actions: [{type: deny}]}]", "{", "ssh-ed25519 AAAA", "arn:aws:iam::123456789012:role/a"),
]


class Word(str):
    """A text of a class of its own."""

    __slots__ = ()


class Number(int):
    """A number of a class of its own."""


ODD = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 99, 443, 2**31, 2**53, 2**63, 10**30, 0.0, 0.5, 1.0, -0.0, 1e300]),
    st.sampled_from([float("inf"), Word("a"), Number(3), b"a", (), ("a",), {1: 2}, {"\ud800": 1}, [None]]),
    st.sampled_from([Ref(Address("IPPolicy", "a")), Template(()), PENDING, Sealed("env:A")]),
    st.sampled_from(TEXTS).map(lambda text: Secret(text, "env:A")),
    st.sampled_from(TEXTS),
    st.just([]),
    st.just({}),
)


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values that fit the type, or nearly."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return values_of(args[0])
    if origin is list:
        return st.lists(values_of(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(st.sampled_from(TEXTS), values_of(args[1]), max_size=2)
    if origin is Literal:
        return st.sampled_from([*args, "other"])
    if args:  # a union
        return st.one_of(*map(values_of, args))
    if isinstance(annotation, type) and issubclass(annotation, Form):
        return values_of_form(annotation)
    plain = {str: st.sampled_from(TEXTS), int: st.integers(-1, 2**33), float: st.floats(), bool: st.booleans()}
    return plain.get(annotation, ODD)


def values_of_form(form: type[Form]) -> st.SearchStrategy[dict[str, Any]]:
    """Maps with the required fields, and some of the others."""
    fields = form.model_fields
    drawn = {name: _often(values_of(field.written)) for name, field in fields.items()}
    required = {name: drawn[name] for name, field in fields.items() if field.is_required()}
    optional = {name: drawn[name] for name in fields if name not in required}
    some = st.fixed_dictionaries(required, optional=optional)
    changed = st.sampled_from(["", "", "", "", "unknown", *fields])
    return st.tuples(some, changed).map(lambda pair: _change(*pair))


def _often(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 7).flatmap(lambda number: values if number else ODD)


def _change(written: dict[str, Any], name: str) -> dict[str, Any]:
    if name == "unknown":
        return {**written, "unknown": 1}
    return {key: item for key, item in written.items() if key != name}


def describe(value: Any) -> Any:
    """A value with its types, by which equal values of different types differ."""
    if isinstance(value, Form):
        return type(value), [(name, describe(item)) for name, item in value], value.model_fields_set
    if isinstance(value, list | tuple):
        return type(value), [*map(describe, value)]
    if isinstance(value, dict):
        return type(value), [(describe(key), describe(item)) for key, item in value.items()]
    if isinstance(value, Secret) and not isinstance(value, Sealed):
        return type(value), value.source, value.reveal()
    return type(value), repr(value)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_pydantic_reads_the_same_value_from_all_that_a_form_reads_by_itself(form: type[Form]) -> None:
    @given(values_of_form(form))
    @settings(max_examples=examples(300), suppress_health_check=list(HealthCheck), deadline=None)
    def check(written: dict[str, Any]) -> None:
        try:
            read = form.model_read(written)
        except (ValueError, AssertionError):
            return
        assert describe(read) == describe(judge.judge(form, written))

    check()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck), deadline=None)
def test_an_example_with_another_value_is_read_as_pydantic_reads_it(kind: Kind, data: st.DataObject) -> None:
    written = data.draw(_with_another_value(manifests.spec(kind)))
    try:
        read = kind.spec.model_read(written)
    except (ValueError, AssertionError):
        return
    assert describe(read) == describe(judge.judge(kind.spec, written))


def _with_another_value(value: Any) -> st.SearchStrategy[Any]:
    if isinstance(value, dict) and value:
        return st.sampled_from([*value]).flatmap(
            lambda name: _with_another_value(value[name]).map(lambda item: {**value, name: item})
        )
    if isinstance(value, list) and value:
        return _with_another_value(value[0]).map(lambda item: [item, *value[1:]])
    return st.one_of(ODD, st.just(value))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_example_of_a_kind_is_read_without_pydantic(kind: Kind) -> None:
    written = manifests.spec(kind)
    assert describe(kind.spec.model_read(written)) == describe(judge.judge(kind.spec, written))


def test_documents_with_each_of_their_sections_are_read_without_pydantic() -> None:
    written = {
        "version": 1,
        "stack": "shop",
        "platform": {"base_url": "https://api.example.com", "api_key": Secret("k", "env:KEY"), "profile": "ngrok"},
        "agent": {"base_url": "http://127.0.0.1:4040"},
        "manifests": ["manifests"],
        "limits": {"requests_per_minute": 100, "concurrency": 4, "settle_seconds": 3},
        "guards": {"max_delete_percent": 10, "require_approval": ["exposes"]},
        "drift": {"ignore": [{"match": "Kind/name", "until": "2026-12-31", "reason": "known"}]},
        "dns": {"zones": ["example.com"]},
        "health": {"expires_within": "10d"},
        "variables": {"region": "eu"},
        "store": None,
    }
    read = ProjectFile.model_read(written)
    assert read.limits.settle_seconds == 3.0
    assert describe(read) == describe(judge.judge(ProjectFile, written))
    document = {"kind": "IPPolicy", "name": "a", "lifecycle": {"protect": True}, "spec": {"description": "a"}}
    assert describe(ManifestDocument.model_read(document)) == describe(judge.judge(ManifestDocument, document))
