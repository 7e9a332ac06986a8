"""`environments/NAME.yaml`: how one environment differs from the rest of the project.

Its settings are merged over `reconciler.yaml`, its variables set those that are declared there, and under an address
stands a merge patch for the manifest of that resource. Applies nothing itself: see `config` and `composition`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as Folder
from typing import Any, Final

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.kind import Finding, Kind
from reconciler.model.problem import Position, Problem, Rejected
from reconciler.model.value import Json
from reconciler.project import files
from reconciler.project.documents import phrases, validation
from reconciler.project.documents.envelope import ManifestForm, misplaced
from reconciler.project.documents.merge import Layer, Role
from reconciler.project.documents.resolve import kind_meant
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.positions import Places
from reconciler.project.yaml.reader import Document

FOLDER: Final = "environments"
PATCHED: Final = tuple(name for name in ManifestForm.model_fields if name not in ("kind", "name"))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class Environment:
    """One environment's file as read.

    settings    what is merged over the project file
    variables   values, by name
    patches     by address; a patch of null leaves the resource out
    """

    name: str
    file: str
    text: bytes
    places: Places
    settings: Mapping[str, Json] = field(default_factory=dict)
    variables: Mapping[str, Json] = field(default_factory=dict)
    patches: Mapping[Address, Layer] = field(default_factory=dict)

    def place(self, address: Address) -> Position:
        """Where the address is written."""
        return self.places.key((str(address),))


def read(root: Folder, name: str) -> Environment:
    """The environment of that name; Rejected tells all that is wrong with its file."""
    file = f"{FOLDER}/{name}.yaml"
    if not _NAME.fullmatch(name):
        remedy = "use up to 63 letters, digits, '.', '_' and '-', beginning with a letter or digit"
        raise Rejected([Problem(f"{name!r} is not the name of an environment", remedy)])
    try:
        text = files.read(root, file, _MAX_BYTES)
    except files.Unreadable as wrong:
        known = names(root)[:20]
        if name in known:
            raise Rejected([Problem(str(wrong), wrong.remedy or "make it readable")]) from None
        remedy = phrases.meant(name, known) or (f"there are {phrases.listed(known, 'and')}" if known else "write it")
        raise Rejected([Problem(f"{wrong} for the environment {name}", remedy)]) from None
    document = _document(text, file)
    if document is None:
        return Environment(name, file, text, Places(file, None, array("Q", [0])))
    patches: dict[Address, Layer] = {}
    findings = list(_addressed(document, patches))
    variables = document.value.get("variables") or {}
    if not isinstance(variables, dict):
        findings.append(Finding(("variables",), f"expected a map, found {phrases.found(variables)}", "write a map"))
    if findings:
        raise Rejected([validation.problem(each, document.places) for each in findings])
    settings = {key: item for key, item in document.value.items() if "/" not in key and key != "variables"}
    return Environment(name, file, text, document.places, settings, variables, patches)


def _document(text: bytes, file: str) -> Document | None:
    """The one document of the file; None if it says nothing."""
    reading = yaml.read(text, file)
    if reading.problems:
        raise Rejected(reading.problems)
    start = Position(file, 1, 1)
    if len(reading.documents) > 1:
        raise Rejected([Problem(f"expected one document, found {len(reading.documents)}", "keep one", "", start)])
    if not reading.documents or reading.documents[0].value is None:
        return None
    document = reading.documents[0]
    if not isinstance(document.value, dict):
        found = phrases.found(document.value)
        raise Rejected([Problem(f"expected a map, found {found}", "write settings and Kind/name: {…}", "", start)])
    return document


def _addressed(document: Document, patches: dict[Address, Layer]) -> Iterator[Finding]:
    """Collects the patches, and tells what is wrong with them on the outside."""
    written: dict[str, Any] = document.value
    for key, patch in written.items():
        if "/" not in key:
            continue
        kind_name = key.partition("/")[0]
        if not kind_name.isidentifier() or kinds.find(kind_name) is None:
            yield Finding((key,), f"unknown kind {kind_name!r}", kind_meant(kind_name))
            continue
        try:
            address = Address.parse(key)
        except ValueError as error:
            text, _, rule = str(error).partition(": ")
            yield Finding((key,), text, f"use {rule}")
            continue
        if patch is not None and not isinstance(patch, dict):
            text = f"expected a map, or null to leave it out, found {phrases.found(patch)}"
            yield Finding((key,), text, "write what differs, as in {spec: {…}}")
            continue
        yield from unknown_keys(patch or {}, (key,), PATCHED, kinds.find(kind_name))
        patches[address] = Layer(Role.ENVIRONMENT, patch, document.places, (key,))


def unknown_keys(
    patch: Mapping[str, Json], path: tuple[str, ...], known: tuple[str, ...], kind: Kind | None
) -> Iterator[Finding]:
    """What stands in a part of a manifest and does not belong there."""
    for each in patch:
        if each not in known:
            remedy = misplaced(each, kind) or phrases.meant(each, known) or f"use {phrases.listed(known)}"
            yield Finding((*path, each), validation.UNKNOWN_FIELD, remedy)


def names(root: Folder) -> list[str]:
    """The environments of the project."""
    try:
        return sorted(each.stem for each in (root / FOLDER).glob("*.yaml") if not each.name.startswith("."))
    except OSError:
        return []
