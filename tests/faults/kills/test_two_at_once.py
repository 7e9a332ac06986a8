"""Two applies at the same moment: on one store the lock decides, on two stores the platform shows it afterwards."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.store.lock import LOCK_SECONDS
from tests.faults.kills import projects, real
from tests.faults.kills.projects import CrashProject
from tests.faults.kills.real import Scene
from tests.harness.tiers import only_if

Prepared = Callable[[CrashProject], Path]
BUILDING, REBUILDING = projects.create_all(), projects.replace_all()
UNDISTURBED = {"point": "", "what": "", "nth": 0, "signal": 0}


def start_and_halt(scene: Scene, point: str, what: str) -> subprocess.Popen[str]:
    """The command, asleep at a moment while it holds the lock."""
    process = scene.start({"point": point, "what": what, "nth": 1, "signal": signal.SIGSTOP})
    stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert stopped is not None
    assert stopped.si_status == signal.SIGSTOP, "it ended before it fell asleep"
    return process


@pytest.fixture
def building(prepared: Prepared, tmp_path: Path) -> Iterator[Scene]:
    with real.scene(BUILDING, prepared(BUILDING), tmp_path) as made:
        yield made


def test_a_second_apply_is_refused_and_names_the_process_of_the_first(building: Scene) -> None:
    first = start_and_halt(building, "after send", "create BotUser/ci")
    second = building.start(UNDISTURBED)
    out, err = second.communicate(timeout=60)
    assert (second.returncode, out) == (1, "")
    reported = re.fullmatch(r"error: stack kills is being applied by process (\d+) on \S+ since \S+; wait .*\n", err)
    assert reported is not None, err
    assert int(reported[1]) == first.pid
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert building.flaws() == []


def test_the_lock_of_a_killed_run_is_free_at_once_and_no_object_is_created_twice(building: Scene) -> None:
    first = start_and_halt(building, "after send", "create BotUser/ci")
    first.kill()
    first.communicate(timeout=60)
    second = building.start(UNDISTURBED)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert building.flaws() == []


def test_a_run_that_was_suspended_until_its_lock_expired_sends_no_further_change(
    prepared: Prepared, tmp_path: Path
) -> None:
    with real.scene(REBUILDING, prepared(REBUILDING), tmp_path) as scene:
        first = start_and_halt(scene, "before send", "update TLSEdge/pay")
        time.sleep(LOCK_SECONDS / 4 + 1)  # it may believe what it knew for so long
        with closing(sqlite3.connect(scene.root / "state/reconciler.db")) as store, store:
            store.execute("UPDATE locks SET holder = 'another run'")
        first.send_signal(signal.SIGCONT)
        _, reported = first.communicate(timeout=60)
        assert (first.returncode, "another run acquired it" in reported) == (5, True), reported
        assert "skipped: update TLSEdge/pay: the run was aborted" in reported.splitlines()
        assert not [call for call in scene.sandbox.calls() if "/edges/tls/" in call]


@pytest.mark.parametrize("project", only_if(lambda project: project is BUILDING, [BUILDING, REBUILDING]), ids=str)
@pytest.mark.parametrize("point", ["before intend", "after send"])
def test_a_run_that_starts_while_another_is_killed_completes_the_changes(
    project: CrashProject, point: str, prepared: Prepared, tmp_path: Path
) -> None:
    what = "create BotUser/ci" if project is BUILDING else "create CertificateAuthority/partners"
    with real.scene(project, prepared(project), tmp_path) as scene:
        first = start_and_halt(scene, point, what)
        second = scene.start(UNDISTURBED)
        first.kill()
        first.communicate(timeout=60)
        second.communicate(timeout=60)
        assert second.returncode in (0, 1)  # it may have come while the first was still alive
        assert scene.flaws() == []


# --- two stores: nothing tells the two runs of each other -------------------------------------------------------------


def elsewhere(scene: Scene, name: str) -> Scene:
    """The same project on another machine, with a store of its own."""
    root = scene.root.with_name(name)
    shutil.copytree(scene.root, root)
    return Scene(scene.project, root, scene.sandbox)


def test_concurrent_runs_that_create_the_same_object_keep_one(prepared: Prepared, tmp_path: Path) -> None:
    project = projects.plain()
    with real.scene(project, prepared(project), tmp_path) as scene:
        other = elsewhere(scene, "other")
        first = start_and_halt(scene, "before intend", "create IPPolicy/office")  # it has listed, and found nothing
        assert other.run() == 0
        first.send_signal(signal.SIGCONT)
        _, err = first.communicate(timeout=60)
        # A second object with a unique name was refused; others were created twice, and the next refresh finds them.
        assert scene.run() == 0, err
        assert other.run() == 0
        scene.sandbox.forget_log()
        assert scene.run() == 0
        assert other.run() == 0
        assert scene.sandbox.calls() == []
        assert scene.unlike_declared() == []


def test_duplicates_of_concurrent_runs_are_deleted_by_the_run_that_ends_last(
    prepared: Prepared, tmp_path: Path
) -> None:
    project = projects.plain()
    with real.scene(project, prepared(project), tmp_path) as scene:
        other = elsewhere(scene, "other")
        first = start_and_halt(scene, "before intend", "create IPPolicy/office")
        assert other.run() == 0
        kept = {body["id"] for _, body in scene.live()}
        first.send_signal(signal.SIGCONT)
        _, err = first.communicate(timeout=60)
        assert first.returncode == 0, err
        assert "IPPolicy/office was created by two concurrent runs; " in err
        assert {body["id"] for _, body in scene.live()} == kept


def test_two_credentials_of_one_address_are_reported_with_both_ids_and_the_remedy(
    prepared: Prepared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = projects.single()
    with real.scene(project, prepared(project), tmp_path) as scene:
        other = elsewhere(scene, "other")
        first = start_and_halt(scene, "before intend", "create TunnelCredential/agent")
        assert other.run() == 0
        first.send_signal(signal.SIGCONT)
        _, reported = first.communicate(timeout=60)
        older, newer = sorted(body["id"] for _, body in scene.live())
        assert first.returncode == 1
        assert scene.run() == 1
        for text in (reported, capsys.readouterr().err):
            assert "2 credentials exist for it, and the token of each may be in use: " in text
            assert f"set `id: {older}` or `id: {newer}` in its manifest" in text
        scene.sandbox.delete(f"/credentials/{newer}")
        assert other.run() == 0


def test_a_rerun_succeeds_after_a_concurrent_run_created_the_object_first(prepared: Prepared, tmp_path: Path) -> None:
    """A domain can be reserved once: the second POST is refused, and nothing is left to settle."""
    project = projects.unique_names()
    with real.scene(project, prepared(project), tmp_path) as scene:
        other = elsewhere(scene, "other")
        first = start_and_halt(scene, "before intend", "create ReservedDomain/pay")
        assert other.run() == 0
        first.send_signal(signal.SIGCONT)
        first.communicate(timeout=60)
        assert first.returncode in (1, 5)
        scene.sandbox.forget_log()
        assert scene.run() == 0
        assert scene.sandbox.calls() == []
        assert scene.unlike_declared() == []
