"""`validate`: what it tells, and with which exit code."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shell

UNKNOWN = "kind: EventSubscription\nname: s\nspec:\n  sources: [{type: no_such_thing.v0}]\n"
MISTAKE = """\
kind: CloudEndpoint
name: e
spec:
  url: https://e.example.com
  traffic_policy: {on_http_request: [{actions: [{type: deny, config: {a: {from_env: X}}}]}]}
"""


@pytest.mark.parametrize(("manifest", "strict"), [(UNKNOWN, 0), (MISTAKE, 1)], ids=["unknown", "mistake"])
def test_strict_fails_on_certain_mistakes_and_not_on_what_is_unknown(shell: Shell, manifest: str, strict: int) -> None:
    shell.write("manifests/one.yaml", manifest)
    assert shell("validate").code == 0
    said = shell("validate", "--strict")
    assert said.code == strict
    assert ("--strict fails on these warnings: policy-expression-source" in said.err) == bool(strict)


def test_a_warning_in_the_log_has_its_code(shell: Shell) -> None:
    shell.write("manifests/one.yaml", UNKNOWN)
    said = shell("validate", "--log-format", "json")
    assert json.loads(said.err.splitlines()[0])["code"] == "unknown-event-type"
