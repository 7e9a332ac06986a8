"""Judges a branch by the rules of its base and by its own: each demand of either, and each exemption of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.canonical import digest_sources
from reconciler.model.manifest import Manifest
from reconciler.operations.base_plan import read_base
from reconciler.operations.open_project import OpenProject
from reconciler.planning.judging import rules as judging
from reconciler.planning.judging.judge import judge
from reconciler.project.settings.project_file import Limits

P = TypeVar("P", bound=OpenProject)


def judge_by_base(project: P, ref: str | None) -> P:
    """The project whose plans the rules of a base judge too: a branch, tag or commit. None: the same project.

    A rule whose change is approved is judged as the branch has it alone. Raises UnusableBase or InvalidProject.
    """
    if ref is None:
        return project
    side, head = read_base(project, ref), project.read_rules()
    unreadable = [judging.report_unreadable(part.part, part.why, part.causes, head) for part in side.unreadable]
    options = project.options
    if options.assumes_secrets and side.manifest is not None:
        options = replace(options, base_sources=_list_sources(side.manifest))
    judgment = judge(options, side.rules, head, unreadable, side.base.ref)
    judged = dataclasses.replace(
        project,
        options=judgment.options,
        base=side,
        base_policies=judgment.policies,
        base_tests=judgment.tests,
    )
    return judged if side.rules is None else _with_limits(judged, judgment.settings)


def _list_sources(manifest: Manifest) -> Mapping[Address, Mapping[str, str]]:
    """Which variables and files the declarations of the base name for their secrets, as digests."""
    return {
        address: digest_sources(kinds.get(address.kind), declaration.spec)
        for address, declaration in manifest.declarations.items()
    }


def _with_limits(project: P, settings: Mapping[str, Any]) -> P:
    limits = Limits(
        requests_per_minute=settings["limits.requests_per_minute"] or None,
        concurrency=settings["limits.concurrency"],
        settle_seconds=settings["limits.settle_seconds"],
    )
    given, parallelism = project.config.limits, project.parallelism
    if limits == given:
        return project
    if parallelism == given.concurrency:  # else the caller chose another number
        parallelism = limits.concurrency
    account = replace(
        project.account, requests_per_minute=settings["limits.requests_per_minute"], connections=parallelism
    )
    return dataclasses.replace(
        project,
        config=replace(project.config, limits=limits),
        account=account,
        parallelism=parallelism,
        options=replace(project.options, requests_per_minute=account.budget),
    )
