"""An apply that is stopped half way, gently and not: the report is true, and the next run ends the work.

The project is sixty resources of five kinds, one of which can carry no owner record; the platform takes its time.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.model import owner_record
from tests.harness.forked import start_program
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, all_of, resource

COLLECTIONS = {
    "IPPolicy": ("/ip_policies", "ip_policies"),
    "IPPolicyRule": ("/ip_policy_rules", "ip_policy_rules"),
    "TunnelGroupBackend": ("/backends/tunnel_group", "backends"),
    "FailoverBackend": ("/backends/failover", "backends"),
    "BotUser": ("/bot_users", "bot_users"),
}
APPLY = ("apply", "-y", "--quiet", "--parallelism", "6", "--events", "-")
REPORT = re.compile(r"(\d+) calls? succeeded, 0 failed, (\d+) skipped\.\n")


def sixty() -> list[dict[str, Any]]:
    declared = []
    for number in range(12):
        policy, backend = f"policy-{number}", f"backend-{number}"
        rule = {"ip_policy_id": {"ref": f"IPPolicy/{policy}"}, "cidr": f"10.{number}.0.0/16", "action": "allow"}
        declared += [
            resource("IPPolicy", policy),
            resource("IPPolicyRule", f"rule-{number}", **rule),
            resource("TunnelGroupBackend", backend, labels={"number": str(number)}),
            resource("FailoverBackend", f"failover-{number}", backends=[{"ref": f"TunnelGroupBackend/{backend}"}]),
            resource("BotUser", f"bot-{number}", name=f"bot {number}"),
        ]
    return declared


@pytest.fixture
def slow(start_sandbox: Callable[..., Sandbox]) -> Sandbox:
    return start_sandbox(latency_ms=50)


@pytest.fixture
def sixty_on_slow(project: Project, slow: Sandbox) -> Project:
    project.use(slow)
    # The platform answers within a second: a rerun after a kill waits no longer than this for an interrupted create.
    project.write("reconciler.yaml", "version: 1\nstack: prod\nlimits: {settle_seconds: 3}\n")
    project.declare(*sixty())
    return project


def count_objects(sandbox: Sandbox) -> Counter[str]:
    """What there is, by the address it was made for."""
    found: Counter[str] = Counter()
    for kind, (path, key) in COLLECTIONS.items():
        for body in all_of(sandbox, path, key):
            record = owner_record.read(body.get("metadata"))[1]
            found[str(record.address) if record else f"{kind}/{body['name'].replace(' ', '-')}"] += 1
    return found


EVERYTHING = Counter(f"{item['kind']}/{item['name']}" for item in sixty())


WRITE_TO_NO_ONE = """\
import os
reader, writer = os.pipe()
os.close(reader)
try:
    os.write(writer, b"x")
except BrokenPipeError:
    print("broken pipe")
"""


def test_a_process_of_a_test_ignores_broken_pipes_as_an_interpreter_does() -> None:
    def write(words: list[str]) -> None:
        exec(WRITE_TO_NO_ONE, {})  # noqa: S102 - the program of the command below

    process = start_program(write, [sys.executable, "-c", WRITE_TO_NO_ONE], [], stdout=subprocess.PIPE)
    assert (process.communicate()[0], process.returncode) == ("broken pipe\n", 0)


def wait_for(process: subprocess.Popen[str], event: str, times: int) -> str:
    """Reads on until that many such events were told; everything that was read."""
    assert process.stderr is not None
    read = ""
    while times:
        line = process.stderr.readline()
        assert line, read
        read += line
        times -= line.startswith("{") and json.loads(line)["event"] == event
    return read


def rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it still has to say. Not `communicate`, which forgets what `readline` has read ahead."""
    assert process.stdout is not None
    assert process.stderr is not None
    err = process.stderr.read()
    return process.stdout.read(), err


def assert_converged(project: Project, sandbox: Sandbox) -> None:
    """One more run ends the work; what was made once was not made again, and then there is nothing to do."""
    assert project("apply", "-y", "--quiet").code == 0
    assert count_objects(sandbox) == EVERYTHING
    created = [request for request in sandbox.log() if request["method"] == "POST" and request["status"] == 201]
    assert len(created) == len(EVERYTHING)
    assert [request for request in sandbox.log() if request["method"] == "DELETE"] == []
    sandbox.forget_log()
    assert project("apply", "-y", "--quiet") == Output(0, "", "")
    assert sandbox.calls() == []


@contextmanager
def not_ignored(how: signal.Signals) -> Iterator[None]:
    """A process inherits what its parent ignores: SIGHUP, if the tests were started with `nohup`."""
    before = signal.getsignal(how)
    if before is signal.SIG_IGN:
        signal.signal(how, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(how, before)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_with_a_true_report_and_the_next_run_ends_the_work(
    sixty_on_slow: Project, slow: Sandbox, how: signal.Signals
) -> None:
    with not_ignored(how), sixty_on_slow.start(*APPLY) as process:
        progress = wait_for(process, "ended", 20)
        process.send_signal(how)
        out, err = rest(process)
    assert process.returncode == 130

    report = REPORT.fullmatch(out)
    assert report is not None, out
    done, not_tried = int(report[1]), int(report[2])
    assert 20 <= done < 60
    assert done + not_tried == 60
    live = count_objects(slow)
    assert live.total() == done
    records = [json.loads(line) for line in (progress + err).splitlines() if line.startswith("{")]
    ended = {record["call"] for record in records if record["event"] == "ended" and record["outcome"] == "succeeded"}
    assert ended == {f"create {address}" for address in live}
    named = {line.split()[2].rstrip(":") for line in err.splitlines() if line.startswith("skipped: ")}
    assert named == EVERYTHING.keys() - live.keys()
    assert_converged(sixty_on_slow, slow)


@pytest.mark.parametrize(
    ("event", "times"), [("started", 1), ("ended", 15), pytest.param("ended", 40, marks=pytest.mark.full)]
)
def test_a_killed_run_leaves_nothing_that_the_next_one_does_not_put_right(
    sixty_on_slow: Project, slow: Sandbox, event: str, times: int
) -> None:
    with sixty_on_slow.start(*APPLY) as process:
        wait_for(process, event, times)
        process.kill()
        rest(process)
    assert process.returncode == -signal.SIGKILL
    assert_converged(sixty_on_slow, slow)
