"""A run that stopped after any of its calls: the next plan finishes what it began, and the account comes to rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler.model.manifest import Manifest
from reconciler.planning.planner import plan
from tests.laws.manifests import manifests
from tests.laws.world import World
from tests.planning.builders import KINDS, LENIENT

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=50, deadline=None, suppress_health_check=SLOW)
@given(manifests(), manifests(), manifests(), st.data())
def test_whatever_was_done_of_two_plans_the_third_comes_to_rest(
    before: Manifest, between: Manifest, after: Manifest, data: Any
) -> None:
    world = World(KINDS)
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
