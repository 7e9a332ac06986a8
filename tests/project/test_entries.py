"""Paths and names of inline children."""

from __future__ import annotations

import pytest

from reconciler import kinds
from reconciler.model.kind import Kind
from reconciler.model.manifest import Path
from reconciler.project.documents import entries
from reconciler.project.documents.manifest_document import ManifestDocument

CHILDREN = [child for parent in kinds.with_children() for child in kinds.inline_children(parent).values()]


def test_children_of_these_kinds_can_be_declared_inline() -> None:
    assert sorted(child.name for child in CHILDREN) == ["EventSource", "HTTPSEdgeRoute", "IPPolicyRule", "Secret"]


@pytest.mark.parametrize("child", CHILDREN, ids=lambda child: child.name)
def test_no_field_of_an_inline_child_is_mistaken_for_a_key_of_a_manifest(child: Kind) -> None:
    assert set(entries.KEYS) == (ManifestDocument.model_fields.keys() | {"when"}) - {"kind", "name", "spec"}
    assert not child.by_name.keys() & set(entries.KEYS)


@pytest.mark.parametrize("child", CHILDREN, ids=lambda child: child.name)
def test_the_map_of_children_is_no_other_key_of_a_manifest_of_their_parent(child: Kind) -> None:
    assert child.part_of is not None
    parent = kinds.get(child.part_of.kind)
    assert child.part_of.inline not in {*parent.by_name, *ManifestDocument.model_fields, "for_each", "when"}


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        (("spec", "cidr"), ("cidr",)),
        (("spec", "backend", "backend_id"), ("backend", "backend_id")),
        (("lifecycle", "protect"), ("lifecycle", "protect")),
        (("moved", 0), ("moved", 0)),
        (("id",), ("id",)),
    ],
)
def test_a_path_in_a_manifest_has_one_place_in_an_entry(path: Path, entry: Path) -> None:
    assert entries.to_entry(path) == entry
    assert entries.to_manifest(entry) == path


@pytest.mark.parametrize("path", [(), ("kind",), ("name",), ("spec",)])
def test_kind_and_name_of_an_inline_child_have_the_place_of_its_entry(path: Path) -> None:
    assert entries.to_entry(path) == ()
