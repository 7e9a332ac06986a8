"""Whether the platform is still as a plan saw it, object by object, and what is left of the plan where it is not.

Looks at what the plan touches and at nothing else; the manifests have no say in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from reconciler import kinds
from reconciler.cli import planfile
from reconciler.cli.planfile import PlanFile
from reconciler.cli.terminal import exit_codes, output
from reconciler.engine.observe import ById, collection
from reconciler.model.address import Address
from reconciler.model.canonical import Form, wanted
from reconciler.model.change import Action, Change
from reconciler.model.event import Outcome
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Call, Consent, Forecast, Plan, Seen, Verb, create_id
from reconciler.model.snapshot import Live, Snapshot
from reconciler.model.value import Json, Value, references
from reconciler.planning.comparing.canonical_fields import identity
from reconciler.planning.comparing.compare import shown
from reconciler.planning.matching.index import Register, whose
from reconciler.project.settings.config import Config
from reconciler.rendering.plan.outline import in_words

_ID = re.compile(r"([a-z0-9]+_)[A-Za-z0-9]{27}")  # prefix and KSUID


@dataclass(frozen=True)
class Left:
    """What a plan file that is stale in part leaves undone."""

    moved: tuple[Address, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def code(self) -> int:
        return exit_codes.PARTLY if self.moved else exit_codes.DONE

    @property
    def lines(self) -> list[str]:
        """One for each call that is not carried out."""
        return [
            f"{Outcome.SKIPPED}: {call.id}: "
            + ("it moved since the plan was made" if call.address in self.moved else "it needs what moved")
            for call in self.calls
        ]


def rest(
    file: PlanFile,
    snapshot: Snapshot,
    config: Config,
    allow: Mapping[tuple[str, str], int],
    *,
    partial: bool,
    done: Collection[str] = (),
) -> tuple[Plan, Left]:
    """What may be carried out of a plan file, and what not. Stop, naming what moved, unless it is `partial`.

    `done`: the ids of the calls that earlier runs of the file carried out.
    """
    found = planfile.with_secrets(file, config, forms(file.plan, snapshot))
    told = moved(found.plan, snapshot, done)
    why = "the platform changed after the plan was made" if told else "a secret is not what it was for the plan"
    plan, lost = remaining(found.plan, snapshot, done)
    open_calls = {call.address for call in plan.calls}
    for address, lines in (*lost.items(), *found.moved.items()):
        if address in open_calls:
            told.setdefault(address, []).extend(lines)
    planfile.check_rules(file, plan)
    plan, dropped = without(plan, told)
    for _, lines in sorted(told.items()):
        for line in lines:
            output.say(line)
    if told and not (partial and plan.changes):
        raise exit_codes.Stop(exit_codes.STALE, f"error: {why}; plan again")
    if file.note:
        output.say(file.note)
        output.problems(file.why)
    doubts = [Consent("account", "*", 1, snapshot.doubt)] if snapshot.doubt and plan.changes else []
    consents = tuple(
        replace(each, granted=each.granted or allow.get((each.what, each.kind), 0) >= each.count)
        for each in (*(each for each in plan.consents if each.what != "account" or not doubts), *doubts)
    )
    return replace(plan, consents=consents), Left(tuple(told), dropped)


def kinds_of(plan: Plan) -> frozenset[str]:
    """The kinds that have to be looked at: those of the objects that change, and of those that calls name by id."""
    touched = {change.address.kind for change in plan.changes}
    return frozenset(touched | {kind for call in plan.calls for kind, _ in _named(call)})


def by_id(plan: Plan) -> ById:
    """The objects that are known by id and whose modules alone are managed, for `observe`."""
    named: dict[str, list[tuple[str, str | None]]] = {}
    for address, seen in plan.seen.items():
        parent, slash, id = seen.id.rpartition("/")
        if slash and kinds.get(address.kind).modules_by_id:
            named.setdefault(address.kind, []).append((id, parent))
    return named


def forms(plan: Plan, snapshot: Snapshot) -> Mapping[Address, Form]:
    """What the objects that the plan saw are now, in canonical form."""
    register = _register(plan, snapshot)
    found = {address: register.by_locator.get((address.kind, seen.id)) for address, seen in plan.seen.items()}
    return {address: register.form(kinds.get(address.kind), live) for address, live in found.items() if live}


def moved(plan: Plan, snapshot: Snapshot, done: Collection[str] = ()) -> dict[Address, list[str]]:
    """Every object of the plan that changed on the platform since the plan was created, and what to say of each.

    `done`: the ids of the calls that earlier runs of the plan carried out. What these calls wrote is not compared.
    """
    look = _Look(plan, snapshot, done)
    told = {change.address: list(dict.fromkeys(look.at(change))) for change in plan.changes}
    return {address: lines for address, lines in told.items() if lines}


def remaining(plan: Plan, snapshot: Snapshot, done: Collection[str]) -> tuple[Plan, dict[Address, list[str]]]:
    """The plan without the calls that earlier runs of it carried out, and what its other calls need and do not find.

    References to what these calls created become the values that the platform shows.
    """
    if not done:
        return plan, {}
    look = _Look(plan, snapshot, done)
    needed = {ref for call in plan.calls if call.id not in done for ref in references(_parts(call))}
    resolved: dict[str, Json] = dict(plan.resolved)
    made: dict[Address, Live] = {}
    for address in {ref.target for ref in needed if create_id(ref.target) in done}:
        if (live := look.made(address)) is not None:
            made[address] = live
    for ref in needed & {ref for ref in needed if ref.target in made}:
        resolved[f"{ref.target}.{ref.output}"] = _output(made[ref.target], ref.output)
    lost: dict[Address, list[str]] = {}
    calls: list[Call] = []
    for call in plan.calls:
        if call.id in done:
            continue
        for target in dict.fromkeys(ref.target for ref in references(_parts(call))):
            if create_id(target) in done and target not in made:
                lost.setdefault(call.address, []).append(f"{call.address}: {target}, which this plan created, is gone")
        draft, live = call.owner, made.get(call.address)
        if draft is not None and draft.intent is None and live is not None and live.owner is not None:
            draft = replace(draft, intent=live.owner.intent)  # the object keeps the intent of its create
        needs = tuple(need for need in call.needs if need not in done)
        calls.append(replace(call, needs=needs, owner=draft))
    changes = tuple(change for change in plan.changes if change.address not in look.finished)
    consents = tuple(_consents(plan, changes))
    forecast = _forecast(plan, len(calls))
    rest = replace(plan, changes=changes, calls=tuple(calls), consents=consents, resolved=resolved, forecast=forecast)
    return rest, lost


def _parts(call: Call) -> Value:
    """All of a call in which a reference may stand."""
    return [call.path, call.body, *((call.owner.text, dict(call.owner.applied)) if call.owner else ())]


def _output(live: Live, output: str) -> Json:
    """What `Kind/name.output` stands for; None where the platform does not show it."""
    if output == "id":
        return live.id
    value: Json = live.body
    for part in output.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def without(plan: Plan, refused: Collection[Address]) -> tuple[Plan, tuple[Call, ...]]:
    """The plan without what concerns these objects or needs what does, and the calls that fell away."""
    left, dropped = _without(plan, refused)
    gone = tuple(call for call in plan.calls if call.id in dropped)
    # What is not renamed after all keeps the name that it is remembered by.
    unbound = left | {change.former for change in plan.changes if change.address in left}
    changes = tuple(change for change in plan.changes if change.address not in left)
    calls = tuple(call for call in plan.calls if call.id not in dropped)
    rest = replace(
        plan,
        changes=changes,
        calls=calls,
        consents=tuple(_consents(plan, changes)) if left else plan.consents,
        forecast=_forecast(plan, len(calls)),
        bindings={address: each for address, each in plan.bindings.items() if address not in unbound},
    )
    return rest, gone


def _without(plan: Plan, refused: Collection[Address]) -> tuple[set[Address], set[str]]:
    """The addresses and the calls that fall away with these addresses.

    A change that loses one of its calls loses all of them, and so does each change with a call that needs one of those.
    """
    calls_of, dependents = _calls_by_address(plan), _dependents(plan)
    left: set[Address] = set()
    dropped: set[str] = set()
    pending = list(refused)
    while pending:
        address = pending.pop()
        if address in left:
            continue
        left.add(address)
        for call in calls_of.get(address, ()):
            dropped.add(call.id)
            pending += [each.address for each in dependents.get(call.id, ())]
    return left, dropped


def _calls_by_address(plan: Plan) -> Mapping[Address, list[Call]]:
    found: dict[Address, list[Call]] = {}
    for call in plan.calls:
        found.setdefault(call.address, []).append(call)
    return found


def _dependents(plan: Plan) -> Mapping[str, list[Call]]:
    """The calls that need each call, by its id."""
    found: dict[str, list[Call]] = {}
    for call in plan.calls:
        for need in call.needs:
            found.setdefault(need, []).append(call)
    return found


def _consents(plan: Plan, left: Sequence[Change]) -> Iterator[Consent]:
    """With how much there is left to consent to, at most. Parts that go with something are not among the changes."""
    for each in plan.consents:
        if (actions := _COUNTED.get(each.what)) is None:
            yield each
            continue
        changes = sum(change.action in actions and each.kind in ("*", change.address.kind) for change in left)
        if count := min(each.count, changes + each.parts):
            yield replace(each, count=count)


_COUNTED: Mapping[str, Collection[Action]] = {  # what a consent may be about: rather too much than too little
    "update": (Action.UPDATE, Action.MOVE),
    "adopt": (Action.ADOPT, Action.REPLACE),
    "overwrite": (Action.CREATE, Action.REPLACE),
    "delete": (Action.DELETE, Action.REPLACE),
    "delete-protected": (Action.DELETE, Action.REPLACE),
}


def _forecast(plan: Plan, calls: int) -> Forecast:
    """Of so many calls of the plan, as if each took its share of the time."""
    return Forecast(calls, plan.forecast.seconds * calls / max(len(plan.calls), 1))


class _Look:
    """Compares one snapshot with what a plan says of it. Every object is found by an index: by id, owner or key."""

    def __init__(self, plan: Plan, snapshot: Snapshot, done: Collection[str] = ()) -> None:
        self._plan = plan
        self._done = frozenset(done)
        self._snapshot = snapshot
        self._register = _register(plan, snapshot)
        self._calls = _calls_by_address(plan)
        self._by_id: dict[tuple[str, str], Live] = {}
        self._by_owner: dict[Address, list[Live]] = {}
        for live in self._register.by_locator.values():
            self._by_id.setdefault((live.kind, live.id), live)
            if live.owner is not None and live.owner.stack == plan.stack:
                self._by_owner.setdefault(live.owner.address, []).append(live)
        self._parents: dict[str, dict[str, str | None]] = {}
        self.finished = {
            address for address, calls in self._calls.items() if all(call.id in self._done for call in calls)
        }

    def made(self, address: Address) -> Live | None:
        """The object that an earlier run of the plan created for an address; None if it is not there any more."""
        seen = self._plan.seen.get(address)
        found = [live for live in self._by_owner.get(address, ()) if seen is None or live.locator != seen.id]
        binding = self._snapshot.bindings.get(address)
        if not found and binding is not None and (seen is None or binding.id != seen.id):
            bound = self._register.by_locator.get((address.kind, binding.id))
            found = [bound] if bound is not None and bound.owner is None else []
        return found[0] if len(found) == 1 else None

    def at(self, change: Change) -> Iterator[str]:
        address, kind = change.address, kinds.get(change.address.kind)
        if address in self.finished:
            return
        listing = self._snapshot.of(kind.name)
        seen = self._plan.seen.get(address)
        done = [call for call in self._calls.get(address, ()) if call.id in self._done]
        deleted = {call.target for call in done if call.verb is Verb.DELETE}
        if not listing.complete and not (seen and (kind.name, seen.id) in self._register.by_locator):
            yield f"{address}: cannot be seen: {listing.why}"
            return
        if seen is not None and _id(seen) not in deleted:
            yield from self._seen(address, kind, seen, done)
        if change.id is not None and change.id not in deleted and (seen is None or change.id != _id(seen)):
            yield from self._other(change, change.id)
        if create_id(address) in self._done and self.made(address) is None:
            yield f"{address}: what this plan created is gone"
        for call in self._calls.get(address, ()):
            if call.id in self._done:
                continue
            yield from self._needed(call)
            if call.verb is Verb.CREATE:
                yield from self._made_meanwhile(call, kind, seen, change)

    def _seen(self, address: Address, kind: Kind, seen: Seen, done: Sequence[Call]) -> Iterator[str]:
        live = self._register.by_locator.get((kind.name, seen.id))
        if live is None:
            yield f"{address}: {_id(seen)} is gone"
            return
        ours = any(call.owner is not None and call.target == live.id for call in done)
        is_same = live in self._by_owner.get(address, ()) if ours and kind.keeps_owner else whose(live) == seen.owner
        if not is_same:
            now = whose(live)
            yield f"{address}: {live.id} was {_told(seen.owner)}, is now {_told(now)}"
        fields = shown(kind, self._register.form(kind, live), address)
        written = {name for call in done if call.target == live.id for name in _written(kind, call)}
        for name in sorted((seen.fields.keys() | fields.keys()) - written):
            old, new = seen.fields.get(name), fields.get(name)
            if old != new:
                yield f"{address}.{name}: was {in_words(old)}, is now {in_words(new)}"

    def _other(self, change: Change, id: str) -> Iterator[str]:
        """A second object of the address, which the plan deletes and of which it keeps no fields."""
        address, ours = change.address, (change.address, change.former)
        live = self._by_id.get((address.kind, id))
        if live is None:
            yield f"{address}: {id} is gone"
        elif live.owner is not None and not (live.owner.stack == self._plan.stack and live.owner.address in ours):
            yield f"{address}: {id} is now {_told(whose(live))}"

    def _needed(self, call: Call) -> Iterator[str]:
        """What a call names by its id has to be there."""
        for kind, id in _named(call):
            if id != call.target and (kind, id) not in self._by_id and self._snapshot.of(kind).complete:
                yield f"{call.address}: {id}, which it refers to, is gone"

    def _made_meanwhile(self, call: Call, kind: Kind, seen: Seen | None, change: Change) -> Iterator[str]:
        known = {seen.id if seen else None, change.id}
        owned = self._by_owner.get(call.address, [])
        key = self._key(call, kind)
        alike = [] if key is None else self._register.by_key.get((kind.name, key), [])
        names = " and ".join(kind.identity)
        told = {live.key: f"{live.id} exists now, with the same {names}, and is {_told(whose(live))}" for live in alike}
        told |= {live.key: f"{live.id} exists now" for live in owned}
        for live in sorted({live.key: live for live in (*owned, *alike)}.values(), key=lambda live: live.locator):
            if live.locator not in known and live.id not in known:
                yield f"{call.address}: {told[live.key]}"

    def _key(self, call: Call, kind: Kind) -> tuple[object, ...] | None:
        """The natural key of what a call creates, if the platform refuses a second one."""
        if not kind.is_unique(call.body or {}) or not isinstance(call.path, str):
            return None  # below a parent that is new itself there is nothing yet
        spec: dict[str, Value] = dict(call.body or {})
        if kind.parent is not None:
            spec[kind.parent.field] = self._parents_of(kind).get(call.path)
        return identity(kind, wanted(kind, spec))

    def _parents_of(self, kind: Kind) -> Mapping[str, str | None]:
        """The id of the parent of each collection of this kind, by the collection's path."""
        if kind.name not in self._parents:
            ids = {live.parent_id for live in self._snapshot.of(kind.name).objects}
            self._parents[kind.name] = {collection(kind, each): each for each in ids}
        return self._parents[kind.name]


