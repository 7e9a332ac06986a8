"""Files that hold secrets are for their owner alone from the moment they exist, and are written through no link."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project import atomic_write
from reconciler.project.secrets.sinks import ProjectSinks
from tests.harness.tiers import examples, is_quick

TOKEN = Secret("token-canary-77aQxL0p", "test")
DELIVERIES = [
    Delivery("to_file", "deep/below/a.token"),
    Delivery("to_dotenv", "deep/.env", settings={"name": "TOKEN"}),
    Delivery("to_kubernetes_secret", "deep/a.yaml", settings={"name": "a", "key": "token"}),
]


@pytest.fixture(autouse=True)
def _no_mask() -> Iterator[None]:
    """Without a umask, so that the modes are those of the product."""
    before = os.umask(0)
    yield
    os.umask(before)


def deliver(root: Path, delivery: Delivery) -> None:
    async def run() -> None:
        sinks = ProjectSinks(root)
        await sinks.check(delivery, overwrites=True)
        await sinks.deliver(delivery, TOKEN, overwrites=True)

    asyncio.run(run())


class Watch:
    """Reads the mode of each file below a folder again and again, and records all modes."""

    def __init__(self, root: Path) -> None:
        self.seen: dict[int, set[str]] = {}
        self._root = root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            for folder, _, names in os.walk(self._root):
                for name in names:
                    try:
                        mode = os.lstat(Path(folder, name)).st_mode & 0o777
                    except FileNotFoundError:
                        continue
                    self.seen.setdefault(mode, set()).add(name)


@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda delivery: delivery.way)
def test_other_users_cannot_read_a_delivered_secret_at_any_time(tmp_path: Path, delivery: Delivery) -> None:
    with Watch(tmp_path) as watch:
        for _ in range(examples(60)):
            deliver(tmp_path, delivery)
    assert set(watch.seen) == {0o600}
    assert (tmp_path / delivery.target).stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_dir()} == {0o700}


def test_a_file_is_created_with_permissions_for_its_owner_only(tmp_path: Path) -> None:
    """The mode with which each file of a sink, a plan and `fmt` is created."""
    script = f"""
import os
from pathlib import Path
real = os.open
def opening(path, flags, mode=0o777, *, dir_fd=None):
    if flags & os.O_CREAT:
        print("os.open", path, oct(mode), bool(flags & os.O_EXCL), bool(flags & os.O_NOFOLLOW))
    return real(path, flags, mode, dir_fd=dir_fd)
os.open = opening
os.umask(0)
from reconciler.project import atomic_write as whole
from reconciler.project.secrets import files as secret_files
root = Path({str(tmp_path)!r})
secret_files.write(root, "a/b", lambda present: "x")
whole.write(root / "plan.json", "x")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path.cwd())
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) >= 2
    assert {tuple(line[2:]) for line in lines} == {("0o600", "True", "True")}


@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda delivery: delivery.way)
@pytest.mark.parametrize(
    "lay",
    [
        lambda root, target: (root / target).symlink_to(root.parent / "victim"),
        lambda root, target: (root / target).symlink_to("nowhere"),
        lambda root, target: os.mkfifo(root / target),
        lambda root, target: (root / target).mkdir(),
        lambda root, target: ((root / target).parent.rmdir(), (root / target).parent.symlink_to(root.parent)),
    ],
    ids=["link", "dangling-link", "pipe", "folder", "linked-folder"],
)
def test_no_secret_is_delivered_through_a_symlink_or_into_a_special_file(
    tmp_path: Path, delivery: Delivery, lay: Callable[[Path, str], Any]
) -> None:
    root = tmp_path / "root"
    (root / delivery.target).parent.mkdir(parents=True)
    (tmp_path / "victim").write_text("as it was", encoding="utf-8")
    lay(root, delivery.target)
    with pytest.raises(Undeliverable):
        deliver(root, delivery)
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root", "victim"]


