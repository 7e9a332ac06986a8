"""File names that are not UTF-8: every command reports the file, and none fails with a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Shell

POLICY = b"kind: IPPolicy\nname: x\nspec: {}\n"
COMMANDS = [
    ["validate"],
    ["validate", "--strict"],
    ["plan"],
    ["plan", "--format", "json"],
    ["apply", "-y"],
    ["drift"],
    ["accept"],
    ["fmt"],
    ["fmt", "--check"],
    ["fmt", "--modeline"],
    ["graph"],
    ["import"],
    ["import", "--out", "manifests"],
    ["snapshot", "--out", "snapshot.json"],
    ["rename", "IPPolicy/office", "IPPolicy/branch"],
    ["explain", "IPPolicy/office.description"],
    ["adopt", "IPPolicy/office", "-y"],
    ["history"],
    ["list"],
    ["agent", "config", "a"],
]
UNREADABLE = "the file name manifests/caf\\xe9.yaml is not UTF-8; rename the file or folder"


def write(root: Path, path: bytes, text: bytes = POLICY) -> None:
    file = os.path.join(os.fsencode(root), path)  # noqa: PTH118 - Path has no form for bytes
    os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
    with open(file, "wb") as opened:  # noqa: PTH123
        opened.write(text)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.usefixtures("sandbox")
def test_every_command_reports_a_manifest_with_a_name_that_is_not_utf_8(shell: Shell, words: list[str]) -> None:
    write(shell.root, b"manifests/caf\xe9.yaml")
    result = shell(*words)
    assert "unexpected" not in result.err
    assert (result.code == 0) == (UNREADABLE not in result.err)
    if words[0] in ("validate", "plan", "apply", "drift", "accept", "fmt", "graph", "explain", "adopt"):
        assert UNREADABLE in result.err


@pytest.mark.parametrize(
    "path",
    [b"manifests/caf\xe9/a.yaml", b"manifests/a/b\xff/c/d.yml", b"policies/caf\xe9.yaml", b"environments/caf\xe9.yaml"],
)
@pytest.mark.usefixtures("sandbox")
def test_folders_and_files_of_a_project_with_names_that_are_not_utf_8_are_refused(shell: Shell, path: bytes) -> None:
    write(shell.root, path)
    for words in (["validate"], ["plan"], ["fmt", "--modeline"], ["init", "-y", "--ci", "github"]):
        result = shell(*words)
        assert "unexpected" not in result.err, words
        assert "Traceback" not in result.err
    assert shell("validate").code == 1


@pytest.mark.usefixtures("sandbox")
def test_files_that_are_not_read_may_have_any_name(shell: Shell) -> None:
    for path in (b"manifests/caf\xe9.txt", b"manifests/caf\xe9/x.md", b"manifests/.caf\xe9.yaml", b"caf\xe9.yaml"):
        write(shell.root, path)
    for words in (["validate"], ["fmt"], ["apply", "-y"], ["drift"]):
        assert shell(*words).code == 0


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize(
    "words",
    [
        ["fmt", "manifests/NAME.yaml"],
        ["show", "NAME.json"],
        ["apply", "NAME.json", "-y"],
        ["plan", "--out", "NAME.json"],
        ["plan", "--format", "html=NAME.html"],
        ["plan", "--snapshot", "NAME.json"],
        ["plan", "--env", "NAME"],
        ["plan", "--target", "IPPolicy/NAME"],
        ["plan", "--base", "NAME"],
        ["plan", "--var", "a=NAME"],
        ["plan", "--project", "NAME"],
        ["apply", "-y", "--events", "NAME.jsonl"],
        ["snapshot", "--out", "NAME.json"],
        ["import", "--out", "NAME"],
        ["rename", "IPPolicy/office", "IPPolicy/NAME"],
        ["explain", "NAME"],
        ["list", "NAME"],
        ["comment", "NAME.json"],
        ["init", "-y", "--stack", "NAME"],
    ],
    ids=" ".join,
)
def test_arguments_that_are_not_utf_8_are_refused_or_used_as_file_names(shell: Shell, words: list[str]) -> None:
    result = shell(*(word.replace("NAME", os.fsdecode(b"caf\xe9")) for word in words))
    assert "unexpected" not in result.err
    assert result.code in ((0, 1, 64) if result.err else (0,))


def test_a_project_may_be_in_a_folder_with_a_name_that_is_not_utf_8(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.fsdecode(os.fsencode(shell.root) + b"/caf\xe9")
    write(shell.root, b"caf\xe9/reconciler.yaml", b"version: 1\nstack: prod\n")
    write(shell.root, b"caf\xe9/manifests/x.yaml")
    monkeypatch.chdir(folder)
    for words in (["validate"], ["plan"], ["apply", "-y"], ["drift"], ["list"], ["history"]):
        result = shell(*words)
        assert "unexpected" not in result.err, (words, result.err)
        assert result.code == 0, (words, result.err)
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1
