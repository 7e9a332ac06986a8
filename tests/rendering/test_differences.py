"""The difference of two lists or two objects on one line."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.plan import Plan
from reconciler.model.value import Hidden, Json, Ref, Value
from reconciler.rendering.html import plan_page
from reconciler.rendering.plan.differences import find_difference
from reconciler.rendering.plan.outline import build_outline, format_value
from reconciler.rendering.plan.phrases import Flavour, values
from reconciler.rendering.plan.text import render_text

EDGE = Address("TLSEdge", "shop")
MANY = [f"10.0.{number}.0/24" for number in range(10, 60)]


def update(old: Value, new: Value) -> Plan:
    fields = (FieldChange("cidrs", old, new, ChangedBy.GIT),)
    return Plan("prod", changes=(Change(EDGE, Action.UPDATE, Reason.FIELDS, id="edgtls_1", fields=fields),))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (["a", "b", "c"], ["a", "c", "d"], '- "b", + "d" (2 unchanged)'),
        (["b", "a"], ["c", "b", "a"], '+ "c" (item 1) (2 unchanged)'),
        (["a", "b"], [Ref(EDGE), "a", "b"], "+ (known after apply: TLSEdge/shop) (item 1) (2 unchanged)"),
        (["a", "b"], ["b", "a"], '- "b", + "b" (item 1) (1 unchanged)'),
        ({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]}, "- b: 2, + b: 3 (1 unchanged)"),
        ({"a": {"b": {"c": [1, 2]}}}, {"a": {"b": {"c": [1]}}}, "- a: b: c: 2"),
        ({"a": 1, "b": 2}, {"a": 1}, "- b: 2 (1 unchanged)"),
        ([Hidden("1"), "a"], [Hidden("2"), "a"], "- (sensitive) (item 1), + (sensitive) (item 1) (1 unchanged)"),
        ([[Hidden("1")], 1], [[Hidden("2")], 1], "- [(sensitive)] (item 1), + [(sensitive)] (item 1) (1 unchanged)"),
        ([{"k": Hidden("1")}, 1], [{"k": Hidden("1")}, 2], "- 1, + 2 (1 unchanged)"),
        ({"k": Hidden("1"), "n": 1}, {"k": Hidden("2"), "n": 1}, "- k: (sensitive), + k: (sensitive) (1 unchanged)"),
        (["b", "a"], ["b"], '- "a" (1 unchanged)'),
        (["a", "b"], ["b"], '- "a" (1 unchanged)'),
        (["b", "a", "c"], ["a", "c"], '- "b" (item 1) (2 unchanged)'),
        ({"x": {"k": 1}, "y": [1]}, {"x": {"k": 1}, "y": [1]}, " (2 unchanged)"),
        ({"b": 1, "a": 1, "c": 1}, {"d": 1, "c": 1}, "- a: 1, - b: 1, + d: 1 (1 unchanged)"),
        (["a"], ["b"], '["a"] → ["b"]'),
        ({"a": 1}, {"a": 2}, "{a: 1} → {a: 2}"),
        ([], ["a"], '[] → ["a"]'),
        ("a", ["a"], '"a" → ["a"]'),
    ],
)
def test_a_changed_list_shows_what_differs_on_one_line(old: Value, new: Value, line: str) -> None:
    (change,) = build_outline(update(old, new)).changes
    assert values(change.fields[0], Flavour.PLAN) == line


def test_drift_reports_on_which_side_an_item_is() -> None:
    (change,) = build_outline(update(["a", "b", "c"], ["a", "c", "d"])).changes
    assert values(change.fields[0], Flavour.DRIFT) == '"b" only on the platform, "d" only in Git (2 in both)'


def test_a_changed_item_of_a_long_list_is_shown_without_the_list() -> None:
    plan = update(MANY, [*MANY[:20], *MANY[21:]])
    assert '~ cidrs: - "10.0.30.0/24" (49 unchanged)' in render_text(plan, width=80, color=False)
    page = plan_page.render_page(plan)
    assert "10.0.30.0/24" in page
    assert "10.0.50.0/24" not in page


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("abc"),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_removed_and_added_items_lead_from_one_list_to_the_other(old: list[Json], new: list[Json]) -> None:
    difference = find_difference(old, new, format_value)
    if difference is None:
        assert not set(old) & set(new)
        return
    removed, added = (
        Counter(text.partition(" ")[0] for text in side) for side in (difference.removed, difference.added)
    )
    assert Counter(map(str, old)) - removed + added == Counter(map(str, new))
    assert difference.same == len(old) - removed.total()


@given(JSON, JSON)
def test_values_that_differ_have_a_difference_that_is_shown(old: Json, new: Json) -> None:
    difference = find_difference(old, new, format_value)
    if difference is not None:
        assert bool(difference.removed or difference.added) == (format_value(old) != format_value(new))
