"""Checks the components of a project that nothing uses, so that a mistake is found before the first use.

No use gives values: what an input, an item of `for_each` or the name of the instance would insert is unknown here, and
counts as valid. References are not looked up, since a component may name resources that its user has to declare.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from reconciler import kinds
from reconciler.languages.yaml.reader import Document
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding, Position, Problem
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import Json
from reconciler.project import component_files
from reconciler.project.documents import entries, envelope, validation
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.documents.merge import Layer, Role, merge
from reconciler.project.documents.references import Declared
from reconciler.project.documents.resolve import Absent, Resolver, Variable
from reconciler.project.documents.scope import Scope
from reconciler.project.manifests import children
from reconciler.project.manifests.components import KEY, Component, Components
from reconciler.project.manifests.declarations import declare
from reconciler.project.manifests.delivery_variables import substitute_variables
from reconciler.project.settings import variables
from reconciler.project.settings.config import Config

_UNKNOWN: Final = "component-value"  # the variable that stands for a value which only a use gives
_WHOLE: Final = f"${{{{ var.{_UNKNOWN} }}}}"
_QUOTED: Final = re.compile(r'"[^"]*"')
_NAMES: Final = re.compile(r"(?<![\w.-])(input|each|component)\.([A-Za-z0-9_-]+)")
_FLAGS: Final = frozenset(("protect", "adopt", "replace", "unmanaged_children", "ignore"))  # no texts
_AGES: Final = frozenset(("after", "overlap"))
_A_DAY: Final = "1d"
_LATER: Final = ("for_each", "when")
_MOST: Final = 1_000  # problems that are reported


class _Context(Struct, frozen=True):
    components: Components
    targets: Resolver
    resolver: Resolver
    budget: Budget


def find_problems(
    config: Config,
    environ: Mapping[str, str],
    overrides: Mapping[str, Variable],
    used: Collection[str],
    absent: Absent | None = None,
) -> list[Problem]:
    """The problems of the components in the project's own folders, except those that are `used`, by path."""
    paths = component_files.list_all(config.root, config.components, config.repository)
    unused = [path for path in paths if not path.startswith("../") and path not in used]
    if not unused:
        return []
    budget = Budget()
    settings = variables.settle_variables(config.settings, overrides, [])
    values = {**config.variables, **{name: setting.value for name, setting in settings.items()}, _UNKNOWN: None}
    declared = Declared(complete=False)
    targets, resolver = (
        Resolver(config.root, environ, values, known, absent, variables.sources(settings), budget)
        for known in (Declared(), declared)
    )
    context = _Context(Components(config, settings, budget), targets, resolver, budget)
    problems: list[Problem] = []
    for path in unused:
        try:
            component = context.components.load(path, problems)
            if component is not None:
                for document in component.documents:
                    _check_document(document, component, context, problems)
        except OverBudget as over:
            where = Position(path, 1, 1)
            return [*problems, Problem(str(over), over.remedy, "", where, code=over.code)]
        if len(problems) > _MOST:
            break
    own = [problem for problem in problems if problem.position is not None and problem.position.file in unused]
    return sorted(own, key=lambda problem: (problem.position or Position("", 0, 0), problem.text))[:_MOST]


def _check_document(document: Document, component: Component, context: _Context, problems: list[Problem]) -> None:
    value = document.value
    subject = f"{value.get('kind', value.get(KEY))}/{value.get('name')}"
    unknown = list(_find_unknown_names(value, component, ()))
    problems += [validation.to_problem(finding, document.places, subject) for finding in unknown]
    context.budget.charge(value)
    masked = _mask(document)
    if KEY in value:
        scope = Scope("x", component.name, component.file, document.places.start)
        context.components.check(masked, scope, problems)
        return
    if _is_unknown(value.get("spec")):
        return  # so are its fields
    parts = [masked]
    if children.may_have(masked.value):
        family = children.separate(masked, context.budget)
        problems += [validation.to_problem(finding, masked.places, subject) for finding in family.findings]
        parts = [family.parent, *family.children]
    for part in parts:
        problems += _check_manifest(component.file, part, context)


