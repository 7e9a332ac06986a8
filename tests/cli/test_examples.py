"""The examples of every help text are parsed by their commands, and run where possible."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest

from reconciler.cli.main import reconciler as root
from reconciler.cli.terminal.group import Command, Group
from tests.harness.platform import Sandbox
from tests.harness.project import Shell

MANIFESTS = """\
kind: IPPolicy
name: office
spec: {description: "Office ${{ var.region }}"}
---
kind: TLSEdge
name: payments
spec:
  hostports: ["shop.example.com:443"]
  ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}]}
---
kind: ReservedDomain
name: shop
spec: {domain: shop.example.com}
---
kind: AgentConfig
name: base
spec: {authtoken: {from_env: AGENT_TOKEN}}
---
kind: AgentConfig
name: berlin
spec: {extends: [{ref: AgentConfig/base}], server_addr: "connect.example.com:443"}
"""
# Commands that need no answers, no listener and no platform beside the sandbox.
RUN = {
    *("validate", "fmt", "kinds", "schema", "explain", "plan", "apply", "import", "destroy", "drift", "snapshot"),
    *("accept", "graph", "show", "list", "history", "report", "agent", "completion"),
}
NOT_RUN = {
    "--notify",
    "--issue",
    "--reviewed",
    "--max-age",
    "--base",
}  # need a webhook, a code host, another snapshot, a Git repository


def top() -> click.Context:
    return click.Context(root, info_name="reconciler", **root.context_settings)


def commands(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            found = context.command.get_command(context, name)
            assert found is not None
            yield from commands(click.Context(found, info_name=name, parent=context))


def examples() -> list[str]:
    lines: dict[str, None] = {}
    for command in commands(top()):
        assert isinstance(command.command, (Command, Group)), command.command_path
        lines |= dict.fromkeys(line.strip() for line in command.command.examples.strip().splitlines())
    return list(lines)


def invocations(line: str) -> list[list[str]]:
    """The words of each `reconciler` in a line of shell."""
    found: list[list[str]] = [[]]
    skipping = False
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&>")
    lexer.whitespace_split = True
    for word in lexer:
        if word in ("|", "&&"):
            found.append([])
        elif skipping or word == ">":
            skipping = not skipping  # the file of a redirection
        else:
            found[-1].append(word)
    return [words[1:] for words in found if words[:1] == ["reconciler"]]


@pytest.mark.parametrize("line", examples())
def test_every_example_is_parsed(line: str) -> None:
    assert invocations(line)
    for words in invocations(line):
        context = top()
        while isinstance(context.command, click.Group) and words and not words[0].startswith("-"):
            name, found, words = context.command.resolve_command(context, words)
            assert found is not None
            context = click.Context(found, info_name=name, parent=context)
        context.command.parse_args(context, words)


def test_every_command_has_an_example() -> None:
    bare = [
        command.command_path
        for command in commands(top())
        if isinstance(command.command, (Command, Group)) and not command.command.examples.strip()
    ]
    assert bare == []


def test_examples_that_need_no_other_service_run(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "example-agent-token")
    shell.write("reconciler.yaml", "version: 1\nstack: prod\nvariables: {region: {type: string, default: us}}\n")
    shell.write("manifests/payments.yaml", MANIFESTS)
    shell.write("environments/prod.yaml", "guards: {max_delete_percent: 5}\n")
    assert shell("apply", "-y").code == 0
    for name in ("plan.json", ".reconciler/plan-staging.json", ".reconciler/plan-prod.json"):
        assert shell("plan", "--out", name).code == 0
    failures = {}
    for line in examples():
        for words in invocations(line):
            if words[0] not in RUN or NOT_RUN.intersection(words):
                continue
            asking = ["-y"] if words[0] in ("apply", "destroy") and "-y" not in words else []
            allowed = ["--allow", "delete:ReservedDomain=1,delete:*=9"] if words == ["destroy"] else []
            result = shell(*words, *asking, *allowed)
            healthy = (0, 2, 7) if "--health" in words or words[0] == "status" else (0, 2)
            if result.code not in healthy and words[0] != "fmt":
                failures[line] = result
            if words[0] == "destroy":
                assert shell("apply", "-y").code == 0
    assert failures == {}
