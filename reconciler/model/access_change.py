"""The change of one entry point as a plan shows it: who gets through before and after, and a request that proves it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from reconciler.model.change import Cause, Coded, Risk


class Verdict(Coded):
    """What a change means for who gets through at an entry point, the gravest first."""

    WIDENS = "widens", "lets in requests that were refused"
    EXPOSES = "exposes", "is a new way in"
    LOCKS_OUT = "locks_out", "locks everyone out"
    NARROWS = "narrows", "refuses requests that passed"
    CLOSES = "closes", "is no longer a way in"

    @property
    def opens(self) -> bool:
        """Whether requests get through that did not."""
        return self in (Verdict.WIDENS, Verdict.EXPOSES)

    @property
    def risk(self) -> Risk | None:
        """The risk of the change, if it is one. The end of a way in interrupts traffic, which is a risk of its own."""
        return _RISKS.get(self)


CONCEALED: Final = "gates of stack "
"""What `before` and `after` begin with if only objects of other stacks serve the entry point."""

_RISKS = {
    Verdict.WIDENS: Risk.WIDENS_ACCESS,
    Verdict.EXPOSES: Risk.EXPOSES,
    Verdict.LOCKS_OUT: Risk.LOCKS_OUT,
}


class AccessChange(Struct, frozen=True):
    """The change of one entry point.

    entry_point    `https://shop.example.com/admin…`
    before, after  who gets through, in words; of an object of another stack only that it changes
    witness        one request that shows the difference; empty if none can be shown
    is_certain     the witness holds whatever the facts are that are not documented or not known
    depends_on     if it is not certain: these facts
    causes         the addresses of the changed resources that decide about the entry point
    digest         of the entry point and of exactly who gets through before and after
    public         afterwards, a client may get through without credentials, as of `AccessEntry`
    """

    entry_point: str
    verdict: Verdict
    before: str
    after: str
    witness: str
    is_certain: bool
    causes: tuple[str, ...]
    digest: str
    depends_on: tuple[str, ...] = ()
    cause: Cause | None = None  # None: the plan was not compared with a base
    public: bool = False

    @property
    def is_concealed(self) -> bool:
        """Whether only objects of other stacks serve the entry point: their gates are not shown."""
        return self.before == self.after and self.before.startswith(CONCEALED)
