"""A snapshot with a value in each field is written and read; a file of another form is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.languages.yaml import scalars
from reconciler.model.address import Address
from reconciler.model.snapshot import Binding, Listing, Live, Snapshot
from reconciler.model.value import Sealed, Secret
from reconciler.rendering.wire import snapshot_json
from reconciler.rendering.wire.codec import Malformed
from reconciler.rendering.wire.snapshot_json import SnapshotFile
from tests.rendering.test_text import compare

OFFICE, RULE = Address("IPPolicy", "office"), Address("IPPolicyRule", "lan")
SEALED = Sealed("env:A", {"prod": "0a", "dev": "0b"}, ["z", "y"], "salt")
BODY = {"id": "ipp_1", "$odd": {"$$": 1}, "secret": SEALED, "list": [SEALED, None, scalars.plain("1.10")], "n": 1.5}
TAKEN = SnapshotFile(
    Snapshot(
        {
            "IPPolicy": Listing((Live("IPPolicy", "ipp_1", BODY), Live("IPPolicy", "ipp_0", {}))),
            "IPPolicyRule": Listing((Live("IPPolicyRule", "ipr_1", {"a": scalars.plain("0x1F")}, "ipp_1"),)),
            "BotUser": Listing((), complete=False, why="it was denied", denied=True),
        },
        {OFFICE: Binding("ipp_1", {"description": "00"}, protect=True, replaces="ipp_0", adopted=True)},
        receipts=frozenset({"r2", "r1"}),
        undelivered=frozenset({"u2", "u1"}),
        overwritten={"intent": RULE},
        doubt="another account",
        elsewhere={("IPPolicy", "ipp_9"): "web", ("BotUser", "bot_1"): "ci"},
        is_remembered=True,
        once_ours=frozenset({("IPPolicy", "ipp_8"), ("BotUser", "bot_8")}),
    ),
    "prod",
    "https://api.example.com",
    "main",
    1000.5,
    "c0ffee",
    {"env:A": SEALED},
)


def test_a_snapshot_with_a_value_in_each_field_is_read_as_it_was_written() -> None:
    written = snapshot_json.encode(TAKEN)
    compare("snapshot.json.txt", json.dumps(written, indent=1) + "\n")
    read = snapshot_json.decode(json.loads(json.dumps(written)))
    assert read == TAKEN
    body = read.snapshot.listings["IPPolicy"].objects[0].body
    assert (body["list"][2].spelling, body["secret"].digests, body["secret"].salt) == ("1.10", SEALED.digests, "salt")
    assert [live.parent_id for live in read.snapshot.listings["IPPolicyRule"].objects] == ["ipp_1"]


def test_a_secret_with_its_text_is_not_written() -> None:
    for body in ({"a": Secret("hunter2", "env:A")}, {"a": [{"b": Secret("hunter2", "env:A")}]}):
        listings = {"IPPolicy": Listing((Live("IPPolicy", "ipp_1", body),))}
        with pytest.raises(Malformed, match="must not be written to a file"):
            snapshot_json.encode(replace(TAKEN, snapshot=Snapshot(listings)))


PLACEHOLDER = {"source": "env:A", "salt": "s", "spellings": ["x"], "digests": {"prod": "0a"}}


def refuse(**changes: Any) -> str:
    content = json.loads(json.dumps(snapshot_json.encode(TAKEN)))
    with pytest.raises(Malformed) as error:
        snapshot_json.decode({**content, **changes})
    return str(error.value)


def with_body(body: object) -> dict[str, Any]:
    item = {"id": "ipp_1", "parent": None, "body": body}
    return {"listings": {"IPPolicy": {"complete": True, "why": "", "denied": False, "objects": [item]}}}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"format": "reconciler plan"}, "it is not a snapshot file"),
        ({"version": 1}, "it is a snapshot of version 1, not 2"),
        ({"version": 3}, "it is a snapshot of version 3, not 2"),
        ({"version": None}, "it is a snapshot of version None, not 2"),
        ({"more": 1}, "_content: unexpected or missing keys"),
        (with_body([]), "an object has no body"),
        (with_body("x"), "an object has no body"),
        (with_body({"$$sealed": PLACEHOLDER}), "an object has no body"),
        (with_body({"a": {"$$sealed": 1}}), "the placeholder of a secret is malformed"),
        (with_body({"a": {"$$number": "x"}}), "'x' is not a number"),
        ({"secrets": {"env:A": "x"}}, "the placeholder of a secret is malformed"),
        (
            {"secrets": {"env:A": {"$$sealed": {**PLACEHOLDER, "source": 1}}}},
            "the placeholder of a secret is malformed",
        ),
        ({"secrets": {"env:A": {"$$sealed": {**PLACEHOLDER, "salt": 1}}}}, "the placeholder of a secret is malformed"),
        (
            {"secrets": {"env:A": {"$$sealed": {**PLACEHOLDER, "digests": []}}}},
            "the placeholder of a secret is malformed",
        ),
        (
            {"secrets": {"env:A": {"$$sealed": {**PLACEHOLDER, "spellings": [1]}}}},
            "the placeholder of a secret is malformed",
        ),
        (
            {"secrets": {"env:A": {"$$sealed": {**PLACEHOLDER, "digests": {"a": 1}}}}},
            "the placeholder of a secret is malformed",
        ),
        (
            with_body({"$secret": {"source": "env:A", "digest": "0"}}),
            "_content: _listing: _object: the secret of env:A must not be in a snapshot",
        ),
    ],
)
def test_a_damaged_snapshot_is_refused(changes: dict[str, Any], why: str) -> None:
    assert refuse(**changes) == why


def test_a_key_of_the_platform_is_no_mark() -> None:
    """An object of the platform may have any keys."""
    read = snapshot_json.decode(
        {**snapshot_json.encode(TAKEN), **with_body({"$$sealed": 1, "$$number": "1", "$$$$number": "1"})}
    )
    assert read.snapshot.listings["IPPolicy"].objects[0].body == {"$sealed": 1, "$number": "1", "$$number": "1"}
