"""The board of a run: its counts after each change of a task."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.fleet.board import Board
from reconciler.model.fleet import TaskRecord, TaskState


def describe(board: Board) -> str:
    """The counts without those that are zero."""
    states = " ".join(f"{number} {state}" for state, number in board.states.items() if number)
    waves = "; ".join(
        f"wave {wave}: {board.unfinished[wave]} left of {', '.join(sorted(board.members[wave]))}, "
        f"failed {', '.join(sorted(board.failed[wave])) or 'none'}, next {board.find_unfinished(wave)}"
        for wave in (0, 1)
    )
    return f"{states}; {waves}"


def test_a_board_counts_each_task_once_in_its_last_state() -> None:
    base, web, other = (
        TaskRecord("r", member, project, wave, attempts=attempts)
        for member, project, wave, attempts in (("acme", "base", 0, 3), ("acme", "web", 0, 0), ("globex", "web", 1, 1))
    )
    board = Board([base, web, other])
    acme = [("acme", "base"), ("acme", "web")]
    late = "wave 1: 1 left of globex, failed none, next [('globex', 'web')]"
    assert describe(board) == f"3 waiting; wave 0: 2 left of acme, failed none, next {acme}; {late}"
    board.set(replace(base, state=TaskState.RUNNING, attempts=4))
    assert describe(board) == f"2 waiting 1 running; wave 0: 2 left of acme, failed none, next {acme}; {late}"
    board.set(replace(base, state=TaskState.FAILED, attempts=5))
    assert describe(board) == f"2 waiting 1 failed; wave 0: 1 left of acme, failed acme, next {acme[1:]}; {late}"
    board.set(replace(web, state=TaskState.STALE))
    board.set(replace(web, state=TaskState.STALE))
    assert describe(board) == f"1 waiting 1 failed 1 stale; wave 0: 0 left of acme, failed acme, next []; {late}"
    board.set(replace(other, state=TaskState.SUCCEEDED))
    end = "wave 1: 0 left of globex, failed none, next []"
    assert describe(board) == f"1 failed 1 stale 1 succeeded; wave 0: 0 left of acme, failed acme, next []; {end}"
    assert board.tasks["acme", "base"].attempts == 5
    assert board.earlier_attempts == {("acme", "base"): 3, ("acme", "web"): 0, ("globex", "web"): 1}
