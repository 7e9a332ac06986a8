"""What is wrong between declarations: two of one object, rings of references, secrets that would overwrite each other,
the owner record's room in metadata.
"""

from __future__ import annotations

import graphlib
import json
import shlex
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from reconciler import kinds
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.canonical import applied, wanted
from reconciler.model.dialect import Profile
from reconciler.model.kind import Kind, Parent
from reconciler.model.manifest import Declaration, Delivery, Ensure, Path
from reconciler.model.owner_record import Owner
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.value import Ref, Template, canonical, has_secret
from reconciler.planning.comparing.name_references import spelt_out
from reconciler.project.documents import phrases
from reconciler.project.documents.resolve import Shown
from reconciler.project.secrets.reserved_places import Reserved, fold

ByKind = Mapping[Kind, Sequence[Declaration]]
Links = Mapping[Address, list[tuple[Address, Path]]]  # what each declaration refers to, and where in its spec


def rings(declarations: Mapping[Address, Declaration], written: Links) -> Iterator[Problem]:
    """Each ring of references once, in the order in which its members refer to each other."""
    if not _may_ring(written):
        return
    links = {address: list(inside) for address, inside in written.items() if inside and address in declarations}
    while True:
        try:
            graphlib.TopologicalSorter({each: [to for to, _ in inside] for each, inside in links.items()}).prepare()
        except graphlib.CycleError as error:
            ring = _from_first(list(reversed(error.args[1][1:])))  # graphlib lists the needed before the needing
            yield _ring(ring, links, declarations)
            first, second = ring[0], ring[1 % len(ring)]
            links[first] = [each for each in links[first] if each[0] != second]
        else:
            return


def _may_ring(written: Links) -> bool:
    """Whether kinds refer to each other in a ring, as all but a few never do: without that no resources can."""
    between: dict[str, set[str]] = {}
    for address, inside in written.items():
        between.setdefault(address.kind, set()).update([to.kind for to, _ in inside])
    try:
        graphlib.TopologicalSorter(between).prepare()
    except graphlib.CycleError:
        return True
    return False


def _from_first(ring: list[Address]) -> list[Address]:
    """The ring beginning with its least member, so that the message does not depend on where it was found."""
    start = ring.index(min(ring))
    return ring[start:] + ring[:start]


def _ring(ring: list[Address], links: Links, declarations: Mapping[Address, Declaration]) -> Problem:
    steps = []
    for here, there in zip(ring, [*ring[1:], ring[0]], strict=True):
        path = next(path for target, path in links[here] if target == there)
        steps.append((here, there, declarations[here].at(*path)))
    told = ", ".join(f"{here} refers to {there} ({where})" for here, there, where in steps)
    return Problem(f"a ring of references: {told}", "break it at one of these places", str(ring[0]), steps[0][2])


def twins(by_kind: ByKind) -> Iterator[Problem]:
    """Declarations that would be one and the same object: by id, or by a key that the platform keeps unique."""
    by_id: dict[tuple[str, str], Declaration] = {}
    by_key: dict[tuple[str, Hashable], Declaration] = {}
    named = _spelt_out(by_kind)
    for kind, declarations in by_kind.items():
        same = kind.same_as or kind.name
        for each in declarations:
            if each.ensure is not Ensure.PRESENT:
                continue
            if each.id is not None:
                # Two kinds of the same objects name them by ids that differ in their prefix.
                first = by_id.setdefault((same, each.id.removeprefix(kind.id_prefix)), each)
                if first is not each:
                    yield _twin(each, first, f"the id {each.id}", each.positions.get(("id",), each.position))
            key = _key(named.get(each.address, each), kind) if kind.unique else None
            if key is None or (first := by_key.setdefault((same, key), each)) is each:
                continue
            if kind.is_unique(each.spec) or kind.is_unique(first.spec):
                what, share = f"the same {', '.join(kind.identity)}", kind.shared_while
                remedy = f"keep one of them, or set {share} in all of them" if share else "keep one of them"
                yield _twin(each, first, what, each.at(kind.identity[-1]), remedy)


def _spelt_out(by_kind: ByKind) -> Mapping[Address, Declaration]:
    catalogue = {kind.name: kind for kind in by_kind}
    if not any(kind.alias for kind in by_kind):
        return {}
    return spelt_out({each.address: each for those in by_kind.values() for each in those}, catalogue)


def _twin(
    second: Declaration, first: Declaration, what: str, where: Position, remedy: str = "keep one of them"
) -> Problem:
    text = f"has {what} as {first.address} ({first.position})"
    return Problem(text, remedy, str(second.address), where)


