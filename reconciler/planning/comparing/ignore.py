"""Applies `lifecycle.ignore` (docs/manifests.md): fields, or parts inside them by dotted path, that are not managed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.canonical import CanonicalFields, leaf_at
from reconciler.model.fields.annotations import InputOnly, Sensitive
from reconciler.model.kind import Kind
from reconciler.model.value import Value


def overlay_live(
    kind: Kind, spec: Mapping[str, Value], have: CanonicalFields, paths: Sequence[str]
) -> dict[str, Value]:
    """The declared spec with the live values of the ignored parts, as far as responses show them.

    They are needed because the platform replaces the enclosing object as a whole.
    """
    merged = dict(spec)
    for path in paths:
        top, *inner = path.split(".")
        if (
            inner
            and isinstance(merged.get(top), dict)
            and isinstance(have.get(top), dict)
            and not _is_hidden(kind, path)
        ):
            merged[top] = _overlay_path(merged[top], have[top], inner)
    return merged


def prune(kind: Kind, want: CanonicalFields, paths: Sequence[str]) -> CanonicalFields:
    """The declared form to compare: without ignored fields and without ignored parts that responses do not show."""
    for path in paths:
        if "." not in path or _is_hidden(kind, path):
            want = _remove_path(want, path.split("."))
    return want


def find_undeclared_secrets(kind: Kind, spec: Mapping[str, Value], paths: Sequence[str]) -> list[str]:
    """The paths of ignored secrets that are not declared. The object that encloses one cannot be sent without it."""
    return [
        path
        for path in paths
        if (leaf := leaf_at(kind.fields, path)) and Sensitive in leaf and _is_undeclared(spec, path)
    ]


def _is_undeclared(spec: Mapping[str, Value], path: str) -> bool:
    """Whether the enclosing object is declared, and the path inside it is not."""
    head, _, rest = path.partition(".")
    inner = spec.get(head)
    return _is_undeclared(inner, rest) if rest and isinstance(inner, dict) else not rest and inner in (None, "")


def _overlay_path(declared: Mapping[str, Value], live: Mapping[str, Value], path: Sequence[str]) -> dict[str, Value]:
    head, *rest = path
    if rest:
        inner, live_inner = declared.get(head), live.get(head)
        if not isinstance(inner, dict) or not isinstance(live_inner, dict):
            return dict(declared)
        return {**declared, head: _overlay_path(inner, live_inner, rest)}
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
