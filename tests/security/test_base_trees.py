"""A base is read from trees that nobody checked: whatever these contain, only the project's own files are read.

The trees are written byte by byte, since Git itself would refuse to create most of them.
"""

from __future__ import annotations

import hashlib
import os
import resource
import stat
import subprocess
import sys
import tempfile
import tracemalloc
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.problem import Rejected
from reconciler.operations.errors import UnusableBase
from reconciler.operations.opening.commits import Commit
from reconciler.project.files import Unreadable
from reconciler.project.manifests.load import load_manifests
from reconciler.project.policies.load import load_policies
from reconciler.project.settings.config import load_config
from tests.harness.git import GIT

ROOT = Path(__file__).parents[2]

Tree = Any  # entries by name, or a list of names with entries: bytes of a file, Link, Module or a Tree


class Link(str):
    """The target of a symlink."""


class Module(str):
    """The commit of a submodule."""


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, input: bytes = b"") -> str:
        command = [*GIT, *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, input=input).stdout.decode()

    def write(self, content: bytes, kind: str = "blob") -> str:
        """Writes an object, which no Git checks. Returns its id."""
        whole = b"%s %d\0" % (kind.encode(), len(content)) + content
        name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        place = self.folder / ".git" / "objects" / name[:2] / name[2:]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(whole, 1))
        return name

    def tree(self, tree: Tree) -> str:
        parts = []
        for name, item in tree.items() if isinstance(tree, Mapping) else tree:
            match item:
                case Link():
                    mode, found = b"120000", self.write(item.encode())
                case Module():
                    mode, found = b"160000", str(item)
                case bytes():
                    mode, found = b"100644", self.write(item)
                case _:
                    mode, found = b"40000", self.tree(item)
            parts.append(mode + b" " + name + b"\0" + bytes.fromhex(found))
        return self.write(b"".join(parts), "tree")

    def commit(self, tree: Tree | str) -> Commit:
        """A commit with a tree. The folder of the repository is the project's."""
        found = tree if isinstance(tree, str) else self.tree(tree)
        author = "a <a@example.com> 1700000000 +0000"
        text = f"tree {found}\nauthor {author}\ncommitter {author}\n\nbase\n"
        return Commit.resolve(self.folder, os.environ, self.write(text.encode(), "commit"))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


PROJECT = b"version: 1\nstack: prod\nplatform: {base_url: 'https://api.example.com', api_key: {from_env: KEY}}\n"
POLICY = b"kind: IPPolicy\nname: a\nspec: {description: a}\n"
FROM_FILE = b"kind: IPPolicy\nname: a\nspec: {description: {from_file: %s}}\n"


def load(commit: Commit, *, here: str | None = None) -> dict[str, object]:
    """Loads the project of a commit as `plan --base` does. Returns specs by address.

    here  text of each file that the commit does not have
    """
    with commit.files() as base:

        def read_missing(source: str, is_secret: bool) -> str | None:
            kind, _, path = source.partition(":")
            return None if kind == "file" and base.has(path) else here

        try:
            config = load_config(base.root, {"KEY": "k"}, None, read_missing)
            base.add(*config.manifests, *config.policies)
            manifest = load_manifests(config, {"KEY": "k"}, None, read_missing).manifest
            load_policies(config)
        finally:
            for copy in base.root.rglob("*"):
                assert copy.is_dir() or stat.S_ISREG(copy.lstat().st_mode)
        return {str(address): declaration.spec for address, declaration in manifest.declarations.items()}


def why(commit: Commit) -> str:
    """Why a commit cannot be read."""
    with pytest.raises((Rejected, UnusableBase)) as refused:
        load(commit)
    error = refused.value
    return "\n".join(map(str, error.problems)) if isinstance(error, Rejected) else f"{error}"


