"""CODEOWNERS covers every file that decides what needs approval, as the project's own settings name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.project.rule_files import list_rule_files

DEFAULTS = ["approvals.yaml", "components/", "environments/", "fleet.yaml", "policies/", "reconciler.yaml", "tests/"]


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / (name.replace("__", "/") + ".yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_a_missing_project_has_the_default_files(tmp_path: Path) -> None:
    assert list_rule_files(tmp_path) == DEFAULTS


def test_policies_and_included_files_are_those_that_the_settings_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        reconciler=(
            "stack: prod\npolicies: [rules, ./more/one.yaml, 7]\n"
            "platform: {api_key: {from_file: secrets/key}}\n"
            "snapshots: {public_key: {from_file: snapshot.pub}}\nvariables: {x: {from_file: x.txt}}\n"
        ),
    )
    more = ["more/one.yaml", "rules/", "snapshot.pub", "x.txt"]
    assert list_rule_files(tmp_path) == sorted([*DEFAULTS, *more])


def test_components_of_the_repository_are_those_that_the_settings_name(tmp_path: Path) -> None:
    write(tmp_path, reconciler="stack: prod\ncomponents: [shared/parts, ../outside]\n")
    others = [path for path in DEFAULTS if path != "components/"]
    assert list_rule_files(tmp_path) == sorted([*others, "shared/parts/"])
    write(
        tmp_path,
        reconciler="stack: prod\n",
        fleet="version: 1\nprojects: [{name: shop, path: infra/shop}]\n",
        infra__shop__reconciler="stack: shop\ncomponents: [../common, components]\n",
    )
    found = list_rule_files(tmp_path)
    assert "infra/common/" in found
    assert "infra/shop/components/" in found


def test_a_fleet_has_a_list_of_members_and_projects_with_files_of_their_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        fleet="members: lists/members.csv\nprojects: [{name: a, path: network}, {name: b, path: ./shop/}, 7]\n",
        network__reconciler="stack: network\npolicies: [../outside, own]\n",
    )
    assert list_rule_files(tmp_path) == sorted(
        [
            *DEFAULTS,
            "lists/members.csv",
            *(f"{folder}/{name}" for folder in ("network", "shop") for name in DEFAULTS if name != "fleet.yaml"),
            "network/own/",
        ]
    )


@pytest.mark.parametrize(
    "text", ["[", "- x", "", "policies: 7\nstack: [", "\xff", "policies: ['', /etc, '..', a b, '*']"]
)
def test_the_default_files_are_listed_for_unreadable_settings(tmp_path: Path, text: str) -> None:
    for name in ("reconciler.yaml", "fleet.yaml"):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    found = list_rule_files(tmp_path)
    assert set(DEFAULTS) <= set(found)
    assert not any(path in ("", "/", ".", "./") or path.startswith(("/", "..")) for path in found)
