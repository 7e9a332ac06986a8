"""The owner record of every kind fits into metadata with all fields set, and leaves room for the user's text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler import kinds
from reconciler.engine import requests
from reconciler.engine.ports import Refused
from reconciler.engine.requests import ResolvedValues
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.canonical import canonical_spec, collect_applied, digest_sources
from reconciler.model.change import ChangedBy
from reconciler.model.fields.annotations import Sensitive, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.owner_record import LIMIT, MOST, Owner, fit, read, write
from reconciler.model.plan import Call, OwnerDraft, Plan, Verb
from reconciler.model.value import Secret, reveal
from reconciler.planning.comparing.canonical_fields import body_value
from reconciler.project.manifests.checks.metadata import check_metadata
from tests.harness import builders

STACK = "s" * 63  # the longest name
NAME = "n" * 100
ID = "edghtsrt_" + "0" * 27
KINDS = [kind for kind in kinds.list_planned() if kind.keeps_owner]
ROUTE = kinds.get("HTTPSEdgeRoute")

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
each_form = pytest.mark.parametrize("form", ["%s", '{"a": "%s"}', '{"a": "%s"}\n'], ids=["text", "JSON", "line"])


def fullest(fields: tuple[Field, ...]) -> dict[str, Any]:
    """A value other than the default for every field, including fields that exclude each other."""
    return {field.name: _some(field) for field in fields if field.name != "metadata"}


def _some(field: Field) -> Any:
    match field.shape:
        case Shape.OBJECT:
            return fullest(field.fields)
        case Shape.LIST if field.item is not None:
            return [_some(field.item)]
        case Shape.MAP:
            return {"some": "some"}
        case Shape.FLAG:
            return not field.default
        case Shape.INTEGER | Shape.NUMBER:
            return 7
    return Secret("some", "env:SOME") if Sensitive in field else "some"


def leaves(fields: tuple[Field, ...], above: str = "") -> Iterator[str]:
    for field in fields:
        if field.shape is Shape.OBJECT:
            yield from leaves(field.fields, f"{above}{field.name}.")
        elif field.name not in ("metadata", str(ROUTE.parent and ROUTE.parent.field)):
            yield above + field.name


def write_metadata(kind: Kind, text: str) -> str:
    """The metadata that the engine sends for an object with all fields that replaces another."""
    address = Address(kind.name, NAME)
    due = collect_applied(kind, canonical_spec(kind, {**fullest(kind.fields), "metadata": text}))
    sources = digest_sources(kind, fullest(kind.fields))
    draft = OwnerDraft(
        address, text, applied=due, protect=True, pending=kind.one_time is not None, replaces=ID, sources=sources
    )
    call = Call(f"create {address}", address, Verb.CREATE, kind.path, owner=draft)
    known = ResolvedValues(Plan(STACK))
    record = requests.make_owner(draft, known, kind, stack=STACK, intent="i" * 16)
    body = requests.make_body(call, known, kind, record)
    assert body is not None
    return str(body["metadata"])


@each_form
@each_kind
def test_the_fullest_record_fits_beside_the_longest_text_for_every_kind(kind: Kind, form: str) -> None:
    text = form % ("x" * (LIMIT - MOST - len(form % "")))
    metadata = write_metadata(kind, text)
    assert len(metadata.encode()) <= LIMIT
    again, record = read(metadata)
    assert again == text
    assert record is not None
    assert (record.stack, record.address, record.replaces) == (STACK, Address(kind.name, NAME), ID)
    fields = collect_applied(kind, canonical_spec(kind, {**fullest(kind.fields), "metadata": text}))
    assert {path.partition(".")[0] for path in record.applied} == {path.partition(".")[0] for path in fields}


def test_the_fullest_kind_exceeds_the_limit_without_bundled_digests() -> None:
    due = collect_applied(ROUTE, canonical_spec(ROUTE, fullest(ROUTE.fields)))
    assert len(due) > 90
    full = Owner(STACK, Address("HTTPSEdgeRoute", NAME), "i" * 16, dict.fromkeys(due, "0" * 10))
    assert len(write("", full)) > LIMIT


@each_kind
def test_no_more_digests_are_bundled_than_necessary(kind: Kind) -> None:
    due = collect_applied(kind, canonical_spec(kind, fullest(kind.fields)))
    full = Owner(STACK, Address(kind.name, NAME), "i" * 16, dict.fromkeys(due, "0" * 10))
    fits = len(write("", full)) <= LIMIT
    assert (fit("", full, kind) == full) is fits
    if not fits:
        assert any(path in fit("", full, kind).applied for path in due if "." in path)


@each_form
@each_kind
def test_validate_refuses_metadata_from_the_first_byte_that_does_not_fit(kind: Kind, form: str) -> None:
    """Accepted metadata always fits in later writes of the engine; refused metadata does not in some of them."""

    def wrong(size: int) -> list[str]:
        spec = {**fullest(kind.fields), "metadata": form % ("x" * (size - len(form % "")))}
        where = builders.declare(f"{kind.name}/{NAME}", spec, protect=True)
        return [f"{found.text}; {found.remedy}" for found in check_metadata({kind: [where]}, STACK)]

    (problem,) = wrong(LIMIT)
    room = int(problem.partition("; ")[2].partition(" ")[0])
    assert (
        problem
        == f"has {LIMIT} bytes; {room} are available beside the owner record; shorten it by {LIMIT - room} bytes"
    )
    assert room >= LIMIT - MOST
    assert wrong(room) == []
    assert wrong(room + 1) != []
    assert len(write_metadata(kind, form % ("x" * (room - len(form % "")))).encode()) == LIMIT
    with pytest.raises(Refused, match="shorten it by 1 bytes"):
        write_metadata(kind, form % ("x" * (room + 1 - len(form % ""))))


# --- which side changed ---------------------------------------------------------------------------------------------


def _route(**login: Any) -> dict[str, Any]:
    spec = {name: value for name, value in fullest(ROUTE.fields).items() if name not in ("oidc", "oauth")}
    return {**spec, "edge_id": "edghts_1", "saml": {**spec["saml"], **login}}


def read_sides(was: dict[str, Any], now: dict[str, Any], live_spec: dict[str, Any]) -> dict[str, ChangedBy]:
    """Which side changed each field of a route to which `was` was applied with bundled digests."""
    owner = builders.record("HTTPSEdgeRoute/a", was)
    for field in ROUTE.fields:
        owner = owner._replace(applied=owners.fold(field, owner.applied))
    assert "saml.*" in owner.applied
    body = {name: reveal(body_value(ROUTE.by_name[name], value)) for name, value in live_spec.items()}
    live = builders.live("HTTPSEdgeRoute", "edghtsrt_1", body, owner=owner, parent="edghts_1")
    plan = builders.make_plan(builders.declare("HTTPSEdgeRoute/a", now), seen=builders.snapshot(live))
    assert plan.errors == ()
    return {field.path: field.changed_by for change in plan.changes for field in change.fields}


WAS = _route()
OTHER = _route(force_authn=False)


@pytest.mark.parametrize(
    ("now", "live", "expected"),
    [
        (WAS, WAS, {}),
        (WAS, OTHER, {"saml.force_authn": ChangedBy.PLATFORM}),
        (OTHER, WAS, {"saml.force_authn": ChangedBy.GIT}),
        (OTHER, OTHER, {}),
        (
            _route(maximum_duration=1),
            OTHER,
            {"saml.force_authn": ChangedBy.BOTH, "saml.maximum_duration": ChangedBy.BOTH},
        ),
        ({**WAS, "saml": None}, WAS, {"saml": ChangedBy.GIT}),
        (WAS, {**WAS, "saml": None}, {"saml": ChangedBy.PLATFORM}),
        (_route(cookie_prefix="other"), WAS, {"saml.cookie_prefix": ChangedBy.GIT}),
        (WAS, _route(cookie_prefix="other"), {"saml.cookie_prefix": ChangedBy.PLATFORM}),
    ],
    ids=["same", "platform", "git", "alike", "both", "removed", "vanished", "choice in git", "choice on the platform"],
)
def test_bundled_digests_show_which_side_changed_a_field(
    now: dict[str, Any], live: dict[str, Any], expected: dict[str, ChangedBy]
) -> None:
    found = read_sides(WAS, now, live)
    if "saml" in expected or (live.get("saml") is None and expected):
        assert {side for path, side in found.items() if path.startswith("saml")} == set(expected.values())
    else:
        assert found == expected


def test_digests_of_server_defaults_are_never_bundled() -> None:
    """Removing a line from a manifest resets only applied fields."""
    choices = [path for path in leaves(ROUTE.fields) if _is_choice(path)]
    digests = dict.fromkeys(leaves(ROUTE.fields), "0" * 10)
    for field in ROUTE.fields:
        digests = owners.fold(field, digests)
    assert choices
    assert digests.keys() >= set(choices)


def _is_choice(path: str) -> bool:
    fields, found = ROUTE.fields, False
    for name in path.split("."):
        field = next(field for field in fields if field.name == name)
        found, fields = ServerDefault in field, field.fields
    return found
