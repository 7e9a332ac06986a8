"""The exit code of the state of a stack."""

from __future__ import annotations

import pytest

from reconciler.model.health import State
from reconciler.model.status import Sync, Synced
from tests.harness.statuses import NOW, build_status, row


@pytest.mark.parametrize(
    ("states", "sync", "code"),
    [
        ([], Sync(Synced.YES, NOW), 0),
        ([State.HEALTHY], Sync(Synced.YES, NOW), 0),
        ([State.HEALTHY, State.PROGRESSING], Sync(Synced.YES, NOW), 2),
        ([State.UNKNOWN], Sync(Synced.YES, NOW), 2),
        ([State.HEALTHY], Sync(Synced.DRIFT, NOW), 2),
        ([State.HEALTHY], Sync(Synced.YES, NOW, is_now=False), 2),
        ([State.HEALTHY], Sync(Synced.UNKNOWN), 2),
        ([State.PROGRESSING, State.DEGRADED, State.UNKNOWN], Sync(Synced.DRIFT, NOW), 7),
    ],
)
def test_the_exit_code_is_7_if_something_is_degraded_and_2_if_something_is_not_settled(
    states: list[State], sync: Sync, code: int
) -> None:
    assert build_status(*(row("a", state) for state in states), sync=sync).exit_code == code
