"""Declares resources `ensure: forgotten` in the files of a project, and keeps what refers to them valid.

The account is read only if an id is needed, and the id is then written too: where a resource that stays refers to a
forgotten one, and where no unique field would identify the object to the stack that adopts it.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.kind import Home
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import Ref, Sealed, Value, references
from reconciler.operations.authoring import project_texts
from reconciler.operations.authoring.project_texts import Declared, EditedProject
from reconciler.operations.errors import InvalidProject, NothingSelected, UnusableEdit
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.project_openers import open_project
from reconciler.operations.reporting import OnEvent, ignore_event
from reconciler.project.documents.merge import Layer, MergedDocument, Role, scope_of
from reconciler.project.manifests import forget
from reconciler.project.manifests.for_each import KEY
from reconciler.project.settings import environments
from reconciler.project.yaml import emit
from reconciler.project.yaml.patch import Unpatchable


class _Forgetting(Struct, frozen=True):
    """What is to be forgotten, and in which environments.

    environment  the one whose file is edited; None: the manifests are, for every environment
    loaded       the declarations of each of these environments before the edit
    """

    addresses: frozenset[Address]
    environment: str | None
    loaded: Mapping[str | None, Declared]


async def forget_resources(
    source: ProjectSource, patterns: Sequence[str], on_event: OnEvent = ignore_event
) -> EditedProject:
    """Changes the files in memory. Writes nothing.

    patterns  addresses, in which * and ? are wildcards; children of a forgotten resource are forgotten too

    With an environment, its file is changed, and the others keep managing the resources. Raises InvalidProject,
    NothingSelected if a pattern matches nothing, UnusableEdit, or what reading the account raises.
    """
    texts = project_texts.read(source)
    loaded = project_texts.load(source, texts)
    environment = source.chosen_environment
    if environment is not None and environment not in loaded:
        source.read_settings()  # raises the error about the environment
    scope: Mapping[str | None, Declared] = loaded if environment is None else {environment: loaded[environment]}
    chosen = frozenset(_select(patterns, scope))
    whole = frozenset(_with_children(chosen, scope))
    forgetting = _Forgetting(whole, environment, scope)
    referrers = list(_find_referrers(forgetting))
    ids: dict[Address, str] = {}
    notes = [f"{address} is part of a forgotten resource, and is forgotten too" for address in sorted(whole - chosen)]
    if environment is None and [*loaded] != [None]:
        notes += [_describe_referrer(referrer, target) for referrer, target in referrers]
    elif referrers or _find_unidentified(forgetting):
        ids = await _find_ids(source, forgetting, on_event)
        _check_referrers(referrers, ids)
        wanted = _find_unidentified(forgetting) | _targets(referrers)
        ids = {address: id for address, id in ids.items() if address in wanted}
    changed = _edit(texts, forgetting, ids, _targets(referrers) & ids.keys())
    different = {path: (text, changed[path]) for path, text in texts.items() if changed[path] != text}
    if not different:
        for address in sorted(whole):
            if any(_ensure(declarations, address) is Ensure.PRESENT for declarations in scope.values()):
                raise _report_shared_document(forgetting, address)
        raise UnusableEdit(f"{_join(whole)} is declared `ensure: forgotten` already")
    after = _check_result(source, changed, loaded, forgetting)
    notes += [
        f"{address} has the id {id}: `reconciler adopt {address} --id {shlex.quote(id)}` adopts it in another stack"
        for address, id in sorted(ids.items())
        if after[environment][address].id is None
    ]
    return EditedProject(source.path, different, notes=tuple(notes))


def _select(patterns: Sequence[str], scope: Mapping[str | None, Declared]) -> Iterator[Address]:
    declared = {address: item for declarations in scope.values() for address, item in declarations.items()}
    for pattern in patterns:
        found = [address for address in declared if fnmatchcase(str(address), pattern)]
        if not found:
            hint = did_you_mean(pattern, sorted(map(str, declared)))
            raise NothingSelected(f"{pattern} is not declared" + (f"; {hint}" if hint else ""))
        for address in found:
            if kinds.get(address.kind).home is Home.FILE:
                if len(found) == 1:
                    raise UnusableEdit(f"{address} has no object that could be kept; delete its manifest")
            elif any(_ensure(declarations, address) is Ensure.ABSENT for declarations in scope.values()):
                raise UnusableEdit(f"{address} is declared `ensure: absent`; remove that line to keep its object")
            else:
                yield address


def _ensure(declarations: Declared, address: Address) -> Ensure | None:
    return declarations[address].ensure if address in declarations else None


def _with_children(chosen: frozenset[Address], scope: Mapping[str | None, Declared]) -> set[Address]:
    """The addresses with those of their declared children: this stack would go on changing a part of the object."""
    found = {*chosen}
    for declarations in scope.values():
        for declaration in declarations.values():
            part_of = kinds.get(declaration.address.kind).part_of
            parent = declaration.spec.get(part_of.field) if part_of is not None else None
            if isinstance(parent, Ref) and parent.target in chosen and declaration.ensure is Ensure.PRESENT:
                found.add(declaration.address)
    return found


def _find_referrers(forgetting: _Forgetting) -> Iterator[tuple[Declaration, Address]]:
    """Yields each resource that stays, with a resource to forget that it refers to and that has no `id`."""
    seen: set[tuple[Address, Address]] = set()
    for declarations in forgetting.loaded.values():
        for declaration in declarations.values():
            if declaration.address in forgetting.addresses or declaration.ensure is not Ensure.PRESENT:
                continue
            for target in dict.fromkeys(ref.target for ref in references(dict(declaration.spec))):
                pair = (declaration.address, target)
                is_lost = target in forgetting.addresses and declarations[target].id is None
                if is_lost and pair not in seen:
                    seen.add(pair)
                    yield declaration, target


def _describe_referrer(referrer: Declaration, target: Address) -> str:
    return (
        f"{referrer.position}: {referrer.address} refers to {target}: keep the manifest of {target} after the apply. "
        f"`reconciler forget {shlex.quote(str(target))} --env NAME` writes the id that an environment needs for new "
        "references"
    )


def _targets(referrers: Sequence[tuple[Declaration, Address]]) -> set[Address]:
    return {target for _, target in referrers}


def _find_unidentified(forgetting: _Forgetting) -> set[Address]:
    """The resources whose objects no unique field identifies, and that have no `id`."""
    return {
        address
        for declarations in forgetting.loaded.values()
        for address in forgetting.addresses
        if address in declarations and declarations[address].id is None and not kinds.get(address.kind).identity
        and declarations[address].ensure is Ensure.PRESENT
    }  # fmt: skip


async def _find_ids(source: ProjectSource, forgetting: _Forgetting, on_event: OnEvent) -> dict[Address, str]:
    """The ids of the objects that the plan of the changed manifests will forget."""
    project = open_project(source)
    declarations = {
        address: replace(item, ensure=Ensure.FORGOTTEN) if address in forgetting.addresses else item
        for address, item in project.manifest.declarations.items()
    }
    edited = dataclasses.replace(project, manifest=replace(project.manifest, declarations=declarations))
    plan = edited.plan_for(await edited.take_snapshot(on_event=on_event))
    forgotten = (change for change in plan.changes if change.action is Action.FORGET)
    return {change.address: change.id for change in forgotten if change.id is not None}


def _check_referrers(referrers: Sequence[tuple[Declaration, Address]], ids: Mapping[Address, str]) -> None:
    for referrer, target in referrers:
        if target not in ids:
            raise UnusableEdit(
                f"{referrer.position}: {referrer.address} refers to {target}, of which this stack manages no object; "
                f"apply first, or write an id instead of the reference"
            )


def _edit(
    texts: Mapping[str, str], forgetting: _Forgetting, ids: Mapping[Address, str], referenced: Collection[Address]
) -> dict[str, str]:
    """All texts, with the changed ones. Raises UnusableEdit."""
    changed = dict(texts)
    path = ""
    try:
        if forgetting.environment is not None:
            path = f"{environments.FOLDER}/{forgetting.environment}.yaml"
            changed[path] = forget.forget_in_environment(texts[path], forgetting.addresses, ids)
            return changed
        left = {*forgetting.addresses}
        for path, text in texts.items():
            if project_texts.has_manifests(path, text) and (here := left.intersection(forget.find_declared(text))):
                changed[path] = forget.forget_in_manifest(text, here, ids, referenced)
                left -= here
    except Unpatchable as why:
        raise UnusableEdit(f"{path} cannot be changed: {why}; write `ensure: forgotten` by hand") from None
    for address in sorted(left):
        raise _report_shared_document(forgetting, address)
    return changed


def _report_shared_document(forgetting: _Forgetting, address: Address) -> UnusableEdit:
    declaration = next(items[address] for items in forgetting.loaded.values() if address in items)
    position = declaration.position
    if (scope := scope_of(declaration.positions)) is not None:
        return UnusableEdit(
            f"{position}: {address} belongs to the {scope.describe()}; write `ensure: ${{{{ input.NAME }}}}` there, "
            "and `NAME: forgotten` in the use; `--env NAME` forgets it in one environment"
        )
    own = declaration.positions.own if isinstance(declaration.positions, MergedDocument) else None
    if own is not None and own.is_entry:
        return UnusableEdit(_advise_entry(address, own))
    maps: dict[str, dict[str, dict[str, str]]] = {}
    for child in _with_children(frozenset({address}), forgetting.loaded) - {address}:
        if (above := kinds.get(child.kind).part_of) is not None and child.name.startswith(f"{address.name}-"):
            maps.setdefault(above.inline, {})[child.name.removeprefix(f"{address.name}-")] = {}
    document = {"kind": address.kind, "name": address.name, "ensure": "forgotten", **maps}
    return UnusableEdit(
        f"{position}: {address} is declared with other resources in one document; remove it there, and add the "
        f"document `{emit.flow(document)}`; `--env NAME` forgets it in one environment"
    )


def _advise_entry(address: Address, own: Layer) -> str:
    """What to write by hand for an inline child of `for_each`, of a variable or of an environment."""
    key, entry = map(str, own.below[-2:])
    at = replace(own.spot(("spec",)), of_key=True)
    root = own.places.root
    if at.places is not own.places or own.role is Role.ENVIRONMENT or not isinstance(root, dict) or KEY not in root:
        return f"{at.position}: {address} cannot be changed here; write `ensure: forgotten` in this entry"
    name = f"ensure_{entry}"
    return (
        f"{at.position}: {address} shares its entry of {key} with the other items of for_each; write `ensure: "
        f"'${{{{ default(each.value.{name}, \"present\") }}}}'` in this entry, and `{name}: forgotten` in the item, "
        "which must be a map; `--env NAME` forgets it in one environment"
    )


def _check_result(
    source: ProjectSource,
    texts: Mapping[str, str],
    before: Mapping[str | None, Declared],
    forgetting: _Forgetting,
) -> Mapping[str | None, Declared]:
    """The declarations of the changed files. Raises UnusableEdit if anything else than these resources changes."""
    try:
        after = project_texts.load(source, texts)
    except InvalidProject as invalid:
        raise UnusableEdit(
            f"after forgetting {_join(forgetting.addresses)} the manifests would be invalid",
            *(str(problem) for problem in invalid.problems[:5]),
        ) from None
    for name, declarations in before.items():
        found = after.get(name, {})
        is_edited = name in forgetting.loaded
        for address in sorted({*declarations, *found}):
            old, new = declarations.get(address), found.get(address)
            if is_edited and address in forgetting.addresses and old is not None:
                as_wanted = new is not None and new.ensure is Ensure.FORGOTTEN
            else:
                as_wanted = old is not None and new is not None and _comparable(old) == _comparable(new)
            if not as_wanted and old == new and address in forgetting.addresses:
                raise _report_shared_document(forgetting, address)
            if not as_wanted:
                where = f" in the environment {name}" if name else ""
                raise UnusableEdit(f"this edit would also change {address}{where}; write `ensure: forgotten` by hand")
    return after


def _comparable(declaration: Declaration) -> tuple[object, ...]:
    """What a declaration says, without positions."""
    deliver = {name: replace(delivery, position=None) for name, delivery in declaration.deliver.items()}
    return (
        declaration.id, declaration.ensure, declaration.lifecycle, declaration.moved, deliver, declaration.rotate,
        {name: _without_placeholders(value) for name, value in declaration.spec.items()},
    )  # fmt: skip


def _without_placeholders(value: Value) -> object:
    match value:
        case Sealed():
            return value.source
        case dict():
            return {name: _without_placeholders(item) for name, item in value.items()}
        case list():
            return [_without_placeholders(item) for item in value]
    return value


def _join(addresses: Collection[Address]) -> str:
    return ", ".join(map(str, sorted(addresses)))
