"""Text of `explain` and `kinds` about kinds and fields. For the Markdown pages see `kind_page`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Home, Kind
from reconciler.model.value import canonical
from reconciler.rendering import terminal_text

_TYPES = {Shape.FLAG: "boolean", Shape.TEXT: "string", Shape.ANY: "any value"}


def listing(kinds: Sequence[Kind]) -> str:
    """A line per kind: its name and purpose."""
    name = max(len(kind.name) for kind in kinds)
    return "\n".join(f"{kind.name:<{name}}  {_gist(kind.spec)}" for kind in kinds)


def page(kind: Kind, width: int) -> str:
    lines = [*terminal_text.wrap(f"{kind.name}: {_summary(kind.spec)}", width), "", *_facts(kind, width)]
    lines += ["", "Fields:", *_table(kind.fields, width)]
    if len(kind.outputs) > 1 and kind.home is not Home.FILE:
        lines += ["", *terminal_text.wrap(f"Outputs: {', '.join(kind.outputs)}", width)]
    return "\n".join(lines)


def field_page(kind: Kind, path: str, field: Field, width: int) -> str:
    lines = [*terminal_text.wrap(f"{kind.name}.{path} ({type_of(field)})", width)]
    if field.doc:
        lines += ["", *terminal_text.wrap(field.doc, width)]
    if traits := list(traits_of(field)):
        lines += ["", *(line for trait in traits for line in _wrap_hanging(f"- {trait}", width, 2))]
    inner = field.fields or (field.item.fields if field.item else ())
    if inner:
        lines += ["", "Fields:", *_table(inner, width)]
    return "\n".join(lines)


def type_of(field: Field) -> str:
    """`list of string`"""
    if field.choices:
        return " | ".join(field.choices)
    if field.item is not None:
        return f"{'list' if field.shape is Shape.LIST else 'map'} of {type_of(field.item)}"
    return _TYPES.get(field.shape, str(field.shape))


def traits_of(field: Field) -> Iterator[str]:
    """The properties of a field beyond its type, a phrase each."""
    if field.required:
        yield "required"
    elif field.default is not None:
        yield f"default: {canonical(field.default).decode()}"
    if field.refs:
        yield f"id of {' or '.join(field.refs)}: {{ref: {field.refs[0]}/name}}"
    for behaviour in Behavior:
        if behaviour in field:
            yield f"{behaviour.name.lower().replace('_', ' ')}: {behaviour.value}"
    if field.immutable_part is not None:
        yield f"its {field.immutable_part.called} is immutable: {Behavior.IMMUTABLE.value}"
    if field.module:
        yield "a module: set with PUT and removed with DELETE on its own path"


def _facts(kind: Kind, width: int) -> Iterator[str]:
    where = f"{kind.path} of the agent" if kind.home is Home.AGENT else kind.path
    facts = (
        [("rendered to", "a file, by `reconciler agent config`")] if kind.home is Home.FILE else [("collection", where)]
    )
    if kind.identity:
        unique = f", unique on {kind.home}" if kind.unique else ""
        facts.append(("identified by", f"{' and '.join(kind.identity)}{unique}"))
    if kind.part_of is not None:
        inline = f"; can be declared there, under {kind.part_of.inline}" if kind.part_of.inline else ""
        facts.append(("part of", f"{kind.part_of.kind}, by {kind.part_of.field}{inline}"))
    if kind.one_time:
        facts.append(("readable once", kind.one_time))
    if kind.irreplaceable:
        facts.append(("deletion", "irreversible, needs approval: another account may reserve it"))
    for name, text in facts:
        yield from _wrap_hanging(f"{name + ':':<15}{text}", width, 15)


def _table(fields: Sequence[Field], width: int) -> Iterator[str]:
    name = max(len(field.name) for field in fields)
    for field in fields:
        mark = "*" if field.required else " "
        shape = "" if field.fields else f"{type_of(field)}. "
        yield from _wrap_hanging(
            f"{mark} {field.name:<{name}}  {shape}{field.doc or _part_gist(field)}".rstrip(), width, name + 4
        )
    if any(field.required for field in fields):
        yield ""
        yield "* required"


def _part_gist(field: Field) -> str:
    return "A module." if field.module else "An object." if field.fields else ""


def _wrap_hanging(line: str, width: int, indent: int) -> Iterator[str]:
    """Wraps a line and indents all lines but the first."""
    first, *rest = terminal_text.wrap(line[indent:], max(width - indent, 16))
    yield line[:indent] + first
    yield from (" " * indent + line for line in rest)


def _summary(spec: type) -> str:
    return " ".join((inspect.getdoc(spec) or "").split())


def _gist(spec: type) -> str:
    return _summary(spec).partition(". ")[0].rstrip(".")
