"""Commands read regular files only, up to a size, and never block on a device or pipe."""

from __future__ import annotations

import io
import os

import pytest

from reconciler.project import named_files
from tests.harness.project import Shell

READING = [
    ["show", "FILE"],
    ["apply", "FILE", "-y"],
    ["graph", "--plan", "FILE"],
    ["comment", "FILE", "--number", "1"],
    ["plan", "--snapshot", "FILE"],
    ["fmt", "FILE"],
    ["fmt", "--check", "FILE"],
]


def run(shell: Shell, words: list[str], name: str) -> str:
    result = shell(*(name if word == "FILE" else word for word in words))
    assert result.code == 1, result.err
    assert "unexpected" not in result.err
    return result.err


@pytest.fixture(autouse=True)
def _within_a_pipeline(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_API_KEY", "k")
    monkeypatch.setenv("RECONCILER_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/infra")


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_fifo_is_not_waited_for(shell: Shell, words: list[str]) -> None:
    os.mkfifo(shell.root / "pipe.yaml")
    assert "pipe.yaml is not a regular file" in run(shell, words, "pipe.yaml")


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_device_is_not_read(shell: Shell, words: list[str]) -> None:
    (shell.root / "zero.yaml").symlink_to("/dev/zero")
    assert "zero.yaml is not a regular file" in run(shell, words, "zero.yaml")


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_file_is_read_up_to_its_limit(shell: Shell, words: list[str]) -> None:
    with (shell.root / "huge.yaml").open("wb") as file:
        file.truncate(2**40)
    assert "huge.yaml is larger than " in run(shell, words, "huge.yaml")


def test_devices_among_the_files_of_a_project_are_not_read(shell: Shell) -> None:
    """Files that `init`, `fmt` and the completion of addresses read."""
    (shell.root / ".gitignore").symlink_to("/dev/zero")
    (shell.root / "manifests/zero.yaml").symlink_to("/dev/zero")
    assert shell("fmt").code == 1
    assert "zero.yaml" in shell("validate").err
    assert "unexpected" not in shell("init", "-y", "--ci", "none").err


def test_standard_input_has_a_limit(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    monkeypatch.setattr(named_files, "LARGEST_PLAN", 100)
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * 101))
    text = run(shell, ["comment", "-", "--number", "1"], "")
    assert text == "error: standard input is larger than 100 bytes\n"
