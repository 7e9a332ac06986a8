"""The fleet that a command works on: its file, its store, and where workers find the files."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal import exit_codes, formats, output_files
from reconciler.fleet.places import find_store
from reconciler.model.fleet import Fleet, Member, Run
from reconciler.operations.opening.commits import read_commit
from reconciler.operations.run_context import read_run_context
from reconciler.operations.runtime import Runtime
from reconciler.project.fleets.load import load_fleet
from reconciler.rendering.fleet.rollup import RollUp, build_rollup
from reconciler.store.errors import AmbiguousRun
from reconciler.store.fleets.records import FleetRecords, open_fleet_records

if TYPE_CHECKING:
    from reconciler.fleet.runs import FleetSource


class FleetSession(Struct, frozen=True, dict=True):
    """An opened fleet.

    folder  of the fleet file
    file    name of the fleet file
    store   path or URL of the fleet store
    """

    options: FleetOptions
    folder: Path
    file: str
    fleet: Fleet
    runtime: Runtime
    store: str

    @property
    def actor(self) -> str:
        """Who runs the command, as the CI system names the person."""
        return read_run_context(self.runtime.environ).author

    @cached_property
    def commit(self) -> str:
        """The commit that is checked out where the fleet file is; empty if there is none."""
        return read_commit(self.folder, self.runtime.environ, self.runtime.git_timeout)

    @property
    def has_store(self) -> bool:
        """Whether there is a store; one on a server is not looked for."""
        return "://" in self.store or Path(self.store).exists()

    @asynccontextmanager
    async def open_records(self) -> AsyncIterator[FleetRecords]:
        """Opens the store; creates it if it does not exist."""
        async with open_fleet_records(self.store, now=self.runtime.now) as records:
            yield records

    def require_members(self) -> Sequence[Member]:
        """The selected members. Raises Stop if there is none."""
        found = [member for member in self.fleet.members.values() if member.matches(self.options.selector)]
        if not found:
            chosen = [f"{label}={value}" for label, values in self.options.selector.items() for value in values]
            flags = " ".join(f"--select {shlex.quote(label)}" for label in chosen)
            raise exit_codes.Stop(exit_codes.USAGE, f"error: no member of fleet {self.fleet.name} matches {flags}")
        return found

    def local_source(self) -> FleetSource:
        """The files as they are, for workers of this machine."""
        from reconciler.fleet.runs import FleetSource

        return FleetSource(self.fleet, str(self.folder.resolve()), self.file)

    def source(self) -> FleetSource:
        """Where the workers that the options select find the files of a new run."""
        from reconciler.fleet.runs import FleetSource
        from reconciler.fleet.sources import find_repository

        if not self.options.scheduler:
            return self.local_source()
        found = find_repository(self.folder / self.file, self.options.repository, self.runtime.environ)
        return FleetSource(self.fleet, found.url, found.file, found.commit)

    def source_of(self, run: Run) -> FleetSource:
        """The files of a run that was started before."""
        from reconciler.fleet.checkouts import is_url
        from reconciler.fleet.runs import FleetSource

        return FleetSource(self.fleet, run.source, run.file, run.commit if is_url(run.source) else "")


def open_session(options: FleetOptions) -> FleetSession:
    """Loads the fleet file that the options select. Raises Rejected with every problem."""
    folder, file = options.locate()
    output_files.check_distinct(folder / file, *formats.files_of(options.chosen))
    fleet = load_fleet(folder, file)
    runtime = options.runtime or Runtime()
    return FleetSession(options, folder, file, fleet, runtime, find_store(fleet, folder, runtime.environ))


async def require_run(records: FleetRecords, session: FleetSession, text: str) -> Run:
    """The run with this id, or the newest one. Raises Stop if there is none."""
    try:
        run = await records.find_run(session.fleet.name, text)
    except AmbiguousRun as error:
        raise exit_codes.Stop(exit_codes.USAGE, f"error: {error}") from None
    if run is not None:
        return run
    name = session.fleet.name
    if not text:
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: fleet {name} has no run yet; start one with `reconciler fleet plan`"
        )
    raise exit_codes.Stop(
        exit_codes.USAGE, f"error: fleet {name} has no run {text}; `reconciler fleet status` lists the last runs"
    )


async def roll_up(records: FleetRecords, session: FleetSession, run: Run) -> RollUp:
    """The view of a run as it is now."""
    tasks = await records.tasks(run.id)
    shapes = await records.shapes(run.fleet, {task.shape for task in tasks if task.shape})
    pause = await records.pause_of(run.fleet)
    return build_rollup(session.fleet, run, tasks, shapes, await records.now(), pause)
