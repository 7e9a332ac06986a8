"""The account as a plan leaves it, as far as it decides about access: the same as after the apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler import kinds
from reconciler.access.account import Account, Resource
from reconciler.access.compare import compare
from reconciler.access.programs import Builder
from reconciler.model.manifest import Manifest
from reconciler.planning import planner
from reconciler.planning.planner import PlanOptions
from tests.harness.tiers import examples
from tests.harness.world import RandomAccount
from tests.laws.manifests import manifests

KINDS = kinds.every()
SCOPES = ("*", *(kind.name for kind in KINDS))
APPROVED = PlanOptions(
    allow={(what, scope): 99 for what in ("delete", "delete-protected", "update") for scope in SCOPES}
)
law = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def find_differences(one: Iterable[Resource], other: Iterable[Resource]) -> list[str]:
    builder = Builder()
    changes = compare(Account(one, builder), Account(other, builder))
    return [f"{change.verdict} {change.region}: {change.witness}" for change in changes]


def resolve(resources: Iterable[Resource], world: RandomAccount) -> Iterator[Resource]:
    """The resources with the values that were known only after the apply."""
    outputs = {
        f"${{{{ {live.owner.address}.{name} }}}}": value
        for listing in world.snapshot().listings.values()
        for live in listing.objects
        if live.owner is not None
        for name, value in live.body.items()
        if isinstance(value, str)
    }

    def insert(value: Any) -> Any:
        match value:
            case str():
                for text, known in outputs.items() if "${{" in value else ():
                    value = value.replace(text, known)
                return value
            case dict():
                return {key: insert(item) for key, item in value.items()}
            case list():
                return [insert(item) for item in value]
        return value

    return (replace(resource, fields=insert(dict(resource.fields))) for resource in resources)


def list_states(
    manifest: Manifest, world: RandomAccount, options: PlanOptions = APPROVED
) -> tuple[tuple[Resource, ...], tuple[Resource, ...]]:
    return planner.list_states(manifest, world.snapshot(), KINDS, options)


def apply(manifest: Manifest, world: RandomAccount, options: PlanOptions = APPROVED) -> None:
    plan = planner.plan(manifest, world.snapshot(), KINDS, options)
    assume(not plan.problems)
    world.carry_out(plan)


@law
@given(manifests(), manifests())
def test_the_account_is_as_predicted_after_an_apply(before: Manifest, after: Manifest) -> None:
    world = RandomAccount(KINDS)
    apply(before, world)
    _, predicted = list_states(after, world)
    apply(after, world)
    live, again = list_states(after, world)
    assert find_differences(resolve(predicted, world), live) == []
    assert find_differences(live, again) == []


@law
@given(manifests(), manifests(), st.data())
def test_the_account_is_as_predicted_after_an_apply_of_targets(
    before: Manifest, after: Manifest, data: st.DataObject
) -> None:
    world = RandomAccount(KINDS)
    apply(before, world)
    addresses = sorted({*before.declarations, *after.declarations})
    targets = data.draw(st.lists(st.sampled_from(addresses), min_size=1, max_size=3)) if addresses else []
    options = replace(APPROVED, targets=tuple(map(str, targets)))
    _, predicted = list_states(after, world, options)
    apply(after, world, options)
    live, _ = list_states(after, world)
    assert find_differences(resolve(predicted, world), live) == []


@law
@given(manifests(), st.data())
def test_the_account_is_as_predicted_after_replacements(manifest: Manifest, data: st.DataObject) -> None:
    world = RandomAccount(KINDS)
    apply(manifest, world)
    assume(manifest.declarations)
    replaced = data.draw(st.lists(st.sampled_from(sorted(manifest.declarations)), min_size=1, max_size=3))
    options = replace(APPROVED, to_replace=frozenset(replaced))
    _, predicted = list_states(manifest, world, options)
    apply(manifest, world, options)
    live, _ = list_states(manifest, world)
    assert find_differences(resolve(predicted, world), live) == []
