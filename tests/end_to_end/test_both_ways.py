"""A law: each command that reads or changes the platform prints the same in process and over a socket."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.cli.main import COMMANDS
from tests.end_to_end.test_agent_config import BERLIN, CREDENTIAL, INGRESS
from tests.harness.platform import Sandbox, SandboxProcess
from tests.harness.project import Output, Project, policies, resource

EDGE = resource("TLSEdge", "pay", ip_restriction={"ip_policy_ids": [{"ref": "IPPolicy/office"}]})
DECLARED = (*policies("office"), EDGE, CREDENTIAL, INGRESS, BERLIN)
BY_HAND = {"description": "by hand"}

LIFE = (
    ("plan", "--detailed-exitcode"),
    ("plan", "--out", "plan.json"),
    ("apply", "plan.json", "-y", "--parallelism", "1"),
    ("forget", "IPPolicy/office", "--dry-run"),
    ("history",),
    ("explain", "IPPolicy/office"),
    ("list", "IPPolicy"),
    ("access",),
    ("status",),
    ("dns",),
    ("agent", "config", "berlin"),
    ("drift",),
    ("accept",),
    ("graph",),
    ("snapshot", "--out", "snapshot.json"),
    ("import", "--dry-run"),
    ("adopt", "BotUser/robot", "-y", "--id", "…"),
    ("apply", "-y"),
    ("destroy", "-y", "--parallelism", "1"),
    ("destroy", "-y", "--parallelism", "1", "--allow", "delete:AgentIngress=1,delete:BotUser=1"),
    ("init", "fresh", "-y", "--base-url", "…"),
)
# None of these sends a request to the platform.
OFFLINE = {"validate", "fmt", "kinds", "schema", "show", "rename", "comment", "report", "sandbox", "completion"}

FLEET = {"fleet"}  # its members are accounts: tests/fleet


def live(project: Project, sandbox: Sandbox) -> list[tuple[Output, list[tuple[str, str, int]]]]:
    """What each command printed, and its requests."""
    project.use(sandbox)
    project.declare(*DECLARED)
    results = []
    for words in LIFE:
        if words == ("drift",):
            (policy,) = sandbox.get("/ip_policies")["ip_policies"]
            sandbox.patch(f"/ip_policies/{policy['id']}", BY_HAND)
        if words[0] == "adopt":
            robot = sandbox.post("/bot_users", {"name": "robot"})["id"]
            project.declare(*DECLARED, resource("BotUser", "robot", name="robot"))
            words = (*words[:-1], robot)
        if words[0] == "init":
            words = (*words[:-1], sandbox.base_url)
        sandbox.forget_log()
        result = project(*words)
        results.append((mask(result, sandbox), requests(sandbox)))
    return results


def mask(result: Output, sandbox: Sandbox) -> Output:
    """Without what is different each time: the address, ids, moments and durations."""
    host = sandbox.base_url.partition("://")[2]
    result = result.replace_text(sandbox.base_url, "ADDRESS").replace_text(host, "HOST").number_ids()
    return Output(
        result.code,
        *(
            re.sub(
                r"\b[0-9a-f]{12}\b", "HASH", re.sub(r"\d{4}-\d\d-\d\d[T ][\d:]+Z?|\d+(\.\d+)? ?m?s\b", "MOMENT", item)
            )
            for item in (result.out, result.err)
        ),
    )


def requests(sandbox: Sandbox) -> list[tuple[str, str, int]]:
    """Lists go out at once, and no order is theirs."""
    number = re.compile(r"[a-z]+_[0-9A-Za-z]{27}")
    return sorted(
        (request["method"], number.sub("ID", request["path"]), request["status"]) for request in sandbox.log()
    )


def test_a_command_does_and_prints_the_same(
    sandbox: Sandbox, sandbox_process: SandboxProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = []
    for place, platform in (("one", sandbox), ("other", sandbox_process)):
        platform.reset()
        project = Project(tmp_path / place / "project", capsys)
        project.write("reconciler.yaml", "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000}\n")
        results.append(live(project, platform))
    for words, in_process, over_socket in zip(LIFE, *results, strict=True):
        assert (words, in_process) == (words, over_socket)
    assert [result.code for result, _ in results[0]] == [
        2,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        7,
        0,
        0,
        2,
        0,
        0,
        0,
        0,
        0,
        0,
        4,
        0,
        0,
    ], results[0]


def test_each_command_is_in_the_table_or_sends_nothing() -> None:
    assert {words[0] for words in LIFE} | OFFLINE | FLEET == set(COMMANDS)