def _check_manifest(file: str, composed: Document, context: _Context) -> Iterator[Problem]:
    document, wrong_targets = substitute_variables(composed, context.targets)
    draft, findings = envelope.read_draft(file, document)
    for finding in (*findings, *wrong_targets):
        yield validation.to_problem(finding, document.places, draft.subject)
    if draft.envelope is not None and draft.address is not None and draft.kind is not None:
        yield from declare(draft, draft.envelope, draft.address, draft.kind, context.resolver, {})[1]


def _find_unknown_names(value: Json, component: Component, path: Path) -> Iterator[Finding]:
    """Findings about inputs that the component does not declare."""
    match value:
        case str() if "${{" in value:
            for root, name in _names_in(value):
                if root == "input" and name not in component.inputs:
                    remedy = did_you_mean(name, component.inputs) or f"declare it under inputs: in {component.file}"
                    yield Finding(path, f"unknown input {name}", remedy, code="unknown-input")
                elif root == "component" and name != "name":
                    text = f"unknown expression component.{name}"
                    yield Finding(path, text, "use input.NAME or component.name", code="invalid-expression")
        case dict():
            for key, item in value.items():
                yield from _find_unknown_names(item, component, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _find_unknown_names(item, component, (*path, index))


def _names_in(text: str) -> Iterator[tuple[str, str]]:
    """The names of a text whose values only a use gives: what they begin with, and what follows."""
    before, *parts = text.split("${{")
    for part in parts:
        inner, close, after = part.partition("}}")
        if close and not before.endswith("$"):
            yield from _NAMES.findall(_QUOTED.sub("", inner))
        before = after if close else part


def _mask(document: Document) -> Document:
    """The document as one of its instances, with placeholders."""
    written: dict[str, Any] = document.value
    kind = written.get("kind")
    maps = kinds.inline_children(kind) if isinstance(kind, str) and kind.isidentifier() else {}
    value: dict[str, Any] = {}
    for key, item in written.items():
        if key in _LATER or (key == "moved" and isinstance(item, dict)):
            continue
        if key == "with" or (key == "spec" and isinstance(item, dict)):
            value[key] = _mask_field(item)
        elif key in maps and isinstance(item, dict):
            value[key] = {name: _mask_entry(entry) for name, entry in item.items()}
        elif not _is_unknown(item) or key in ("name", "deliver"):
            value[key] = _mask_text(item)
    layer = Layer(Role.MANIFEST, value, document.places)
    return merge([layer], layer, sound=document.sound)


def _mask_entry(entry: Json) -> Json:
    if not isinstance(entry, dict):
        return {"ensure": "absent"} if _is_unknown(entry) else entry  # its fields are unknown
    return {
        key: _mask_text(item) if key in entries.KEYS else _mask_field(item)
        for key, item in entry.items()
        if key not in _LATER and not (key in entries.KEYS and _is_unknown(item))
    }


def _is_unknown(value: Json) -> bool:
    """Whether a text has a part that only a use gives."""
    return isinstance(value, str) and any(True for _ in _names_in(value))


def _mask_field(value: Json) -> Json:
    """A value of the spec, in which a text is unknown as a whole if a part of it is."""
    match value:
        case str():
            return _WHOLE if _is_unknown(value) else value
        case dict():
            return {key: _mask_field(item) for key, item in value.items()}
        case list():
            return [_mask_field(item) for item in value]
    return value


def _mask_text(value: Json) -> Json:
    """A value beside the spec, which is read as it is: `x` stands for what is unknown."""
    match value:
        case str() if _is_unknown(value):
            before, *parts = value.split("${{")
            return before + "".join(f"x{part.partition('}}')[2]}" for part in parts)
        case dict():
            known = {key: item for key, item in value.items() if not (key in _FLAGS and _is_unknown(item))}
            return {
                key: _A_DAY if key in _AGES and _is_unknown(item) else _mask_text(item) for key, item in known.items()
            }
        case list():
            return [_mask_text(item) for item in value]
    return value
