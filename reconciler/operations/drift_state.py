"""The state of a stack as a drift check left it, in digests: whether it changed tells whether to notify.

The next check finds it in the store or, without one, in a hidden line of the stack's issue. Everyone who may edit the
issue can write that line: it is parsed strictly, and anything else counts as unknown.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from msgspec import Struct

from reconciler.model.health import HealthRow, State
from reconciler.model.history import DriftCheck

_MOST = 200  # degraded objects that a line names
_LINE = re.compile(
    r"<!-- reconciler state drift=(?P<drift>none|[0-9a-f]{16}) "
    rf"degraded=(?P<degraded>none|[0-9a-f]{{16}}(?:,[0-9a-f]{{16}}){{0,{_MOST - 1}}}) -->"
)


class DriftState(Struct, frozen=True):
    """What a drift check found.

    drift     a digest of the differences; empty: no drift
    degraded  digests of the objects that do not work, sorted
    """

    drift: str = ""
    degraded: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        return not self.drift and not self.degraded


IN_SYNC = DriftState()


def follow_states(checks: Iterable[DriftCheck]) -> DriftState | None:
    """The state after these checks, oldest first; None if there are none that judged health."""
    state = None
    for check in checks:
        if check.health is not None:
            state = find_state(check, state or IN_SYNC)
    return state


def find_state(check: DriftCheck, earlier: DriftState = IN_SYNC) -> DriftState:
    """The state after a check. A degraded object that is unknown now, or was not judged, counts as degraded still."""
    drift = [[str(item.address), item.action, item.changed_by, *item.fields] for item in check.drift]
    opened = [[item.entry_point, item.verdict, item.before, item.after] for item in check.openings]
    found = digest_text(json.dumps([sorted(drift), sorted(opened)])) if drift or opened else ""
    if check.health is None:
        return DriftState(found, earlier.degraded)
    degraded = _digest_rows(check.health.rows, State.DEGRADED)
    kept = _digest_rows(check.health.rows, State.UNKNOWN) & {*earlier.degraded}
    return DriftState(found, tuple(sorted(degraded | kept)[:_MOST]))


def _digest_rows(rows: Iterable[HealthRow], state: State) -> set[str]:
    return {digest_object(row) for row in rows if row.health.state is state}


def digest_object(row: HealthRow) -> str:
    """Identifies an object in a state."""
    return digest_text(row.address or row.id)


def digest_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def write_line(state: DriftState) -> str:
    """The hidden line of an issue with a state."""
    return f"<!-- reconciler state drift={state.drift or 'none'} degraded={','.join(state.degraded) or 'none'} -->"


def read_line(body: str) -> DriftState | None:
    """The state in the second line of an issue; None if it is not exactly what `write_line` writes."""
    second = body[:10_000].split("\n", 2)[1:2]
    found = _LINE.fullmatch(second[0].removesuffix("\r")) if second else None
    if found is None:
        return None
    drift, degraded = found["drift"], found["degraded"]
    names = () if degraded == "none" else tuple(degraded.split(","))
    if names != tuple(sorted({*names})):
        return None
    return DriftState("" if drift == "none" else drift, names)
