"""Output that cannot be written: a closed pipe, a full disk, a closed stream. A running apply completes, its calls are
recorded, and the exit code is that of its result.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

pytestmark = pytest.mark.usefixtures("over_socket")

COUNT = 12
FULL = "no space left on device"


@pytest.fixture
def tokens(on_sandbox: Project) -> Project:
    """A project with this number of one-time secrets."""
    on_sandbox.declare(
        *(
            {**resource("TunnelCredential", f"c{number}"), "deliver": {"token": {"to_file": f"secrets/{number}"}}}
            for number in range(COUNT)
        )
    )
    return on_sandbox


def in_shell(project: Project, line: str) -> subprocess.CompletedProcess[str]:
    """`reconciler` with these words and redirections, as a shell starts it."""
    line = line.replace("reconciler", f"{sys.executable} -m reconciler", 1)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=project.root,
        env={**os.environ, **project.environ},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("reconciler apply -y 2>&1 | grep -m1 1/", ""),
        ("reconciler apply -y -q | true", ""),
        ("reconciler apply -y -q 2>/dev/full", ""),
        ("reconciler apply -y -q >&-", ""),
        ("reconciler apply -y -q 2>&-", ""),
        ("reconciler apply -y -q >/dev/full", f"warning: standard output: {FULL}\n"),
        (
            "reconciler apply -y -q --events /dev/full",
            f"warning: /dev/full: {FULL}; no further events are written to it\n",
        ),
    ],
)
def test_an_apply_completes_without_a_reader(tokens: Project, sandbox: Sandbox, line: str, error: str) -> None:
    ran = in_shell(tokens, line)
    assert ran.returncode == 0
    assert ran.stderr == error
    assert sorted(path.name for path in (tokens.root / "secrets").iterdir()) == sorted(map(str, range(COUNT)))
    assert tokens("history", "--limit", "1000").out.count("create TunnelCredential/") == COUNT
    assert tokens("plan", "--detailed-exitcode").code == 0


def test_an_apply_does_not_start_if_its_plan_cannot_be_printed(tokens: Project, sandbox: Sandbox) -> None:
    assert in_shell(tokens, "reconciler apply -y >/dev/full").returncode == 1
    assert [request for request in sandbox.log() if request["method"] == "POST"] == []


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("reconciler validate -q >&-", 0, ""),
        ("reconciler validate >/dev/full", 1, f"error: {FULL}\n"),
        ("reconciler --help >/dev/full", 1, f"error: {FULL}\n"),
        ("reconciler nothing 2>/dev/full", 64, ""),
        ("reconciler kinds | true", 1, ""),
        ("reconciler apply 2>&1 <&-", 64, ""),
        ("reconciler init --ci nobody 2>&-", 64, ""),
    ],
)
def test_closed_and_full_streams_are_no_unexpected_errors(tokens: Project, line: str, code: int, error: str) -> None:
    ran = in_shell(tokens, line)
    assert (ran.returncode, ran.stderr) == (code, error)
    assert "unexpected" not in ran.stdout
