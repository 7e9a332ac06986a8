"""What people call objects: names for ids inside changes, and the values that tell which object a deletion is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Value
from reconciler.planning.comparing.plan_fields import show_fields
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.index import LiveIndex

_LONGEST = 100  # characters of an id, and of a value in a name


def find_names(assignments: Assignments, changes: Iterable[Change]) -> Mapping[str, str]:
    """By id: the name of each live object whose id is a value in these changes, such as `IPPolicy/office`.

    An object of another stack is `IPPolicy/office of stack web`, an unmanaged one `IPPolicy "Office"`.
    """
    mentioned = {text for change in changes for value in _list_values(change) for text in _find_texts(value)}
    if not mentioned:
        return {}
    index = assignments.index
    lives = (live for live in index.by_locator.values() if live.id in mentioned)
    found = {live.id: live for live in lives if index.kinds[live.kind].key == "id"}
    names = ((id, _describe(assignments, found[id])) for id in sorted(found))
    return {id: name for id, name in names if name}


def describe_identity(index: LiveIndex, kind: Kind, live: Live) -> Mapping[str, Value]:
    """The fields and outputs that tell which object this is, by name, without empty ones and long texts."""
    names = dict.fromkeys((*kind.identity, *kind.display_fields, "description"))
    fields = show_fields(kind, index.form(kind, live), Address(kind.name, live.id))
    values = {name: fields.get(name) if name in kind.by_name else live.body.get(name) for name in names}
    return {name: value for name, value in values.items() if value and not _is_long(value)}


def _describe(assignments: Assignments, live: Live) -> str:
    index, kind = assignments.index, assignments.index.kinds[live.kind]
    address = assignments.by_key.get(live.key)
    if address is not None:
        return str(address)
    if live.owner is not None:
        return str(live.owner.address) + (f" of stack {live.owner.stack}" if live.owner.stack != index.stack else "")
    if bound := index.find_bound_addresses(live):
        return str(bound[0])
    texts = (value for value in describe_identity(index, kind, live).values() if isinstance(value, str))
    text = next((text for text in texts if text not in (live.id, live.parent_id)), None)
    return f'{kind.name} "{text}"' if text else ""


def _list_values(change: Change) -> Iterator[Value]:
    for field in change.fields:
        yield field.old
        yield field.new
    yield from change.identity.values()


def _find_texts(value: Value) -> Iterator[str]:
    match value:
        case str() if 0 < len(value) <= _LONGEST:
            yield value
        case dict():
            for item in value.values():
                yield from _find_texts(item)
        case list() | tuple():
            for item in value:
                yield from _find_texts(item)


def _is_long(value: Value) -> bool:
    return isinstance(value, str) and ("\n" in value or len(value) > _LONGEST)
