"""`Rules`: what one side of a review demands and exempts, what the other side loosens, and the stricter of both."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct, field, to_builtins

from reconciler.model.access_test import AccessTest
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Ensure, Lifecycle, Manifest
from reconciler.model.problem import Position, Severity
from reconciler.model.rule_change import RuleChange, RuleRisk
from reconciler.model.value import Json, canonical
from reconciler.planning.judging.strictness import POLICY, RESOURCE, SETTINGS, UNREADABLE
from reconciler.planning.policies.rule import Rule

_PLAIN = Lifecycle()


class Rules(Struct, frozen=True, dict=True):
    """The rules of a project in one environment.

    settings   by name, as `SETTINGS` has them: the effective values
    policies   by name
    manifest   the declarations, whose `lifecycle`, `deliver` and `rotate` are rules too
    positions  of the settings
    tests      of access
    """

    settings: Mapping[str, Json]
    policies: Mapping[str, Rule] = field(default_factory=dict)
    manifest: Manifest = field(default_factory=lambda: Manifest("", {}))
    positions: Mapping[str, Position] = field(default_factory=dict)
    tests: tuple[AccessTest, ...] = ()

    @cached_property
    def digest(self) -> str:
        """A digest of all rules except those of resources."""
        policies: Json = {name: describe_policy(rule) for name, rule in self.policies.items()}
        tests: Json = [describe_test(test) for test in self.tests]
        return _digest(dict(self.settings), policies, tests)

    @cached_property
    def of_resources(self) -> Mapping[Address, Mapping[str, Json]]:
        """The rules of the resources that have others than the usual ones."""
        return {
            address: describe_resource(declaration)
            for address, declaration in self.manifest.declarations.items()
            if not _is_plain(declaration)
        }


def find_rule_changes(base: Rules, head: Rules) -> tuple[RuleChange, ...]:
    """What `head` loosens or applies elsewhere: settings first, then policies, access tests, and resources."""
    return (
        *_compare_settings(base, head),
        *_compare_policies(base, head),
        *_compare_tests(base, head),
        *_compare_resources(base, head),
    )


def find_lost_rules(base: Rules, takers: Iterable[tuple[Address, Declaration]]) -> tuple[RuleChange, ...]:
    """The rules of `base` that objects lose by a new address.

    takers  the declarations that take over an object of another address, each with that address. Those that name it
            under `moved` are compared without a snapshot
    """
    declared = base.manifest.declarations
    return tuple(
        change
        for former, declaration in takers
        if former in declared and former not in (declaration.address, *declaration.moved)
        for change in _compare_resource(declaration.address, declared[former], declaration)
    )


def report_unreadable(part: str, why: str, causes: Json, head: Rules) -> RuleChange:
    """The change that says that rules of the base are not known.

    part    settings, policies, access-tests or manifests
    causes  what identifies the problems; the approval is for these
    """
    subject = f"{UNREADABLE}/{part}"
    digest = _digest(subject, causes, head.digest)
    return RuleChange(RuleRisk.LOOSENS, UNREADABLE, subject, why, None, digest)


def combine_settings(base: Rules, head: Rules, approved: Collection[str]) -> Mapping[str, Json]:
    """The stricter value of each setting; of those whose change is approved, and of places, that of `head`."""
    return {
        name: order.strictest(base.settings[name], value)
        if (order := SETTINGS[name]) is not None and order.strictest is not None and name not in approved
        else value
        for name, value in head.settings.items()
    }


def select_policies(base: Rules, head: Rules, approved: Collection[str]) -> list[Rule]:
    """The policies of `base` that are evaluated beside those of `head`: those that `head` loosens without approval."""
    changes = _compare_policies(base, head)
    return [
        base.policies[change.subject.removeprefix("policy/")] for change in changes if change.subject not in approved
    ]


def select_tests(base: Rules, head: Rules, approved: Collection[str]) -> list[AccessTest]:
    """The access tests of `base` that are run beside those of `head`: those that it lacks without approval."""
    return [test for test in _find_lost_tests(base, head) if _name_test(test) not in approved]


def find_protected(base: Rules, head: Rules, approved: Collection[str]) -> frozenset[Address]:
    """The addresses that `base` protects, unless `head` removes the protection with approval."""
    released = {
        former
        for address in head.manifest.declarations
        if f"{address}.lifecycle.protect" in approved
        for former in _find_formers(base, head.manifest.declarations[address])
    }
    return frozenset(
        address
        for address, declaration in base.manifest.declarations.items()
        if declaration.lifecycle.protect and address not in released
    )


def find_newly_listed(base: Rules, head: Rules) -> frozenset[tuple[Address, str]]:
    """The addresses of `head` with the kinds of children that they list, and did not list in `base`.

    A resource that the base does not have is included: it may be adopted, with children.
    """
    declared = base.manifest.declarations
    return frozenset(
        (address, kind)
        for address, declaration in head.manifest.declarations.items()
        for kind in declaration.listed
        if not any(kind in declared[former].listed for former in _find_formers(base, declaration))
    )


def find_adopting(base: Rules, head: Rules) -> frozenset[Address]:
    """The addresses of `head` whose `lifecycle.adopt` the base has too, so that it counts as approval."""
    declared = base.manifest.declarations
    return frozenset(
        address
        for address, declaration in head.manifest.declarations.items()
        if declaration.lifecycle.adopt
        and any(declared[former].lifecycle.adopt for former in _find_formers(base, declaration))
    )


def describe_policy(rule: Rule) -> dict[str, Json]:
    """What a policy demands, by the names of `POLICY`."""
    exemptions: dict[str, Json] = {}
    for exemption in rule.exemptions:
        until = exemption.until.isoformat()
        exemptions[exemption.addresses] = max(until, str(exemptions.get(exemption.addresses, "")))
    return {
        "severity": "error" if rule.severity is Severity.ERROR else "warning",
        "scope.kinds": sorted(rule.kinds),
        "scope.addresses": sorted(rule.addresses),
        "scope.actions": sorted(map(str, rule.actions)),
        "check": rule.check.text,
        "exemptions": exemptions,
        "about": rule.about,
    }


def describe_resource(declaration: Declaration) -> dict[str, Json]:
    """The rules of one resource, by the names of `RESOURCE`."""
    lifecycle, rotate = declaration.lifecycle, declaration.rotate
    return {
        "lifecycle.protect": lifecycle.protect and declaration.ensure is Ensure.PRESENT,
        "lifecycle.ignore": sorted(lifecycle.ignore),
        "lifecycle.replace": lifecycle.replace,
        "lifecycle.unmanaged_children": lifecycle.unmanaged_children,
        "deliver": {
            output: [delivery.way, delivery.target, dict(delivery.settings)]
            for output, delivery in sorted(declaration.deliver.items())
        },
        "rotate": {"after": rotate.after, "overlap": rotate.overlap} if rotate is not None else None,
    }


def _compare_settings(base: Rules, head: Rules) -> Iterator[RuleChange]:
    for name, order in SETTINGS.items():
        if order is not None and order.loosens(before := base.settings[name], after := head.settings[name]):
            yield _change(order.risk, name, name, before, after, head.positions.get(name))


def _compare_policies(base: Rules, head: Rules) -> Iterator[RuleChange]:
    for name, rule in sorted(base.policies.items()):
        before, other = describe_policy(rule), head.policies.get(name)
        if other is None:
            excerpt: tuple[Json, Json] = ({"check": before["check"]}, None)
            yield _change(RuleRisk.LOOSENS, "policy", f"policy/{name}", before, None, None, excerpt)
            continue
        after = describe_policy(other)
        loosened = [
            part for part, order in POLICY.items() if order is not None and order.loosens(before[part], after[part])
        ]
        if loosened:
            parts: tuple[Json, Json] = (_pick(before, loosened), _pick(after, loosened))
            yield _change(RuleRisk.LOOSENS, "policy", f"policy/{name}", before, after, other.position, parts)


def _compare_tests(base: Rules, head: Rules) -> Iterator[RuleChange]:
    for test in _find_lost_tests(base, head):
        excerpt: tuple[Json, Json] = ({"expect": str(test.expect)}, None)
        before = describe_test(test)
        yield _change(RuleRisk.LOOSENS, "access-test", _name_test(test), before, None, None, excerpt)


def _find_lost_tests(base: Rules, head: Rules) -> Iterator[AccessTest]:
    """The tests of `base` whose addresses no tests of `head` cover that expect the same of the same request."""
    if not base.tests:
        return
    from reconciler.access.networks import Networks, parse_networks

    covered: dict[object, Networks] = {}
    for test in head.tests:
        for key in _list_demands(test):
            covered[key] = covered.get(key, Networks()) | parse_networks(test.sources)
    for test in base.tests:
        *_, demand = _list_demands(test)
        if parse_networks(test.sources) - covered.get(demand, Networks()):
            yield test


def _list_demands(test: AccessTest) -> Iterator[object]:
    """What a test demands of a request, as an error and as a warning: the last one is its own severity."""
    request = canonical([test.target, test.binding, to_builtins(test.caller), str(test.expect)])
    yield request, Severity.WARNING
    if test.severity is Severity.ERROR:
        yield request, Severity.ERROR


def describe_test(test: AccessTest) -> dict[str, Json]:
    """What an access test demands."""
    return {
        "from": sorted(test.sources),
        "to": test.target,
        "binding": test.binding,
        "with": to_builtins(test.caller),
        "expect": str(test.expect),
        "severity": str(test.severity),
    }


def _name_test(test: AccessTest) -> str:
    return f"access-test/{test.name}"


def _compare_resources(base: Rules, head: Rules) -> Iterator[RuleChange]:
    """Compares the resources that both sides declare. A deletion needs approval by other rules."""
    for address, declaration in head.manifest.declarations.items():
        for former in _find_formers(base, declaration):
            yield from _compare_resource(address, base.manifest.declarations[former], declaration)


def _compare_resource(address: Address, earlier: Declaration, declaration: Declaration) -> Iterator[RuleChange]:
    if declaration.ensure is Ensure.ABSENT or (_is_plain(earlier) and _is_plain(declaration)):
        return
    before, after = describe_resource(earlier), describe_resource(declaration)
    is_forgotten = declaration.ensure is Ensure.FORGOTTEN
    for name, order in RESOURCE.items():
        if is_forgotten and name != "lifecycle.protect":
            continue
        if order is not None and order.loosens(before[name], after[name]):
            yield _change(order.risk, name, f"{address}.{name}", before[name], after[name], declaration.position)


def _find_formers(base: Rules, declaration: Declaration) -> list[Address]:
    """The addresses under which `base` declares the resource, of which all but one may have been moved here."""
    addresses = dict.fromkeys((declaration.address, *declaration.moved))
    return [address for address in addresses if address in base.manifest.declarations]


def _pick(values: Mapping[str, Json], names: Collection[str]) -> Json:
    return {name: values[name] for name in names}


def _is_plain(declaration: Declaration) -> bool:
    is_usual = declaration.lifecycle is _PLAIN or declaration.lifecycle == _PLAIN
    return is_usual and not declaration.deliver and declaration.rotate is None


def _change(
    risk: RuleRisk,
    rule: str,
    subject: str,
    before: Json,
    after: Json,
    position: Position | None,
    excerpt: tuple[Json, Json] | None = None,
) -> RuleChange:
    """`excerpt`: the parts of both values that people see."""
    digest = _digest(str(risk), subject, before, after)
    return RuleChange(risk, rule, subject, *(excerpt or (before, after)), digest, position)


def _digest(*parts: Json) -> str:
    """Long enough that two changes with the same digest, one of them harmless, cannot be found."""
    return hashlib.blake2b(canonical(list(parts)), digest_size=16).hexdigest()
