"""Lists that are incomplete: what they may lack is reported, and is not taken for absent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.model.problem import Severity
from reconciler.model.snapshot import Binding, Listing
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import at, declare, make_plan, snapshot

BOUND = {"IPPolicy/office": Binding("ipp_1")}


def report(options: PlanOptions, *, bound: bool = False, denied: bool = False, declared: bool = False) -> list[tuple]:
    seen = snapshot(cut=["IPPolicy"], bindings=BOUND if bound else {})
    if denied:
        seen = replace(seen, listings={**seen.listings, "IPPolicy": Listing(complete=False, why="no", denied=True)})
    manifests = [declare("IPPolicy/office", {})] if declared else []
    plan = make_plan(*manifests, seen=seen, options=options)
    return [(found.code, found.subject, found.severity) for found in plan.problems]


ERROR = ("kind-not-listed", "IPPolicy", Severity.ERROR)
WARNING = ("kind-not-listed", "IPPolicy", Severity.WARNING)


@pytest.mark.parametrize("bound", [True, False])
def test_a_stack_is_not_called_destroyed_if_a_list_may_lack_its_objects(bound: bool) -> None:
    assert report(PlanOptions(destroy=True), bound=bound) == [ERROR]


def test_an_object_recorded_in_the_store_is_not_called_deleted_if_its_list_could_not_be_read() -> None:
    assert report(PlanOptions(), bound=True) == [WARNING]
    assert report(PlanOptions()) == []


@pytest.mark.parametrize(
    ("options", "reports"),
    [
        (PlanOptions(destroy=True, targets=("IPPolicy/*",)), True),
        (PlanOptions(destroy=True, targets=("*Policy/office",)), True),
        (PlanOptions(destroy=True, targets=("BotUser/*",)), False),
        (PlanOptions(destroy=True, excludes=("IPPolicy/*",)), False),
        (PlanOptions(destroy=True, excludes=("IPPolicy/office",)), True),
        (PlanOptions(destroy=True, excludes=("*",)), False),
    ],
)
def test_only_lists_of_selected_kinds_are_reported(options: PlanOptions, reports: bool) -> None:
    assert report(options) == ([ERROR] if reports else [])


def test_a_list_is_reported_once() -> None:
    declared = report(PlanOptions(), bound=True, declared=True)
    assert declared == [("kind-not-listed", str(at("IPPolicy/office")), Severity.ERROR)]
    assert [code for code, _, _ in report(PlanOptions(), bound=True, denied=True)] == ["kind-not-readable"]
