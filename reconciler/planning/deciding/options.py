"""`PlanOptions`: targets, approvals, replacements and guards of one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.approved import ApprovedItem
from reconciler.model.change import Risk
from reconciler.model.manifest import Declaration
from reconciler.model.rule_change import RuleChange


class PlanOptions(Struct, frozen=True):
    """The options of one plan.

    allow                  approvals: ("delete", "ReservedDomain") → approved count; kind "*" for guards of a whole plan
    adopt                  approves the adoption of every unmanaged object that a natural key finds
    destroy                delete the whole stack: empty manifests are intended
    targets, excludes      globs over addresses; no target selects everything
    to_replace             declared resources to replace even if nothing differs (`--replace`)
    max_…_percent          the share of ten or more owned objects that may be deleted or updated without approval
    require_approval       risks of which each change needs approval: `--allow widens_access:TLSEdge=1`
    approved               the approvals that the project records in Git
    rule_changes           the rules that the branch loosens, compared with its base; None: there is no base
    protected              resources that the base protects
    newly_listed           resources that list all children of a kind, which those of the base do not
    find_lost_rules        the rules that objects lose by another address; None: there is no base
    adopting               resources whose `lifecycle.adopt` counts as approval; None: all
    zones                  the DNS zones of the project, as written
    requests_per_minute    the rate limit of the account, 0 for none; used by the forecast
    assumes_secrets        secrets that cannot be read are assumed to be as last applied
    unread                 the sources of such secrets
    base_sources           of the base, `digest_sources` of each resource
    commit                 the Git commit of the manifests, for display
    now                    seconds since 1970, to find secrets that are due for rotation
    """

    allow: Mapping[tuple[str, str], int] = field(default_factory=dict)
    adopt: bool = False
    destroy: bool = False
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    to_replace: frozenset[Address] = frozenset()
    max_delete_percent: int = 30
    max_update_percent: int = 30
    require_approval: frozenset[Risk] = frozenset()
    approved: tuple[ApprovedItem, ...] = ()
    rule_changes: tuple[RuleChange, ...] | None = None
    protected: frozenset[Address] = frozenset()
    newly_listed: frozenset[tuple[Address, str]] = frozenset()
    find_lost_rules: Callable[[Iterable[tuple[Address, Declaration]]], tuple[RuleChange, ...]] | None = None
    adopting: frozenset[Address] | None = None
    zones: tuple[str, ...] = ()
    requests_per_minute: int = 0
    assumes_secrets: bool = False
    unread: frozenset[str] = frozenset()
    base_sources: Mapping[Address, Mapping[str, str]] = field(default_factory=dict)
    commit: str = ""
    now: float = 0.0

    @property
    def is_limited(self) -> bool:
        """Whether targets or excludes are given."""
        return bool(self.targets or self.excludes)

    def find_unmatched(self, addresses: Iterable[Address]) -> list[str]:
        """The globs that match none of the addresses, for example since a name is misspelled."""
        texts = [str(address) for address in addresses]
        return [
            glob
            for glob in dict.fromkeys((*self.targets, *self.excludes))
            if not any(fnmatchcase(text, glob) for text in texts)
        ]

    def selects(self, address: Address, *others: Address) -> bool:
        """Whether the plan covers the address: a target matches it, or none is given, and no exclude matches it.

        others   further addresses of the same resource
        """
        if not self.is_limited:
            return True
        addresses = (address, *others)
        wanted = not self.targets or any(fnmatchcase(str(name), glob) for name in addresses for glob in self.targets)
        return wanted and not any(map(self.is_excluded, addresses))

    def selects_of(self, kind: str) -> bool:
        """Whether the plan may cover a resource of the kind."""
        is_wanted = not self.targets or any(fnmatchcase(kind, glob.partition("/")[0]) for glob in self.targets)
        return is_wanted and not any(glob in ("*", "*/*") or glob == f"{kind}/*" for glob in self.excludes)

    def is_excluded(self, address: Address) -> bool:
        """Whether an exclude matches the address."""
        return any(fnmatchcase(str(address), glob) for glob in self.excludes)
