"""What is decided about a credential in each state of its owner record, its secret and its manifest.

The rules themselves are one list of functions; here each state has the outcome that the documentation promises.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from reconciler.model.change import Action, Reason
from reconciler.model.manifest import Declaration, Rotation
from reconciler.model.plan import Verb
from reconciler.model.snapshot import Snapshot
from reconciler.planning.planner import PlanOptions
from tests.planning.builders import INTENT, at, declare, live, make_plan, record, snapshot

AGENT, FORMER = "TunnelCredential/agent", "TunnelCredential/former"
DAY, CREATED = 86_400, 1_767_225_600.0  # 2026-01-01T00:00:00Z
APPLIED = {"description": "agent", "owner_id": "bot_1"}
PROBLEMS = {"forbidden": "cannot-be-replaced", "no target": "one-time-secret-undelivered"}


class State(NamedTuple):
    """A credential, and what the manifest and the options say of it."""

    ownership: str  # "ours", "renamed", or "unmanaged" and named by its id
    secret: str  # "delivered", "undelivered", or "confirmed": delivered, and the owner record does not say so
    differs: str  # the field in which the live object differs
    is_requested: bool
    is_due: bool
    overlap: int
    is_overwritten: bool
    is_protected: bool  # by the manifest alone
    obstacle: str  # to a replacement

    def declare(self) -> Declaration:
        declared = declare(
            AGENT,
            APPLIED,
            moved=[FORMER] if self.ownership == "renamed" else (),
            id="cr_1" if self.ownership == "unmanaged" else None,
            protect=self.is_protected,
            replace=self.obstacle != "forbidden",
            deliver=self.obstacle != "no target",
        )
        return replace(declared, rotate=Rotation(after=90 * DAY, overlap=self.overlap))

    def observe(self) -> Snapshot:
        address = FORMER if self.ownership == "renamed" else AGENT
        owner = record(address, APPLIED, pending=self.secret != "delivered")
        body = {**APPLIED, "created_at": "2026-01-01T00:00:00Z"} | ({self.differs: "other"} if self.differs else {})
        there = live("TunnelCredential", "cr_1", body, owner=None if self.ownership == "unmanaged" else owner)
        seen = snapshot(there, receipts=[INTENT] if self.secret == "confirmed" else [])
        return replace(seen, overwritten={INTENT: at(AGENT)} if self.is_overwritten else {})

    def choose_options(self) -> PlanOptions:
        requested = frozenset({at(AGENT)}) if self.is_requested else frozenset()
        return PlanOptions(to_replace=requested, now=CREATED + 90 * DAY - (0 if self.is_due else 1))

    def expect(self) -> tuple[Action | None, Reason | str | None]:
        """What happens and why; instead of the reason, the code of the problem that prevents it."""
        if self.ownership == "unmanaged":
            if self.is_requested or self.differs == "owner_id":
                return None, "not-owned"
            return Action.ADOPT, Reason.UNOWNED
        reason = self._find_reason_to_replace()
        if reason is not None:
            return (None, PROBLEMS[self.obstacle]) if self.obstacle else (Action.REPLACE, reason)
        if self.ownership == "renamed":
            return Action.MOVE, Reason.RENAMED
        if self.differs:
            return Action.UPDATE, Reason.FIELDS
        return (Action.UPDATE, Reason.RECORD) if self.is_protected or self.secret == "confirmed" else (None, None)

    def _find_reason_to_replace(self) -> Reason | None:
        if self.differs == "owner_id":
            return Reason.IMMUTABLE
        if self.is_requested:
            return Reason.REQUESTED
        if self.secret == "undelivered":
            return Reason.UNDELIVERED
        if self.secret == "confirmed":
            return None  # it counts as delivered from the next plan on
        if self.is_overwritten:
            return Reason.OVERWRITTEN
        return Reason.ROTATION if self.is_due else None


OBSTACLES = ("", *PROBLEMS)
BOTH = (False, True)


def list_states(ownership: str, secret: str) -> list[State]:
    """Overlap and protection take turns: each alone is in half of the states with any other."""
    states = product(("", "description", "owner_id"), BOTH, BOTH, BOTH, OBSTACLES)
    return [
        State(ownership, secret, differs, requested, due, DAY * (number % 2), overwritten, number % 4 > 1, obstacle)
        for number, (differs, requested, due, overwritten, obstacle) in enumerate(states)
    ]


@pytest.mark.parametrize("secret", ["delivered", "undelivered", "confirmed"])
@pytest.mark.parametrize("ownership", ["ours", "renamed", "unmanaged"])
def test_each_state_of_a_credential_has_its_outcome(ownership: str, secret: str) -> None:
    for state in list_states(ownership, secret):
        made = make_plan(state.declare(), seen=state.observe(), options=state.choose_options())
        action, reason = state.expect()
        if action is not None:
            assert [(change.action, change.reason) for change in made.changes] == [(action, reason)], state
            assert made.errors == (), state
        else:
            assert [problem.code for problem in made.errors] == ([] if reason is None else [reason]), state
            assert (made.changes, made.calls) == ((), ()), state


def test_only_a_rotation_with_an_overlap_keeps_the_old_credential() -> None:
    for state in list_states("ours", "delivered"):
        made = make_plan(state.declare(), seen=state.observe(), options=state.choose_options())
        action, reason = state.expect()
        deleted = [call.target for call in made.calls if call.verb is Verb.DELETE]
        is_kept = reason is Reason.ROTATION and state.overlap > 0
        assert deleted == (["cr_1"] if action is Action.REPLACE and not is_kept else []), state


def test_every_owner_record_that_is_written_says_what_the_manifest_says() -> None:
    for ownership, secret in product(("ours", "renamed", "unmanaged"), ("delivered", "confirmed")):
        for state in list_states(ownership, secret):
            made = make_plan(state.declare(), seen=state.observe(), options=state.choose_options())
            records = [call.owner for call in made.calls if call.owner is not None]
            action, reason = state.expect()
            if action is Action.REPLACE:
                pending = [True, False]
            else:  # the owner record of a field that was changed on the platform is current
                is_current = reason is Reason.FIELDS and secret == "delivered" and not state.is_protected
                pending = [] if action is None or is_current else [False]
            assert [each.pending for each in records] == pending, state
            for each in records:
                assert (each.address, each.protect, each.applied) == (at(AGENT), state.is_protected, APPLIED), state
                assert each.replaces == ("cr_1" if action is Action.REPLACE else None), state
