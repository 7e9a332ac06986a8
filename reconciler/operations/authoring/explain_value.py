"""Traces declared values to the files that set them, and reads the live values for comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.change import FieldChange
from reconciler.model.fields.annotations import InputOnly
from reconciler.model.manifest import Declaration, Manifest, Path
from reconciler.model.provenance import Trace
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Value, value_at
from reconciler.operations.open_project import OpenProject
from reconciler.operations.opening.source import ProjectSource, read_project
from reconciler.operations.reporting import Note, OnEvent, ignore_event
from reconciler.planning import planner
from reconciler.planning.comparing import canonical_fields, plan_fields
from reconciler.project.documents import validation
from reconciler.project.manifests import trace as value_trace
from reconciler.project.manifests.load import Loaded
from reconciler.project.settings import variables
from reconciler.project.settings.config import Config
from reconciler.rendering.provenance import LiveValue


class DeclaredValues(Struct, frozen=True, dict=True):
    """The declarations of a project, with the positions where values are set. Created by `read_values`."""

    source: ProjectSource
    config: Config
    loaded: Loaded

    @cached_property
    def declarations(self) -> Mapping[Address, Declaration]:
        """Declared resources, and declarations that are rendered to a file, such as AgentConfig."""
        return {**self.loaded.manifest.declarations, **self.loaded.rendered}

    def find(self, text: str) -> tuple[Address, Path] | None:
        """Splits a text such as `TLSEdge/payments.hostports[0]` into the longest declared address and a path.

        None if the text begins with no declared address.
        """
        kind, _, rest = text.partition("/")
        name = rest
        while Address(kind, name) not in self.declarations:
            name, dot, _ = name.rpartition(".")
            if not dot:
                return None
        return Address(kind, name), value_trace.path_of(rest[len(name) + 1 :])

    def trace(self, address: Address, path: Path) -> list[Trace]:
        """The values at and below a path of the spec, each with the positions that set it."""
        settings = variables.settle_variables(self.config.settings, self.source.variables, [])
        return value_trace.trace_values(self.declarations[address], path, self.config, settings, self.declarations)


def read_values(source: ProjectSource) -> DeclaredValues:
    """The declared values of a project. Sends nothing; raises InvalidProject."""
    return DeclaredValues(source, *read_project(source))


async def read_live_values(
    project: OpenProject, address: Address, traces: Sequence[Trace], *, on_event: OnEvent = ignore_event
) -> list[LiveValue | None]:
    """The live value at the path of each trace; None if no response has it, or the list could not be read."""
    snapshot = await project.take_snapshot(on_event=on_event)
    held = _live_fields(project.manifest, snapshot, address)
    listing = snapshot.of(address.kind)
    if not held and not listing.complete:
        on_event(Note(f"note: the live values of {address.kind} are unknown: {listing.why}"))
        return [None] * len(traces)
    changes = project.plan_for(snapshot).changes
    changed = [field for change in changes if change.address == address for field in change.fields]
    return [_live_value(address, trace, held, changed) for trace in traces]


def _live_value(
    address: Address, trace: Trace, held: Mapping[str, Value], changed: Sequence[FieldChange]
) -> LiveValue | None:
    path = value_trace.path_of(trace.path)
    field, _ = validation.field_at(kinds.get(address.kind).fields, path)
    is_hidden = field is not None and InputOnly in field and tuple(path) not in {(name,) for name in held}
    if held and is_hidden:
        return None
    about = (
        field_change
        for field_change in changed
        if f"{trace.path}.".startswith(f"{field_change.path}.") or field_change.path.startswith(f"{trace.path}.")
    )
    first = next(about, None)
    value = value_trace.show_value(address.kind, path, value_at(held, path))
    return LiveValue(value, first.changed_by if held and first is not None else None)


def _live_fields(manifest: Manifest, snapshot: Snapshot, address: Address) -> Mapping[str, Value]:
    """The fields of the live object of a declaration, in canonical form and without secrets; empty if there is none."""
    matched = {owner: key for key, owner in planner.match_all(manifest, snapshot, kinds.list_planned()).items()}
    live = next((item for item in snapshot.of(address.kind).objects if item.key == matched.get(address)), None)
    kind = kinds.get(address.kind)
    return {} if live is None else plan_fields.show_fields(kind, canonical_fields.canonical_live(kind, live), address)
