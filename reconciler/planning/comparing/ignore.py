"""What `lifecycle.ignore` leaves to others: a whole field, or a part inside one, by its dotted path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.canonical import CanonicalFields, leaf_at
from reconciler.model.fields.annotations import InputOnly, Sensitive
from reconciler.model.kind import Kind
from reconciler.model.value import Value


def overlay_live(
    kind: Kind, spec: Mapping[str, Value], have: CanonicalFields, paths: Sequence[str]
) -> dict[str, Value]:
    """The declared values with the ignored parts as they are live, as far as that can be read.

    They have to be there, because the platform replaces what surrounds them as a whole.
    """
    kept = dict(spec)
    for path in paths:
        top, *inner = path.split(".")
        if inner and isinstance(kept.get(top), dict) and isinstance(have.get(top), dict) and not _is_hidden(kind, path):
            kept[top] = _overlay_path(kept[top], have[top], inner)
    return kept


def prune(kind: Kind, want: CanonicalFields, paths: Sequence[str]) -> CanonicalFields:
    """What is left to compare: no ignored fields, and no ignored parts that responses do not show."""
    for path in paths:
        if "." not in path or _is_hidden(kind, path):
            want = _remove_path(want, path.split("."))
    return want


def find_undeclared_secrets(kind: Kind, spec: Mapping[str, Value], paths: Sequence[str]) -> list[str]:
    """The ignored secrets that no manifest tells: without them the object, or what surrounds them, cannot be sent."""
    return [
        path
        for path in paths
        if (leaf := leaf_at(kind.fields, path)) and Sensitive in leaf and _is_undeclared(spec, path)
    ]


def _is_undeclared(spec: Mapping[str, Value], path: str) -> bool:
    """Whether what surrounds the path is declared, and the path is not."""
    head, _, rest = path.partition(".")
    inner = spec.get(head)
    return _is_undeclared(inner, rest) if rest and isinstance(inner, dict) else not rest and inner in (None, "")


def _overlay_path(declared: Mapping[str, Value], live: Mapping[str, Value], path: Sequence[str]) -> dict[str, Value]:
    head, *rest = path
    if rest:
        inner, there = declared.get(head), live.get(head)
        if not isinstance(inner, dict) or not isinstance(there, dict):
            return dict(declared)
        return {**declared, head: _overlay_path(inner, there, rest)}
    others = {name: value for name, value in declared.items() if name != head}
    return {**others, head: live[head]} if live.get(head) is not None else others


def _remove_path(form: Mapping[str, Value], path: Sequence[str]) -> CanonicalFields:
    head, *rest = path
    if not rest:
        return {name: value for name, value in form.items() if name != head}
    inner = form.get(head)
    return {**form, head: _remove_path(inner, rest)} if isinstance(inner, dict) else dict(form)


def _is_hidden(kind: Kind, path: str) -> bool:
    leaf = leaf_at(kind.fields, path)
    return leaf is not None and InputOnly in leaf
