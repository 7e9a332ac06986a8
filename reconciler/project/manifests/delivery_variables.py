"""Variables in `deliver`: substituted before the manifest is read, so that every check sees the target itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.languages.yaml.reader import Document
from reconciler.model.address import Address
from reconciler.model.fields.form import Form
from reconciler.model.problem import Finding
from reconciler.model.value import Json, JsonTemplate, Ref, Secret, Template
from reconciler.project.documents.resolve import Resolver

KEY = "deliver"
_UNDECLARED = "unknown-reference"  # of a reference, which no declaration would help


class _Deliveries(Form):
    """The part of a manifest that is resolved here, as a form for the resolver."""

    deliver: dict[str, Any] = {}


def substitute_variables(document: Document, resolver: Resolver) -> tuple[Document, list[Finding]]:
    """The document with variables in `deliver` replaced by their values, and findings about them."""
    value = document.value
    written = value.get(KEY) if isinstance(value, dict) else None
    if not isinstance(written, dict) or "${{" not in str(written):
        return document, []
    subject = _address_of(value)
    resolved = resolver.resolve(_Deliveries, subject, {KEY: written})[KEY]
    unresolved = {finding.path: finding for finding in resolver.findings if finding.code != _UNDECLARED}
    others = {finding.path: finding for finding in _find_others(resolved, (KEY,))}
    findings = [unresolved.get(path, finding) for path, finding in others.items()]
    findings += [finding for finding in resolver.findings if finding.path not in others]
    if others:
        return document._replace(value={name: item for name, item in value.items() if name != KEY}), findings
    return document._replace(value={**value, KEY: resolved}), findings


def _address_of(value: Json) -> Address | str:
    try:
        return Address.parse(f"{value.get('kind')}/{value.get('name')}")
    except ValueError:
        return ""  # reported with the envelope


def _find_others(value: Any, path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Reports references and secrets, which are not known before an apply, or must not be shown."""
    match value:
        case dict():
            for key, item in value.items():
                yield from _find_others(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _find_others(item, (*path, index))
        case Ref() | Template() | JsonTemplate() | Secret():
            remedy = "use only variables of the project: ${{ var.NAME }}"
            yield Finding(path, "a target cannot contain a reference or a secret", remedy, code="invalid-expression")
