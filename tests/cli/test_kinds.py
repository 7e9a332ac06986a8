"""`kinds`: the list of kinds."""

from __future__ import annotations

from tests.harness.project import Shell


def test_kinds_is_a_line_per_kind(shell: Shell) -> None:
    from reconciler import kinds

    result = shell("kinds")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == [kind.name for kind in kinds.declarable()]
