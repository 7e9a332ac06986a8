"""Laws of merging layers: the values of the result, and the position of each."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages.yaml import reader as yaml
from reconciler.project.documents.merge import Layer, Role, apply_patch, merge

KEYS = st.sampled_from(["a", "b", "c", "ref", "spec"])
LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", "y"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=4)


def layer(role: Role, value: Any, file: str) -> Layer:
    document = yaml.read(json.dumps(value, indent=1).encode(), file).documents[0]
    return Layer(role, document.value, document.places)


def merge_layers(*values: Any) -> yaml.Document:
    roles = (Role.DEFAULTS, Role.MANIFEST, Role.ENVIRONMENT)
    layers = [layer(role, value, f"{role.name}.yaml") for role, value in zip(roles, values, strict=True)]
    return merge(layers, layers[1])


def reverse_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reverse_keys(item) for key, item in reversed(value.items())}
    return value


@given(MAPS)
def test_an_empty_patch_changes_nothing(value: Any) -> None:
    assert apply_patch(value, {}) == (value if not (len(value) == 1 and "ref" in value) else {})


@given(MAPS, MAPS)
def test_the_order_of_keys_does_not_change_a_merge(value: Any, patch: Any) -> None:
    assert apply_patch(value, patch) == apply_patch(reverse_keys(value), reverse_keys(patch))


@given(MAPS, MAPS)
def test_applying_a_patch_twice_changes_nothing(value: Any, patch: Any) -> None:
    once = apply_patch(value, patch)
    assert apply_patch(once, patch) == once


@given(MAPS, MAPS, MAPS)
def test_each_value_has_the_position_where_it_was_written(below: Any, own: Any, above: Any) -> None:
    document = merge_layers(below, own, above)
    files = {"DEFAULTS.yaml": below, "MANIFEST.yaml": own, "ENVIRONMENT.yaml": above}
    for path in document.places:
        here, value = files[document.places[path].file], document.value
        for part in path:
            here, value = here[part], value[part]
        assert isinstance(value, dict) or here == value


@given(MAPS, MAPS, MAPS)
def test_each_value_has_a_position(below: Any, own: Any, above: Any) -> None:
    document = merge_layers(below, own, above)
    assert set(document.places) == set(layer(Role.MANIFEST, document.value, "all.yaml").places)


def test_a_reference_is_replaced_as_a_whole() -> None:
    assert apply_patch({"id": {"ref": "IPPolicy/a"}}, {"id": {"from_env": "ID"}}) == {"id": {"from_env": "ID"}}


def test_null_removes_the_value_of_a_lower_layer() -> None:
    document = merge_layers({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": None, "d": None})
    assert document.value == {"c": None}
