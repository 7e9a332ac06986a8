"""Attacks by what a repository contains: Git runs no program of it, and reads nothing but the project's own files."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.operations.errors import UnusableBase
from reconciler.operations.opening.commits import Commit, read_commit
from reconciler.operations.opening.git import find_worktree, open_git, open_own_git
from reconciler.testing import Sandbox
from tests.harness.git import GIT
from tests.harness.workspaces import open_on, policy, write_project

SOURCE = Path(__file__).parents[2] / "reconciler"

STARTS_PROGRAMS = {
    "project/processes.py": "starts Git and the commands of deliveries, after the memory is closed",
    "testing/process.py": "starts the emulated platform for tests of projects",
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def git(folder: Path, *arguments: str, input: bytes | None = None) -> str:
    command = [*GIT, *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, input=input)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a project in its folder `infra`, and a branch `main` with one commit."""
    folder = tmp_path / "repository"
    write_project(folder / "infra", policy("a"))
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(folder))
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=first")
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that must not run. It would leave the file `ran` beside it."""
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nenv > {tmp_path}/ran\nexec git-upload-pack "$@"\n')
    program.chmod(0o755)
    return program


def has_run(program: Path) -> bool:
    return program.with_name("ran").exists()


def embed(folder: Path, source: Path, program: Path) -> None:
    """Makes a folder a bare repository, as a pull request can commit it: a partial clone whose remote is a program."""
    git(source, "config", "uploadpack.allowFilter", "true")
    git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
    bare = source.parent / "bare"
    git(source.parent, "clone", "--quiet", "--bare", "--filter=blob:none", f"file://{source}", str(bare))
    git(bare, "config", "remote.origin.uploadpack", str(program))
    for name in ("HEAD", "config", "objects", "refs", "packed-refs"):
        place = folder / name
        shutil.copytree(bare / name, place) if (bare / name).is_dir() else shutil.copy(bare / name, place)
    (folder / "refs" / "heads" / ".keep").touch()  # Git commits no empty folder


# --- programs -------------------------------------------------------------------------------------------------------


async def test_a_committed_bare_repository_runs_no_program(
    sandbox: Sandbox, repository: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git takes the project's folder for a repository whose remote is a program of the pull request."""
    project = repository / "infra"
    embed(project, repository, program)
    git(repository, "checkout", "--quiet", "-b", "review")
    git(repository, "add", "--all", "--force")
    git(repository, "commit", "--quiet", "--message=attack")
    monkeypatch.chdir(project)
    with suppress(subprocess.CalledProcessError):
        git(project, "cat-file", "-p", "main:infra/reconciler.yaml")
    assert has_run(program), "without protection, Git runs the program"
    program.with_name("ran").unlink()

    plan = (await open_on(sandbox, Path()).plan(base="main")).plan

    assert plan.base is not None
    assert plan.base.problems == ()
    assert not has_run(program)
    assert read_commit(project, os.environ, 30.0) == git(repository, "rev-parse", "HEAD")


_SETTINGS = """\
[core]
	fsmonitor = {program}
	hooksPath = {folder}
	sshCommand = {program}
	pager = {program}
	editor = {program}
	askPass = {program}
	gitProxy = {program}
	alternateRefsCommand = {program}
	attributesFile = {folder}/attributes
[diff]
	external = {program}
[diff "x"]
	command = {program}
	textconv = {program}
[filter "x"]
	clean = {program}
	smudge = {program}
	process = {program}
	required = true
[pager]
	rev-parse = {program}
	cat-file = {program}
	config = {program}
	status = {program}
[alias]
	rev-parse = !{program}
	cat-file = !{program}
	rev-list = !{program}
[include]
	path = {folder}/included
[includeIf "gitdir:/"]
	path = {folder}/included
[extensions]
	worktreeConfig = true
	partialClone = origin
[remote "origin"]
	url = {folder}
	uploadpack = {program}
	promisor = true
[credential]
	helper = !{program}
[uploadpack]
	packObjectsHook = {program}
[trace2]
	normalTarget = {folder}/ran
"""


