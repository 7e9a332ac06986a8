"""The law of import: for a random account, import → plan --adopt → apply → plan is empty, and no field changes.

Beside it: the same text whatever order the platform lists in, no secret in it, and nothing left for a second import.
The sandbox is real, behind a real socket; the steps of the commands are taken one by one, so that two hundred accounts
are quick. The commands themselves are run in `end_to_end.test_import`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.api.clock import MachineClock, MachineRandom
from reconciler.api.platform import open_platform, open_reader
from reconciler.engine.apply import apply
from reconciler.model.change import Action
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.operations.authoring import import_proposal
from reconciler.operations.open_project import OpenProject
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.project_openers import open_to_import
from tests.harness.engine import MemoryJournal, MemorySinks
from tests.harness.platform import KEY, Sandbox
from tests.harness.tiers import QUICK_EXAMPLES, only_if
from tests.laws.accounts import SECRET, Filled, template_of
from tests.sandbox.account import BODIES

ACCOUNTS = 200
CHUNK = 10
SECRETS = (SECRET, "PRIVATE KEY", "EntityDescriptor")
# The owner record and who wrote it, and what the platform is about meanwhile.
MOVING = frozenset(
    {"metadata", "updated_at", "last_updated_by", "certificate_management_status", "certificate", "routes"}
)


@dataclass
class Journey:
    """One account, from its first sight to the plan after it was taken over."""

    root: Path
    opened: OpenProject
    journal: MemoryJournal

    @classmethod
    def begin(cls, root: Path) -> Journey:
        root.mkdir()
        (root / "reconciler.yaml").write_text("version: 1\nstack: prod\nlimits: {requests_per_minute: 100000}\n")
        return cls(root, open_to_import(ProjectSource(root)), MemoryJournal())

    async def look(self) -> Snapshot:
        async with open_reader(self.opened.account) as reader:
            return await self.opened.account_reading.read(reader, None)

    def propose(self, snapshot: Snapshot) -> Mapping[str, str]:
        """What import would write."""
        found = import_proposal.propose(self.opened, snapshot, folder="manifests", selects=lambda address, *_: True)
        assert [left_out for left_out in found.left_out if left_out.wrong] == []
        return found.files

    def write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())

    def reopen(self) -> None:
        self.opened = open_to_import(ProjectSource(self.root)).select(adopt=True)

    async def take_over(self, plan: Plan) -> None:
        async with open_platform(self.opened.account) as platform:
            events = apply(
                plan,
                kinds=kinds.every(),
                platform=platform,
                journal=self.journal,
                clock=MachineClock(),
                random=MachineRandom(),
                sinks=MemorySinks(),
                stop=asyncio.Event(),
                concurrency=8,
            )
            ended = [event async for event in events if isinstance(event, Ended)]
        assert {event.outcome for event in ended} <= {Outcome.DONE}
        assert len(ended) == len(plan.calls)


@pytest.fixture
def at_sandbox(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    monkeypatch.setenv("RECONCILER_BASE_URL", sandbox.base_url)
    monkeypatch.setenv("RECONCILER_API_KEY", KEY)
    return sandbox


def test_random_accounts_contain_objects_of_each_kind() -> None:
    assert [kind.name for kind in kinds.every() if template_of(kind) not in BODIES] == []


@pytest.mark.parametrize("chunk", only_if(lambda chunk: chunk < QUICK_EXAMPLES // CHUNK, range(ACCOUNTS // CHUNK)))
def test_imported_objects_are_adopted_without_a_change_of_any_field(
    at_sandbox: Sandbox, tmp_path: Path, chunk: int
) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        at_sandbox.reset()
        Filled(at_sandbox, seed)
        try:
            asyncio.run(_law(Journey.begin(tmp_path / str(seed))))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


async def _law(journey: Journey) -> None:
    before = await journey.look()
    files = journey.propose(before)
    assert files == journey.propose(_shuffle(before))
    assert not any(secret in text for text in files.values() for secret in SECRETS)
    journey.write(files)
    journey.reopen()
    plan = journey.opened.plan_for(before)
    assert [str(problem) for problem in plan.problems] == []
    assert plan.missing_approvals == ()
    assert [(str(change.address), change.action, change.fields) for change in plan.changes] == [
        (str(change.address), Action.ADOPT, ()) for change in plan.changes
    ]
    await journey.take_over(plan)
    after = replace(await journey.look(), bindings={a: b for a, b in plan.bindings.items() if b is not None})
    again = journey.opened.plan_for(after)
    assert (again.changes, again.calls, again.problems) == ((), (), ())
    assert _fields(after) == _fields(before)
    assert journey.propose(after) == {}


def _shuffle(snapshot: Snapshot) -> Snapshot:
    listings = {name: replace(listing, objects=listing.objects[::-1]) for name, listing in snapshot.listings.items()}
    return replace(snapshot, listings=dict(reversed(listings.items())))


def _fields(snapshot: Snapshot) -> list[tuple[str, str, object]]:
    """What every object holds, in its user's eyes."""
    return sorted(
        (name, live.locator, str({**_rest(live.body), "metadata": live.metadata}))
        for name, listing in snapshot.listings.items()
        for live in listing.objects
        if live.body.get("issued_at") is None
    )


def _rest(body: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in sorted(body.items()) if key not in MOVING}
