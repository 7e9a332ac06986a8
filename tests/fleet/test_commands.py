"""The `fleet` commands from plan to report, on an emulated platform with an account for each member."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.etree import ElementTree as xml

import pytest
from msgspec.structs import replace
from rich.console import Console

from reconciler.cli.commands.fleet import COMMANDS
from reconciler.cli.fleets.options import FORMS
from reconciler.cli.fleets.progress import LineReporter, show_bar
from reconciler.cli.main import main
from reconciler.cli.terminal import output
from reconciler.fleet import coordinator
from reconciler.fleet.coordinator import FleetProgress
from reconciler.model.fleet import TaskState
from reconciler.operations.runtime import Runtime
from reconciler.store.errors import LockLost, Unavailable
from reconciler.testing import Emulator, Sandbox
from tests.fleet.fleets import member, write_fleet
from tests.harness.collector import Collector, attributes_of
from tests.harness.platform import SandboxProcess
from tests.harness.project import SETTINGS, Output, Project, Shell
from tests.harness.tiers import full

MEMBERS = [
    member("acme", labels={"tier": "canary"}),
    member("globex", labels={"tier": "gold"}),
    member("initech", labels={"tier": "gold"}),
]
WAVES: list[dict[str, Any]] = [
    {"name": "canary", "select": {"tier": "canary"}},
    {"name": "rest", "approve": True},
]


class FleetShell(Shell):
    """Commands from within the folder of a fleet."""

    sandbox: Sandbox
    on_request: Callable[[], None] | None = None

    def fleet(self, *words: str) -> Output:
        result = self("fleet", *words)
        return Output(result.code, *(_normalize(text) for text in (result.out, result.err)))

    def newest(self) -> str:
        return re.findall(r"run ([0-9]{8}-[0-9]{6}-[0-9a-f]{4})", self("fleet", "status").out)[0]


def _normalize(text: str) -> str:
    """Replaces ids of runs, times and durations, which differ in each run. The facts of a run are one line."""
    for _ in range(2):
        text = re.sub(r"^(run .*)\n(?!\n)", r"\1 ", text, flags=re.MULTILINE)
    text = re.sub(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}", "RUN", text)
    text = re.sub(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{5} UTC", "TIME", text)
    text = re.sub(r"duration [0-9]+ s", "duration 0 s", text)
    text = re.sub(r"requests [0-9]+", "requests N", text)  # their number is that of the kinds
    return re.sub(r"\b[0-9a-f]{12}\b", "SHAPE", text)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[FleetShell]:
    async def on_request(_method: str, _path: str) -> None:
        if fleet_shell.on_request is not None:
            fleet_shell.on_request()

    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    fleet_shell = FleetShell(tmp_path, capsys)
    keys = {str(item["name"]): f"key-of-{item['name']}" for item in MEMBERS}
    with Sandbox(accounts=keys, on_request=on_request) as sandbox:
        monkeypatch.setenv("RECONCILER_BASE_URL", sandbox.base_url)
        for name, account in sandbox.accounts.items():
            monkeypatch.setenv(f"KEY_{name.upper()}", account.api_key)
        fleet_shell.sandbox = sandbox
        fleet_shell.reach(sandbox)
        yield fleet_shell


def write(shell: FleetShell, **settings: Any) -> None:
    write_fleet(shell.root, MEMBERS, limits={"members_at_once": 1}, **settings)  # acme is then the example of a shape


PLANNED = """\
Plan of fleet shops
run RUN, started TIME, duration 0 s, requests N

Shape SHAPE: 3 members (acme, globex, initech)
  1 to create in each member.
      + ReservedDomain/shop
          domain: "acme.example.com"
          description: "shop"
  These are the values of acme. For the whole plan:
    reconciler fleet report RUN --shape SHAPE

3 members: 3 succeeded.
Plan: 3 to create, in 3 members.
"""
TO_APPLY = """
To apply this plan:
  reconciler fleet apply RUN
"""


def test_a_fleet_is_validated_planned_applied_and_checked_for_drift(shell: FleetShell) -> None:
    write(shell)
    assert shell.fleet("validate") == Output(0, "Valid: fleet shops: 3 members, 1 project. Waves: all 3.\n", "")
    assert shell.fleet("plan") == Output(0, PLANNED + TO_APPLY, "")
    applied = shell.fleet("apply", shell.newest(), "--auto-approve")
    assert applied == Output(
        0,
        PLANNED
        + """
Apply to fleet shops
run RUN, reviewed run RUN, started TIME, duration 0 s, requests N

Shape SHAPE: 3 members (acme, globex, initech)
  1 to create in each member.
  3 succeeded.

