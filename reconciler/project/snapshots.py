"""Snapshot files: the account as it was seen, so that a plan can be made where there is no key.

Whoever takes one signs it with a private key, and whoever reads it needs the public one only, which lies in the
repository (`snapshots.public_key` in the project file): a pipeline that runs for strangers holds nothing worth taking.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Json, Secret
from reconciler.rendering.wire import snapshot_json
from reconciler.rendering.wire.codec import Malformed
from reconciler.rendering.wire.snapshot_json import SnapshotFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_AHEAD = 300  # seconds: clocks differ, but not by more
_SCHEME = "ed25519:"
_MAKE_ONE = "create a key with `openssl genpkey -algorithm ed25519`"


def write(taken: SnapshotFile, key: Secret | None) -> str:
    """The text of a file, signed if there is a private key (PEM)."""
    content = snapshot_json.encode(taken)
    signature = None
    if key is not None:
        signature = _SCHEME + base64.b64encode(_load_private_key(key).sign(_canonical_bytes(content))).decode()
    return json.dumps(content | {"integrity": _integrity(content), "signature": signature}, indent=1) + "\n"


def read(text: str, file: str, public_key: str | None) -> SnapshotFile:
    """What was taken. Rejected if the file was changed, or the public key does not vouch for it."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise _reject(file, "it is not JSON, or is truncated", _TAKE) from None
    if not isinstance(content, dict) or content.get("format") != snapshot_json.FORMAT:
        raise _reject(file, "it is not a snapshot file", _TAKE)
    integrity, signature = content.pop("integrity", None), content.pop("signature", None)
    if integrity != _integrity(content):
        raise _reject(file, "it was changed after it was written", _TAKE)
    if public_key is not None:
        _verify(file, content, signature, public_key)
    try:
        return snapshot_json.decode(content)
    except Malformed as wrong:
        raise _reject(file, str(wrong), _TAKE) from None


def refuse_stale(taken: SnapshotFile, file: str, stack: str, account: str | None, now: float, max_age: int) -> None:
    """Rejected if it is of another stack or account, or too old (seconds)."""
    if taken.stack != stack:
        raise _reject(file, f"it belongs to the stack {taken.stack}, not {stack}", _TAKE)
    if account is not None and taken.account != account:
        raise _reject(file, f"it belongs to the account {taken.account or '(no name)'}, not {account}", _TAKE)
    age = now - taken.at
    if age < -_AHEAD:
        raise _reject(file, "its time is in the future", "check the clock, or take a new snapshot")
    if age > max_age:
        raise _reject(file, f"it is {format_age(age)} old", f"{_TAKE}, or allow more with --max-age")


def format_age(seconds: float) -> str:
    """`3 hours`, of an age."""
    for size, noun in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if (number := int(max(seconds, 0) // size)) > 0:
            return f"{number} {noun}{'' if number == 1 else 's'}"
    return "less than a minute"


def check_private_key(key: Secret) -> None:
    """Rejected if nothing can be signed with it."""
    _load_private_key(key)


def check_public_key(text: str) -> str | None:
    """What is wrong with a public key, as `what; what to do`."""
    try:
        _load_public_key(text)
    except ValueError:
        return f"is not an Ed25519 public key; {_MAKE_ONE}, and use the public key that `openssl pkey -pubout` prints"
    return None


_TAKE = "take a new one with `reconciler snapshot`"


def _verify(file: str, content: Mapping[str, Json], signature: Json, public_key: str) -> None:
    from cryptography.exceptions import InvalidSignature

    if not isinstance(signature, str):
        raise _reject(file, "it is not signed", "take a new one with RECONCILER_SNAPSHOT_KEY set")
    try:
        signed = base64.b64decode(signature.removeprefix(_SCHEME), validate=True)
        _load_public_key(public_key).verify(signed, _canonical_bytes(content))
    except (InvalidSignature, binascii.Error, ValueError):
        remedy = "take a new one, or set `snapshots.public_key` to the public key of RECONCILER_SNAPSHOT_KEY"
        raise _reject(file, "its signature does not match the project's public key", remedy) from None


def _load_private_key(key: Secret) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        found = load_pem_private_key(key.reveal().strip().encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        what = f"the value of {key.source} is not an Ed25519 private key in PEM"
        raise Rejected([Problem(what, _MAKE_ONE, code="invalid-signing-key")])
    return found


def _load_public_key(text: str) -> Ed25519PublicKey:
    """ValueError if it is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        found = load_pem_public_key(text.strip().encode())
    except UnsupportedAlgorithm as wrong:
        raise ValueError(str(wrong)) from None
    if not isinstance(found, Ed25519PublicKey):
        raise ValueError("another sort of key")
    return found


def _integrity(content: Mapping[str, Json]) -> str:
    return f"blake2b:{hashlib.blake2b(_canonical_bytes(content), digest_size=16).hexdigest()}"


def _canonical_bytes(content: Mapping[str, Json]) -> bytes:
    """What is signed; it begins with what it is, so that no other signature of the key is one of these."""
    return f"{snapshot_json.FORMAT}\n".encode() + json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _reject(file: str, what: str, remedy: str) -> Rejected:
    return Rejected([Problem(f"{file} cannot be used: {what}", remedy, code="unusable-snapshot")])
