"""Tells on standard error why something takes longer: reads that are tried again, and the wait for the budget."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reconciler.cli.terminal import output

WORTH_TELLING = 1.0  # seconds of waiting; within a full window each request waits a moment for the one before


@dataclass
class Reading:
    """Tells each reason once, however many lists it holds up."""

    quiet: bool = False
    _told: set[str] = field(default_factory=set)

    def waited(self, seconds: float) -> None:
        if seconds >= WORTH_TELLING and not self.quiet:
            from reconciler.model.event import Waited
            from reconciler.rendering.wire import events

            output.say(events.line(Waited(seconds)))

    def retried(self, seconds: float, why: str) -> None:
        reason = same_reason(why)
        if reason not in self._told and not self.quiet:
            self._told.add(reason)
            output.say(f"{why}; trying again")


_OPERATION = re.compile(r"\bop_[A-Za-z0-9]+")


def same_reason(why: str) -> str:
    """What two failures have in common that differ only in the number the platform gave the request."""
    return _OPERATION.sub("op_", why)
