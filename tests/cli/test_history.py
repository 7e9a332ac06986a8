"""`history`: the calls of earlier runs."""

from __future__ import annotations

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell


def test_history_shows_the_outcome_of_each_call(shell: Shell, sandbox: Sandbox) -> None:
    assert shell("history") == Output(0, "", "No calls recorded yet.\n")
    shell("apply", "-y")
    result = shell("history")
    assert result.code == 0
    assert sorted(line.split("  ", 1)[1] for line in result.out.splitlines()) == [
        f"apply    succeeded  create {address}"
        for address in ("IPPolicy/office", "ReservedDomain/pay", "TLSEdge/payments")
    ]


def test_a_limit_of_the_history_out_of_range_is_a_usage_error(shell: Shell) -> None:
    result = shell("history", "--limit", "9" * 20)
    assert result.code == 64
    assert "is not in the range" in result.err