3 members: 3 succeeded.
Applied: 3 created, in 3 members.
""",
        "",
    )
    domains = [
        account.collection("/reserved_domains", "reserved_domains")[0]["domain"]
        for account in shell.sandbox.accounts.values()
    ]
    assert domains == ["acme.example.com", "globex.example.com", "initech.example.com"]
    assert shell.fleet("plan", "--detailed-exitcode").code == 0
    again = shell.fleet("apply", "--auto-approve", "--quiet")
    assert (again.code, again.err) == (0, "")
    assert shell.fleet("drift").out.endswith("3 members: 3 succeeded.\nNo drift.\n")


def test_the_tasks_of_a_fleet_are_spans_and_metrics(shell: FleetShell, collector: Collector) -> None:
    write(shell)
    shell.sandbox.accounts["globex"].fault("POST /reserved_domains", times=0, then="status", status=400)
    assert shell.fleet("apply", "--auto-approve").code == 5
    (root,) = [span for span in collector.spans() if not span.parent_span_id]
    assert root.name == "reconciler fleet apply"
    tasks = [(span, attributes_of(span)) for span in collector.spans() if span.name.startswith("task ")]
    assert {span.parent_span_id for span, _ in tasks} == {root.span_id}
    reported = sorted(
        tuple(attributes[f"reconciler.{name}"] for name in ("fleet.verb", "fleet.member", "outcome"))
        for _, attributes in tasks
    )
    assert reported == [
        ("apply", "acme", "succeeded"),
        ("apply", "globex", "failed"),
        ("apply", "initech", "succeeded"),
        *(("plan", name, "succeeded") for name in ("acme", "globex", "initech")),
    ]
    runs = {attributes["reconciler.fleet.run"] for _, attributes in tasks}
    assert shell.newest() in runs
    assert len(runs) == 2
    assert [attributes["error.type"] for _, attributes in tasks if "error.type" in attributes] == ["failed"]
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span, _ in tasks)
    (resource,) = collector.resources("metrics")
    assert resource["reconciler.fleet"] == "shops"
    counted = {
        (attributes_of(point)["reconciler.fleet.verb"], attributes_of(point)["reconciler.outcome"], point.as_int)
        for point in collector.metrics()["reconciler.fleet.tasks"]
    }
    assert counted == {("plan", "succeeded", 3), ("apply", "succeeded", 2), ("apply", "failed", 1)}
    assert all(point.as_int > 3 for point in collector.metrics()["reconciler.fleet.requests"])


def test_a_run_with_an_undeclared_variable_is_refused(shell: FleetShell) -> None:
    write(shell, waves=[{"name": "canary", "select": {"tier": "canray"}}])
    members = shell.root / "fleet.yaml"
    members.write_text(members.read_text().replace('"site": "acme"', '"site": "acme", "tetx": "x"'))
    result = shell.fleet("plan")
    assert (result.code, result.out) == (1, "")
    assert "variables.tetx: unknown variable: no project of the fleet declares it (for acme)" in result.err
    assert "no member has tier: canray; did you mean canary?" in result.err
    assert shell.fleet("plan", "--select", "name=globex").code == 0


def test_drift_of_one_member_is_reported_as_a_shape_in_every_format(shell: FleetShell) -> None:
    write(shell)
    assert shell.fleet("apply", "--auto-approve").code == 0
    account = shell.sandbox.accounts["globex"]
    account.patch(f"/reserved_domains/{_domain(account)}", {"description": "by hand"})
    result = shell.fleet("drift", "--format", "text", "--format", "junit=drift.xml", "--format", "html=drift.html",
                       "--format", "json=drift.json", "--format", "markdown=drift.md")  # fmt: skip
    assert result.code == 2
    assert "Shape SHAPE: 1 member (globex)\n  Drift: 1 resource changed on the platform.\n" in result.out
    assert 'description: "by hand" on the platform, "shop" in Git' in result.out
    suites = xml.fromstring((shell.root / "drift.xml").read_text())  # noqa: S314 - the text of this program
    assert [failure.get("type") for failure in suites.iter("failure")] == ["drift"]
    assert "globex" in (shell.root / "drift.html").read_text()
    assert '- description: "by hand"' in (shell.root / "drift.md").read_text()
    written = json.loads((shell.root / "drift.json").read_text())
    assert (written["drifted"], written["exit_code"]) == (1, 2)
    (digest,) = written["plans"]
    whole = shell("fleet", "report", "--shape", digest)
    assert (whole.code, "~ ReservedDomain/shop" in whole.out) == (0, True)
    plan = shell("fleet", "report", "--shape", digest[:6], "--format", "json")
    assert json.loads(plan.out)["format"] == "reconciler plan"


OFFICE: list[dict[str, Any]] = [
    {"kind": "IPPolicy", "name": "office", "spec": {"description": "Office"}},
    {
        "kind": "IPPolicyRule",
        "name": "office",
        "spec": {"ip_policy_id": {"ref": "IPPolicy/office"}, "cidr": "203.0.113.0/24", "action": "allow"},
    },
    {"kind": "TunnelGroupBackend", "name": "ledger", "spec": {"labels": {"app": "ledger"}}},
    {
        "kind": "TLSEdge",
        "name": "ledger",
        "spec": {
            "hostports": ["ledger.${{ var.site }}.example.com:443"],
            "backend": {"backend_id": {"ref": "TunnelGroupBackend/ledger"}},
            "ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/office"}]},
        },
    },
    {"kind": "ReservedDomain", "name": "ledger", "spec": {"domain": "ledger.${{ var.site }}.example.com"}},
]


def test_a_fleet_reports_who_can_reach_what_once_for_all_members(shell: FleetShell) -> None:
    write_fleet(shell.root, MEMBERS, *OFFICE, limits={"members_at_once": 1})
    planned = " ".join(shell.fleet("plan").out.split())
    assert "! 3 members (acme, globex, initech): tls://ledger.${{ var.site }}.example.com is a new way in" in planned
    assert "no way in → 203.0.113.0/24" in planned
    assert shell.fleet("apply", "--auto-approve", "--quiet").code == 0
    for name in ("globex", "initech"):
        account = shell.sandbox.accounts[name]
        (policy,) = account.collection("/ip_policies", "ip_policies")
        account.post("/ip_policy_rules", {"ip_policy_id": policy["id"], "cidr": "0.0.0.0/0", "action": "allow"})
    found = shell.fleet("drift")
    words = " ".join(found.out.split())
    assert found.code == 2
    assert "! 2 members (globex, initech): access was widened on the platform: tls://ledger.${{ var.site }}" in words
    assert ".example.com from 203.0.113.0/24 → 0.0.0.0/0, because of IPPolicyRule/ipr_" in words
    assert "is a new way in" not in words
    assert words.count("Shape SHAPE") == 1  # one review, though the ids of the rules differ


CERTIFIED: dict[str, Any] = {
    "kind": "ReservedDomain",
    "name": "agents",
    "spec": {
        "domain": "agents.${{ var.site }}.example.com",
        "certificate_management_policy": {"authority": "letsencrypt"},
    },
}


LEDGER: dict[str, Any] = {"kind": "TunnelGroupBackend", "name": "ledger", "spec": {"labels": {"app": "ledger"}}}
CERTIFICATES = """\
Health:
  ! 2 members (globex, initech): degraded: ReservedDomain/agents: the
    certificate waits for DNS; the platform tries again at TIME
    (the owner of the DNS zone acts: set agents.globex.example.com CNAME TARGET)
      this is what to do in globex; it differs in the others
