"""Renames a declared resource in the files of a project, and checks that nothing else changes in any environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import JsonTemplate, Ref, Sealed, Secret, Template, Value
from reconciler.operations.authoring import project_texts
from reconciler.operations.authoring.project_texts import Declared, EditedProject
from reconciler.operations.errors import InvalidProject, NothingSelected, UnusableEdit
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.validate import make_placeholder
from reconciler.project import component_files, files
from reconciler.project.documents.merge import scope_of
from reconciler.project.manifests import rename, rename_item
from reconciler.project.settings.config import load_config
from reconciler.project.yaml.patch import Unpatchable


def rename_resource(source: ProjectSource, old: Address, new: Address) -> EditedProject:
    """Changes the files in memory. Writes nothing.

    Raises InvalidProject, NothingSelected if `old` is not declared, or UnusableEdit.
    """
    texts = project_texts.read(source)
    before = project_texts.load(source, texts)
    declared = {address for declarations in before.values() for address in declarations}
    _check(old, new, declared, before)
    texts_of_item, renaming = _find_renaming(texts, old, new, declared)
    changed: dict[str, str] = {}
    for path, text in {**texts, **texts_of_item}.items():
        try:
            if component_files.is_component(text):
                changed[path] = rename.rename_in_component(text, renaming)
                if changed[path] != text and path.startswith("../"):
                    raise UnusableEdit(
                        f"{path} refers to {old}, and other projects may use it",
                        remedy="make the reference an input of the component, and set it where it is used",
                    )
            elif project_texts.is_manifest(path):
                changed[path] = rename.rename_in_manifests(text, renaming)
            else:
                changed[path] = rename.rename_in_settings(text, renaming)
        except Unpatchable as why:
            raise UnusableEdit(f"{path} cannot be changed: {why}; rename {old} by hand") from None
    _check_result(source, {**texts, **changed}, before, renaming)
    different = {path: (text, changed[path]) for path, text in texts.items() if changed[path] != text}
    mentions = tuple(_find_mentions(source, {**texts, **changed}, renaming))
    return EditedProject(source.path, different, mentions)


def _find_renaming(
    texts: Mapping[str, str], old: Address, new: Address, declared: set[Address]
) -> tuple[Mapping[str, str], rename.Renaming]:
    """The new addresses of the resource and of its inline children. Raises UnusableEdit.

    Returns with them the texts in which an item of `for_each` has its new key.
    """
    for path, text in texts.items():
        try:
            found = rename.find_declaration(text, old) if project_texts.has_manifests(path, text) else None
        except Unpatchable as why:
            raise UnusableEdit(f"{path} cannot be changed: {why}; rename {old} by hand") from None
        if found is None:
            continue
        whole, below = found
        addresses = {old: new}
        for child in below if whole == old else ():
            addresses[child] = Address(child.kind, f"{new.name}{child.name.removeprefix(old.name)}")
        return {}, _rename_all(old, new, declared, addresses)
    return _rename_item(texts, old, new, declared)


def _rename_item(
    texts: Mapping[str, str], old: Address, new: Address, declared: set[Address]
) -> tuple[Mapping[str, str], rename.Renaming]:
    manifests = {path: text for path, text in texts.items() if project_texts.has_manifests(path, text)}
    by_hand = "change the name in the item by hand, and write moved: {KEY: " + str(old) + "} beside for_each"
    try:
        item = rename_item.find_item(manifests, texts, old, new)
        if item is None and (part_of := kinds.get(old.kind).part_of) is not None and part_of.inline:
            text = f"{old} is written in no manifest under its name: its entry comes from for_each or an environment"
            raise UnusableEdit(
                text, remedy=f"change its key in {part_of.inline} there, and add moved: {old} to the entry"
            )
        if item is None:
            raise UnusableEdit(f"{old} is declared with for_each, and no key of it is its name", remedy=by_hand)
        edited = rename_item.rename_item(texts, item, old)
    except Unpatchable as why:
        raise UnusableEdit(f"{old} is declared with for_each: {why}") from None
    return edited, _rename_all(old, new, declared, {old: new, **item.children})


def _rename_all(
    old: Address, new: Address, declared: set[Address], addresses: Mapping[Address, Address]
) -> rename.Renaming:
    if taken := [address for address in addresses.values() if address in declared - addresses.keys()]:
        raise UnusableEdit(f"{taken[0]} is already declared; choose another name")
    return rename.Renaming(old, new, declared, addresses)


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
        if old in declarations and (scope := scope_of(declarations[old].positions)) is not None:
            local = f"{old.kind}/{old.name.removeprefix(f'{scope.name}-')}"
            raise UnusableEdit(
                f"{old} is {local} of the component {scope.component}, used in {scope.position}",
                remedy=f"change its name in {scope.file} and add moved: {local} there, or change the name of the "
                f"instance and add moved: {scope.name} there",
            )
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
) -> None:
    """Raises UnusableEdit if the changed files declare anything else than the renamed resource."""
    old, addresses = renaming.old, renaming.addresses
    try:
        after = project_texts.load(source, texts)
    except InvalidProject as invalid:
        raise UnusableEdit(
            f"after renaming {old} the manifests would be invalid", *(str(problem) for problem in invalid.problems[:5])
        ) from None
    for name, declarations in before.items():
        expected = {addresses.get(address, address): declaration for address, declaration in declarations.items()}
        found = after.get(name, {})
        differing = [address for address in expected if address not in found] + [
            address
            for address, declaration in found.items()
            if address not in expected or _comparable(declaration, renaming) != _comparable(expected[address], renaming)
        ]
        if differing:
            where = f" in the environment {name}" if name else ""
            raise UnusableEdit(f"renaming {old} would also change {differing[0]}{where}; rename it by hand")


def _comparable(declaration: Declaration, renaming: rename.Renaming) -> tuple[object, ...]:
    """What a declaration says, with the new address, without positions."""
    address = renaming.addresses.get(declaration.address, declaration.address)
    moved = {*declaration.moved} - renaming.addresses.keys() - {*renaming.addresses.values()}
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
    """Yields the lines that still contain the old address, as in comments, approvals and policies."""
    config = load_config(source.path, {}, None, make_placeholder)
    others = ["approvals.yaml"]
    for folder in config.policies:
        with suppress(files.Unreadable):
            others += files.find_manifests(source.path, files.path_inside(folder))
    for path in (*texts, *others):
        with suppress(files.Unreadable):
            text = texts.get(path) or files.read(source.path, path, MAX_BYTES).decode(errors="replace")
            numbers = {number for address in renaming.addresses for number in rename.find_mentions(text, address)}
            for number in sorted(numbers):
                yield f"{path}:{number}"
