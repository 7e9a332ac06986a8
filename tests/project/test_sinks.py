"""Files that receive one-time secrets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project.secrets import sinks as sinks_module
from reconciler.project.secrets.dotenv import entry
from reconciler.project.secrets.sinks import ProjectSinks, place, target_exists

TOKEN = Secret("canary-token", "test")


def to(target: str) -> Delivery:
    return Delivery("to_file", target)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


async def test_the_file_holds_the_secret_and_only_its_owner_may_read_it(root: Path) -> None:
    os.umask(os.umask(0))
    await ProjectSinks(root).deliver(to("agent.token"), TOKEN)
    file = root / "agent.token"
    assert file.read_text() == "canary-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in root.iterdir()] == ["agent.token"]


async def test_a_missing_directory_is_created_for_its_owner_only(root: Path) -> None:
    await ProjectSinks(root).deliver(to("secrets/berlin/agent.token"), TOKEN)
    assert stat.S_IMODE((root / "secrets").stat().st_mode) == 0o700
    assert (root / "secrets/berlin/agent.token").read_text() == "canary-token"


async def test_an_existing_file_is_replaced_with_a_mode_for_its_owner_only(root: Path) -> None:
    file = root / "agent.token"
    file.write_text("a longer token from before")
    file.chmod(0o644)
    before = file.stat().st_ino
    await ProjectSinks(root).deliver(to("agent.token"), TOKEN, overwrites=True)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("canary-token", 0o600)
    assert file.stat().st_ino != before


async def test_a_check_leaves_no_file(root: Path) -> None:
    (root / "kept.token").write_text("old")
    for target in ("agent.token", "secrets/berlin/agent.token", "kept.token"):
        await ProjectSinks(root).check(to(target), overwrites=True)
    assert [path.name for path in root.rglob("*")] == ["kept.token"]
    assert (root / "kept.token").read_text() == "old"


async def test_a_check_does_not_remove_the_folder_of_another_delivery(root: Path) -> None:
    sinks = ProjectSinks(root)
    for number in range(20):
        targets = [to(f"secrets/{number}/{name}") for name in "abcd"]
        both = ((sinks.check(target, overwrites=True), sinks.deliver(target, TOKEN)) for target in targets)
        await asyncio.gather(*(work for pair in both for work in pair))
    assert len([*root.glob("secrets/*/?")]) == 80


async def test_a_check_does_not_remove_a_folder_of_another_process(root: Path) -> None:
    folder, failures, stop = root / "secrets/berlin", list[OSError](), threading.Event()

    def use() -> None:
        for _ in range(100):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                time.sleep(0.002)
                (folder / "theirs").write_text("x", encoding="utf-8")
            except OSError as failure:
                failures.append(failure)
            else:
                (folder / "theirs").unlink()
                with contextlib.suppress(OSError):  # a check is running in it
                    folder.rmdir()
            time.sleep(0.002)
        stop.set()

    thread = threading.Thread(target=use)
    thread.start()
    while not stop.is_set():
        with contextlib.suppress(Undeliverable):  # they remove the folder too
            await ProjectSinks(root).check(to("secrets/berlin/agent.token"))
    thread.join()
    assert failures == []


async def test_a_check_reports_an_impossible_path_without_creating_folders(root: Path) -> None:
    with pytest.raises(Undeliverable, match="File name too long"):
        await ProjectSinks(root).check(to(f"secrets/{'x' * 300}/token"))
    (root / "locked").mkdir(mode=0o500)
    if os.geteuid():
        with pytest.raises(Undeliverable, match="Permission denied"):
            await ProjectSinks(root).check(to("locked/berlin/agent.token"))
    await ProjectSinks(root).check(to("secrets/berlin/agent.token"))
    assert [path.name for path in root.iterdir()] == ["locked"]


@pytest.mark.parametrize("target", ["../x", "a/../../x", "/etc/x", "", ".", "a/..", "/", "a\0b"])
async def test_a_path_outside_the_project_is_refused(root: Path, target: str) -> None:
    for act in (ProjectSinks(root).check(to(target)), ProjectSinks(root).deliver(to(target), TOKEN)):
        with pytest.raises(Undeliverable, match="is not below"):
            await act


async def test_a_symbolic_link_is_never_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    (root / "directory").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    (root / "dangling").symlink_to(outside / "new")
    for target in ("directory/x", "file", "dangling"):
        for act in (ProjectSinks(root).check(to(target)), ProjectSinks(root).deliver(to(target), TOKEN)):
            with pytest.raises(Undeliverable, match=target):
                await act
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "untouched"


async def test_a_directory_or_pipe_as_target_is_refused(root: Path) -> None:
    (root / "directory").mkdir()
    os.mkfifo(root / "pipe")
    for target in ("directory", "pipe"):
        with pytest.raises(Undeliverable, match="is not a regular file"):
            await ProjectSinks(root).check(to(target))


async def test_a_file_where_a_directory_should_be_is_refused(root: Path) -> None:
    (root / "file").write_text("x")
    with pytest.raises(Undeliverable, match="not a directory"):
        await ProjectSinks(root).check(to("file/agent.token"))


async def test_a_missing_root_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Undeliverable, match="No such file"):
        await ProjectSinks(tmp_path / "nowhere").check(to("agent.token"))


async def test_an_unknown_sink_is_refused(root: Path) -> None:
    with pytest.raises(Undeliverable, match="to_pigeon"):
        await ProjectSinks(root).check(Delivery("to_pigeon", "x"))


async def test_a_message_never_contains_the_secret(root: Path) -> None:
    (root / "directory").mkdir()
    with pytest.raises(Undeliverable) as failed:
        await ProjectSinks(root).deliver(to("directory"), TOKEN)
    assert "canary" not in str(failed.value)


def dotenv(name: str = "AGENT_TOKEN") -> Delivery:
    return Delivery("to_dotenv", ".env", settings={"name": name})


async def test_a_dotenv_entry_is_added_and_other_lines_are_unchanged(root: Path) -> None:
    (root / ".env").write_text("# ours\nOTHER=1")
    await ProjectSinks(root).deliver(dotenv(), TOKEN)
    assert (root / ".env").read_text() == "# ours\nOTHER=1\nAGENT_TOKEN=canary-token\n"
    assert stat.S_IMODE((root / ".env").stat().st_mode) == 0o600


async def test_a_dotenv_entry_is_updated_on_its_line(root: Path) -> None:
    (root / ".env").write_text("export AGENT_TOKEN='old'\nAGENT_TOKEN_2=kept\n")
    await ProjectSinks(root).deliver(dotenv(), TOKEN, overwrites=True)
    assert (root / ".env").read_text() == "export AGENT_TOKEN=canary-token\nAGENT_TOKEN_2=kept\n"


async def test_entries_of_one_dotenv_file_do_not_overwrite_each_other(root: Path) -> None:
    sinks = ProjectSinks(root)
    names = [f"TOKEN_{number}" for number in range(20)]
    await asyncio.gather(*(sinks.deliver(dotenv(name), TOKEN) for name in names))
    assert sorted(line.partition("=")[0] for line in (root / ".env").read_text().splitlines()) == sorted(names)


def test_processes_add_entries_to_one_file_at_the_same_time(root: Path) -> None:
    """Without a lock, the later of two processes that replace the file would undo the change of the earlier one."""
    script = f"""