def _key(declaration: Declaration, kind: Kind) -> Hashable | None:
    """What the platform would tell the object by; None if that is not known yet."""
    if not kind.identity:
        return None
    parts: list[Hashable] = []
    for name in kind.identity:
        field = kind.by_name[name]
        value = declaration.spec.get(name, field.default)
        if value.__class__ is Ref:
            parts.append((value.target, value.output))
        elif value is None or isinstance(value, Template) or has_secret(value):
            return None
        else:
            own = field.canonical(value) if field.canonical else value
            parts.append(own if own.__class__ is str else canonical(own))
    return tuple(parts)


def declared_within(by_kind: ByKind, declarations: Mapping[Address, Declaration]) -> Iterator[Problem]:
    """Children that are declared both within their parent and by themselves."""
    for kind, parent in ((kind, kind.parent) for kind in by_kind):
        # What a parent does not take in its own spec cannot be declared there.
        if parent is not None and parent.embedded in kinds.get(parent.kind).by_name:
            yield from _declared_twice(by_kind[kind], parent, declarations)


def _declared_twice(
    children: Iterable[Declaration], parent: Parent, declarations: Mapping[Address, Declaration]
) -> Iterator[Problem]:
    for each in children:
        link = each.spec.get(parent.field)
        above = declarations.get(link.target) if isinstance(link, Ref) else None
        if above is not None and parent.embedded in above.spec:
            where = above.at(parent.embedded)
            text = f"{above.address} declares its {parent.embedded} itself ({where})"
            yield Problem(
                text,
                f"keep one of the two: remove this, or {parent.embedded} there",
                str(each.address),
                each.at(parent.field),
            )


def undelivered(by_kind: ByKind) -> Iterator[Problem]:
    """One-time secrets that would have nowhere to go if the object had to be created; one named by id is there."""
    for kind, declarations in by_kind.items():
        secret = kind.one_time
        for each in declarations if secret is not None else ():
            if secret in each.deliver or each.ensure is not Ensure.PRESENT or each.id:
                continue
            remedy = f"say where, as in `deliver: {{{secret}: {{to_file: secrets/{each.address.name}}}}}`"
            text = f"its {secret} can be read only once, and has nowhere to go: it cannot be created"
            yield Problem(
                text,
                remedy,
                str(each.address),
                each.position,
                Severity.WARNING,
                code="one-time-secret-undelivered",
            )


def misdelivered(
    by_kind: ByKind, place_of: Callable[[str], str], own_places: Callable[[], Mapping[str, str]]
) -> Iterator[Problem]:
    """One-time secrets that would overwrite each other, or a place that is reserved.

    `place_of` answers with the real path of a target; neither is called where nothing is delivered.
    """
    delivered = list(_delivered(by_kind))
    if not delivered:
        return
    reserved = Reserved(place_of("."), own_places())
    by_file: dict[str, _Delivered] = {}
    by_folder: dict[str, _Delivered] = {}
    by_target: dict[Hashable, _Delivered] = {}
    for each in delivered:
        delivery = each.delivery
        if delivery.way != "to_command":
            place = place_of(delivery.target)
            if (use := reserved.use(place)) is not None:
                remedy = f"name a file of its own, as in secrets/{each.declaration.address.name}"
                yield each.problem(f"goes to {delivery.target}, {use}", remedy, "reserved-delivery-target")
                continue
            if (crossing := _enter_file(each, fold(place), by_file, by_folder)) is not None:
                yield crossing
                continue
        key, where = _target(delivery, place_of)
        other = by_target.setdefault(key, each)
        if other is not each:
            yield _shared(each, other, where)


