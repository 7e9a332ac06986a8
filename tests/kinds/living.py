"""A project on a sandbox in process: planned and applied as by the commands, and changed on the platform by hand.

Values on the platform are read here independently of the planner.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler import kinds
from reconciler.cli.main import main
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.fields.annotations import (
    AlwaysSent,
    CreateOnly,
    Immutable,
    InputOnly,
    PathOnly,
    ServerDefault,
    Unordered,
    UpdateOnly,
)
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.plan import Plan
from reconciler.operations.results import Status
from reconciler.operations.runtime import Runtime
from reconciler.operations.workspace import Workspace
from reconciler.testing import Sandbox
from tests.kinds.lives import SUBJECT, Document, Life

BYSTANDER = {"kind": "IPPolicy", "name": "bystander", "spec": {"description": "nothing happens to it"}}

# --- paths of fields --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """A field that is declared, compared and changed by itself; `top` is the field of the spec that contains it."""

    path: str
    field: Field
    top: Field

    @property
    def is_fixed(self) -> bool:
        return Immutable in self.top or PathOnly in self.top

    @property
    def is_hidden(self) -> bool:
        """Whether the field is missing in lists."""
        return InputOnly in self.field or InputOnly in self.top

    @property
    def has_effect(self) -> bool:
        """Whether another value is a change."""
        return CreateOnly not in self.field

    @property
    def is_platforms(self) -> bool:
        """Whether the platform sets the value if none is declared."""
        return ServerDefault in self.field or ServerDefault in self.top

    @property
    def is_given_back(self) -> bool:
        """Whether the platform chooses a new value after the declaration of the field is removed."""
        return ServerDefault in self.field and not self.is_fixed and ("." in self.path or bool(self.field.default))


def leaves(kind: Kind) -> dict[str, Leaf]:
    return {leaf.path: leaf for top in kind.fields for leaf in _below(top, top.name, top)}


def _below(field: Field, path: str, top: Field) -> Iterator[Leaf]:
    if field.shape is Shape.OBJECT:
        for inner in field.fields:
            yield from _below(inner, f"{path}.{inner.name}", top)
    else:
        yield Leaf(path, field, top)


def value_at(spec: Any, path: str) -> Any:
    """The declared value, or None."""
    for part in path.split("."):
        spec = spec.get(part) if isinstance(spec, dict) else None
    return spec


def with_value(spec: Document, path: str, value: Any) -> Document:
    copy = deepcopy(spec)
    *above, last = path.split(".")
    inner = copy
    for part in above:
        inner = inner[part]
    inner[last] = value
    return copy


def without(spec: Document, path: str) -> Document:
    copy = deepcopy(spec)
    *above, last = path.split(".")
    inner = copy
    for part in above:
        inner = inner[part]
    del inner[last]
    return copy


# --- values on the platform -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A live object, read at its own path."""

    path: str
    id: str
    parent_id: str | None
    body: Document = field(repr=False)
    is_sparse: bool = False

    def holds(self, leaf: Leaf) -> Any:
        """The field's value in the response, in the shape of a request."""
        if PathOnly in leaf.field:
            return self.parent_id
        if leaf.path == "metadata":
            return owners.read(_inner(self.body, "metadata", sparse=self.is_sparse))[0]
        value: Any = self.body
        names, at = leaf.path.split("."), leaf.top
        for index, name in enumerate(names):
            at = at if index == 0 else next(inner for inner in at.fields if inner.name == name)
            value = _follow(value, at.read_as.path if at.read_as else name, sparse=self.is_sparse)
        if leaf.field.as_map is not None:
            # In the response, a map from one field of each part to the other.
            key, rest = leaf.field.as_map.key, leaf.field.as_map.value
            return [{key: name, rest: value[name]} for name in value]
        return value


