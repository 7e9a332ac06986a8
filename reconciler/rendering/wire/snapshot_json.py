"""Encodes a redacted snapshot as JSON, and decodes it. `project.snapshots` signs and verifies the file.

Objects have the keys of the platform's responses. A key that begins with `$` gets a second `$`; the key `$sealed` marks
the placeholder of a secret, `$number` a number with its spelling.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.numerals import SpelledFloat, SpelledInteger
from reconciler.model.snapshot import Binding, Listing, Live, Snapshot
from reconciler.model.value import Json, Sealed, Secret
from reconciler.rendering.wire import codec
from reconciler.rendering.wire.codec import Malformed

FORMAT = "reconciler snapshot"
VERSION = 2  # raised with every change of the form, and when what is canonical changes
_MARK = "$sealed"
_NUMBER = "$number"


class SnapshotFile(Struct, frozen=True):
    """A redacted snapshot with its account.

    base_url, account   as in the project file
    at                  seconds since 1970
    secrets             placeholders of declared secrets, by source
    """

    snapshot: Snapshot
    stack: str
    base_url: str
    account: str | None
    at: float
    commit: str = ""
    secrets: Mapping[str, Sealed] = field(default_factory=dict)


class _Object(Struct, frozen=True):
    id: str
    parent: str | None
    body: Json


class _Listing(Struct, frozen=True):
    complete: bool
    why: str
    denied: bool
    objects: tuple[_Object, ...]


class _Content(Struct, frozen=True):
    stack: str
    base_url: str
    account: str | None
    at: float
    commit: str
    doubt: str
    listings: Mapping[str, _Listing]
    bindings: Mapping[Address, Binding]
    receipts: tuple[str, ...]
    undelivered: tuple[str, ...]
    overwritten: Mapping[str, Address]
    elsewhere: tuple[tuple[str, str, str], ...]  # kind, locator, stack
    is_remembered: bool
    once_ours: tuple[tuple[str, str], ...]  # kind, locator
    secrets: Mapping[str, Json]


def encode(taken: SnapshotFile) -> dict[str, Json]:
    """Plain JSON, the same for the same snapshot."""
    snapshot = taken.snapshot
    listings = {
        name: _Listing(
            listing.complete,
            listing.why,
            listing.denied,
            tuple(_Object(live.id, live.parent_id, _mark_secrets(live.body)) for live in listing.objects),
        )
        for name, listing in snapshot.listings.items()
    }
    content = _Content(
        stack=taken.stack,
        base_url=taken.base_url,
        account=taken.account,
        at=taken.at,
        commit=taken.commit,
        doubt=snapshot.doubt,
        listings=listings,
        bindings=snapshot.bindings,
        receipts=tuple(sorted(snapshot.receipts)),
        undelivered=tuple(sorted(snapshot.undelivered)),
        overwritten=snapshot.overwritten,
        elsewhere=tuple((*key, stack) for key, stack in sorted(snapshot.elsewhere.items())),
        is_remembered=snapshot.is_remembered,
        once_ours=tuple(sorted(snapshot.once_ours)),
        secrets={source: _mark_secrets(secret) for source, secret in taken.secrets.items()},
    )
    return {"format": FORMAT, "version": VERSION, **codec.encode(_Content, content, "", {})}


def _read_object(kind: str, item: _Object) -> Live:
    live = Live(kind, item.id, _body(item.body), item.parent)
    known = kinds.find(kind)
    return live if known is None or known.keeps_owner else live.without_owner()


def decode(content: Mapping[str, Json]) -> SnapshotFile:
    """The snapshot file that `encode` encoded. Raises Malformed."""
    if content.get("format") != FORMAT:
        raise Malformed("it is not a snapshot file")
    if content.get("version") != VERSION:
        raise Malformed(f"it is a snapshot of version {content.get('version')}, not {VERSION}")
    body = {key: value for key, value in content.items() if key not in ("format", "version")}
    read: _Content = codec.decode(_Content, body, _no_secret, {})
    listings = {
        name: Listing(
            tuple(_read_object(name, item) for item in listing.objects),
            listing.complete,
            listing.why,
            listing.denied,
        )
        for name, listing in read.listings.items()
    }
    snapshot = Snapshot(
        listings,
        read.bindings,
        receipts=frozenset(read.receipts),
        undelivered=frozenset(read.undelivered),
        overwritten=read.overwritten,
        doubt=read.doubt,
        elsewhere={(kind, locator): stack for kind, locator, stack in read.elsewhere},
        is_remembered=read.is_remembered,
        once_ours=frozenset(read.once_ours),
    )
    secrets = {source: _unmark_secrets(secret) for source, secret in read.secrets.items()}
    if not all(isinstance(secret, Sealed) for secret in secrets.values()):
        raise Malformed("the placeholder of a secret is malformed")
    return SnapshotFile(snapshot, read.stack, read.base_url, read.account, read.at, read.commit, secrets)


def _body(marked: Json) -> Mapping[str, Json]:
    body = _unmark_secrets(marked)
    if not isinstance(body, dict):
        raise Malformed("an object has no body")
    return body


def _mark_secrets(value: Json) -> Json:
    match value:
        case Sealed():
            content = {"source": value.source, "salt": value.salt, "spellings": sorted(value.spellings)}
            return {_MARK: content | {"digests": dict(sorted(value.digests.items()))}}
        case SpelledFloat() | SpelledInteger():
            return {_NUMBER: value.spelling}
        case Secret():
            raise Malformed(f"{value!r} must not be written to a file")
        case dict():
            return {f"${key}" if key.startswith("$") else key: _mark_secrets(item) for key, item in value.items()}
        case list():
            return [_mark_secrets(item) for item in value]
    return value


def _unmark_secrets(value: Json) -> Json:
    match value:
        case {"$sealed": content} if len(value) == 1:
            return _parse_sealed(content)
        case {"$number": str(spelling)} if len(value) == 1:
            return codec.parse_number(spelling)
        case dict():
            return {
                key.removeprefix("$") if key.startswith("$$") else key: _unmark_secrets(value[key]) for key in value
            }
        case list():
            return [_unmark_secrets(item) for item in value]
    return value


def _parse_sealed(content: Json) -> Sealed:
    match content:
        case {"source": str(source), "salt": str(salt), "spellings": list(spellings), "digests": dict(digests)}:
            if all(isinstance(text, str) for text in (*spellings, *digests.values())):
                return Sealed(source, digests, spellings, salt)
    raise Malformed("the placeholder of a secret is malformed")


def _no_secret(source: str, _digest: str) -> Secret:
    raise Malformed(f"the secret of {source} must not be in a snapshot")
