"""A file that cannot be written is named as the user named it, and nothing is left beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli import whole


def test_a_failure_names_the_file_and_not_its_draft(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the name is what matters
        whole.write(tmp_path / "plan.json", "{}")
    assert caught.value.filename == str(tmp_path / "plan.json")
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


def test_a_folder_that_is_not_there_is_no_place_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        whole.write(tmp_path / "absent/plan.json", "{}")
    assert caught.value.filename == str(tmp_path / "absent/plan.json")
