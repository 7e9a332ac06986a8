"""Proposes declarations for the live objects of an account that are not declared, for `import`.

Ids become references, names are chosen from the objects, and secrets are ignored. A pure function of manifest and
snapshot; `project.manifests.write` writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.dialect import to_specification_id
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Listing, Live, Snapshot
from reconciler.model.value import Ref, Secret, Template, Value
from reconciler.planning.comparing.canonical_fields import natural_key
from reconciler.planning.deciding.additions import choose_address, find_parent_key
from reconciler.planning.importing import naming
from reconciler.planning.importing.describe import Attachment, describe
from reconciler.planning.importing.secret_variables import replace_secrets
from reconciler.planning.importing.services import find_services
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.planner import match_all

Key = tuple[str, str]  # kind, locator
Selects = Callable[..., bool]
"""Whether to import an object. Called with its future address and the addresses by which drift may name it: KIND/ID."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Imported(Struct, frozen=True):
    """One live object as it would be declared.

    spec      in the write shape without defaults: JSON values, references and attachments
    id        set if the declaration would not find the object in another way
    ignore    paths that a manifest must not contain: secrets and values that responses never show
    protect   as its owner record or binding says
    service   the edge or endpoint that alone uses it, or that it is, if that is imported too
    secrets   the secrets inside its policies and headers, by the environment variables that the declaration reads
    """

    address: Address
    live: Live
    spec: dict[str, Value]
    id: str | None = None
    ignore: tuple[str, ...] = ()
    protect: bool = False
    service: Address | None = None
    secrets: Mapping[str, Secret] = field(default_factory=dict)


class LeftOut(Struct, frozen=True):
    """A live object, or a kind (`id` empty), that is not imported, and why. `wrong`: that is an error."""

    kind: str
    id: str
    why: str
    wrong: bool = False


class Survey(Struct, frozen=True):
    """The proposed declarations, sorted by address, and what is not imported, sorted by kind and id."""

    imported: tuple[Imported, ...]
    left_out: tuple[LeftOut, ...]


def survey(
    manifest: Manifest,
    snapshot: Snapshot,
    kinds: Sequence[Kind],
    *,
    selects: Selects = lambda *addresses: True,
    refused: Mapping[Key, str] | None = None,
) -> Survey:
    """The declarations for all live objects that are not declared.

    selects   selects by addresses; references and names do not depend on the selection
    refused   objects that an earlier survey proposed and that cannot be written or planned, with the reason
    """
    return _Surveyor(manifest, snapshot, kinds, selects, refused or {}).survey()


