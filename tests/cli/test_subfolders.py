"""Commands in a folder below the project: which project they use, and which paths they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Shell

WRONG = "kind: IPPolicy\nname: wrong\nspec:\n  descripton: x\n"


def enter(shell: Shell, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.root / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(shell.root / folder)


def test_a_plan_is_the_same_in_every_folder(shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = shell("plan", "--quiet")
    enter(shell, "manifests/deep", monkeypatch)
    assert shell("plan", "--quiet") == expected
    assert shell("apply", "-y", "--quiet").code == 0
    assert (shell.root / "state").is_dir()
    assert not Path("state").exists()


def test_paths_in_messages_are_relative_to_the_project(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write("manifests/wrong.yaml", WRONG)
    expected = shell("validate")
    assert "manifests/wrong.yaml:4:" in expected.err + expected.out
    enter(shell, "manifests", monkeypatch)
    assert shell("validate") == expected


def test_a_file_argument_is_relative_to_the_current_directory(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write("manifests/a.yaml", "name: a\nkind: IPPolicy\n")
    enter(shell, "manifests", monkeypatch)
    assert shell("fmt", "a.yaml").out == "manifests/a.yaml\n"
    assert shell("fmt", "--check").code == 0


def test_the_nearest_project_is_used_and_an_option_overrides_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write("inner/reconciler.yaml", "version: 1\nstack: inner\n")
    shell.write("inner/manifests/a.yaml", "kind: IPPolicy\nname: wrong\nspec: {x: 1}\n")
    enter(shell, "inner/manifests", monkeypatch)
    assert shell("validate").code == 1
    assert shell("validate", "--project", str(shell.root)).code == 0
    monkeypatch.setenv("RECONCILER_PROJECT", str(shell.root))
    assert shell("validate").code == 0
    assert shell("validate", "--project", ".").code == 1  # an option is not searched upwards


@pytest.mark.parametrize("git", ["folder", "file"])
def test_the_search_ends_at_the_root_of_the_repository(shell: Shell, git: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if git == "folder":
        (shell.root / "repository/.git").mkdir(parents=True)
    else:
        shell.write("repository/.git", "gitdir: elsewhere\n")  # a worktree, or a submodule
    enter(shell, "repository/folder", monkeypatch)
    answer = shell("validate")
    assert answer.code == 1
    assert "`reconciler init` creates one in this folder" in answer.err


def test_addresses_are_completed_in_a_subfolder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(shell, "manifests", monkeypatch)
    monkeypatch.setenv("_RECONCILER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "reconciler plan --target ")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert "TLSEdge/payments" in shell().out
