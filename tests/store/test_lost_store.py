"""What the next run does when the store is gone, old, full or out of reach, by whole commands against a sandbox.

Objects that carry an owner record are recognised. A bot user carries none: it is never made a second time, never
deleted on the word of the store alone, and taken over only with consent.
"""

from __future__ import annotations

import os
import re
import resource as limits
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import COMMAND, Output, Project, policies, resource
from tests.harness.tiers import only_if

pytestmark = pytest.mark.usefixtures("over_socket")

BOT = resource("BotUser", "robot", name="robot")
ADOPT = (
    "blocked: adopt:BotUser=1: already exists and is not managed by any stack\n"
    "error: nothing was changed: approval required: pass --allow adopt:BotUser=1\n"
)
UNMARKED = (
    "blocked: delete:BotUser=1: this kind has no metadata: ownership is known only from the local store\n"
    "error: nothing was changed: approval required: pass --allow delete:BotUser=1\n"
)


def store_of(project: Project) -> Path:
    return project.root / "state" / "reconciler.db"


def lose(project: Project) -> None:
    shutil.rmtree(project.root / "state")


@pytest.fixture
def applied(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """A policy and a bot user, both there."""
    on_sandbox.declare(*policies("a"), BOT)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    sandbox.forget_log()
    return on_sandbox


def quietly(project: Project, *words: str) -> Output:
    return project(*words, "-y", "--quiet")


# --- there, and not to be read ----------------------------------------------------------------------------------------


def in_the_way(project: Project) -> None:
    lose(project)
    (project.root / "state").write_text("in the place of the folder")


def around_in_a_circle(project: Project) -> None:
    lose(project)
    (project.root / "state").symlink_to("state")


def closed(project: Project) -> None:
    folder = project.root / "state"
    folder.chmod(0)
    if os.access(folder, os.R_OK):
        pytest.skip("nothing is closed to root")


@pytest.mark.parametrize("hide", [in_the_way, around_in_a_circle, closed])
@pytest.mark.parametrize("command", ["plan", "history", "report"])
def test_a_store_that_may_not_be_read_is_not_taken_for_none(
    applied: Project, hide: Callable[[Project], None], command: str
) -> None:
    hide(applied)
    said = applied(command)
    assert (said.code, said.out) == (1, "")
    assert "state/reconciler.db cannot be used (" in said.err


# --- gone -------------------------------------------------------------------------------------------------------------


def test_without_its_store_a_stack_makes_nothing_twice_and_asks_before_it_adopts(
    applied: Project, sandbox: Sandbox
) -> None:
    lose(applied)
    applied.declare(*policies("a"), resource("BotUser", "robot", name="robot", active=False))
    assert quietly(applied, "apply") == Output(4, "", ADOPT)
    assert sandbox.calls() == []
    assert quietly(applied, "apply", "--allow", "adopt:BotUser=1") == Output(0, "Applied: 1 adopted.\n", "")
    assert [call.partition("/")[0] for call in sandbox.calls()] == ["PATCH "]


def test_without_its_store_a_stack_deletes_no_bot_user(applied: Project, sandbox: Sandbox) -> None:
    lose(applied)
    assert quietly(applied, "destroy") == Output(0, "Destroyed: 1 deleted.\n", "")
    assert [user["name"] for user in sandbox.get("/bot_users")["bot_users"]] == ["robot"]


# --- rolled back ------------------------------------------------------------------------------------------------------


def backup(project: Project) -> Path:
    copy = project.root / "backup"
    shutil.copytree(project.root / "state", copy)
    return copy


def roll_back(project: Project, copy: Path) -> None:
    lose(project)
    shutil.copytree(copy, project.root / "state")


def test_a_bot_user_that_was_given_away_since_is_not_deleted_by_an_older_store(
    applied: Project, sandbox: Sandbox
) -> None:
    copy = backup(applied)
    applied.declare(
        *policies("a"), {"kind": "BotUser", "name": "robot", "ensure": "forgotten", "spec": {"name": "robot"}}
    )
    assert quietly(applied, "apply").code == 0
    roll_back(applied, copy)
    applied.declare(*policies("a"))
    assert quietly(applied, "apply") == Output(4, "", UNMARKED)
    assert sandbox.calls() == []


def test_what_was_made_since_is_not_made_again_by_an_older_store(applied: Project, sandbox: Sandbox) -> None:
    copy = backup(applied)
    more = [*policies("a", "b", "c"), BOT, resource("BotUser", "second", name="second")]
    applied.declare(*more)
    assert quietly(applied, "apply").code == 0
    roll_back(applied, copy)
    sandbox.forget_log()
    said = quietly(applied, "apply", "--allow", "adopt:BotUser=1")
    assert (said.code, said.err) == (0, "")
    assert sandbox.calls() == []


def test_what_was_deleted_since_is_made_once_by_an_older_store(applied: Project, sandbox: Sandbox) -> None:
    copy = backup(applied)
    quietly(applied, "destroy", "--allow", "delete:BotUser=1")
    roll_back(applied, copy)
    assert quietly(applied, "apply") == Output(0, "Applied: 2 created.\n", "")
    assert (len(sandbox.get("/ip_policies")["ip_policies"]), len(sandbox.get("/bot_users")["bot_users"])) == (1, 1)


# --- none at all ------------------------------------------------------------------------------------------------------


def test_a_create_whose_answer_was_lost_is_not_repeated_though_nothing_was_ever_stored(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.environ["RECONCILER_STORE"] = "memory:"
    on_sandbox.declare(*policies("a"))
    sandbox.fault("POST /ip_policies", then="commit-then-hang")
    process = on_sandbox.start("apply", "-y", "--events", "-", "--quiet")
    assert process.stderr is not None
    while not sandbox.get("/ip_policies")["ip_policies"]:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (on_sandbox.root / "state").exists()
    sandbox.forget_log()
    assert quietly(on_sandbox, "apply").code == 0
    assert sandbox.calls() == []
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1


def test_without_any_store_a_bot_user_is_not_made_twice(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_STORE"] = "memory:"
    on_sandbox.declare(resource("BotUser", "robot", name="robot", active=False))
    assert quietly(on_sandbox, "apply").code == 0
    on_sandbox.declare(BOT)
    assert quietly(on_sandbox, "apply") == Output(4, "", ADOPT)
    assert quietly(on_sandbox, "apply", "--adopt").code == 0
    assert len(sandbox.get("/bot_users")["bot_users"]) == 1


def test_without_any_store_a_secret_arrives_once_and_stays_good(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_STORE"] = "memory:"
    credential = resource("TunnelCredential", "agent")
    on_sandbox.declare({**credential, "deliver": {"token": {"to_file": "secrets/agent"}}})
    assert quietly(on_sandbox, "apply").code == 0
    token = (on_sandbox.root / "secrets/agent").read_text()
    sandbox.forget_log()
    assert quietly(on_sandbox, "apply").code == 0
    assert (sandbox.calls(), (on_sandbox.root / "secrets/agent").read_text()) == ([], token)


# --- in the way -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "apply", "drift", "destroy", "history"])
def test_a_damaged_store_stops_every_command_before_anything_is_sent(
    applied: Project, sandbox: Sandbox, command: str
) -> None:
    store_of(applied).write_bytes(b"")
    said = applied(command, *(["-y"] if command in ("apply", "destroy") else []))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: {store_of(applied).relative_to(applied.root)} is damaged (it is empty);")
    assert said.err.count("\n") == 1
    assert sandbox.calls() == []


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_log_whose_store_is_gone_stops_readers_too(applied: Project, sandbox: Sandbox, command: str) -> None:
    store_of(applied).rename(f"{store_of(applied)}-wal")
    said = applied(command, *(["-y"] if command == "apply" else []))
    assert (said.code, "its database file is missing" in said.err) == (1, True)


def without_privilege(project: Project, *words: str) -> Output:
    """As a user whom file modes bind, even if the tests are run by root."""
    bound = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*bound, *COMMAND, *words],
        cwd=project.root,
        env=project.process_environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    return Output(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def modes() -> Iterator[dict[Path, int]]:
    """Modes to be put back, so that the folder can be cleared away."""
    changed: dict[Path, int] = {}
    yield changed
    for path, mode in changed.items():
        path.chmod(mode)


def test_a_file_that_must_not_be_written_is_read_and_stops_whoever_writes(
    applied: Project, sandbox: Sandbox, modes: dict[Path, int]
) -> None:
    for path in store_of(applied).parent.glob("reconciler.db*"):
        modes[path] = 0o600
        path.chmod(0o400)
    assert without_privilege(applied, "plan", "--detailed-exitcode").code == 0
    said = without_privilege(applied, "apply", "-y")
    assert (said.code, said.out) == (1, "")
    assert said.err == (
        "error: state/reconciler.db cannot be used (attempt to write a readonly database); "
        "make the file and its folder writable, or set RECONCILER_STORE to another path or URL\n"
    )
    assert sandbox.calls() == []


def test_a_folder_that_must_not_be_written_stops_the_command(
    on_sandbox: Project, sandbox: Sandbox, modes: dict[Path, int]
) -> None:
    on_sandbox.declare(*policies("a"))
    folder = store_of(on_sandbox).parent
    folder.mkdir()
    modes[folder] = 0o700
    folder.chmod(0o500)
    said = without_privilege(on_sandbox, "apply", "-y")
    assert (said.code, said.out) == (1, "")
    assert re.fullmatch(
        r"error: state/reconciler\.db cannot be used \(Permission denied\); "
        r"make the file and its folder writable, or set RECONCILER_STORE to another path or URL\n",
        said.err,
    )
    assert sandbox.calls() == []


# --- full -------------------------------------------------------------------------------------------------------------


def crammed(project: Project, size: int, *words: str) -> Output:
    """With files that can grow to so many bytes and no further, as on a disk that is full."""

    def cram() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits.setrlimit(limits.RLIMIT_FSIZE, (size, size))

    done = subprocess.run(
        [sys.executable, "-B", "-m", "reconciler", *words],
        cwd=project.root,
        env=project.process_environ(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=cram,
    )
    return Output(done.returncode, done.stdout, done.stderr)


SIZES = (0, 4096, 20_000, 60_000, 90_000, 110_000, 130_000, 200_000, 260_000)


@pytest.mark.parametrize("size", only_if(lambda size: size in SIZES[::3], SIZES))
def test_a_disk_that_is_full_at_any_moment_costs_a_rerun_and_nothing_else(
    on_sandbox: Project, sandbox: Sandbox, size: int
) -> None:
    names = [f"n{number}" for number in range(12)]
    on_sandbox.declare(*policies(*names), BOT)
    said = crammed(on_sandbox, size, "apply", "-y", "--quiet", "--parallelism", "1")
    made = len(sandbox.get("/ip_policies")["ip_policies"])
    full = "error: state/reconciler.db cannot be used (disk I/O error); check the disk and its free space"
    assert said.err.count(full) == 1, said
    assert "RECONCILER_STORE" in said.err
    if said.code == 1:
        assert (said.out, made) == ("", 0), said
    else:
        assert said.code == 5, said
        counts = [int(each) for each in re.findall(r"[0-9]+", said.out)]
        assert sum(counts) == len(names) + 1, said  # every call is told of
    again = quietly(on_sandbox, "apply", "--allow", "adopt:BotUser=1")
    assert again.code == 0, again
    described = sorted(policy["description"] for policy in sandbox.get("/ip_policies")["ip_policies"])
    assert described == sorted(names)
    assert len(sandbox.get("/bot_users")["bot_users"]) == 1
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