@pytest.mark.parametrize("target", ["../a", "/etc/a", "a/../../b", "", ".", "..", "a/..", "a\0b"])
def test_no_secret_is_delivered_outside_the_project(tmp_path: Path, target: str) -> None:
    with pytest.raises(Undeliverable):
        deliver(tmp_path, Delivery("to_file", target))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_no_longer_readable_by_others(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OTHER=1\n", encoding="utf-8")
    (tmp_path / ".env").chmod(0o666)
    others = (tmp_path / ".env").open(encoding="utf-8")  # a program that has opened it before
    deliver(tmp_path, Delivery("to_dotenv", ".env", settings={"name": "TOKEN"}))
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    with others:
        assert others.read() == "OTHER=1\n"


def test_a_hard_link_of_the_file_does_not_get_the_secret(tmp_path: Path) -> None:
    (tmp_path / "a.token").write_text("old", encoding="utf-8")
    os.link(tmp_path / "a.token", tmp_path / "second-name")
    deliver(tmp_path, Delivery("to_file", "a.token"))
    assert (tmp_path / "second-name").read_text(encoding="utf-8") == "old"


def test_a_target_replaced_by_a_symlink_during_delivery_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    stop = threading.Event()

    def link(path: Path) -> None:
        path.symlink_to(tmp_path / "outside")

    def swap() -> None:
        spare, target = root / "spare", root / "deep"
        while not stop.is_set():
            for make in (link, Path.mkdir):
                make(spare)
                with contextlib.suppress(OSError):  # neither takes the place of a folder with something in it
                    target.unlink()
                try:
                    spare.rename(target)
                except OSError:
                    spare.unlink() if spare.is_symlink() else spare.rmdir()

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = set()
    try:
        for _ in range(60 if is_quick() else 300):
            try:
                deliver(root, Delivery("to_file", "deep/a.token"))
                outcomes.add("delivered")
                (root / "deep/a.token").unlink(missing_ok=True)
                (root / "deep").rmdir()
            except Undeliverable:
                outcomes.add("refused")
            except OSError:
                continue
    finally:
        stop.set()
        thread.join()
    assert outcomes == {"delivered", "refused"}
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_command_gets_the_secret_and_only_listed_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_API_KEY", "RECONCILER_API_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "api-key-canary")
    for name in ("VAULT_TOKEN", "LC_ALL", "LANG"):
        monkeypatch.setenv(name, "C.UTF-8")
    see = "tr '\\0' '\\n' < /proc/$$/environ"
    run = ["sh", "-c", f"cat > got; {see} > environ; tr '\\0' ' ' < /proc/$$/cmdline > argv"]
    settings = {"run": run, "check": ["sh", "-c", f"{see} > checked"], "env": ["VAULT_TOKEN", "RECONCILER_API_KEY"]}
    deliver(tmp_path, Delivery("to_command", "sh", settings=settings))
    assert (tmp_path / "got").read_text(encoding="utf-8") == TOKEN.reveal()
    for name in ("environ", "checked"):
        environ = dict(line.partition("=")[::2] for line in (tmp_path / name).read_text(encoding="utf-8").splitlines())
        assert {"PATH", "HOME", "VAULT_TOKEN", "LC_ALL", "LANG"} <= set(environ)
        assert set(environ) <= {"PATH", "HOME", "VAULT_TOKEN", "LANG", "LANGUAGE", "PWD", "OLDPWD", "SHLVL", "_"} | {
            variable for variable in environ if variable.startswith("LC_")
        }
        assert TOKEN.reveal() not in environ.values()
    assert TOKEN.reveal() not in (tmp_path / "argv").read_text(encoding="utf-8")


def test_a_plan_file_replaces_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("as it was", encoding="utf-8")
    (tmp_path / "plan.json").symlink_to("victim")
    atomic_write.write(tmp_path / "plan.json", "the plan")
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "as it was"
    assert not (tmp_path / "plan.json").is_symlink()
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600


def test_a_private_manifest_is_private_while_it_is_formatted(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x", encoding="utf-8")
    (tmp_path / "a.yaml").chmod(0o600)
    with Watch(tmp_path) as watch:
        for _ in range(200):
            atomic_write.write(tmp_path / "a.yaml", "y" * 1000, mode=0o600)
    assert set(watch.seen) == {0o600}


@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda delivery: str(delivery.way))
def test_the_text_is_synced_before_the_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivery: Delivery
) -> None:
    target = tmp_path / delivery.target
    synced: dict[int, int] = {}
    sync = os.fsync

    def watch(descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            synced[status.st_ino] = status.st_size
            assert not target.exists()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    deliver(tmp_path, delivery)
    status = target.stat()
    assert synced[status.st_ino] == status.st_size > len("token")


def test_a_check_waits_for_another_process_that_writes_in_the_folder(tmp_path: Path) -> None:
    """Otherwise it would remove the other process's unfinished file, as one that a killed process left."""
    sinks, delivery = ProjectSinks(tmp_path), Delivery("to_file", "a.token")
    deliver(tmp_path, delivery)
    killed = "import os, sys; from pathlib import Path; from reconciler.project.secrets import files\n"
    killed += "os.rename = lambda *_, **__: os._exit(9)\n"
    killed += "files.write(Path(sys.argv[1]), 'a.token', lambda present: 'x')"
    assert subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False).returncode == 9
    (unfinished,) = tmp_path.glob(".reconciler-unfinished-*")
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # as if it were still writing
    proof = threading.Thread(target=lambda: asyncio.run(sinks.check(delivery, overwrites=True)))
    proof.start()
    proof.join(0.3)
    assert (proof.is_alive(), unfinished.exists()) == (True, True)
    os.close(folder)
    proof.join(10)
    assert (proof.is_alive(), unfinished.exists()) == (False, False)
