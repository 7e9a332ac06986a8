"""Laws of reviewed changes, over random worlds: a plan in a file and the same plan, created again, are recognized."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.value import Secret
from reconciler.planning.reviewed_changes import digest_changes, find_unreviewed
from reconciler.rendering.wire import plan_json
from tests.harness.tiers import examples
from tests.laws.manifests import manifests
from tests.laws.test_laws import apply_manifest, make_plan

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

law = settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def from_file(plan: Plan) -> Plan:
    """The plan as it is read from an artifact, without its secrets."""
    return plan_json.read_plan(plan_json.write_plan(plan), lambda source, _: Secret("", source))


@law
@given(manifests(), manifests())
def test_the_same_changes_planned_again_are_those_of_the_file(before: Manifest, after: Manifest) -> None:
    world = apply_manifest(before)
    reviewed = digest_changes(from_file(make_plan(after, world)))
    assert find_unreviewed(make_plan(after, world.copy()), reviewed, has_begun=False) == []


@law
@given(manifests(), manifests(), manifests())
def test_changes_of_another_plan_are_reviewed_only_if_they_are_the_same(
    before: Manifest, after: Manifest, other: Manifest
) -> None:
    world = apply_manifest(before)
    reviewed, actual = from_file(make_plan(after, world)), make_plan(other, world)
    unreviewed = set(find_unreviewed(actual, digest_changes(reviewed), has_begun=False))
    calls = {call.id: (call.path, call.target, call.body, call.deliver) for call in from_file(actual).calls}
    same = {call.id: (call.path, call.target, call.body, call.deliver) for call in reviewed.calls}
    for call in actual.calls:
        if str(call.address) not in unreviewed:
            assert same.get(call.id) == calls[call.id]
