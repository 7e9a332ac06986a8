"""`plan`, `show`, `apply` and `destroy` against an emulated platform; ids are numbered as they occur."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import jsonschema
import pytest

from reconciler.api.clock import MachineClock
from reconciler.cli.commands import apply
from reconciler.cli.terminal import exit_codes
from reconciler.cli.terminal.options import Options
from reconciler.rendering.wire.events import event_schema
from tests.harness.forked import start_command
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, Shell

CREATES = """\
  + IPPolicy/office  manifests/payments.yaml:1
      will be created
      + description: "Office"

  + ReservedDomain/pay  manifests/payments.yaml:14
      will be created
      → DNS record to set: pay.example.com CNAME (known after apply), unless the platform owns the
        domain
      + domain: "pay.example.com"

  + TLSEdge/payments  manifests/payments.yaml:6
      will be created
      + hostports: ["pay.example.com:443"]
      + ip_restriction.ip_policy_ids: [(known after apply: IPPolicy/office)]

Calls, in order:
  1  POST    /ip_policies       IPPolicy/office
  2  POST    /reserved_domains  ReservedDomain/pay
  3  POST    /edges/tls         TLSEdge/payments, after 1, 2

Plan: 3 to create, 0 to update, 0 to replace, 0 to delete.
3 API calls.
"""


def test_a_base_url_without_the_api_is_reported_as_a_wrong_address(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_BASE_URL", f"{sandbox.base_url}/api/v2")
    assert shell("plan") == Output(
        1,
        "",
        f"error: {sandbox.base_url}/api/v2 is not the address of the platform's API: none of its paths exists; "
        "correct platform.base_url, or RECONCILER_BASE_URL\n",
    )


def test_a_plan_file_is_applied_as_written(shell: Shell, sandbox: Sandbox) -> None:
    shell("plan", "--out", "plan.json", "--quiet")
    assert (shell.root / "plan.json").stat().st_mode & 0o777 == 0o600
    result = shell("apply", "plan.json", "-y", "--quiet")
    assert result == Output(0, "Applied: 3 created.\n", "")


@pytest.mark.parametrize("quiet", [(), ("--quiet",)], ids=["", "quiet"])
def test_an_apply_prints_the_error_of_a_skipped_resource_once_on_standard_error(
    shell: Shell, sandbox: Sandbox, quiet: tuple[str, ...]
) -> None:
    shell.write(
        "manifests/wrong.yaml", "kind: IPPolicy\nname: wrong\nid: edghts_2vJ0QmZr8sT1uV3wX5yZ7aB9cD4\nspec: {}\n"
    )
    result = shell("apply", "--auto-approve", *quiet)
    assert (result.code, len(sandbox.calls())) == (1, 3)
    lines = [line for line in result.err.splitlines() if "is not an id of IPPolicy" in line]
    assert len(lines) == 1


def test_show_prints_a_plan_file_as_plan_did(shell: Shell, sandbox: Sandbox) -> None:
    written = shell("plan", "--out", "plan.json", "--format", "json").out
    assert (shell.root / "plan.json").read_text() == written
    assert shell("show", "plan.json").out.startswith(CREATES.partition("3 API calls")[0])
    assert shell("show", "plan.json", "--format", "json").out == written


def test_a_plan_is_stale_if_an_object_to_create_exists(shell: Shell, sandbox: Sandbox) -> None:
    shell("plan", "--out", "plan.json")
    shell("apply", "-y")
    result = shell("apply", "plan.json", "-y").number_ids()
    assert (result.code, result.out) == (3, "")
    assert result.err.splitlines()[1] == "IPPolicy/office: ipp_1 exists now"


def test_a_plan_of_earlier_manifests_is_applied_as_it_was_reviewed(shell: Shell, sandbox: Sandbox) -> None:
    shell("plan", "--out", "plan.json")
    shell.write("manifests/bot.yaml", "kind: BotUser\nname: b\nspec:\n  name: bot\n")
    assert shell("apply", "plan.json", "-y", "--quiet") == Output(
        0,
        "Applied: 3 created.\n",
        "note: the manifests or their variables changed after this plan was created; "
        "the plan is applied as it was reviewed, without these changes\n",
    )


def test_events_are_a_line_of_json_each(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y", "--events", "events.ndjson")
    lines = [json.loads(line) for line in (shell.root / "events.ndjson").read_text().splitlines()]
    assert sorted((line["event"], line["call"]) for line in lines) == [
        (event, f"create {address}")
        for event in ("ended", "started")
        for address in ("IPPolicy/office", "ReservedDomain/pay", "TLSEdge/payments")
    ]


def test_a_key_that_is_not_accepted_exits_6(shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_API_KEY", "wrong")
    result = shell("plan")
    assert (result.code, result.out) == (6, "")
    assert result.err.startswith("error: ")
    assert result.err.endswith("; check the API key and its permissions\n")


def test_an_unreachable_platform_is_reported_in_two_lines(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("RECONCILER_API_KEY", "sandbox")
    monkeypatch.setattr(MachineClock, "sleep", lambda _clock, _seconds: asyncio.sleep(0))  # requests are retried
    result = shell("plan")
    assert (result.code, result.out) == (1, "")
    reason = "cannot reach http://127.0.0.1:1: connection refused"
    error = f"error: nothing could be read from the platform: {reason}"
    assert result.err.splitlines() == [f"{reason}; retrying", error]


FIXED: dict[str, dict[str, Any]] = {
    "--target": {"targets": ("A/a",)},
    "--exclude": {"excludes": ("A/a",)},
    "--replace": {"to_replace": ("A/a",)},
    "--adopt": {"adopt": True},
}
"""What a plan file has decided already."""
CHOSEN = {
    *("--partial", "--reviewed", "--max-age", "--wait", "--wait-timeout", "--auto-approve", "--allow", "--events"),
    *("--project", "--env", "--var", "--parallelism", "--no-color", "--quiet", "--log-format", "--trace"),
}
"""What is chosen at each apply, with a plan file too."""


def test_an_option_beside_a_plan_file_is_refused_by_name_unless_it_is_of_the_apply() -> None:
    assert {param.opts[0] for param in apply.command.params if isinstance(param, click.Option)} == {*FIXED, *CHOSEN}
    for number in range(len(FIXED) + 1):
        for flags in itertools.combinations(FIXED, number):
            options = Options(**{name: value for flag in flags for name, value in FIXED[flag].items()})
            apply._check_options(options, None, partial=False, max_age=None)
            if not flags:
                apply._check_options(options, Path("p.json"), partial=False, max_age=None)
                continue
            with pytest.raises(exit_codes.Stop) as refused:
                apply._check_options(options, Path("p.json"), partial=False, max_age=None)
            assert refused.value.code == 64
            assert refused.value.lines[0].startswith(f"error: {' and '.join(flags)} cannot be combined with a plan")


@pytest.mark.parametrize(
    ("words", "file", "partial", "max_age", "wait"),
    [
        ((), ".reconciler/plan.json", False, None, None),
        (("build/p.json", "--partial"), "build/p.json", True, None, None),
        (("--max-age", "2h", "--wait"), ".reconciler/plan.json", False, 7200, 600.0),
        (("--wait", "--wait-timeout", "90s"), ".reconciler/plan.json", False, None, 90.0),
    ],
)
def test_a_reviewed_apply_reads_the_file_that_pipelines_write_unless_another_is_named(
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    file: str,
    partial: bool,
    max_age: int | None,
    wait: float | None,
) -> None:
    apply_reviewed = Mock(return_value=0)
    monkeypatch.setattr(apply, "_apply_reviewed", apply_reviewed)
    assert shell("apply", *words, "--reviewed", "-y").code == 0
    ((_, *given),) = (call.args for call in apply_reviewed.mock_calls)
    assert given == [Path(file), partial, max_age, wait, True]


# --- at a terminal


def at_terminal(root: Path, answers: str, *words: str) -> tuple[int, str]:
    """Runs a command on a pseudo-terminal, and types the answers at its prompt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(root)
        os.execv(sys.executable, [sys.executable, "-m", "reconciler", *words])  # noqa: S606 - the fork is our shell
    output = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break  # the other end is closed
        if not piece:
            break
        output += piece
        if b"Only 'yes' will be accepted: " in output and answers:
            os.write(terminal, answers.encode())
            answers = ""
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode()


