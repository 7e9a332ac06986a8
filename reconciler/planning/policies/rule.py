"""A policy of the project: what has to hold of resources or of a plan, for whom, until when not, and what is said.

The shape alone; `evaluate` asks the questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as stored
from datetime import date
from fnmatch import fnmatchcase
from typing import Final

from reconciler.languages.cel import Expression, Language
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.problem import Position, Severity

LANGUAGE: Final = Language("resource", "change", "plan", instants=("now",))
_OF_PLANS: Final = frozenset({"change", "plan", "now"})


@dataclass(frozen=True, slots=True)
class Exemption:
    """What a rule does not hold for, to the end of a day (UTC)."""

    addresses: str  # a glob
    reason: str
    until: date
    position: Position


@dataclass(frozen=True)
class Rule:
    """
    check        true where the rule is kept
    message      text, with expressions in it
    kinds, …     whom it is about; empty: all. With actions it is about changes
    field        the path below `spec` at which a breach is shown
    places       where each expression begins: `check`, and `message` by its part
    """

    name: str
    check: Expression
    message: tuple[str | Expression, ...]
    position: Position
    severity: Severity = Severity.ERROR
    remedy: str = ""
    field: str = ""
    kinds: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    exemptions: tuple[Exemption, ...] = ()
    places: Mapping[str | int, Position] = stored(default_factory=dict, repr=False)

    @property
    def uses(self) -> frozenset[str]:
        """The variables that it speaks of."""
        said = (part.uses for part in self.message if isinstance(part, Expression))
        return self.check.uses.union(*said)

    @property
    def is_about_changes(self) -> bool:
        """Whether it is asked once for each change."""
        return bool(self.actions) or "change" in self.uses

    @property
    def is_about_resources(self) -> bool:
        """Whether it is asked once for each resource that is declared to be there."""
        return not self.is_about_changes and bool("resource" in self.uses or self.kinds or self.addresses)

    @property
    def needs_plan(self) -> bool:
        return not self.is_about_resources or not _OF_PLANS.isdisjoint(self.uses)

    def covers(self, address: Address) -> bool:
        text = str(address)
        return (not self.kinds or address.kind in self.kinds) and (
            not self.addresses or any(fnmatchcase(text, glob) for glob in self.addresses)
        )

    def exemption(self, subject: str) -> Exemption | None:
        """The exemption that lasts longest."""
        found = [exemption for exemption in self.exemptions if fnmatchcase(subject, exemption.addresses)]
        return max(found, key=lambda each: each.until, default=None)
