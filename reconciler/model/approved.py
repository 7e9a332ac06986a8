"""Approvals that a project records in Git, in `approvals.yaml`."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.problem import Position


class ApprovedItem(Struct, frozen=True):
    """An entry of `approvals.yaml`: the approval of what will happen to one object, until a day.

    what     the rule, as in `--allow`: `delete`, `adopt`, `widens_access`
    subject  `Kind/name`, or an entry point; `*` for a guard over the whole plan
    id       of the live object; empty if there is none yet
    digest   as of the `ApprovalItem` that it approves
    until    the last day on which the entry is in effect, such as 2026-12-31, in UTC
    """

    what: str
    subject: str
    id: str
    digest: str
    until: str
    position: Position | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.subject}"
