"""Every command of docs/how-to.md prints the output on the page, in one shell and on one sandbox."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples import transcripts
from tests.harness.tiers import full

PAGE = Path(__file__).parents[2] / "docs" / "how-to.md"
GIT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
}
HEADINGS = (
    "Split a project",
    "Move a resource to another stack",
    "Roll back",
    "Restore after an accidental delete",
    "Rotate all tokens",
    "Add an environment",
    "Delete an environment",
    "Upgrade",
    "Take over from Terraform",
    "The store is lost",
    "A key leaked",
)


def test_a_split_of_a_project_prints_the_documented_output(tmp_path: Path, commands: Path) -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Move")[0] + "```console\n$ kill $!\n```\n"
    ran = transcripts.rewrite(page, transcripts.run(page, tmp_path, commands, GIT))
    assert transcripts.number_ids(ran) == transcripts.number_ids(page)


@full
def test_the_commands_of_the_how_to_print_the_documented_output(
    tmp_path: Path, commands: Path, request: pytest.FixtureRequest
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    ran = transcripts.rewrite(page, transcripts.run(page, tmp_path, commands, GIT))
    transcripts.compare(PAGE, ran, write=request.config.getoption("--rewrite"))


def test_the_how_to_has_a_transcript_for_each_task() -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == list(HEADINGS)
    assert all(transcripts.steps(section) for section in sections)
