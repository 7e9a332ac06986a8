"""`Rule`, a policy of the project: its check, its scope, its message and its exemptions. `evaluate` evaluates it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct
from msgspec import field as stored

from reconciler.languages.cel import Expression, Language
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.problem import Position, Severity

LANGUAGE: Final = Language("resource", "change", "plan", instants=("now",))
_OF_PLANS: Final = frozenset({"change", "plan", "now"})


class Exemption(Struct, frozen=True):
    """Resources that may violate a rule until the end of a day (UTC)."""

    addresses: str  # a glob
    reason: str
    until: date
    position: Position


class Rule(Struct, frozen=True):
    """One policy (docs/policies.md).

    check        true if the rule is satisfied
    message      text and expressions, in order
    kinds, addresses, actions
                 the scope; empty: all. A rule with actions is about changes
    field        the path below `spec` whose position a violation has
    places       the positions of the expressions: of `check`, and of the parts of `message` by their index
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
    places: Mapping[str | int, Position] = stored(default_factory=dict)

    @property
    def uses(self) -> frozenset[str]:
        """The variables that its check and message use."""
        in_message = (part.uses for part in self.message if isinstance(part, Expression))
        return self.check.uses.union(*in_message)

    @property
    def is_about_changes(self) -> bool:
        """Whether it is evaluated once for each change."""
        return bool(self.actions) or "change" in self.uses

    @property
    def is_about_resources(self) -> bool:
        """Whether it is evaluated once for each declared resource."""
        return not self.is_about_changes and bool("resource" in self.uses or self.kinds or self.addresses)

    @property
    def needs_plan(self) -> bool:
        """Whether it cannot be evaluated over manifests alone."""
        return not self.is_about_resources or not _OF_PLANS.isdisjoint(self.uses)

    def covers(self, address: Address) -> bool:
        """Whether the address is in the scope of the rule."""
        text = str(address)
        return (not self.kinds or address.kind in self.kinds) and (
            not self.addresses or any(fnmatchcase(text, glob) for glob in self.addresses)
        )

    def exemption(self, subject: str) -> Exemption | None:
        """The exemption of a subject that expires last; None without one."""
        matching = [exemption for exemption in self.exemptions if fnmatchcase(subject, exemption.addresses)]
        return max(matching, key=lambda exemption: exemption.until, default=None)