"""


def test_the_health_of_a_fleet_is_reported_by_reason_with_the_number_of_members(
    shell: FleetShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tunnels_read() -> bool:
        accounts = shell.sandbox.accounts.values()
        return any(entry["path"].startswith("/tunnels") for account in accounts for entry in account.log())

    write_fleet(shell.root, MEMBERS, CERTIFIED, LEDGER, limits={"members_at_once": 1})
    hosts = ("*.globex.*", "*.initech.*")
    shell.sandbox.provision(*({"host": host, "error_code": "DNS_ERROR", "retry_after": 86_400} for host in hosts))
    assert shell.fleet("apply", "--auto-approve", "--quiet").code == 0
    assert (shell.fleet("drift").code, tunnels_read()) == (0, False)
    refused = shell.fleet("status", "--health")
    assert (refused.code, "no run of fleet shops checked health" in refused.err) == (64, True)
    assert "did not check health" in shell.fleet("status", shell.newest(), "--health").err

    found = shell.fleet("drift", "--health")
    assert (found.code, tunnels_read(), "Shape" in found.out) == (7, True, False)
    assert shell.fleet("drift").code == 0  # a later run that did not judge it
    status = shell.fleet("status", "--health")
    assert status.code == 7
    text = re.sub(r"CNAME\s+\S+\)", "CNAME TARGET)", status.out)
    assert CERTIFICATES in text
    waiting = "~ 3 members (acme, globex, initech): progressing: TunnelGroupBackend/ledger: no tunnel with the labels"
    assert waiting in " ".join(text.split())
    assert text.endswith("3 members: 3 succeeded.\nNo drift.\nHealth: 2 members degraded, 1 progressing.\n")

    monkeypatch.setenv("KEY_GLOBEX", "revoked")
    shell.sandbox.provision()
    shell.sandbox.accounts["initech"].get("/reserved_domains")
    assert shell.fleet("drift", "--health", "--format", "json=drift.json").code == 6
    partly = shell.fleet("status", "--health", "--format", "text", "--format", "json=health.json")
    assert partly.code == 2  # nothing is degraded, and an account that was not read is not healthy
    assert "? 1 member (globex): unknown: the account was not checked: " in partly.out
    written = json.loads((shell.root / "health.json").read_text())
    assert written["health"]["states"] == {"unknown": 1, "progressing": 2}
    tasks = {task["member"]: task["health"] for task in written["tasks"]}
    assert (tasks["globex"], tasks["acme"]["judged"], len(tasks["acme"]["rows"])) == (None, 2, 1)


def test_an_apply_waits_for_the_approval_of_a_wave_and_resumes(shell: FleetShell) -> None:
    write(shell, waves=WAVES)
    result = shell.fleet("apply", "--auto-approve")
    assert result.code == 4
    assert result.out.endswith(
        """\
Waves:
  canary  succeeded  1 member: 1 succeeded
  rest    waiting    2 members (needs approval)

3 members: 2 waiting, 1 succeeded.
Applied: 1 created, in 1 member.
Waiting: wave rest needs approval.

To approve the wave:
  reconciler fleet resume RUN --approve-wave rest
"""
    )
    status = shell.fleet("status", "--runs", "1")
    assert status.out.endswith(
        "  reconciler fleet resume RUN --approve-wave rest\n\nOther runs:\n  RUN  plan   succeeded\n"
    )
    wrong = shell.fleet("resume", "--approve-wave", "tail")
    assert wrong == Output(64, "", "error: --approve-wave: there is no wave tail; the waves are canary, rest\n")
    resumed = shell.fleet("resume", "--approve-wave", "rest")
    assert resumed.code == 0
    assert "rest    succeeded  2 members: 2 succeeded (approved)" in resumed.out
    assert shell.fleet("resume") == Output(0, "Nothing to continue: every run of fleet shops has ended.\n", "")


@pytest.mark.parametrize(
    ("waves", "difference"),
    [
        (
            [WAVES[0], {"name": "early", "select": {"name": "globex"}}, WAVES[1]],
            "early was added",
        ),
        ([WAVES[0], {"name": "tail"}], "rest was removed, tail was added"),
        ([{**WAVES[0], "min_success_time": "1h", "max_failures": 1}, {"name": "rest"}],
         "max_failures and min_success_time of canary changed, approve of rest changed"),
        ([{"name": "rest", "select": {"tier": "gold"}, "approve": True}, {**WAVES[0], "select": {}}],
         "select of rest changed, select of canary changed"),
    ],
)  # fmt: skip
def test_an_apply_is_resumed_only_with_unchanged_waves(
    shell: FleetShell, waves: list[dict[str, Any]], difference: str
) -> None:
    write(shell, waves=WAVES)
    assert shell.fleet("apply", "--auto-approve", "--quiet").code == 4
    run, before = shell.newest(), shell.fleet("status").out
    write(shell, waves=waves)
    shell.sandbox.forget_log()
    refused = Output(
        3,
        "",
        f"error: fleet.yaml: waves changed since run RUN was started: {difference}\n"
        "to apply with the new waves: reconciler fleet apply; to continue run RUN, undo the change\n",
    )
    assert shell.fleet("resume", "--quiet") == refused
    for wave in ("rest", "early"):
        assert shell.fleet("resume", "--approve-wave", wave) == refused
    assert shell.fleet("retry", run, "--only", "skipped") == refused
    assert shell.sandbox.log() == []
    assert shell.fleet("status").out == before  # with the waves of the run
    write(shell, waves=WAVES)
    assert shell.fleet("resume").code == 4  # nothing was approved
    assert shell.fleet("resume", "--approve-wave", "rest").code == 0


def test_a_run_that_has_no_waves_is_resumed_although_waves_changed(shell: FleetShell) -> None:
    write(shell, waves=WAVES)
    shell.fleet("pause")
    assert shell.fleet("plan").code == 5
    write(shell, waves=WAVES[1:])
    assert shell.fleet("resume").code == 0
    shell.fleet("apply", shell.newest(), "--auto-approve")
    shell.fleet("pause")
    write(shell)
    ended = shell.fleet("resume", "--quiet")
    assert (ended.code, ended.err.splitlines()[0]) == (
        3,
        "error: fleet.yaml: waves changed since run RUN was started: rest was removed, all was added",
    )
    assert "paused" not in shell.fleet("status").out  # the pause of the fleet ended although the resume failed


def test_a_wave_with_a_skipped_member_waits_for_approval(shell: FleetShell) -> None:
    write(shell, waves=WAVES)
    shell.sandbox.accounts["initech"].fault("GET /reserved_domains", times=1, then="status", status=401)
    result = shell.fleet("apply", "--auto-approve", "--quiet")
    assert result.code == 4
    assert result.out.endswith(
        """\
