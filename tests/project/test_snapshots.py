"""Snapshot files: which ones are read, and which signatures are accepted."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from msgspec.structs import replace

from reconciler.model.problem import Rejected
from reconciler.model.value import Secret
from reconciler.project import snapshots
from reconciler.rendering.wire.snapshot_json import SnapshotFile
from tests.harness.builders import live, snapshot

TAKEN = SnapshotFile(snapshot(live("BotUser", "bot_1", {"name": "é"})), "prod", "https://api", "main", 1000.0, "c0ffee")


def pair(key: Ed25519PrivateKey) -> tuple[Secret, str]:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return Secret(private, "env:KEY"), public


PRIVATE, PUBLIC = pair(Ed25519PrivateKey.generate())
ELSE = generate_private_key(SECP256R1())
EC_PRIVATE = ELSE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
EC_PUBLIC = ELSE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def refusal(text: str, public_key: str | None = PUBLIC) -> str:
    with pytest.raises(Rejected) as rejected:
        snapshots.read(text, "s.json", public_key)
    (problem,) = rejected.value.problems
    assert problem.code == "unusable-snapshot"
    return str(problem)


def test_a_signed_snapshot_is_read_with_its_public_key() -> None:
    text = snapshots.write(TAKEN, PRIVATE)
    assert text.endswith("}\n")
    assert snapshots.read(text, "s.json", PUBLIC) == TAKEN
    assert snapshots.read(text, "s.json", f"\n{PUBLIC}\n") == TAKEN
    assert snapshots.read(text, "s.json", None) == TAKEN
    assert snapshots.read(snapshots.write(TAKEN, replace_key(f"\n {PRIVATE.reveal()}\n")), "s.json", PUBLIC) == TAKEN
    assert "its signature does not match the project's public key; take a new one, or set `snapshots" in refusal(
        text, pair(Ed25519PrivateKey.generate())[1]
    )


def replace_key(text: str) -> Secret:
    return Secret(text, "env:KEY")


def test_an_unsigned_snapshot_is_read_only_if_no_signature_is_required() -> None:
    text = snapshots.write(TAKEN, None)
    assert snapshots.read(text, "s.json", None) == TAKEN
    assert refusal(text) == ("s.json cannot be used: it is not signed; take a new one with RECONCILER_SNAPSHOT_KEY set")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("stack", "dev", "it was changed after it was written"),
        ("integrity", "blake2b:00", "it was changed after it was written"),
        ("integrity", "blake2b:zz", "it was changed after it was written"),
        ("format", "another", "it is not a snapshot file"),
        ("signature", None, "it is not signed"),
        ("signature", 3, "it is not signed"),
        ("signature", "ed25519:", "its signature does not match"),
        ("signature", "ed25519:#", "its signature does not match"),
        ("signature", "ed25519:AAAA", "its signature does not match"),
    ],
)
def test_a_snapshot_that_was_changed_is_refused(name: str, value: object, problem: str) -> None:
    assert problem in refusal(json.dumps({**json.loads(snapshots.write(TAKEN, PRIVATE)), name: value}))


@pytest.mark.parametrize("text", ["", "{", '"text"', "[]", "3", "{}", "[" * 100_000])
def test_a_file_of_another_format_is_no_snapshot(text: str) -> None:
    assert refusal(text, None).endswith("; take a new one with `reconciler snapshot`")


def test_a_signature_of_other_content_is_refused() -> None:
    """With the checksum of the changed content, which anyone who changes the file can compute."""
    signed = json.loads(snapshots.write(TAKEN, PRIVATE))
    other = json.loads(snapshots.write(replace(TAKEN, stack="dev"), None))
    assert "its signature does not match" in refusal(json.dumps({**other, "signature": signed["signature"]}))


def test_a_snapshot_with_content_that_is_not_valid_is_refused() -> None:
    text = snapshots.write(replace(TAKEN, stack=3), None)
    assert "s.json cannot be used: " in refusal(text, None)


@pytest.mark.parametrize(
    ("stack", "account", "now", "problem"),
    [
        ("prod", "main", 1000.0, ""),
        ("prod", None, 1000.0, ""),
        ("prod", "main", 1060.0, ""),
        ("prod", "main", 700.0, ""),
        ("dev", "main", 1000.0, "it belongs to the stack prod, not dev; take a new one"),
        ("prod", "other", 1000.0, "it belongs to the account main, not other; take a new one"),
        ("prod", "main", 1060.1, "it is 1 minute old; take a new one with `reconciler snapshot`, or allow more with -"),
        ("prod", "main", 699.9, "its time is in the future; check the clock, or take a new snapshot"),
    ],
)
def test_a_snapshot_of_another_stack_account_or_time_is_refused(
    stack: str, account: str | None, now: float, problem: str
) -> None:
    if not problem:
        snapshots.refuse_stale(TAKEN, "s.json", stack, account, now, 60)
        return
    with pytest.raises(Rejected) as rejected:
        snapshots.refuse_stale(TAKEN, "s.json", stack, account, now, 60)
    assert f"s.json cannot be used: {problem}" in str(rejected.value)


def test_an_account_without_a_name_is_described() -> None:
    with pytest.raises(Rejected, match=r"the account \(no name\), not main"):
        snapshots.refuse_stale(replace(TAKEN, account=None), "s.json", "prod", "main", 1000.0, 60)


@pytest.mark.parametrize("text", ["", "text", PUBLIC, EC_PRIVATE])
def test_only_a_private_key_for_signatures_signs(text: str) -> None:
    snapshots.check_private_key(PRIVATE)
    with pytest.raises(Rejected) as rejected:
        snapshots.check_private_key(Secret(text, "env:KEY"))
    assert "the value of env:KEY is not an Ed25519 private key in PEM; create a key with" in str(rejected.value)
    assert rejected.value.problems[0].code == "invalid-signing-key"


@pytest.mark.parametrize("text", ["", "text", PRIVATE.reveal(), EC_PUBLIC])
def test_only_a_public_key_for_signatures_verifies(text: str) -> None:
    assert snapshots.check_public_key(PUBLIC) is None
    assert str(snapshots.check_public_key(text)).startswith("is not an Ed25519 public key; create a key with `openssl")
    assert "its signature does not match" in refusal(snapshots.write(TAKEN, PRIVATE), text)
