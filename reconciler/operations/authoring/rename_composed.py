"""Renames what no manifest declares under its whole name: entries of inline children, and parts of components.

Each of them has a name that is put together: of the parent and the key of the entry, or of the instance and the name in
the component. The text that has the part of the name is changed, and `moved` is written beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Path
from reconciler.model.problem import Position
from reconciler.model.value import Ref
from reconciler.operations.authoring.project_texts import Declared
from reconciler.operations.errors import UnusableEdit
from reconciler.project.documents.merge import Layer, MergedDocument, Role, find_path, scope_of
from reconciler.project.documents.scope import Scope
from reconciler.project.manifests import rename, rename_item
from reconciler.project.manifests.for_each import KEY
from reconciler.project.manifests.rename import Renaming
from reconciler.project.yaml.patch import Unpatchable

Loaded = Mapping[str | None, Declared]


class Edited(Struct, frozen=True):
    """The changed texts, and the new addresses of everything that gets a new name with the resource.

    local     by the path of a component, the names that change in it
    instance  whether an instance of a component got another name, which its resources may contain
    """

    texts: Mapping[str, str]
    addresses: Mapping[Address, Address]
    local: Mapping[str, Renaming] = field(default_factory=dict)
    instance: bool = False


class _Key(Struct, frozen=True):
    """Where the key of an entry stands: the line of the document, and the path of the entry in it.

    at        its position
    template  the name of the parent as that document writes it, if the entry may be one of several resources
    """

    file: str
    line: int
    path: Path
    at: Position
    template: str = ""


def parent_of(declaration: Declaration) -> Address | None:
    """The parent of a child that is declared inline; None of any other resource."""
    own = _own_layer(declaration)
    part_of = kinds.get(declaration.address.kind).part_of
    if own is None or not own.is_entry or part_of is None:
        return None
    link = declaration.spec.get(part_of.field)
    return link.target if isinstance(link, Ref) else None


def list_children(before: Loaded, old: Address, new: Address) -> dict[Address, Address]:
    """The new addresses of the inline children of a resource."""
    return {
        declaration.address: Address(declaration.address.kind, new.name + declaration.address.name[len(old.name) :])
        for declaration in _all(before)
        if parent_of(declaration) == old
    }


def rename_entry(texts: Mapping[str, str], before: Loaded, old: Address, new: Address) -> Edited:
    """Renames an inline child by the key of its entry, wherever that stands. Raises UnusableEdit."""
    found = {_key_of(declaration): declaration for declaration in _all(before) if _is_entry(declaration, old)}
    parent = parent_of(next(iter(found.values())))
    assert parent is not None
    key = new.name.removeprefix(f"{parent.name}-")
    if not key or key == new.name:
        raise UnusableEdit(f"{old} is declared inline, so that its name begins with {parent.name}-")
    changed = dict(texts)
    addresses: dict[Address, Address] = {}
    for place in sorted(found, key=lambda place: (place.file, -place.line)):
        sharing = {
            declaration.address: Address(old.kind, f"{above.name}-{key}")
            for declaration in _all(before)
            if declaration.address.kind == old.kind
            and (above := parent_of(declaration))
            and _key_of(declaration) == place
        }
        where = place.at
        others = sorted(sharing.keys() - {old})
        if others and not place.template:
            raise UnusableEdit(
                f"{old} cannot be renamed alone: its entry in {where} declares {others[0]} too",
                remedy=f"give {old} an entry of its own with the new key, and add moved: {old} to it",
            )
        addresses |= sharing
        former = f"{old.kind}/{place.template}-{place.path[-1]}" if place.template else str(old)
        try:
            _refuse_foreign(
                place.file, old, f"change the key {place.path[-1]} there, and add moved: {former} to its entry"
            )
            if place.file not in changed:
                raise Unpatchable("its key is in no file of the project")
            changed[place.file] = rename.rename_key(changed[place.file], place.line, place.path, key, former)
        except Unpatchable as why:
            lines = ", ".join(f"moved: {address} for {sharing[address]}" for address in sorted(sharing))
            raise UnusableEdit(
                f"{old} is declared in {where}, which cannot be changed: {why}",
                remedy=f"change the key {place.path[-1]} to {key} by hand, and add to the value of the entry {lines}",
            ) from None
    file = next((place.file for place in found if place.template), "")
    return Edited(changed, addresses, _local_names(before, file, addresses))


def rename_in_component(texts: Mapping[str, str], before: Loaded, old: Address, new: Address) -> Edited:
    """Renames a resource of a component: in its file, or by the name of an instance. Raises UnusableEdit."""
    declaration = next(item for item in _all(before) if item.address == old)
    scope = scope_of(declaration.positions)
    assert scope is not None
    if parent_of(declaration) is None and new.name.startswith(f"{scope.name}-"):
        return _rename_resource(texts, before, declaration, scope, new)
    for use in scope.chain():
        prefix = f"{use.outer.name}-" if use.outer is not None else ""
        rest = old.name[len(use.name) :]
        name = new.name.removesuffix(rest)
        if new.name.endswith(rest) and name.startswith(prefix) and len(name) > len(prefix):
            return rename_instance(texts, before, use, name)
    local = old.name.removeprefix(f"{scope.name}-")
    raise UnusableEdit(
        f"{old} is {old.kind}/{local} of the {scope.describe()}; its new name begins with {scope.name}- or ends with "
        f"-{local}"
    )


def find_instance(before: Loaded, component: str, name: str) -> Scope | None:
    """The use of a component with this name."""
    uses = (use for declaration in _all(before) for use in _uses_of(declaration))
    return next((use for use in uses if (use.component, use.name) == (component, name)), None)


def rename_instance(texts: Mapping[str, str], before: Loaded, use: Scope, name: str) -> Edited:
    """Renames an instance of a component with all of its resources. Raises UnusableEdit."""
    outer = f"{use.outer.name}-" if use.outer is not None else ""
    old, new = use.name.removeprefix(outer), name.removeprefix(outer)
    addresses = {
        declaration.address: Address(
            declaration.address.kind, around + new + declaration.address.name[len(other.name) :]
        )
        for declaration in _all(before)
        for other in _uses_of(declaration)
        if (around := other.name.removesuffix(old)) != other.name and _is_same_use(other, use, old)
    }
    changed = _rename_document(texts, use.position, Address(use.component, old), new, old)
    local = _local_names(before, use.position.file, addresses) if use.outer is not None else {}
    return Edited({**texts, **changed}, addresses, local, instance=True)


def _rename_resource(
    texts: Mapping[str, str], before: Loaded, declaration: Declaration, scope: Scope, new: Address
) -> Edited:
    """Renames a resource in the file of its component, for all instances."""
    old, start = declaration.address, _start_of(declaration)
    name, renamed = (address.name.removeprefix(f"{scope.name}-") for address in (old, new))
    addresses: dict[Address, Address] = {}
    for other in _all(before):
        around = scope_of(other.positions)
        if around is not None and _start_of(other) == start:
            whole, address = f"{around.name}-{name}", other.address
            if (parent_of(other) or address).name == whole:
                addresses[address] = Address(address.kind, f"{around.name}-{renamed}{address.name[len(whole) :]}")
    changed = _rename_document(texts, start, Address(old.kind, name), renamed, f"{old.kind}/{name}")
    return Edited({**texts, **changed}, addresses, _local_names(before, start.file, addresses))


def _rename_document(texts: Mapping[str, str], at: Position, old: Address, new: str, former: str) -> Mapping[str, str]:
    """Renames a use of a component, or a resource in one: the document in that place, or its item of `for_each`.

    old  with the name that it has in this file
    """
    by_hand = f"change its name to {new} there, and add moved: {former}"
    try:
        _refuse_foreign(at.file, old, by_hand)
        if not rename.has_key(texts[at.file], at.line, KEY):
            return {at.file: rename.rename_name(texts[at.file], at.line, new, former)}
        by_hand = ""  # the reason says what to do
        item = rename_item.find_item({at.file: texts[at.file]}, texts, old, Address(old.kind, new), former)
        if item is not None:
            return rename_item.rename_item(texts, item, former)
        key = f"change that key to {new}, and add moved: {{{new}: {former}}} beside for_each in {at}"
        raise Unpatchable(
            f"the key of its for_each is not written there, but where the value of that comes from; {key}"
        )
    except Unpatchable as why:
        raise UnusableEdit(f"{old} ({at}) cannot be renamed: {why}", remedy=by_hand) from None


def _local_names(before: Loaded, file: str, addresses: Mapping[Address, Address]) -> dict[str, Renaming]:
    """What the component in a file calls its own resources, and their new names there."""
    declared: set[Address] = set()
    renamed: dict[Address, Address] = {}
    for declaration in _all(before):
        for use in _uses_of(declaration):
            if use.file == file:
                old = _localize(declaration.address, use)
                declared.add(old)
                if declaration.address in addresses:
                    renamed[old] = _localize(addresses[declaration.address], use)
    if not renamed:
        return {}
    old, new = next(iter(renamed.items()))
    return {file: Renaming(old, new, declared, renamed)}


def _localize(address: Address, use: Scope) -> Address:
    return Address(address.kind, address.name.removeprefix(f"{use.name}-"))


def _refuse_foreign(file: str, subject: object, by_hand: str) -> None:
    if file.startswith("../"):
        raise UnusableEdit(f"{subject} is declared in {file}, which other projects may use", remedy=by_hand)


def _is_same_use(other: Scope, use: Scope, local: str) -> bool:
    """Whether a use stands in the same place, with the same name there: for each instance of a component around it."""
    around = f"{other.outer.name}-" if other.outer is not None else ""
    return other.position == use.position and other.name == f"{around}{local}"


def _uses_of(declaration: Declaration) -> Iterator[Scope]:
    scope = scope_of(declaration.positions)
    return scope.chain() if scope is not None else iter(())


def _start_of(declaration: Declaration) -> Position:
    """Where the document of a resource begins, also of an inline child."""
    own = _own_layer(declaration)
    return own.places.start if own is not None else declaration.position


def _is_entry(declaration: Declaration, address: Address) -> bool:
    return declaration.address == address and parent_of(declaration) is not None


def _own_layer(declaration: Declaration) -> Layer | None:
    return declaration.positions.own if isinstance(declaration.positions, MergedDocument) else None


def _key_of(declaration: Declaration) -> _Key:
    own = _own_layer(declaration)
    assert own is not None
    around = replace(own, below=own.below[:-1], is_entry=False).spot(())
    start, path = around.places.start, (*around.path, own.below[-1])
    root = own.places.root
    is_template = around.places is own.places and own.role is not Role.ENVIRONMENT and around.path == own.below[:-1]
    is_shared = is_template and (own.scope is not None or (isinstance(root, dict) and KEY in root))
    at = around.places.key(path) if path in around.places else around.places.nearest(path)
    return _Key(start.file, start.line, path, at, str(find_path(root, ("name",))[0]) if is_shared else "")


def _all(before: Loaded) -> Iterator[Declaration]:
    for declared in before.values():
        yield from declared.values()
