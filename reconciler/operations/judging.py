"""Judges a branch by the rules of its base and by its own: each demand of either, and each exemption of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from reconciler.operations.base_plan import BaseSide
from reconciler.planning.judging import rules as judging
from reconciler.planning.judging.judge import judge as judge_by
from reconciler.project.settings.project_file import Limits

if TYPE_CHECKING:
    from reconciler.operations.workspace import Workspace


def judge(workspace: Workspace, side: BaseSide) -> Workspace:
    """The workspace whose plans are judged by the base too. Raises InvalidProject.

    A rule whose change is approved is judged as the branch has it alone.
    """
    head = workspace.read_rules()
    unreadable = [judging.report_unreadable(part.part, part.why, part.causes, head) for part in side.unreadable]
    judgment = judge_by(workspace.options, side.rules, head, unreadable, side.base.ref)
    judged = dataclasses.replace(workspace, options=judgment.options, base=side, base_policies=judgment.policies)
    return judged if side.rules is None else _with_limits(judged, judgment.settings)


def _with_limits(workspace: Workspace, settings: Mapping[str, Any]) -> Workspace:
    limits = Limits(
        requests_per_minute=settings["limits.requests_per_minute"] or None,
        concurrency=settings["limits.concurrency"],
        settle_seconds=settings["limits.settle_seconds"],
    )
    given, parallelism = workspace.config.limits, workspace.parallelism
    if limits == given:
        return workspace
    if parallelism == given.concurrency:  # else the caller chose another number
        parallelism = limits.concurrency
    account = replace(
        workspace.account, requests_per_minute=settings["limits.requests_per_minute"], connections=parallelism
    )
    return dataclasses.replace(
        workspace,
        config=replace(workspace.config, limits=limits),
        account=account,
        parallelism=parallelism,
        options=replace(workspace.options, requests_per_minute=account.budget),
    )
