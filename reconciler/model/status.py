"""The state of a stack at one time: whether it is in sync, whether it works, and what comes due."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from reconciler.model import exit_codes
from reconciler.model.health import HealthRow, State


class Synced(StrEnum):
    """Whether the account has what the last apply left."""

    YES = "in sync"
    DRIFT = "drift"
    UNKNOWN = "unknown"


class Sync(Struct, frozen=True):
    """Whether a stack is in sync, read from the platform or known from the last recorded drift check.

    at       when the account was read; None: never
    is_now   it was read now
    drifted  the resources that changed on the platform
    pending  the resources with changes in Git that were not applied
    why      why it could not be read now
    """

    state: Synced
    at: float | None = None
    is_now: bool = True
    drifted: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    why: str = ""


class Due(Struct, frozen=True):
    """Something that happens at a time in the future: `TLSCertificate/shop` `expires`."""

    at: float
    subject: str
    event: str


class StackStatus(Struct, frozen=True):
    """The state of a stack. Times are in seconds since 1970.

    health       by address, of the kinds that have health
    is_verified  name servers were asked, and `health` has what they say
    dates        what comes due within `days`, the next first
    """

    stack: str
    account: str
    at: float
    sync: Sync
    health: tuple[HealthRow, ...] = ()
    dates: tuple[Due, ...] = ()
    days: int = 30
    environment: str = ""
    is_verified: bool = False

    def list_in(self, state: State) -> tuple[HealthRow, ...]:
        """The rows with this state."""
        return tuple(row for row in self.health if row.health.state is state)

    @property
    def exit_code(self) -> int:
        """DEGRADED if something is degraded, else CHANGES if something progresses, is unknown or drifted, else DONE."""
        states = {row.health.state for row in self.health}
        if State.DEGRADED in states:
            return exit_codes.DEGRADED
        is_settled = states <= {State.HEALTHY} and self.sync.is_now and self.sync.state is Synced.YES
        return exit_codes.DONE if is_settled else exit_codes.CHANGES
