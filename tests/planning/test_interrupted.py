"""A run that stopped after any of its calls: the next plan finishes what it began, and the account comes to rest."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.manifest import Manifest
from reconciler.planning.planner import plan
from tests.harness.tiers import examples
from tests.laws.manifests import manifests, rename_some
from tests.laws.world import RandomAccount
from tests.planning.builders import KINDS, LENIENT

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=examples(50), suppress_health_check=SLOW)
@given(manifests(), manifests(), manifests(), st.data())
def test_whatever_was_done_of_two_plans_the_third_comes_to_rest(
    before: Manifest, between: Manifest, after: Manifest, data: Any
) -> None:
    world = RandomAccount(KINDS)
    for manifest in (before, between):
        made = plan(manifest, world.snapshot(), KINDS, LENIENT)
        assume(not made.problems)
        done = data.draw(st.integers(0, len(made.calls)))
        world.carry_out(replace(made, calls=made.calls[:done], bindings={}))
    made = plan(after, world.snapshot(), KINDS, LENIENT)
    assume(not made.problems)
    world.carry_out(made)
    again = plan(after, world.snapshot(), KINDS, LENIENT)
    assert (again.changes, again.calls) == ((), ())
    assert len(world.objects) == len(after.declarations)


@settings(max_examples=examples(50), suppress_health_check=SLOW)
@given(manifests(), manifests(), st.data())
def test_whatever_was_done_of_a_rename_with_a_change_the_next_plan_does_the_rest(
    before: Manifest, after: Manifest, data: Any
) -> None:
    world = RandomAccount(KINDS)
    world.carry_out(plan(before, world.snapshot(), KINDS, LENIENT))
    both = sorted(before.declarations.keys() & after.declarations.keys())
    assume(both)
    chosen = data.draw(st.lists(st.sampled_from(both), min_size=1, unique=True))
    after = rename_some(after, "new", {each: (each,) for each in {each.kind: each for each in chosen}.values()})
    made = plan(after, world.snapshot(), KINDS, LENIENT)
    assume(not made.problems)
    done = data.draw(st.integers(0, len(made.calls)))
    world.carry_out(replace(made, calls=made.calls[:done], bindings={}))
    rest = plan(after, world.snapshot(), KINDS, LENIENT)
    assert rest.errors == ()
    world.carry_out(rest)
    again = plan(after, world.snapshot(), KINDS, LENIENT)
    assert (again.changes, again.calls) == ((), ())
    assert len(world.objects) == len(after.declarations)