@pytest.mark.usefixtures("over_socket")
def test_yes_at_the_terminal_applies(shell: Shell, sandbox: Sandbox) -> None:
    code, output = at_terminal(shell.root, "yes\n", "apply")
    assert code == 0
    assert "Apply these changes?" in output
    assert "Applied: 3 created." in output


@pytest.mark.usefixtures("over_socket")
def test_any_answer_but_yes_cancels_an_apply(shell: Shell, sandbox: Sandbox) -> None:
    code, output = at_terminal(shell.root, "y\n", "apply", "--no-color")
    assert code == 1
    assert "Cancelled; nothing was changed." in output
    assert "\x1b[3" not in output
    assert sandbox.calls() == []


@pytest.mark.usefixtures("over_socket")
def test_an_interrupt_waits_for_running_calls_and_reports_the_skipped_ones(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("POST /ip_policies", delay=1.0)
    words = ["apply", "-y", "--parallelism", "1", "--events", "-"]
    with start_command(words, cwd=shell.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert json.loads(first)["event"] == "started"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out.endswith("1 call succeeded, 0 failed, 2 skipped.\n")
    assert "skipped: create TLSEdge/payments: the run was stopped" in err


# --- waiting for health -----------------------------------------------------------------------------------------------

SHOP = {
    "kind": "ReservedDomain",
    "name": "shop",
    "spec": {"domain": "shop.example.com", "certificate_management_policy": {"authority": "letsencrypt"}},
}


def test_a_wait_that_fails_prints_the_record_to_set_and_exits_with_7(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(SHOP)
    sandbox.provision({"host": "*", "error_code": "DNS_ERROR"}, retry_after=86_400)
    output = on_sandbox("apply", "-y", "--wait", "--wait-timeout", "1s")
    target = sandbox.get("/reserved_domains")["reserved_domains"][0]["cname_target"]
    assert output.code == 7
    assert output.out.endswith("Applied: 1 created.\n")
    *_, announced, waiting, failed, row = output.err.splitlines()
    assert announced == "waiting up to 1 s until what was changed is healthy"
    assert waiting.startswith("waiting: ReservedDomain/shop: ")
    assert (failed, row.startswith("  ReservedDomain/shop: ")) == ("error: applied, but not healthy after 1 s:", True)
    assert row.endswith(f"(the owner of the DNS zone acts: set shop.example.com CNAME {target})")


def test_a_wait_that_succeeds_prints_what_became_healthy(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(SHOP)
    output = on_sandbox("apply", "-y", "--wait")
    assert (output.code, output.out.endswith("Applied: 1 created.\nHealthy: 1 object.\n")) == (0, True)
    assert output.err.splitlines()[-1] == "healthy: ReservedDomain/shop"


def test_events_report_the_health_of_each_object_during_a_wait(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(SHOP)
    sandbox.provision({"host": "*", "error_code": "DNS_ERROR"}, retry_after=86_400)
    output = on_sandbox("apply", "-y", "--wait", "--wait-timeout", "1s", "--events", "-")
    lines = [json.loads(line) for line in output.err.splitlines() if line.startswith("{")]
    health = [line for line in lines if line["event"] == "health"]
    assert {line["wait"] for line in health[:-1]} == {"waiting"}
    last = health[-1]
    assert (last["address"], last["state"], last["actor"], last["wait"]) == (
        "ReservedDomain/shop",
        "degraded",
        "zone owner",
        "failed",
    )
    assert "waiting" not in "".join(line for line in output.err.splitlines() if not line.startswith("{"))
    for line in lines:
        jsonschema.validate(line, event_schema())


def test_a_quiet_wait_prints_only_what_is_not_healthy(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(SHOP)
    sandbox.provision({"host": "*", "delay": 60})
    output = on_sandbox("apply", "-y", "--quiet", "--wait", "--wait-timeout", "1s")
    assert output.code == 7
    assert output.err.splitlines()[0] == "error: applied, but not healthy after 1 s:"


@pytest.mark.usefixtures("over_socket")
def test_an_interrupt_of_a_wait_leaves_the_apply_as_it_is(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(SHOP)
    sandbox.provision({"host": "*", "delay": 600})
    with on_sandbox.start("apply", "-y", "--wait") as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("waiting: ReservedDomain/shop"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out.endswith("Applied: 1 created.\n")
    assert "interrupted: the changes are applied, and their health was not waited for any longer\n" in err
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_a_timeout_requires_a_wait_and_a_unit(on_sandbox: Project) -> None:
    output = on_sandbox("apply", "-y", "--wait-timeout", "5m")
    assert (output.code, output.err.splitlines()[0]) == (64, "error: --wait-timeout requires --wait")
    assert on_sandbox("apply", "-y", "--wait", "--wait-timeout", "5").code == 64
