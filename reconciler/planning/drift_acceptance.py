"""Finds the drift that can be accepted: for each field that the platform changed, the live value in the write shape.

A pure function of a plan and its input; `project.yaml.patch` writes the values into the manifests (`accept`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize, is_shown
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.fields.annotations import PathOnly, Sensitive, Unordered
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Live, Snapshot
from reconciler.model.value import OMITTED, Json, Ref, Value, substitute, value_at
from reconciler.planning.importing.describe import Attachment, describe
from reconciler.planning.planner import match_all


class Offer(Struct, frozen=True):
    """A live value that a manifest can accept.

    path    of the value below `spec`
    value   as JSON of a manifest, or OMITTED
    pairs   of a list in any order: the position of a declared item → that of the same item in `value`; None otherwise
    key     the field that identifies the items of that list, if they are maps
    text    the text that the platform returned, if it is a document
    """

    address: Address
    path: tuple[str, ...]
    value: Json
    pairs: Mapping[int, int] | None = None
    key: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        return f"{self.address}.{'.'.join(self.path)}"


class Declined(Struct, frozen=True):
    """A difference that cannot be accepted, and the reason."""

    subject: str
    why: str


def find_offers(
    plan: Plan,
    manifest: Manifest,
    snapshot: Snapshot,
    kinds: Sequence[Kind],
    *,
    selects: Callable[[Address], bool] = lambda address: True,
    both: bool = False,
) -> tuple[list[Offer], list[Declined]]:
    """The values of a plan that can be accepted, and the differences that cannot.

    both   accept also fields that Git changed too, or whose cause is unknown (`--both`)
    """
    collector = _OfferCollector(manifest, snapshot, kinds, both)
    for change in plan.changes:
        if selects(change.address):
            collector.consider(change)
    declined = [
        Declined(
            str(addition.address),
            f"added to {addition.parent} on the platform; `reconciler import` writes its manifest",
        )
        for addition in plan.additions
        if selects(addition.address) or (addition.parent is not None and selects(addition.parent))
    ]
    return list(collector.offers.values()), [*collector.declined, *declined]


class _OfferCollector:
    """Collects offers and declined differences of the changes of one plan."""

    def __init__(self, manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], both: bool) -> None:
        self._manifest, self._snapshot = manifest, snapshot
        self._kinds = {kind.name: kind for kind in kinds}
        self._names: Mapping[tuple[str, str], Address] = match_all(manifest, snapshot, kinds)
        self._lives = {
            address: live
            for kind in kinds
            for live in snapshot.of(kind.name).objects
            if (address := self._names.get(live.key)) is not None
        }
        self._accepted = {ChangedBy.PLATFORM, ChangedBy.BOTH, ChangedBy.UNKNOWN} if both else {ChangedBy.PLATFORM}
        self.offers: dict[str, Offer] = {}
        self.declined: list[Declined] = []

    def consider(self, change: Change) -> None:
        """Adds an offer or a declined difference for each field of the change."""
        if change.action is Action.CREATE and change.reason is Reason.VANISHED:
            self._decline(
                change.address, "it was deleted on the platform; remove its manifest, or apply to create it again"
            )
        if change.address not in self._manifest.declarations or change.action is Action.CREATE:
            return
        live = self._live(change)
        if live is None:
            return
        kind = self._kinds[change.address.kind]
        spec, _ = describe(kind, live, self._find_owner)
        for field in change.fields:
            if field.changed_by in self._accepted:
                self._offer(change.address, live, spec, field)
            elif field.changed_by in (ChangedBy.BOTH, ChangedBy.UNKNOWN):
                cause = "Git changed it too" if field.changed_by is ChangedBy.BOTH else "what changed it is unknown"
                self._decline(f"{change.address}.{field.path}", f"{cause}; --both takes the platform's value")

    def _live(self, change: Change) -> Live | None:
        objects = self._snapshot.of(change.address.kind).objects
        return self._lives.get(change.address) or next((live for live in objects if live.id == change.id), None)

    def _find_owner(self, kind: str, id: str) -> Address | None:
        return self._names.get((kind, id))

    def _decline(self, subject: object, why: str) -> None:
        self.declined.append(Declined(str(subject), why))

    def _offer(self, address: Address, live: Live, spec: Mapping[str, Value], change: FieldChange) -> None:
        path, leaf = _find_leaf(self._kinds[address.kind], change.path)
        if leaf is None or leaf.is_sensitive or Sensitive in leaf or not is_shown(leaf, live.body):
            self._decline(f"{address}.{change.path}", "it is secret or write-only, and cannot be written to a manifest")
            return
        if leaf.conceals is not None and _holds_secret(leaf, value_at(spec, path)):
            why = f"{leaf.name} contains a secret, which cannot be written to a manifest; edit the manifest"
            self._decline(f"{address}.{change.path}", why)
            return
        if PathOnly in leaf:
            self._decline(f"{address}.{change.path}", "an object cannot move to another parent")
            return
        value: Any = spec
        for depth, name in enumerate(path, start=1):
            if not isinstance(value, dict) or name not in value:
                path, value = path[:depth], OMITTED
                break
            value = value[name]
        declared = self._manifest.declarations[address].spec
        while value is not OMITTED and len(path) > 1 and value_at(declared, path[:-1]) is None:
            path = path[:-1]  # the enclosing object is not declared either
            value = value_at(spec, path)
        declared_ids = set(_find_ids(leaf, value_at(declared, path)))
        unknown_id = next((id for id in _find_ids(leaf, value) if id not in declared_ids), None)
        if unknown_id is not None:
            self._decline(
                f"{address}.{change.path}",
                f"it refers to {unknown_id}, which is not declared; import {unknown_id} first",
            )
            return
        text = value.text if isinstance(value, Attachment) else None
        pairs = self._pair_items(leaf, value_at(declared, path), value) if Unordered in leaf else None
        key = leaf.as_map.key if leaf.as_map else None
        offer = Offer(address, path, _write_value(value), pairs, key, text)
        self.offers.setdefault(str(offer), offer)

    def _pair_items(self, leaf: Field, declared: Value, value: Value) -> dict[int, int] | None:
        """The positions of the declared items that the live list has too, each with the position there."""
        if not isinstance(declared, list) or not isinstance(value, list):
            return None
        remaining = {at: self._identify(leaf, item) for at, item in enumerate(value)}
        pairs = {}
        for at, item in enumerate(declared):
            wanted = self._identify(leaf, item)
            found = next((other for other, identity in remaining.items() if identity == wanted), None)
            if found is not None:
                pairs[at] = found
                del remaining[found]
        return pairs

    def _identify(self, leaf: Field, item: Value) -> Value:
        """What makes it the same item of a list: its key or its value, the same for a reference and an id."""
        field = leaf.item
        if leaf.as_map is not None and field is not None and isinstance(item, Mapping):
            name = leaf.as_map.key
            field, item = next(inner for inner in field.fields if inner.name == name), item.get(name)
        item = substitute(item, self._resolve)
        return item if field is None else canonicalize(field, item)

    def _resolve(self, ref: Ref) -> Value:
        live = self._lives.get(ref.target)
        if live is None:
            return ref
        value = live.id if ref.output == "id" else value_at(live.body, ref.output.split("."))
        return ref if value is None else value


def _find_leaf(kind: Kind, path: str) -> tuple[tuple[str, ...], Field | None]:
    """The path and field of the leaf that a change's path leads to, or into."""
    names: list[str] = []
    fields: Sequence[Field] = kind.fields
    leaf: Field | None = None
    for part in path.split("."):
        name = part.partition("[")[0]
        inner = next((field for field in fields if field.name == name), None)
        if inner is None:
            break
        leaf = inner
        names.append(name)
        if inner.shape is not Shape.OBJECT:
            break
        fields = inner.fields
    return tuple(names), leaf


def _holds_secret(leaf: Field, value: Value) -> bool:
    """Whether a described document has secrets inside, or cannot be read."""
    document = leaf.canonical(value.text) if isinstance(value, Attachment) and leaf.canonical else value
    if isinstance(document, str):
        return True
    return leaf.conceals is not None and any(True for _ in leaf.conceals.find(document))


def _find_ids(field: Field, value: Value) -> Iterator[str]:
    """The plain ids in reference fields."""
    match value:
        case str() if field.refs:
            yield value
        case list() if field.item is not None:
            for item in value:
                yield from _find_ids(field.item, item)
        case dict() if field.shape is Shape.OBJECT:
            for inner in field.fields:
                yield from _find_ids(inner, value.get(inner.name))


def _write_value(value: Value) -> Json:
    """The value as JSON of a manifest, with references and escaped expressions."""
    match value:
        case Ref():
            return {"ref": str(value)}
        case Attachment(text):
            return text if value.document is None else _write_value(value.document)
        case str():
            return value.replace("${{", "$${{")
        case dict():
            return {key: _write_value(part) for key, part in value.items()}
        case list():
            return [_write_value(item) for item in value]
    return value
