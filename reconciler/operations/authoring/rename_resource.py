"""Renames a declared resource in the files of a project, and checks that nothing else changes in any environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.address import Address
from reconciler.model.fields.annotations import Behavior
from reconciler.model.kind import Home
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import JsonTemplate, Ref, Sealed, Secret, Template, Value
from reconciler.operations.authoring import project_texts, rename_composed
from reconciler.operations.authoring.project_texts import Declared, EditedProject
from reconciler.operations.authoring.rename_composed import Edited
from reconciler.operations.errors import InvalidProject, NothingSelected, UnusableEdit
from reconciler.operations.opening.source import ProjectSource
from reconciler.project import component_files, files
from reconciler.project.documents.merge import scope_of
from reconciler.project.manifests import rename, rename_item
from reconciler.project.yaml.patch import Unpatchable

_MOST_NAMED: Final = 3


def rename_resource(source: ProjectSource, old: Address, new: Address) -> EditedProject:
    """Changes the files in memory. Writes nothing.

    old, new  addresses, or both `COMPONENT/NAME` for an instance of a component

    Raises InvalidProject, NothingSelected if `old` is not declared, or UnusableEdit.
    """
    texts = project_texts.read(source)
    before = project_texts.load(source, texts)
    declared = {address for declarations in before.values() for address in declarations}
    edited = _edit_declaration(texts, before, old, new, declared)
    if taken := [address for address in edited.addresses.values() if address in declared - edited.addresses.keys()]:
        raise UnusableEdit(f"{taken[0]} is already declared; choose another name")
    renaming = rename.Renaming(old, new, declared, edited.addresses)
    changed = {path: _rename_references(path, text, edited, renaming) for path, text in edited.texts.items()}
    notes = _check_result(source, changed, before, renaming, is_instance=edited.instance)
    different = {path: (text, changed[path]) for path, text in texts.items() if changed[path] != text}
    mentions = tuple(_find_mentions(source, changed, renaming))
    return EditedProject(source.path, different, mentions, (*_name_others(edited, old), *notes))


def _edit_declaration(
    texts: Mapping[str, str],
    before: Mapping[str | None, Declared],
    old: Address,
    new: Address,
    declared: set[Address],
) -> Edited:
    """Changes the name where it is declared. Raises UnusableEdit."""
    if old not in declared and (use := rename_composed.find_instance(before, *old)) is not None:
        if old.kind != new.kind:
            raise UnusableEdit(f"{new} is of another component than {old}; write {old.kind}/{new.name}")
        return rename_composed.rename_instance(texts, before, use, new.name)
    _check(old, new, declared, before)
    declaration = next(declarations[old] for declarations in before.values() if old in declarations)
    parent = rename_composed.parent_of(declaration)
    scope = scope_of(declaration.positions)
    if parent is not None and (scope is None or new.name.startswith(f"{parent.name}-")):
        return rename_composed.rename_entry(texts, before, old, new)
    if scope is not None:
        return rename_composed.rename_in_component(texts, before, old, new)
    addresses = {old: new, **rename_composed.list_children(before, old, new)}
    if _is_literal(texts, old):
        return Edited(texts, addresses)
    return Edited(_rename_item(texts, old, new), addresses)


def _is_literal(texts: Mapping[str, str], address: Address) -> bool:
    """Whether a manifest declares a resource under its name. Raises UnusableEdit."""
    for path, text in texts.items():
        try:
            if project_texts.has_manifests(path, text) and rename.is_declared(text, address):
                return True
        except Unpatchable as why:
            raise UnusableEdit(f"{path} cannot be changed: {why}; rename {address} by hand") from None
    return False


def _rename_item(texts: Mapping[str, str], old: Address, new: Address) -> Mapping[str, str]:
    manifests = {path: text for path, text in texts.items() if project_texts.has_manifests(path, text)}
    by_hand = "change the name in the item by hand, and write moved: {KEY: " + str(old) + "} beside for_each"
    try:
        item = rename_item.find_item(manifests, texts, old, new, str(old))
        if item is None:
            raise UnusableEdit(f"{old} is declared with for_each, and no key of it is its name", remedy=by_hand)
        return {**texts, **rename_item.rename_item(texts, item, str(old))}
    except Unpatchable as why:
        raise UnusableEdit(f"{old} is declared with for_each: {why}") from None


def _rename_references(path: str, text: str, edited: Edited, renaming: rename.Renaming) -> str:
    """Renames what refers to the resource in one file. Raises UnusableEdit."""
    try:
        if component_files.is_component(text):
            own = edited.local.get(path)
            before = rename.rename_references(text, own) if own is not None else text
            changed = rename.rename_in_component(before, renaming)
            if changed != text and path.startswith("../"):
                raise UnusableEdit(
                    f"{path} refers to {renaming.old}, and other projects may use it",
                    remedy="make the reference an input of the component, and set it where it is used",
                )
            return changed
        if project_texts.is_manifest(path):
            return rename.rename_in_manifests(text, renaming)
        return rename.rename_in_settings(text, renaming)
    except Unpatchable as why:
        raise UnusableEdit(f"{path} cannot be changed: {why}; rename {renaming.old} by hand") from None


def _name_others(edited: Edited, old: Address) -> Iterator[str]:
    """A note about the resources that get a new name with this one."""
    others = [address for address in sorted(edited.addresses) if address != old]
    named = ", ".join(f"{address} is now {edited.addresses[address]}" for address in others[:_MOST_NAMED])
    rest = f", and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    if others:
        yield f"renamed with it: {named}{rest}"


def _check(old: Address, new: Address, declared: set[Address], before: Mapping[str | None, Declared]) -> None:
    if old not in declared:
        hint = did_you_mean(str(old), sorted(map(str, declared)))
        raise NothingSelected(f"{old} is not declared" + (f"; {hint}" if hint else ""))
    if old.kind != new.kind:
        raise UnusableEdit(f"{new} has another kind than {old}; write {old.kind}/{new.name}")
    if old == new:
        raise UnusableEdit(f"{old} has this name already")
    if new in declared:
        raise UnusableEdit(f"{new} is already declared; choose another name")
    for declarations in before.values():
        if old in declarations and declarations[old].ensure is not Ensure.PRESENT:
            raise UnusableEdit(f"{old} is declared with `ensure: {declarations[old].ensure}`; no object is kept")
        for declaration in declarations.values():
            if new in declaration.moved and declaration.address != old:
                raise UnusableEdit(f"{new} is a former address of {declaration.address}; choose another name")


def _check_result(
    source: ProjectSource,
    texts: Mapping[str, str],
    before: Mapping[str | None, Declared],
    renaming: rename.Renaming,
    *,
    is_instance: bool,
) -> Sequence[str]:
    """Raises UnusableEdit if the changed files declare anything else than the renamed resources.

    Returns notes about fields that contain the name of a renamed instance.
    """
    old, addresses = renaming.old, renaming.addresses
    try:
        after = project_texts.load(source, texts)
    except InvalidProject as invalid:
        raise UnusableEdit(
            f"after renaming {old} the manifests would be invalid", *(str(problem) for problem in invalid.problems[:5])
        ) from None
    notes: dict[str, None] = {}
    for name, declarations in before.items():
        expected = {addresses.get(address, address): declaration for address, declaration in declarations.items()}
        found = after.get(name, {})
        differing = [address for address in expected if address not in found]
        for former, address in addresses.items():
            if former in declarations and address in found and not _is_moved(former, found[address]):
                raise UnusableEdit(f"renaming {old} would delete {former} and create {address}; rename it by hand")
        for address, declaration in found.items():
            if address not in expected:
                differing.append(address)
            elif _comparable(declaration, renaming) != _comparable(expected[address], renaming):
                fields = _list_changed_fields(expected[address], declaration, renaming) if is_instance else []
                differing += [] if fields else [address]
                notes |= dict.fromkeys(
                    f"{address}.{field} contains the name of the instance, and changes" for field in fields
                )
        if differing:
            where = f" in the environment {name}" if name else ""
            raise UnusableEdit(f"renaming {old} would also change {differing[0]}{where}; rename it by hand")
    return [*notes]


def _is_moved(former: Address, declaration: Declaration) -> bool:
    """Whether the object keeps its identity: by a former address, or because there is none."""
    return former in declaration.moved or kinds.get(former.kind).home is Home.FILE


def _list_changed_fields(old: Declaration, new: Declaration, renaming: rename.Renaming) -> list[str]:
    """The fields that differ, if nothing else does and each can be updated in place; otherwise none."""
    before = {name: _rename_refs(value, renaming) for name, value in old.spec.items()}
    after = {name: _rename_refs(value, renaming) for name, value in new.spec.items()}
    if _comparable(replace(old, spec={}), renaming) != _comparable(replace(new, spec={}), renaming):
        return []
    kind = kinds.get(new.address.kind)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return names if all(Behavior.IMMUTABLE not in kind.by_name[name] for name in names) else []


def _comparable(declaration: Declaration, renaming: rename.Renaming) -> tuple[object, ...]:
    """What a declaration says, with the new address, without positions."""
    address = renaming.addresses.get(declaration.address, declaration.address)
    moved = {*declaration.moved} - renaming.addresses.keys() - {*renaming.addresses.values()}
    if scope_of(declaration.positions) is not None:
        moved = set()  # a component adds those below former names of the instance
    deliver = {name: replace(delivery, position=None) for name, delivery in declaration.deliver.items()}
    spec = {name: _rename_refs(value, renaming) for name, value in declaration.spec.items()}
    return (
        address, declaration.id, declaration.ensure, declaration.lifecycle, moved, deliver, declaration.rotate, spec
    )  # fmt: skip


def _rename_refs(value: Value, renaming: rename.Renaming) -> Value:
    match value:
        case Ref():
            return _rename_ref(value, renaming)
        case Template():
            return _rename_template(value, renaming)
        case JsonTemplate():
            return JsonTemplate(tuple(_rename_part(part, renaming) for part in value.parts))
        case Sealed():
            return value.source
        case Secret():
            return value
        case dict():
            return {name: _rename_refs(item, renaming) for name, item in value.items()}
        case list():
            return [_rename_refs(item, renaming) for item in value]
    return value


def _rename_ref(ref: Ref, renaming: rename.Renaming) -> Ref:
    return replace(ref, target=renaming.addresses.get(ref.target, ref.target))


def _rename_template(template: Template, renaming: rename.Renaming) -> Template:
    return Template(tuple(part if isinstance(part, str) else _rename_ref(part, renaming) for part in template.parts))


def _rename_part(part: str | Ref | Template | Secret, renaming: rename.Renaming) -> str | Ref | Template | Secret:
    match part:
        case Ref():
            return _rename_ref(part, renaming)
        case Template():
            return _rename_template(part, renaming)
    return part


def _find_mentions(source: ProjectSource, texts: Mapping[str, str], renaming: rename.Renaming) -> Iterator[str]:
    """Yields the lines that still contain a former address, as in comments, approvals and policies."""
    configs = project_texts.list_configs(source.path)
    others = ["approvals.yaml"]
    for folder in sorted({folder for config in configs for folder in config.policies}):
        with suppress(files.Unreadable):
            others += files.find_manifests(source.path, files.path_inside(folder))
    for path in (*texts, *others):
        with suppress(files.Unreadable):
            text = texts.get(path) or files.read(source.path, path, MAX_BYTES).decode(errors="replace")
            found = [(number, former) for former in renaming.addresses for number in rename.find_mentions(text, former)]
            for number, former in sorted(found):
                yield f"{path}:{number} still mentions {former}"