import asyncio, sys
from pathlib import Path
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project.secrets.sinks import ProjectSinks
async def run():
    sinks = ProjectSinks(Path({str(root)!r}))
    for number in range(40):
        entry = Delivery("to_dotenv", ".env", settings={{"name": sys.argv[1] + str(number)}})
        await sinks.deliver(entry, Secret("x", "test"))
asyncio.run(run())
"""
    processes = [subprocess.Popen([sys.executable, "-c", script, name]) for name in "AB"]
    assert [process.wait() for process in processes] == [0, 0]
    assert len((root / ".env").read_text().splitlines()) == 80


@pytest.mark.parametrize(
    ("present", "why"),
    [
        (b"A=\xff\n", "the file is not UTF-8"),
        (b"A=1\n" * 300_000, "larger than 1 MiB"),
        (b"A='open\n", "line 1 has an unclosed quote"),
    ],
)
async def test_a_file_that_accepts_no_entry_is_reported_before_an_object_is_created(
    root: Path, present: bytes, why: str
) -> None:
    (root / ".env").write_bytes(present)
    for act in (ProjectSinks(root).check(dotenv()), ProjectSinks(root).deliver(dotenv(), TOKEN)):
        with pytest.raises(Undeliverable, match=rf"\.env: .*{why}"):
            await act
    assert (root / ".env").read_bytes() == present


async def test_a_kubernetes_secret_manifest_is_one_that_kubernetes_reads(root: Path) -> None:
    settings = {"name": "agent", "namespace": "edge", "key": "token"}
    await ProjectSinks(root).deliver(Delivery("to_kubernetes_secret", "k8s/agent.yaml", settings=settings), TOKEN)
    assert YAML(typ="safe").load(root / "k8s/agent.yaml") == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "agent", "namespace": "edge"},
        "type": "Opaque",
        "stringData": {"token": "canary-token"},
    }
    assert stat.S_IMODE((root / "k8s/agent.yaml").stat().st_mode) == 0o600


KUBERNETES = Delivery("to_kubernetes_secret", "a.yaml", settings={"name": "a", "key": "token"})


@pytest.mark.parametrize(
    ("delivery", "present"),
    [
        (to("precious.txt"), "the only copy"),
        (dotenv(), "A=1\nAGENT_TOKEN=theirs\n"),
        (dotenv(), 'AGENT_TOKEN="the\\$irs"\n'),  # no text of JSON
        (dotenv(), "AGENT_TOKEN=theirs\nAGENT_TOKEN=\n"),
        (KUBERNETES, "kind: Secret\n"),
    ],
    ids=lambda value: value.way if isinstance(value, Delivery) else "",
)
async def test_an_existing_secret_is_replaced_only_if_allowed(root: Path, delivery: Delivery, present: str) -> None:
    file = root / delivery.target
    assert target_exists(root, delivery) is False
    await ProjectSinks(root).check(delivery)
    file.write_text(present)
    assert target_exists(root, delivery) is True
    for act in (ProjectSinks(root).check(delivery), ProjectSinks(root).deliver(delivery, TOKEN)):
        with pytest.raises(Undeliverable, match="exists and was not written by this project"):
            await act
    assert file.read_text() == present
    await ProjectSinks(root).check(delivery, overwrites=True)
    await ProjectSinks(root).deliver(delivery, TOKEN, overwrites=True)
    assert "canary-token" in file.read_text()


@pytest.mark.parametrize("present", ["", "AGENT_TOKEN=\nB=1\n", "AGENT_TOKEN=''\n", 'AGENT_TOKEN=""\n'])
async def test_an_empty_target_may_be_replaced(root: Path, present: str) -> None:
    delivery = dotenv() if present else to(".env")
    (root / ".env").write_text(present)
    assert target_exists(root, delivery) is False
    await ProjectSinks(root).deliver(delivery, TOKEN)
    assert "canary-token" in (root / ".env").read_text()


async def test_a_file_created_during_a_delivery_is_not_replaced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def late(source: str, name: str, **more: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        (root / "agent.token").write_text("theirs")
        link(source, name, **more)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(Undeliverable, match="was not written by this project"):
        await ProjectSinks(root).deliver(to("agent.token"), TOKEN)
    assert [path.read_text() for path in root.iterdir()] == ["theirs"]


def test_a_place_distinguishes_two_folders_of_one_machine(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    assert place(root, to("a")) == place(root / "." / "", to("a"))
    assert place(root, to("a")) != place(other, to("a"))
    assert place(root, to("a")).is_same(place(other, to("a")))
    assert not place(root, dotenv("A")).is_same(place(root, dotenv("B")))


def command(*run: str, check: tuple[str, ...] = ()) -> Delivery:
    return Delivery("to_command", run[0], settings={"run": list(run), "check": list(check)})


async def test_a_command_reads_the_secret_from_its_standard_input(root: Path) -> None:
    await ProjectSinks(root).deliver(command("sh", "-c", "cat > taken"), TOKEN)
    assert (root / "taken").read_text() == "canary-token"


async def test_a_command_has_no_settings_of_reconciler(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_API_KEY", "canary-key")
    await ProjectSinks(root).deliver(command("sh", "-c", "env > seen"), TOKEN)
    assert "canary-key" not in (root / "seen").read_text()


SLEEPING = ("sh", "-c", "sleep 300 & echo $! > child; wait")


async def is_killed(file: Path) -> bool:
    """Whether a process ends within a moment, which the kernel needs to end it."""
    stat_file = Path("/proc", file.read_text().strip(), "stat")
    for _ in range(100):
        if not stat_file.exists() or stat_file.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        await asyncio.sleep(0.02)
    return False


async def child_of(root: Path, work: asyncio.Future[None]) -> Path:
    for _ in range(1000):
        if work.done() or ((root / "child").exists() and (root / "child").read_text().endswith("\n")):
            break
        await asyncio.sleep(0.01)
    return root / "child"


async def test_a_command_and_its_children_are_killed_when_the_run_is_interrupted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks_module, "GRACE", 0.1)
    stop = asyncio.Event()
    work = asyncio.ensure_future(ProjectSinks(root, stop=stop).deliver(command(*SLEEPING), TOKEN))
    child = await child_of(root, work)
    stop.set()
    with pytest.raises(Undeliverable, match="sh was killed, because the run was interrupted"):
        await work
    assert await is_killed(child)


async def test_a_command_that_ends_soon_after_an_interrupt_has_succeeded(root: Path) -> None:
    stop = asyncio.Event()
    stop.set()
    await ProjectSinks(root, stop=stop).deliver(command("sh", "-c", "sleep 0.2; cat > taken"), TOKEN)
    assert (root / "taken").read_text() == "canary-token"


async def test_a_command_is_killed_when_its_delivery_is_cancelled(root: Path) -> None:
    work = asyncio.ensure_future(ProjectSinks(root).deliver(command(*SLEEPING), TOKEN))
    child = await child_of(root, work)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await is_killed(child)


def find_processes(root: Path) -> list[str]:
    """The running processes with this working directory."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            found += [link.parent.name] if link.readlink() == root else []
    return found


