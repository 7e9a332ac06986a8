"""Answers where each value of a declaration was written: through overlay, defaults, `for_each` and variables.

Looks at what was read and reads nothing. What the platform holds is added by whoever asked it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.kind import Behaviour, Field
from reconciler.model.manifest import Declaration, Path
from reconciler.model.origin import Origin, Trace
from reconciler.model.value import Value, has_secret, references
from reconciler.project import validation, wording
from reconciler.project.config import Config
from reconciler.project.variables import Setting
from reconciler.project.weaving import Layer, Role, is_atom, layers_of, reached

_VARIABLE: Final = re.compile(r"(?<!\$)\$\{\{\s*var\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
_PART: Final = re.compile(r"[^.\[\]]+|\[[0-9]+\]")


def path_of(dotted: str) -> Path:
    """`rules[0].cidr` as a path; the text of a key is taken as it is."""
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in _PART.findall(dotted))


def traces(
    declaration: Declaration,
    below: Path,
    config: Config,
    settings: Mapping[str, Setting],
    others: Mapping[Address, Declaration],
) -> list[Trace]:
    """The values at and below a path of the spec, each with its origins; of a path that nothing says, one of its
    default."""
    fields = kinds.get(declaration.address.kind).fields
    value = validation.at(declaration.spec, below)
    paths = list(_leaves(value, below, fields)) if below or declaration.spec else []
    found = []
    for path in paths or [below]:
        field, sensitive = validation.field_at(fields, path)
        here = validation.at(declaration.spec, path)
        origins = [
            *_written(declaration, path, config, settings),
            *_referred(here, others),
        ]
        if not any(each.counts and not each.feeds for each in origins):
            origins.insert(0, _default(field))
        found.append(Trace(wording.dotted(path), here, tuple(origins), sensitive or has_secret(here)))
    return found


def _leaves(value: Value, path: Path, fields: tuple[Field, ...]) -> Iterator[Path]:
    """The paths of what is written each for itself: a list is one value."""
    if isinstance(value, dict) and value and not is_atom(value):
        for key, item in value.items():
            yield from _leaves(item, (*path, key), fields)
    else:
        yield path


def _written(declaration: Declaration, path: Path, config: Config, settings: Mapping[str, Setting]) -> Iterator[Origin]:
    full: Path = ("spec", *path)
    counts = True
    for layer in reversed(layers_of(declaration.positions)):
        value, is_whole = reached(layer.value, full)
        if is_whole:
            yield from _of_layer(layer, full, value, counts, config, settings)
        if is_atom(value):
            counts = False  # whatever lies below it is covered


def _of_layer(
    layer: Layer, full: Path, value: Value, counts: bool, config: Config, settings: Mapping[str, Setting]
) -> Iterator[Origin]:
    what = str(layer.role)
    if layer.role is Role.ENVIRONMENT and config.environment is not None:
        what = f"environment {config.environment.name}"
    template = layer.template(full)
    yield Origin(what, template.position, reached(template.places.root, template.path)[0], counts)
    fed = (spot for path, spots in layer.fed.items() if path[: len(full)] == full for spot in spots)
    for spot in {(id(each.places), each.path): each for each in fed}.values():
        yield Origin("for_each", spot.position, reached(spot.places.root, spot.path)[0], counts, feeds=True)
    for name in dict.fromkeys(_variables(value)):
        setting = settings.get(name)
        if setting is not None:
            where = setting.spot.position if setting.spot else None
            yield Origin(f"variable {name}, from {setting.source}", where, setting.value, counts, feeds=True)


def _variables(value: Value) -> Iterator[str]:
    """The variables that texts inside mention, in their order."""
    match value:
        case str():
            yield from _VARIABLE.findall(value)
        case dict() | list():
            for item in value.values() if isinstance(value, dict) else value:
                yield from _variables(item)


def _referred(value: Value, others: Mapping[Address, Declaration]) -> Iterator[Origin]:
    for target in dict.fromkeys(each.target for each in references(value)):
        if (other := others.get(target)) is not None:
            yield Origin(f"refers to {target}", other.position, None, feeds=True)


def _default(field: Field | None) -> Origin:
    if field is None:
        return Origin("not declared", None, None)
    if Behaviour.SERVER_DEFAULT in field:
        return Origin("not declared: left to the platform", None, None)
    return Origin("not declared: the documented default", None, field.default)
