"""Reads the base of a review from Git without a checkout: its rules, and the plan of its manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Base, Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Sealed, Secret, UnreadSecret, Value
from reconciler.operations import access_checks, policy_checks
from reconciler.operations.base_side import BaseSide, Unreadable
from reconciler.operations.opening.base_files import BaseFiles
from reconciler.operations.opening.commits import Commit
from reconciler.operations.project_rules import find_unread, read_rules
from reconciler.planning import planner
from reconciler.planning.attribution import attribute
from reconciler.project.documents.outside import Outside
from reconciler.project.documents.resolve import Absent
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import FILE, Config, load_config

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject


def read_base(project: OpenProject, ref: str) -> BaseSide:
    """The base that `ref` names. Raises UnusableBase.

    Manifests and files come from the commit. Environment variables and files that the commit does not have, which is
    where secrets are, come from here.
    """
    config = project.config
    commit = Commit.resolve(config.root, project.runtime.environ, ref)
    base = Base(ref, commit.id, behind=commit.count_missing())
    with commit.files() as files:
        if files.has_project:
            return _Reader(project, files).read(base)
    if not (others := commit.find_named(FILE)):  # the reviewed commits add the project
        return BaseSide(base, manifest=Manifest(config.stack, {}))
    why = f"the base has no {FILE} in this folder, but {others[0]}"
    unreadable = Unreadable("settings", why, list(others))
    return BaseSide(base, unreadable=(unreadable,), manifest=Manifest(config.stack, {}))


class _Reader(Struct, frozen=True, dict=True):
    """Reads the project of a commit, part by part."""

    project: OpenProject
    files: BaseFiles

    def read(self, base: Base) -> BaseSide:
        """The rules and manifests, as far as they are valid."""
        head = self.project.config
        try:
            settings = self._read_settings()
        except Rejected as rejected:
            unknown = _report("settings", rejected.problems)
            return BaseSide(replace(base, problems=tuple(rejected.problems)), unreadable=(unknown,))
        unreadable: list[Unreadable] = []
        problems = _check_account(settings, head)
        policies: policy_checks.Rules = ()
        try:
            self.files.add(*settings.policies)
            policies = policy_checks.load_rules(settings)
        except Rejected as rejected:
            unreadable.append(_report("policies", rejected.problems))
        tests: access_checks.Tests = ()
        try:
            self.files.add(*access_checks.PLACES)
            tests = access_checks.load_tests(settings)
        except Rejected as rejected:
            unreadable.append(_report("access-tests", rejected.problems))
        manifest = None
        try:
            manifest = self._read_manifest(settings)
        except Rejected as rejected:
            unreadable.append(_report("manifests", rejected.problems))
            problems += rejected.problems
        rules = read_rules(settings, policies, manifest or Manifest(settings.stack, {}), tests)
        return BaseSide(replace(base, problems=tuple(problems)), rules, tuple(unreadable), manifest)

    def _read_settings(self) -> Config:
        environment = self.project.config.environment
        name = environment.name if environment is not None else None
        settings = load_config(self.files.root, self._environ, name, self._absent)
        if unread := list(find_unread(settings)):
            raise Rejected(unread)
        return settings

    def _read_manifest(self, settings: Config) -> Manifest:
        self.files.add(*settings.manifests)
        self.files.add_components(*settings.components)
        settings = replace(settings, repository=self.files.repository)
        return load_manifests(settings, self._environ, self.project.variables, self._absent).manifest

    @property
    def _environ(self) -> Mapping[str, str]:
        """The environment, without the secrets that plans may not read."""
        unread = {source.removeprefix("env:") for source in self.project.options.unread}
        return {name: text for name, text in self.project.runtime.environ.items() if name not in unread}

    @cached_property
    def _absent(self) -> Absent:
        read_here = _read_from(self.project)

        def read_missing(source: str, is_secret: bool) -> Value | None:
            word, _, path = source.partition(":")
            return None if word == "file" and self.files.has(path) else read_here(source, is_secret)

        return read_missing


def attribute_changes(project: OpenProject, plan: Plan, snapshot: Snapshot) -> Plan:
    """The plan with the cause of each change: commits since the base, earlier commits, or the platform.

    The plan itself without a base. Without causes if the base cannot be planned.
    """
    side = project.base
    if side is None:
        return plan
    if side.base.behind or side.base.problems or side.manifest is None:
        return replace(plan, base=side.base)
    options = replace(
        project.options,  # without those of the branch
        to_replace=frozenset(),
        rule_changes=None,
        find_lost_rules=None,
        adopting=None,
        base_sources={},
    )
    return attribute(plan, planner.plan(side.manifest, snapshot, kinds.list_planned(), options), side.base)


def _read_from(project: OpenProject) -> Absent:
    """Reads what the commit does not have: secrets, and files that Git does not keep.

    A secret that nothing here has, for example of a resource that the branch removes, counts as unchanged.
    """
    here = Outside(project.config.root, project.runtime.environ)
    secrets = {**project.sealed, **{secret.source: secret for secret in project.account.secrets}}

    def read_here(source: str, is_secret: bool) -> Value | None:
        if is_secret and source in project.options.unread:
            return UnreadSecret(source)
        if is_secret and source in secrets:
            return secrets[source]  # of a plan from a snapshot file it may be known by its digest only
        word, _, path = source.partition(":")
        if is_secret and (word != "file" or not here.has("from_file", path, is_secret=True)):
            return UnreadSecret(source) if project.options.assumes_secrets else Sealed(source)
        if word != "file":
            return None
        text = here.read("from_file", path, is_secret=is_secret)
        return Secret(text, source) if is_secret else text

    return read_here


def _report(part: str, problems: Sequence[Problem]) -> Unreadable:
    """The problems without what depends on the machine, such as paths of temporary folders."""
    causes = [[problem.code, problem.subject, str(problem.position or "")] for problem in problems if problem.is_error]
    return Unreadable(part, f"cannot be read: {problems[0]}", causes)


def _check_account(base: Config, head: Config) -> list[Problem]:
    """Why the plan of the base would be about other objects, by what the files of both say."""
    before_file, now_file = base.stated, head.stated
    if before_file is None or now_file is None:
        return []
    return [
        Problem(
            f"{name} is {before or 'not set'} in the base and {now or 'not set'} here",
            "changes cannot be attributed",
            FILE,
            code="different-account",
        )
        for name, before, now in (
            ("stack", before_file.stack, now_file.stack),
            ("platform.base_url", before_file.platform.base_url, now_file.platform.base_url),
            ("platform.account", before_file.platform.account, now_file.platform.account),
        )
        if before != now
    ][:1]
