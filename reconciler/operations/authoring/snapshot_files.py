"""Writes snapshot files, and plans from them without an API key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.value import Secret
from reconciler.operations.applying.plan_files import read_text
from reconciler.operations.open_project import OpenProject
from reconciler.operations.opening.source import ProjectSource, invalid_project
from reconciler.operations.project_openers import open_offline
from reconciler.operations.reporting import OnEvent, ignore_event
from reconciler.operations.selection import check_selection
from reconciler.planning import redaction
from reconciler.planning.guards import find_rule_approvals
from reconciler.project import atomic_write, snapshots
from reconciler.rendering.text_tools import format_time
from reconciler.rendering.wire.snapshot_json import SnapshotFile

KEY = "RECONCILER_SNAPSHOT_KEY"
_MODE = 0o644  # it is meant to be shared, and has no secrets


class WrittenSnapshot(Struct, frozen=True):
    """The result of `write_snapshot`.

    objects     number of objects
    incomplete  kinds whose list is incomplete, with the reason
    """

    objects: int
    is_signed: bool
    incomplete: Mapping[str, str]


class OfflineWorkspace(Struct, frozen=True):
    """A project whose account is a snapshot file.

    age          seconds since the snapshot was taken
    is_verified  whether the signature was verified with the project's public key
    unread       sources of secrets that are neither in the environment nor in the file
    """

    project: OpenProject
    snapshot_file: SnapshotFile
    age: float
    is_verified: bool
    unread: tuple[str, ...]


def read_signing_key(environ: Mapping[str, str]) -> Secret | None:
    """The private key that signs snapshots, or None. Raises InvalidProject if it is not a valid key."""
    text = environ.get(KEY)
    if not text:
        return None
    key = Secret(text, f"env:{KEY}")
    with invalid_project():
        snapshots.check_private_key(key)
    return key


async def write_snapshot(
    project: OpenProject, file: Path, key: Secret | None, *, on_event: OnEvent = ignore_event
) -> WrittenSnapshot:
    """Takes a snapshot and writes it, redacted and signed with `key` if there is one."""
    found = await project.take_snapshot(on_event=on_event)
    planned = kinds.list_planned()
    taken = SnapshotFile(
        redaction.redact_snapshot(found, project.manifest, planned),
        project.manifest.stack,
        project.account.base_url,
        project.config.account,
        project.runtime.now(),
        project.options.commit,
        redaction.seal(project.manifest, found, planned),
    )
    atomic_write.write(file, snapshots.write(taken, key), _MODE)
    return WrittenSnapshot(
        sum(len(listing.objects) for listing in taken.snapshot.listings.values()),
        key is not None,
        {name: found.of(name).why for name in sorted(found.listings) if not found.of(name).complete},
    )


def open_with_snapshot(source: ProjectSource, file: Path, max_age: int) -> OfflineWorkspace:
    """The project for plans from a snapshot file.

    max_age  seconds

    Raises InvalidProject if the snapshot is of another stack or account, or older than `max_age`.
    """
    settings = source.read_settings()
    public_key = settings.snapshots.public_key
    now = source.runtime.now()
    with invalid_project():
        taken = snapshots.read(read_text(file), str(file), public_key)
        snapshots.refuse_stale(taken, str(file), settings.stack, settings.account, now, max_age)
    project, unread = open_offline(source, taken)
    return OfflineWorkspace(project, taken, now - taken.at, public_key is not None, unread)


def plan_offline(project: OpenProject, taken: SnapshotFile, base: str | None = None, file: Path | None = None) -> Plan:
    """The plan for the account of a snapshot file, for review only. `base` as of `Workspace.plan`.

    file  that of the snapshot: its signature is verified with the public key of the base too
    """
    when = format_time(taken.at)
    warning = Problem(
        f"planned from a snapshot of {when}, not from the account",
        "the account may have changed since then",
        severity=Severity.WARNING,
        code="planned-from-snapshot",
    )
    from reconciler.operations.base_plan import attribute_changes
    from reconciler.operations.judging import judge_by_base

    project = judge_by_base(project, base)
    if file is not None:
        _verify_by_base(project, file)
    check_selection(project.options, project.manifest, taken.snapshot, ignore_event)
    plan = project.plan_for(taken.snapshot)
    problems = (warning, *plan.problems)
    plan = replace(plan, problems=problems, snapshot_time=taken.at, created=project.runtime.now())
    judged = project.with_access_tests(project.with_policy_findings(plan, taken.snapshot), taken.snapshot)
    return attribute_changes(project, judged, taken.snapshot)


def _verify_by_base(project: OpenProject, file: Path) -> None:
    """Verifies the signature with the public key of the base, unless its change is approved. Raises InvalidProject."""
    rules = project.base.rules if project.base is not None else None
    key = rules.settings["snapshots.public_key"] if rules is not None else None
    approvals = find_rule_approvals(project.options)
    is_approved = any(approval.granted for approval in approvals if approval.kind == "snapshots.public_key")
    if isinstance(key, str) and key != project.config.snapshots.public_key and not is_approved:
        with invalid_project():
            snapshots.read(read_text(file), str(file), key)