def _follow(value: Any, path: str, *, sparse: bool) -> Any:
    """The value at the path. Only in a sparse response a key may be missing: that of a text that is not set."""
    for part in path.split("."):
        if isinstance(value, list):
            value = [_inner(item, part, sparse=sparse) for item in value]
        elif value is not None:
            value = _inner(value, part.removesuffix("[]"), sparse=sparse)
    return value


def _inner(value: Document, part: str, *, sparse: bool) -> Any:
    return value.get(part) if sparse else value[part]


def same(leaf: Leaf, one: Any, other: Any) -> bool:
    """Whether two values are equivalent: an empty value is not set."""
    return bool(_form(leaf.field, one) == _form(leaf.field, other))


def _form(field: Field, value: Any) -> Any:
    if value in (None, "", [], {}):
        return None
    value = field.canonical(value) if field.canonical else value
    if isinstance(value, list) and field.item is not None:
        value = [_form(field.item, item) for item in value]
    if Unordered in field:
        value = sorted(value, key=str)
    if isinstance(value, list):
        return [{key: item[key] for key in item if key != "uri"} if isinstance(item, dict) else item for item in value]
    return value


@dataclass(frozen=True)
class Applied:
    """The plan that was applied, and the requests that changed something, in order."""

    plan: Plan
    calls: list[str]


# --- the project ------------------------------------------------------------------------------------------------------


@dataclass
class LivingProject:
    """A project that declares the subject and the resources `beside` it."""

    root: Path
    sandbox: Sandbox
    life: Life
    declared: dict[Address, Document] = field(default_factory=dict)
    is_sparse: bool = False

    @property
    def runtime(self) -> Runtime:
        # Without a PATH, Git is not found and the commit is not read.
        return Runtime(environ={**self.sandbox.environ, "PATH": ""}, platform=self.sandbox)

    @property
    def kind(self) -> Kind:
        return kinds.get(self.life.kind)

    @property
    def subject(self) -> Address:
        return Address(self.life.kind, SUBJECT)

    def declare(self, spec: Document | None, **more: Any) -> None:
        """Declares the subject with this spec, or (None) no longer."""
        documents = [BYSTANDER, *self.life.beside]
        if spec is not None:
            documents.append({**self.life.document, "spec": spec, **more})
        self.declared = {Address(document["kind"], document["name"]): document["spec"] for document in documents}
        text = "---\n".join(json.dumps(document) + "\n" for document in documents)  # JSON is YAML
        (self.root / "manifests" / "all.yaml").write_text(text)

    def plan(self) -> Plan:
        return asyncio.run(Workspace.open(self.root, runtime=self.runtime).plan()).plan

    def run(self, command: str, *words: str) -> int:
        allow = f"delete:{self.life.kind}=1"
        return main([command, "-y", "--project", str(self.root), "--allow", allow, *words], self.runtime)

    def apply(self) -> Applied:
        """Applies the manifests, and checks that nothing remains to be changed."""
        self.sandbox.forget_log()
        workspace = Workspace.open(self.root, runtime=self.runtime).select(allow={("delete", self.life.kind): 1})
        result = asyncio.run(workspace.apply())
        assert result.status in (Status.APPLIED, Status.UNCHANGED), (result.status, result.problems, result.remaining)
        return Applied(result.plan, self.sandbox.calls())

    def live(self) -> Found:
        found = self.find(self.subject)
        assert found is not None
        return found

    def find(self, address: Address) -> Found | None:
        kind = kinds.get(address.kind)
        for parent_id, body in self._list_objects(kind):
            if self._is(kind, address, parent_id, body):
                path = f"{_collection(kind, parent_id)}/{body[kind.key]}"
                return Found(path, body[kind.key], parent_id, self.sandbox.get(path), self.is_sparse)
        return None

    def _list_objects(self, kind: Kind) -> Iterator[tuple[str | None, Document]]:
        if kind.parent is None:
            for body in self.sandbox.get(kind.path)[kind.list_key]:
                yield None, body
            return
        above = kinds.get(kind.parent.kind)
        for parent in self.sandbox.get(above.path)[above.list_key]:
            for body in parent[kind.parent.embedded]:
                yield parent["id"], body

    def _is(self, kind: Kind, address: Address, parent_id: str | None, body: Document) -> bool:
        if kind.keeps_owner:
            owner = owners.read(body.get("metadata"))[1]
            return owner is not None and owner.address == address
        spec = self.resolve(self.declared[address])
        same_parent = kind.parent is None or spec[kind.parent.field] == parent_id
        return same_parent and all(body[name] == spec[name] for name in kind.identity if name in body)

    def resolve(self, value: Any) -> Any:
        """The value as in an API request: references as ids, inline policies as text."""
        match value:
            case {"ref": str(target)}:
                return self._output(target, "id")
            case {"on_http_request": _}:
                return json.dumps(value)
            case dict():
                return {key: self.resolve(item) for key, item in value.items()}
            case list():
                return [self.resolve(item) for item in value]
            case str():
                reference = re.fullmatch(r"\${{ ([^.]+)\.(\w+) }}", value)
                return self._output(*reference.groups()) if reference else value
        return value

    def _output(self, target: str, name: str) -> Any:
        found = self.find(Address.parse(target))
        assert found is not None, target
        return found.body[name]

    # --- by hand -----------------------------------------------------------------------------------------------------

    def create_by_hand(self, spec: Document) -> str:
        """Creates an object as the spec declares it, without an owner record. Returns its id."""
        resolved = self.resolve(spec)
        at_once = {
            field_.name: _request_value(field_, resolved[field_.name])
            for field_ in self.kind.fields
            if field_.name in resolved and UpdateOnly not in field_ and PathOnly not in field_
        }
        later = {
            field_.name: resolved[field_.name]
            for field_ in self.kind.fields
            if UpdateOnly in field_ and field_.name in spec
        }
        parent = resolved[self.kind.parent.field] if self.kind.parent else None
        collection = _collection(self.kind, parent)
        made = self.sandbox.post(collection, {**self.kind.wire.fixed, **at_once})[self.kind.key]
        if later:
            self.sandbox.patch(f"{collection}/{made}", later)
        return str(made)

    def patch_by_hand(self, live: Found, top: str, spec: Document) -> None:
        """Sets a field as in the spec. An owner record in metadata is preserved."""
        value = _request_value(self.kind.by_name[top], self.resolve(spec[top]))
        owner = owners.read(live.body.get("metadata"))[1]
        kept = {field_.name: live.body[field_.name] for field_ in self.kind.fields if AlwaysSent in field_}
        self.sandbox.patch(
            live.path, {**kept, top: owners.write(value, owner) if top == "metadata" and owner else value}
        )