def shared_between(
    declared: Mapping[str | None, Iterable[Declaration]], place_of: Callable[[str], str]
) -> Iterator[tuple[Problem, Collection[str | None]]]:
    """Targets that deliveries of several environments share, and which environments. None: the project without one.

    Entries of one dotenv file are apart from each other, but not from a delivery that writes the file as a whole.
    """
    found: dict[Hashable, dict[str | None, _Delivered]] = {}
    whole: set[str] = set()  # files that a delivery writes as a whole
    entries: dict[str, dict[str | None, _Delivered]] = {}
    for name, declarations in declared.items():
        by_kind: dict[Kind, list[Declaration]] = {}
        for declaration in declarations:
            by_kind.setdefault(kinds.get(declaration.address.kind), []).append(declaration)
        for each in _delivered(by_kind):
            delivery = each.delivery
            if delivery.way == "to_dotenv":
                entries.setdefault(fold(place_of(delivery.target)), {}).setdefault(name, each)
            elif delivery.way != "to_command":
                file = fold(place_of(delivery.target))
                whole.add(file)
                found.setdefault(("file", file), {}).setdefault(name, each)
            found.setdefault(_target(delivery, place_of)[0], {}).setdefault(name, each)
    for file in sorted(whole & entries.keys()):
        found["file", file] = {**entries[file], **found["file", file]}
    told: dict[Problem, Collection[str | None]] = {}  # a Kubernetes Secret shares its file and its key
    for by_environment in found.values():
        if len(by_environment) > 1:
            told.setdefault(_shared_problem(by_environment, place_of), by_environment.keys())
    yield from told.items()


def _shared_problem(by_environment: Mapping[str | None, _Delivered], place_of: Callable[[str], str]) -> Problem:
    first = next(iter(by_environment.values()))
    names = [name or "the project without an environment" for name in by_environment]
    text = f"goes to {_target(first.delivery, place_of)[1]} in several environments ({', '.join(names)})"
    address = first.declaration.address
    remedy = (
        "the later apply would overwrite the other's secret: give each a place of its own in environments/NAME.yaml, "
        f"as in `{address}: {{deliver: {{{first.output}: {_own_place(first)}}}}}`"
    )
    return first.problem(text, remedy, "shared-delivery-target", Severity.WARNING)


def _own_place(each: _Delivered) -> str:
    """An example of a patch in an environment's file. It has the same way: a patch keeps what it does not name."""
    delivery = each.delivery
    match delivery.way:
        case "to_command":
            return "{to_command: {run: [COMMAND, NAME]}}"
        case "to_dotenv":
            return "{to_dotenv: {file: secrets/NAME/.env}}"
        case "to_kubernetes_secret":
            return "{to_kubernetes_secret: {file: secrets/NAME/secret.yaml, namespace: NAME}}"
    return f"{{to_file: secrets/NAME/{each.declaration.address.name}}}"


class _Delivered(NamedTuple):
    """A delivery with the declaration and the output that it is of."""

    declaration: Declaration
    output: str
    delivery: Delivery

    def problem(self, text: str, remedy: str, code: str, severity: Severity = Severity.ERROR) -> Problem:
        subject = f"{self.declaration.address}.deliver.{self.output}"
        return Problem(text, remedy, subject, self.delivery.position, severity, code=code)


def _enter_file(
    each: _Delivered, place: str, by_file: dict[str, _Delivered], by_folder: dict[str, _Delivered]
) -> Problem | None:
    """Remembers the file and its folders; what is wrong if another secret takes it, or one is both file and folder."""
    above = [str(folder) for folder in PurePosixPath(place).parents]
    other = by_folder.get(place) or next((by_file[folder] for folder in above if folder in by_file), None)
    if other is not None:
        where = f"{other.declaration.address} to {other.delivery.target} ({other.delivery.position})"
        text = f"goes to {each.delivery.target}, and that of {where}: one would be file and folder"
        return each.problem(text, _APART, "shared-delivery-target")
    for folder in above:
        by_folder.setdefault(folder, each)
    first = by_file.setdefault(place, each)
    has_entries = each.delivery.way == first.delivery.way == "to_dotenv"
    return None if first is each or has_entries else _shared(each, first, each.delivery.target)


def _shared(each: _Delivered, other: _Delivered, where: str) -> Problem:
    text = f"goes to {where}, where that of {other.declaration.address} goes too ({other.delivery.position})"
    is_same_line = other.delivery.position == each.delivery.position  # of for_each
    return each.problem(text, "write ${{ each.key }} in it" if is_same_line else _APART, "shared-delivery-target")


_APART: Final = "give each a place of its own"


def _target(delivery: Delivery, place_of: Callable[[str], str]) -> tuple[Hashable, str]:
    """What a delivery overwrites: equal for two deliveries of which one would undo the other, and in words."""
    settings, target = delivery.settings, delivery.target
    match delivery.way:
        case "to_command":
            return ("command", *settings["run"]), f"the command {shlex.join(settings['run'])}"
        case "to_dotenv":
            return ("entry", fold(place_of(target)), settings["name"]), f"the entry {settings['name']} of {target}"
        case "to_kubernetes_secret":
            namespace, name, key = settings.get("namespace", ""), settings["name"], settings["key"]
            shown = f"{namespace}/{name}" if namespace else name
            return ("kubernetes", namespace, name, key), f"the key {key} of the Kubernetes Secret {shown}"
    return ("file", fold(place_of(target))), target


