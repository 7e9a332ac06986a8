"""Calls under way to a plan, and who refers to whom among live objects: what the orders of calls are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.model.address import Address
from reconciler.model.canonical import Form
from reconciler.model.kind import Kind
from reconciler.model.plan import Call
from reconciler.model.value import Value
from reconciler.planning.deciding.decide import Decision
from reconciler.planning.deciding.exclusive_keys import Claim, LiveKey
from reconciler.planning.matching.index import Register
from reconciler.planning.ordering import dependencies


@dataclass
class Draft:
    """Calls under way to a plan, with what each must wait for."""

    calls: dict[str, Call] = field(default_factory=dict)
    needs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    creators: dict[Address, str] = field(default_factory=dict)
    deleters: dict[LiveKey, str] = field(default_factory=dict)
    setters: dict[Address, list[str]] = field(default_factory=lambda: defaultdict(list))  # calls that change in place
    rank: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    taken: dict[LiveKey, Address] = field(default_factory=dict)  # what no call deletes, and the whole it goes with
    handed: dict[tuple[str, str], set[Claim]] = field(default_factory=lambda: defaultdict(set))  # (taker, giver)

    def wait(self, call: str, *needs: str) -> None:
        self.needs[call].update(need for need in needs if need != call)


def live_edges(register: Register, kinds: Mapping[str, Kind]) -> Iterator[tuple[LiveKey, str, LiveKey]]:
    """(who refers, through which field, to whom) among live objects: by id, by a host it serves, child to parent."""
    by_id: dict[tuple[str, str], LiveKey] = {
        (live.kind, live.id): (live.kind, live.locator) for live in register.by_locator.values()
    }
    hosts = live_hosts(register, kinds)
    for live in register.by_locator.values():
        kind = kinds[live.kind]
        me = (live.kind, live.locator)
        for through, key in dependencies.live_references(kind, live):
            if key in by_id:
                yield me, through, by_id[key]
        form: Form | None = None
        for each in kind.fields if kind.serves else ():
            if each.mentions is None:
                continue
            form = form or register.form(kind, live)
            for name in dependencies.mentions(each, form.get(each.name)):
                yield from ((me, each.name, holder) for holder in hosts.holders(name))


def live_hosts(register: Register, kinds: Mapping[str, Kind]) -> dependencies.HostIndex[LiveKey]:
    """Finds the live reserved domain or address behind a host name."""
    index: dependencies.HostIndex[LiveKey] = dependencies.HostIndex()
    for live in register.by_locator.values():
        name = kinds[live.kind].host
        if name is not None:
            index.add(live.body.get(name), (live.kind, live.locator))
    return index


def lets_go(decision: Decision, through: str, target: LiveKey) -> bool:
    """Whether the field through which the object is referred to gets a value without it."""
    differs = any(each.field.name == through for each in decision.differences)
    return differs and target[1].rpartition("/")[2] not in texts(decision.want.get(through))


def texts(value: Value) -> Iterator[str]:
    """All texts in a value, ids among them."""
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)
