"""A pipe, a device or a socket in the place of a file is an error: no command waits for it or reads without end."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from reconciler.api.budget import Ledger
from reconciler.cli.terminal.addresses import list_addresses
from reconciler.fleet import keys
from reconciler.fleet.keys import KeyNotFound
from reconciler.operations.authoring import init_project
from reconciler.operations.opening.commits import read_commit
from reconciler.project import atomic_write, named_files
from reconciler.project.files import Unreadable
from reconciler.store import database
from reconciler.store.errors import StoreError


def make_pipe(place: Path) -> None:
    os.mkfifo(place)


def make_endless(place: Path) -> None:
    """A symlink, which Git can bring, to a device that never ends."""
    place.symlink_to("/dev/zero")


def make_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(place))


MAKERS = [make_pipe, make_endless, make_socket]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # the path of a socket is at most 108 bytes long
    return tmp_path


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """Fails a test that waits, instead of waiting with it."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_store_is_a_regular_file(here: Path, make: Callable[[Path], None], suffix: str) -> None:
    if suffix:
        engine, _ = database.open_database("store.db", database.Timeouts())
        engine.dispose()
    place = here / f"store.db{suffix}"
    place.unlink(missing_ok=True)
    make(place)
    before = place.lstat()[:7]  # without times: following a link may set that of its last access
    with pytest.raises(StoreError, match=r"a pipe, a device or a socket.*was not changed; set RECONCILER_STORE"):
        database.open_database("store.db", database.Timeouts())
    assert place.lstat()[:7] == before


@pytest.mark.parametrize("make", MAKERS)
def test_the_count_of_requests_is_a_regular_file(here: Path, make: Callable[[Path], None]) -> None:
    make(here / "requests.db")
    ledger = Ledger(here / "requests.db")
    ticket, wait = ledger.enter(time.monotonic, 10, 60.0)
    assert (ticket, wait) != (1, 0.0), "the request is sent, and not counted"
    ledger.close()


# --- outputs --------------------------------------------------------------------------------------------------------


def test_an_output_into_a_pipe_without_reader_ends(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "_PATIENCE", 0.2)
    make_pipe(here / "pipe")
    with pytest.raises(OSError, match="no program reads from this pipe: 'pipe'"):
        atomic_write.write_output(Path("pipe"), "text")
    with pytest.raises(OSError, match="no program reads from this pipe"):
        atomic_write.open_output(Path("pipe"))
    make_socket(here / "socket")
    with pytest.raises(OSError, match="'socket'"):
        atomic_write.write_output(Path("socket"), "text")


def test_an_output_into_a_pipe_waits_for_its_reader(here: Path) -> None:
    """As in `mkfifo pipe; reconciler plan --format html=pipe & browser pipe`."""
    make_pipe(here / "pipe")
    read: list[str] = []
    reader = threading.Timer(0.3, lambda: read.append((here / "pipe").read_text()))
    reader.start()
    atomic_write.write_output(Path("pipe"), "text" * 100_000)
    reader.join()
    assert read == ["text" * 100_000]


def test_events_replace_a_symlink_and_keep_a_file_that_others_follow(here: Path) -> None:
    (here / "target").write_text("of someone else")
    (here / "link").symlink_to("target")
    (here / "file").write_text("longer than the events")
    followed = (here / "file").open()
    for name in ("link", "file", "new"):
        with atomic_write.open_output(Path(name)) as out:
            out.write("event")
    assert (here / "target").read_text() == "of someone else"
    assert [(here / name).read_text() for name in ("link", "file", "new")] == ["event"] * 3
    assert not (here / "link").is_symlink()
    assert followed.read() == "event"
    followed.close()


# --- other files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_of_the_machine_is_a_regular_file(here: Path, make: Callable[[Path], None]) -> None:
    make(here / "file")
    with pytest.raises((OSError, Unreadable), match=r"not a regular file|No such device"):
        named_files.read_bytes(Path("file"), 100)
    with pytest.raises(KeyNotFound, match=r"not a regular file|cannot be read: No such device"):
        keys._read(Path("file"))


@pytest.mark.parametrize("make", MAKERS)
def test_completion_in_a_foreign_checkout_ends(here: Path, make: Callable[[Path], None]) -> None:
    (here / "manifests").mkdir()
    (here / "manifests" / "a.yaml").write_text("kind: IPPolicy\nname: a\n")
    make(here / "manifests" / "b.yaml")
    context = click.Context(click.Command("plan"))
    context.params["project"] = here
    assert list_addresses(context) == ["IPPolicy/a"]


@pytest.mark.parametrize("make", MAKERS)
def test_init_in_a_foreign_checkout_ends(here: Path, make: Callable[[Path], None]) -> None:
    make(here / ".gitignore")
    assert init_project._find_unignored(here) == ()
    (here / ".git").mkdir()
    make(here / ".git" / "config")
    assert init_project.default_host(here) == "none"


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", [".git", ".git/HEAD", ".git/config", ".git/commondir"])
def test_a_repository_of_other_files_has_no_commit(here: Path, make: Callable[[Path], None], name: str) -> None:
    if name != ".git":
        (here / ".git").mkdir()
        (here / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        with suppress(FileNotFoundError):
            (here / name).unlink()
    make(here / name)
    assert read_commit(here, os.environ, 5.0) == ""
