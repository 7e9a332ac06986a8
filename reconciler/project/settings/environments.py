"""Reads `environments/NAME.yaml`: settings, variables and patches of one environment.

The settings are merged over `reconciler.yaml`, the variables set those declared there, and a key `Kind/name` holds a
merge patch for the manifest of that resource. `config` and `composition` apply them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as Folder
from typing import Any, Final

from msgspec import Struct, field

from reconciler import kinds
from reconciler.languages.yaml.positions import Places
from reconciler.languages.yaml.reader import Document
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding, Position, Problem, Rejected
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.model.value import Json
from reconciler.project import files
from reconciler.project.documents import phrases, validation
from reconciler.project.documents.envelope import suggest_place
from reconciler.project.documents.manifest_document import ManifestDocument
from reconciler.project.documents.merge import Layer, Role
from reconciler.project.documents.references import report_unknown_kind
from reconciler.project.settings.one_document import MAX_BYTES, read_map

FOLDER: Final = "environments"
PATCHED: Final = tuple(name for name in ManifestDocument.model_fields if name not in ("kind", "name"))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

_NAME_RULE: Final = "use up to 63 letters, digits, '.', '_' and '-', beginning with a letter or digit"
_MOST_NAMES: Final = 20  # of environments in a message


class Environment(Struct, frozen=True):
    """The file of one environment.

    settings    merged over the project file
    variables   values by name
    patches     merge patches by address; a null patch leaves the resource out
    """

    name: str
    file: str
    text: bytes
    places: Places
    settings: Mapping[str, Json] = field(default_factory=dict)
    variables: Mapping[str, Json] = field(default_factory=dict)
    patches: Mapping[Address, Layer] = field(default_factory=dict)

    def place(self, address: Address) -> Position:
        """The position of an address in the file."""
        return self.places.key((str(address),))


def read_environment(root: Folder, name: str) -> Environment:
    """Reads the environment of that name. Raises Rejected with every problem in its file."""
    file = f"{FOLDER}/{name}.yaml"
    if not _NAME.fullmatch(name):
        raise Rejected([Problem(f"{name!r} is not a valid environment name", _NAME_RULE, code="invalid-name")])
    try:
        text = files.read(root, file, MAX_BYTES)
    except files.Unreadable as wrong:
        known = environment_names(root)
        if name in known:
            raise Rejected([Problem(str(wrong), wrong.remedy or "make it readable", code=wrong.code)]) from None
        remedy = did_you_mean(name, known) or describe_known(known) or f"create {file}"
        raise Rejected(
            [
                Problem(
                    f"unknown environment {name}: {wrong}",
                    remedy,
                    code="unknown-environment",
                    values=with_suggestion("environment", name, known),
                )
            ]
        ) from None
    document = read_map(text, file, "write settings, variables and patches (Kind/name: {…})")
    if document is None:
        return Environment(name, file, text, Places(file, None, array("Q", [0])))
    patches: dict[Address, Layer] = {}
    findings = list(_read_patches(document, patches))
    variables = document.value.get("variables") or {}
    if not isinstance(variables, dict):
        findings.append(
            Finding(
                ("variables",),
                f"expected a map, found {phrases.describe_found(variables)}",
                "write a map",
                code="wrong-type",
            )
        )
    if findings:
        raise Rejected([validation.to_problem(finding, document.places) for finding in findings])
    settings = {key: item for key, item in document.value.items() if "/" not in key and key != "variables"}
    return Environment(name, file, text, document.places, settings, variables, patches)


def _read_patches(document: Document, patches: dict[Address, Layer]) -> Iterator[Finding]:
    """Adds the patches to `patches`, and yields findings about their keys. Values are validated after merging."""
    written: dict[str, Any] = document.value
    for key, patch in written.items():
        if "/" not in key:
            continue
        kind_name = key.partition("/")[0]
        if not kind_name.isidentifier() or kinds.find(kind_name) is None:
            yield report_unknown_kind((key,), kind_name)
            continue
        try:
            address = Address.parse(key)
        except ValueError as error:
            text, _, rule = str(error).partition(": ")
            yield Finding((key,), text, f"use {rule}", code="invalid-address")
            continue
        if patch is not None and not isinstance(patch, dict):
            text = f"expected a map, or null to leave it out, found {phrases.describe_found(patch)}"
            yield Finding((key,), text, "write what differs, as in {spec: {…}}", code="wrong-type")
            continue
        yield from report_unknown_keys(patch or {}, (key,), PATCHED, kinds.find(kind_name), kind_name)
        patches[address] = Layer(Role.ENVIRONMENT, patch, document.places, (key,))


def report_unknown_keys(
    patch: Mapping[str, Json], path: tuple[str, ...], known: tuple[str, ...], kind: Kind | None, parent: str = ""
) -> Iterator[Finding]:
    """Reports keys that are not known in a part of a manifest. Inline children of the kind `parent` are known."""
    for key in patch:
        if key not in known and not (parent and key in kinds.inline_children(parent)):
            yield validation.report_unknown_field((*path, key), known, suggest_place(key, kind))


def check_name(name: str) -> str | None:
    """Checks the name of an environment. Returns `problem; remedy` or None."""
    return None if _NAME.fullmatch(name) else f"{name!r} is not a valid environment name; {_NAME_RULE}"


def describe_known(names: Sequence[str]) -> str:
    """`known environments: prod, test`, with the number of those that are not listed; empty without any."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"known environments: {', '.join(names[:_MOST_NAMES])}{more}" if names else ""


def environment_names(root: Folder) -> list[str]:
    """Names of the project's environments, sorted."""
    try:
        return sorted(path.stem for path in (root / FOLDER).glob("*.yaml") if not path.name.startswith("."))
    except OSError:
        return []
