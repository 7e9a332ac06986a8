"""Nobody listens any more: a reader that left, a full disk, a stream that was never there. What is being done to the
account goes on to its end, is remembered, and the exit code says how it came out.
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
    """As many secrets that are told once."""
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
    ("line", "said"),
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
def test_an_apply_goes_on_to_its_end(tokens: Project, sandbox: Sandbox, line: str, said: str) -> None:
    ran = in_shell(tokens, line)
    assert ran.returncode == 0
    assert ran.stderr == said
    assert sorted(path.name for path in (tokens.root / "secrets").iterdir()) == sorted(map(str, range(COUNT)))
    assert tokens("history", "--limit", "1000").out.count("create TunnelCredential/") == COUNT
    assert tokens("plan", "--detailed-exitcode").code == 0


def test_what_was_not_begun_is_not_begun_when_its_plan_reaches_nobody(tokens: Project, sandbox: Sandbox) -> None:
    assert in_shell(tokens, "reconciler apply -y >/dev/full").returncode == 1
    assert [each for each in sandbox.log() if each["method"] == "POST"] == []


@pytest.mark.parametrize(
    ("line", "code", "said"),
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
def test_a_stream_that_was_never_there_leads_nowhere(tokens: Project, line: str, code: int, said: str) -> None:
    ran = in_shell(tokens, line)
    assert (ran.returncode, ran.stderr) == (code, said)
    assert "unexpected" not in ran.stdout
