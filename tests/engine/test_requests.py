"""Requests of a call: body, owner record, intent, references, and secrets that errors do not show."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine import requests
from reconciler.engine.ports import Refused
from reconciler.engine.requests import ResolvedValues
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.manifest import Delivery
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, Observed, OwnerDraft, Plan, Verb
from reconciler.model.snapshot import Place
from reconciler.model.value import Ref, Secret, Template, digest, reveal


@pytest.mark.parametrize(
    ("kind", "before"), [("BotUser", frozenset({"old"})), ("AgentTunnel", frozenset()), ("AgentEndpoint", frozenset())]
)
def test_an_intent_lists_no_earlier_ids_if_the_name_is_the_id(kind: str, before: frozenset[str]) -> None:
    """A replaced tunnel has the name of the former one."""
    address = Address(kind, "x")
    plan = Plan("prod", observed={address: Observed("old", {})})
    call = Call(f"create {address}", address, Verb.CREATE, kinds.get(kind).path)
    created = requests.make_intent("i", call, {"name": "old"}, kinds.get(kind), plan, kinds.get(kind).path)
    assert created.before == before
    assert created.identity == {"name": "old"}


EDGE, CREDENTIAL = Address("TLSEdge", "e"), Address("TunnelCredential", "c")


@pytest.mark.parametrize(
    "seen",
    [
        {"observed": {Address("BotUser", "other"): Observed("bot_9", {})}},
        {"unmanaged": (("BotUser", "bot_9"), ("Vault", "v_1"))},
        {"elsewhere": {"other": (("BotUser", "bot_9"), ("EventSource", "esb_1/x.v0"))}},
    ],
    ids=["managed", "unmanaged", "of another stack"],
)
def test_an_intent_lists_the_ids_of_all_objects_of_the_plan(seen: dict[str, Any]) -> None:
    """For a kind without owner records, only ids distinguish a new object from another one of the same name."""
    assert requests.ids_in_plan(Plan("prod", **seen), "BotUser") == {"bot_9"}


def test_an_intent_names_where_the_secret_will_be_delivered() -> None:
    place = Place("to_file", "secrets/agent.token")
    call = Call("create", CREDENTIAL, Verb.CREATE, "/credentials", deliver={"token": Delivery("to_file", place.path)})
    created = requests.make_intent("i", call, {}, kinds.get("TunnelCredential"), Plan("prod"), "/credentials", place)
    assert created.place == place


def test_a_reference_resolves_to_the_latest_response_and_never_to_a_token() -> None:
    values = ResolvedValues(Plan("prod", resolved={f"{CREDENTIAL}.id": "cr_old", f"{CREDENTIAL}.acl": "planned"}))
    kind = kinds.get("TunnelCredential")
    values.learn(CREDENTIAL, kind, {"id": "cr_1", "description": "first", "uri": "u", "token": "hush"})
    values.learn(CREDENTIAL, kind, {"id": "cr_1", "description": "second"})
    outputs = ("id", "description", "uri", "acl")
    assert [values.reference(Ref(CREDENTIAL, output)) for output in outputs] == ["cr_1", "second", "u", "planned"]
    with pytest.raises(Refused):
        values.reference(Ref(CREDENTIAL, "token"))


def owner_call(text: Any) -> Call:
    return Call("update", EDGE, Verb.UPDATE, "/edges/tls/e", body={}, owner=OwnerDraft(EDGE, text=text))


def write_metadata(text: Any) -> Any:
    call, values, kind = owner_call(text), ResolvedValues(Plan("prod")), kinds.get("TLSEdge")
    assert call.owner is not None
    record = requests.make_owner(call.owner, values, kind, stack="prod", intent="intent-of-16-bytes"[:16])
    return (requests.make_body(call, values, kind, record) or {})["metadata"]


def test_metadata_with_a_secret_is_secret_until_it_is_sent() -> None:
    written = write_metadata(Secret("hush", "env:X"))
    assert isinstance(written, Secret)
    assert owners.read(str(reveal(written)))[0] == "hush"


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_the_size_of_metadata_is_counted_in_bytes(letter: str) -> None:
    """With the largest text that leaves room for the record, and with one that is longer by one byte."""
    width = len(letter.encode())
    fits = next(size for size in range(owners.LIMIT // width, 0, -1) if _is_written(letter * size))
    assert width * fits > owners.LIMIT / 2
    assert owners.LIMIT - len(write_metadata(letter * fits).encode()) in range(width)
    with pytest.raises(Refused, match="shorten it by 1 bytes"):
        write_metadata(letter * fits + "x" * (owners.LIMIT - len(write_metadata(letter * fits).encode()) + 1))


def _is_written(text: str) -> bool:
    try:
        write_metadata(text)
    except Refused:
        return False
    return True


def test_a_secret_in_metadata_is_hidden_in_errors() -> None:
    plan = Plan("prod", calls=(owner_call(Secret("hush-hush", "env:X")), replace(owner_call("open"), id="other")))
    assert requests.make_redactor(plan).redact("hush-hush is no valid metadata") == "(secret) is no valid metadata"


def test_an_intent_of_a_kind_with_owner_records_lists_no_ids() -> None:
    call = Call("create", EDGE, Verb.CREATE, "/reserved_domains")
    plan = Plan("prod", unmanaged=(("ReservedDomain", "rd_1"),))
    created = requests.make_intent("i", call, {"domain": "a.example"}, kinds.get("ReservedDomain"), plan, "/x")
    assert (created.before, created.identity, created.path, created.stack) == (frozenset(), {}, "/x", "prod")


def test_empty_metadata_contains_the_owner_record_only() -> None:
    assert write_metadata(None) == write_metadata("")
    assert owners.read(write_metadata(None))[0] == ""


def test_the_locator_of_a_child_contains_the_decoded_id_of_its_parent() -> None:
    route = requests.make_locator(kinds.get("HTTPSEdgeRoute"), "/edges/https/edghts_1/routes", "edghtsrt_1")
    assert route == "edghts_1/edghtsrt_1"
    assert requests.make_locator(kinds.get("TLSEdge"), "/edges/tls", "edgtls_1") == "edgtls_1"
    locator = requests.make_locator(kinds.get("EventSource"), "/event_subscriptions/e%2F1/sources", "x.v0")
    assert locator == "e/1/x.v0"


def test_an_owner_record_contains_each_value_of_the_plan() -> None:
    draft = OwnerDraft(EDGE, applied={"description": "x"}, protect=True, pending=True, replaces="edgtls_7")
    created = requests.make_owner(draft, ResolvedValues(Plan("prod")), kinds.get("TLSEdge"), stack="prod", intent="i")
    assert created == Owner("prod", EDGE, "i", {"description": digest("x")}, True, True, "edgtls_7")


@pytest.mark.parametrize(("kind", "salt"), [("TLSEdge", "the-intent"), ("BotUser", "BotUser/x")])
def test_the_digest_of_a_secret_has_a_salt_that_the_next_plan_can_read(kind: str, salt: str) -> None:
    """A binding has no intent. With another salt each plan would show the secret as changed."""
    field, value = {"TLSEdge": "description", "BotUser": "name"}[kind], Secret("hush", "env:X")
    draft = OwnerDraft(Address(kind, "x"), applied={field: value})
    created = requests.make_owner(
        draft, ResolvedValues(Plan("prod")), kinds.get(kind), stack="prod", intent="the-intent"
    )
    assert created.applied == {field: digest(value, salt)}


def test_a_call_that_writes_nothing_has_no_body() -> None:
    call, values = Call("remove", EDGE, Verb.REMOVE, "/edges/tls/e/backend"), ResolvedValues(Plan("prod"))
    assert requests.make_body(call, values, kinds.get("TLSEdge"), None) is None
    assert requests.reveal_body(None) is None
    # A record without other fields is a body, as in the call that completes a credential.
    only_record = replace(owner_call("mine"), body=None)
    assert only_record.owner is not None
    record = requests.make_owner(only_record.owner, values, kinds.get("TLSEdge"), stack="prod", intent="i")
    body = requests.make_body(only_record, values, kinds.get("TLSEdge"), record) or {}
    assert list(body) == ["metadata"]
    assert owners.read(body["metadata"])[0] == "mine"


def test_a_list_field_of_a_map_is_sent_as_a_map_with_resolved_references() -> None:
    kind, address = kinds.get("WeightedBackend"), Address("WeightedBackend", "w")
    backends = [{"backend_id": Ref(EDGE), "weight": 3}, {"backend_id": "bkdhr_2", "weight": 0}]
    call = Call("create", address, Verb.CREATE, kind.path, body={"backends": backends, "description": "x"})
    body = requests.make_body(call, ResolvedValues(Plan("prod", resolved={f"{EDGE}.id": "bkdhr_1"})), kind, None)
    assert body == {"backends": {"bkdhr_1": 3, "bkdhr_2": 0}, "description": "x"}


def test_the_output_id_is_the_key_of_a_kind_without_id() -> None:
    values, source = ResolvedValues(Plan("prod")), Address("EventSource", "s")
    values.learn(source, kinds.get("EventSource"), {"type": "x.v0"})
    assert values.reference(Ref(source)) == "x.v0"


@pytest.mark.parametrize("answer", [None, "welcome", ["x"]])
def test_a_response_that_is_no_object_resolves_nothing(answer: Any) -> None:
    values = ResolvedValues(Plan("prod", resolved={f"{EDGE}.id": "edgtls_1"}))
    values.learn(EDGE, kinds.get("TLSEdge"), answer)
    assert values.reference(Ref(EDGE)) == "edgtls_1"


def test_a_reference_to_a_nested_output_resolves_to_the_inner_value() -> None:
    values = ResolvedValues(Plan("prod", resolved={f"{EDGE}.backend.labels.x": "planned"}))
    values.learn(EDGE, kinds.get("TLSEdge"), {"id": "edgtls_1", "backend": {"backend": {"id": "bkd_1"}, "labels": "x"}})
    assert values.reference(Ref(EDGE, "backend.backend.id")) == "bkd_1"
    assert values.reference(Ref(EDGE, "backend.labels.x")) == "planned"
    with pytest.raises(Refused, match=r"has a value for TLSEdge/e\.backend\.missing; plan again"):
        values.reference(Ref(EDGE, "backend.missing"))


def test_each_secret_of_a_plan_is_redacted_in_errors() -> None:
    inside = {"a": [Secret("in-a-list", "x")], "b": {"c": Secret("in-a-map", "x")}, "d": Template(("x", Ref(EDGE)))}
    calls = (
        Call("first", EDGE, Verb.UPDATE, "/x", body={"field": inside, "empty": Secret("", "x"), "number": 7}),
        replace(owner_call(Secret("in-metadata", "x")), body=None),
        Call("last", EDGE, Verb.DELETE, "/x"),
    )
    hide = requests.make_redactor(Plan("prod", calls=calls)).redact
    assert hide("in-a-list, in-a-map, in-metadata, 7") == "(secret), (secret), (secret), 7"
