"""A project whose resources live on a sandbox in process: planned and applied by the commands' own composition, and
changed by hand. What a field holds on the platform is read here anew, without the planner's reading.
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

# --- paths of fields -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """A field that is declared, compared and changed for itself; `top` is the spec's field it lies in."""

    path: str
    field: Field
    top: Field

    @property
    def is_fixed(self) -> bool:
        return Immutable in self.top or PathOnly in self.top

    @property
    def is_hidden(self) -> bool:
        """Whether lists never show it."""
        return InputOnly in self.field or InputOnly in self.top

    @property
    def is_platforms(self) -> bool:
        """Whether the platform's value stands where nothing is declared."""
        return ServerDefault in self.field or ServerDefault in self.top

    @property
    def is_given_back(self) -> bool:
        """Whether the platform chooses anew once the value is declared no more."""
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
    """The declared value; None where nothing is."""
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


# --- what the platform holds ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A live object as its own address shows it."""

    path: str
    id: str
    parent_id: str | None
    body: Document = field(repr=False)
    is_sparse: bool = False

    def holds(self, leaf: Leaf) -> Any:
        """The field's value where answers show it, in the write shape."""
        if PathOnly in leaf.field:
            return self.parent_id
        if leaf.path == "metadata":
            return owners.read(_inner(self.body, "metadata", sparse=self.is_sparse))[0]
        value: Any = self.body
        names, at = leaf.path.split("."), leaf.top
        for index, name in enumerate(names):
            at = at if index == 0 else next(each for each in at.fields if each.name == name)
            value = _followed(value, at.read_as.path if at.read_as else name, sparse=self.is_sparse)
        if leaf.field.as_map is not None:
            # A map from one field of each part to the other.
            key, rest = leaf.field.as_map.key, leaf.field.as_map.value
            return [{key: each, rest: value[each]} for each in value]
        return value


def _followed(value: Any, path: str, *, sparse: bool) -> Any:
    """What lies at the path. Only a sparse answer may lack a key: that is a text that is not set."""
    for part in path.split("."):
        if isinstance(value, list):
            value = [_inner(each, part, sparse=sparse) for each in value]
        elif value is not None:
            value = _inner(value, part.removesuffix("[]"), sparse=sparse)
    return value


def _inner(value: Document, part: str, *, sparse: bool) -> Any:
    return value.get(part) if sparse else value[part]


def same(leaf: Leaf, one: Any, other: Any) -> bool:
    """Whether two values mean the same: an empty one is none at all."""
    return bool(_form(leaf.field, one) == _form(leaf.field, other))


def _form(field: Field, value: Any) -> Any:
    if value in (None, "", [], {}):
        return None
    value = field.canonical(value) if field.canonical else value
    if isinstance(value, list) and field.item is not None:
        value = [_form(field.item, each) for each in value]
    if Unordered in field:
        value = sorted(value, key=str)
    if isinstance(value, list):
        return [{key: each[key] for key in each if key != "uri"} if isinstance(each, dict) else each for each in value]
    return value


@dataclass(frozen=True)
class Applied:
    """The plan that was applied, and the requests that changed something, in order."""

    plan: Plan
    calls: list[str]


# --- the project ----------------------------------------------------------------------------------------------------


@dataclass
class LivingProject:
    """What it declares is what was said last; `beside` stays declared until the end."""

    root: Path
    sandbox: Sandbox
    life: Life
    declared: dict[Address, Document] = field(default_factory=dict)
    is_sparse: bool = False

    @property
    def runtime(self) -> Runtime:
        # Without a PATH no Git is found, and so none is asked for the commit.
        return Runtime(environ={**self.sandbox.environ, "PATH": ""}, platform=self.sandbox)

    @property
    def kind(self) -> Kind:
        return kinds.get(self.life.kind)

    @property
    def subject(self) -> Address:
        return Address(self.life.kind, SUBJECT)

    def declare(self, spec: Document | None, **more: Any) -> None:
        """The subject with this spec, or (None) not any more."""
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
        """Carries out what is declared; a look at the end has found nothing left to do."""
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
        for parent_id, body in self._listed(kind):
            if self._is(kind, address, parent_id, body):
                path = f"{_collection(kind, parent_id)}/{body[kind.key]}"
                return Found(path, body[kind.key], parent_id, self.sandbox.get(path), self.is_sparse)
        return None

    def _listed(self, kind: Kind) -> Iterator[tuple[str | None, Document]]:
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
        spec = self.resolved(self.declared[address])
        same_parent = kind.parent is None or spec[kind.parent.field] == parent_id
        return same_parent and all(body[name] == spec[name] for name in kind.identity if name in body)

    def resolved(self, value: Any) -> Any:
        """As a client of the API would write it: references as ids, inline policies as text."""
        match value:
            case {"ref": str(target)}:
                return self._output(target, "id")
            case {"on_http_request": _}:
                return json.dumps(value)
            case dict():
                return {key: self.resolved(each) for key, each in value.items()}
            case list():
                return [self.resolved(each) for each in value]
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
        """A twin of what the spec declares, without our record; its id."""
        resolved = self.resolved(spec)
        at_once = {
            each.name: _spelt(each, resolved[each.name])
            for each in self.kind.fields
            if each.name in resolved and UpdateOnly not in each and PathOnly not in each
        }
        later = {
            each.name: resolved[each.name] for each in self.kind.fields if UpdateOnly in each and each.name in spec
        }
        parent = resolved[self.kind.parent.field] if self.kind.parent else None
        collection = _collection(self.kind, parent)
        made = self.sandbox.post(collection, {**self.kind.fixed, **at_once})[self.kind.key]
        if later:
            self.sandbox.patch(f"{collection}/{made}", later)
        return str(made)

    def patch_by_hand(self, live: Found, top: str, spec: Document) -> None:
        """The field as in the spec. Somebody who edits metadata with care leaves our record in it."""
        value = _spelt(self.kind.by_name[top], self.resolved(spec[top]))
        owner = owners.read(live.body.get("metadata"))[1]
        kept = {each.name: live.body[each.name] for each in self.kind.fields if AlwaysSent in each}
        self.sandbox.patch(
            live.path, {**kept, top: owners.write(value, owner) if top == "metadata" and owner else value}
        )


def _spelt(field: Field, value: Any) -> Any:
    """As a request has it."""
    spelling = field.as_map
    return value if spelling is None else {each[spelling.key]: each[spelling.value] for each in value}


def _collection(kind: Kind, parent_id: str | None) -> str:
    return kind.path if kind.parent is None else kind.path.replace(f"{{{kind.parent.field}}}", str(parent_id))


def account(sandbox: Sandbox) -> dict[str, Document]:
    """Every object that somebody made, by its own part of its id. Certificates that the platform obtained go by
    themselves."""
    once = [kind for kind in kinds.every() if kind.parent is None]
    listed = (each for kind in once for each in sandbox.get(kind.path)[kind.list_key])
    made = (each for each in listed if each.get("type") != "edge")  # an endpoint of an edge is that edge once more
    return {in_account(each): each for each in made if each.get("issued_at") is None}


def in_account(body: Document) -> str:
    """What two kinds that share an object call it alike."""
    return str(body["id"].rpartition("_")[2])


def paths_of(changed: Iterable[str], known: Mapping[str, Leaf]) -> set[str]:
    """Changes inside a document or a map as the field they are in."""
    return {next((path for path in known if re.match(rf"{re.escape(path)}($|[.\[])", each)), each) for each in changed}
