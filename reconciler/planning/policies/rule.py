"""`Rule`, a policy of the project: its check, its scope, its message and its exemptions. `evaluate` evaluates it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct
from msgspec import field as stored

from reconciler.languages.cel import Expression, Language
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.problem import Position, Severity

LANGUAGE: Final = Language(
    "resource", "change", "plan", "access", "entry", instants=("now",), functions=("refs", "referrers")
)
_OF_PLANS: Final = frozenset({"change", "plan", "access", "entry", "now"})


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
        return frozenset().union(*(expression.uses for expression in self._expressions))

    @property
    def _expressions(self) -> Iterator[Expression]:
        yield self.check
        yield from (part for part in self.message if isinstance(part, Expression))

    @property
    def is_about_changes(self) -> bool:
        """Whether it is evaluated once for each change."""
        return bool(self.actions) or "change" in self.uses

    @property
    def is_about_entries(self) -> bool:
        """Whether it is evaluated once for each entry point."""
        return not self.is_about_changes and "entry" in self.uses

    @property
    def is_about_resources(self) -> bool:
        """Whether it is evaluated once for each declared resource."""
        is_other = self.is_about_changes or self.is_about_entries
        return not is_other and bool("resource" in self.uses or self.kinds or self.addresses)

    @property
    def about(self) -> str:
        """What it is evaluated for once each."""
        if self.is_about_changes:
            return "changes"
        return "entry points" if self.is_about_entries else "resources" if self.is_about_resources else "plan"

    @property
    def reads_access(self) -> bool:
        """Whether it needs the entry points of the account as the plan leaves it."""
        return not self.uses.isdisjoint({"access", "entry"})

    @property
    def lists_resources(self) -> bool:
        """Whether it may read the list of all resources."""
        return "plan" in self.uses and any(expression.has_word("resources") for expression in self._expressions)

    @property
    def calls_functions(self) -> bool:
        """Whether it follows references with `refs` or `referrers`."""
        return any(expression.calls for expression in self._expressions)

    @property
    def needs_manifest(self) -> bool:
        """Whether it cannot be evaluated over a plan alone."""
        return "resource" in self.uses or self.calls_functions or self.reads_access or self.lists_resources

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

    def exemption(self, *names: str) -> Exemption | None:
        """The exemption of a subject with these names that expires last; None without one."""
        matching = [item for item in self.exemptions if any(fnmatchcase(name, item.addresses) for name in names)]
        return max(matching, key=lambda exemption: exemption.until, default=None)
