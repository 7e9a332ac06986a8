"""Which values can be changed: what is handed from one part of the program to another cannot."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass

from msgspec import Struct

import reconciler

# What is filled while it is made or run.
MUTABLE = {
    "api.limiter.Slot",
    "cli.applying.presenter._Presenter",
    "cli.fleets.running._Interrupts",
    "cli.terminal.telemetry._Exchange",
    "engine.ownership._Collection",
    "fleet.coordinator._Execution",
    "languages.yaml.reader.Reading",
    "languages.yaml.reader._Anchor",
    "operations.accept_drift.Acceptance",
    "operations.applying.apply._Run",
    "operations.applying.waiting._Wait",
    "planning.importing.survey._Surveyor",
    "planning.ordering.parts._Whole",
    "project.documents.envelope.Draft",
    "project.documents.references.Declared",
    "project.fleets.members.MemberReading",
    "project.documents.budget.Budget",
    "project.manifests.children.Family",
    "project.manifests.inline._Piece",
    "project.access_tests._Reader",
    "project.policies.load._Reader",
    "rendering.fleet.reasons._Group",
    "rendering.html.report_page.DriftPeriod",
    "sandbox.base.draft.Draft",
    "sandbox.operations.routes._Node",
    "store.shared_engines._Shared",
}


def find_classes() -> Iterator[tuple[str, bool]]:
    """The name of each class of values, from `api.` and so on, and whether it is frozen."""
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if module.name.endswith(".__main__"):
            continue
        for item in vars(importlib.import_module(module.name)).values():
            if not isinstance(item, type) or item.__module__ != module.name:
                continue
            name = f"{module.name.removeprefix('reconciler.')}.{item.__name__}"
            if issubclass(item, Struct):
                yield name, item.__struct_config__.frozen
            elif is_dataclass(item):
                yield name, item.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_values_are_frozen_except_those_of_the_list() -> None:
    """The list is exact: a class is taken off it once it is frozen."""
    found = dict(find_classes())
    assert len(found) > 200
    assert {name for name, is_frozen in found.items() if not is_frozen} == MUTABLE
