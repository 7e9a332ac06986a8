"""Every command of the tutorial does what the page says."""

from __future__ import annotations

from pathlib import Path

from tests.examples import transcripts

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


def test_the_tutorial_s_commands_print_what_it_says(tmp_path: Path, commands: Path) -> None:
    page = PAGE.read_text()
    ran = transcripts.rewritten(page, transcripts.run(page, tmp_path, commands))
    assert transcripts.numbered(ran) == transcripts.numbered(page)
