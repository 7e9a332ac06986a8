"""`fmt --inline` moves children in every file of a project, or changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import InvalidProject, Runtime
from reconciler.operations.authoring.inline_children import InlinedProject, inline_children
from reconciler.operations.errors import UnusableEdit
from reconciler.operations.opening.source import ProjectSource

OFFICE = "kind: IPPolicy\nname: office\n"
RULE = """\
kind: IPPolicyRule
name: office-lan
spec: {ip_policy_id: {ref: IPPolicy/office}, cidr: 10.0.0.0/8, action: allow}
"""


def move(root: Path, **texts: str) -> InlinedProject:
    for path, text in {"reconciler": "version: 1\nstack: prod\n", **texts}.items():
        file = root / f"{path.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return inline_children(ProjectSource(root, runtime=Runtime(environ={})))


def test_children_are_moved_across_files_and_patches_of_them_are_unchanged(tmp_path: Path) -> None:
    patch = "IPPolicyRule/office-lan: {spec: {cidr: 10.0.0.0/16}}\n"
    found = move(tmp_path, manifests__a=OFFICE, manifests__b=RULE, environments__prod=patch)
    assert found.problems == ()
    assert found.texts == {
        "manifests/a.yaml": f"{OFFICE}rules:\n  lan: {{cidr: 10.0.0.0/8, action: allow}}\n",
        "manifests/b.yaml": "",
    }
    assert (tmp_path / "manifests/b.yaml").read_text() == RULE  # nothing is written yet


def test_a_name_of_a_schema_is_not_moved_with_a_child(tmp_path: Path) -> None:
    line = "# yaml-language-server: $schema=../x.json\n"
    found = move(tmp_path, manifests__a=f"{line}{OFFICE}---\n{line}{RULE}")
    assert found.texts["manifests/a.yaml"].count("$schema") == 1


def test_a_change_of_what_is_declared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableEdit, match="would declare IPPolicyRule/office-lan otherwise"):
        move(tmp_path, manifests__a=f"{OFFICE}ensure: forgotten\n---\n{RULE}")
    with pytest.raises(InvalidProject):
        move(tmp_path, manifests__a=f"{OFFICE}---\n{RULE.replace('allow', 'alow')}")
