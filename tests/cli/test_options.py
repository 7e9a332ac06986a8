"""The values of options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.commands import apply
from reconciler.cli.commands.fleet import apply as fleet_apply

ALLOW = [
    (apply.command, "delete:ReservedDomain", ("delete", "ReservedDomain")),
    (fleet_apply.command, "deletes", "deletes"),
]


def parse(command: click.Command, *words: str) -> object:
    """The value of `--allow`."""
    (option,) = (option for option in command.params if "--allow" in option.opts)
    return option.process_value(click.Context(command), words)


@pytest.mark.parametrize(("command", "rule", "key"), ALLOW, ids=["apply", "fleet apply"])
@given(counts=st.lists(st.lists(st.integers(1, 999), min_size=1, max_size=3), min_size=1, max_size=3))
def test_repeated_approvals_add_up(
    command: click.Command, rule: str, key: object, counts: Sequence[Sequence[int]]
) -> None:
    words = [",".join(f"{rule}={count}" for count in part) for part in counts]
    assert parse(command, *words) == {key: sum(map(sum, counts))}


@pytest.mark.parametrize(("command", "rule", "key"), ALLOW, ids=["apply", "fleet apply"])
def test_an_approval_of_nothing_is_refused(command: click.Command, rule: str, key: object) -> None:
    with pytest.raises(click.BadParameter, match=f"'{rule}=0' has a count of zero; use at least 1, as in {rule}=1"):
        parse(command, f"{rule}=0")
