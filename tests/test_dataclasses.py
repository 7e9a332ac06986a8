"""Which dataclasses can be changed: what is handed from one part of the program to another cannot."""

from __future__ import annotations

import re
from pathlib import Path

import reconciler

# What is filled while it is made or run, or made so often that freezing it would take too long.
MUTABLE = {
    "api.limiter.Slot",
    "cli.applying.presenter._Presenter",
    "cli.applying.progress.EventLog",
    "cli.fleets.running._Interrupts",
    "cli.terminal.telemetry._Exchange",
    "cli.terminal.wait_notices.ReadProgress",
    "engine.ownership._Collection",
    "fleet.coordinator._Execution",
    "fleet.worker._Attempt",
    "model.manifest.Declaration",
    "operations.accept_drift.Acceptance",
    "operations.applying.apply._Run",
    "planning.deciding.decision.Decision",
    "planning.importing.survey._Surveyor",
    "planning.known_drift._Filter",
    "planning.ordering.call_graph.CallGraph",
    "planning.ordering.parts._Whole",
    "project.documents.envelope.Draft",
    "project.documents.references.Declared",
    "project.fleets.members.MemberReading",
    "project.manifests.for_each.Budget",
    "project.policies.load._Reader",
    "project.yaml.reader.Reading",
    "project.yaml.reader._Anchor",
    "rendering.fleet.reasons._Group",
    "rendering.html.fleet_page._Data",
    "rendering.html.report_page.DriftPeriod",
    "sandbox.base.draft.Draft",
    "sandbox.operations.events._Changes",
    "sandbox.operations.routes._Node",
    "sandbox.wire.request.ApiRequest",
    "store.shared_engines._Shared",
}
DECORATED = re.compile(
    r"^ *@(?:dataclasses\.)?dataclass\b(?:\((?P<words>.*)\))?.*\n(?: *@.*\n)* *class (?P<name>\w+)", re.MULTILINE
)


def test_dataclasses_are_frozen_except_those_of_the_list() -> None:
    """The list is exact: a class is taken off it once it is frozen."""
    package = Path(reconciler.__file__).parent
    mutable, number = set(), 0
    for file in package.rglob("*.py"):
        text = file.read_text()
        module = ".".join(file.relative_to(package).with_suffix("").parts)
        found = list(DECORATED.finditer(text))
        number += len(found)
        assert len(found) == len(re.findall(r"^ *@.*\bdataclass\b", text, re.MULTILINE)), f"{module}: not read in full"
        mutable |= {f"{module}.{each['name']}" for each in found if "frozen=True" not in (each["words"] or "")}
    assert number > 200
    assert mutable == MUTABLE
