from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem

from reconciler.cli.main import reconciler
from reconciler.cli.terminal.completions import BashCompletion
from tests.harness.project import Shell


def complete(shell: Shell, words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The completions that bash receives at the end of a line."""
    monkeypatch.setenv("_RECONCILER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    result = shell()
    return [line.partition(",")[2] for line in result.out.splitlines() if line]


@pytest.mark.parametrize("flag", ["--target", "--exclude"])
def test_addresses_of_the_project_are_completed(shell: Shell, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete(shell, f"reconciler plan {flag} ", monkeypatch) == [
        "IPPolicy/office",
        "ReservedDomain/pay",
        "TLSEdge/payments",
    ]
    assert complete(shell, f"reconciler plan {flag} TLSEdge/", monkeypatch) == ["TLSEdge/payments"]


def test_addresses_of_the_project_in_the_option_are_completed(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.write("other/manifests/a.yml", "name: 'b'\nkind: BotUser\nspec:\n  name: inner\n--- # next\nkind: Lost\n")
    assert complete(shell, "reconciler plan --project other --target ", monkeypatch) == ["BotUser/b"]


def test_names_in_a_component_are_not_completed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write("components/part.yaml", "inputs: {}\n---\nkind: TLSEdge\nname: edge\n")
    assert complete(shell, "reconciler plan --target TLSEdge/", monkeypatch) == ["TLSEdge/payments"]


def test_no_address_is_completed_without_a_project(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert complete(shell, "reconciler plan --project nowhere --target ", monkeypatch) == []


def test_completion_of_addresses_loads_no_heavy_module(shell: Shell) -> None:
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


def test_environments_formats_and_kinds_are_completed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write("environments/staging.yaml", "")
    shell.write("environments/prod.yaml", "")
    assert complete(shell, "reconciler plan --env ", monkeypatch) == ["prod", "staging"]
    assert complete(shell, "reconciler plan --env st", monkeypatch) == ["staging"]
    assert complete(shell, "reconciler plan --format s", monkeypatch) == ["sarif"]
    assert complete(shell, "reconciler list --format ", monkeypatch) == ["text", "json"]
    assert complete(shell, "reconciler list Tunnel", monkeypatch) == [
        "Tunnel",
        "TunnelCredential",
        "TunnelGroupBackend",
        "TunnelSession",
    ]


@pytest.mark.parametrize("words", ["adopt ", "drift ", "rename ", "plan --replace "])
def test_addresses_are_completed_as_arguments(shell: Shell, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "TLSEdge/payments" in complete(shell, f"reconciler {words}", monkeypatch)


def test_approvals_are_completed_with_rules_and_risks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = complete(shell, "reconciler apply --allow ", monkeypatch)
    assert {"delete:ReservedDomain=1", "delete:*=1", "widens_access:TLSEdge=1", "update:*=1"} <= set(offered)
    assert "delete:BotUser=1" not in offered  # only kinds of the project
    assert complete(shell, "reconciler apply --allow delete:Bot", monkeypatch) == ["delete:BotUser=1"]
    monkeypatch.delenv("_RECONCILER_COMPLETE")
    answer = shell("plan", "--allow", ",".join(offered), "--snapshot", "none.json")
    assert "none.json" in answer.err  # each approval is accepted


@pytest.mark.parametrize(
    ("line", "words", "incomplete", "completed"),
    [
        ("reconciler apply --allow delete:Bot", ["apply", "--allow"], "delete:Bot", "BotUser=1"),
        ("reconciler apply --allow delete:BotUser=", ["apply", "--allow"], "delete:BotUser=", "1"),
        ("reconciler plan --target ", ["plan", "--target"], "", "delete:BotUser=1"),
        ("reconciler plan Bot", ["plan"], "Bot", "delete:BotUser=1"),
    ],
)
def test_bash_replaces_what_follows_the_last_break(
    line: str, words: list[str], incomplete: str, completed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_WORDBREAKS", " \"'><=;|&(:")
    completion = BashCompletion(reconciler, {}, "reconciler", "_RECONCILER_COMPLETE")
    assert completion.get_completion_args() == (words, incomplete)
    assert completion.format_completion(CompletionItem("delete:BotUser=1")) == f"plain,{completed}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("reconciler apply --allow delete:Bot", "BotUser=1"),
        ("reconciler apply --allow widens_access:TLSEd", "TLSEdge=1"),
        ("reconciler plan --target TLS", "TLSEdge/payments"),
        ("reconciler plan --project=. --target TLS", "TLSEdge/payments"),
    ],
)
def test_bash_completes_a_line_with_its_own_words(shell: Shell, line: str, expected: str) -> None:
    """The script runs in a real bash, which splits words at `:` and `=`."""
    script = (
        f"source <({sys.executable} -m reconciler completion bash) 2>/dev/null\n"
        f"reconciler() {{ :; }}\nCOMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({line}); COMP_CWORD=3\n"
        '_reconciler_completion "$1"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    program = Path(sys.executable).with_name("reconciler")
    done = subprocess.run(["bash", "-c", script, "bash", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [expected], done
