"""A project in a Git repository with the pipelines that `init` wrote, and machines with clones of it that run them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.cli.code_hosts import TOKEN
from tests.examples.forge import NUMBER, PROJECT, REPOSITORY, Change, Forge
from tests.examples.workflows import Ran, Runner, read
from tests.harness.git import GIT
from tests.harness.platform import KEY, Sandbox

PLAN_KEY = "sixteen characters, or more"
PACKAGE = "git+https://example.com/reconciler@0f0f0f"


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    forge = Forge(artifacts=tmp_path / "artifacts")
    with forge:
        yield forge


Clone = Callable[..., Runner]


@pytest.fixture
def clone(tmp_path: Path, sandbox: Sandbox, forge: Forge, commands: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """`clone("github")`: a machine of the host with a fresh clone of a project that `init` created."""
    if shutil.which("git") is None:
        pytest.skip("git, which the pipelines need, is not installed")
    monkeypatch.delenv("RECONCILER_API_KEY", raising=False)
    origin = tmp_path / "origin"

    def git(*words: str) -> str:
        done = subprocess.run(
            [*GIT, "-C", str(origin), *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def create(
        host: str,
        package: str = PACKAGE,
        *,
        environments: Sequence[str] = (),
        branch: str = "main",
        onto: str = "",
        commit: bool = True,
    ) -> Runner:
        """
        branch  created if it does not exist, with all uncommitted changes
        onto    a branch that the branch is merged with first, as GitHub does for a pull request
        commit  whether all changes are committed first
        """
        if not origin.exists():
            words = ("--stack", "prod", "--base-url", sandbox.base_url, "--ci", host, "--package", package)
            named = [word for name in environments for word in ("--environment", name)]
            assert main(["init", str(origin), "-y", "--example", *words, *named]) == 0
            git("init", "--quiet", "--initial-branch", "main")
        elif git("branch", "--show-current") != branch:
            git("checkout", "--quiet", *(() if branch in git("branch").split() else ("-b",)), branch)
        if commit:
            git("add", "--all")
            git("commit", "--quiet", "--allow-empty", "--message", "as it is now")
        run = len(list(tmp_path.glob("clone*"))) + 1
        place = tmp_path / f"clone{run}"
        subprocess.run(["git", "clone", "--quiet", "--branch", branch, str(origin), str(place)], check=True)
        head = git("rev-parse", "HEAD")
        if onto:
            merge = ("merge", "--quiet", "--no-edit", f"origin/{onto}")
            subprocess.run([*GIT, "-C", str(place), *merge], check=True)
        variables = GITHUB if host == "github" else GITLAB_CI
        environ = {name: value.format(url=forge.url, head=head, run=run) for name, value in variables.items()}
        forge.artifacts.mkdir(exist_ok=True)
        runner = Runner(place, forge.artifacts, dict(SECRETS), environ, commands=commands)
        if host == "github":
            environ["GITHUB_STEP_SUMMARY"] = str(place / "summary")
            write_event(runner, {"pull_request": {"number": NUMBER, "base": {"ref": "main"}, "head": {"sha": head}}})
        return runner

    return create


def write_event(runner: Runner, event: object) -> None:
    """The event of GitHub that the machine runs on."""
    file = runner.clone.with_suffix(".json")
    file.write_text(json.dumps(event))
    runner.environ["GITHUB_EVENT_PATH"] = str(file)


def on_push(runner: Runner, before: str) -> Runner:
    """The same machine, on a push to the main branch whose tip was `before`."""
    if "GITHUB_SHA" in runner.environ:
        after = runner.environ["GITHUB_SHA"]
        runner.environ |= {"GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/heads/main"}
        write_event(runner, {"ref": "refs/heads/main", "before": before, "after": after})
    else:
        del runner.environ["CI_MERGE_REQUEST_IID"], runner.environ["CI_MERGE_REQUEST_TARGET_BRANCH_NAME"]
        push = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_BEFORE_SHA": before}
        runner.environ |= push
    return runner


def merge_as(change: Change, commit: str) -> None:
    """The host merges a request with this commit."""
    change.state, change.merged, change.merge = "merged", [commit], commit


GITHUB = {
    "GITHUB_API_URL": "{url}",
    "GITHUB_REPOSITORY": REPOSITORY,
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/apply.yml@refs/heads/main",
    "GITHUB_REF": f"refs/pull/{NUMBER}/merge",
    "GITHUB_BASE_REF": "main",
    "GITHUB_SHA": "{head}",
    "GITHUB_RUN_ID": "{run}",
}
GITLAB_CI = {
    "CI_API_V4_URL": "{url}/api/v4",
    "CI_PROJECT_ID": PROJECT,
    "CI_PIPELINE_SOURCE": "merge_request_event",
    "CI_MERGE_REQUEST_IID": str(NUMBER),
    "CI_COMMIT_SHA": "{head}",
    "CI_COMMIT_BEFORE_SHA": "0" * 40,
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    "GITHUB_RUN_ID": "{run}",
    "GITLAB_TOKEN": TOKEN,
    "RECONCILER_PLAN_KEY": PLAN_KEY,
}
SECRETS = {
    "secrets.RECONCILER_READ_KEY": KEY,
    "secrets.RECONCILER_PLAN_KEY": PLAN_KEY,
    "github.token": TOKEN,
}


def good(ran: Ran) -> Ran:
    assert ran.code == 0, ran.out + ran.err
    return ran


def gitlab(runner: Runner, job: str, **more: str) -> Ran:
    document = read(runner.clone / ".gitlab-ci.yml")
    lines = [*document["default"]["before_script"], *document[job]["script"]]
    own = {**document["variables"], **document[job].get("variables", {})}
    own = {name: more.get(value.removeprefix("$"), value) for name, value in own.items()}
    return runner.script(lines, {**own, **more})