def project(manifests: Tree, **more: Tree) -> Tree:
    found: dict[bytes, object] = {b"reconciler.yaml": PROJECT, b"manifests": manifests}
    return found | {name.encode(): item for name, item in more.items()}


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"../../escaped.yaml", "../../escaped.yaml"),
        (b"/etc/escaped.yaml", "is no name of a file in a commit"),
        (b"a/b.yaml", "is no name of a file in a commit"),
        (b"", None),
        (b"x" * 300 + b".yaml", "too long"),
        (b"git~1", "is no name of a file in a commit"),
    ],
)
def test_a_name_that_is_no_file_is_refused(repository: Repository, name: bytes, text: str | None) -> None:
    commit = repository.commit(project([(b"a.yaml", POLICY), (name, POLICY if name else {})]))
    if name == b"git~1":
        commit = repository.commit(project([(b"a.yaml", POLICY), (name, {b"b.yaml": POLICY})]))
    reason = why(commit)
    assert text is None or text in reason
    assert list(repository.folder.parent.rglob("*escaped*")) == []


@pytest.mark.parametrize("name", [b"..", b".", b".git", b".GIT", b".hidden.yaml"])
def test_a_hidden_name_is_skipped_as_in_a_folder(repository: Repository, name: bytes) -> None:
    inner: Tree = {b"config.yaml": b"kind: Nothing\n"}
    assert set(load(repository.commit(project([(b"a.yaml", POLICY), (name, inner)])))) == {"IPPolicy/a"}


@pytest.mark.parametrize("path", [b"'../secret'", b".git/config", b".GIT/config", b"/etc/passwd", b"a/../../b"])
def test_a_file_outside_the_commit_is_not_read(repository: Repository, path: bytes) -> None:
    hostile: Tree = {b"config": b"escaped", b"passwd": b"escaped"}
    commit = repository.commit([*project({b"a.yaml": FROM_FILE % path}).items(), (b".git", hostile), (b"..", hostile)])
    assert "escaped" not in why(commit)


def test_two_entries_of_one_name_are_refused(repository: Repository) -> None:
    """A symlink `manifests` beside a folder of that name would lead files of the folder elsewhere."""
    entries = [(b"manifests", Link("/etc")), (b"manifests", {b"a.yaml": POLICY}), (b"reconciler.yaml", PROJECT)]
    assert "has two entries 'manifests'" in why(repository.commit(entries))


def test_a_name_that_is_not_utf8_is_copied(repository: Repository) -> None:
    with repository.commit(project({b"\xff.yaml": POLICY})).files() as base:
        base.add("manifests")
        assert [os.fsencode(file.name) for file in (base.root / "manifests").iterdir()] == [b"\xff.yaml"]


# --- symlinks and submodules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["/etc", "..", "../..", "../outside", "deep/../../outside", "x/../../../outside", "/", ""]
)
@pytest.mark.parametrize("place", ["folder", "file", "include", "settings"])
def test_a_symlink_out_of_the_project_is_not_followed(repository: Repository, target: str, place: str) -> None:
    outside = repository.folder.parent / "outside"
    outside.mkdir()
    for name in ("a.yaml", "secret"):
        (outside / name).write_bytes(b"escaped: " + POLICY)
    tree = {
        "folder": project(Link(target)),
        "file": project({b"a.yaml": Link(f"../{target}/a.yaml" if target else "")}),
        "include": project({b"a.yaml": FROM_FILE % b"link/secret"}, link=Link(target)),
        "settings": {b"reconciler.yaml": Link(f"{target}/a.yaml"), b"manifests": {}},
    }[place]
    reason = why(repository.commit(tree))
    assert "symlink" in reason or "no file" in reason or "version" in reason
    assert "escaped" not in reason


def test_a_symlink_within_the_project_is_followed(repository: Repository) -> None:
    commit = repository.commit(
        project(
            Link("real/manifests"),
            real={b"manifests": {b"a.yaml": Link("../../texts/a.yaml")}},
            texts={b"a.yaml": FROM_FILE % b"texts/link", b"link": Link("./word"), b"word": b"hello"},
        )
    )
    assert load(commit) == {"IPPolicy/a": {"description": "hello"}}