@pytest.mark.parametrize("turns", range(1, 10))
async def test_a_command_that_is_starting_is_killed(root: Path, turns: int) -> None:
    """Cancels the run after this number of turns of the event loop, some of them before the command has started."""
    work = asyncio.ensure_future(ProjectSinks(root).deliver(command(*SLEEPING), TOKEN))
    for _ in range(turns):
        await asyncio.sleep(0)
        time.sleep(0.01)  # noqa: ASYNC251 - the command is quicker than we are
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    for _ in range(100):
        if not find_processes(root):
            break
        await asyncio.sleep(0.02)
    assert find_processes(root) == []


async def test_a_command_that_takes_too_long_is_killed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks_module, "PATIENCE", 0.3)
    with pytest.raises(Undeliverable, match="did not finish within"):
        await ProjectSinks(root).deliver(command(*SLEEPING), TOKEN)
    assert await is_killed(root / "child")


ENDS = {
    "killed": ("kill -KILL $$", r"was killed by signal 9 \(SIGKILL\)"),
    "killed after it read the secret": ("cat > /dev/null; kill -KILL $$", r"was killed by signal 9 \(SIGKILL\)"),
    "terminated": ("cat > /dev/null; kill -TERM $$", r"was killed by signal 15 \(SIGTERM\)"),
    "aborted": ("cat > /dev/null; kill -ABRT $$", r"was killed by signal 6 \(SIGABRT\)"),
    "hung up": ("cat > /dev/null; kill -HUP $$", r"was killed by signal 1 \(SIGHUP\)"),
    "exit 1": ("cat > /dev/null; exit 1", "failed with exit code 1;"),
    "exit 255": ("cat > /dev/null; exit 255", "failed with exit code 255;"),
    "exit 1 without reading": ("exec 0<&-; exit 1", "failed with exit code 1;"),
    "its last part failed": ("cat > /dev/null | false", "failed with exit code 1;"),
    "not found": ("exec /no/such/program", "failed with exit code 127;"),
}


