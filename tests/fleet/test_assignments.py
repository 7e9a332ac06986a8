"""What members of one fleet must not share, and what the files of a run are read by."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.fleet.assignments import (
    Assignment,
    FileCache,
    refuse_files,
    refuse_shared_key,
    refuse_shared_targets,
)
from reconciler.model.fleet import Fleet, FleetProject, KeyMethod, KeySource, Member
from reconciler.model.manifest import Delivery
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


# --- keys of several members, and targets of one-time secrets


def make_fleet(method: KeyMethod, *names: str) -> Fleet:
    members = {name: Member(name, {"tier": "silver" if name == "silver" else "gold"}) for name in names}
    projects = {name: FleetProject(name, name, select={"tier": ("gold",)}) for name in ("shop", "site")}
    return Fleet("shops", members, projects, KeySource(method, "KEY_${{ member.name }}"))


def test_two_members_with_the_key_are_named_and_keys_are_searched_once() -> None:
    fleet, files = make_fleet(KeyMethod.ENV, "d", "c", "b", "a", "silver"), FileCache()
    environ = {"KEY_A": "one", "KEY_B": " one\n", "KEY_C": "one", "KEY_D": " ", "KEY_SILVER": "two"}

    def refuse(name: str, key: str, project: str = "shop") -> str:
        assigned = Assignment(Path("base"), fleet, fleet.members[name], fleet.projects[project])
        try:
            refuse_shared_key(Secret(key, "test"), assigned, files, environ)
        except OperationError as error:
            return str(error)
        return ""

    same = "have the same API key, and would overwrite each other's objects; give each the key of its own account"
    text = f"members a and b {same}"
    assert refuse("c", "one") == text
    assert refuse("d", "two") == ""  # of a member without the project
    environ |= {"KEY_D": "three", "KEY_A": "four"}  # later, which is not read again
    assert [refuse("d", "three"), refuse("a", "four"), refuse("b", "one")] == ["", "", text]
    assert refuse("b", "three", "site") == f"members b and d {same}"
    assert files.searched == {(Path("base"), "shop"), (Path("base"), "site")}
    files, fleet = FileCache(), make_fleet(KeyMethod.FILE, "b", "a")
    assert [refuse("b", "one"), refuse("b", "one"), refuse("a", "one")] == ["", "", text]
    assert files.searched == set()


def test_documents_without_a_kind_or_a_literal_name_have_no_literal_address(tmp_path: Path) -> None:
    documents = (
        "kind: A",
        "name: a",
        "kind: 1\nname: a",
        "kind: A\nname: 1",
        "[]",
        "text",
        "",
        "kind: A\nname: 'x ${{ y }}'",
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "a/all.yaml").write_text("\n---\n".join((*documents, "kind: A\nname: last", "kind: B\nname: $x")))
    assert set(map(str, FileCache().read_literal_addresses(tmp_path, ("a",)))) == {"A/last", "B/$x"}


VAULT = Delivery("to_vault", "agents/a", settings={"mount": "secret", "path": "agents/a", "key": "token"})
COMMAND = Delivery("to_command", "store", settings={"run": ["store"]})


def declare(**deliver: Delivery) -> Any:
    """A workspace with one declaration, whose outputs are delivered."""
    declaration = SimpleNamespace(address="AgentToken/a", deliver=deliver)
    return SimpleNamespace(manifest=SimpleNamespace(declarations={"a": declaration}))


def test_a_secret_of_another_member_is_not_replaced() -> None:
    fleet, files = make_fleet(KeyMethod.ENV, "acme", "globex"), FileCache()

    def refuse(name: str, project: str = "shop", base: str = "base", **deliver: Delivery) -> str:
        assigned = Assignment(Path(base), fleet, fleet.members[name], fleet.projects[project])
        try:
            refuse_shared_targets(declare(**deliver), assigned, files)
        except OperationError as error:
            return str(error)
        return ""

    other = Delivery("to_vault", "agents/a", settings={**VAULT.settings, "key": "other"})
    assert refuse("acme", first=COMMAND, token=VAULT) == ""
    assert refuse("acme", token=VAULT) == ""
    replaced = "AgentToken/a.deliver.token: to_vault would replace the secret of member acme"
    text = f"{replaced}; use a variable of the member in the target"
    assert refuse("globex", first=COMMAND, second=other, token=VAULT) == text
    for project, base, delivery in (("site", "base", VAULT), ("shop", "other", VAULT), ("shop", "base", COMMAND)):
        assert refuse("globex", project, base, token=delivery) == ""


def test_a_secret_is_not_delivered_to_a_file_of_a_checkout() -> None:
    for way in ("to_file", "to_dotenv", "to_kubernetes_secret"):
        with pytest.raises(OperationError) as caught:
            refuse_files(declare(first=VAULT, token=Delivery(way, "a")))
        assert str(caught.value) == (
            f"AgentToken/a.deliver.token: {way} writes to the checkout of the commit, which is removed later; "
            "deliver it with to_vault, to_github_secret or to_command"
        )
    for delivery in (VAULT, COMMAND, Delivery("to_github_secret", "a/b")):
        refuse_files(declare(token=delivery))