@pytest.mark.parametrize("links", [{b"a.yaml": Link("a.yaml")}, {b"a.yaml": Link("b"), b"b": Link("a.yaml")}])
def test_a_circular_symlink_is_refused(repository: Repository, links: Tree) -> None:
    assert "circular symlink" in why(repository.commit(project(links)))


def test_a_submodule_of_manifests_is_refused_and_others_are_ignored(repository: Repository) -> None:
    module = Module("1" * 40)
    assert "manifests is a submodule" in why(repository.commit(project(module)))
    assert set(load(repository.commit(project({b"a.yaml": POLICY, b"module": module}, module=module)))) == {
        "IPPolicy/a"
    }
    inside = repository.commit(project({b"a.yaml": FROM_FILE % b"module/text"}, module=module))
    assert load(inside, here="from the checkout") == {"IPPolicy/a": {"description": "from the checkout"}}


def test_the_folder_of_the_project_can_be_a_symlink_in_the_base(repository: Repository) -> None:
    """A change that replaces the symlink by a folder must not look as if the base had no project."""
    commit = repository.commit({b"infra": Link("real"), b"real": project({b"a.yaml": POLICY})})
    (repository.folder / "infra").mkdir()
    found = Commit.resolve(repository.folder / "infra", os.environ, commit.id)
    assert set(load(found)) == {"IPPolicy/a"}


