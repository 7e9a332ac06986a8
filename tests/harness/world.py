"""A platform in memory that applies plans call by call, and refuses what a real one would refuse.

It depends on kinds, never on the planner. `RefusedCall` ends a run at an id that does not exist, a second holder of a
unique key or hostport, or a delete of an object in use.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from reconciler.kinds.rules.canonical import hostport_of_url
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields, digests, settle
from reconciler.model.fields.annotations import Exclusive, InputOnly, PathOnly
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.snapshot import Binding, Listing, Live, Snapshot
from reconciler.model.value import Ref, Template, references, reveal, substitute
from reconciler.planning.comparing.canonical_fields import canonical_live, natural_key


class RefusedCall(AssertionError):
    pass


@dataclass(frozen=True)
class DerivedValues:
    """Derived values of an object that rules use often."""

    form: CanonicalFields
    ids: tuple[tuple[tuple[str, ...], str], ...]
    keys: frozenset[str]
    stood: frozenset[str]
    hosts: frozenset[str]


@dataclass
class RandomAccount:
    kinds: Sequence[Kind]
    stack: str = "laws"
    objects: dict[tuple[str, str], dict[str, Any]] = dataclasses.field(default_factory=dict)
    parents: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    bindings: dict[Address, Binding] = dataclasses.field(default_factory=dict)
    receipts: set[str] = dataclasses.field(default_factory=set)
    log: list[str] = dataclasses.field(default_factory=list)
    created: int = 0
    _derived: dict[tuple[str, str], DerivedValues] = dataclasses.field(
        default_factory=dict
    )  # deleted when an object changes

    def __post_init__(self) -> None:
        self.by_name = {kind.name: kind for kind in self.kinds}

    def copy(self) -> RandomAccount:
        """A copy with objects of its own."""
        return dataclasses.replace(
            self,
            objects=copy.deepcopy(self.objects),
            parents=dict(self.parents),
            bindings=dict(self.bindings),
            receipts=set(self.receipts),
            log=list(self.log),
            _derived={},
        )

    # --- reading -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return Snapshot(
            {kind.name: Listing(tuple(self.live(kind))) for kind in self.kinds},
            dict(self.bindings),
            frozenset(self.receipts),
        )

    def live(self, kind: Kind) -> Iterator[Live]:
        for (name, locator), body in self.objects.items():
            if name == kind.name:
                parent = self.parents.get((name, locator))
                yield Live(name, locator.removeprefix(f"{parent}/") if parent else locator, dict(body), parent)

    # --- by hand -----------------------------------------------------------------------------------------------------

    def put(self, kind: Kind, body: Mapping[str, Any], parent: str | None = None) -> str:
        """Creates an object as the platform does, and returns its id."""
        self._check(kind, body, parent, None)
        self.created += 1
        object_id = body[kind.key] if kind.key != "id" else f"{kind.id_prefix}{self.created:027d}"
        locator = f"{parent}/{object_id}" if parent else object_id
        # A field that responses never show has no key in them either: a null would be a value.
        hidden = {field.read_as.path.partition(".")[0] for field in kind.fields if InputOnly in field and field.read_as}
        response = {"id": object_id, **dict.fromkeys(name for name in kind.read.model_fields if name not in hidden)}
        for field in kind.fields:
            _show(response, field, body.get(field.name, field.default))
        if kind.host and kind.host not in kind.by_name:
            response[kind.host] = f"{self.created}.tcp.example.net:20000"
        self.objects[kind.name, locator] = response
        self._derived.pop((kind.name, locator), None)
        if parent:
            self.parents[kind.name, locator] = parent
        return object_id

    def change(self, kind: Kind, locator: str, body: Mapping[str, Any]) -> None:
        response = self.objects[kind.name, locator]
        self._check(kind, body, self.parents.get((kind.name, locator)), locator)
        self._derived.pop((kind.name, locator), None)
        for name, value in body.items():
            _show(response, kind.by_name[name], value)

    def remove(self, kind: Kind, locator: str) -> None:
        users = list(self.find_users(kind, locator))
        if users:
            raise RefusedCall(f"{kind.name} {locator} is still used by {users}")
        if users := list(self._find_users_of_last_part(kind, locator)):
            raise RefusedCall(f"{kind.name} {locator} is the last of what {users} cannot do without")
        del self.objects[kind.name, locator]
        self.parents.pop((kind.name, locator), None)

    # --- plans -------------------------------------------------------------------------------------------------------

    def carry_out(self, plan: Plan) -> None:
        self._derived.clear()  # a test may have changed objects by hand
        done: set[str] = set()
        answers: dict[Address, tuple[str, dict[str, Any]]] = {}
        formers = {change.address: change.former for change in plan.changes if change.former}
        for address, binding in plan.bindings.items():
            self._bind(address, binding)
        for call in plan.calls:
            assert set(call.needs) <= done, f"{call.id} comes before {set(call.needs) - done}"
            self._carry_out(call, answers)
            if call.address in formers and call.owner is not None:
                self._bind(formers[call.address], None)
            self.log.append(call.id)
            done.add(call.id)

    def _carry_out(self, call: Call, answers: dict[Address, tuple[str, dict[str, Any]]]) -> None:
        kind = self.by_name[call.address.kind]

        def resolve(ref: Ref) -> Any:
            object_id, body = answers[ref.target]
            return object_id if ref.output == "id" else body[ref.output]

        path = str(substitute(call.path, resolve)) if isinstance(call.path, (Template, Ref)) else call.path
        body = {name: substitute(value, resolve) for name, value in (call.body or {}).items()}
        record = self._owner(call, kind, resolve, answers)
        if record is not None and kind.keeps_owner and call.owner is not None:
            body["metadata"] = owners.write(substitute(call.owner.text, resolve), record)
        body = reveal(body)
        if call.verb is Verb.CREATE:
            parent = path.split("/")[-2] if kind.parent else None
            assert body.keys() >= kind.wire.fixed.keys()
            object_id = self.put(kind, body, parent)
            locator = f"{parent}/{object_id}" if parent else object_id
            answers[call.address] = (object_id, self.objects[kind.name, locator])
            if call.deliver and record is not None:
                self.receipts.add(record.intent)
        else:
            locator = self._locator(kind, path, call)
            self._act(kind, locator, call, path, body)
        if not kind.keeps_owner and record is not None:
            self._bind(call.address, Binding(locator, record.applied, record.protect, record.replaces))
        elif call.verb is Verb.DELETE and call.unbinds:
            self._bind(call.address, None)
        elif call.verb is Verb.DELETE and call.address in answers and call.address in self.bindings:
            self._bind(call.address, replace(self.bindings[call.address], replaces=None))

    def _act(self, kind: Kind, locator: str, call: Call, path: str, body: dict[str, Any]) -> None:
        if (kind.name, locator) not in self.objects:
            raise RefusedCall(f"{call.id}: there is no {locator}")
        segment = path.rsplit("/", 1)[1]
        match call.verb:
            case Verb.UPDATE:
                self.change(kind, locator, body)
            case Verb.DELETE:
                self.remove(kind, locator)
            case Verb.PUT:
                self.change(kind, locator, {segment: body})
            case Verb.REMOVE:
                cleared = next(field for field in kind.fields if field.delete_segment == segment)
                self.change(kind, locator, {cleared.name: None})

    def _locator(self, kind: Kind, path: str, call: Call) -> str:
        parts = path.strip("/").split("/")
        head = kind.path.strip("/").split("/")
        object_id = parts[len(head)]
        if kind.parent is None:
            return object_id
        return f"{parts[head.index('{' + kind.parent.field + '}')]}/{object_id}"

    def _owner(self, call: Call, kind: Kind, resolve: Any, answers: Mapping[Address, Any]) -> Owner | None:
        draft = call.owner
        if draft is None:
            return None
        intent = draft.intent or f"intent-{call.address}-{self.created}"
        if call.address in answers and draft.intent is None and call.verb is Verb.UPDATE:
            previous = owners.read(answers[call.address][1]["metadata"])[1]
            intent = previous.intent if previous else intent
        salt = intent if kind.keeps_owner else str(draft.address)
        applied = digests(settle(kind, draft.applied, resolve), salt)
        return Owner(
            self.stack, draft.address, intent, applied, draft.protect, draft.pending, draft.replaces, draft.sources
        )

    def _bind(self, address: Address, binding: Binding | None) -> None:
        if binding is None:
            self.bindings.pop(address, None)
        else:
            self.bindings[address] = binding

    def read(self, name: str, locator: str) -> DerivedValues:
        """A live object in canonical form, with the ids that it references and the keys that it holds."""
        if (name, locator) not in self._derived:
            kind, body = self.by_name[name], self.objects[name, locator]
            form = canonical_live(kind, Live(name, "", body, self.parents.get((name, locator))))
            sets = (frozenset(collect(kind, form)) for collect in (_list_keys, _list_hostports, _hosts))
            self._derived[name, locator] = DerivedValues(form, tuple(_ids(kind, form)), *sets)
        return self._derived[name, locator]

    # --- rules -------------------------------------------------------------------------------------------------------

    def _check(self, kind: Kind, body: Mapping[str, Any], parent: str | None, me: str | None) -> None:
        assert not list(references(dict(body)))
        for target_kinds, target in _ids(kind, body):
            if not any((name, target) in self.objects for name in target_kinds):
                raise RefusedCall(f"{kind.name} refers to {target}, which does not exist")
        before = dict(self.objects.get((kind.name, me), {})) if me else {"id": ""}
        for name, value in body.items():
            if name in kind.by_name:
                _show(before, kind.by_name[name], value)
        form = canonical_live(kind, Live(kind.name, str(before.get("id")), before, parent))
        alone, holds, stands = kind.is_unique(form), set(_list_keys(kind, form)), set(_list_hostports(kind, form))
        for name, locator in self.objects:
            other_kind = self.by_name[name]
            rivals = (kind.unique and name == kind.name) or (
                (holds or stands) and (other_kind.endpoint.url or "hostports" in other_kind.by_name)
            )
            if (name, locator) == (kind.name, me) or not rivals:
                continue
            other = self.read(name, locator)
            single = name == kind.name and (alone or kind.is_unique(other.form))
            if single and natural_key(kind, form) == natural_key(kind, other.form) is not None:
                raise RefusedCall(f"a second {kind.name} {natural_key(kind, form)}")
            shared = holds & (other.keys | other.stood) | stands & other.keys
            endpoint = {kind.name: form, name: other.form}.get("CloudEndpoint", {})
            if {kind.name, name} == {"CloudEndpoint", "TLSEdge"} and endpoint["url"].startswith("https:"):
                continue  # the one pair of which both are served at one host
            if shared:
                raise RefusedCall(f"{shared} is held by {name} {locator}")

    def find_users(self, kind: Kind, locator: str) -> Iterator[str]:
        object_id = locator.rsplit("/", 1)[-1]
        for name, other in self.objects:
            derived = self.read(name, other)
            if any(object_id == target and kind.name in names for names, target in derived.ids):
                yield f"{name} {other}"
            serves = self.by_name[name].carries_traffic
            if kind.host and serves and self.objects[kind.name, locator][kind.host] in derived.hosts:
                yield f"{name} {other}"

    def _find_users_of_last_part(self, kind: Kind, locator: str) -> Iterator[str]:
        """Objects that require at least one part, if this is the last one."""
        for name, other in self.objects:
            user, derived = self.by_name[name], self.read(name, other)
            if user.requires_parts is None or kind.name not in user.part_kinds or not user.requires_parts(derived.form):
                continue
            assert kind.part_of is not None
            through = kind.part_of.field
            whole = self.read(kind.name, locator).form[through]
            parts = [part for part in self.objects if part[0] == kind.name and self.read(*part).form[through] == whole]
            if len(parts) == 1 and any(whole == target for _, target in derived.ids):
                yield f"{name} {other}"


def _show(response: dict[str, Any], field: Field, value: Any) -> None:
    """One written field as a response shows it."""
    if PathOnly in field or InputOnly in field:
        return
    if field.shape is Shape.OBJECT and isinstance(value, dict):
        inner: dict[str, Any] = {}
        for sub in field.fields:
            _show(inner, sub, value.get(sub.name, sub.default))
        value = inner
    if field.read_as is None:
        response[field.name] = value
        return
    head, _, rest = field.read_as.path.partition(".")
    if head.endswith("[]"):
        response[head[:-2]] = [{rest: item} for item in value or []]
    elif rest:
        response[head] = {rest: value} if value else None
    else:
        response[head] = value


def _ids(kind: Kind, body: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for field in kind.fields:
        yield from _field_ids(field, body.get(field.name))


def _field_ids(field: Field, value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    if field.refs and PathOnly not in field:
        yield from ((field.refs, item) for item in (value if isinstance(value, list) else [value]) if item)
    elif field.shape is Shape.OBJECT and isinstance(value, dict):
        for sub in field.fields:
            yield from _field_ids(sub, value.get(sub.name))


def _list_keys(kind: Kind, form: Mapping[str, Any]) -> Iterator[str]:
    for field in kind.fields:
        if Exclusive in field:
            yield from form[field.name] or []


def _list_hostports(kind: Kind, form: Mapping[str, Any]) -> Iterator[str]:
    if kind.endpoint.url is not None:
        place = hostport_of_url(form[kind.endpoint.url])
        yield from [place] if place else []


def _hosts(kind: Kind, form: Mapping[str, Any]) -> Iterator[str]:
    for field in kind.fields:
        if field.mentions and form.get(field.name):
            for host in field.mentions.hosts(form[field.name]):
                yield host
                yield host.rpartition(":")[0]


def order_last_first(calls: Sequence[Call]) -> tuple[Call, ...]:
    """Another order that respects the needs: of the calls that are ready, the last one of the plan comes first."""
    ordered: list[Call] = []
    left = list(calls)
    while left:
        done = {call.id for call in ordered}
        ready = [call for call in left if done.issuperset(call.needs)]
        ordered.append(ready[-1])
        left.remove(ready[-1])
    return tuple(ordered)


def dump(world: RandomAccount) -> str:
    return json.dumps([[*key, body] for key, body in sorted(world.objects.items())], sort_keys=True)
