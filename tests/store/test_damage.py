"""A store that was damaged is refused, or what it says once was true; and somebody else's file is left as it is."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.snapshot import Binding
from reconciler.store import schema
from reconciler.store.account import AccountMembership
from reconciler.store.database import Timeouts
from reconciler.store.errors import Damaged, Foreign, StoreError, Unavailable
from reconciler.store.store import Store, open_store

PAGE = 4096
FRAME = 24 + PAGE  # of the log, behind a header of 32
BOTS = [Address("BotUser", f"bot-{number}") for number in range(12)]

State = tuple[object, ...]
NOTHING: State = ({}, (), frozenset(), None)


async def state(store: Store) -> State:
    return (
        await store.bindings("prod"),
        await store.find_open_intents("prod"),
        await store.receipts("prod"),
        await store.membership("prod"),
    )


async def read(file: Path) -> State:
    async with open_store(str(file)) as store:
        return await state(store)


@dataclass(frozen=True)
class Past:
    """A store that a killed process left behind, one that was closed, and every state that ever was durable."""

    killed: Path
    closed: Path
    states: list[State]

    @property
    def last(self) -> State:
        return self.states[-1]

    def copy(self, folder: Path, to: Path) -> Path:
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(folder, to)
        return to / "prod.db"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    root = tmp_path_factory.mktemp("past")
    file, killed, closed = root / "prod.db", root / "killed", root / "closed"
    killed.mkdir()
    closed.mkdir()
    states: list[State] = [NOTHING]
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        for number, bot in enumerate(BOTS):
            before = frozenset(f"bot_{each}" for each in range(10))
            for step in (
                journal.intend(Intent(f"i{number:02}", bot, "prod", "/bot_users", before, {"name": bot.name})),
                journal.bind({bot: Binding(f"bot_{number}", {"name": "abc"})}),
                journal.conclude(f"i{number:02}", f"bot_{number}")
                if number % 2
                else journal.record_receipt(f"i{number:02}"),
                journal.record_account(AccountMembership("https://api.example.com", (f"BotUser:bot_{number}",))),
            ):
                await step
                states.append(await state(store))
        for path in (file, Path(f"{file}-wal")):
            shutil.copy(path, killed)
    shutil.copy(file, closed)
    return Past(killed, closed, states)


def cut(size: int) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, size)


def flip(place: int, bit: int) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[place] ^= 1 << bit
        file.write_bytes(content)

    return spoil


async def after(damage: Callable[[Path], None], file: Path, on: Path | None = None) -> State | str:
    """What the store says, or why it is refused."""
    damage(on or file)
    try:
        return await read(file)
    except StoreError as refusal:
        text = str(refusal)
    assert text.startswith(str(file))
    assert "run again" in text or "RECONCILER_STORE" in text
    return text


def places(size: int, count: int) -> Iterator[tuple[int, int]]:
    dice = random.Random(size)
    for _ in range(count):
        yield dice.randrange(size), dice.randrange(8)


# --- the file ---------------------------------------------------------------------------------------------------------


async def test_a_file_that_was_cut_off_is_refused_or_lost_nothing_but_padding(past: Past, tmp_path: Path) -> None:
    size = (past.closed / "prod.db").stat().st_size
    for at in {*range(0, size, PAGE), *(place for place, _ in places(size, 25))}:
        found = await after(cut(at), past.copy(past.closed, tmp_path / "x"))
        assert isinstance(found, str) or (found == past.last and at > size - PAGE), at


async def test_a_flipped_bit_in_the_header_is_refused_or_means_nothing(past: Past, tmp_path: Path) -> None:
    for place in range(100):
        found = await after(flip(place, place % 8), past.copy(past.closed, tmp_path / "x"))
        assert isinstance(found, str) or found == past.last, place


async def test_a_flipped_bit_anywhere_is_refused_or_means_nothing(past: Past, tmp_path: Path) -> None:
    for place, bit in places((past.closed / "prod.db").stat().st_size, 60):
        found = await after(flip(place, bit), past.copy(past.closed, tmp_path / "x"))
        assert isinstance(found, str) or found == past.last, (place, bit)


async def test_emptied_it_is_refused_with_the_way_out(past: Past, tmp_path: Path) -> None:
    found = await after(cut(0), past.copy(past.closed, tmp_path / "x"))
    assert str(found).startswith(f"{tmp_path}/x/prod.db is damaged (it is empty); move it away")
    assert "nothing is created twice" in str(found)


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_a_log_that_was_cut_off_leaves_what_was_durable_before(past: Past, tmp_path: Path) -> None:
    size = (past.killed / "prod.db-wal").stat().st_size
    for at in {0, *range(32, size, 7 * FRAME), *(place for place, _ in places(size, 25))}:
        file = past.copy(past.killed, tmp_path / "x")
        assert await after(cut(at), file, Path(f"{file}-wal")) in past.states, at


async def test_a_flipped_bit_in_the_log_leaves_what_was_durable_before(past: Past, tmp_path: Path) -> None:
    for place, bit in places((past.killed / "prod.db-wal").stat().st_size, 40):
        file = past.copy(past.killed, tmp_path / "x")
        found = await after(flip(place, bit), file, Path(f"{file}-wal"))
        assert isinstance(found, str) or found in past.states, (place, bit)


async def test_what_a_killed_process_left_is_all_there(past: Past, tmp_path: Path) -> None:
    assert await read(past.copy(past.killed, tmp_path / "x")) == past.last


async def test_without_its_log_it_is_as_old_as_it_was_when_the_log_began(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.killed, tmp_path / "x")
    assert await after(lambda log: log.unlink(), file, Path(f"{file}-wal")) in past.states


async def test_a_log_without_its_database_is_refused(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.killed, tmp_path / "x")
    assert "its database file is missing" in str(await after(lambda it: it.unlink(), file))


async def test_an_old_file_with_a_newer_log_says_nothing_that_never_was(past: Past, tmp_path: Path) -> None:
    """A backup of the file alone, put back beside the log of today."""
    file = past.copy(past.closed, tmp_path / "x")
    shutil.copy(past.killed / "prod.db-wal", f"{file}-wal")
    found = await after(lambda _: None, file)
    assert isinstance(found, str) or found in past.states


# --- another file -----------------------------------------------------------------------------------------------------


async def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE store (version)")
    connection.execute("INSERT INTO store VALUES (1)")
    connection.commit()
    connection.close()
    before = file.read_bytes()
    with pytest.raises(Foreign) as refused:
        await read(file)
    assert str(refused.value) == (
        f"{file} is not a store (it is a database of another program) and was not changed; "
        "set RECONCILER_STORE to another path or URL"
    )
    assert (file.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == (before, ["theirs.db"])


async def test_a_file_of_text_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("milk, eggs\n" * 100)
    with pytest.raises(Damaged, match="file is not a database"):
        await read(file)
    assert file.read_text() == "milk, eggs\n" * 100


async def test_a_newer_version_is_refused_and_left_as_it_is(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.closed, tmp_path / "x")
    connection = sqlite3.connect(file)
    connection.execute("UPDATE store SET version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(Unavailable) as refused:
        await read(file)
    assert str(refused.value) == (
        f"{file} cannot be used (its schema version is 99, and this reconciler supports versions up to "
        f"{schema.VERSION}); "
        "use a newer reconciler, or set RECONCILER_STORE to another path or URL"
    )


# --- in the way -------------------------------------------------------------------------------------------------------


async def test_a_file_that_another_process_keeps_for_itself_is_refused(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.closed, tmp_path / "x")
    other = sqlite3.connect(file)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Unavailable) as refused:
        async with open_store(str(file), timeouts=Timeouts(busy=0.05)):
            pass
    other.close()
    assert str(refused.value) == (
        f"{file} cannot be used (database is locked); another process uses it: wait until it has ended, "
        "or set RECONCILER_STORE to another path or URL"
    )
    assert await read(file) == past.last


async def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"{tmp_path} cannot be used \\(Is a directory\\)"):
        await read(tmp_path)


async def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    assert await read(tmp_path / "a" / "b" / "prod.db") == NOTHING
    assert (tmp_path / "a" / "b" / "prod.db").exists()
