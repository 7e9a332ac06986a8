"""The creation time of live objects, and whether a rotated one is still in its overlap."""

from __future__ import annotations

from reconciler.model.health import read_instant
from reconciler.model.manifest import Declaration
from reconciler.model.snapshot import Live


def read_creation_time(live: Live) -> float | None:
    """The creation time of an object in seconds since 1970; None if the response has no valid `created_at`."""
    return read_instant(live.body.get("created_at"))


def is_in_overlap(declaration: Declaration, successor: Live, old: Live, now: float) -> bool:
    """Whether the rotated object `old` has to stay beside its successor. `now`: seconds since 1970.

    The overlap (`rotate.overlap`, in seconds) begins once the secret of the successor is delivered. An object whose own
    secret was never delivered has no overlap.
    """
    created = read_creation_time(successor)
    if declaration.rotate is None or created is None or (old.owner is not None and old.owner.pending):
        return False
    waiting = successor.owner is not None and successor.owner.pending
    return waiting or now < created + declaration.rotate.overlap
