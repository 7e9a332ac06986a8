"""A project in a Git repository with the pipelines that `init` wrote, and machines with clones of it that run them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.cli.code_hosts import TOKEN
from tests.examples.forge import NUMBER, Forge
from tests.examples.workflows import Ran, Runner, read
from tests.platform import KEY, Sandbox

PLAN_KEY = "sixteen characters, or more"
PACKAGE = "git+https://example.com/reconciler@0f0f0f"


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    made = Forge(artifacts=tmp_path / "artifacts")
    with made:
        yield made


Clone = Callable[..., Runner]


@pytest.fixture
def clone(tmp_path: Path, sandbox: Sandbox, forge: Forge, commands: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """`clone("github")`: a machine with a fresh clone of a project that `init` made, and what the host tells it."""
    if shutil.which("git") is None:
        pytest.skip("there is no git, with which the pipelines clone")
    monkeypatch.delenv("RECONCILER_API_KEY", raising=False)
    origin = tmp_path / "origin"

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(origin), *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def made(
        host: str,
        package: str = PACKAGE,
        *,
        environments: Sequence[str] = (),
        branch: str = "main",
        onto: str = "",
        commit: bool = True,
    ) -> Runner:
        """
        branch  created where it does not exist; what is not committed is carried to it
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
            identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
            merge = ("merge", "--quiet", "--no-edit", f"origin/{onto}")
            subprocess.run(["git", *identity, "-C", str(place), *merge], check=True)
        told = GITHUB if host == "github" else GITLAB_CI
        environ = {name: value.format(url=forge.url, head=head, run=run) for name, value in told.items()}
        environ["GITHUB_STEP_SUMMARY"] = str(place / "summary")
        forge.artifacts.mkdir(exist_ok=True)
        return Runner(place, forge.artifacts, {**SECRETS, "github.event.before": head}, environ, commands=commands)

    return made


GITHUB = {
    "GITHUB_API_URL": "{url}",
    "GITHUB_REPOSITORY": "octo/infra",
    "GITHUB_REF": f"refs/pull/{NUMBER}/merge",
    "GITHUB_BASE_REF": "main",
    "GITHUB_SHA": "{head}",
    "GITHUB_RUN_ID": "{run}",
}
GITLAB_CI = {
    "CI_API_V4_URL": "{url}/api/v4",
    "CI_PROJECT_ID": "42",
    "CI_MERGE_REQUEST_IID": str(NUMBER),
    "CI_COMMIT_SHA": "{head}",
    "CI_COMMIT_BEFORE_SHA": "{head}",
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
