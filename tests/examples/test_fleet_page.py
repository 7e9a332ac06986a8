"""Every command of docs/fleet.md prints the output on the page."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples import transcripts

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
_RUN = re.compile(r"\b[0-9]{8}-[0-9]{6}-[0-9a-f]{4}\b")
_HEADER = re.compile(r"^run .*?requests\s[0-9]+$", re.MULTILINE | re.DOTALL)
_TIMES = re.compile(r"started [0-9: -]+ UTC, duration [0-9]+ m?s")
# The member that is planned first represents the shape.
_EXAMPLE = re.compile(
    r"^(  These are the values of|  +(?:domain|hostports|description|for example):|      values of) [^;\n]*",
    re.MULTILINE,
)


def without_times(page: str) -> str:
    """The page without parts that differ between runs."""
    seen: dict[str, str] = {}
    page = _HEADER.sub(lambda header: _TIMES.sub("started, duration", " ".join(header[0].split())), page)
    page = _RUN.sub(lambda run: seen.setdefault(run[0], f"RUN-{len(seen) + 1}"), page)
    return _EXAMPLE.sub(lambda line: line[1], page)


def test_the_commands_of_the_fleet_page_print_the_documented_output(tmp_path: Path, commands: Path) -> None:
    page = PAGE.read_text()
    ran = transcripts.rewrite(page, transcripts.run(page, tmp_path, commands))
    assert without_times(ran) == without_times(page)
