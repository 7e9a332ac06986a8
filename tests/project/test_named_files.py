"""Files that a command reads by name: regular ones only, up to a size."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.project import named_files
from reconciler.project.files import Unreadable


@pytest.mark.parametrize("size", [99, 100, 101])
def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(b"x" * size)
    if size <= 100:
        assert len(named_files.read_text(tmp_path / "a", 100)) == size
    else:
        with pytest.raises(Unreadable, match="a is larger than 100 bytes"):
            named_files.read_text(tmp_path / "a", 100)
