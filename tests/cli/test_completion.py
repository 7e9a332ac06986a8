from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.project import Shell


def completed(shell: Shell, words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash is offered at the end of a line."""
    monkeypatch.setenv("_RECONCILER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    said = shell()
    return [line.partition(",")[2] for line in said.out.splitlines() if line]


@pytest.mark.parametrize("flag", ["--target", "--exclude"])
def test_addresses_of_the_project_are_offered(shell: Shell, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(shell, f"reconciler plan {flag} ", monkeypatch) == [
        "IPPolicy/office",
        "ReservedDomain/pay",
        "TLSEdge/payments",
    ]
    assert completed(shell, f"reconciler plan {flag} TLSEdge/", monkeypatch) == ["TLSEdge/payments"]


def test_addresses_are_those_of_the_project_that_the_line_names(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.write("other/manifests/a.yml", "name: 'b'\nkind: BotUser\nspec:\n  name: inner\n--- # next\nkind: Lost\n")
    assert completed(shell, "reconciler plan --project other --target ", monkeypatch) == ["BotUser/b"]


def test_where_there_is_no_project_nothing_is_offered(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completed(shell, "reconciler plan --project nowhere --target ", monkeypatch) == []


def test_addresses_load_nothing_heavy(shell: Shell) -> None:
    code = (
        "import sys; from reconciler.cli.main import main; main([]);"
        "heavy = {'pydantic', 'httpx', 'sqlalchemy', 'rich', 'networkx', 'reconciler.kinds.types.fields'};"
        "heavy &= set(filter(sys.modules.get, sys.modules));"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    environ = {
        **os.environ,
        "_RECONCILER_COMPLETE": "bash_complete",
        "COMP_WORDS": "reconciler apply --target ",
        "COMP_CWORD": "3",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "TLSEdge/payments" in done.stdout
