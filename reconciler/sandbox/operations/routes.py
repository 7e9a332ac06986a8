"""The table of operations, derived from the kinds, and the router from method and path to an operation.

`objects` executes operations, `openapi` describes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind


class Act(StrEnum):
    CREATE = "create"
    LIST = "list"
    GET = "get"
    UPDATE = "update"
    DELETE = "delete"
    PUT_MODULE = "replace module"
    GET_MODULE = "get module"
    DELETE_MODULE = "delete module"
    DETACH = "detach"
    COMMAND = "command"


_METHOD = {
    Act.CREATE: ("POST", 201),
    Act.LIST: ("GET", 200),
    Act.GET: ("GET", 200),
    Act.UPDATE: ("PATCH", 200),
    Act.DELETE: ("DELETE", 204),
    Act.PUT_MODULE: ("PUT", 200),
    Act.GET_MODULE: ("GET", 200),
    Act.DELETE_MODULE: ("DELETE", 204),
    Act.DETACH: ("DELETE", 204),
    Act.COMMAND: ("POST", 204),
}


class Operation(Struct, frozen=True):
    """One operation. `path` has its parameters in braces; `field` is the module, or the field that a detach clears."""

    act: Act
    kind: Kind
    path: str
    field: Field | None = None

    @property
    def method(self) -> str:
        return _METHOD[self.act][0]

    @property
    def status(self) -> int:
        return _METHOD[self.act][1]

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def name(self) -> str:
        """The operation id, such as `put_edges_tls_id_mutual_tls`."""
        return re.sub(r"\W+", "_", f"{self.method.lower()}{self.path}").strip("_")


def operations(kinds: Iterable[Kind]) -> Iterator[Operation]:
    for kind in kinds:
        one = f"{kind.path}/{{{kind.key}}}"
        if kind.wire.supports is not None:
            yield from _read_only_operations(kind, one, kind.wire.supports)
            continue
        yield Operation(Act.CREATE, kind, kind.path)
        yield Operation(Act.LIST, kind, kind.path)
        yield Operation(Act.GET, kind, one)
        yield Operation(Act.UPDATE, kind, one)
        yield Operation(Act.DELETE, kind, one)
        for own in kind.fields:
            if own.module:
                for act in (Act.PUT_MODULE, Act.GET_MODULE, Act.DELETE_MODULE):
                    yield Operation(act, kind, f"{one}/{own.name}", own)
            elif own.detach is not None:
                yield Operation(Act.DETACH, kind, f"{one}/{own.detach}", own)
        if kind.name == "Secret":
            yield Operation(Act.LIST, kind, "/vaults/{id}/secrets")
        if kind.name == "CloudEndpoint":
            yield Operation(Act.LIST, kind, "/kubernetes_operators/{id}/bound_endpoints")


def _read_only_operations(kind: Kind, one: str, offers: Iterable[str]) -> Iterator[Operation]:
    """The operations of a kind that cannot be declared.

    No list operation without `list_key`; an `update` of a kind without fields is a command.
    """
    if kind.list_key:
        yield Operation(Act.LIST, kind, kind.path)
    yield Operation(Act.GET, kind, one)
    for offer in offers:
        match offer:
            case "create":
                yield Operation(Act.CREATE, kind, kind.path)
            case "update" if kind.fields:
                yield Operation(Act.UPDATE, kind, one)
            case "delete":
                yield Operation(Act.DELETE, kind, one)
            case _:
                yield Operation(Act.COMMAND, kind, f"{one}/{offer}")


class _Node(Struct):
    below: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
    here: dict[str, Operation] = field(default_factory=dict)


class Match(Struct, frozen=True):
    """The operations at a path by method, and the values of the path's parameters, outermost first."""

    by_method: Mapping[str, Operation]
    values: tuple[str, ...]


class Router:
    def __init__(self, table: Iterable[Operation]) -> None:
        self._root = _Node()
        for operation in table:
            node = self._root
            for segment in operation.path.strip("/").split("/"):
                if segment.startswith("{"):
                    node.any = node = node.any or _Node()
                else:
                    node = node.below.setdefault(segment, _Node())
            node.here[operation.method] = operation

    def match(self, path: str) -> Match | None:
        node: _Node | None = self._root
        values: list[str] = []
        for segment in path.strip("/").split("/"):
            assert node is not None
            if segment in node.below:
                node = node.below[segment]
                continue
            values.append(segment)
            node = node.any
            if node is None or not segment:
                return None
        return Match(node.here, tuple(values)) if node is not None and node.here else None
