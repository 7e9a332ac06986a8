"""Plays histories and asks the invariants. A seed is all there is to a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from tests.simulation.history import CALM, History, Report, Stack
from tests.simulation.invariants import INVARIANTS
from tests.simulation.loop import VirtualLoop


@cache
def loop() -> VirtualLoop:
    return VirtualLoop()


def play(seed: int, tell: Callable[..., Any] | None = None) -> list[str]:
    """What is broken after the history of this seed."""
    return loop().play(_play(History(seed, loop(), tell)))


async def _play(history: History) -> list[str]:
    try:
        await history.unfold()
    except Exception as failure:  # noqa: BLE001 - whatever escapes an engine is a finding
        return [f"the engine raised {failure!r}"]
    await history.calm_down()
    broken: list[str] = []
    for stack in history.stacks:
        first = await _clean(history, stack)
        second = await history.run(stack, CALM)
        for invariant in INVARIANTS:
            broken += [
                f"{invariant.__name__}: {stack.name}: {violation}"
                for violation in invariant(history, stack, first, second)
            ]
    return [*history.account.broken, *broken]


_TWO_STEPS = {"circular-calls", "refers-to-skipped", "used-by-skipped"}


async def _clean(history: History, stack: Stack) -> Report:
    """One run in peace. Where the planner says that it takes two steps, the two."""
    first = await history.run(stack, CALM)
    if first.plan and first.plan.errors and {error.code for error in first.plan.errors} <= _TWO_STEPS:
        await history.run(stack, CALM, empty=True)
        first = await history.run(stack, CALM)
    return first


def find_failures(seeds: Iterable[int], *, most: int = 1) -> dict[int, list[str]]:
    """The first so many seeds whose histories end badly."""
    found: dict[int, list[str]] = {}
    for seed in seeds:
        if broken := play(seed):
            found[seed] = broken
            if len(found) >= most:
                break
    return found
