"""`init --update`: generated pipelines of an earlier version become those of this one, and edits are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.operations.authoring.update_pipelines import find_host, update_pipelines
from reconciler.project import pipelines
from reconciler.project.files import Unreadable
from reconciler.project.pipeline_updates import State, add_header

APPLY = ".github/workflows/apply.yml"
ACTION = pipelines.PACKAGE_IN["github"]
OWN = "          SHOP_KEY: ${{ secrets.SHOP_KEY }}\n"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the pipelines as `init` of an earlier version did, whose texts had another line at the end."""

    def write_files(host: str = "github", package: str = "", environments: tuple[str, ...] = ()) -> Path:
        for path, text in pipelines.read_pipelines(host, package, environments).items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(add_header(host, path, text + "# earlier\n", environments).replace(" 0.1.0,", " 0.0.9,"))
        return tmp_path

    return write_files


def states(folder: Path, host: str = "github", *, is_check: bool = False) -> set[State]:
    return {update.state for update in update_pipelines(folder, host, is_check=is_check)}


@pytest.mark.parametrize("host", pipelines.HOSTS)
def test_files_of_an_earlier_version_are_replaced_once(write: Write, host: str) -> None:
    folder = write(host, "reconciler==1", ("staging", "prod"))
    assert find_host(folder) == host
    assert states(folder, host, is_check=True) == {State.OUTDATED}
    updates = update_pipelines(folder, host)
    assert all("-# earlier\n" in update.diff and update.diff.startswith(f"--- a/{update.path}\n") for update in updates)
    now = pipelines.read_pipelines(host, "reconciler==1", ("staging", "prod"))
    for path, text in now.items():
        assert (folder / path).read_text() == add_header(host, path, text, ("staging", "prod"))
    assert states(folder, host) == {State.CURRENT}


def test_an_edited_file_is_unchanged_and_the_difference_is_a_conflict(write: Write) -> None:
    folder = write()
    edited = (folder / APPLY).read_text().replace("timeout-minutes: 60", "timeout-minutes: 90")
    (folder / APPLY).write_text(edited)
    found = {update.path: update for update in update_pipelines(folder, "github")}
    assert found[APPLY].state is State.CHANGED
    assert "-    timeout-minutes: 90\n+    timeout-minutes: 60\n" in found[APPLY].diff
    assert (folder / APPLY).read_text() == edited
    # Merged by hand, with the first line of the difference, it is current.
    header = next(line for line in found[APPLY].diff.splitlines() if line.startswith("+# Generated"))[1:]
    merged = edited.replace(edited.splitlines()[0], header).replace("# earlier\n", "")
    (folder / APPLY).write_text(merged)
    assert states(folder) == {State.CURRENT, State.EDITED}


def test_own_lines_and_the_package_are_carried_over(write: Write) -> None:
    folder = write(environments=("staging", "prod"))
    place = "          # begin of your own lines of prod"
    begin = next(line for line in (folder / APPLY).read_text().splitlines() if line.startswith(place))
    (folder / APPLY).write_text((folder / APPLY).read_text().replace(f"{begin}\n", f"{begin}\n{OWN}"))
    action = (folder / ACTION).read_text()
    (folder / ACTION).write_text(action.replace('default: ""', "default: git+https://example.com/r@0f", 1))
    assert states(folder) == {State.OUTDATED}
    assert f"{begin}\n{OWN}" in (folder / APPLY).read_text()
    assert (folder / APPLY).read_text().count(OWN) == 1
    assert "    default: git+https://example.com/r@0f\n" in (folder / ACTION).read_text()
    assert states(folder) == {State.CURRENT}
    # Without the environment there is no place for its lines.
    found = {update.path: update.state for update in update_pipelines(folder, "github", ("staging",))}
    assert found[APPLY] is State.CHANGED
    assert OWN in (folder / APPLY).read_text()


def test_a_file_without_a_header_is_unchanged_unless_it_is_as_generated(write: Write) -> None:
    folder = write()
    generated = pipelines.read_pipelines("github")[APPLY]
    for text, state in ((generated, State.OUTDATED), (generated + "# more\n", State.CHANGED)):
        (folder / APPLY).write_text(text)
        assert {update.path: update.state for update in update_pipelines(folder, "github")}[APPLY] is state


def test_a_deleted_file_is_not_written_again(write: Write) -> None:
    folder = write()
    (folder / APPLY).unlink()
    assert {update.path: update.state for update in update_pipelines(folder, "github")}[APPLY] is State.MISSING
    assert not (folder / APPLY).exists()


def test_a_pipeline_is_not_read_or_written_through_a_link(write: Write, tmp_path: Path) -> None:
    folder = write()
    (folder / "elsewhere").write_text("x")
    (folder / APPLY).unlink()
    (folder / APPLY).symlink_to(folder / "elsewhere")
    with pytest.raises(Unreadable, match="leads through a symlink"):
        update_pipelines(folder, "github")
    assert (folder / "elsewhere").read_text() == "x"
