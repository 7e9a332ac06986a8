"""Whole commands on a sandbox, whose store was deleted or restored from a backup, is damaged, or is on a full disk.

Objects with an owner record are recognized. A bot user has none: it is never created twice, never deleted because of an
entry of the store alone, and adopted only with approval.
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


def delete_store(project: Project) -> None:
    shutil.rmtree(project.root / "state")


@pytest.fixture
def applied(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """The project after an apply that created a policy and a bot user."""
    on_sandbox.declare(*policies("a"), BOT)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    sandbox.forget_log()
    return on_sandbox


def run_quietly(project: Project, *words: str) -> Output:
    return project(*words, "-y", "--quiet")


# --- unreadable -------------------------------------------------------------------------------------------------------


def put_file_instead_of_folder(project: Project) -> None:
    delete_store(project)
    (project.root / "state").write_text("instead of the folder")


def link_folder_to_itself(project: Project) -> None:
    delete_store(project)
    (project.root / "state").symlink_to("state")


def forbid_reading(project: Project) -> None:
    folder = project.root / "state"
    folder.chmod(0)
    if os.access(folder, os.R_OK):
        pytest.skip("modes of files do not bind root")


@pytest.mark.parametrize("hide", [put_file_instead_of_folder, link_folder_to_itself, forbid_reading])
@pytest.mark.parametrize("command", ["plan", "history", "report"])
def test_an_unreadable_store_is_not_treated_as_a_missing_one(
    applied: Project, hide: Callable[[Project], None], command: str
) -> None:
    hide(applied)
    result = applied(command)
    assert (result.code, result.out) == (1, "")
    assert "state/reconciler.db cannot be used (" in result.err


# --- deleted ----------------------------------------------------------------------------------------------------------


def test_without_its_store_a_stack_creates_nothing_twice_and_adopts_with_approval(
    applied: Project, sandbox: Sandbox
) -> None:
    delete_store(applied)
    applied.declare(*policies("a"), resource("BotUser", "robot", name="robot", active=False))
    assert run_quietly(applied, "apply") == Output(4, "", ADOPT)
    assert sandbox.calls() == []
    assert run_quietly(applied, "apply", "--allow", "adopt:BotUser=1") == Output(0, "Applied: 1 adopted.\n", "")
    assert [call.partition("/")[0] for call in sandbox.calls()] == ["PATCH "]


def test_without_its_store_a_stack_deletes_no_bot_user(applied: Project, sandbox: Sandbox) -> None:
    delete_store(applied)
    assert run_quietly(applied, "destroy") == Output(0, "Destroyed: 1 deleted.\n", "")
    assert [user["name"] for user in sandbox.get("/bot_users")["bot_users"]] == ["robot"]


# --- restored from a backup -------------------------------------------------------------------------------------------


def backup(project: Project) -> Path:
    copy = project.root / "backup"
    shutil.copytree(project.root / "state", copy)
    return copy


def restore(project: Project, copy: Path) -> None:
    delete_store(project)
    shutil.copytree(copy, project.root / "state")


def test_with_an_older_store_a_bot_user_forgotten_since_is_not_deleted(applied: Project, sandbox: Sandbox) -> None:
    copy = backup(applied)
    applied.declare(
        *policies("a"), {"kind": "BotUser", "name": "robot", "ensure": "forgotten", "spec": {"name": "robot"}}
    )
    assert run_quietly(applied, "apply").code == 0
    restore(applied, copy)
    applied.declare(*policies("a"))
    assert run_quietly(applied, "apply") == Output(4, "", UNMARKED)
    assert sandbox.calls() == []


def test_with_an_older_store_objects_created_since_are_not_created_again(applied: Project, sandbox: Sandbox) -> None:
    copy = backup(applied)
    more = [*policies("a", "b", "c"), BOT, resource("BotUser", "second", name="second")]
    applied.declare(*more)
    assert run_quietly(applied, "apply").code == 0
    restore(applied, copy)
    sandbox.forget_log()
    result = run_quietly(applied, "apply", "--allow", "adopt:BotUser=1")
    assert (result.code, result.err) == (0, "")
    assert sandbox.calls() == []


def test_with_an_older_store_objects_deleted_since_are_created_once(applied: Project, sandbox: Sandbox) -> None:
    copy = backup(applied)
    run_quietly(applied, "destroy", "--allow", "delete:BotUser=1")
    restore(applied, copy)
    assert run_quietly(applied, "apply") == Output(0, "Applied: 2 created.\n", "")
    assert (len(sandbox.get("/ip_policies")["ip_policies"]), len(sandbox.get("/bot_users")["bot_users"])) == (1, 1)


# --- in memory only ---------------------------------------------------------------------------------------------------


def test_without_a_store_a_create_with_a_lost_response_is_not_repeated(on_sandbox: Project, sandbox: Sandbox) -> None:
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
    assert run_quietly(on_sandbox, "apply").code == 0
    assert sandbox.calls() == []
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1


def test_without_a_store_a_bot_user_is_not_created_twice(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_STORE"] = "memory:"
    on_sandbox.declare(resource("BotUser", "robot", name="robot", active=False))
    assert run_quietly(on_sandbox, "apply").code == 0
    on_sandbox.declare(BOT)
    assert run_quietly(on_sandbox, "apply") == Output(4, "", ADOPT)
    assert run_quietly(on_sandbox, "apply", "--adopt").code == 0
    assert len(sandbox.get("/bot_users")["bot_users"]) == 1


def test_without_a_store_a_secret_is_delivered_once_and_remains_valid(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_STORE"] = "memory:"
    credential = resource("TunnelCredential", "agent")
    on_sandbox.declare({**credential, "deliver": {"token": {"to_file": "secrets/agent"}}})
    assert run_quietly(on_sandbox, "apply").code == 0
    token = (on_sandbox.root / "secrets/agent").read_text()
    sandbox.forget_log()
    assert run_quietly(on_sandbox, "apply").code == 0
    assert (sandbox.calls(), (on_sandbox.root / "secrets/agent").read_text()) == ([], token)


# --- damaged or read-only ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "apply", "drift", "destroy", "history"])
def test_a_damaged_store_stops_every_command_before_anything_is_sent(
    applied: Project, sandbox: Sandbox, command: str
) -> None:
    store_of(applied).write_bytes(b"")
    result = applied(command, *(["-y"] if command in ("apply", "destroy") else []))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {store_of(applied).relative_to(applied.root)} is damaged (it is empty);")
    assert result.err.count("\n") == 1
    assert sandbox.calls() == []


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_log_without_its_database_stops_every_command(applied: Project, sandbox: Sandbox, command: str) -> None:
    store_of(applied).rename(f"{store_of(applied)}-wal")
    result = applied(command, *(["-y"] if command == "apply" else []))
    assert (result.code, "its database file is missing" in result.err) == (1, True)


def run_without_privilege(project: Project, *words: str) -> Output:
    """Runs a command as a user that modes of files bind, even if the tests are run by root."""
    wrapper = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*wrapper, *COMMAND, *words],
        cwd=project.root,
        env=project.process_environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    return Output(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def modes() -> Iterator[dict[Path, int]]:
    """Modes to restore, so that the folder can be deleted."""
    changed: dict[Path, int] = {}
    yield changed
    for path, mode in changed.items():
        path.chmod(mode)


def test_a_read_only_file_is_enough_for_a_plan_and_stops_an_apply(
    applied: Project, sandbox: Sandbox, modes: dict[Path, int]
) -> None:
    for path in store_of(applied).parent.glob("reconciler.db*"):
        modes[path] = 0o600
        path.chmod(0o400)
    assert run_without_privilege(applied, "plan", "--detailed-exitcode").code == 0
    result = run_without_privilege(applied, "apply", "-y")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        "error: state/reconciler.db cannot be used (attempt to write a readonly database); "
        "make the file and its folder writable, or set RECONCILER_STORE to another path or URL\n"
    )
    assert sandbox.calls() == []


def test_a_read_only_folder_stops_an_apply(on_sandbox: Project, sandbox: Sandbox, modes: dict[Path, int]) -> None:
    on_sandbox.declare(*policies("a"))
    folder = store_of(on_sandbox).parent
    folder.mkdir()
    modes[folder] = 0o700
    folder.chmod(0o500)
    result = run_without_privilege(on_sandbox, "apply", "-y")
    assert (result.code, result.out) == (1, "")
    assert re.fullmatch(
        r"error: state/reconciler\.db cannot be used \(Permission denied\); "
        r"make the file and its folder writable, or set RECONCILER_STORE to another path or URL\n",
        result.err,
    )
    assert sandbox.calls() == []


# --- a full disk ------------------------------------------------------------------------------------------------------


def run_on_full_disk(project: Project, size: int, *words: str) -> Output:
    """Runs a command whose files cannot grow beyond a number of bytes, as on a full disk."""

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits.setrlimit(limits.RLIMIT_FSIZE, (size, size))

    done = subprocess.run(
        [sys.executable, "-B", "-m", "reconciler", *words],
        cwd=project.root,
        env=project.process_environ(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_files,
    )
    return Output(done.returncode, done.stdout, done.stderr)


SIZES = (0, 4096, 20_000, 60_000, 90_000, 110_000, 130_000, 200_000, 260_000)


@pytest.mark.parametrize("size", only_if(lambda size: size in SIZES[::3], SIZES))
def test_after_a_full_disk_at_any_moment_another_apply_completes_the_first(
    on_sandbox: Project, sandbox: Sandbox, size: int
) -> None:
    names = [f"n{number}" for number in range(12)]
    on_sandbox.declare(*policies(*names), BOT)
    result = run_on_full_disk(on_sandbox, size, "apply", "-y", "--quiet", "--parallelism", "1")
    created = len(sandbox.get("/ip_policies")["ip_policies"])
    full = "error: state/reconciler.db cannot be used (disk I/O error); check the disk and its free space"
    assert result.err.count(full) == 1, result
    assert "RECONCILER_STORE" in result.err
    if result.code == 1:
        assert (result.out, created) == ("", 0), result
    else:
        assert result.code == 5, result
        counts = [int(count) for count in re.findall(r"[0-9]+", result.out)]
        assert sum(counts) == len(names) + 1, result  # each call is counted
    second = run_quietly(on_sandbox, "apply", "--allow", "adopt:BotUser=1")
    assert second.code == 0, second
    described = sorted(policy["description"] for policy in sandbox.get("/ip_policies")["ip_policies"])
    assert described == sorted(names)
    assert len(sandbox.get("/bot_users")["bot_users"]) == 1
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
