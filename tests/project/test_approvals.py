"""Entries of `approvals.yaml`: which of them a run reads, and what is wrong with one, at its position."""

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


def test_an_entry_counts_only_for_its_environment(tmp_path: Path) -> None:
    text = f"approvals:\n- {ENTRY}\n- {ENTRY[:-1]}, env: prod}}\n- {ENTRY[:-1].replace('d1', 'd3')}, env: test}}\n"
    found = {name: [item.position for item in read(tmp_path, text, name)] for name in (None, "prod", "test", "dev")}
    assert {name: [place.line for place in places if place] for name, places in found.items()} == {
        None: [2],
        "prod": [3],
        "test": [4],
        "dev": [],
    }


def test_a_mistake_in_an_entry_of_another_environment_is_not_reported(tmp_path: Path) -> None:
    assert read(tmp_path, f"approvals:\n- {ENTRY}\n- {{destroy: a, env: prod}}\n")


REMEDY = "write an entry as `plan --fail-on approvals` prints it"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("approvals: {}\n", [f"1:12: expected a list, found a map; {REMEDY}"]),
        ("approvals: [a]\n", [f"1:13: expected a map, found text; {REMEDY}"]),
        (
            "approvals: []\nothers: 1\n",
            ["2:9: unknown key 'others'; the file has one key, `approvals`"],
        ),
        (
            "approvals:\n- {delete: a, adopt: b}\n- {env: prod}\n- {}\n",
            [
                "2:3: expected one rule, found delete, adopt; the rules are delete, delete-protected, create, adopt,"
                " overwrite, ",
                "4:3: expected one rule, found none; the rules are delete, ",
            ],
        ),
        (f"approvals:\n- {ENTRY.replace('Vault/a', '7')}\n", ["2:12: delete must be a text; quote it; "]),
        (f"approvals:\n- {ENTRY.replace('Vault/a', '')}\n", ["2:12: delete must be a text; quote it; "]),
        (
            "approvals:\n- {delete: a, until: '2030-12-31', digest: d, env: [a]}\n",
            ["2:52: env must be a text; quote it; "],
        ),
        ("approvals:\n- {delete: a, digest: d}\n", ["2:3: until must be a text; quote it; "]),
        ("approvals:\n- {delete: a, until: '2030-12-31'}\n", ["2:3: digest must be a text; quote it; "]),
        (
            "approvals:\n- {delete: a, until: '2030-12-31', digest: d, id: 7}\n",
            ["2:51: id must be a text; quote it; "],
        ),
        (
            "approvals:\n- {delete: a, until: 2030-12-32, digest: d}\n- {delete: b, until: '20301231', digest: d}\n"
            "- {delete: b, until: 2030-W01-1, digest: d}\n",
            [
                "2:22: '2030-12-32' is not a date; write it like 2026-12-31",
                "3:22: '20301231' is not a date; write it like 2026-12-31",
                "4:22: '2030-W01-1' is not a date; write it like 2026-12-31",
            ],
        ),
        ("[a]\n", ["1:1: expected a map, found a list; write `approvals:` and below it a list; "]),
    ],
)
def test_every_mistake_is_reported_at_its_position(tmp_path: Path, text: str, lines: list[str]) -> None:
    with pytest.raises(Rejected) as rejected:
        read(tmp_path, text)
    problems = rejected.value.problems
    assert [str(each)[: len(line) + 15] for each, line in zip(problems, lines, strict=True)] == [
        f"approvals.yaml:{line}" for line in lines
    ]


def test_a_file_that_cannot_be_read_is_an_error_and_not_a_file_without_entries(tmp_path: Path) -> None:
    (tmp_path / "approvals.yaml").mkdir()
    with pytest.raises(Rejected) as rejected:
        read_approvals(tmp_path, None)
    assert str(rejected.value) == "approvals.yaml:1:1: approvals.yaml is not a regular file; name a file"
