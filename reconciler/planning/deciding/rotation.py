"""How old a live object is, and whether a renewed one still has its overlap."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.manifest import Declaration
from reconciler.model.snapshot import Live


def read_creation_time(live: Live) -> float | None:
    """When the platform made it, in seconds since 1970; None where it does not say."""
    text = live.body.get("created_at")
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None


def is_in_overlap(declaration: Declaration, successor: Live, old: Live, now: float) -> bool:
    """Whether what was renewed is still to live beside its successor. What nobody holds the secret of is not."""
    made = read_creation_time(successor)
    if declaration.rotate is None or made is None or (old.owner is not None and old.owner.pending):
        return False
    waiting = successor.owner is not None and successor.owner.pending
    return waiting or now < made + declaration.rotate.overlap
