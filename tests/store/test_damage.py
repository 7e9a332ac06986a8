"""A damaged store is refused or has an earlier durable state. Files of other programs are refused and unchanged."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.snapshot import Binding
from reconciler.store import encoding
from reconciler.store.account import AccountMembership
from reconciler.store.database import Timeouts
from reconciler.store.errors import Damaged, Foreign, StoreError, Unavailable
from reconciler.store.reading import StoreReader, open_reader
from reconciler.store.store import open_store

PAGE = 4096
FRAME = 24 + PAGE  # of the log, after a header of 32 bytes
BOTS = [Address("BotUser", f"bot-{number}") for number in range(12)]

State = tuple[object, ...]
NOTHING: State = ({}, (), frozenset(), None)


async def state(store: StoreReader) -> State:
    return (
        await store.bindings("prod"),
        await store.find_open_intents("prod"),
        await store.receipts("prod"),
        await store.membership("prod"),
    )


async def read(file: Path) -> State:
    """The state as an apply finds it. A plan finds the same, or refuses the file with the same words."""
    if not file.exists():
        return await _read(open_store(str(file)))
    planned, applied = [await _catch(_read(opened)) for opened in (open_reader(str(file)), open_store(str(file)))]
    assert (type(planned), str(planned)) == (type(applied), str(applied))
    if isinstance(applied, StoreError):
        raise applied
    return applied


async def _read(opened: AbstractAsyncContextManager[StoreReader]) -> State:
    async with opened as store:
        return await state(store)


async def _catch(reading: Awaitable[State]) -> State | StoreError:
    try:
        return await reading
    except StoreError as refusal:
        return refusal


@dataclass(frozen=True)
class Past:
    """The files of a killed process, those of a closed store, and every state that was durable."""

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
            before = frozenset(f"bot_{count}" for count in range(10))
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


def truncate(size: int) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, size)


def flip_bit(place: int, bit: int) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[place] ^= 1 << bit
        file.write_bytes(content)

    return damage


async def read_damaged(damage: Callable[[Path], None], file: Path, on: Path | None = None) -> State | str:
    """The state of a damaged store, or the message of the refusal."""
    damage(on or file)
    try:
        return await read(file)
    except StoreError as refusal:
        text = str(refusal)
    assert text.startswith(str(file))
    assert "run again" in text or "RECONCILER_STORE" in text
    return text


def draw_places(size: int, count: int) -> Iterator[tuple[int, int]]:
    dice = random.Random(size)
    for _ in range(count):
        yield dice.randrange(size), dice.randrange(8)


# --- the file ---------------------------------------------------------------------------------------------------------


async def test_a_truncated_file_is_refused_unless_only_padding_is_missing(past: Past, tmp_path: Path) -> None:
    size = (past.closed / "prod.db").stat().st_size
    for at in {*range(0, size, PAGE), *(place for place, _ in draw_places(size, 25))}:
        found = await read_damaged(truncate(at), past.copy(past.closed, tmp_path / "x"))
        assert isinstance(found, str) or (found == past.last and at > size - PAGE), at


async def test_a_flipped_bit_in_the_header_is_refused_or_has_no_effect(past: Past, tmp_path: Path) -> None:
    for place in range(100):
        found = await read_damaged(flip_bit(place, place % 8), past.copy(past.closed, tmp_path / "x"))
        assert isinstance(found, str) or found == past.last, place


async def test_a_flipped_bit_anywhere_is_refused_or_has_no_effect(past: Past, tmp_path: Path) -> None:
    for place, bit in draw_places((past.closed / "prod.db").stat().st_size, 60):
        found = await read_damaged(flip_bit(place, bit), past.copy(past.closed, tmp_path / "x"))
        assert isinstance(found, str) or found == past.last, (place, bit)


async def test_an_empty_file_is_refused_with_the_remedy(past: Past, tmp_path: Path) -> None:
    found = await read_damaged(truncate(0), past.copy(past.closed, tmp_path / "x"))
    assert str(found).startswith(f"{tmp_path}/x/prod.db is damaged (it is empty); move it away")
    assert "nothing is created twice" in str(found)


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_with_a_truncated_log_the_store_has_an_earlier_durable_state(past: Past, tmp_path: Path) -> None:
    size = (past.killed / "prod.db-wal").stat().st_size
    for at in {0, *range(32, size, 7 * FRAME), *(place for place, _ in draw_places(size, 25))}:
        file = past.copy(past.killed, tmp_path / "x")
        assert await read_damaged(truncate(at), file, Path(f"{file}-wal")) in past.states, at


async def test_with_a_flipped_bit_in_the_log_the_store_has_an_earlier_durable_state(past: Past, tmp_path: Path) -> None:
    for place, bit in draw_places((past.killed / "prod.db-wal").stat().st_size, 40):
        file = past.copy(past.killed, tmp_path / "x")
        found = await read_damaged(flip_bit(place, bit), file, Path(f"{file}-wal"))
        assert isinstance(found, str) or found in past.states, (place, bit)


async def test_the_file_and_log_of_a_killed_process_have_the_last_state(past: Past, tmp_path: Path) -> None:
    assert await read(past.copy(past.killed, tmp_path / "x")) == past.last


async def test_without_its_log_the_store_has_an_earlier_durable_state(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.killed, tmp_path / "x")
    assert await read_damaged(lambda log: log.unlink(), file, Path(f"{file}-wal")) in past.states


async def test_a_log_without_its_database_is_refused(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.killed, tmp_path / "x")
    assert "its database file is missing" in str(await read_damaged(lambda path: path.unlink(), file))


async def test_an_old_file_with_a_newer_log_is_refused_or_has_a_durable_state(past: Past, tmp_path: Path) -> None:
    """A backup of the file alone, restored beside the present log."""
    file = past.copy(past.closed, tmp_path / "x")
    shutil.copy(past.killed / "prod.db-wal", f"{file}-wal")
    found = await read_damaged(lambda _: None, file)
    assert isinstance(found, str) or found in past.states


# --- another file -----------------------------------------------------------------------------------------------------


async def test_a_database_of_another_program_is_refused_and_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
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
    assert (file.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == (before, ["other.db"])


async def test_a_text_file_is_refused_and_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("milk, eggs\n" * 100)
    with pytest.raises(Damaged, match="file is not a database"):
        await read(file)
    assert file.read_text() == "milk, eggs\n" * 100


async def test_a_store_of_a_newer_version_is_refused(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.closed, tmp_path / "x")
    connection = sqlite3.connect(file)
    connection.execute("UPDATE store SET version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(Unavailable) as refused:
        await read(file)
    assert str(refused.value) == (
        f"{file} cannot be used (its schema version is 99, and this reconciler supports versions up to "
        f"{encoding.VERSION}); "
        "use a newer reconciler, or set RECONCILER_STORE to another path or URL"
    )


# --- not usable -------------------------------------------------------------------------------------------------------


async def test_a_file_that_another_process_has_locked_is_refused(past: Past, tmp_path: Path) -> None:
    file = past.copy(past.closed, tmp_path / "x")
    other = sqlite3.connect(file)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    for opened in (open_store(str(file), timeouts=Timeouts(busy=0.05)), open_reader(str(file), busy=0.05)):
        refused = await _catch(_read(opened))
        assert isinstance(refused, Unavailable)
        assert str(refused) == (
            f"{file} cannot be used (database is locked); another process uses it: wait until it has ended, "
            "or set RECONCILER_STORE to another path or URL"
        )
    other.close()
    assert await read(file) == past.last


async def test_a_folder_instead_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"{tmp_path} cannot be used \\(Is a directory\\)"):
        await read(tmp_path)


async def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    assert await read(tmp_path / "a" / "b" / "prod.db") == NOTHING
    assert (tmp_path / "a" / "b" / "prod.db").exists()
