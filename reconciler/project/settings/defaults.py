"""Reads `defaults:` of the project file: values by kind, for fields that a manifest does not set.

Checks kinds and keys only. `composition` merges the defaults below each manifest, where values are validated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reconciler import kinds
from reconciler.languages.yaml.positions import Places
from reconciler.model.problem import Finding
from reconciler.project.documents import phrases
from reconciler.project.documents.merge import Layer, Role
from reconciler.project.documents.references import report_unknown_kind
from reconciler.project.settings.environments import report_unknown_keys

PARTS: Final = ("spec", "lifecycle", "rotate")  # parts of a manifest that can have defaults


def read_defaults(written: Any, places: Places) -> tuple[dict[str, Layer], list[Finding]]:
    """Returns the defaults by kind, and findings with paths in the project file."""
    if written is None:
        return {}, []
    if not isinstance(written, Mapping):
        text = f"expected a map, found {phrases.describe_found(written)}"
        return {}, [Finding(("defaults",), text, "write Kind: {spec: {…}}", code="wrong-type")]
    layers: dict[str, Layer] = {}
    findings: list[Finding] = []
    for name, item in written.items():
        path = ("defaults", name)
        if not name.isidentifier() or kinds.find(name) is None:
            findings.append(report_unknown_kind(path, name))
        elif not isinstance(item, dict):
            text = f"expected a map, found {phrases.describe_found(item)}"
            findings.append(Finding(path, text, "write {spec: {…}}", code="wrong-type"))
        else:
            findings += report_unknown_keys(item, path, PARTS, kinds.find(name))
            layers[name] = Layer(Role.DEFAULTS, item, places, path)
    return layers, findings
