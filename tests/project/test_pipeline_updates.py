"""The header of generated pipelines, and what an update makes of a file."""

from __future__ import annotations

import pytest

from reconciler.project.pipeline_updates import State, add_header, compare, read_environments

PATH = ".github/workflows/apply.yml"
OWN = "# begin of your own lines\n# end of your own lines\n"


@pytest.mark.parametrize("names", [(), ("prod",), ("staging", "eu-1.prod_a")])
def test_a_header_has_the_environments_in_their_order(names: tuple[str, ...]) -> None:
    text = add_header("github", PATH, "a: 1\n", names)
    assert read_environments(text) == names
    assert compare("github", PATH, text, "a: 1\n", names) == (State.CURRENT, text)


def test_lines_that_end_as_on_windows_are_no_edit() -> None:
    existing = add_header("github", PATH, "a: 1\n").replace("\n", "\r\n")
    assert compare("github", PATH, existing, "a: 2\n").state is State.OUTDATED


def test_a_header_of_another_text_is_no_proof_that_the_file_was_generated() -> None:
    existing = add_header("github", PATH, "a: 1\n").replace("a: 1", "a: 3")
    assert compare("github", PATH, existing, "a: 2\n").state is State.CHANGED


def test_own_lines_remain_in_their_place() -> None:
    existing = add_header("github", PATH, f"a: 1\n{OWN}").replace("lines\n# end", "lines\nmine: 1\n# end")
    state, text = compare("github", PATH, existing, f"a: 2\n{OWN}")
    assert state is State.OUTDATED
    assert text.endswith("a: 2\n# begin of your own lines\nmine: 1\n# end of your own lines\n")


def test_own_lines_remain_between_begins_without_an_end() -> None:
    """Each begin is searched up to the next one only, so that the time for many is in proportion to their number."""
    begin, end = OWN.splitlines(keepends=True)
    own = f"{begin}mine: 1\n{end}"
    existing = add_header("github", PATH, f"a: 1\n{OWN}").replace(OWN, begin * 8000 + own + begin * 8000)
    state, text = compare("github", PATH, existing, f"a: 2\n{OWN}")
    assert state is State.CHANGED
    assert text.endswith(f"a: 2\n{own}")
