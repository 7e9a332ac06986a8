"""A plan and the project that it is of as Markdown, HTML and JSON: what the methods of results return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.model.plan import Plan
from reconciler.operations.opening.plan_key import find_plan_key
from reconciler.rendering.plan.phrases import Flavour

if TYPE_CHECKING:
    from reconciler.model.snapshot import Snapshot
    from reconciler.operations.open_project import OpenProject


def write_plan(plan: Plan, project: OpenProject) -> str:
    """As `plan --format json`: a plan file, signed if the environment has the key."""
    from reconciler.rendering.wire import plan_json

    return plan_json.write_plan(plan, find_plan_key(project.runtime.environ))


def render_plan(plan: Plan, project: OpenProject, flavour: Flavour) -> str:
    """As `plan --format markdown`."""
    from reconciler.rendering.plan import markdown
    from reconciler.rendering.wire import plan_json

    cover = markdown.Cover(
        plan_json.digest(write_plan(plan, project)), project.account.budget, len(project.manifest.declarations)
    )
    return markdown.render_markdown(plan, cover, flavour=flavour)


def render_plan_page(plan: Plan, project: OpenProject, snapshot: Snapshot, flavour: Flavour) -> str:
    """As `plan --format html`."""
    from reconciler.operations.access import list_page_entries
    from reconciler.operations.health import judge_known
    from reconciler.operations.run_context import read_run_context
    from reconciler.rendering.html import plan_page
    from reconciler.rendering.wire import plan_json

    environment = project.config.environment.name if project.config.environment is not None else ""
    return plan_page.render_page(
        plan,
        digest=plan_json.digest(write_plan(plan, project)),
        budget=project.account.budget,
        resources=len(project.manifest.declarations),
        flavour=flavour,
        context=read_run_context(project.runtime.environ, environment=environment, commit=plan.commit),
        entries=list_page_entries(project, snapshot, is_planned=flavour is not Flavour.DRIFT),
        health=judge_known(project, snapshot),
    )