def choose_names(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> Mapping[Key, Address]:
    """The address of each declared object, and the address that `survey` would propose for each of the others."""
    return _Surveyor(manifest, snapshot, kinds, lambda *addresses: True, {}).choose_names()


def drop_foreign_owners(manifest: Manifest, snapshot: Snapshot) -> Snapshot:
    """The snapshot without the owner records of other stacks, for `import --all`."""

    def remove_owner(live: Live) -> Live:
        foreign = live.owner is not None and live.owner.stack != manifest.stack
        return live.with_body({**live.body, "metadata": live.metadata}) if foreign else live

    listings = {
        name: replace(listing, objects=tuple(map(remove_owner, listing.objects)))
        for name, listing in snapshot.listings.items()
    }
    return replace(snapshot, listings=listings)


def find_unencodable(imported: Iterable[Imported]) -> dict[Key, str]:
    """The proposals with unpaired surrogates, which JSON may contain and UTF-8 files cannot, with the reason."""
    return {
        _key(proposal.live): "contains an unpaired surrogate, which no text file can hold"
        for proposal in imported
        if _has_surrogate(proposal)
    }


def find_unwritable(imported: Iterable[Imported], kinds: Mapping[str, Kind]) -> dict[Key, str]:
    """The proposals with secrets that no manifest can refer to, with the reason."""
    reasons = {}
    for proposal in imported:
        fields = kinds[proposal.address.kind].fields
        for name in replace_secrets(proposal.address, fields, proposal.spec).unwritable:
            reasons[_key(proposal.live)] = f"{name} contains secrets, and cannot be written as YAML without them"
    return reasons


def find_rejected(problems: Iterable[Problem], imported: Collection[Imported]) -> dict[Key, str]:
    """The first problem of each proposed declaration, by live object. Problems of other resources are left out."""
    by_name = {str(proposal.address): proposal for proposal in imported}
    reasons: dict[Key, str] = {}
    for problem in problems:
        if (about := _find_imported(problem.subject, by_name)) is not None:
            reasons.setdefault(_key(about.live), _format_problem(problem.text, problem.subject, about))
    return reasons


_TRANSIENT = {
    "Endpoint ephemeral": "it exists only while the tunnel of an agent is open",
    "Endpoint agent": "it exists only while the tunnel of an agent is open",
    "Tunnel": "it exists only while an agent keeps it open",
    "TunnelSession": "it is the connection of a running agent",
}


def find_transient_objects(snapshot: Snapshot) -> list[LeftOut]:
    """Live objects that cannot be declared, such as open tunnels, with the reason."""
    lives = [live for name in ("Endpoint", "Tunnel", "TunnelSession") for live in snapshot.of(name).objects]
    whys = ((live, f"{live.kind} {live.body['type']}" if "type" in live.body else live.kind) for live in lives)
    return [LeftOut(live.kind, live.id, _TRANSIENT[why]) for live, why in whys if why in _TRANSIENT]


def find_objections(plan: Plan, imported: Collection[Imported]) -> dict[Key, str]:
    """What a plan of the proposals would do other than adopt, by live object. Such proposals are not written."""
    by_address = {proposal.address: proposal for proposal in imported}
    reasons = find_rejected(plan.errors, imported)
    for change in plan.changes:
        proposal = by_address.get(change.address)
        if proposal is not None and (change.action is not Action.ADOPT or change.fields):
            reasons.setdefault(_key(proposal.live), f"a plan would {change.action} it{_format_fields(change)}")
    return reasons


def _has_surrogate(proposal: Imported) -> bool:
    return any(_SURROGATE.search(text) for text in _texts(proposal.spec))


def _texts(value: Value) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Attachment():
            yield value.text
        case dict():
            yield from (text for pair in value.items() for part in pair for text in _texts(part))
        case list():
            yield from (text for item in value for text in _texts(item))


def _find_imported(subject: str, by_name: Mapping[str, Imported]) -> Imported | None:
    while subject and subject not in by_name:
        subject = subject.rpartition(".")[0]
    return by_name.get(subject)


def _format_problem(text: str, subject: str, about: Imported) -> str:
    place = subject.removeprefix(str(about.address)).removeprefix(".")
    return f"{place}: {text}" if place else text


def _format_fields(change: Change) -> str:
    return ": " + ", ".join(dict.fromkeys(field_change.path for field_change in change.fields)) if change.fields else ""


def _key(live: Live) -> Key:
    return live.kind, live.locator


class _Surveyor(Struct, dict=True):
    manifest: Manifest
    snapshot: Snapshot
    kinds: Sequence[Kind]
    selects: Selects
    refused: Mapping[Key, str]
    names: dict[Key, Address] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)

    @cached_property
    def index(self) -> LiveIndex:
        return LiveIndex.of(self.manifest, self.snapshot, self.kinds)

    @cached_property
    def declared_addresses(self) -> Mapping[Key, Address]:
        """The addresses of objects that are already declared."""
        return match_all(self.manifest, self.snapshot, self.kinds)

    def survey(self) -> Survey:
        chosen = [
            (kind, live)
            for kind, live in self._assign_names(self._find_candidates())
            if self.selects(self.names[_key(live)], *self._find_other_addresses(kind, live))
            and not self._is_refused(live)
        ]
        taken = {_key(live) for _, live in chosen}
        self.names = {key: name for key, name in self.names.items() if key in taken} | dict(self.declared_addresses)
        services = {key: self.names[head] for key, head in find_services(self.index).items() if head in taken}
        imported = [replace(self._build_import(kind, live), service=services.get(_key(live))) for kind, live in chosen]
        return Survey(
            tuple(sorted(imported, key=lambda proposal: proposal.address)),
            tuple(sorted(self.left_out, key=lambda omission: (omission.kind, omission.id))),
        )

    def choose_names(self) -> Mapping[Key, Address]:
        self._assign_names(self._find_candidates())
        return self.names

    # --- which --------------------------------------------------------------------------------------------------------

    def _find_candidates(self) -> list[tuple[Kind, Live]]:
        return [
            (kind, live)
            for kind in _parents_first([kind for kind in self.kinds if self._is_importable(kind)])
            for live in self._sort_by_age(self.snapshot.of(kind.name), kind)
            if self._is_candidate(kind, live)
        ]

    def _is_importable(self, kind: Kind) -> bool:
        return kind.name in self.snapshot.listings

    def _sort_by_age(self, listing: Listing, kind: Kind) -> list[Live]:
        """The objects of a list, the oldest first, so that names do not change when newer objects are added."""
        if not listing.complete:
            retired = not listing.objects and not listing.is_offered
            why = f"the list is incomplete: {listing.why}"
            self.left_out.append(LeftOut(kind.name, "", why, wrong=not retired))
            return []
        return sorted(listing.objects, key=lambda live: (str(live.body.get("created_at") or ""), live.locator))

    def _is_candidate(self, kind: Kind, live: Live) -> bool:
        key = _key(live)
        if key in self.declared_addresses:
            return False
        why = self._find_objection(kind, live)
        if why and self._may_be_meant(kind, live):
            self.left_out.append(LeftOut(kind.name, live.locator, why))
        return not why

    def _may_be_meant(self, kind: Kind, live: Live) -> bool:
        """Whether an object that gets no name is selected by the address of its owner, or by its id."""
        owner = live.owner.address if live.owner is not None else self._find_own_address(live)
        known = [*self._find_other_addresses(kind, live), *([owner] if owner is not None else ())]
        return self.selects(*known)

    def _find_objection(self, kind: Kind, live: Live) -> str:
        owner = live.owner
        if owner is not None and owner.stack != self.manifest.stack:
            return f"is managed by stack {owner.stack} as {owner.address}"
        if owner is not None and len(self.index.by_owner.get(owner.address, [])) != 1:
            return f"shares the owner record of {owner.address} with other objects"
        if any(_key(live) == _key(replaced) for _, replaced in self.index.superseded):
            return "will be deleted: another object replaces it"
        if kind.is_automatic(live.body):
            return "was created by the platform, which renews it automatically"
        own = self._find_own_address(live)
        if own is not None and own in self.manifest.left_out:
            return f"is declared as {own}, which this environment excludes ({self.manifest.left_out[own]})"
        return ""

    def _is_refused(self, live: Live) -> bool:
        why = self.refused.get(_key(live))
        if why is not None:
            self.left_out.append(LeftOut(live.kind, live.locator, why, wrong=True))
        return why is not None

    # --- names --------------------------------------------------------------------------------------------------------

    def _assign_names(self, candidates: list[tuple[Kind, Live]]) -> list[tuple[Kind, Live]]:
        """Names every candidate, selected or not, so that names do not depend on the selection."""
        used: dict[str, set[str]] = {kind.name: set() for kind in self.kinds}
        declared = self.manifest.declarations
        former = (address for declaration in declared.values() for address in declaration.moved)
        reserved = [*declared, *self.manifest.left_out, *former]
        for address in [*reserved, *self.index.by_owner, *self.snapshot.bindings]:
            used.setdefault(address.kind, set()).add(address.name.lower())
        self.names = dict(self.declared_addresses)
        own_addresses = {_key(live): own for _, live in candidates if (own := self._find_own_address(live)) is not None}
        for kind, live in candidates:
            key = _key(live)
            address = own_addresses.get(key) or Address(
                kind.name, naming.choose_name(kind, live, self._find_name, used[kind.name])
            )
            self.names[key] = address
            used[kind.name].add(address.name.lower())
        return candidates

    def _find_other_addresses(self, kind: Kind, live: Live) -> Iterator[Address]:
        """The addresses by which people may know the object from drift and lists, which name it by its id."""
        yield from (Address(kind.name, id) for id in dict.fromkeys((live.id, live.locator)))
        parent = self.declared_addresses.get(find_parent_key(kind, live)) if kind.part_of is not None else None
        if parent is not None:
            yield choose_address(kind, live, parent)

    def _find_own_address(self, live: Live) -> Address | None:
        """The former address of an object of this stack, from its owner record or binding."""
        if live.owner is not None and live.owner.stack == self.manifest.stack:
            return live.owner.address
        bound = [
            address for address in self.index.find_bound_addresses(live) if address not in self.manifest.declarations
        ]
        return bound[0] if bound and live.owner is None else None

    def _find_name(self, kind: str, id: str) -> str | None:
        address = self.names.get((kind, id))
        return address.name if address is not None else None

    # --- what ---------------------------------------------------------------------------------------------------------

    def _build_import(self, kind: Kind, live: Live) -> Imported:
        own = self._find_own_address(live)
        spec, ignored = describe(kind, live, self._find_owner, live.owner.applied if own and live.owner else ())
        replaced = replace_secrets(self.names[_key(live)], kind.fields, spec)
        return Imported(
            self.names[_key(live)],
            live,
            {name: self._link_addresses(kind.by_name[name], value) for name, value in replaced.spec.items()},
            None if own is not None or self._is_found_by_key(kind, live) else live.id,
            tuple(ignored),
            self.index.is_protected(live) if own is not None else False,
            secrets=replaced.secrets,
        )

    def _link_addresses(self, of: Field, value: Value) -> Value:
        """The value of a field that mentions hosts, with references to addresses that the platform assigned."""
        if of.mentions is None:
            return value
        match value:
            case list():
                return [self._link_addresses(of, item) for item in value]
            case str():
                scheme, _, rest = value.rpartition("://")
                address = self._addresses.get(rest.lower())
                if address is not None:
                    return Template((f"{scheme}://", address)) if scheme else address
        return value

    @cached_property
    def _addresses(self) -> Mapping[str, Ref]:
        """References to the assigned addresses of objects that are declared or proposed, by address."""
        return {
            str(live.body.get(kind.host)).lower(): Ref(self.names[_key(live)], kind.host)
            for kind in self.kinds
            if kind.host is not None and kind.host not in kind.by_name
            for live in self.snapshot.of(kind.name).objects
            if _key(live) in self.names
        }

    def _find_owner(self, kind: str, id: str) -> Address | None:
        return self.names.get((kind, to_specification_id(id, self.index.kinds[kind].id_prefix)))

    def _is_found_by_key(self, kind: Kind, live: Live) -> bool:
        """Whether the declaration finds the object, and no other one, by its natural key."""
        key = natural_key(kind, self.index.form(kind, live))
        alone = key is not None and len(self.index.by_key.get((kind.name, key), [])) == 1
        return kind.key != "id" or (alone and kind.is_unique(live.body))


def _parents_first(kinds: Sequence[Kind]) -> list[Kind]:
    """The kinds in an order in which objects are named before those that take their name from them."""
    named_after = {
        kind.name: {target for part in kind.identity for target in kind.by_name[part].refs} for kind in kinds
    }
    return sorted(kinds, key=lambda kind: (bool(named_after[kind.name]), kind.name))
