"""Files with secrets: reserved places, links, missing folders, leftovers, and file systems without hard links."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project.secrets import dotenv, files, read_back
from reconciler.project.secrets.reserved_places import Reserved, fold
from reconciler.project.secrets.sinks import ProjectSinks, command_environment, place, target_exists

SECRET = Secret("canary", "test")


def put(text: str) -> files.Content:
    return lambda present: text if present is None else f"{present}{text}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


# --- names and reserved places ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "folded"),
    [
        ("/a/B/c", "/a/b/c"),
        (".GIT", ".git"),
        ("a. .", "a"),
        ("a ./b.", "a/b"),
        ("...", "..."),
        (".", "."),
        ("  ", "  "),
        ("g\u200di\u00adt", "git"),
        ("\uff47it", "git"),
        ("stra\u00dfe", "strasse"),
        ("a b", "a b"),
    ],
)
def test_names_that_may_be_the_same_file_are_folded(place: str, folded: str) -> None:
    assert fold(place) == folded


@pytest.mark.parametrize(
    ("target", "use"),
    [
        ("/p/own", "it belongs to the project's a"),
        ("/p/OWN./x", "it belongs to the project's a"),
        ("/p/own/deep/x", "it belongs to the project's a"),
        ("/p/own/inner", "it belongs to the project's b"),
        ("/p/own/inner/x", "it belongs to the project's b"),
        ("/p/owner", None),
        ("/p/x/own", None),
        ("/p/.gitlab/x", "it is part of the CI configuration"),
        ("/p/x/.gitlab/x", "it is part of the CI configuration"),
        ("/else/.gitlab/x", None),
        ("/else/.gitlab", "it is part of the CI configuration"),
        ("/else/.github/x", "it is part of the CI configuration"),
        ("/else/.git/x", "it belongs to Git's own data"),
        ("/p/.github/.git/x", "it is part of the CI configuration"),
        ("/p/.gitlab-ci.yml", "it is part of the CI configuration"),
        ("/p/.gitlab-ci.yml/x", None),
        ("/p/a.gitlab-ci.yml", "it is part of the CI configuration"),
        ("/p/gitlab-ci.yml", None),
        ("/p/x", None),
    ],
)
def test_a_place_is_reserved_for_its_nearest_use(target: str, use: str | None) -> None:
    assert Reserved("/p", {"/p/own": "a", "/p/own/inner": "b"}).use(target) == use


def test_a_reserved_file_is_recognized_by_each_of_its_names(root: Path) -> None:
    (root / "own").write_text("")
    (root / "other").write_text("")
    reserved = Reserved(str(root), {str(root / "missing"): "x", str(root / "own"): "settings"})
    os.link(root / "own", root / "second")
    assert reserved.use_of((root / "second").stat()) == "it belongs to the project's settings"
    assert reserved.use_of((root / "other").stat()) is None


def test_a_reserved_folder_is_recognized_by_each_path_to_it(root: Path) -> None:
    """The project names its folder by a path through a link, and the delivery by the real path."""
    (root / "real/deep").mkdir(parents=True)
    (root / "link").symlink_to("real")
    reserved = Reserved(str(root), {str(root / "link"): "manifests"})
    for target in ("real/token", "real/deep/token", "real/new/token"):
        for act in (files.prove, files.write):
            with pytest.raises(Undeliverable, match=f"{target}: reserved: it belongs to the project's manifests; use"):
                act(root, target, put("x"), reserved)
    assert tree(root) == ["link", "real", "real/deep"]


# --- targets ----------------------------------------------------------------------------------------------------------


def test_reading_or_checking_a_target_creates_no_file(root: Path) -> None:
    assert files.read(root, "a/b/c") is None
    files.prove(root, "a/b/c", put("x"))
    assert tree(root) == []
    (root / "c").write_text("of another folder")
    assert files.read(root, "a/b/c") is None
    (root / "c").unlink()
    (root / "a").mkdir()
    assert files.read(root, "a/b") is None
    files.prove(root, "a/b", put("x"))
    assert tree(root) == ["a"]


def test_a_file_is_written_with_content_derived_from_its_text(root: Path) -> None:
    files.write(root, "a/b", put("one"))
    files.write(root, "./a//b", put("two"))
    assert files.read(root, "a/b") == "onetwo"
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "a/b").stat().st_mode) == 0o600
    assert tree(root) == ["a", "a/b"]


def test_a_check_derives_the_content_from_the_current_text(root: Path) -> None:
    asked = []

    def content(present: str | None) -> str:
        asked.append(present)
        raise Undeliverable("no")

    (root / "file").write_text("here")
    for target in ("file", "none", "missing/file"):
        with pytest.raises(Undeliverable, match=f"^{target}: no$"):
            files.prove(root, target, content)
    assert asked == ["here", None, None]
    assert tree(root) == ["file"]


@pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_an_entry_is_added_to_a_file_of_up_to_1_mib(root: Path, size: int) -> None:
    (root / "file").write_bytes(b"x" * size)
    if size <= 1 << 20:
        assert files.read(root, "file") == "x" * size
    else:
        with pytest.raises(Undeliverable, match="file: the file is larger than 1 MiB; use another file"):
            files.read(root, "file")


def test_an_invalid_file_name_is_refused_before_a_file_is_created(root: Path) -> None:
    for target in ("x" * 300, f"a/{'x' * 300}", f"{'x' * 300}/a", f"a/{'x' * 300}/b"):
        with pytest.raises(Undeliverable, match="File name too long"):
            files.prove(root, target, put("x"))
    assert tree(root) == []


def test_a_dangling_link_is_not_used_as_a_folder(root: Path) -> None:
    (root / "dangling").symlink_to("nowhere")
    for act in (files.prove, files.write):
        with pytest.raises(Undeliverable, match="dangling is a symbolic link or not a directory; use a real directory"):
            act(root, "dangling/token", put("x"))
    assert tree(root) == ["dangling"]


def test_a_delivery_fails_if_another_program_recreates_the_file_each_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each attempt the other program creates the file, and after it removes it."""
    tried = []

    def link(source: str, name: str, **more: Any) -> None:
        tried.append(name)
        raise FileExistsError(errno.EEXIST, "exists")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(Undeliverable, match="file: another program keeps creating this file"):
        files.write(root, "file", put("x"))
    assert tried == ["file"] * 3
    assert tree(root) == []


