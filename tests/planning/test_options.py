"""Which addresses a plan covers, by its targets and excludes."""

from __future__ import annotations

import pytest

from reconciler.planning.deciding.options import PlanOptions
from tests.harness.builders import at

ADDRESSES = [at("TLSEdge/pay"), at("TLSEdge/shop"), at("IPPolicy/pay")]


@pytest.mark.parametrize(
    ("targets", "excludes", "selected"),
    [
        ((), (), ["TLSEdge/pay", "TLSEdge/shop", "IPPolicy/pay"]),
        (("TLSEdge/*",), (), ["TLSEdge/pay", "TLSEdge/shop"]),
        (("*/pay",), (), ["TLSEdge/pay", "IPPolicy/pay"]),
        (("TLSEdge/shop", "IPPolicy/*"), (), ["TLSEdge/shop", "IPPolicy/pay"]),
        (("tlsedge/*",), (), []),
        (("TLSEdge",), (), []),
        ((), ("*/pay",), ["TLSEdge/shop"]),
        ((), ("TLSEdge/pay", "IPPolicy/*"), ["TLSEdge/shop"]),
        (("TLSEdge/*",), ("*/pay",), ["TLSEdge/shop"]),
        (("TLSEdge/*",), ("TLSEdge/*",), []),
        (("TLSEdge/*",), ("IPPolicy/*",), ["TLSEdge/pay", "TLSEdge/shop"]),
    ],
)
def test_a_plan_covers_its_targets_without_its_excludes(
    targets: tuple[str, ...], excludes: tuple[str, ...], selected: list[str]
) -> None:
    options = PlanOptions(targets=targets, excludes=excludes)
    assert [str(address) for address in ADDRESSES if options.selects(address)] == selected
    assert options.is_limited is bool(targets or excludes)


def test_only_an_exclude_excludes() -> None:
    options = PlanOptions(targets=("TLSEdge/*",), excludes=("*/pay", "*/x"))
    assert [options.is_excluded(address) for address in ADDRESSES] == [True, False, True]


def test_a_glob_that_matches_nothing_is_reported_once() -> None:
    options = PlanOptions(targets=("TLSEdge/*", "TLSEgde/*", "*/x"), excludes=("IPPolicy/pay", "*/x", "IPPolicy/y"))
    assert options.find_unmatched(ADDRESSES) == ["TLSEgde/*", "*/x", "IPPolicy/y"]
    assert options.find_unmatched([]) == ["TLSEdge/*", "TLSEgde/*", "*/x", "IPPolicy/pay", "IPPolicy/y"]
    assert PlanOptions().find_unmatched(ADDRESSES) == []
