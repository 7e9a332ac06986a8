"""Redacts a snapshot for a file: without secrets and without values that no plan reads.

A plan from the redacted snapshot equals the plan from the original one. Each sensitive value is replaced by the digests
that planning compares, one for each salt. Objects have the write shape, which responses may have too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.gates import keep_gates
from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize, canonicalize_live, is_shown, read
from reconciler.model.fields.annotations import InputOnly, PathOnly, Sensitive
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.snapshot import Live, LiveKey, Snapshot
from reconciler.model.value import Json, Sealed, Secret, UnreadSecret, Value, digest, has_secret
from reconciler.planning.comparing.plan_fields import secret_path
from reconciler.planning.planner import match_all

_KEPT = ("id", "created_at", "metadata")
_Salts = Mapping[tuple[str, str], Sequence[str]]


def redact_snapshot(snapshot: Snapshot, manifest: Manifest, kinds: Sequence[Kind]) -> Snapshot:
    """The snapshot without secrets and without kinds that are not in `kinds`.

    The manifest says which addresses salt the digests of each object.
    """
    catalogue = {kind.name: kind for kind in kinds}
    assigned = match_all(manifest, snapshot, kinds)
    stacks = _find_other_stacks(manifest.stack, snapshot)
    bound = {(address.kind, binding.id): address for address, binding in snapshot.bindings.items()}
    listings = {
        name: replace(
            listing,
            objects=tuple(
                _redact(
                    live,
                    catalogue[name],
                    manifest.stack,
                    {owners[live.key] for owners in (assigned, bound) if live.key in owners},
                    is_foreign=bool(stacks & {live.key, *_parent_of(catalogue[name], live)}),
                )
                for live in listing.objects
            ),
        )
        for name, listing in snapshot.listings.items()
        if name in catalogue
    }
    return replace(snapshot, listings=listings)


def seal(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> dict[str, Sealed]:
    """The digests that replace each declared secret, by its source, where the secret is not available.

    Secrets that are written in the manifest itself, or were not read, are left out.
    """
    catalogue = {kind.name: kind for kind in kinds}
    intents = _find_intents(manifest, snapshot, kinds)
    sealed: dict[str, Sealed] = {}
    for address, declaration in manifest.declarations.items():
        for path, secret, value in _find_secrets(catalogue[address.kind].fields, declaration.spec):
            if secret.source.startswith("manifest:") or isinstance(secret, UnreadSecret):
                continue  # the manifest has the secret, or it is not known
            salts = [f"{address}:{secret_path(path)}", str(address), *intents[address]]
            current = _seal(value, salts, manifest.stack)
            raw = digest(secret, manifest.stack)
            previous = sealed.get(secret.source, Sealed(secret.source))
            sealed[secret.source] = Sealed(
                secret.source,
                {**previous.digests, **current.digests, manifest.stack: raw},
                {*previous.spellings, *current.spellings, raw},
                manifest.stack,
            )
    return sealed


def _find_intents(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> Mapping[Address, list[str]]:
    intents: dict[Address, list[str]] = defaultdict(list)
    for (kind, locator), address in match_all(manifest, snapshot, kinds).items():
        for live in snapshot.of(kind).objects:
            if live.locator == locator and live.owner is not None:
                intents[address].append(live.owner.intent)
    return intents


def _find_secrets(
    fields: Iterable[Field], values: Mapping[str, Value], path: str = ""
) -> Iterator[tuple[str, Secret, Secret]]:
    """The path of each secret, the secret as declared, and its canonical form."""
    for field in fields:
        value, place = values.get(field.name), f"{path}{field.name}"
        if field.conceals is not None:
            yield from ((at, secret, secret) for at, secret in _secrets_inside(canonicalize(field, value), place))
        elif isinstance(value, Secret):
            form = canonicalize(field, value)
            assert isinstance(form, Secret)
            yield place, value, form
        elif isinstance(value, dict):
            yield from _find_secrets(field.fields, value, f"{place}.")


def _secrets_inside(value: Value, path: str) -> Iterator[tuple[str, Secret]]:
    match value:
        case Secret():
            yield path, value
        case dict():
            for key, item in value.items():
                yield from _secrets_inside(item, f"{path}.{key}")
        case list():
            for item in value:
                yield from _secrets_inside(item, path)


def _find_other_stacks(stack: str, snapshot: Snapshot) -> set[LiveKey]:
    """The objects with an owner record of another stack."""
    objects = (live for listing in snapshot.listings.values() for live in listing.objects)
    return {live.key for live in objects if live.owner is not None and live.owner.stack != stack}


def _parent_of(kind: Kind, live: Live) -> Iterator[LiveKey]:
    """The parent of an object that has no owner record of its own."""
    if live.owner is None and kind.parent is not None and live.parent_id is not None:
        yield kind.parent.kind, live.parent_id


def _redact(live: Live, kind: Kind, stack: str, addresses: Iterable[Address], *, is_foreign: bool = False) -> Live:
    owner = live.owner
    sealer = _Sealer(
        stack,
        (*([owner.intent] if owner else []), *map(str, addresses)),
        {*addresses, *([owner.address] if owner else [])},
        is_foreign,
    )
    body: dict[str, Any] = {
        name: live.body[name] for name in _KEPT if name in live.body and _is_scalar(live.body[name])
    }
    for name in _find_outputs(kind):
        if name in live.body and _is_plain(live.body[name]):
            body[name] = live.body[name]
    for field in kind.fields:
        if PathOnly not in field and is_shown(field, live.body) and field.name != "metadata":
            body[field.name] = sealer.write_field(field, live.body, field.name)
    return live.with_body(body)


class _Sealer(Struct, frozen=True):
    """Writes the fields of one object in the write shape, with values as the platform returns them.

    salts   of the digests of each secret: the intent of the owner record and the addresses of the object
    names   the addresses of the object; with the path of a field they are salts too
    is_foreign  another stack manages the object: of its traffic policies, only the gates are written
    """

    stack: str
    salts: tuple[str, ...]
    names: Collection[Address]
    is_foreign: bool = False

    def write_field(self, field: Field, body: Mapping[str, Json], path: str) -> Json:
        return self._write_part(field, read(field, body), path)

    def _write_part(self, field: Field, value: Json, path: str) -> Json:
        if Sensitive in field:
            return self._seal_text(field, value, path) if isinstance(value, str) and value else None
        if field.conceals is not None:
            is_unknown = field.shape is Shape.MAP and not isinstance(value, dict)
            return None if is_unknown else self._seal_document(field, value, path)
        if isinstance(value, dict) and field.shape not in (Shape.OBJECT, Shape.MAP):
            return None  # not a value of this field
        if isinstance(value, list) and field.item is not None and field.item.fields:
            return [self._write_part(field.item, item, path) for item in value]
        if isinstance(value, dict) and field.fields:
            subs = (sub for sub in field.fields if InputOnly not in sub)
            return {sub.name: self.write_field(sub, value, f"{path}.{sub.name}") for sub in subs}
        return _drop_unknown(field, value)

    def _seal_document(self, field: Field, value: Json, path: str) -> Json:
        """The document in canonical form with its secrets sealed. JSON without any stays the text that it is."""
        form = canonicalize_live(field, value)
        if self.is_foreign and field.shape is Shape.ANY:
            return self._seal_inside(keep_gates(form), path)
        if not has_secret(form) and (not isinstance(value, str) or value.lstrip().startswith("{")):
            return value
        return self._seal_inside(form, path)

    def _seal_inside(self, value: Value, path: str) -> Json:
        match value:
            case Secret():
                return _seal(value, [*self.salts, *(f"{name}:{secret_path(path)}" for name in self.names)], self.stack)
            case dict():
                return {key: self._seal_inside(item, f"{path}.{key}") for key, item in value.items()}
            case list():
                return [self._seal_inside(item, path) for item in value]
        return value

    def _seal_text(self, field: Field, text: str, path: str) -> Sealed:
        secret = canonicalize(field, Secret(text, "live"))
        return _seal(secret, [*self.salts, *(f"{name}:{path}" for name in self.names)], self.stack)


def _find_outputs(kind: Kind) -> Iterator[str]:
    """The names of response values that references or natural keys may read, other than fields of the spec."""
    heads = {field.read_as.path.split(".")[0].removesuffix("[]") for field in kind.fields if field.read_as}
    for name in (*kind.outputs, kind.key, *([kind.host] if kind.host else ()), *kind.wire.fixed):
        if name != kind.one_time and name not in heads and name not in kind.by_name:
            yield name


def _drop_unknown(field: Field, value: Json) -> Json:
    """The value without parts that are not of the field's shape: a platform may keep secrets there."""
    match field.shape, value:
        case (Shape.LIST, list()):
            return [item for item in value if _is_scalar(item)]
        case (Shape.MAP, dict()):
            return {key: item for key, item in value.items() if _is_scalar(item)}
        case (Shape.INTEGER | Shape.NUMBER | Shape.FLAG, str()):
            return None
    return value if _is_scalar(value) else None


def _is_scalar(value: Json) -> bool:
    return not isinstance(value, (dict, list))


def _is_plain(value: Json) -> bool:
    """Whether the value has no objects inside, such as the routes of an edge, which nothing refers to."""
    return all(_is_plain(item) for item in value) if isinstance(value, list) else not isinstance(value, dict)


def _seal(secret: Secret, salts: Iterable[str], stack: str) -> Sealed:
    same = digest(secret, stack)
    return Sealed(secret.source, {salt: digest(secret, salt) for salt in (*salts, stack)}, [same], stack)
