"""The attributes of a run from the variables of pipelines, as OpenTelemetry's semantic conventions name them."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.attributes import cicd_attributes, deployment_attributes, vcs_attributes

from reconciler.cli.terminal import resource_attributes
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.runtime import Runtime

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "octo/infra",
    "GITHUB_REF": "refs/pull/12/merge",
    "GITHUB_HEAD_REF": "topic",
    "GITHUB_REF_NAME": "12/merge",
    "GITHUB_RUN_ID": "700",
    "GITHUB_WORKFLOW": "plan",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_URL": "https://gitlab.com/octo/infra",
    "CI_REPOSITORY_URL": "https://gitlab-ci-token:hunter2@gitlab.com/octo/infra.git",
    "CI_COMMIT_REF_NAME": "main",
    "CI_PIPELINE_ID": "700",
    "CI_PIPELINE_URL": "https://gitlab.com/octo/infra/-/pipelines/700",
}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            GITHUB,
            {
                "vcs.repository.url.full": "https://github.com/octo/infra",
                "vcs.ref.head.name": "topic",
                "vcs.change.id": "12",
                "cicd.pipeline.name": "plan",
                "cicd.pipeline.run.id": "700",
                "cicd.pipeline.run.url.full": "https://github.com/octo/infra/actions/runs/700",
            },
        ),
        (
            GITLAB,
            {
                "vcs.repository.url.full": "https://gitlab.com/octo/infra",
                "vcs.ref.head.name": "main",
                "cicd.pipeline.run.id": "700",
                "cicd.pipeline.run.url.full": "https://gitlab.com/octo/infra/-/pipelines/700",
            },
        ),
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, {}),
    ],
)
def test_a_pipeline_is_described_in_standard_names(
    tmp_path: Path, variables: dict[str, str], expected: dict[str, str]
) -> None:
    (tmp_path / "reconciler.yaml").write_text("stack: [")  # reported by the command
    runtime = Runtime(environ=variables, commit="0f0f")
    found = resource_attributes.describe_project(ProjectSource(tmp_path, runtime=runtime))
    assert found == {"vcs.ref.head.revision": "0f0f", **expected}
    known = {
        value
        for module in (cicd_attributes, deployment_attributes, vcs_attributes)
        for name, value in vars(module).items()
        if name.isupper()
    }
    assert {*found, "deployment.environment.name"} <= known
    assert resource_attributes.of_metrics(found).keys() <= {"vcs.repository.url.full", "cicd.pipeline.name"}


def test_a_fleet_is_described_by_its_name_and_commit(tmp_path: Path) -> None:
    runtime = Runtime(environ={}, commit="0f0f")
    found = resource_attributes.describe_fleet("shops", tmp_path, runtime)
    assert found == {"reconciler.fleet": "shops", "vcs.ref.head.revision": "0f0f"}
    assert resource_attributes.of_metrics(found) == {"reconciler.fleet": "shops"}
