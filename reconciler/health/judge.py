"""The health of an object, and of all objects of an account."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler import kinds
from reconciler.health.facts import Facts
from reconciler.model.health import Health
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live


def judge(kind: Kind, live: Live, facts: Facts) -> Health | None:
    """The health of an object; None if its kind says nothing about it."""
    return facts.judge(live) if kind.health is not None else None


def judge_all(facts: Facts) -> Iterator[tuple[Live, Health]]:
    """The objects of an account that have health, in the order of the lists."""
    for kind in kinds.list_planned():
        for live in facts.snapshot.of(kind.name).objects if kind.health is not None else ():
            if (health := judge(kind, live, facts)) is not None:
                yield live, health
