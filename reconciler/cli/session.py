"""What the commands that meet a platform have in common: the project is loaded, its memory opened, the account looked
at, and a plan made. Reading commands get a client that cannot send anything but GET.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.origin import Origin
from reconciler.cli import belonging, judging, selection
from reconciler.cli.terminal import exit_codes, output, signals
from reconciler.cli.terminal.options import Options
from reconciler.cli.terminal.wait_notices import Reading, same_reason
from reconciler.engine.observe import ById, observe
from reconciler.engine.ports import Reader
from reconciler.model.address import Address
from reconciler.model.kind import Home, Kind
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Issued, Listing, Snapshot, Target
from reconciler.model.value import Sealed, Secret, secrets_in
from reconciler.planning import planner
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.planner import Policy
from reconciler.project.manifests import load as manifests
from reconciler.project.manifests.load import Loaded
from reconciler.project.settings import config, variables
from reconciler.project.settings.config import Config
from reconciler.store.errors import MEMORY

if TYPE_CHECKING:
    from reconciler.cli.planfile import PlanFile
    from reconciler.cli.terminal.telemetry import Telemetry
    from reconciler.model.history import Look, Run
    from reconciler.rendering.wire.snapshot_json import Taken
    from reconciler.store.store import Past, Store

T = TypeVar("T")
_GIT_TIMEOUT = 5.0  # seconds


@dataclass(frozen=True)
class Session:
    """A project, what it declares, and what the user allows. A destroying session declares nothing."""

    config: Config
    manifest: Manifest
    warnings: tuple[Problem, ...]
    policy: Policy
    account: Account
    parallelism: int
    quiet: bool = False

    @property
    def home(self) -> str:
        """The account that this session is about, in a few words."""
        return belonging.account_of(self.account.base_url, self.config.account)

    def plan(self, snapshot: Snapshot) -> Plan:
        made = planner.plan(self.manifest, snapshot, kinds.planned(), self.policy)
        if (observer := _observer()) is not None:
            observer.planned(made)
        return replace(made, problems=(*self.warnings, *made.problems), account=self.home)

    async def look(
        self, reader: Reader, store: Store | None, *, only: frozenset[str] | None = None, by_id: ById | None = None
    ) -> Snapshot:
        """One look at the account: at every kind, since what we own may be of any, or only at these."""
        stack = self.manifest.stack
        bindings = await store.bindings(stack) if store else {}
        snapshot = await observe(
            reader,
            [kind for kind in self._concerned(bindings, only or ()) if only is None or kind.name in only],
            bindings=bindings,
            receipts=await store.receipts(stack) if store else frozenset(),
            by_id=_named_by_id(self.manifest) if by_id is None else by_id,
            expected=self.manifest.declarations,
            concurrency=self.parallelism,
        )
        _refuse_blindness(snapshot, self.account.base_url)
        membership = await store.membership(stack) if store else None
        unmarked = [kind.name for kind in kinds.every() if not kind.keeps_owner]
        secretive = [kind.name for kind in kinds.every() if kind.one_time]
        doubt = belonging.doubt(membership, self.home, stack, snapshot)
        return replace(
            snapshot,
            targets=await self._targets(snapshot, await store.issued(stack, secretive) if store else ()),
            undelivered=await store.undelivered(stack, secretive) if store else frozenset(),
            overwritten=await store.overwritten(stack) if store else {},
            doubt=doubt,
            elsewhere=await store.bound_elsewhere(stack, unmarked) if store else {},
            is_remembered=membership is not None and not doubt,
        )

    async def _targets(self, snapshot: Snapshot, issued: Sequence[Issued]) -> Mapping[Address, Target]:
        """What is known of the files that declared secrets are delivered to."""
        declared = delivery_targets.declared(self.manifest, kinds.planned())
        if not declared:
            return {}
        from reconciler.project.secrets import sinks

        root = self.config.root
        place, is_there = partial(sinks.place, root), partial(sinks.is_there, root)
        return await asyncio.to_thread(
            delivery_targets.targets, self.manifest, snapshot, declared, issued, place, is_there
        )

    def _concerned(self, bindings: Iterable[Address], named: Iterable[str]) -> Iterator[Kind]:
        """Every kind of the platform, one of two that share their objects. Of an agent, which few projects have, and of
        such a second kind, those that are or were declared."""
        ours = {*named, *(address.kind for address in (*self.manifest.declarations, *bindings))}
        return (kind for kind in kinds.planned() if _is_looked_at(kind) or kind.name in ours)


def _is_looked_at(kind: Kind) -> bool:
    return kind.home is Home.PLATFORM and kind.same_as is None


def opened(options: Options, *, destroy: bool = False) -> Session:
    """The session that the flags and the project file ask for; Rejected tells all that is wrong."""
    project = config.load(options.project, os.environ, options.environment)
    if destroy:
        variables.check_names(project.settings, options.variables)
        return _session(project, options, Loaded(Manifest(project.stack, {})), destroy=True)
    return _session(project, options, manifests.load(project, os.environ, options.variables))


def opened_to_import(options: Options) -> Session:
    """As `opened`, also where the folders of manifests are still to be made: Git keeps no empty ones."""
    project = config.load(options.project, os.environ, options.environment)
    return _session(project, options, manifests.load_with(project, os.environ, options.variables, {}, {}))


def opened_offline(options: Options, project: Config, taken: Taken) -> tuple[Session, tuple[str, ...]]:
    """The session of a plan from a snapshot, without key and network, and the secrets that neither of them has.

    A secret that is not there is the one that was there when the snapshot was taken.
    """
    unread: dict[str, None] = {}

    def absent(source: str, is_secret: bool) -> Secret | None:
        if not is_secret:
            return None
        if source not in taken.secrets:
            unread[source] = None
        return taken.secrets.get(source) or Sealed(source)

    loaded = manifests.load(project, os.environ, options.variables, absent)
    nobody = Secret("", "nowhere")
    project = replace(project, base_url=taken.base_url, account=taken.account, api_key=nobody)
    return _session(project, options, loaded), tuple(unread)


def opened_for(options: Options, file: Path, *, max_age: int | None = None) -> tuple[Session, PlanFile]:
    """The session in which a plan file is carried out, and what is in it. Stop if it is older than `max_age`."""
    from reconciler.cli import planfile

    project = config.load(options.project, os.environ, options.environment)
    home = belonging.account_of(_base_url(project), project.account)
    planned = planfile.read(file, project, home, options.variables)
    plan = planned.plan
    planfile.check_age(planned, max_age, time.time())
    if not planned.is_signed and not options.quiet:
        output.say(planfile.unsigned(file))
    options = replace(options, targets=plan.targets, excludes=plan.excludes)
    # Manifests that say something else by now have no say in this.
    loaded = planned.loaded if planned.loaded and planned.is_of_these_manifests else None
    return _session(project, options, loaded or Loaded(Manifest(project.stack, {}))), planned


def _session(project: Config, options: Options, loaded: Loaded, *, destroy: bool = False) -> Session:
    manifest, warnings = loaded.manifest, loaded.warnings
    parallelism = options.parallelism or project.limits.concurrency
    account = _account(project, parallelism, secrets_of(manifest))
    policy = Policy(
        allow=options.allow,
        adopt=options.adopt,
        destroy=destroy,
        targets=options.targets,
        excludes=options.excludes,
        max_delete_percent=project.guards.max_delete_percent,
        max_update_percent=project.guards.max_update_percent,
        requests_per_minute=account.budget,
        commit=_commit(project),
        now=time.time(),
    )
    policy = replace(policy, to_replace=selection.to_replace(options.to_replace, manifest, policy))
    return Session(project, manifest, warnings, policy, account, parallelism, options.quiet)


async def planned(session: Session) -> Plan:
    """The plan of this moment, read with a client that cannot write."""
    snapshot = await seen(session)
    selection.check(session.policy, session.manifest, snapshot)
    return session.plan(snapshot)


def _observer() -> Telemetry | None:
    """Who listens to this run; the module is loaded only where somebody does."""
    module = sys.modules.get("reconciler.cli.terminal.telemetry")
    return module.active() if module is not None else None


async def seen(session: Session, *, only: frozenset[str] | None = None) -> Snapshot:
    """The account at this moment, or these kinds of it, read with a client that cannot write."""
    from reconciler.api.platform import reading

    told = Reading(session.quiet)
    opening = reading(session.account, on_wait=told.waited, on_retry=told.retried)
    async with remembered(session.config) as store, opening as reader:
        return await session.look(reader, store, only=only)


async def listed(session: Session, kind: Kind) -> Listing:
    """The objects of one kind, which need not be one that manifests declare."""
    from reconciler.api.platform import reading

    told = Reading(session.quiet)
    async with reading(session.account, on_wait=told.waited, on_retry=told.retried) as reader:
        snapshot = await observe(reader, [kind], concurrency=session.parallelism)
    return snapshot.of(kind.name)


async def surveyed(session: Session) -> tuple[Snapshot, Snapshot]:
    """As `seen`, and beside it what can only be read."""
    from reconciler.api.platform import reading
    from reconciler.kinds import read_only

    told = Reading(session.quiet)
    opening = reading(session.account, on_wait=told.waited, on_retry=told.retried)
    async with remembered(session.config) as store, opening as reader:
        snapshot = await session.look(reader, store)
        return snapshot, await observe(reader, read_only.KINDS, concurrency=session.parallelism)


async def past(project: Config, limit: int) -> Sequence[Past]:
    """How the calls of earlier runs ended, the latest first."""
    async with remembered(project) as memory:
        return await memory.history(project.stack, limit=limit) if memory else ()


async def chronicled(project: Config, since: float) -> tuple[Sequence[Look], Sequence[Run]]:
    """Recorded looks and runs, oldest first."""
    async with remembered(project) as memory:
        if memory is None:
            return (), ()
        chronicle = memory.chronicle
        return await chronicle.looks(project.stack, since), await chronicle.runs(project.stack, since)


async def record(session: Session, look: Look) -> None:
    """Keep what a look found, in the store; which is made if there is none."""
    from reconciler.store import store

    async with store.opened(store_of(session.config)) as memory:
        await memory.chronicle.record(session.manifest.stack, look)


@asynccontextmanager
async def remembered(project: Config) -> AsyncIterator[Store | None]:
    """The store if there is one yet: a command that only reads makes none."""
    where = store_of(project)
    if where == MEMORY or ("://" not in where and not (_is_there(where) or _is_there(f"{where}-wal"))):
        yield None
        return
    from reconciler.store import store  # and with it SQLAlchemy, 100 ms

    async with store.opened(where) as memory:
        yield memory


def _is_there(path: str) -> bool:
    """Also if it may not be looked at: then opening it says so, and nothing is planned without what is in it."""
    try:
        os.stat(path)  # noqa: PTH116 - a path of the store's
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def store_of(project: Config) -> str:
    """The store's path or URL."""
    where = project.store or config.DEFAULT_STORE
    return where if "://" in where or where == MEMORY else str(project.root / where)


