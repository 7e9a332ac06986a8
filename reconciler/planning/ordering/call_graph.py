"""The graph of a plan's calls with what each waits for, and the references between live objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields
from reconciler.model.plan import Call, Verb
from reconciler.model.problem import Problem
from reconciler.model.snapshot import LiveKey
from reconciler.model.value import Value
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.exclusive_keys import ExclusiveKey
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.matching.references import find_live_references
from reconciler.planning.ordering import dependencies
from reconciler.planning.ordering.calls import build_calls
from reconciler.planning.ordering.dependencies import HostIndex


class Wait(NamedTuple):
    """A call that starts only after the call `need` succeeded. `key`: the exclusive key that `need` releases for it."""

    call: str
    need: str
    key: ExclusiveKey | None = None


class Cascade(NamedTuple):
    """A live object that no call deletes: the platform deletes it with the object that it is part of."""

    part: LiveKey
    whole: Address


class Release(NamedTuple):
    """An extra call that removes contested items from a list. `takers` wait for it instead of for `giver`."""

    call: Call
    rank: tuple[int, int, int]
    giver: str
    takers: tuple[str, ...]


PassResult = Wait | Cascade | Problem


class CallGraph(Struct, frozen=True, dict=True):
    """The calls of a plan by id, with their needs. Passes read it and yield results; only `sequence` adds to it.

    creators, deleters, setters   ids of the calls that create the object of an address, delete a live object, and
                                  update the object of an address
    rank                          of calls that are ready, the one with the lowest rank comes first
    needs                         by call, the calls that must have succeeded before
    deleted_with                  live objects that no call deletes, and the whole that they are deleted with
    handovers                     by taker and giver, the exclusive keys that one takes from the other
    """

    decisions: Sequence[Decision]
    dependencies: Mapping[Address, Iterable[Address]]
    index: LiveIndex
    calls: dict[str, Call] = field(default_factory=dict)
    creators: dict[Address, str] = field(default_factory=dict)
    deleters: dict[LiveKey, str] = field(default_factory=dict)
    setters: dict[Address, list[str]] = field(default_factory=lambda: defaultdict(list))
    rank: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    needs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    deleted_with: dict[LiveKey, Address] = field(default_factory=dict)
    handovers: dict[tuple[str, str], set[ExclusiveKey]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(
        cls, decisions: Sequence[Decision], dependencies: Mapping[Address, Iterable[Address]], index: LiveIndex
    ) -> CallGraph:
        """The calls of all decisions, each with the needs that its own decision gives it."""
        graph = cls(decisions, dependencies, index)
        for position, decision in enumerate(decisions):
            for step, call in enumerate(build_calls(decision)):
                graph._enter(decision, call, position, step)
        return graph

    def _enter(self, decision: Decision, call: Call, position: int, step: int) -> None:
        self.calls[call.id] = call
        self.needs[call.id].update(call.needs)
        self.rank[call.id] = (1, -position, step) if call.verb is Verb.DELETE else (0, position, step)
        if call.verb is Verb.DELETE:
            assert decision.live is not None
            self.deleters[decision.live.key] = call.id
        elif call.verb is Verb.CREATE:
            self.creators[decision.address] = call.id
        else:
            self.setters[decision.address].append(call.id)

    def add(self, result: Wait | Cascade) -> None:
        """Adds the result of a pass."""
        if isinstance(result, Cascade):
            self.deleted_with[result.part] = result.whole
            return
        self.needs[result.call].add(result.need)
        if result.key is not None:
            self.handovers[result.call, result.need].add(result.key)

    def add_release(self, release: Release) -> None:
        """Adds a call that breaks a cycle."""
        call = release.call.id
        self.calls[call], self.rank[call] = release.call, release.rank
        self.needs[release.giver].add(call)
        for taker in release.takers:
            self.needs[taker] = self.needs[taker] - {release.giver} | {call}

    @cached_property
    def holders(self) -> Mapping[LiveKey, Decision]:
        """The decision about each live object that has one."""
        return {decision.live.key: decision for decision in self.decisions if decision.live is not None}

    @cached_property
    def hosts(self) -> HostIndex[LiveKey]:
        """The live reserved domains and addresses by host name."""
        return index_live_hosts(self.index)

    def own_calls(self, decision: Decision) -> list[str]:
        """The calls that create or update the object of a decision."""
        creator = self.creators.get(decision.address)
        return [*([creator] if creator is not None else ()), *self.setters.get(decision.address, ())]

    def deleter(self, decision: Decision) -> str:
        """The call that deletes the live object of a decision."""
        assert decision.live is not None
        return self.deleters[decision.live.key]


Pass = Callable[[CallGraph], Iterator[PassResult]]
"""Finds what calls wait for. Each result is added before the pass continues, so that it sees its own waits."""


def find_live_edges(index: LiveIndex) -> Iterator[tuple[LiveKey, str, LiveKey]]:
    """(referrer, field, target) for each reference between live objects: by id, by host name, from child to parent."""
    by_id: dict[tuple[str, str], LiveKey] = {(live.kind, live.id): live.key for live in index.by_locator.values()}
    hosts = index_live_hosts(index)
    for live in index.by_locator.values():
        kind = index.kinds[live.kind]
        for through, key in find_live_references(kind, live):
            if key in by_id:
                yield live.key, through, by_id[key]
        form: CanonicalFields | None = None
        for mentioning in kind.fields if kind.carries_traffic else ():
            if mentioning.mentions is None:
                continue
            form = form or index.form(kind, live)
            for name in dependencies.find_mentions(mentioning, form.get(mentioning.name)):
                yield from ((live.key, mentioning.name, holder) for holder in hosts.holders(name))


def index_live_hosts(index: LiveIndex) -> HostIndex[LiveKey]:
    """The live reserved domains and addresses by host name."""
    hosts: HostIndex[LiveKey] = HostIndex()
    for live in index.by_locator.values():
        name = index.kinds[live.kind].host
        if name is not None:
            hosts.add(live.body.get(name), live.key)
    return hosts


def drops_reference(graph: CallGraph, decision: Decision, through: str, target: LiveKey) -> bool:
    """Whether the decision updates the field `through` so that neither an id nor a host name leads to the target."""
    value = decision.want.get(through)
    if all(difference.field.name != through for difference in decision.differences):
        return False
    if target[1].rpartition("/")[2] in find_texts(value):
        return False
    names = dependencies.find_mentions(decision.kind.by_name[through], value)
    return not any(target in graph.hosts.holders(name) for name in names)


def find_texts(value: Value) -> Iterator[str]:
    """All strings in a value, ids among them."""
    match value:
        case str():
            yield value
        case dict():
            for part in value.values():
                yield from find_texts(part)
        case list():
            for item in value:
                yield from find_texts(item)
