"""Opens a project: with or without manifests, offline, or with a plan file. Sends no request."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler.api.client import Account
from reconciler.api.origin import Origin
from reconciler.model.change import Risk
from reconciler.model.manifest import Manifest
from reconciler.model.value import Secret, UnreadSecret, secrets_in
from reconciler.operations.errors import UnreadableAccount
from reconciler.operations.open_project import OpenProject
from reconciler.operations.opening import account_identity
from reconciler.operations.opening.commits import read_commit
from reconciler.operations.opening.source import ProjectSource, invalid_project
from reconciler.operations.opening.stores import ledger_path
from reconciler.operations.runtime import Runtime
from reconciler.planning.deciding.options import PlanOptions
from reconciler.project.manifests.load import Loaded, load_manifests, load_manifests_with
from reconciler.project.settings.approvals import read_approvals
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import check_names

if TYPE_CHECKING:
    from reconciler.operations.applying.plan_files import PlanFile
    from reconciler.rendering.wire.snapshot_json import SnapshotFile


def open_project(source: ProjectSource, *, partial_if_invalid: bool = False) -> OpenProject:
    """The project with its manifests; raises InvalidProject.

    partial_if_invalid  leave out invalid declarations, if only some are; see `Manifest.unread`
    """
    settings = source.read_settings()
    unread: set[str] = set()

    def assume(name: str, is_secret: bool) -> Secret | None:
        if not is_secret:
            return None
        unread.add(name)
        return UnreadSecret(name)

    with invalid_project():
        environ, variables = source.runtime.environ, source.variables
        absent = assume if source.assumes_secrets else None
        loaded = load_manifests(settings, environ, variables, absent, partial_if_invalid=partial_if_invalid)
        opened = _workspace(source, settings, loaded)
    options = replace(opened.options, unread=frozenset(unread), assumes_secrets=source.assumes_secrets)
    return dataclasses.replace(opened, options=options)


def open_partial_project(source: ProjectSource) -> OpenProject:
    """The project, without its invalid declarations if only some are invalid. Raises InvalidProject."""
    return open_project(source, partial_if_invalid=True)


def open_without_manifests(source: ProjectSource) -> OpenProject:
    """The project without its manifests, which may be invalid, for operations such as `destroy`."""
    settings = source.read_settings()
    with invalid_project():
        check_names(settings.settings, source.variables)
        return _workspace(source, settings, Loaded(Manifest(settings.stack, {})))


def open_to_import(source: ProjectSource) -> OpenProject:
    """The project for an import: the folders of manifests need not exist, since Git stores no empty folders."""
    settings = source.read_settings()
    with invalid_project():
        loaded = load_manifests_with(settings, source.runtime.environ, source.variables, {}, {})
        return _workspace(source, settings, loaded)


def open_offline(source: ProjectSource, snapshot_file: SnapshotFile) -> tuple[OpenProject, tuple[str, ...]]:
    """The project for a plan from a snapshot file, without API key and network, and the sources of secrets that are
    neither in the environment nor in the file: these are assumed to be as last applied.

    A secret that the environment does not have counts as unchanged since the snapshot.
    """
    settings = source.read_settings()
    unread: dict[str, None] = {}

    def absent(name: str, is_secret: bool) -> Secret | None:
        if not is_secret:
            return None
        if name not in snapshot_file.secrets:
            unread[name] = None
        return snapshot_file.secrets.get(name) or UnreadSecret(name)

    with invalid_project():
        environ, variables = source.runtime.environ, source.variables
        loaded = load_manifests(settings, environ, variables, absent, partial_if_invalid=True)
        nobody = Secret("", "nowhere")
        offline = replace(settings, base_url=snapshot_file.base_url, account=snapshot_file.account, api_key=nobody)
        opened = _workspace(source, offline, loaded)
        options = replace(opened.options, unread=frozenset(unread), assumes_secrets=bool(unread))
        return dataclasses.replace(opened, options=options, sealed=snapshot_file.secrets), tuple(unread)


def open_with_plan(source: ProjectSource, file: Path) -> tuple[OpenProject, PlanFile]:
    """The project for applying a plan file, and the file. Raises WrongAccount, UnusablePlan or InvalidProject.

    The manifests may be invalid or changed: the plan is applied as it was reviewed.
    """
    from reconciler.operations.applying import plan_files
    from reconciler.operations.open_project import Selection

    settings = source.read_settings()
    with invalid_project():
        account = account_identity.account_of(_base_url(settings), settings.account)
        planned = plan_files.read(file, settings, account, source.variables, source.runtime.environ)
        loaded = planned.loaded if planned.loaded and planned.is_of_these_manifests else None
        opened = _workspace(source, settings, loaded or Loaded(Manifest(settings.stack, {})))
    plan = planned.plan
    return opened.select(Selection(plan.targets, plan.excludes)), planned


def _workspace(source: ProjectSource, settings: Config, loaded: Loaded) -> OpenProject:
    runtime = source.runtime
    parallelism = source.parallelism or settings.limits.concurrency
    base_url, (_, key) = _base_url(settings), settings.connection()
    account = Account(
        base_url,
        key,
        profile=settings.profile,
        requests_per_minute=settings.limits.requests_per_minute,
        connections=parallelism,
        secrets=_secrets_of(loaded.manifest),
        ledger=ledger_path(settings),
        spent=runtime.requests_spent,
        agent=settings.agent_url,
        observer=runtime.observer,
    )
    options = PlanOptions(
        max_delete_percent=settings.guards.max_delete_percent,
        max_update_percent=settings.guards.max_update_percent,
        require_approval=frozenset(risk for risk in Risk if risk in settings.guards.require_approval),
        approved=read_approvals(settings.root, settings.environment.name if settings.environment else None),
        requests_per_minute=account.budget,
        zones=settings.zones,
        commit=_commit_of(settings, runtime),
        now=runtime.now(),
    )
    return OpenProject(
        settings, loaded.manifest, loaded.warnings, options, account, parallelism, source.variables, runtime
    )


def _commit_of(settings: Config, runtime: Runtime) -> str:
    if runtime.commit is not None:
        return runtime.commit
    return read_commit(settings.root, runtime.environ, runtime.git_timeout)


def _base_url(settings: Config) -> str:
    base_url, _ = settings.connection()
    try:
        Origin.parse(base_url)
    except ValueError as error:
        raise UnreadableAccount(f"platform.base_url: {error}") from error
    return base_url


def _secrets_of(manifest: Manifest) -> tuple[Secret, ...]:
    """Every secret in the specs of declarations that could be read."""
    found = (secret for declaration in manifest.declarations.values() for secret in secrets_in(declaration.spec))
    return tuple(secret for secret in found if not isinstance(secret, UnreadSecret))
