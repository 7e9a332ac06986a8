"""How strict each rule of a project is: which new value loosens it, and the stricter of two values.

Every setting, every field of a policy and every field of a manifest has a row. None: it says nothing about what a
change may do, or a plan shows and guards its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from reconciler.model.rule_change import RuleRisk
from reconciler.model.value import Json

_NEVER: Final = "9999-12-31"


class Strictness(Struct, frozen=True):
    """The order of one rule's values. A value None means that the rule is not set.

    loosens(before, after)    whether `after` demands less than `before`, or exempts more
    strictest(before, after)  a value that is at least as strict as both. None: the values cannot be combined
    """

    loosens: Callable[[Any, Any], bool]
    strictest: Callable[[Any, Any], Json] | None = None
    risk: RuleRisk = RuleRisk.LOOSENS


def _differs(before: Json, after: Json) -> bool:
    return bool(before != after)


def _replaces(before: Json, after: Json) -> bool:
    return before is not None and bool(before != after)


def _removes(before: list[Json], after: list[Json]) -> bool:
    return any(item not in after for item in before)


def _union(before: list[str], after: list[str]) -> list[Json]:
    return [*sorted({*before, *after})]


def _adds(before: list[Json], after: list[Json]) -> bool:
    return _removes(after, before)


def _intersection(before: list[str], after: list[str]) -> list[Json]:
    return [*sorted({*before} & {*after})]


def _exempts_more(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether there is another exemption, or one lasts longer. Exemptions are written as pattern → last day."""
    return any(until > before.get(pattern, "") for pattern, until in after.items())


def _fewest_exemptions(before: Mapping[str, str], after: Mapping[str, str]) -> Json:
    return {pattern: min(until, after[pattern]) for pattern, until in before.items() if pattern in after}


def _narrows(before: list[Json], after: list[Json]) -> bool:
    """Whether a scope covers less. An empty one covers everything."""
    return bool(after) and (not before or _removes(before, after))


def _widest(before: list[str], after: list[str]) -> list[Json]:
    return _union(before, after) if before and after else []


def _budget(limit: int) -> float:
    return limit or float("inf")  # 0: no limit


def _rotates_later(before: Mapping[str, int] | None, after: Mapping[str, int] | None) -> bool:
    if before is None:
        return False
    return after is None or any(after[name] > before[name] for name in ("after", "overlap"))


def _delivers_elsewhere(before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    return any(target != before.get(output) for output, target in after.items())


PLACE: Final = Strictness(_differs, risk=RuleRisk.PLACE)
LOWER: Final = Strictness(lambda before, after: after > before, min)
HIGHER: Final = Strictness(lambda before, after: after < before, max)
BUDGET: Final = Strictness(
    lambda before, after: _budget(after) > _budget(before), lambda before, after: min(before, after, key=_budget)
)
MORE: Final = Strictness(_removes, _union)
FEWER: Final = Strictness(_adds, _intersection)
EXEMPTIONS: Final = Strictness(_exempts_more, _fewest_exemptions)
WIDER: Final = Strictness(_narrows, _widest)
SET: Final = Strictness(lambda before, after: before and not after, lambda before, after: before or after)
UNSET: Final = Strictness(lambda before, after: after and not before, lambda before, after: before and after)
KEPT: Final = Strictness(_replaces)
SAME: Final = Strictness(_differs)
SEVERITY: Final = Strictness(
    lambda before, after: (before, after) == ("error", "warning"),
    lambda before, after: "error" if "error" in (before, after) else "warning",
)

SETTINGS: Final[Mapping[str, Strictness | None]] = {
    "version": None,
    "stack": PLACE,
    "platform.base_url": PLACE,
    "platform.api_key": PLACE,
    "platform.profile": PLACE,
    "platform.account": PLACE,
    "agent.base_url": PLACE,
    "manifests": PLACE,
    "components": None,  # a component declares what a manifest may declare, and nothing that judges
    "policies": MORE,
    "limits.requests_per_minute": BUDGET,
    "limits.concurrency": LOWER,
    "limits.settle_seconds": HIGHER,
    "guards.max_delete_percent": LOWER,
    "guards.max_update_percent": LOWER,
    "guards.require_approval": MORE,
    "snapshots.public_key": KEPT,
    "drift.ignore": EXEMPTIONS,
    "dns.zones": None,  # records are written for review, and never set
    "health.expires_within": None,  # decides what is reported, and never what is changed
    "variables": None,  # fill manifests, whose changes the plan shows
    "defaults": None,  # are part of each manifest, which is compared
    "store": PLACE,
}

POLICY: Final[Mapping[str, Strictness | None]] = {
    "policy": None,  # its name: a renamed policy is a removed one, and a new one
    "description": None,
    "severity": SEVERITY,
    "scope.kinds": WIDER,
    "scope.addresses": WIDER,
    "scope.actions": WIDER,
    "check": SAME,
    "message": None,
    "remedy": None,
    "field": None,
    "exemptions": EXEMPTIONS,
    "about": SAME,  # what it is evaluated for: also the message decides that
}

RESOURCE: Final[Mapping[str, Strictness | None]] = {
    "kind": None,
    "name": None,
    "id": None,  # adoption needs approval
    "ensure": None,  # deletion needs approval; `forgotten` counts as unprotected
    "moved": None,
    "lifecycle.protect": SET,
    "lifecycle.ignore": FEWER,
    "lifecycle.adopt": None,  # counts as approval of an adoption only if the base has it too
    "lifecycle.replace": UNSET,
    "lifecycle.unmanaged_children": Strictness(lambda before, after: after == "ignore" != before),
    "deliver": Strictness(_delivers_elsewhere, risk=RuleRisk.PLACE),
    "rotate": Strictness(_rotates_later),
    "spec": None,  # the plan shows its changes
}


def is_demand(order: Strictness | None) -> bool:
    """Whether a row is about what a change may do, and not about where it applies."""
    return order is not None and order.risk is RuleRisk.LOOSENS


UNREADABLE: Final = "base"
"""The rule whose change says that rules of the base cannot be read."""

RULES: Final = {
    RuleRisk.LOOSENS: (
        UNREADABLE,
        *(name for name, order in SETTINGS.items() if order and order.risk is RuleRisk.LOOSENS),
        "policy",
        "access-test",
        *(name for name, order in RESOURCE.items() if order and order.risk is RuleRisk.LOOSENS),
    ),
    RuleRisk.PLACE: tuple(
        name for name, order in {**SETTINGS, **RESOURCE}.items() if order and order.risk is RuleRisk.PLACE
    ),
}
"""The rules by risk, as `--allow loosens_rule:guards.require_approval=1` names them."""
