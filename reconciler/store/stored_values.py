"""Reads codes of reasons, causes and outcomes from the history, and bindings of kinds that had another name, as earlier
versions wrote them.
"""

from __future__ import annotations

from reconciler.model.address import Address
from reconciler.model.change import ChangedBy, Reason
from reconciler.model.dialect import to_specification_id
from reconciler.model.event import Outcome
from reconciler.model.snapshot import Binding

RUN_ENDED = "ended"  # the outcome of a run that did not say how it ended, as of earlier versions
RUN_ABORTED = "broke off"  # the outcome of a run that an exception ended

# What earlier versions stored, and its meaning.
_OUTCOMES = {
    "done": Outcome.DONE,
    "already so": Outcome.ALREADY,
    "not tried": Outcome.SKIPPED,
    "not known": Outcome.UNKNOWN,
}
SUCCEEDED = ("done", "already so", Outcome.DONE.value, Outcome.ALREADY.value)
"""The outcomes, as any version stores them, of calls that took effect."""

_CHANGED_BY = {str(cause): cause for cause in ChangedBy} | {
    "changed in Git": ChangedBy.GIT,
    "changed on the platform": ChangedBy.PLATFORM,
    "changed on both sides": ChangedBy.BOTH,
    "follows what it refers to": ChangedBy.FOLLOWS,
    "not known": ChangedBy.UNKNOWN,
}
_REASONS = {str(reason): reason for reason in Reason} | {
    "declared, and not on the platform": Reason.DECLARED,
    "declared and once created, but gone from the platform": Reason.VANISHED,
    "fields differ": Reason.FIELDS,
    "a field that cannot change in place differs": Reason.IMMUTABLE,
    "no longer declared": Reason.REMOVED,
    "added on the platform, not declared": Reason.ADDED,
    "another took its place": Reason.SUPERSEDED,
    "all of the stack goes": Reason.DESTROYED,
    "declared absent": Reason.ABSENT,
    "exists and belongs to nobody": Reason.UNOWNED,
    "declared under another name": Reason.RENAMED,
    "the owner record is out of date": Reason.RECORD,
    "declared forgotten": Reason.FORGOTTEN,
    "its one-time secret never arrived": Reason.UNDELIVERED,
    "its one-time secret was delivered, and overwritten by a later one": Reason.OVERWRITTEN,
    "its one-time secret is due for renewal": Reason.ROTATION,
    "asked for by --replace": Reason.REQUESTED,
    "it trades what only one may have with another": Reason.EXCHANGED,
    "what it belongs to is replaced": Reason.PARENT,
    "made twice by two runs at once; the earlier one stays": Reason.DUPLICATE,
}


# Bot users were declared as two kinds.
_FORMER_KINDS = {"BotUser": "ServiceUser"}
_PRESENT_KINDS = {former: present for present, former in _FORMER_KINDS.items()}


def list_spellings(address: str) -> tuple[str, ...]:
    """The address, and how earlier versions stored it."""
    kind, separator, name = address.partition("/")
    former = _FORMER_KINDS.get(kind)
    return (address,) if former is None else (address, f"{former}{separator}{name}")


def translate_binding(address: Address, binding: Binding) -> tuple[Address, Binding]:
    """The address and binding under the present kind. Its digests, whose salt was the former address, are lost."""
    present = _PRESENT_KINDS.get(address.kind)
    if present is None:
        return address, binding
    return Address(present, address.name), Binding(to_specification_id(binding.id, "bot_"), {}, binding.protect)


def translate_outcome(stored: str) -> str:
    """The outcome in today's words; a text that is not known stays as it is."""
    return str(_OUTCOMES.get(stored, stored))


def parse_outcome(stored: str) -> Outcome:
    """Raises ValueError for an outcome that no version wrote."""
    return Outcome(translate_outcome(stored))


def parse_changed_by(stored: str) -> ChangedBy:
    """Raises KeyError for a cause that no version wrote."""
    return _CHANGED_BY[stored]


def parse_reason(stored: str) -> Reason:
    """Raises KeyError for a reason that no version wrote."""
    return _REASONS[stored]


def translate_run_outcome(stored: str) -> str:
    """The code of how a run ended: a status of the apply, `aborted`, `ended` or empty."""
    return "aborted" if stored == RUN_ABORTED else stored
