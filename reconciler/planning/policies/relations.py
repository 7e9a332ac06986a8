"""`Relations`: what each declared resource refers to, and what refers to it. Indexed once for all policies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from reconciler.languages import cel_cost
from reconciler.languages.cel import EvaluationFailed
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.manifest import Ensure, Manifest
from reconciler.planning.ordering.dependencies import HostIndex, find_dependencies

_MOST: Final = 256 * 1024 * 1024  # characters and items that one policy may read in all evaluations: half a minute
_TOO_MUCH: Final = (
    "it reads more than 256 million characters and items; name the kinds in its scope, or use refs or referrers instead"
    " of plan.resources"
)


class Relations:
    """The declared resources as expressions see them, and their references.

    describe      a resource as expressions see it
    most_of_entry the largest number of resources that decide about one entry point
    rule          the policy that is evaluated
    """

    def __init__(
        self,
        manifest: Manifest,
        kinds: Mapping[str, Kind],
        describe: Callable[[Address], dict[str, Any]],
        most_of_entry: int = 0,
    ) -> None:
        self._manifest, self._kinds, self._describe, self._most_of_entry = manifest, kinds, describe, most_of_entry
        self._values: dict[Address, dict[str, Any]] = {}
        self._sizes: dict[Address, float] = {}
        self._read: dict[str, float] = defaultdict(float)
        self.rule = ""

    @cached_property
    def addresses(self) -> Mapping[str, Address]:
        """The resources that are declared to exist."""
        declarations = self._manifest.declarations.items()
        return {str(address): address for address, item in declarations if item.ensure is Ensure.PRESENT}

    @cached_property
    def resources(self) -> list[dict[str, Any]]:
        """All declared resources as expressions see them."""
        return list(map(self._value, self.addresses.values()))

    def find_described(self, address: Address) -> dict[str, Any] | None:
        """A resource as expressions see it, if a policy has read it before; else None."""
        return self._values.get(address)

    def find_bound(self, name: str) -> cel_cost.Bound:
        """The upper bound of a function's result, for any argument."""
        return self._bounds[name]

    @cached_property
    def _bounds(self) -> Mapping[str, cel_cost.Bound]:
        item = cel_cost.limit_each(self.resources)
        refs, referrers = (max(map(len, of.values()), default=0) for of in (self._refs, self._referrers))
        most = {"refs": max(refs, self._most_of_entry), "referrers": referrers}
        return {name: cel_cost.limit_list(number, item) for name, number in most.items()}

    def call(self, name: str, argument: Mapping[str, Any]) -> list[Any]:
        """Answers `refs` and `referrers`, of a resource or an entry point."""
        self._charge(cel_cost.measure(argument).whole)
        found = []
        for address in self._find(name, argument):
            found.append(self._value(address))
            self._charge(self._sizes[address])
        return found

    def charge(self, value: Any) -> None:
        """Adds the size of what the rule reads to all that it has read; raises EvaluationFailed if it is too much."""
        self._charge(cel_cost.measure(value).whole)

    def _charge(self, size: float) -> None:
        self._read[self.rule] += size
        if self._read[self.rule] > _MOST:
            raise EvaluationFailed(_TOO_MUCH)

    def _find(self, name: str, argument: Mapping[str, Any]) -> Sequence[Address]:
        if (
            name == "refs"
            and isinstance(names := argument.get("resources"), list)
            and len(names) <= self._most_of_entry
        ):
            return [self.addresses[resource] for resource in names if resource in self.addresses]
        if not isinstance(text := argument.get("address"), str):
            raise EvaluationFailed(f"{name} needs a resource{' or an entry point' if name == 'refs' else ''}")
        return (self._refs if name == "refs" else self._referrers).get(text, ())

    def _value(self, address: Address) -> dict[str, Any]:
        if address not in self._values:
            self._values[address] = self._describe(address)
            self._sizes[address] = cel_cost.measure(self._values[address]).whole
        return self._values[address]

    @cached_property
    def _refs(self) -> Mapping[str, Sequence[Address]]:
        needs = find_dependencies(self._manifest, self._kinds, self._index_hosts())
        declared = {*self.addresses.values()}
        return {
            str(address): sorted(declared.intersection(needed))
            for address, needed in needs.items()
            if address in declared
        }

    @cached_property
    def _referrers(self) -> Mapping[str, Sequence[Address]]:
        found: dict[str, list[Address]] = defaultdict(list)
        for name in sorted(self._refs):
            for target in self._refs[name]:
                found[str(target)].append(self.addresses[name])
        return found

    def _index_hosts(self) -> HostIndex[Address]:
        hosts: HostIndex[Address] = HostIndex()
        for address in self.addresses.values():
            name = self._kinds[address.kind].host
            if name is not None:
                hosts.add(self._manifest.declarations[address].spec.get(name), address)
        return hosts