@pytest.fixture
def hangup() -> Iterator[None]:
    """A child inherits that SIGHUP is ignored, as under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize(("script", "why"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("secret", [TOKEN, Secret("x" * 1_000_000, "platform")], ids=["short", "longer than a pipe"])
async def test_a_command_that_does_not_exit_with_0_has_delivered_nothing(
    root: Path, script: str, why: str, secret: Secret
) -> None:
    with pytest.raises(Undeliverable, match=f"sh {why}"):
        await ProjectSinks(root).deliver(command("sh", "-c", script), secret)
    with pytest.raises(Undeliverable, match=f"sh {why}"):
        await ProjectSinks(root).check(command("sh", check=("sh", "-c", script)))


async def test_the_output_of_a_failed_command_is_not_quoted(root: Path) -> None:
    with pytest.raises(
        Undeliverable,
        match=(
            "sh failed with exit code 3; its output is hidden, since it may "
            "contain the secret: run it by hand to see it"
        ),
    ) as refused:
        await ProjectSinks(root).deliver(command("sh", "-c", "cat >&2; exit 3"), TOKEN)
    assert "canary" not in str(refused.value)


async def test_a_missing_command_is_reported_before_an_object_is_created(root: Path) -> None:
    with pytest.raises(Undeliverable, match="command no-such-thing not found"):
        await ProjectSinks(root).check(command("no-such-thing"))


@pytest.mark.parametrize("run", ["./store", "bin/../store"])
async def test_a_program_of_the_project_is_found_from_any_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    (root / "bin").mkdir()
    (root / "store").write_text("#!/bin/sh\ncat > taken\n")
    (root / "store").chmod(0o700)
    for here, named in ((root / "bin", root), (root.parent, Path("project"))):
        monkeypatch.chdir(here)
        await ProjectSinks(named).check(command(run))
        await ProjectSinks(named).deliver(command(run), TOKEN)
        assert (root / "taken").read_text() == "canary-token"
        (root / "taken").unlink()


async def test_a_program_in_the_current_directory_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root.parent / "store").write_text("#!/bin/sh\n")
    (root.parent / "store").chmod(0o700)
    monkeypatch.chdir(root.parent)
    with pytest.raises(Undeliverable, match=r"command \./store not found"):
        await ProjectSinks(root).check(command("./store"))


async def test_a_failed_check_is_reported_before_an_object_is_created(root: Path) -> None:
    with pytest.raises(Undeliverable, match="false failed with exit code 1"):
        await ProjectSinks(root).check(command("sh", check=("false",)))


async def test_a_partial_file_of_a_killed_process_is_removed_by_the_next_delivery(root: Path) -> None:
    """Partial files of other targets and files of the user with similar names remain."""
    kept = [".agent.token.0123456789ab", ".reconciler-unfinished-backup"]
    for name in kept:
        (root / name).write_text("somebody else's")
    for target in ("agent.token", "other.token"):
        _interrupt(root, target)
    await ProjectSinks(root).check(to("agent.token"))
    assert len(left := {path.name for path in root.iterdir()} - {*kept}) == 1
    await ProjectSinks(root).check(to("other.token"))
    assert not left & {path.name for path in root.iterdir()}
    assert sorted(path.name for path in root.iterdir()) == kept


def _interrupt(root: Path, target: str) -> None:
    """A delivery whose process is killed after it has written the partial file and before it renames it."""
    script = (
        "import asyncio, os, pathlib\n"
        "from reconciler.model.manifest import Delivery\n"
        "from reconciler.model.value import Secret\n"
        "from reconciler.project.secrets.sinks import ProjectSinks\n"
        "os.link = lambda *_, **__: os._exit(9)\n"
        f"delivery = Delivery('to_file', {target!r})\n"
        f"asyncio.run(ProjectSinks(pathlib.Path({str(root)!r})).deliver(delivery, Secret('x', 'x')))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9


async def test_a_file_with_a_name_of_any_valid_length_is_written(root: Path) -> None:
    await ProjectSinks(root).deliver(to("é" * 127), TOKEN)
    assert (root / ("é" * 127)).read_text(encoding="utf-8") == "canary-token"


@pytest.mark.parametrize(
    ("token", "written"),
    [
        ("sk_live:a/b.c@d%e+f=g-1", "sk_live:a/b.c@d%e+f=g-1"),
        *((token, f'"{token}"') for token in ("a b", "a#b", "#a", "a #b", "a\tb", "a'b", "a;b", "a&b", "a(b)", "a*")),
        ('a"b', '"a\\"b"'),
        ("a\\b", '"a\\\\b"'),
        ("a\nb", '"a\\nb"'),
    ],
)
async def test_a_dotenv_value_with_special_characters_is_quoted(root: Path, token: str, written: str) -> None:
    await ProjectSinks(root).deliver(dotenv("TOKEN"), Secret(token, "test"))
    text = (root / ".env").read_text()
    assert text == f"TOKEN={written}\n".replace("\t", "\\t")
    assert entry(text, "TOKEN") == token
