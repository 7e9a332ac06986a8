"""Writes a plan in the chosen formats, for each command that shows one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.cli.terminal import formats, options

if TYPE_CHECKING:
    from reconciler.model.access_entry import AccessEntry
    from reconciler.model.health import HealthRow
    from reconciler.model.plan import Plan
    from reconciler.model.snapshot import Snapshot
    from reconciler.operations.open_project import OpenProject
    from reconciler.rendering.plan.phrases import Flavour, Resources


def show(
    plan: Plan,
    opened: OpenProject,
    common: options.Options,
    chosen: formats.Outputs,
    flavour: Flavour | None = None,
    *,
    snapshot: Snapshot | None = None,
) -> None:
    """Writes a plan in each of the chosen formats, to its file or to standard output.

    snapshot  the account that was planned for, of which pages list every way in
    """
    from reconciler.rendering.plan import phrases

    plan_output = formats.PlanOutput(
        plan,
        "" if all(form == "text" for form, _ in chosen) else _to_json(plan, opened),
        opened.config.root,
        flavour or phrases.Flavour.PLAN,
        budget=opened.account.budget,
        resources=_resources(opened),
        has_color=common.has_color,
        environment=opened.config.environment.name if opened.config.environment is not None else "",
        list_entries=(lambda: _list_entries(opened, snapshot, flavour)) if snapshot is not None else None,
        list_health=(lambda: _list_health(opened, snapshot)) if snapshot is not None else None,
    )
    plan_output.write_outputs(chosen)


def _list_entries(opened: OpenProject, snapshot: Snapshot, flavour: Flavour | None) -> Sequence[AccessEntry]:
    from reconciler.operations.access import list_page_entries
    from reconciler.rendering.plan.phrases import Flavour

    return list_page_entries(opened, snapshot, is_planned=flavour is not Flavour.DRIFT)


def _list_health(opened: OpenProject, snapshot: Snapshot) -> Sequence[HealthRow]:
    from reconciler.operations.health import judge_known

    return judge_known(opened, snapshot)


def _resources(opened: OpenProject) -> Resources:
    from reconciler.model.manifest import Ensure
    from reconciler.rendering.plan import phrases

    declarations, chosen = opened.manifest.declarations, opened.options
    present = [address for address, declared in declarations.items() if declared.ensure is Ensure.PRESENT]
    if not chosen.is_limited:
        return len(present)
    return phrases.Selected(sum(chosen.selects(address) for address in present), of=len(present))


def _to_json(plan: Plan, opened: OpenProject) -> str:
    from reconciler.operations.opening.plan_key import find_plan_key
    from reconciler.rendering.wire import plan_json

    return plan_json.write_plan(plan, find_plan_key(opened.runtime.environ))
