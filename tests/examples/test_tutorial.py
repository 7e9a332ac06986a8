"""Every command of the tutorial prints the output on the page."""

from __future__ import annotations

from pathlib import Path

from tests.examples import transcripts

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


def test_the_commands_of_the_tutorial_print_the_documented_output(tmp_path: Path, commands: Path) -> None:
    page = PAGE.read_text()
    ran = transcripts.rewrite(page, transcripts.run(page, tmp_path, commands))
    assert transcripts.number_ids(ran) == transcripts.number_ids(page)