@pytest.mark.parametrize("is_there", [True, False])
def test_without_hard_links_a_new_file_is_renamed_and_an_existing_one_is_not_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    def link(source: str, name: str, **more: Any) -> None:
        if is_there:
            (root / "file").write_text("theirs;")
        raise PermissionError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", link)
    files.write(root, "file", put("ours"))
    assert (root / "file").read_text() == ("theirs;ours" if is_there else "ours")
    assert tree(root) == ["file"]


def test_a_failed_write_leaves_no_part_of_the_secret(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("fsync", "rename", "fchmod"):
        (root / "file").write_text("old;")
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            with pytest.raises(Undeliverable, match="file: No space left on device"):
                files.write(root, "file", put("canary"))
        assert (tree(root), (root / "file").read_text()) == (["file"], "old;")


def test_the_file_and_its_folder_are_synced_before_a_delivery_counts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that is lost in a power failure cannot be read again, and its object is useless."""
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()).removeprefix(f"{root.resolve()}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    files.write(root, "a/file", put("x"))
    files.write(root, "a/file", put("y"))
    assert [name.partition("unfinished")[0] for name in synced] == [
        "",
        *["/a/.reconciler-", "/a"] * 2,
    ]


def test_a_file_system_without_locks_is_written_to(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    files.write(root, "file", put("x"))
    assert tree(root) == ["file"]


# --- delivering and reading back --------------------------------------------------------------------------------------

ENTRY = Delivery("to_dotenv", ".env", settings={"name": "TOKEN"})


@pytest.mark.parametrize(
    ("text", "name", "is_taken"),
    [
        ("TOKEN=\n", "TOKEN", False),
        ('TOKEN=""\n', "TOKEN", False),
        ("TOKEN='' # none\n", "TOKEN", False),
        ("TOKEN=\nTOKEN=x\nTOKEN=\n", "TOKEN", True),
        ("TOKEN=x\n", "TOKE", False),
        ("token=x\n", "TOKEN", False),
        ("# TOKEN=x\n", "TOKEN", False),
        ("TOKEN=' '\n", "TOKEN", True),
    ],
)
def test_an_entry_exists_if_any_line_sets_a_value(root: Path, text: str, name: str, is_taken: bool) -> None:
    assert dotenv.has_value(text, name) == is_taken
    (root / ".env").write_text(text)
    delivery = Delivery("to_dotenv", ".env", settings={"name": name})
    assert target_exists(root, delivery) == is_taken


def test_whether_a_target_exists_is_unknown_if_it_cannot_be_read(root: Path) -> None:
    (root / ".env").write_text("A='open\n")
    assert target_exists(root, ENTRY) is None
    (root / "folder").mkdir()
    assert target_exists(root, Delivery("to_file", "folder")) is None
    assert target_exists(root, Delivery("to_file", "none")) is False
    assert target_exists(root, Delivery("to_file", ".env")) is True


@pytest.mark.parametrize(
    ("text", "line"),
    [("A=1\nB='x\n", 2), ("\n\nA=`x\n", 3), ("B='\n\n'\nA=(\n", 4), ("A=x y\nTOKEN=a b\n", 2)],
)
def test_a_refused_dotenv_file_is_reported_with_the_line(text: str, line: int) -> None:
    for act in (dotenv.entry, dotenv.has_value):
        with pytest.raises(Undeliverable, match=f"^line {line} has "):
            act(text, "TOKEN")


def test_a_value_that_cannot_be_decoded_is_not_overwritten() -> None:
    assert dotenv.entry('TOKEN="a\\qb"\n', "TOKEN") == ""
    assert dotenv.has_value('TOKEN="a\\qb"\n', "TOKEN")
    assert dotenv.entry('TOKEN="a\nb"\n', "TOKEN") == "a\nb"


async def test_names_that_kubernetes_or_yaml_could_take_for_numbers_are_quoted(root: Path) -> None:
    delivery = Delivery("to_kubernetes_secret", "a.yaml", settings={"name": "1", "key": "no", "namespace": ""})
    await ProjectSinks(root).deliver(delivery, Secret('"x\n', "test"))
    assert (root / "a.yaml").read_text() == (
        'apiVersion: v1\nkind: Secret\nmetadata:\n  name: "1"\ntype: Opaque\nstringData:\n  "no": "\\"x\\n"\n'
    )


@pytest.mark.parametrize(
    ("delivery", "text", "why"),
    [
        (Delivery("to_file", "t"), b"\xff", "t is not UTF-8"),
        (Delivery("to_file", "t"), b" \n", "t has no content"),
        (Delivery("to_file", "t"), b"x" * ((1 << 20) + 1), "t is larger than 1 MiB"),
        (ENTRY, b"TOKEN=\n", ".env has no entry TOKEN"),
        (Delivery("to_kubernetes_secret", "t", settings={"name": "a"}), b"x", "a secret delivered with to_kubernetes_"),
    ],
)
def test_a_secret_that_cannot_be_read_back_is_reported(root: Path, delivery: Delivery, text: bytes, why: str) -> None:
    (root / delivery.target).write_bytes(text)
    with pytest.raises(Undeliverable) as raised:
        read_back.read_secret(root, delivery)
    assert str(raised.value).startswith(why)


def test_a_secret_that_was_read_back_names_its_file(root: Path) -> None:
    (root / "t").write_text(" canary\n")
    (root / ".env").write_text("TOKEN=canary\n")
    for delivery in (Delivery("to_file", "t"), ENTRY):
        secret = read_back.read_secret(root, delivery)
        assert (secret.reveal(), secret.source) == ("canary", f"file:{delivery.target}")


@pytest.mark.parametrize(
    ("delivery", "entry"),
    [
        (Delivery("to_file", "t", settings={"name": "x"}), ""),
        (ENTRY, "TOKEN"),
        (Delivery("to_kubernetes_secret", "t", settings={"name": "n", "key": "k"}), "/n/k"),
        (Delivery("to_kubernetes_secret", "t", settings={"name": "n", "key": "k", "namespace": "s"}), "s/n/k"),
        (Delivery("to_command", "put", settings={"run": ["put"]}), ""),
    ],
)
def test_a_place_names_the_entry_of_a_shared_file(root: Path, delivery: Delivery, entry: str) -> None:
    found = place(root, delivery)
    assert (found.way, found.path, found.entry) == (delivery.way, delivery.target, entry)


def test_a_folder_that_was_replaced_is_another_checkout(root: Path) -> None:
    before = place(root, ENTRY)
    root.rename(root.parent / "moved")
    root.mkdir()
    assert place(root, ENTRY) != before
    assert place(root / "none", ENTRY) == place(root / "none", ENTRY) != place(root, ENTRY)


def test_commands_have_the_documented_variables_and_no_settings_of_reconciler() -> None:
    given = ("PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_", "VAULT_TOKEN", "OTHER", "RECONCILER_API_KEY", "XLC_A")
    environ = {name: name.lower() for name in given}
    passed = ("VAULT_TOKEN", "NONE", "RECONCILER_API_KEY")
    assert [*command_environment(environ, ())] == ["PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_"]
    assert [*command_environment(environ, passed)] == [
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_",
        "VAULT_TOKEN",
    ]


def script(root: Path, name: str, text: str) -> None:
    (root / name).write_text(f"#!/bin/sh\n{text}\n")
    (root / name).chmod(0o700)


async def test_a_command_and_its_check_see_the_variables_that_are_passed(root: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "A": "a", "B": "b"}
    settings = {"run": ["sh", "-c", "echo $A$B >> ran"], "check": ["sh", "-c", "echo $A$B- >> ran"], "env": ["A"]}
    sinks = ProjectSinks(root, environ=environ)
    delivery = Delivery("to_command", "sh", settings=settings)
    await sinks.check(delivery)
    await sinks.deliver(delivery, SECRET)
    assert (root / "ran").read_text() == "a-\na\n"


async def test_a_command_is_found_in_the_path_that_is_passed_to_it(root: Path) -> None:
    (root / "bin").mkdir()
    script(root, "bin/own-command", "exit 0")
    delivery = Delivery("to_command", "own-command", settings={"run": ["own-command"]})
    with pytest.raises(Undeliverable, match="command own-command not found"):
        await ProjectSinks(root, environ={"PATH": "/nowhere"}).check(delivery)
    await ProjectSinks(root, environ={"PATH": str(root / "bin")}).check(delivery)


async def test_a_command_that_cannot_be_started_is_reported(root: Path) -> None:
    (root / "command").write_text("#!/nowhere/interpreter\n")
    (root / "command").chmod(0o600)
    sinks = ProjectSinks(root)
    with pytest.raises(Undeliverable, match=r"^\./command cannot be run: Permission denied$"):
        await sinks.deliver(Delivery("to_command", "./command", settings={"run": ["./command"]}), SECRET)
    with pytest.raises(Undeliverable, match=r"command \./command not found"):
        await sinks.check(Delivery("to_command", "./command", settings={"run": ["./command"]}))
