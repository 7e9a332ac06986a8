"""`Facts`: the objects that the health of other objects depends on, found by id and by values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from reconciler import kinds
from reconciler.kinds import read_only
from reconciler.kinds.rules import serving
from reconciler.model.address import Address
from reconciler.model.health import DAY, Body, Health, Issued, State, read_instant
from reconciler.model.snapshot import Listing, Live, LiveKey, Snapshot
from reconciler.model.value import Json

EXPIRES_WITHIN: Final = 14 * DAY
_POLICY: Final = "traffic_policy"
_MOST_STEPS: Final = 20  # objects that refer to each other; the platform's limit is not documented
_CIRCULAR: Final = Health(State.DEGRADED, "it refers to itself", "remove the circular reference")


class Facts:
    """The account of a snapshot at one time. Implements `AccountFacts`.

    snapshot        its lists; those of read-only kinds may be absent
    now             in seconds since 1970
    expires_within  how long before its expiry an object is degraded, in seconds
    rotations       the age at which a one-time secret is rotated, in seconds, by the address of its resource
    unread          kinds that were asked for and whose list was not read: another snapshot may have it
    """

    def __init__(
        self,
        snapshot: Snapshot,
        now: float,
        expires_within: float = EXPIRES_WITHIN,
        rotations: Mapping[Address, float] | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.rotations = rotations or {}
        self.now = now
        self.expires_within = expires_within
        self.unread: set[str] = set()
        self._by_id: dict[str, dict[str, Live]] = {}
        self._by_value: dict[tuple[str, tuple[str, ...]], dict[str, list[Body]]] = {}
        self._health: dict[LiveKey, Health | None] = {}
        self._steps = 0

    def is_complete(self, kind: str) -> bool:
        return self._read_listing(kind).complete

    def list_objects(self, kind: str) -> Sequence[Live]:
        """The known objects of a kind."""
        return self._read_listing(kind).objects

    def _read_listing(self, kind: str) -> Listing:
        if kind not in self.snapshot.listings:
            self.unread.add(kind)
        return self.snapshot.of(kind)

    def find(self, kind: str, id: str) -> Body | None:
        live = self._find_live(kind, id)
        return None if live is None else live.body

    def list_where(self, kind: str, path: tuple[str, ...], value: str) -> Sequence[Body]:
        key = kind, path
        if key not in self._by_value:
            found: dict[str, list[Body]] = defaultdict(list)
            for live in self.list_objects(kind):
                for text in dict.fromkeys(self._read_texts(live, path)):
                    found[text].append(live.body)
            self._by_value[key] = dict(found)
        return self._by_value[key].get(value, ())

    def list_ids(self, kind: str) -> Sequence[str]:
        return [live.id for live in self.list_objects(kind)]

    @cached_property
    def forward_targets(self) -> frozenset[str]:
        return frozenset(url for document in self._list_policies() for url in serving.list_forwards(document))

    def _list_policies(self) -> Iterator[Json]:
        """The traffic policies of the account: a field of endpoints, a module of edges and routes."""
        for kind in (*kinds.list_planned(), *read_only.KINDS):
            if kind.name in self.snapshot.listings and _POLICY in (*kind.by_name, *kind.read.model_fields):
                for live in self.list_objects(kind.name):
                    policy = live.body.get(_POLICY)
                    yield policy.get("value", policy) if isinstance(policy, dict) else policy

    def secret_of(self, id: str) -> Issued:
        return self._secrets.get(id, Issued())

    @cached_property
    def _secrets(self) -> Mapping[str, Issued]:
        """What is known of the secrets that this stack issued, by the id of their object."""
        found: dict[str, Issued] = {}
        newest: dict[Address, tuple[float, str]] = {}
        for kind in kinds.every():
            for live in self.list_objects(kind.name) if kind.one_time else ():
                owner, created = live.owner, read_instant(live.body.get("created_at"))
                if owner is None:
                    continue
                found[live.id] = Issued(not owner.pending and owner.intent not in self.snapshot.undelivered)
                if created is not None and owner.address in self.rotations:
                    newest[owner.address] = max(newest.get(owner.address, (created, "")), (created, live.id))
        # The predecessor of a rotated secret stays for the overlap, and is not rotated again.
        for address, (created, id) in newest.items():
            found[id] = replace(found[id], rotates_at=created + self.rotations[address])
        return found

    def health_of(self, names: Iterable[str], id: str) -> Health:
        names = tuple(names)
        for name in names:
            if (live := self._find_live(name, id)) is not None:
                return self.judge(live) or Health(State.HEALTHY)
        if all(map(self.is_complete, names)):
            return Health(State.DEGRADED, f"{id} does not exist", "refer to an object that exists")
        return Health(State.UNKNOWN, f"{id} could not be read")

    def judge(self, live: Live) -> Health | None:
        """The health of an object of this account; None if nothing is said about it."""
        kind = read_only.find(live.kind)
        if kind is None or kind.health is None:
            return None
        if live.key not in self._health:
            if self._steps == _MOST_STEPS:
                return Health(State.UNKNOWN, f"{live.id} is behind more than {_MOST_STEPS} others")
            self._health[live.key] = _CIRCULAR  # for objects that refer to each other
            self._steps += 1
            self._health[live.key] = kind.health(live.body, self)
            self._steps -= 1
        return self._health[live.key]

    def _find_live(self, kind: str, id: str) -> Live | None:
        if kind not in self._by_id:
            self._by_id[kind] = {live.id: live for live in self.list_objects(kind)}
        return self._by_id[kind].get(id)

    def _read_texts(self, live: Live, path: tuple[str, ...]) -> Iterator[str]:
        """The texts at a path. A child's reference to its parent is known from its place."""
        kind = kinds.find(live.kind)
        if live.parent_id is not None and kind is not None and kind.parent is not None and path == (kind.parent.field,):
            yield live.parent_id
        else:
            yield from _find_texts(live.body, path)


def _find_texts(value: Json, path: tuple[str, ...]) -> Iterator[str]:
    values = [value]
    for step in path:
        values = [item[step] for item in _items(values) if isinstance(item, dict) and step in item]
    for text in _items(values):
        if isinstance(text, str):
            yield text


def _items(values: list[Json]) -> Iterator[Json]:
    """The values, with the items of lists instead of the lists."""
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value
