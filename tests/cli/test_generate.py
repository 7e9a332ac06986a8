"""Generated files are current in the repository, and stale ones are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.dev import generate

ROOT = Path(__file__).parents[2]


def test_the_generated_files_in_the_repository_are_current() -> None:
    assert generate.find_stale(ROOT) == []


def test_generated_files_are_current_after_they_were_written(tmp_path: Path) -> None:
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert generate.main(["--root", str(tmp_path), "--check"]) == 0


def test_a_check_names_each_stale_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate.write(tmp_path)
    (tmp_path / "docs/kinds/TLSEdge.md").unlink()
    (tmp_path / "docs/kinds/OldKind.md").write_text("gone", encoding="utf-8")
    page = tmp_path / "docs/kinds/TCPEdge.md"
    page.write_text(page.read_text(encoding="utf-8") + "by hand\n", encoding="utf-8")
    assert generate.main(["--root", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "docs/kinds/TCPEdge.md: stale, +0 -1 lines",
        "docs/kinds/TLSEdge.md: missing",
        "docs/kinds/OldKind.md: no longer generated",
        "3 generated files are stale: run python -m reconciler.cli.dev.generate",
    ]


def test_generate_updates_stale_files_and_removes_old_ones(tmp_path: Path) -> None:
    generate.write(tmp_path)
    (tmp_path / "docs/kinds/OldKind.md").write_text("gone", encoding="utf-8")
    (tmp_path / "docs/kinds/TCPEdge.md").write_text("by hand", encoding="utf-8")
    (tmp_path / "docs/kinds/TLSEdge.md").unlink()
    assert generate.write(tmp_path) == 3
    assert generate.write(tmp_path) == 0
    assert generate.find_stale(tmp_path) == []
