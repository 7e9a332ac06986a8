"""Traces the values of a declaration to their origins: environment, manifest, defaults, `for_each`, variables.

Uses documents that were read before, and reads no file. Values of sensitive and of unknown fields are hidden: a value
that another layer overrides was never validated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.manifest import Declaration, Path
from reconciler.model.problem import Position
from reconciler.model.provenance import Origin, Trace
from reconciler.model.value import Hidden, Json, Value, references, replace_at, value_at
from reconciler.project.documents import functions, phrases, validation
from reconciler.project.documents.merge import Layer, Role, SourceLocation, find_path, is_atom, layers_of
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import Setting

_VARIABLE: Final = re.compile(r"(?<!\$)\$\{\{\s*var\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
_EXPRESSION: Final = re.compile(
    r"\$\{\{\s*(?:var\.[A-Za-z0-9_-]+|(?:each|input|component)(?:\.[A-Za-z0-9_-]+)+)\s*\}\}"
)
_CALL: Final = re.compile(r"(?<!\$)\$\{\{\s*([a-z]+\s*\((?:(?!\}\}).)*?)\s*\}\}", re.DOTALL)
_PART: Final = re.compile(r"[^.\[\]]+|\[[0-9]+\]")
_HIDDEN: Final = Hidden("")


def path_of(dotted: str) -> Path:
    """Parses `rules[0].cidr` into a path."""
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in _PART.findall(dotted))


def trace_values(
    declaration: Declaration,
    below: Path,
    config: Config,
    settings: Mapping[str, Setting],
    others: Mapping[Address, Declaration],
) -> list[Trace]:
    """Traces the values at and below a path of the spec. A path without a value yields one trace of its default."""
    kind = declaration.address.kind
    value = value_at(declaration.spec, below)
    paths = list(_leaves(value, below)) if below or declaration.spec else []
    traces = []
    for path in paths or [below]:
        here = value_at(declaration.spec, path)
        origins = [
            *_origins_of_value(declaration, path, config, settings),
            *_origins_of_references(here, others),
        ]
        if not any(origin.counts and not origin.feeds for origin in origins):
            origins.insert(0, _default_origin(validation.field_at(kinds.get(kind).fields, path)[0]))
        traces.append(Trace(phrases.format_path(path), show_value(kind, path, here), tuple(origins)))
    return traces


def show_value(kind: str, path: Path, value: Value) -> Value:
    """The value at a path of a spec of the kind, with Hidden in place of everything that must not be shown."""
    whole = Field("spec", Shape.OBJECT, fields=kinds.get(kind).fields)
    fields = [validation.field_at((whole,), ("spec", *path[:depth])) for depth in range(len(path) + 1)]
    for depth, (field, _) in enumerate(fields):
        if field is not None and field.conceals is not None:
            return _redact_inside(value, field, path[depth:])
    # Free-form content has no fields inside.
    return _redact(value, *next((field for field in fields if field[0] and field[0].shape is Shape.ANY), fields[-1]))


def _redact_inside(value: Value, field: Field, below: Path) -> Value:
    """The value at the path `below` a policy or a map of headers, with Hidden in place of the secrets inside."""
    assert field.conceals is not None
    if _is_source(value):
        return value
    if isinstance(value, str) and not below and field.shape is Shape.ANY:
        document = field.canonical(value) if field.canonical is not None else value
        is_shown = not isinstance(document, str) and not any(True for _ in field.conceals.find(document))
        return value if is_shown else _HIDDEN
    whole: Json = value
    for key in reversed(below):
        whole = [whole] if isinstance(key, int) else {key: whole}
    found = [path[len(below) :] for path in field.conceals.find(whole)]
    is_named_beside = below[-1:] == ("value",)  # what it is the value of stands beside it
    secret = [()] if is_named_beside else [path for path in found if path[-1:] not in (("from_env",), ("from_file",))]
    return replace_at(value, secret, lambda _: _HIDDEN)


def _redact(value: Value, field: Field | None, sensitive: bool) -> Value:
    if value is None:
        return None
    if field is None:
        return _HIDDEN
    sensitive = sensitive or Behavior.SENSITIVE in field
    match value, field.shape:
        case dict(), Shape.OBJECT:
            within = {item.name: item for item in field.fields}
            return {key: _redact(item, within.get(key), sensitive) for key, item in value.items()}
        case dict(), Shape.MAP:
            return {key: _redact(item, field.item, sensitive) for key, item in value.items()}
        case list(), Shape.LIST:
            return [_redact(item, field.item, sensitive) for item in value]
    if _is_source(value):
        return value
    is_malformed = isinstance(value, (dict, list)) and field.shape is not Shape.ANY
    return _HIDDEN if sensitive or field.is_sensitive or is_malformed else value


def _is_source(value: Value) -> bool:
    """Whether a value only names the source of a value."""
    if isinstance(value, str):
        return _EXPRESSION.fullmatch(value) is not None
    return is_atom(value) and isinstance(value, dict) and all(isinstance(operand, str) for operand in value.values())


def _leaves(value: Value, path: Path) -> Iterator[Path]:
    """The paths of the leaves below a value. A list is one leaf."""
    if isinstance(value, dict) and value and not is_atom(value):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path


def _origins_of_value(
    declaration: Declaration, path: Path, config: Config, settings: Mapping[str, Setting]
) -> Iterator[Origin]:
    full: Path = ("spec", *path)
    kind = declaration.address.kind
    counts, deepest = True, -1
    for layer in reversed(layers_of(declaration.positions)):
        depth = next(length for length in range(len(full), -1, -1) if find_path(layer.value, full[:length])[1])
        value, _ = find_path(layer.value, full)
        if is_atom(value) and depth <= deepest:
            counts = False  # overridden by a map
        if depth == len(full) or _has_value_below(value, full[depth:], settings):
            yield from _origins_of_layer(kind, layer, full, counts, config, settings)
        if is_atom(value):
            counts = False  # this value overrides the layers below
        deepest = max(deepest, depth)


def _has_value_below(value: Json, rest: Path, settings: Mapping[str, Setting]) -> bool:
    """Whether a value is a variable whose value has something at the rest of the path."""
    whole = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return whole is not None and whole[1] in settings and find_path(settings[whole[1]].value, rest)[1]


def _origins_of_layer(
    kind: str, layer: Layer, full: Path, counts: bool, config: Config, settings: Mapping[str, Setting]
) -> Iterator[Origin]:
    what = str(layer.role) if layer.scope is None else f"component {layer.scope.component}"
    if layer.role is Role.ENVIRONMENT and config.environment is not None:
        what = f"environment {config.environment.name}"
    template = layer.template(full)
    written = template.written_value
    if layer.is_entry and not find_path(template.places.root, template.path)[1]:
        written = find_path(layer.value, full)[0]  # the parent of an inline child, which its entry does not name
    yield Origin(what, template.position, show_value(kind, full[1:], written), counts)
    fed: dict[object, tuple[SourceLocation, list[Path]]] = {}
    place = layer.source(full)
    for path, spot in ((path, spot) for path, spots in layer.fed.items() for spot in spots):
        if path[: len(place)] == place[: len(path)]:  # into the value, or around it
            below = layer.path_of(path)
            fed.setdefault((id(spot.places), spot.path, spot.of_key), (spot, []))[1].append(below)
    for spot, paths in fed.values():
        yield _input_origin(kind, _name_source(spot), spot.position, spot.written_value, paths, counts)
    mentions = list(_variables(find_path(layer.value, full)[0], full))
    for name in dict.fromkeys(name for name, _ in mentions):
        setting = settings.get(name)
        if setting is not None:
            where = setting.spot.position if setting.spot else None
            paths = [path for other, path in mentions if other == name]
            yield _input_origin(kind, f"variable {name}, from {setting.source}", where, setting.value, paths, counts)


def _name_source(spot: SourceLocation) -> str:
    """What inserted a value from this place."""
    match spot.path:
        case ("with", str(name), *_):
            return f"input {name}"
        case ("inputs", str(name), *_):
            return f"input {name}, from default"
        case ("name",):
            return "name of the instance"
    return "for_each"


def _input_origin(
    kind: str, what: str, where: Position | None, value: Value, paths: Iterable[Path], counts: bool
) -> Origin:
    """The origin of a value that was inserted at `paths`. Of a map or list only its type is shown."""
    if isinstance(value, (dict, list)):
        gist = phrases.describe_found(value) + (f" of {len(value)}" if isinstance(value, list) else "")
        return Origin(what, where, None, counts, feeds=True, gist=gist)
    visible = [show_value(kind, path[1:], value) for path in paths]
    return Origin(what, where, _HIDDEN if _HIDDEN in visible else value, counts, feeds=True)


def _variables(value: Value, path: Path) -> Iterator[tuple[str, Path]]:
    """The variables that texts in a value mention, with their paths, in order."""
    match value:
        case str():
            yield from ((name, path) for name in _VARIABLE.findall(value))
            for call in _CALL.findall(value):
                names = functions.names_in(call)
                yield from ((name.removeprefix("var."), path) for name in names if name.startswith("var."))
        case dict() | list():
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                yield from _variables(item, (*path, key))


def _origins_of_references(value: Value, others: Mapping[Address, Declaration]) -> Iterator[Origin]:
    for target in dict.fromkeys(reference.target for reference in references(value)):
        if (other := others.get(target)) is not None:
            yield Origin(f"refers to {target}", other.position, None, feeds=True)


def _default_origin(field: Field | None) -> Origin:
    if field is None:
        return Origin("not declared", None, None)
    if Behavior.SERVER_DEFAULT in field:
        return Origin("not declared: left to the platform", None, None)
    return Origin("not declared: the documented default", None, field.default)