Waves:
  canary  succeeded  1 member: 1 succeeded
  rest    waiting    2 members: 1 waiting, 1 skipped (needs approval)

3 members: 1 waiting, 1 succeeded, 1 skipped.
Applied: 1 created, in 1 member.
Waiting: wave rest needs approval.

To approve the wave:
  reconciler fleet resume RUN --approve-wave rest
"""
    )
    assert shell.fleet("resume").code == 4  # it still waits
    resumed = shell.fleet("resume", "--approve-wave", "rest")
    assert resumed.code == 5  # one member was skipped
    assert "rest    succeeded  2 members: 1 succeeded, 1 skipped (approved)" in resumed.out


def test_a_member_without_a_plan_is_planned_before_it_is_retried(shell: FleetShell) -> None:
    write(shell, waves=WAVES)
    initech = shell.sandbox.accounts["initech"]
    initech.fault("GET /reserved_domains", times=1, then="status", status=401)
    shell.fleet("plan")
    planned = shell.newest()
    shell.fleet("apply", planned, "--auto-approve")
    applied = shell.newest()
    before = shell("fleet", "report").out
    for only in ("skipped", "failed"):
        assert shell.fleet("retry", applied, "--only", only) == Output(
            64,
            "",
            "error: nothing was changed: 1 member without a plan to apply (initech)\n"
            "to plan again: reconciler fleet retry RUN, then reconciler fleet retry RUN --only skipped\n",
        )
    assert _normalize(shell("fleet", "report").out) == _normalize(before)
    done = shell.fleet("resume", "--approve-wave", "rest")
    assert done.out.endswith("To try skipped members again:\n  reconciler fleet retry RUN --only skipped\n")
    again = shell("fleet", "retry", applied, "--only", "skipped").err.partition("to plan again: ")[2]
    for command in again.split(", then "):
        assert shell.fleet(*command.split()[2:]).code == 0
    assert len(initech.collection("/reserved_domains", "reserved_domains")) == 1


def test_a_member_without_a_plan_is_skipped_by_a_retry_of_others(shell: FleetShell) -> None:
    write(shell)
    shell.sandbox.accounts["initech"].fault("GET /reserved_domains", times=1, then="status", status=401)
    shell.sandbox.accounts["globex"].fault("POST /reserved_domains", times=1, then="status", status=403)
    shell.fleet("apply", "--auto-approve")
    result = shell.fleet("retry", shell.newest())
    assert result.err == (
        "left out: 1 member without a plan to apply (initech); "
        "to plan again: reconciler fleet retry RUN, then reconciler fleet retry RUN --only skipped\n"
    )
    assert (result.code, "3 members: 2 succeeded, 1 skipped." in result.out) == (5, True)


def test_a_pause_stops_a_run_until_it_is_resumed(shell: FleetShell) -> None:
    write(shell)
    paused = shell.fleet("pause", "--reason", "incident 4711")
    assert paused.out == (
        "Paused: no further task of fleet shops starts, until `reconciler fleet resume`. Running tasks finish.\n"
    )
    result = shell.fleet("plan")
    assert result.code == 5
    assert (
        "Waiting: the fleet is paused since TIME: incident 4711.\n\nTo resume:\n  reconciler fleet resume\n"
        in result.out
    )
    assert result.err == "planning, run RUN: 0 of 3 done, 3 waiting; the run waits: paused: incident 4711\n"
    refused = shell.fleet("apply", "--auto-approve", "--quiet")
    assert (refused.code, refused.out) == (5, "")
    assert refused.err == (
        "error: nothing was changed: the plan has not ended: the fleet is paused since TIME: incident 4711\n"
        "to continue: reconciler fleet resume RUN, then reconciler fleet apply RUN\n"
    )
    resumed = shell.fleet("resume")
    assert (resumed.code, resumed.err) == (0, "The pause of fleet shops ended.\n")
    assert resumed.out == PLANNED + TO_APPLY


@pytest.mark.parametrize(
    ("until", "code", "text"),
    [
        ("2h", 0, "starts, until 2001-09-09 03:46 UTC."),
        ("2001-09-09T03:00Z", 0, "starts, until 2001-09-09 03:00 UTC."),
        ("2001-09-09T01:00Z", 64, "2001-09-09 01:00:00+00:00 is in the past"),
        ("9998-12-31T23:59Z", 0, "starts, until 9998-12-31 23:59 UTC."),
        ("9999-01-01T00:01Z", 64, "9999-01-01 00:01:00+00:00 is too late"),
    ],
)
def test_the_end_of_a_pause_is_by_the_clock_of_the_store(
    shell: FleetShell, capsys: pytest.CaptureFixture[str], until: str, code: int, text: str
) -> None:
    """Otherwise a machine whose clock is slow would end it too early, for every other machine."""
    write(shell)
    at_a_billion = Runtime(now=lambda: 1e9)  # 2001-09-09 01:46:40 UTC; of a file, the clock of the store
    assert main(["fleet", "pause", "--until", until], at_a_billion) == code
    printed = capsys.readouterr()
    assert text in printed.out + printed.err


def test_a_retry_runs_failed_members_only(shell: FleetShell) -> None:
    write(shell)
    shell.sandbox.accounts["acme"].fault("GET /reserved_domains", times=1, then="status", status=401)
    result = shell.fleet("plan")
    assert result.code == 6
    assert "Failed: 1 member (acme)\n" in result.out
    shell.sandbox.forget_log()
    retried = shell.fleet("retry", shell.newest())
    assert retried.code == 0
    assert "3 members: 3 succeeded." in retried.out
    assert {call.get("account") for call in shell.sandbox.log()} == {"acme"}
    nothing = shell.fleet("retry", shell.newest(), "--only", "stale")
    assert nothing == Output(64, "", "error: run RUN has no member that is stale\n")


def test_a_shape_that_requires_approval_is_blocked_until_approved(shell: FleetShell) -> None:
    write(shell)
    assert shell.fleet("apply", "--auto-approve").code == 0
    manifests = shell.root / "web/manifests"
    for file in manifests.iterdir():
        file.write_text("")
    result = shell.fleet("apply", "--auto-approve")
    assert result.code == 4
    assert result.err.endswith("\nto apply this plan: reconciler fleet apply RUN --approve SHAPE\n")
    assert "  ! irreversible" in result.out
    (digest,) = re.findall(r"pass --approve ([0-9a-f]{12})", shell("fleet", "report").out)
    wrong = shell.fleet("apply", "--auto-approve", "--approve", "ffff")
    assert (wrong.code, wrong.err) == (64, "error: ffff is not a shape of the run; its shapes are SHAPE\n")
    run = shell.newest()
    applied = shell.fleet("apply", run, "--auto-approve", "--approve", digest)
    assert applied.code == 0
    assert "Applied: 3 deleted, in 3 members." in applied.out


def test_a_guard_of_the_fleet_blocks_until_the_excess_is_approved(shell: FleetShell) -> None:
    write(shell, guards={"max_changed": 2})
    result = shell.fleet("apply", "--auto-approve", "--quiet")
    assert result.code == 4
    assert result.err == (
        "blocked: 3 members would change, and guards.max_changed allows 2\n"
        "error: nothing was changed: approval required: pass --allow members=3\n"
        "to apply these plans: reconciler fleet apply RUN --allow members=3\n"
    )
    repeated = ("--allow", "members=1", "--allow", "members=1,members=1")  # counts add up, as those of `apply`
    assert shell.fleet("apply", "--auto-approve", "--quiet", *repeated).code == 0


def test_a_guard_of_the_fleet_includes_shapes_approved_later(shell: FleetShell) -> None:
    write(shell)
    assert shell.fleet("apply", "--auto-approve", "--quiet").code == 0
    write(shell, guards={"max_deletes": 0})
    acme = shell.sandbox.accounts["acme"]
    found = acme.collection("/reserved_domains", "reserved_domains")[0]
    acme.patch(f"/reserved_domains/{found['id']}", {"description": "by hand"})
    for file in (shell.root / "web/manifests").iterdir():
        file.write_text("")
    assert shell.fleet("plan").code == 0
    planned = shell.newest()
    one, two = re.findall(r"pass --approve ([0-9a-f]{12})", shell("fleet", "report").out)
    shell.fleet("apply", planned, "--auto-approve", "--approve", one, "--allow", "deletes=2")
    again = ("retry", shell.newest(), "--only", "blocked", "--approve", two, "--quiet")
    result = shell.fleet(*again)
    assert (result.code, result.err) == (
        4,
        "blocked: 3 objects would be deleted, and guards.max_deletes allows 0\n"
        "error: nothing was changed: approval required: pass --allow deletes=3\n"
        "to apply these plans: reconciler fleet retry RUN --only blocked --approve SHAPE --allow deletes=3\n",
    )
    assert shell.fleet(*again, "--allow", "deletes=3").code == 0


def test_a_guard_of_the_fleet_includes_members_planned_later(shell: FleetShell) -> None:
    write(shell, guards={"max_changed": 2})
    shell.sandbox.accounts["acme"].fault("GET /reserved_domains", times=1, then="status", status=401)
    shell.fleet("plan")
    planned = shell.newest()
    assert "2 succeeded, 1 skipped" in shell.fleet("apply", planned, "--auto-approve").out
    applied = shell.newest()
    assert shell.fleet("retry", planned).code == 0
    again = ("retry", applied, "--only", "skipped", "--quiet")
    result = shell.fleet(*again)
    assert (result.code, result.err) == (
        4,
        "blocked: 3 members would change, and guards.max_changed allows 2\n"
        "error: nothing was changed: approval required: pass --allow members=3\n"
        "to apply these plans: reconciler fleet retry RUN --only skipped --allow members=3\n",
    )
    assert shell.fleet(*again, "--allow", "members=3").code == 0
    assert len(shell.sandbox.accounts["acme"].collection("/reserved_domains", "reserved_domains")) == 1


def test_only_a_member_that_changed_since_its_plan_is_stale(shell: FleetShell) -> None:
    write(shell)
    assert shell.fleet("apply", "--auto-approve").code == 0
    domains = {name: _domain(account) for name, account in shell.sandbox.accounts.items()}
    for name in ("acme", "globex"):
        shell.sandbox.accounts[name].patch(f"/reserved_domains/{domains[name]}", {"description": "by hand"})
    shell.fleet("plan")
    run = shell.newest()
    shell.sandbox.accounts["acme"].patch(f"/reserved_domains/{domains['acme']}", {"description": "by another hand"})
    result = shell.fleet("apply", run, "--auto-approve", "--quiet")
    assert result.code == 3
    assert "Stale: 1 member (acme)\n" in result.out
    assert "Applied: 1 updated, in 1 member.\n\nTo plan again:\n  reconciler fleet plan\n" in result.out


def _domain(account: Emulator) -> str:
    """The id of the only domain of an account."""
    (found,) = account.collection("/reserved_domains", "reserved_domains")
    return str(found["id"])


def test_a_missing_file_member_or_run_is_reported_with_the_remedy(shell: FleetShell) -> None:
    nothing = shell.fleet("plan")
    assert nothing.code == 1
    assert nothing.err.startswith("there is no fleet.yaml here, nor in a folder above in this repository")
    assert shell.fleet("plan", "--file", "x.yaml") == Output(64, "", "error: --file: there is no file x.yaml\n")
    write(shell)
    no_run = "error: fleet shops has no run yet; start one with `reconciler fleet plan`\n"
    assert shell.fleet("status") == Output(64, "", no_run)
    assert not (shell.root / "state").exists()
    assert shell.fleet("report") == Output(64, "", no_run)
    none = shell.fleet("plan", "--select", "tier=silver", "--select", "name=a*")
    assert none == Output(64, "", "error: no member of fleet shops matches --select tier=silver --select 'name=a*'\n")
    shell.fleet("plan", "-q")
    unknown = shell.fleet("report", "nope")
    assert unknown == Output(
        64, "", "error: fleet shops has no run nope; `reconciler fleet status` lists the last runs\n"
    )
    shell.fleet("plan", "-q")
    ambiguous = shell.fleet("report", shell.newest()[:8])
    assert (ambiguous.code, "RUN, RUN" in ambiguous.err) == (64, True)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["plan", "--select", "eu"], "invalid value for '--select': 'eu' is not LABEL=VALUE, as in region=eu or "
         "name=shop-*"),
        (["plan", "--select", "=eu"], "invalid value for '--select': '=eu' is not LABEL=VALUE, as in region=eu or "
         "name=shop-*"),
        (["plan", "--select", "region="], "invalid value for '--select': 'region=' is not LABEL=VALUE, as in region=eu "
         "or name=shop-*"),
        (["plan", "--format", "sarif"], "invalid value for '--format': unknown format 'sarif'; use one of text, "
         "markdown, html, json, junit"),
        (["plan", "--workers", "2", "--scheduler", "tls://a:1"], "--workers and --scheduler exclude each other"),
        (["plan", "--scheduler", "a"], "invalid value for '--scheduler': 'a' is not an address such as tls://host:8786"),
        (["plan", "--repository", "https://a/b"], "--repository requires --scheduler"),
        (["apply"], "stdin is not a terminal; pass --auto-approve to fleet apply without confirmation"),
        (["apply", "-y", "--allow", "x=1"], "invalid value for '--allow': 'x=1' is not members=N or deletes=N"),
        (["pause", "--until", "soon"], "invalid value for '--until': 'soon' is neither a duration, such as 2h, nor a "
         "time, such as 2026-12-01T08:00Z"),
        (["pause", "--until", "2001-01-01T00:00Z"], "invalid value for '--until': 2001-01-01 00:00:00+00:00 is in the "
         "past"),
        (["pause", "--until", "999999w"], "invalid value for '--until': 6999993 days, 0:00:00 is too late; without "
         "--until, the pause lasts until `fleet resume`"),
        (["pause", "--until", "2099-01-01T00:00"], "invalid value for '--until': '2099-01-01T00:00' has no time "
         "zone; write 2099-01-01T00:00:00+00:00 for UTC"),
        (["retry"], "missing argument 'RUN'"),
        (["pln"], "unknown command 'pln'; did you mean plan?"),
    ],
)  # fmt: skip
def test_invalid_options_are_usage_errors(shell: FleetShell, words: list[str], error: str) -> None:
    write(shell)
    result = shell("fleet", *words)
    assert result.code == 64
    assert result.err.splitlines()[0] == f"error: {error}"


def test_an_apply_requires_a_finished_plan(shell: FleetShell) -> None:
    write(shell)
    shell.fleet("drift")
    drift = shell.fleet("apply", shell.newest(), "-y")
    assert drift == Output(64, "", "error: run RUN is no plan but drift; name a run of `reconciler fleet plan`\n")
    shell.fleet("pause")
    shell.fleet("plan")
    unfinished = shell.fleet("apply", shell.newest(), "-y")
    assert unfinished == Output(
        64, "", "error: run RUN has not ended; continue it with `reconciler fleet resume RUN`\n"
    )


def test_no_key_and_no_secret_is_in_any_output(shell: FleetShell, monkeypatch: pytest.MonkeyPatch) -> None:
    canaries = [account.api_key for account in shell.sandbox.accounts.values()]
    canaries.append("canary-of-the-vault")
    monkeypatch.setenv("VALUE", canaries[-1])
    vault = {"kind": "Vault", "name": "main", "spec": {"name": "main"}}
    value = {"from_env": "VALUE"}
    secret = {"kind": "Secret", "name": "token", "spec": {"vault_id": {"ref": "Vault/main"}, "name": "token",
              "value": value}}  # fmt: skip
    write(shell, projects={"web": [vault, secret]})
    forms = [f"--format={form}" + (f"=run.{form}" if number else "") for number, form in enumerate(FORMS)]
    results = [shell.fleet(*words, *forms) for words in (["plan"], ["apply", "--auto-approve"], ["drift"])]
    assert [result.code for result in results] == [0, 0, 0], results
    files = [file for file in shell.root.rglob("*") if file.is_file()]
    content = [file.read_bytes() for file in files] + [(result.out + result.err).encode() for result in results]
    assert [canary for canary in canaries if any(canary.encode() in text for text in content)] == []


# --- worker processes


@full
def test_worker_processes_have_the_same_result_as_one_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = tmp_path / "accounts.csv"
    accounts.write_text("name,key\n" + "".join(f"{item['name']},key-of-{item['name']}\n" for item in MEMBERS))
    write_fleet(tmp_path / "fleet", MEMBERS)
    with SandboxProcess(accounts=accounts) as sandbox:
        keys = {f"KEY_{str(item['name']).upper()}": f"key-of-{item['name']}" for item in MEMBERS}
        environ = {"RECONCILER_BASE_URL": sandbox.base_url, **keys}
        project = Project(tmp_path / "fleet", capsys, environ=environ)
        applied = project.process("fleet", "apply", "--workers", "2", "--auto-approve", "--quiet")
        assert (applied.code, applied.err) == (0, "")
        assert "Applied: 3 created, in 3 members.\n" in applied.out
        assert project.process("fleet", "plan", "--workers", "2", "--detailed-exitcode").code == 0


# --- interrupts and questions


def test_running_tasks_finish_after_an_interrupt_and_the_run_is_resumed(shell: FleetShell) -> None:
    write(shell)
    sent: list[int] = []

    def interrupt() -> None:
        if not sent:
            sent.append(os.getpid())
            os.kill(os.getpid(), signal.SIGINT)

    shell.on_request = interrupt
    result = shell.fleet("plan")
    assert result.code == 130
    assert "3 members: 2 waiting, 1 succeeded.\n" in result.out
    assert result.err == (
        "interrupted: waiting for running calls to finish, starting no others; interrupt again to exit now\n"
        "interrupted: the run stays open; to continue: reconciler fleet resume RUN\n"
    )
    assert shell.fleet("resume") == Output(0, PLANNED + TO_APPLY, "")


ENDS = (Unavailable("state/fleet.db", "No such file"), RuntimeError("a bug"), KeyboardInterrupt(), LockLost("run x"))


def test_the_id_of_a_run_and_the_command_that_continues_it_are_printed_after_an_error(
    shell: FleetShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shell)
    with monkeypatch.context() as patched:
        for end in ENDS:
            patched.setattr(coordinator, "execute", Mock(side_effect=end))
            result = shell.fleet("plan", "--quiet")
            assert result.code in (1, 130)
            assert "The run RUN has not ended; to continue: reconciler fleet resume RUN\n" in result.err
    assert shell.fleet("resume", "--quiet").code == 0


def test_a_failed_run_names_itself_and_the_next_command_whatever_its_formats(shell: FleetShell) -> None:
    write(shell)
    shell.sandbox.accounts["acme"].fault("GET /reserved_domains", times=0, then="status", status=401)
    result = shell.fleet("plan", "--quiet", "--format", "json=run.json")
    assert (result.out, result.err) == (
        "",
        "Run RUN: 3 members: 2 succeeded, 1 failed.\n"
        "to try failed members again: reconciler fleet retry RUN --only failed\n"
        "to apply this plan: reconciler fleet apply RUN\n",
    )
    (shell.root / "out").mkdir()
    unwritable = shell.fleet("plan", "--quiet", "--format", "json=out")
    assert "The run RUN is stored; to see it: reconciler fleet report RUN\n" in unwritable.err
    assert (unwritable.code, unwritable.err.splitlines()[-1]) == (1, "error: out: is a directory")


def test_a_second_apply_of_a_plan_that_is_being_applied_is_refused(shell: FleetShell) -> None:
    write(shell)
    assert shell.fleet("plan", "--quiet").code == 0
    plan = shell.newest()
    codes: list[int] = []

    def apply_again() -> None:
        if not codes:
            codes.append(-1)
            second = threading.Thread(
                target=lambda: codes.append(shell.run("fleet", "apply", plan, "--auto-approve", "--quiet"))
            )
            second.start()
            second.join()

    shell.on_request = apply_again
    result = shell.fleet("apply", plan, "--auto-approve", "--quiet")
    assert (result.code, codes) == (0, [-1, 1])
    assert "error: nothing was changed: run RUN is being applied by process" in result.err
    assert result.err.endswith("to see how far it is: reconciler fleet status\n")
    assert "Other runs:\n  RUN  plan   succeeded" in shell.fleet("status").out  # no third run


def test_an_interrupted_apply_is_resumed_and_its_plan_is_not_applied_again(shell: FleetShell) -> None:
    write(shell)
    assert shell.fleet("plan", "--quiet").code == 0
    plan = shell.newest()
    sent: list[int] = []

    def interrupt() -> None:
        if not sent:
            sent.append(os.getpid())
            os.kill(os.getpid(), signal.SIGINT)

    shell.on_request = interrupt
    assert shell.fleet("apply", plan, "--auto-approve", "--quiet").code == 130
    again = shell.fleet("apply", plan, "--auto-approve", "--quiet")
    assert (again.code, again.err) == (
        64,
        "error: nothing was changed: apply RUN of this plan has not ended for 3 members (acme, globex, initech)\n"
        "to continue it: reconciler fleet resume RUN\n",
    )
    other = shell.fleet("apply", "--auto-approve", "--quiet", "--select", "tier=canary")
    assert other.code == 0
    assert "note: apply RUN of another plan has not ended; to continue it: reconciler fleet resume RUN\n" in other.err
    assert shell.fleet("resume", "--quiet").code == 0
    assert "Nothing to apply" in shell.fleet("apply", "--auto-approve").out
    for account in shell.sandbox.accounts.values():
        assert len(account.get("/reserved_domains")["reserved_domains"]) == 1


def shell_text(text: str) -> str:
    return re.sub(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}", "RUN", text)


class Terminal(io.StringIO):
    """A standard input that is a terminal, with an answer on it."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        reading, writing = os.pipe()
        os.write(writing, answer.encode())
        os.close(writing)
        self._file = os.fdopen(reading)

    def fileno(self) -> int:
        return self._file.fileno()

    def readline(self, _size: int | None = -1) -> str:  # type: ignore[override]
        return self._file.readline()

    def isatty(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


@pytest.mark.parametrize("forms", [("html=fleet.yaml",), ("html=y", "json=./y")])
def test_no_output_replaces_the_fleet_file_or_another_output(shell: FleetShell, forms: tuple[str, ...]) -> None:
    write(shell)
    text = (shell.root / "fleet.yaml").read_text()
    result = shell.fleet("plan", *(f"--format={form}" for form in forms))
    assert (result.code, "name a different file for each" in result.err) == (64, True)
    assert ((shell.root / "fleet.yaml").read_text(), (shell.root / "y").exists()) == (text, False)


@pytest.mark.parametrize(("answer", "code"), [("yes\n", 0), ("y\n", 1), ("", 1)])
def test_an_apply_prompts_once_after_the_plans(
    shell: FleetShell, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    write(shell)
    terminal = Terminal(answer)
    monkeypatch.setattr(sys, "stdin", terminal)
    result = shell.fleet("apply", "--format", "json")
    terminal.close()
    assert result.code == code
    assert "  1 to create in each member.\n" in result.err  # standard output is for the JSON
    assert result.err.count("Apply 1 shape to 3 members?\nOnly 'yes' will be accepted: ") == 1
    if code:
        later = f"to apply this plan later: reconciler fleet apply {shell.newest()}\n"
        assert shell_text(result.err).endswith(f"Cancelled; nothing was changed.\n{shell_text(later)}")
        assert result.out == ""
    else:
        assert json.loads(result.out)["run"]["verb"] == "apply"


# --- progress


def progress(states: dict[TaskState, int], wave: str = "all", rate: float = 0.0, waiting: str = "") -> FleetProgress:
    return FleetProgress(states, wave, rate, waiting)


DONE, FAILED, WAITING = TaskState.SUCCEEDED, TaskState.FAILED, TaskState.WAITING


def test_progress_in_a_pipe_is_a_line_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    report = LineReporter("planning", lambda: now)
    for second in range(25):
        now = float(second)
        report(progress({DONE: second * 10, FAILED: second // 4, WAITING: 800 - second * 10}, rate=10.25))
    assert capsys.readouterr().err == (
        "planning: 102 of 802 done, 2 failed, 700 waiting, 10.2/s, about 68 s left\n"
        "planning: 205 of 805 done, 5 failed, 600 waiting, 10.2/s, about 59 s left\n"
    )


def test_a_wait_and_another_wave_are_reported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    report = LineReporter("applying", lambda: 0.0)
    for update in (
        progress({DONE: 1, WAITING: 9}, "canary"),
        progress({DONE: 5, WAITING: 5}, "half", waiting="approval of wave half"),
        progress({DONE: 5, WAITING: 5}, "half", waiting="approval of wave half"),
        progress({DONE: 6, WAITING: 4}, "half"),
    ):
        report(update)
    assert capsys.readouterr().err == (
        "applying: 5 of 10 done, 5 waiting; the run waits: approval of wave half\napplying: 6 of 10 done, 4 waiting\n"
    )


def test_members_that_hang_are_named_in_place_of_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    report = LineReporter("applying", iter([0.0, 20.0, 40.0]).__next__)
    slow = (("m055", 180.0), ("m071", 100.0), ("m100", 42.0), ("m200", 41.0))
    for named in (slow[:1], slow):
        report(replace(progress({DONE: 5, WAITING: 5}, rate=0.1), slow=named))
    assert capsys.readouterr().err == (
        "applying: 5 of 10 done, 5 waiting, waiting for m055 (3 min)\n"
        "applying: 5 of 10 done, 5 waiting, waiting for m055 (3 min), m071 (2 min), m100 (42 s) and 1 more\n"
    )


def test_progress_in_a_json_log_has_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    output.set_log_format("json")
    LineReporter("applying", iter([0.0, 20.0]).__next__)(progress({DONE: 5, WAITING: 5}, "half"))
    line = json.loads(capsys.readouterr().err)
    assert (line["message"], line["tasks"], line["wave"]) == (
        "applying: 5 of 10 done, 5 waiting",
        {"succeeded": 5, "waiting": 5},
        "half",
    )


def test_progress_at_a_terminal_is_a_bar() -> None:
    updates = {
        "103 of 800 done, 3 failed, 697 waiting, 2.0/s, about 6 min left": progress(
            {DONE: 100, FAILED: 3, WAITING: 697}, rate=2.0
        ),
        "100 of 800 done, 700 waiting; the run waits: approval of wave [bold]half[/bold]": progress(
            {DONE: 100, WAITING: 700}, waiting="approval of wave [bold]half[/bold]"
        ),
    }
    for text, update in updates.items():
        screen = io.StringIO()
        with show_bar("planning", Console(file=screen, force_terminal=True, width=120)) as report:
            report(update)
        drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
        (line,) = (line for line in drawn.splitlines() if " done" in line)
        assert (line[:10], line[-len(text) :]) == ("planning ━", text)


# --- completion


def test_subcommands_are_completed_without_large_imports(shell: FleetShell) -> None:
    code = (
        "import sys; from reconciler.cli.main import main; main([]);"
        "heavy = {'pydantic', 'httpx', 'sqlalchemy', 'rich', 'networkx', 'distributed'};"
        "heavy &= set(filter(sys.modules.get, sys.modules));"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    words = {"_RECONCILER_COMPLETE": "bash_complete", "COMP_WORDS": "reconciler fleet re", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("plain,resume\nplain,retry\nplain,report\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_of_a_subcommand_ends_with_examples(shell: FleetShell, name: str) -> None:
    result = shell("fleet", name, "--help")
    _, _, examples = result.out.partition("\nExamples:\n")
    assert result.code == 0
    assert examples.startswith(f"  reconciler fleet {name}")


def test_a_missing_dask_is_reported_with_its_extra(shell: FleetShell, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shell)
    monkeypatch.setitem(sys.modules, "distributed", None)
    for words in (["--workers", "2"], ["--scheduler", "tls://127.0.0.1:8786", "--repository", "https://example.com/a"]):
        if "--scheduler" in words:
            _commit(shell.root)
        result = shell.fleet("plan", *words)
        assert result.code == 1
        assert "error: Dask is not installed\n" in result.err
        assert "with the extra fleet" in result.err


def _commit(root: Path) -> None:
    """Creates a Git repository of the folder with all files in one commit."""
    identity = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    people = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    environ = {**os.environ, **identity, **dict.fromkeys(people, "user")}
    (root / ".gitignore").write_text("state/\n.cache/\n")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", "-C", str(root), *words], check=True, env=environ)


def test_workers_of_a_scheduler_require_a_pushed_commit(shell: FleetShell) -> None:
    write(shell)
    scheduler = ("plan", "--scheduler", "tls://127.0.0.1:8786")
    outside = shell.fleet(*scheduler)
    assert (outside.code, "is not in a Git repository with a commit" in outside.err) == (1, True)
    _commit(shell.root)
    no_remote = shell.fleet(*scheduler)
    assert "error: the repository has no remote `origin`\n" in no_remote.err
    assert "--repository" in no_remote.err
    subprocess.run(["git", "remote", "add", "origin", "https://example.com/fleet.git"], check=True)
    assert "is in no branch of a remote\npush it\n" in shell.fleet(*scheduler).err
    (shell.root / "more.txt").write_text("more")
    assert "has changes that are not committed" in shell.fleet(*scheduler).err
