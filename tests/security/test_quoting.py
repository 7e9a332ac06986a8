"""A command in a message can be copied into a shell: names, paths and ids in it are quoted."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from reconciler.model.problem import Rejected
from reconciler.operations.errors import UnusableBase
from reconciler.operations.opening.commits import Commit
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config
from tests.harness.workspaces import write_project

SOURCE = Path(__file__).parents[2] / "reconciler"
HOSTILE = "x; touch ran #"

_COMMAND = re.compile(
    r"((?<!-- )(?<!this )\b(reconciler|git|export|cd|chown|rm|mv) |\bpass |\b(pass|continue:|too:|write) --"
    r"|`(apply|plan|adopt|import) )[^`;:]*$"
)

SAFE = {
    "_ELSEWHERE",  # a constant text
    # an address, the name of a kind or a number: their syntax has no character that a shell interprets
    "address", "decision.address", "other.address", "self.kind", "self.what", "self.count", "approval.flag", "row.flag",
    "phrases.approval_flag(row)", "of.name", "count", "what", "name", "option", "ctx.command_path", "command", "verb",
    # a run of a fleet, the digest of a shape, the name of a wave: `check_name` allows no such character
    "run.id", "self.run", "run.reviewed", "rollup.run.id", "self.rollup.run.id", "sanitize(rollup.run.id)",
    "row.digest", "row.name", "run.verb", "rollup.run.verb",
    # texts of this program
    "flags", "only", "states", "' or '.join(states)", "state", "KEY", "_SCHEMAS", "which", "self.timeout",
    "self._git.timeout", "_EXAMPLES.get(variable.type, 'text')", "'it' if len(flags) == 1 else 'them'",
    "len(addresses)", "arguments[0]", "host", "chosen_states", "describe_approvals(shapes)",
    "describe_approvals(review.shapes)", "__version__", "digest", "named",
}  # fmt: skip


def interpolations_of_commands() -> list[tuple[str, str]]:
    """The expressions that f-strings insert into commands, each with its file."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if "cli/dev" in file.as_posix() or "/sandbox/" in file.as_posix():
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.JoinedStr):
                continue
            before = ""
            for part in node.values:
                if isinstance(part, ast.Constant):
                    before += str(part.value)
                    continue
                assert isinstance(part, ast.FormattedValue)
                if _COMMAND.search(before):
                    found.append((file.relative_to(SOURCE).as_posix(), ast.unparse(part.value)))
                before += "x"
    return found


def test_values_within_a_suggested_command_are_quoted() -> None:
    found = interpolations_of_commands()
    assert len(found) > 20
    unquoted = [
        (file, text)
        for file, text in found
        if not text.startswith(("shlex.quote(", "shlex.join(")) and text not in SAFE
    ]
    assert unquoted == []


def run_in_shell(text: str, folder: Path) -> bool:
    """Runs a text as a user who copies it would. Returns whether the hostile part ran."""
    subprocess.run(["sh", "-c", text], cwd=folder, check=False, capture_output=True)
    return (folder / "ran").exists()


def test_suggested_commands_run_nothing_else(tmp_path: Path) -> None:
    assert run_in_shell(f"echo {HOSTILE}", tmp_path)
    (tmp_path / "ran").unlink()
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    with pytest.raises(UnusableBase) as refused:
        Commit.resolve(tmp_path, os.environ, HOSTILE)
    command = refused.value.remedy.split("`")[1]
    assert shlex.split(command)[-1] == HOSTILE
    write_project(tmp_path, {"kind": "IPPolicy", "name": "a", "spec": {"description": {"from_env": HOSTILE}}})
    with pytest.raises(Rejected) as rejected:
        load_manifests(load_config(tmp_path, {}, None, lambda *_: None), {})
    (remedy,) = (problem.remedy for problem in rejected.value.problems if "export" in problem.remedy)
    assert not run_in_shell(f"{command}; {remedy}", tmp_path)
