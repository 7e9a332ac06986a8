"""`history`: the calls of earlier runs."""

from __future__ import annotations

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell


def test_history_tells_how_calls_ended(shell: Shell, sandbox: Sandbox) -> None:
    assert shell("history") == Output(0, "", "No calls recorded yet.\n")
    shell("apply", "-y")
    said = shell("history")
    assert said.code == 0
    assert sorted(line.split("  ", 1)[1] for line in said.out.splitlines()) == [
        f"apply    succeeded  create {address}"
        for address in ("IPPolicy/office", "ReservedDomain/pay", "TLSEdge/payments")
    ]


def test_more_of_the_history_than_can_be_counted_is_a_usage_error(shell: Shell) -> None:
    said = shell("history", "--limit", "9" * 20)
    assert said.code == 64
    assert "is not in the range" in said.err
