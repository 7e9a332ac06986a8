"""`plan --base` in partial and shallow clones, linked work trees and submodules, made by Git itself."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.plan import Base
from reconciler.operations.errors import UnusableBase
from reconciler.operations.opening.commits import Commit, read_commit
from reconciler.testing import Sandbox
from tests.harness.git import GIT
from tests.harness.workspaces import open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with the branches `main` (two commits) and `review`, which adds `IPPolicy/new`."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "uploadpack.allowFilter", "true")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    for number in range(2):
        write_project(folder / "infra", policy("a", f"description {number}"))
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", f"--message={number}")
    git(folder, "checkout", "--quiet", "-b", "review")
    write_project(folder / "infra", policy("a", "description 1"), policy("new"))
    git(folder, "commit", "--quiet", "--all", "--message=review")
    return folder


async def plan(sandbox: Sandbox, folder: Path, ref: str = "origin/main") -> tuple[Base, dict[str, str]]:
    plan = (await open_on(sandbox, folder / "infra").plan(base=ref)).plan
    assert plan.base is not None
    return plan.base, {str(change.address): str(change.cause) for change in plan.changes}


EXPECTED = {"IPPolicy/a": "pending", "IPPolicy/new": "this_change"}


def clone(origin: Path, *options: str) -> Path:
    folder = origin.parent / "clone"
    git(origin.parent, "clone", "--quiet", "--branch=review", *options, f"file://{origin}", str(folder))
    return folder


def run_remedy(error: UnusableBase, folder: Path) -> None:
    """Runs the command that an error proposes."""
    command = error.remedy.split("`")[1]
    assert command.startswith("git fetch ")
    git(folder, *shlex.split(command)[1:])


@pytest.mark.parametrize("filter", ["blob:none", "tree:0"])
async def test_an_error_in_a_partial_clone_names_the_objects_to_fetch(
    sandbox: Sandbox, origin: Path, filter: str
) -> None:
    folder = clone(origin, f"--filter={filter}")
    with pytest.raises(UnusableBase, match="does not have all files") as refused:
        await plan(sandbox, folder)
    run_remedy(refused.value, folder)
    assert (await plan(sandbox, folder))[1] == EXPECTED


async def test_an_error_in_a_shallow_clone_names_the_commits_to_fetch(sandbox: Sandbox, origin: Path) -> None:
    folder = clone(origin, "--depth=1")
    assert read_commit(folder, os.environ, 30.0) == git(origin, "rev-parse", "review")
    with pytest.raises(UnusableBase, match="no such commit") as refused:
        await plan(sandbox, folder)
    run_remedy(refused.value, folder)
    git(folder, "fetch", "--quiet", "--depth=1", "origin", "main:refs/remotes/origin/main")
    # Whether the branch is behind its base, the history of one commit does not show.
    with pytest.raises(UnusableBase, match="history of HEAD is incomplete") as refused:
        await plan(sandbox, folder)
    run_remedy(refused.value, folder)
    assert (await plan(sandbox, folder))[1] == EXPECTED


async def test_a_shallow_clone_with_the_base_is_enough(sandbox: Sandbox, origin: Path) -> None:
    folder = clone(origin, "--depth=2")
    assert (await plan(sandbox, folder, "HEAD^"))[1] == EXPECTED


async def test_a_linked_work_tree_is_a_repository(sandbox: Sandbox, origin: Path, tmp_path: Path) -> None:
    git(origin, "checkout", "--quiet", "main")
    linked = tmp_path / "linked"
    git(origin, "worktree", "add", "--quiet", str(linked), "review")
    assert (linked / ".git").is_file()
    assert (await plan(sandbox, linked, "main"))[1] == EXPECTED
    assert read_commit(linked, os.environ, 30.0) == git(origin, "rev-parse", "review")
    assert read_commit(origin, os.environ, 30.0) == git(origin, "rev-parse", "main")


async def test_a_submodule_is_a_repository_of_its_own(sandbox: Sandbox, origin: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet", "--initial-branch=main")
    git(outer, "submodule", "add", f"file://{origin}", "module")
    git(outer, "commit", "--quiet", "--message=first")
    assert (outer / "module" / ".git").is_file()
    assert (await plan(sandbox, outer / "module"))[1] == EXPECTED
    assert read_commit(outer / "module", os.environ, 30.0) == git(origin, "rev-parse", "review")
    assert read_commit(outer, os.environ, 30.0) == git(outer, "rev-parse", "HEAD")


@pytest.mark.parametrize("options", [("--shared",), ("--reference",), ("--no-tags", "--single-branch")])
async def test_a_clone_with_alternate_objects_is_read(sandbox: Sandbox, origin: Path, options: tuple[str, ...]) -> None:
    if options == ("--reference",):
        options = ("--reference", str(origin))
    folder = origin.parent / "clone"
    git(origin.parent, "clone", "--quiet", "--branch=review", *options, str(origin), str(folder))
    assert (await plan(sandbox, folder, "HEAD^"))[1] == EXPECTED


async def test_a_repository_with_sha256_is_read(sandbox: Sandbox, origin: Path) -> None:
    shutil.rmtree(origin / ".git")
    git(origin, "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    for name in ("first", "second"):
        (origin / name).touch()
        git(origin, "add", "--all")
        git(origin, "commit", "--quiet", "--message=next")
    assert len(read_commit(origin, os.environ, 30.0)) == 64
    base, causes = await plan(sandbox, origin, "HEAD^")
    assert (base.problems, causes) == ((), {"IPPolicy/a": "pending", "IPPolicy/new": "pending"})


async def test_refs_of_every_form_are_found(sandbox: Sandbox, origin: Path) -> None:
    folder = clone(origin)
    git(folder, "tag", "--annotate", "--message=x", "v1", "origin/main")
    git(folder, "pack-refs", "--all")
    git(folder, "fetch", "--quiet", "origin", "main")
    git(folder, "branch", "--set-upstream-to=origin/main")
    for ref in ("origin/main", "v1", "FETCH_HEAD", "HEAD^1", "HEAD~1", "@{upstream}", "refs/remotes/origin/main"):
        assert Commit.resolve(folder, os.environ, ref).id == git(origin, "rev-parse", "main"), ref


def test_a_repository_named_by_the_environment_is_used(origin: Path, tmp_path: Path) -> None:
    """As in a hook of Git, or with `git --git-dir`."""
    moved = tmp_path / "moved.git"
    (origin / ".git").rename(moved)
    expected = git(tmp_path, f"--git-dir={moved}", "rev-parse", "review")
    assert read_commit(origin / "infra", os.environ, 30.0) == ""
    environ = {**os.environ, "GIT_DIR": str(moved), "GIT_WORK_TREE": str(origin)}
    assert read_commit(origin / "infra", environ, 30.0) == expected
    with Commit.resolve(origin / "infra", environ, "main").files() as base:
        assert base.has_project