async def test_settings_of_the_repository_run_no_program(
    sandbox: Sandbox, repository: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unpacked archive can bring `.git`, although no commit can."""
    settings = _SETTINGS.format(program=program, folder=program.parent)
    (repository / "infra" / ".gitattributes").write_text("* filter=x diff=x\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=second")
    with (repository / ".git" / "config").open("a") as file:
        file.write(settings)
    (program.parent / "included").write_text(f"[core]\n\tfsmonitor = {program}\n")
    (repository / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {program}\n")
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        shutil.copy(program, repository / ".git" / "hooks" / hook)
    (repository / "infra" / "reconciler.yaml").touch()
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_PAGER", str(program))
    monkeypatch.setenv("PAGER", str(program))

    plan = (await open_on(sandbox, repository / "infra").plan(base="HEAD^")).plan

    assert plan.base is not None
    assert plan.base.problems == ()
    worktree = find_worktree(repository, os.environ)
    assert worktree is not None
    with open_git(worktree, os.environ, 30.0) as opened:
        opened.run("status", "--porcelain", "--ignore-submodules=all")
        opened.run("diff", "HEAD^", "HEAD")
    assert not has_run(program)


def test_hooks_and_settings_of_an_own_repository_run_no_program(repository: Path, program: Path) -> None:
    """Workers of fleets fetch into a repository of their own, whose folder others may be able to write."""
    git(repository, "config", "core.fsmonitor", str(program))
    git(repository, "config", "core.pager", str(program))
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("reference-transaction", "post-checkout", "post-index-change"):
        shutil.copy(program, hooks / hook)
    opened = open_own_git(repository, {"PATH": os.environ["PATH"]}, 30.0, ())
    opened.run("status", "--porcelain")
    opened.run("checkout", "--quiet", "-b", "other")
    opened.run("log", "-1")
    assert not has_run(program)


@pytest.mark.parametrize("name", [".GIT", "git~1", ".git "])
def test_a_name_that_resembles_a_repository_is_ignored(repository: Path, name: str) -> None:
    """Git commits no `.git`, but names that some file systems take for it."""
    project = repository / "infra"
    (project / name).write_text("gitdir: ./evil\n")
    shutil.copytree(repository / ".git", project / "evil")
    (project / "evil" / "HEAD").write_text("0" * 40)
    assert read_commit(project, os.environ, 30.0) == git(repository, "rev-parse", "HEAD")


def test_the_repository_of_another_user_is_not_used(repository: Path, tmp_path: Path) -> None:
    """Anyone can create `/tmp/.git`."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    os.chown(repository / ".git", 12345, 12345)
    with pytest.raises(UnusableBase, match="belongs to another user than") as refused:
        Commit.resolve(repository / "infra", os.environ, "main")
    assert f"GIT_DIR={repository / '.git'}" in refused.value.remedy
    trusted = {**os.environ, "GIT_DIR": str(repository / ".git")}
    assert Commit.resolve(repository / "infra", trusted, "main").count_missing() == 0
    for folder in (repository, *repository.rglob("*")):
        os.chown(folder, 12345, 12345, follow_symlinks=False)  # as in a container whose volume another user filled
    assert Commit.resolve(repository / "infra", os.environ, "main").count_missing() == 0


def test_a_project_behind_a_symlink_has_the_commit_of_its_target(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository / "infra")
    assert read_commit(tmp_path / "link", os.environ, 30.0) == git(repository, "rev-parse", "HEAD")


def test_only_one_module_starts_programs() -> None:
    found = {
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*.py")
        if _POSSIBLE.search(text := file.read_text(encoding="utf-8"))
        and any(starts_programs(node) for node in ast.walk(ast.parse(text)))
    }
    assert found == set(STARTS_PROGRAMS)


_MODULES = ("subprocess", "multiprocessing", "pty", "webbrowser")
_FUNCTIONS = ("exec", "spawn", "posix_spawn", "fork", "system", "popen", "startfile", "create_subprocess")
_OF_SUBPROCESS = ("run", "call", "check_call", "check_output", "getoutput", "getstatusoutput")
_POSSIBLE = re.compile(rf"\b({'|'.join((*_MODULES, *_FUNCTIONS, 'ProcessPoolExecutor'))})")  # parsing takes longer


def starts_programs(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(
                name.name.split(".")[0] in _MODULES[1:] or (name.asname and name.name in _MODULES) for name in names
            )
        case ast.ImportFrom(module=str(module), names=names):
            return module.split(".")[0] in _MODULES or (
                module in ("os", "asyncio") and any(name.name.startswith(_FUNCTIONS) for name in names)
            )
        case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"))):
            return True
        case ast.Attribute(value=ast.Name(id="subprocess"), attr=attribute):
            return attribute in _OF_SUBPROCESS
        case ast.Attribute(value=ast.Name(id="os" | "asyncio"), attr=attribute):
            return attribute.startswith(_FUNCTIONS)
        case ast.Attribute(attr="subprocess_exec" | "subprocess_shell" | "ProcessPoolExecutor"):
            return True
    return False


def test_only_one_function_starts_git() -> None:
    callers = [
        f"{file.relative_to(SOURCE).as_posix()}:{function.name}"
        for file in SOURCE.rglob("*.py")
        if "start_program" in (text := file.read_text(encoding="utf-8"))
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if (isinstance(node, ast.Name) and node.id == "start_program")
        or (isinstance(node, ast.Attribute) and node.attr == "start_program")
    ]
    assert callers == ["operations/opening/git.py:start"]
