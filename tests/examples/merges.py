"""A repository at a code host with a project on the sandbox: requests are planned, merged and applied with real Git and
the commands of the pipelines."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import Struct

from tests.cli.code_hosts import TOKEN
from tests.examples.forge import PROJECT, REPOSITORY, Change, Forge, Run
from tests.harness.git import GIT
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project

PLAN_KEY = "sixteen characters, or more"
SETTINGS = """\
version: 1
stack: prod
limits: {requests_per_minute: 100000}
"""
NOBODY = "0" * 40


class Push(Struct, frozen=True):
    before: str
    after: str
    branch: str = "main"


class Saved(Struct, frozen=True):
    """A repository with its requests and their plans, from which others begin."""

    folder: Path
    requests: Sequence[Change]
    runs: Sequence[Run]


class Repository:
    """`host` is `github` or `gitlab`. `environ` is the environment of every command."""

    def __init__(
        self, host: str, folder: Path, forge: Forge, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.host, self.folder, self.forge, self.sandbox, self.capsys = host, folder, forge, sandbox, capsys
        self.environ: dict[str, str] = {"RECONCILER_PLAN_KEY": PLAN_KEY}
        self.origin = folder / "origin"
        self.origin.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")
        self.pipeline = ".gitlab-ci.yml" if host == "gitlab" else ".github/workflows/apply.yml"
        self.first = self.commit("main", {"reconciler.yaml": SETTINGS, "manifests/.gitkeep": "", self.pipeline: "x\n"})

    def git(self, *words: str, at: Path | None = None) -> str:
        command = [*GIT, "-C", str(at or self.origin), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def find(self, name: str, at: Path | None = None) -> str:
        """The commit of a branch, or of HEAD; empty if there is no such branch. Read from files: Git is asked often."""
        folder = (at or self.origin) / ".git"
        if name == "HEAD":
            text = (folder / name).read_text().strip()
            return self.find(text.removeprefix("ref: refs/heads/"), at) if text.startswith("ref: ") else text
        file = folder / "refs/heads" / name
        return file.read_text().strip() if file.is_file() else ""

    def commit(self, branch: str, files: Mapping[str, str | None], start: str = "main") -> str:
        """Changes files on a branch, which is created if it does not exist; None deletes a file."""
        if self.find(branch):
            self.git("checkout", "--quiet", branch)
        elif branch != "main":
            self.git("checkout", "--quiet", "-b", branch, start)
        for name, text in files.items():
            file = self.origin / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", f"change {branch}")
        return self.find(branch)

    def save(self, folder: Path) -> Saved:
        shutil.copytree(self.origin, folder / "origin")
        shutil.copytree(self.forge.artifacts, folder / "artifacts")
        return Saved(folder, *copy.deepcopy((self.forge.requests, self.forge.runs)))

    def load(self, saved: Saved) -> None:
        shutil.rmtree(self.origin)
        shutil.copytree(saved.folder / "origin", self.origin)
        shutil.copytree(saved.folder / "artifacts", self.forge.artifacts)
        self.forge.requests, self.forge.runs = copy.deepcopy((list(saved.requests), list(saved.runs)))

    def open(self, branch: str, base: str = "main") -> Change:
        return self.forge.open(self.find(branch), base)

    def plan(self, request: Change, *words: str) -> Output:
        """The pipeline of a request: it plans the merge of its head with its base, and uploads the plan."""
        project = self.clone(request.base)
        self.git("merge", "--quiet", "--no-edit", request.head, at=project.root)
        sides = {"base": {"ref": request.base}, "head": {"sha": request.head}}
        event = {"pull_request": {"number": request.number, **sides}}
        project.environ |= self._github(event, "pull_request", self.find("HEAD", project.root))
        if self.host == "gitlab":
            project.environ |= {
                **self._gitlab(request.head),
                "CI_MERGE_REQUEST_IID": str(request.number),
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": request.base,
                "CI_PIPELINE_SOURCE": "merge_request_event",
            }
        run = Run(len(self.forge.runs) + 100, request.head, number=request.number)
        folder = self.forge.artifacts / str(run.id) / "plan"
        folder.mkdir(parents=True)
        result = project(
            *("plan", "--base", f"origin/{request.base}", "--fail-on", "approvals", "--out", str(folder / "plan.json")),
            *("--quiet", *words),
        )
        run.result = "failure" if result.code else "success"
        self.forge.runs.append(run)
        return result

    def merge(self, *requests: Change, how: str = "merge") -> Push:
        """Merges requests into their base with one push, as a merge queue does; returns the push."""
        branch = requests[0].base
        self.git("checkout", "--quiet", branch)
        before = self.find("HEAD")
        for request in requests:
            start = self.find("HEAD")
            getattr(self, f"_{how}")(request)
            request.merge = request.merge or (self.find("HEAD") if self.host == "github" else None)
            request.merged = self.git("rev-list", f"{start}..HEAD").split()
            request.state = "merged"
        return Push(before, self.find("HEAD"), branch)

    def _merge(self, request: Change) -> None:
        self.git("merge", "--quiet", "--no-ff", "--no-edit", request.head)
        request.merge = self.find("HEAD")

    def _squash(self, request: Change) -> None:
        self.git("merge", "--quiet", "--squash", request.head)
        self.git("commit", "--quiet", "--message", f"squashed {request.number}")
        request.squash = self.find("HEAD")

    def _rebase(self, request: Change) -> None:
        base = self.git("merge-base", "HEAD", request.head)
        for commit in reversed(self.git("rev-list", f"{base}..{request.head}").split()):
            self.git("cherry-pick", "--allow-empty", commit)
            self.git("commit", "--quiet", "--amend", "--no-edit", "--allow-empty", "--reset-author")
        if self.host == "gitlab":  # the branch is rebased, then the base is fast-forwarded
            request.head = self.find("HEAD")

    def _forward(self, request: Change) -> None:
        self.git("merge", "--quiet", "--ff-only", request.head)

    def apply(self, push: Push, *words: str, at: str = "") -> Output:
        """The job that runs on a push. `at`: another commit that is checked out."""
        project = self.clone(push.branch)
        self.git("checkout", "--quiet", at or push.after, at=project.root)
        return self.apply_in(project, push, *words)

    def apply_in(self, project: Project, push: Push, *words: str) -> Output:
        event = {"ref": f"refs/heads/{push.branch}", "before": push.before, "after": push.after}
        project.environ |= self._github(event, "push", push.after)
        if self.host == "gitlab":
            project.environ |= {
                **self._gitlab(push.after),
                "CI_COMMIT_BRANCH": push.branch,
                "CI_COMMIT_BEFORE_SHA": push.before,
                "CI_PIPELINE_SOURCE": "push",
            }
        self.sandbox.forget_log()
        result = project("apply", "--reviewed", "-y", "--quiet", *words)
        # No call is sent without a message, even if valid resources are applied beside an invalid manifest.
        assert result.code in (0, 5) or "Applied:" in result.out or self.sandbox.calls() == []
        return result

    def clone(self, branch: str) -> Project:
        """A machine with its own clone."""
        place = self.folder / f"clone{len(list(self.folder.glob('clone*')))}"
        self.git("clone", "--quiet", "--branch", branch, str(self.origin), str(place))
        project = Project(place, self.capsys, environ=dict(self.environ))
        project.use(self.sandbox)
        return project

    def _github(self, event: object, name: str, commit: str) -> dict[str, str]:
        if self.host != "github":
            return {}
        file = self.folder / "event.json"
        file.write_text(json.dumps(event))
        return {
            "GITHUB_API_URL": self.forge.url,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_SHA": commit,
            "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{self.pipeline}@refs/heads/main",
        }

    def _gitlab(self, commit: str) -> dict[str, str]:
        return {
            "CI_API_V4_URL": f"{self.forge.url}/api/v4",
            "CI_PROJECT_ID": PROJECT,
            "GITLAB_TOKEN": TOKEN,
            "CI_COMMIT_SHA": commit,
        }