def test_components_outside_the_copy_are_not_written(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the symlink of the project leads to, they are inside the commit; the copy has a folder for the symlink."""
    deep = {b"c": {b"d": project({b"a.yaml": POLICY})}, b"escaped": {b"a.yaml": b"inputs: {}\n"}}
    commit = repository.commit({b"p": Link("a/b/c/d"), b"a": {b"b": deep}})
    (repository.folder / "p").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(repository.folder.parent))
    with Commit.resolve(repository.folder / "p", os.environ, commit.id).files() as base:
        outside = base.root / "../../escaped"
        with pytest.raises(Rejected) as refused:
            base.add_components("../../escaped")
        with pytest.raises(Unreadable, match="outside the Git repository"):
            base._make_folder("../../escaped")
        assert not outside.exists()
    assert [problem.code for problem in refused.value.problems] == ["path-outside-project"]


def test_settings_that_are_no_file_are_a_problem_of_the_base(repository: Repository) -> None:
    """Without its settings the base would have no rules."""
    for settings_file in (Link("/etc/passwd"), Link("../x"), Module("1" * 40), {b"a": b""}):
        commit = repository.commit({b"reconciler.yaml": settings_file, b"manifests": {b"a.yaml": POLICY}})
        with commit.files() as base:
            assert base.has_project
            with pytest.raises(Rejected):
                load_config(base.root, {"KEY": "k"})


def test_other_entries_beside_the_environments_are_ignored(repository: Repository) -> None:
    environment = b"variables: {}\n"
    odd: Tree = {b"link": Link("/etc"), b"x.yaml": Link("/etc/passwd"), b"y.yaml": {}, b"prod.yaml": environment}
    with repository.commit(project({b"a.yaml": POLICY}, environments=odd)).files() as base:
        assert (base.root / "environments" / "prod.yaml").read_bytes() == environment
        assert not (base.root / "environments" / "x.yaml").exists()


# --- sizes ----------------------------------------------------------------------------------------------------------


def test_only_files_that_the_project_names_are_read(repository: Repository) -> None:
    """The objects of all others can be absent."""
    more = {b"large.bin": b"unrelated 1", b"notes.txt": b"unrelated 2", b"folder": {b"x.yaml": b"unrelated 3"}}
    tree = project({b"a.yaml": FROM_FILE % b"texts/word", b"README": b"unrelated 4"}, texts={b"word": b"hello"}) | more
    commit = repository.commit(tree)
    for number in range(1, 5):
        name = repository.write(b"unrelated %d" % number)
        (repository.folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert load(commit) == {"IPPolicy/a": {"description": "hello"}}


def test_a_file_that_is_too_large_is_not_read(repository: Repository) -> None:
    large = b"#" * (6 * 1024 * 1024)
    assert "manifests/a.yaml is larger than 5 MiB" in why(repository.commit(project({b"a.yaml": large})))
    included = repository.commit(project({b"a.yaml": FROM_FILE % b"large"}, large=large))
    assert "large is larger than 1 MiB" in why(included)
    assert "manifests/b.yaml" not in why(repository.commit(project({b"a.yaml": large, b"b.yaml": POLICY})))
    huge = repository.commit(project({b"a.yaml": b"#" * (40 * 1024 * 1024)}))
    tracemalloc.start()
    try:
        assert "manifests/a.yaml is larger than 5 MiB" in why(huge)
        assert tracemalloc.get_traced_memory()[1] < 20 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_trees_that_contain_each_other_end_in_an_error(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten levels of ten entries that are the same: ten billion files in eleven objects."""
    tree = repository.tree({b"a.yaml": POLICY})
    for _ in range(10):
        entries = b"".join(b"40000 %c\0" % (97 + number) + bytes.fromhex(tree) for number in range(10))
        tree = repository.write(entries, "tree")
    top = b"40000 manifests\0" + bytes.fromhex(tree)
    top += b"100644 reconciler.yaml\0" + bytes.fromhex(repository.write(PROJECT))
    commit = repository.commit(repository.write(top, "tree"))
    assert "more than 100,000 files" in why(commit)
    assert len(commit.find_named("a.yaml")) == 1000
    monkeypatch.setattr("reconciler.operations.opening.commits._TIMEOUT", 1.0)
    with pytest.raises(UnusableBase, match="git ls-tree did not finish within 1 seconds"):
        commit.find_named("b.yaml")


def test_folders_that_are_too_deep_are_refused(repository: Repository) -> None:
    tree: Tree = {b"a.yaml": POLICY}
    for _ in range(70):
        tree = {b"d": tree}
    assert "is below more than 64 folders" in why(repository.commit(project(tree)))


@pytest.mark.full
def test_other_files_of_400_mb_take_no_memory(repository: Repository, tmp_path: Path) -> None:
    huge = {b"%d.bin" % number: b"%d" % number + b"\0" * 100_000_000 for number in range(4)}
    commit = repository.commit(project({b"a.yaml": POLICY}, huge=huge))
    code = (
        "import os, sys; from pathlib import Path; from tests.security.test_base_trees import load, Commit; "
        "load(Commit.resolve(Path(sys.argv[1]), os.environ, sys.argv[2]))"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (400 * 1024 * 1024,) * 2)

    subprocess.run(
        [sys.executable, "-c", code, str(repository.folder), commit.id], cwd=ROOT, check=True, preexec_fn=limit
    )


# --- any tree -------------------------------------------------------------------------------------------------------

_NAMES = st.sampled_from(
    [
        b"manifests",
        b"a.yaml",
        b"b.yml",
        b"..",
        b".",
        b".git",
        b"link",
        b"x/y",
        b"../z.yaml",
        b"reconciler.yaml",
        b"\xff",
    ]
)
_LINKS = st.sampled_from(["..", "../..", "/etc", "manifests", "a.yaml", "link", "../manifests/a.yaml", "", "."])
_LEAVES = st.one_of(
    st.sampled_from([POLICY, PROJECT, FROM_FILE % b"link", FROM_FILE % b"manifests/link/a.yaml", b"\xff"]),
    _LINKS.map(Link),
    st.just(Module("1" * 40)),
)
_TREES = st.recursive(_LEAVES, lambda inner: st.lists(st.tuples(_NAMES, inner), max_size=5), max_leaves=12)


@settings(deadline=None)
@given(entries=st.lists(st.tuples(_NAMES, _TREES), max_size=5), has_settings=st.booleans())
def test_any_tree_is_read_or_refused(entries: list[tuple[bytes, object]], has_settings: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder) / "repository")
        commit = repository.commit([*entries, (b"reconciler.yaml", PROJECT)] if has_settings else entries)
        before = sorted(Path(folder).rglob("*"))
        with suppress(Rejected, UnusableBase):
            load(commit, here="text")
        assert sorted(Path(folder).rglob("*")) == before
