"""What members of one fleet must not share, and what the files of a run are read by."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from reconciler.fleet.assignments import Assignment, FileCache, refuse_shared_key
from reconciler.model.fleet import Fleet, FleetProject, KeyMethod, KeySource, Member
from reconciler.model.value import Secret
from reconciler.operations.errors import OperationError
from reconciler.operations.runtime import Runtime

RUNTIME = Runtime(environ={})
COMMITS, FOLDERS, ENVIRONMENTS = ("one", "two"), ("shop", "site"), (None, "staging", "live")


def name_stack(commit: str, folder: str, environment: str | None) -> str:
    return "-".join(filter(None, (commit, folder, environment)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Projects whose variables differ in each checkout and folder, and the stack in each environment too."""
    for commit, folder, environment in itertools.product(COMMITS, FOLDERS, ENVIRONMENTS):
        file = tmp_path / commit / folder / (f"environments/{environment}.yaml" if environment else "reconciler.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        declared = "" if environment else f"variables: {{{commit}_{folder}: {{type: string}}}}\n"
        file.write_text(f"stack: {name_stack(commit, folder, environment)}\n{declared}")
    return tmp_path


@pytest.mark.parametrize("backwards", [False, True])
def test_settings_are_those_of_the_checkout_the_folder_and_the_environment(root: Path, backwards: bool) -> None:
    """Whatever was read before; and what was read is not read again."""
    files, places = FileCache(), [*itertools.product(COMMITS, FOLDERS, ENVIRONMENTS)]
    for _ in range(2):
        for commit, folder, environment in reversed(places) if backwards else places:
            project = FleetProject("any", folder, environment=environment)
            found = files.read_settings(root / commit, project, RUNTIME)
            assert found == (name_stack(commit, folder, environment), frozenset({f"{commit}_{folder}"}))
        for file in root.rglob("*.yaml"):
            file.write_text("stack: changed\n")
    assert len(files.settings) == len(places)


def test_literal_addresses_are_those_of_the_folder_and_its_manifests(tmp_path: Path) -> None:
    for folder, manifests in itertools.product(FOLDERS, ("a", "b")):
        (tmp_path / folder / manifests).mkdir(parents=True)
        documents = (f"kind: BotUser\nname: {folder}-{manifests}\n", "kind: BotUser\nname: x-${{ var.a }}\n", "[]\n")
        (tmp_path / folder / manifests / "all.yaml").write_text("---\n".join(documents))
    files = FileCache()
    for folder, chosen in itertools.product(FOLDERS, (("a",), ("b",), ("a", "b"))):
        found = files.read_literal_addresses(tmp_path / folder, chosen)
        assert set(map(str, found)) == {f"BotUser/{folder}-{name}" for name in chosen}


@pytest.mark.parametrize("method", [KeyMethod.ENV, KeyMethod.FILE])
@pytest.mark.parametrize(
    ("second", "base", "project", "is_refused"),
    [
        ("key", "one", "shop", True),
        (" key\n", "one", "shop", True),  # as a worker reads it from a variable
        ("other", "one", "shop", False),
        ("key", "one", "site", False),  # another stack
        ("key", "two", "shop", False),  # another fleet, whose members are not those of this one
    ],
)
def test_a_key_is_that_of_one_member_with_the_project(
    method: KeyMethod, second: str, base: str, project: str, is_refused: bool
) -> None:
    members = {name: Member(name, {"project": place}) for name, place in (("acme", "shop"), ("globex", project))}
    projects = {name: FleetProject(name, name, select={"project": (name,)}) for name in FOLDERS}
    fleet = Fleet("shops", members, projects, KeySource(method, "KEY_${{ member.name }}"))
    environ = {"KEY_ACME": "key", "KEY_GLOBEX": second} if base == "one" else {}
    files, refused = FileCache(), []
    for name, place, text in (("acme", Path("one"), "key"), ("globex", Path(base), second.strip())):
        assigned = Assignment(place, fleet, members[name], projects[members[name].labels["project"]])
        try:
            refuse_shared_key(Secret(text, "test"), assigned, files, environ)
        except OperationError as error:
            assert "members acme and globex have the same API key" in str(error)  # noqa: PT017
            refused.append(name)
    first = ["acme"] if method is KeyMethod.ENV else []  # of which every key is known at once
    assert refused == ([*first, "globex"] if is_refused else [])