def _register(plan: Plan, snapshot: Snapshot) -> Register:
    return Register.of(Manifest(plan.stack, {}), snapshot, kinds.planned())


def _id(seen: Seen) -> str:
    return seen.id.rpartition("/")[2]


def _written(kind: Kind, call: Call) -> Iterator[str]:
    """The fields that an update or a request to a module sets."""
    if call.verb in (Verb.PUT, Verb.REMOVE) and isinstance(call.path, str):
        segment = call.path.rpartition("/")[2]
        yield from (field.name for field in kind.fields if segment in (field.name, field.clearing))
    elif call.verb is Verb.UPDATE:
        yield from call.body or {}
        if call.owner is not None:
            yield "metadata"


def _told(owner: str) -> str:
    return f"of {owner}" if owner else "nobody's"


def _named(call: Call) -> Iterator[tuple[str, str]]:
    """Kind and id of every object that the call's body or path names outright."""
    prefixes = _prefixes()
    parts = (call.path,) if isinstance(call.path, str) else call.path.parts
    segments = (segment for part in parts if isinstance(part, str) for segment in part.split("/"))
    for text in (*_texts(call.body), *segments):
        found = _ID.fullmatch(text)
        if found and found[1] in prefixes and text != call.target:
            yield prefixes[found[1]], text


@cache
def _prefixes() -> Mapping[str, str]:
    """The kind that each prefix of ids stands for."""
    return {kind.id_prefix: kind.name for kind in kinds.every() if kind.id_prefix}


def _texts(value: Value) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)
