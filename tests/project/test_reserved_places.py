"""Places to which no secret is delivered: checked with the manifests, and again before a file is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.problem import Rejected
from reconciler.model.value import Secret
from reconciler.project.manifests.load import load_manifests, own_places
from reconciler.project.secrets.sinks import ProjectSinks
from reconciler.project.settings.config import Config, load_config

TOKEN = Secret("canary-token", "test")
GIT, CI = "it belongs to Git's own data", "it is part of the CI configuration"
RESERVED = {
    ".git/hooks/post-checkout": GIT,
    ".GIT/hooks/post-checkout": GIT,
    ".git./config": GIT,
    ".g\u200cit/config": GIT,
    "GIT~1/config": GIT,
    "vendor/lib/.git/config": GIT,
    "vendor/lib/.git": GIT,
    ".github/workflows/release.yml": CI,
    ".GitHub/CODEOWNERS": CI,
    ".circleci/config.yml": CI,
    ".gitlab/ci/build.yml": CI,
    ".gitlab-ci.yml": CI,
    "sub/.GitLab-CI.yaml": CI,
    "Jenkinsfile": CI,
    "deploy/jenkinsfile.release": CI,
    "azure-pipelines.yml": CI,
    "bitbucket-pipelines.yml": CI,
    ".travis.yml": CI,
    ".drone.yml": CI,
    "reconciler.yaml": "it belongs to the project's settings",
    "Reconciler.YAML": "it belongs to the project's settings",
    "manifests/new.yaml": "it belongs to the project's manifests",
    "environments/prod.yaml": "it belongs to the project's environments",
    "policies/all.yaml": "it belongs to the project's policies",
    "state/reconciler.db": "it belongs to the project's store",
}
FREE = ["secrets/git", "secrets/.env", ".gitignored/token", "secrets/jenkins", "github/token", "secrets/ci.yml"]


def project(root: Path, target: str) -> Config:
    (root / "manifests").mkdir(exist_ok=True)
    (root / "reconciler.yaml").write_text("stack: prod\n", encoding="utf-8")
    document = f"kind: TunnelCredential\nname: a\ndeliver: {{token: {{to_file: {json.dumps(target)}}}}}\n"
    (root / "manifests/a.yaml").write_text(document, encoding="utf-8")
    return load_config(root, {})


@pytest.mark.parametrize(("target", "use"), RESERVED.items())
async def test_a_reserved_place_is_refused_in_manifests_and_when_it_is_written(
    tmp_path: Path, target: str, use: str
) -> None:
    read = project(tmp_path, target)
    with pytest.raises(Rejected) as rejected:
        load_manifests(read, {})
    (problem,) = (problem for problem in rejected.value.problems if problem.is_error)
    assert problem.code == "reserved-delivery-target"
    assert problem.text == f"delivered to {target}, which is reserved: {use}"
    sinks = ProjectSinks(tmp_path, lambda: own_places(read))
    before = sorted(tmp_path.rglob("*"))
    for act in (sinks.check(Delivery("to_file", target)), sinks.deliver(Delivery("to_file", target), TOKEN)):
        with pytest.raises(Undeliverable, match="reserved: it "):
            await act
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("target", FREE)
async def test_other_places_are_not_reserved(tmp_path: Path, target: str) -> None:
    read = project(tmp_path, target)
    assert load_manifests(read, {}).manifest.declarations
    await ProjectSinks(tmp_path, lambda: own_places(read)).deliver(Delivery("to_file", target), TOKEN)
    assert (tmp_path / target).read_text(encoding="utf-8") == "canary-token"


async def test_another_name_of_an_own_file_is_refused_when_it_is_written(tmp_path: Path) -> None:
    read = project(tmp_path, "secrets/token")
    (tmp_path / "common").mkdir()
    (tmp_path / "common/all.yaml").write_text("", encoding="utf-8")
    (tmp_path / "manifests/linked.yaml").symlink_to("../common/all.yaml")
    os.link(tmp_path / "reconciler.yaml", tmp_path / "second-name")
    sinks = ProjectSinks(tmp_path, lambda: own_places(read))
    for target in ("common/all.yaml", "second-name"):
        with pytest.raises(Undeliverable, match="it belongs to the project's"):
            await sinks.deliver(Delivery("to_file", target), TOKEN)
    assert (tmp_path / "common/all.yaml").read_text(encoding="utf-8") == ""


def test_a_link_into_git_is_reported_with_the_manifests(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "secrets").symlink_to(".git/hooks")
    with pytest.raises(Rejected, match="delivered to secrets/token, which is reserved: it belongs to Git's own data"):
        load_manifests(project(tmp_path, "secrets/token"), {})


def test_a_project_within_a_reserved_folder_delivers_no_file_to_it(tmp_path: Path) -> None:
    root = tmp_path / ".github/infra"
    root.mkdir(parents=True)
    with pytest.raises(Rejected, match="part of the CI configuration"):
        load_manifests(project(root, "secrets/token"), {})