def _delivered(by_kind: ByKind) -> Iterator[_Delivered]:
    for each in chain.from_iterable(by_kind[kind] for kind in by_kind if kind.one_time is not None):
        for output, delivery in each.deliver.items() if each.ensure is Ensure.PRESENT else ():
            yield _Delivered(each, output, delivery)


def retired(declarations: Iterable[Declaration], profile: Profile) -> Iterator[Problem]:
    """Kinds that the platform of this profile no longer offers, each told once."""
    found: dict[str, list[Declaration]] = {}
    for each in declarations:
        if each.address.kind in profile.retired and each.ensure is Ensure.PRESENT:
            found.setdefault(each.address.kind, []).append(each)
    for kind, those in found.items():
        more = f"; {len(those)} are declared" if len(those) > 1 else ""
        text = f"{profile.name} has retired this kind and refuses to make a {kind} ({profile.retired_code}){more}"
        remedy = "declare a CloudEndpoint with a traffic policy instead"
        first = those[0]
        yield Problem(text, remedy, str(first.address), first.position, Severity.WARNING, code="retired-kind")


def metadata(by_kind: ByKind, stack: str) -> Iterator[Problem]:
    """The user's metadata must leave room for the owner record, and must not look like it."""
    for each in chain.from_iterable(by_kind[kind] for kind in by_kind if kind.keeps_owner):
        if "metadata" in each.spec and (wrong := _metadata(each, stack)) is not None:
            yield wrong


def _metadata(declaration: Declaration, stack: str) -> Problem | None:
    text = declaration.spec["metadata"]
    if not isinstance(text, str) or not text:
        return None
    subject = f"{declaration.address}.metadata"
    if owners.KEY in text and _holds_record(text):
        where = declaration.at("metadata")
        return Problem(f"holds {owners.KEY!r}, the place of our own record", "use another name", subject, where)
    size = len(text.encode())
    if size > owners.LIMIT:  # has been told
        return None
    kind = kinds.get(declaration.address.kind)
    record = Owner(
        stack=stack,
        address=declaration.address,
        intent="",
        applied=dict.fromkeys(applied(kind, wanted(kind, declaration.spec)), ""),
        protect=declaration.lifecycle.protect,
        pending=kind.one_time is not None,
        replaces="0" * 36,
    )
    room = owners.room(text, record, kind)
    if size <= room:
        return None
    text = f"has {size} bytes, and {room} are available beside the owner record"
    where = declaration.at("metadata")
    return Problem(text, f"shorten it by {size - room} bytes", subject, where, code="metadata-too-long")


def _holds_record(text: str) -> bool:
    """Whether the text has a place of its own where our record would stand."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return any(line.startswith(f"#{owners.KEY} ") for line in text.splitlines())
    return isinstance(parsed, dict) and owners.KEY in parsed


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """Texts that must not be shown, and the sources that secrets come from: `env:NAME`, `file:path`, `var:name`."""

    texts: frozenset[str]
    sources: frozenset[str]

    def hold(self, source: str, text: str) -> bool:
        """Whether a value is one of them, or text with a long one inside."""
        if source in self.sources:
            return True
        own = text.strip()
        if len(own) < _TELLING:
            return False
        return any(own == each or (len(each) >= 2 * _TELLING and each in own) for each in self.texts)


_TELLING: Final = 8  # characters: two shorter values may well be equal by chance
_SOURCES: Final = {"env": "the environment variable", "file": "the file", "var": "the variable"}


def exposed(
    shown: Iterable[Shown], known: KnownSecrets, declarations: Mapping[Address, Declaration]
) -> Iterator[Problem]:
    """Secrets in fields that plans, reports and the account show."""
    told = set()
    hold = cache(known.hold)  # the same variable is in many fields
    for each in shown:
        if (
            (each.address, each.path) not in told
            and each.address in declarations
            and hold(each.source, each.text or "")
        ):
            told.add((each.address, each.path))
            word, _, name = each.source.partition(":")
            yield Problem(
                f"{_SOURCES[word]} {name} is a secret, and this field is shown in plans and on the platform",
                "put it only into fields that take secrets",
                f"{each.address}.{phrases.dotted(each.path)}",
                declarations[each.address].at(*each.path),
                code="secret-shown",
            )
