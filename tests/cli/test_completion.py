from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import click
import pytest
from click.shell_completion import CompletionItem

from reconciler import kinds
from reconciler.cli.main import reconciler
from reconciler.cli.terminal import addresses, lookup
from reconciler.cli.terminal.completions import BashCompletion
from reconciler.project import discovery
from reconciler.project.files import Unreadable
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


def test_addresses_are_those_of_files_that_may_be_manifests(tmp_path: Path) -> None:
    def declare(file: str, name: str, more: str = "") -> None:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"kind: BotUser\nname: {name}\n{more}")

    for number, file in enumerate(("a.yaml", "b.yml", "deep/er/c.yaml")):
        declare(file, f"found-{number}")
    others = (".hidden.yaml", ".git/a.yaml", "state/a.yaml", "deep/state/a.yaml", "node_modules/a.yaml", "a.json")
    for file in others:
        declare(file, "lost")
    declare("largest.yaml", "large", "# ".ljust(1_999_974, "x"))
    declare("larger.yaml", "lost", "# ".ljust(2_000_001, "x"))
    (tmp_path / "pipe.yaml").symlink_to("/dev/null")
    (tmp_path / "part.yaml").write_text("kind: BotUser\n---\nname: lost\n---\nname: last\nkind: BotUser\n")
    (tmp_path / "latin.yaml").write_bytes(b"# \xff\nkind: BotUser\nname: latin\n")
    found = addresses._read_addresses(tmp_path)
    names = ("found-0", "found-1", "found-2", "large", "last", "latin")
    assert sorted(found) == [f"BotUser/{name}" for name in names]


def test_the_fields_of_a_kind_are_completed_after_a_dot() -> None:
    def list_values(incomplete: str) -> list[str]:
        context = click.Context(reconciler)
        return [item.value for item in lookup.complete(context, click.Argument(["what"]), incomplete)]

    assert list_values("IPPolicyR") == ["IPPolicyRule"]
    assert list_values("IPPolicyRule.") == [f"IPPolicyRule.{field.name}" for field in kinds.get("IPPolicyRule").fields]
    assert list_values("IPPolicyRule.ci") == ["IPPolicyRule.cidr"]
    assert list_values("Nothing.ci") == []


def test_the_current_folder_is_completed_in_a_project_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, expected in ((Path("above"), Path("above")), (Unreadable("of another user", "own it"), Path())):
        monkeypatch.setattr(discovery, "find_project", Mock(side_effect=[found]))
        context = click.Context(reconciler.get_command(click.Context(reconciler), "plan") or reconciler)
        assert addresses.project_of(context) == expected


def test_a_project_of_many_files_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_MAX_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text(f"kind: BotUser\nname: user-{number}\n")
        assert len([*addresses._read_addresses(tmp_path)]) == min(number + 1, 3)


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
