"""Snapshot files: writes, signs, reads and verifies them. A snapshot allows a plan without an API key.

The file is signed with a private key and verified with the public key in the repository (`snapshots.public_key` in the
project file), so that a pipeline for untrusted contributions needs no secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from reconciler.model.json_text import write_json
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Json, Secret
from reconciler.rendering.text_tools import format_duration
from reconciler.rendering.wire import snapshot_json
from reconciler.rendering.wire.codec import Malformed
from reconciler.rendering.wire.snapshot_json import SnapshotFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_AHEAD = 300  # seconds: tolerance for clocks that differ
_SCHEME = "ed25519:"
_CREATE_KEY = "create a key with `openssl genpkey -algorithm ed25519`"


def write(taken: SnapshotFile, key: Secret | None) -> str:
    """Renders a snapshot file, signed if there is a private key (PEM)."""
    content = snapshot_json.encode(taken)
    signature = None
    if key is not None:
        signature = _SCHEME + base64.b64encode(_load_private_key(key).sign(_canonical_bytes(content))).decode()
    return write_json(content | {"integrity": _integrity(content), "signature": signature}, indent=1) + "\n"


def read(text: str, file: str, public_key: str | None) -> SnapshotFile:
    """Reads a snapshot file. Raises Rejected if it was changed, or its signature does not match `public_key`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise _reject(file, "it is not JSON, or is truncated", _RETAKE) from None
    if not isinstance(content, dict) or content.get("format") != snapshot_json.FORMAT:
        raise _reject(file, "it is not a snapshot file", _RETAKE)
    integrity, signature = content.pop("integrity", None), content.pop("signature", None)
    if integrity != _integrity(content):
        raise _reject(file, "it was changed after it was written", _RETAKE)
    if public_key is not None:
        _verify(file, content, signature, public_key)
    try:
        return snapshot_json.decode(content)
    except Malformed as wrong:
        raise _reject(file, str(wrong), _RETAKE) from None


def refuse_stale(taken: SnapshotFile, file: str, stack: str, account: str | None, now: float, max_age: int) -> None:
    """Raises Rejected if the snapshot belongs to another stack or account, or is older than `max_age` seconds."""
    if taken.stack != stack:
        raise _reject(file, f"it belongs to the stack {taken.stack}, not {stack}", _RETAKE)
    if account is not None and taken.account != account:
        raise _reject(file, f"it belongs to the account {taken.account or '(no name)'}, not {account}", _RETAKE)
    age = now - taken.at
    if age < -_AHEAD:
        raise _reject(file, "its time is in the future", "check the clock, or take a new snapshot")
    if age > max_age:
        raise _reject(file, f"it is {format_duration(age)} old", f"{_RETAKE}, or allow more with --max-age")


def check_private_key(key: Secret) -> None:
    """Raises Rejected if the text is not a private key for signatures."""
    _load_private_key(key)


def check_public_key(text: str) -> str | None:
    """Checks a public key. Returns `problem; remedy` or None."""
    try:
        _load_public_key(text)
    except ValueError:
        return f"is not an Ed25519 public key; {_CREATE_KEY}, and use the public key that `openssl pkey -pubout` prints"
    return None


_RETAKE = "take a new one with `reconciler snapshot`"


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
        raise Rejected([Problem(what, _CREATE_KEY, code="invalid-signing-key")])
    return found


def _load_public_key(text: str) -> Ed25519PublicKey:
    """Raises ValueError if the text is not an Ed25519 public key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        found = load_pem_public_key(text.strip().encode())
    except UnsupportedAlgorithm as wrong:
        raise ValueError(str(wrong)) from None
    if not isinstance(found, Ed25519PublicKey):
        raise ValueError("another type of key")
    return found


def _integrity(content: Mapping[str, Json]) -> str:
    return f"blake2b:{hashlib.blake2b(_canonical_bytes(content), digest_size=16).hexdigest()}"


def _canonical_bytes(content: Mapping[str, Json]) -> bytes:
    """The signed bytes. They begin with the format, so that a signature of another format is never valid."""
    return f"{snapshot_json.FORMAT}\n".encode() + json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _reject(file: str, what: str, remedy: str) -> Rejected:
    return Rejected([Problem(f"{file} cannot be used: {what}", remedy, code="unusable-snapshot")])