def run(work: Coroutine[Any, Any, T]) -> T:
    """The one event loop of a command."""
    try:
        return asyncio.run(_stoppable(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _stoppable(work: Coroutine[Any, Any, T]) -> T:
    signals.cancel()
    return await work


def exit_of(plan: Plan, *, changes: int = exit_codes.DONE) -> int:
    """What showing a plan ends with; `changes` where that is not the same as none."""
    if plan.blocking:
        return judging.code(plan.blocking)
    return exit_codes.DONE if plan.is_empty else changes


def tell_problems(plan: Plan) -> None:
    """On standard error, for readers who keep the plan in a file: how many there are, and the codes of warnings."""
    if plan.problems:
        named = sorted({each.code for each in plan.problems if not each.is_error and each.code})
        output.say(output.tally(plan.problems) + (f": {', '.join(named)}" if named else ""))


def secrets_of(manifest: Manifest) -> tuple[Secret, ...]:
    """Every secret that is declared."""
    return tuple(each for declaration in manifest.declarations.values() for each in secrets_in(declaration.spec))


def _account(project: Config, parallelism: int, secrets: tuple[Secret, ...]) -> Account:
    base_url, (_, key) = _base_url(project), project.connection()
    return Account(
        base_url,
        key,
        profile=project.profile,
        requests_per_minute=project.limits.requests_per_minute,
        connections=parallelism,
        secrets=secrets,
        ledger=_ledger(project),
        agent=project.agent_url,
        observer=_observer(),
    )


def _base_url(project: Config) -> str:
    base_url, _ = project.connection()
    try:
        Origin.parse(base_url)
    except ValueError as error:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: platform.base_url: {error}") from error
    return base_url


def _ledger(project: Config) -> Path | None:
    """Beside the store's file: whoever shares the one shares the account's budget."""
    where = store_of(project)
    return None if "://" in where or where == MEMORY else Path(where).with_name("requests.db")


def _named_by_id(manifest: Manifest) -> ById:
    """Objects that belong to somebody else and of which we manage modules only."""
    named: Mapping[str, list[tuple[str, str | None]]] = defaultdict(list)
    for address, declaration in manifest.declarations.items():
        if declaration.id is None:
            continue
        kind = kinds.get(address.kind)
        if kind.modules_by_id and kind.parent is not None:
            parent = declaration.spec.get(kind.parent.field)
            named[kind.name].append((declaration.id, parent if isinstance(parent, str) else None))
    return named


def _refuse_blindness(snapshot: Snapshot, base_url: str) -> None:
    """If not one list could be had, the platform is the problem, and a problem per kind would bury it."""
    seen = [each for name, each in snapshot.listings.items() if kinds.get(name).home is Home.PLATFORM]
    reasons = {same_reason(listing.why): listing.why for listing in seen}
    if seen and not any(listing.complete for listing in seen):
        if len(reasons) > 1 and not any(listing.is_offered for listing in seen):
            text = f"{base_url} does not lead to the platform's API, of which nothing is there"
            raise exit_codes.Stop(exit_codes.ERROR, f"error: {text}; correct platform.base_url, or RECONCILER_BASE_URL")
        shown = min(reasons.values())
        more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
        raise exit_codes.Stop(exit_codes.ERROR, f"error: nothing could be read from the platform: {shown}{more}")


def _commit(project: Config) -> str:
    """The commit that the manifests are at, for the history only: empty if Git does not tell it in time."""
    git = shutil.which("git")
    if git is None:
        return ""
    try:
        asked = subprocess.run(
            [git, "-C", str(project.root), "rev-parse", "HEAD"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_GIT_TIMEOUT,
            # The environment is full of secrets, the key among them, and this program needs none of it.
            env={name: os.environ[name] for name in ("PATH", "HOME", "GIT_DIR") if name in os.environ},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