def _request_value(field: Field, value: Any) -> Any:
    """The value in the shape of a request."""
    spelling = field.as_map
    return value if spelling is None else {item[spelling.key]: item[spelling.value] for item in value}


def _collection(kind: Kind, parent_id: str | None) -> str:
    return kind.path if kind.parent is None else kind.path.replace(f"{{{kind.parent.field}}}", str(parent_id))


def account(sandbox: Sandbox) -> dict[str, Document]:
    """Each object that a client created, by the random part of its id. Certificates that the platform obtained are
    omitted, since it also deletes them."""
    once = [kind for kind in kinds.every() if kind.parent is None]
    listed = (body for kind in once for body in sandbox.get(kind.path)[kind.list_key])
    made = (body for body in listed if body.get("type") != "edge")  # an endpoint of an edge is not an object of its own
    return {in_account(body): body for body in made if body.get("issued_at") is None}


def in_account(body: Document) -> str:
    """The part of the id that is the same for two kinds of one object."""
    return str(body["id"].rpartition("_")[2])


def paths_of(changed: Iterable[str], known: Mapping[str, Leaf]) -> set[str]:
    """The fields of changes, which may be inside a document or a map."""
    return {
        next((known_path for known_path in known if re.match(rf"{re.escape(known_path)}($|[.\[])", path)), path)
        for path in changed
    }
