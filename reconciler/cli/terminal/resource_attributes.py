"""What a run is about, as attributes of its OpenTelemetry resource: stack, account, environment, commit, pipeline.

The names are those of OpenTelemetry's semantic conventions where these have one. What is unknown is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.model.problem import Rejected
from reconciler.operations.opening.account_identity import account_of
from reconciler.operations.opening.commits import read_commit
from reconciler.rendering.terminal_text import sanitize

if TYPE_CHECKING:
    from reconciler.operations.opening.source import ProjectSource
    from reconciler.operations.runtime import Runtime

Attributes = Mapping[str, str]

_PER_RUN = ("vcs.ref.", "vcs.change.", "cicd.pipeline.run.")
_PULL = re.compile(r"refs/pull/([0-9]+)/(merge|head)")


def describe_project(source: ProjectSource) -> dict[str, str]:
    """Of a run of a project. Settings that cannot be read are left out: the command reports why."""
    found = _describe_place(source.path, source.runtime)
    try:
        settings = source.read_settings()
        found["reconciler.stack"] = settings.stack
        found["deployment.environment.name"] = settings.environment.name if settings.environment else ""
        found["reconciler.account"] = account_of(settings.base_url, settings.account) if settings.base_url else ""
    except (Rejected, OSError, ValueError):
        pass
    return _clean(found)


def describe_fleet(name: str, folder: Path, runtime: Runtime) -> dict[str, str]:
    """Of a run over a fleet, whose members are attributes of its spans."""
    return _clean({"reconciler.fleet": name, **_describe_place(folder, runtime)})


def of_metrics(attributes: Attributes) -> dict[str, str]:
    """The attributes that stay the same from run to run: with the others, each run would begin new time series."""
    return {name: value for name, value in attributes.items() if not name.startswith(_PER_RUN)}


def _describe_place(folder: Path, runtime: Runtime) -> dict[str, str]:
    """The commit and the pipeline."""
    commit = runtime.commit
    if commit is None:
        commit = read_commit(folder, runtime.environ, runtime.git_timeout)
    return {"vcs.ref.head.revision": commit, **_describe_pipeline(runtime.environ)}


def _describe_pipeline(variables: Mapping[str, str]) -> dict[str, str]:
    """What GitHub Actions and GitLab CI tell each job."""
    if variables.get("GITHUB_ACTIONS") and (repository := variables.get("GITHUB_REPOSITORY")):
        site = f"{variables.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
        run = variables.get("GITHUB_RUN_ID", "")
        pull = _PULL.fullmatch(variables.get("GITHUB_REF", ""))
        return {
            "vcs.repository.url.full": site,
            "vcs.ref.head.name": variables.get("GITHUB_HEAD_REF") or variables.get("GITHUB_REF_NAME", ""),
            "vcs.change.id": pull[1] if pull else "",
            "cicd.pipeline.name": variables.get("GITHUB_WORKFLOW", ""),
            "cicd.pipeline.run.id": run,
            "cicd.pipeline.run.url.full": f"{site}/actions/runs/{run}" if run else "",
        }
    if variables.get("GITLAB_CI") and (site := variables.get("CI_PROJECT_URL", "")):
        branch = variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or variables.get("CI_COMMIT_REF_NAME", "")
        return {
            "vcs.repository.url.full": site,
            "vcs.ref.head.name": branch,
            "vcs.change.id": variables.get("CI_MERGE_REQUEST_IID", ""),
            "cicd.pipeline.name": variables.get("CI_PIPELINE_NAME", ""),
            "cicd.pipeline.run.id": variables.get("CI_PIPELINE_ID", ""),
            "cicd.pipeline.run.url.full": variables.get("CI_PIPELINE_URL", ""),
        }
    return {}


def _clean(attributes: Attributes) -> dict[str, str]:
    return {name: sanitize(value) for name, value in attributes.items() if value}
