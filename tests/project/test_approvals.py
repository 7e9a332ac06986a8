"""Entries of `approvals.yaml`: which of them a run reads. Invalid ones are in `mistakes/approvals`."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.approved import ApprovedItem
from reconciler.model.problem import Position, Rejected
from reconciler.project.settings.approvals import read_approvals

ENTRY = "{delete: Vault/a, until: '2030-12-31', digest: d1}"


def read(root: Path, text: str, environment: str | None = None) -> tuple[ApprovedItem, ...]:
    (root / "approvals.yaml").write_text(text, encoding="utf-8")
    return read_approvals(root, environment)


def test_an_entry_is_read_with_its_position_and_an_id_may_be_missing(tmp_path: Path) -> None:
    text = f"approvals:\n- {ENTRY}\n- {{adopt: '*', id: v_1, until: 2030-12-31, digest: d2}}\n"
    assert read(tmp_path, text) == (
        ApprovedItem("delete", "Vault/a", "", "d1", "2030-12-31", Position("approvals.yaml", 2, 12)),
        ApprovedItem("adopt", "*", "v_1", "d2", "2030-12-31", Position("approvals.yaml", 3, 11)),
    )


@pytest.mark.parametrize("text", [None, "", "# none yet\n", "approvals:\n", "approvals: []\n", "{}\n"])
def test_no_file_and_a_file_without_entries_approve_nothing(tmp_path: Path, text: str | None) -> None:
    assert (read_approvals(tmp_path, None) if text is None else read(tmp_path, text)) == ()


def test_an_entry_applies_to_its_environment_only(tmp_path: Path) -> None:
    text = f"approvals:\n- {ENTRY}\n- {ENTRY[:-1]}, env: prod}}\n- {ENTRY[:-1].replace('d1', 'd3')}, env: test}}\n"
    found = {name: [item.position for item in read(tmp_path, text, name)] for name in (None, "prod", "test", "dev")}
    assert {name: [place.line for place in places if place] for name, places in found.items()} == {
        None: [2],
        "prod": [3],
        "test": [4],
        "dev": [],
    }


def test_an_entry_may_apply_to_several_environments_and_to_no_other(tmp_path: Path) -> None:
    text = f"approvals:\n- {ENTRY[:-1]}, env: [staging, prod]}}\n"
    found = {name: len(read(tmp_path, text, name)) for name in (None, "staging", "prod", "dev", "stag")}
    assert found == {None: 0, "staging": 1, "prod": 1, "dev": 0, "stag": 0}


@pytest.mark.parametrize("env", ["[]", "['']", "[prod, 1]", "{prod: staging}", "1", "true"])
@pytest.mark.parametrize("environment", [None, "prod"])
def test_an_entry_with_unreadable_environments_is_an_error_in_every_environment(
    tmp_path: Path, env: str, environment: str | None
) -> None:
    with pytest.raises(Rejected) as rejected:
        read(tmp_path, f"approvals:\n- {ENTRY[:-1]}, env: {env}}}\n", environment)
    assert "approvals.yaml:2:" in str(rejected.value)
    assert "env must name an environment; write one environment, or a list of them: `env: [staging, prod]`" in str(
        rejected.value
    )


def test_a_mistake_in_an_entry_of_another_environment_is_not_reported(tmp_path: Path) -> None:
    assert read(tmp_path, f"approvals:\n- {ENTRY}\n- {{destroy: a, env: prod}}\n")


def test_a_file_that_cannot_be_read_is_an_error_and_not_a_file_without_entries(tmp_path: Path) -> None:
    (tmp_path / "approvals.yaml").mkdir()
    with pytest.raises(Rejected) as rejected:
        read_approvals(tmp_path, None)
    assert str(rejected.value) == "approvals.yaml:1:1: approvals.yaml is not a regular file; name a file"


def test_an_entry_may_name_an_entry_point(tmp_path: Path) -> None:
    (item,) = read(
        tmp_path,
        "approvals:\n  - widens_access: https://shop.example.com/admin…\n    until: 2030-12-31\n    digest: d1\n",
    )
    assert (item.what, item.subject, item.id) == ("widens_access", "https://shop.example.com/admin…", "")
