"""Compares a plan with that of a base commit, read from Git without a checkout, for the same snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Base, Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Secret, Value
from reconciler.operations.opening.commits import Commit
from reconciler.planning import planner
from reconciler.planning.attribution import attribute
from reconciler.project.documents.outside import Outside
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import FILE, Config, load_config

if TYPE_CHECKING:
    from reconciler.operations.workspace import Workspace


def compare_with_base(workspace: Workspace, plan: Plan, snapshot: Snapshot, ref: str) -> Plan:
    """The plan with the cause of each change, if the commit `ref` can be planned. Raises UnusableBase.

    Manifests and files come from the commit. Environment variables and files that the commit does not have, which is
    where secrets are, come from here.
    """
    environ = workspace.runtime.environ
    commit = Commit.resolve(workspace.config.root, environ, ref)
    base = Base(ref, commit.id, behind=commit.count_missing())
    if base.behind:
        return replace(plan, base=base)
    try:
        manifest = _load_manifest(workspace, commit)
    except Rejected as rejected:
        return replace(plan, base=replace(base, problems=tuple(rejected.problems)))
    options = replace(workspace.options, to_replace=frozenset())
    return attribute(plan, planner.plan(manifest, snapshot, kinds.list_planned(), options), base)


def _load_manifest(workspace: Workspace, commit: Commit) -> Manifest:
    config, environ = workspace.config, workspace.runtime.environ
    here = Outside(config.root, environ)
    secrets = {secret.source: secret for secret in workspace.account.secrets}

    def read_here(source: str, is_secret: bool) -> Value | None:
        if is_secret and source in secrets:
            return secrets[source]  # of a plan from a snapshot file it may be known by its digest only
        word, _, path = source.partition(":")
        if word != "file":
            return None
        text = here.read("from_file", path, is_secret=is_secret)
        return Secret(text, source) if is_secret else text

    with commit.files() as base:
        if not base.has_project:
            return Manifest(config.stack, {})  # the reviewed commits add the project

        def read_missing(source: str, is_secret: bool) -> Value | None:
            word, _, path = source.partition(":")
            return None if word == "file" and base.has(path) else read_here(source, is_secret)

        environment = config.environment.name if config.environment is not None else None
        settings = load_config(base.root, environ, environment, read_missing)
        _check_account(settings, config)
        base.add(*settings.manifests, *settings.policies)
        return load_manifests(settings, environ, workspace.variables, read_missing).manifest


def _check_account(base: Config, head: Config) -> None:
    """Refuses a base whose plan would be about other objects."""
    for name, before, now in (
        ("stack", base.stack, head.stack),
        ("platform.base_url", base.base_url, head.base_url),
        ("platform.account", base.account, head.account),
    ):
        if before != now:
            text = f"{name} is {before or 'not set'} in the base and {now or 'not set'} here"
            raise Rejected([Problem(text, "changes cannot be attributed", FILE, code="different-account")])
