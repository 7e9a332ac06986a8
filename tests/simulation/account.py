"""The platform's account: its objects, which stack or human created each, and its state a moment ago.

Rules (unique keys, what is in use, what exists) are those of `tests/laws`. A request that violates an invariant is
recorded in `broken`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from reconciler import kinds as registry
from reconciler.model import owner_record as owners
from reconciler.model.kind import Kind
from reconciler.model.owner_record import Owner
from tests.harness.world import RandomAccount

Key = tuple[str, str]  # kind and locator
Bodies = dict[Key, dict[str, Any]]
HUMAN = "human"


@dataclass(frozen=True)
class Place:
    """What a path leads to: a collection, an object (`id`), or a module of it (`segment`)."""

    kind: Kind
    parent: str | None = None
    id: str | None = None
    segment: str | None = None

    @property
    def key(self) -> Key:
        return self.kind.name, f"{self.parent}/{self.id}" if self.parent else str(self.id)


@cache
def place(path: str) -> Place:
    """LookupError if no object has that path."""
    parts = path.strip("/").split("/")
    length = next(n for n in (1, 2) if "/" + "/".join(parts[:n]) in _TOPS)
    kind = _TOPS["/" + "/".join(parts[:length])]
    rest = parts[length:]
    if len(rest) >= 2 and (kind.name, rest[1]) in _CHILDREN:
        return Place(_CHILDREN[kind.name, rest[1]], rest[0], *rest[2:])
    return Place(kind, None, *rest)


_TOPS = {kind.path: kind for kind in registry.every() if kind.parent is None}
_CHILDREN = {(kind.parent.kind, kind.path.rpartition("/")[2]): kind for kind in registry.every() if kind.parent}
_CARRIED = {kind.parent.kind: ((kind.name, kind.parent.embedded),) for kind in _CHILDREN.values() if kind.parent}


@dataclass
class Account(RandomAccount):
    now: Callable[[], float] = lambda: 0.0
    remembers: float = 0.0  # seconds
    makers: dict[Key, str] = field(default_factory=dict)
    numbers: dict[Key, int] = field(default_factory=dict)  # in the order of creation
    tokens: dict[Key, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    hidden: dict[Key, float] = field(default_factory=dict)  # new objects that reads do not show until then
    _past: list[tuple[float, Bodies]] = field(default_factory=list)  # how it was until then

    # --- changes -----------------------------------------------------------------------------------------------------

    def make(self, maker: str, kind: Kind, body: Mapping[str, Any], parent: str | None = None) -> Key:
        self._keep()
        object_id = self.put(kind, body, parent)
        key = (kind.name, f"{parent}/{object_id}" if parent else object_id)
        self.objects[key].update(kind.wire.fixed)
        self.makers[key] = maker
        self.numbers[key] = self.created
        if kind.one_time:
            self.tokens[key] = f"token-{self.created}"
        return key

    def edit(self, key: Key, body: Mapping[str, Any]) -> None:
        self._keep()
        before = self.objects[key]
        self.objects[key] = dict(before)  # earlier responses are not changed
        try:
            self.change(self.by_name[key[0]], key[1], body)
        except BaseException:
            self.objects[key] = before
            raise

    def end(self, key: Key) -> None:
        self._keep()
        self.remove(self.by_name[key[0]], key[1])
        for child in [child for child, parent in self.parents.items() if parent == key[1]]:
            del self.objects[child], self.parents[child]

    def vanish(self, key: Key) -> None:
        """As `end`, even if the object is in use."""
        del self.objects[key]

    def _keep(self) -> None:
        if self.remembers:
            now = self.now()
            self._past = [past for past in self._past if past[0] >= now - self.remembers]
            self._past.append((now, dict(self.objects)))

    def visible(self, bodies: Bodies) -> Bodies:
        """Without new objects that reads do not show yet."""
        now = self.now()
        if not any(until > now for until in self.hidden.values()):
            return bodies
        return {key: body for key, body in bodies.items() if self.hidden.get(key, 0.0) <= now}

    # --- reads -------------------------------------------------------------------------------------------------------

    def at(self, moment: float) -> Bodies:
        return next((bodies for until, bodies in self._past if until > moment), self.objects)

    def list_objects(self, where: Place, bodies: Bodies) -> list[tuple[int, dict[str, Any]]]:
        """Number and body of everything in a collection, newest first."""
        found = [
            (self.numbers[key], self.render_object(where.kind, key, bodies))
            for key in bodies
            if key[0] == where.kind.name and (where.parent is None or key[1].startswith(f"{where.parent}/"))
        ]
        return found[::-1]

    def render_object(self, kind: Kind, key: Key, bodies: Bodies) -> dict[str, Any]:
        """A parent's body carries its children."""
        body = bodies[key]
        for child, embedded in _CARRIED.get(kind.name, ()):
            inside = [
                child_body
                for other, child_body in bodies.items()
                if other[0] == child and other[1].startswith(f"{key[1]}/")
            ]
            body = {**body, embedded: inside}
        return body

    def records(self) -> Iterator[tuple[Key, Owner]]:
        for key, body in self.objects.items():
            record = owners.read(body.get("metadata"))[1]
            if record is not None:
                yield key, record

    def find_created_by(self, maker: str) -> list[Key]:
        return [key for key in self.objects if self.makers[key] == maker]
