"""The requests of the last minute in a file that several processes share: the platform counts them all together.

A convenience, never a duty: where the file cannot be had or read, each process counts its own, and what the platform
turns away is tried again.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FLIGHT = 60.0  # seconds for which a request that was never answered may be on its way: more than any deadline of ours
_GLANCE = 0.2  # seconds until another look, where only requests on their way stand before us


class Ledger:
    """When each request was answered; for one on its way, when that must have been at the latest.

    Moments are of the machine's monotonic clock, which all its processes share.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def enter(self, now: float, budget: int, window: float) -> tuple[str, float]:
        """A ticket for one request; or no ticket, and the seconds after which to ask again."""
        with self._entries(now, window) as entries:
            if len(entries) >= budget:
                oldest = sorted(entries.values())[len(entries) - budget]
                return "", oldest + window - now if oldest <= now else _GLANCE
            ticket = secrets.token_hex(4)
            entries[ticket] = now + FLIGHT
            return ticket, 0.0

    def answered(self, ticket: str, now: float, window: float) -> None:
        with self._entries(now, window) as entries:
            entries[ticket] = now

    @contextmanager
    def _entries(self, now: float, window: float) -> Iterator[dict[str, float]]:
        """What still counts, locked, written back at the end."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            yield {}
            return
        with os.fdopen(descriptor, "r+", encoding="utf-8") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            entries = _read(opened.read(), now, window)
            yield entries
            opened.seek(0)
            opened.write(json.dumps(entries))
            opened.truncate()


def _read(text: str, now: float, window: float) -> dict[str, float]:
    """The entries of the window. Later ones than can be are from before the machine started."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        ticket: moment
        for ticket, moment in found.items()
        if isinstance(moment, (int, float)) and now - window < moment <= now + FLIGHT
    }
