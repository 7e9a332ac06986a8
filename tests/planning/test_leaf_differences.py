"""Values at paths inside a field."""

from __future__ import annotations

import pytest

from reconciler.model.value import Value
from reconciler.planning.comparing.leaf_differences import leaf_value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("top", {"a": {"b": 1}}),
        ("top.a", {"b": 1}),
        ("top.a.b", 1),
        ("top.a.b.c", None),
        ("top.x", None),
        ("top.x.y", None),
    ],
)
def test_a_path_begins_with_the_name_of_its_field(path: str, value: Value) -> None:
    assert leaf_value(path, {"a": {"b": 1}}) == value
    assert leaf_value(path, "text") == ("text" if path == "top" else None)
