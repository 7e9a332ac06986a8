"""What the operations of a workspace return, on the emulated platform in process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import (
    InvalidProject,
    NothingSelected,
    Runtime,
    Selection,
    Status,
    UnusablePlan,
    Workspace,
    WrongAccount,
)
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome, Started, Waited
from reconciler.model.plan import Plan
from reconciler.operations.history import read_past
from reconciler.operations.reporting import CallsBegan, CallsEnded, ListRead, OperationEvent, Planned
from reconciler.store.errors import StoreError
from reconciler.store.journal import StoreJournal
from reconciler.testing import Sandbox
from tests.harness.platform import SandboxProcess
from tests.harness.workspaces import bot, domain, open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", policy("a"), policy("b"))


async def test_a_plan_lists_changes_and_sends_nothing(sandbox: Sandbox, root: Path) -> None:
    result = await open_on(sandbox, root).plan()
    assert [str(change.address) for change in result.plan.changes] == ["IPPolicy/a", "IPPolicy/b"]
    assert sandbox.calls() == []


async def test_an_apply_succeeds_and_a_second_one_is_unchanged(sandbox: Sandbox, root: Path) -> None:
    events: list[OperationEvent] = []
    result = await open_on(sandbox, root).apply(on_event=events.append)
    assert result.status is Status.APPLIED
    assert [outcome.outcome for outcome in result.outcomes] == [Outcome.DONE] * 2
    assert (result.failure, result.unverified, result.lost_store) == ("", "", False)
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 2
    kinds = [type(event) for event in events]
    assert set(kinds[: kinds.index(Planned)]) == {ListRead}
    assert (
        kinds.index(Planned)
        < kinds.index(CallsBegan)
        < kinds.index(Started)
        < kinds.index(Ended)
        < kinds.index(CallsEnded)
    )
    assert (await open_on(sandbox, root).apply()).status is Status.UNCHANGED


async def test_an_operation_waits_for_the_request_budget_of_the_account(root: Path) -> None:
    with SandboxProcess() as platform:
        runtime = Runtime(environ=platform.environ, requests_spent=((59.0, 100_000),))
        events: list[OperationEvent] = []
        await Workspace.open(root, runtime=runtime).plan(on_event=events.append)
    waits = [event.seconds for event in events if isinstance(event, Waited)]
    assert waits
    assert all(0 < seconds <= 1 for seconds in waits)


async def test_a_plan_is_applied_as_it_was_returned(sandbox: Sandbox, root: Path) -> None:
    workspace = open_on(sandbox, root)
    planned = await workspace.plan(selection=Selection(targets=("IPPolicy/a",)))
    result = await workspace.apply(planned)
    assert (result.status, len(sandbox.get("/ip_policies")["ip_policies"])) == (Status.APPLIED, 1)
    assert (await workspace.apply(planned)).status is Status.STALE  # its calls are applied once


async def test_a_plan_is_stale_once_the_platform_changed(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    write_project(root, policy("a", "new"), policy("b", "new"))
    workspace = open_on(sandbox, root)
    planned = await workspace.plan()
    live = {policy["description"]: policy["id"] for policy in sandbox.get("/ip_policies")["ip_policies"]}
    sandbox.patch(f"/ip_policies/{live['a']}", {"description": "by hand"})
    sandbox.forget_log()
    result = await workspace.apply(planned)
    assert result.status is Status.STALE
    assert 'IPPolicy/a.description: was "a", is now "by hand"' in result.reasons
    assert sandbox.calls() == []
    rest = await workspace.apply(planned, partial=True)
    assert (rest.status, [skipped_call.call.id for skipped_call in rest.skipped]) == (
        Status.PARTIAL,
        ["update IPPolicy/a"],
    )


async def test_the_history_has_the_outcome_of_each_apply(sandbox: Sandbox, root: Path) -> None:
    first = open_on(sandbox, root)
    planned = await first.plan()
    await first.apply(planned)
    await first.apply(planned)
    await open_on(sandbox, root).apply()
    write_project(root)
    await open_on(sandbox, root).apply()
    runs = (await read_past(first.config, 0.0)).runs
    assert [run.outcome for run in runs] == ["applied", "stale", "unchanged", "blocked"]


async def test_the_history_has_the_user_of_the_pipeline(sandbox: Sandbox, root: Path) -> None:
    pipeline = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/infra", "GITHUB_ACTOR": "mara"}
    runtime = Runtime(environ={**sandbox.environ, **pipeline}, platform=sandbox)
    workspace = Workspace.open(root, runtime=runtime)
    await workspace.apply()
    (run,) = (await read_past(workspace.config, 0.0)).runs
    assert run.actor == "mara"


async def test_a_change_that_needs_approval_is_blocked_until_it_is_approved(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path / "project", domain("a"))
    await open_on(sandbox, root).apply()
    write_project(root)
    blocked = await open_on(sandbox, root).apply()
    assert (blocked.status, len(sandbox.get("/reserved_domains")["reserved_domains"])) == (Status.BLOCKED, 1)
    flags = {("delete", "ReservedDomain"): 1, ("empty", "*"): 1}
    assert (await open_on(sandbox, root).select(allow=flags).apply()).status is Status.APPLIED


async def test_a_workspace_that_assumes_secrets_plans_without_them_and_applies_nothing(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    vault = {"kind": "Vault", "name": "v", "spec": {"name": "v"}}
    spec = {"name": "s", "vault_id": {"ref": "Vault/v"}, "value": {"from_env": "S"}}
    root = write_project(tmp_path / "project", vault)
    (root / "manifests/s.yaml").write_text(json.dumps({"kind": "Secret", "name": "s", "spec": spec}))
    reads = Runtime(environ={**sandbox.environ, "S": "canary" + "OfTheVault"}, platform=sandbox)
    assert (await Workspace.open(root, runtime=reads).apply()).status is Status.APPLIED
    without = Runtime(environ=sandbox.environ, platform=sandbox)
    with pytest.raises(InvalidProject):
        Workspace.open(root, runtime=without)
    assuming = Workspace.open(root, runtime=without, assumes_secrets=True)
    planned = await assuming.plan()
    assert planned.plan.changes == ()
    assert [(str(one.address), one.source) for one in planned.plan.assumed] == [("Secret/s", "env:S")]
    for plan in (None, planned):
        with pytest.raises(UnusablePlan, match="env:S; apply with a workspace that reads them"):
            await assuming.apply(plan)
    assert (await Workspace.open(root, runtime=reads, assumes_secrets=True).apply()).status is Status.UNCHANGED


async def test_nothing_is_sent_when_the_caller_declines(sandbox: Sandbox, root: Path) -> None:
    asked: list[Plan] = []

    async def decline(plan: Plan) -> bool:
        asked.append(plan)
        return False

    result = await open_on(sandbox, root).apply(approve=decline)
    assert (result.status, [result.plan], sandbox.calls()) == (Status.DECLINED, asked, [])


async def test_the_other_calls_succeed_if_one_is_rejected(sandbox: Sandbox, root: Path) -> None:
    sandbox.fault("POST /ip_policies", then="status", status=422)
    result = await open_on(sandbox, root).apply()
    assert result.status is Status.PARTIAL
    assert sorted(outcome.outcome for outcome in result.outcomes) == sorted([Outcome.DONE, Outcome.FAILED])


async def test_a_key_that_may_not_write_is_unauthorized(sandbox: Sandbox, root: Path) -> None:
    sandbox.fault("POST /ip_policies", then="status", status=403, times=0)
    assert (await open_on(sandbox, root).apply()).status is Status.UNAUTHORIZED


async def test_a_stop_ends_the_run_between_calls(sandbox: Sandbox, root: Path) -> None:
    stop = asyncio.Event()

    def interrupt(event: OperationEvent) -> None:
        if isinstance(event, Started):
            stop.set()

    workspace = open_on(sandbox, write_project(root, domain("a"), policy("a")))
    result = await workspace.apply(on_event=interrupt, stop=stop)
    assert result.status is Status.INTERRUPTED
    assert (await open_on(sandbox, root).apply()).status in (Status.APPLIED, Status.UNCHANGED)


async def test_a_store_that_is_lost_after_the_calls_is_reported(sandbox: Sandbox, root: Path) -> None:
    def break_store(event: OperationEvent) -> None:
        if isinstance(event, CallsEnded):
            for file in (root / "state").glob("*.db*"):
                file.write_bytes(b"no database" * 1000)

    result = await open_on(sandbox, root).apply(on_event=break_store)
    assert (result.status, result.lost_store, result.failure) == (Status.FAILED, True, "")
    assert result.unverified.startswith("applied, but not verified: ")


async def test_objects_that_cannot_be_read_again_are_reported_after_the_apply(sandbox: Sandbox, root: Path) -> None:
    def break_lists(event: OperationEvent) -> None:
        if isinstance(event, CallsEnded):
            sandbox.fault("GET *", then="status", status=401, times=0)

    result = await open_on(sandbox, root).apply(on_event=break_lists)
    assert (result.status, result.is_complete, result.failure) == (Status.UNAUTHORIZED, True, "")
    assert result.unverified.startswith("applied, but not verified: ")
    assert len(result.outcomes) == 2


async def test_drift_lists_changes_on_the_platform(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    assert not (await open_on(sandbox, root).drift()).has_drift
    first = sandbox.get("/ip_policies")["ip_policies"][0]
    sandbox.patch(f"/ip_policies/{first['id']}", {"description": "by hand"})
    drift = await open_on(sandbox, root).drift()
    assert drift.has_drift
    assert [field.path for change in drift.plan.changes for field in change.fields] == ["description"]
    assert not (await open_on(sandbox, root).drift(ignore=["IPPolicy/*.description"])).has_drift


async def test_accepted_drift_is_in_the_manifests(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    first = sandbox.get("/ip_policies")["ip_policies"][0]
    sandbox.patch(f"/ip_policies/{first['id']}", {"description": "by hand"})
    found = await open_on(sandbox, root).accept_drift()
    assert [str(offer.address) for offer in found.accepted] == [f"IPPolicy/{first['description']}"]
    (texts,) = found.texts.values()
    assert "by hand" in texts[1]


async def test_only_the_named_unmanaged_object_is_adopted(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/reserved_domains", {"domain": "a.example.com"})
    sandbox.forget_log()
    root = write_project(tmp_path / "project", domain("a"), domain("b"))
    result = await open_on(sandbox, root).adopt([Address("ReservedDomain", "a")])
    assert (result.status, [call for call in sandbox.calls() if "POST" in call]) == (Status.APPLIED, [])


async def test_an_adoption_of_an_undeclared_object_is_an_invalid_project(sandbox: Sandbox, root: Path) -> None:
    with pytest.raises(InvalidProject) as refused:
        await open_on(sandbox, root).adopt([Address("IPPolicy", "zzz")])
    assert [problem.code for problem in refused.value.problems] == ["not-adoptable"]


async def test_an_adoption_without_a_call_is_recorded(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/bot_users", {"name": "nightly"})
    root = write_project(tmp_path / "project", bot("nightly"))
    result = await open_on(sandbox, root).adopt([Address("BotUser", "nightly")])
    assert (result.recorded_in_store, sandbox.calls()) == (("BotUser/nightly",), [])


async def test_destroy_deletes_the_objects_of_the_stack(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    sandbox.post("/ip_policies", {"description": "of nobody"})
    result = await open_on(sandbox, root).destroy()
    assert result.status is Status.APPLIED
    assert [policy["description"] for policy in sandbox.get("/ip_policies")["ip_policies"]] == ["of nobody"]


async def test_an_import_proposes_manifests_that_change_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    root = write_project(tmp_path / "project")
    proposal = await open_on(sandbox, root).propose_import()
    assert [str(imported.address) for imported in proposal.imported] == ["IPPolicy/office"]
    for path, text in proposal.files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    assert (await open_on(sandbox, root).select(adopt=True).apply()).status is Status.APPLIED


async def test_the_history_has_the_calls_of_earlier_runs(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    assert {recorded_call.call for recorded_call in await open_on(sandbox, root).history()} == {
        "create IPPolicy/a",
        "create IPPolicy/b",
    }


async def test_a_target_that_matches_nothing_is_refused(sandbox: Sandbox, root: Path) -> None:
    with pytest.raises(NothingSelected, match="IPPolicy/zzz matches nothing"):
        await open_on(sandbox, root).plan(selection=Selection(targets=("IPPolicy/zzz",)))


def test_an_invalid_manifest_is_reported_with_its_position(sandbox: Sandbox, root: Path) -> None:
    (root / "manifests" / "all.yaml").write_text("kind: IPPolicy\nname: a\nspec: {descripton: x}\n")
    with pytest.raises(InvalidProject) as refused:
        open_on(sandbox, root)
    (problem,) = refused.value.problems
    assert (problem.code, str(problem.position)) == ("unknown-field", "manifests/all.yaml:3:8")
    (result,) = Workspace.validate(root)
    assert (result.is_valid, result.problems) == (False, (problem,))


async def test_a_policy_of_the_project_blocks(sandbox: Sandbox, root: Path) -> None:
    (root / "policies").mkdir()
    rule = {"policy": "no-creates", "message": "no", "check": "size(plan.changes) == 0"}
    (root / "policies" / "rules.yaml").write_text(json.dumps(rule))
    result = await open_on(sandbox, root).apply()
    assert (result.status, [problem.rule for problem in result.problems]) == (Status.BLOCKED, ["no-creates"])


async def test_a_plan_of_another_account_is_refused_before_any_call(root: Path) -> None:
    with Sandbox() as prod, SandboxProcess() as staging:
        planned = await open_on(prod, root).plan()
        with pytest.raises(WrongAccount, match="the plan is for the stack prod on https://sandbox"):
            await open_on(staging, root).apply(planned)
        assert staging.calls() == []


async def test_a_plan_is_applied_with_its_own_selection(sandbox: Sandbox, root: Path) -> None:
    workspace = open_on(sandbox, root)
    planned = await workspace.plan(selection=Selection(targets=("IPPolicy/a",)))
    assert [str(change.address) for change in planned.project.plan_for(planned.snapshot).changes] == ["IPPolicy/a"]
    gone = await workspace.to_destroy().plan()
    assert (await workspace.apply(planned)).remaining == ()
    assert gone.plan.is_empty


async def test_a_plan_to_destroy_is_verified_as_one(sandbox: Sandbox, root: Path) -> None:
    workspace = open_on(sandbox, root)
    await workspace.apply()
    result = await workspace.apply(await workspace.to_destroy().plan())
    assert (result.status, sandbox.get("/ip_policies")["ip_policies"]) == (Status.APPLIED, [])


async def test_a_second_selection_never_widens_the_first(sandbox: Sandbox, root: Path) -> None:
    narrow = open_on(sandbox, root).select(Selection(targets=("IPPolicy/a",)))
    planned = await narrow.select(allow={("delete", "IPPolicy"): 1}).plan(adopt=True)
    assert [str(change.address) for change in planned.plan.changes] == ["IPPolicy/a"]
    assert narrow.select(allow={("update", "*"): 1}).select(adopt=True).options.allow == {("update", "*"): 1}


def test_no_secret_of_the_environment_is_in_a_repr(sandbox: Sandbox, root: Path) -> None:
    sandbox.api_key = "canary-key-of-the-environment"
    workspace = open_on(sandbox, root)
    assert "canary" not in f"{workspace!r} {workspace.runtime!r} {workspace}"


async def test_a_failing_store_stops_only_its_own_run(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = asyncio.Event()

    async def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(StoreJournal, "record", fail)
    result = await open_on(sandbox, root).apply(stop=stop)
    assert (stop.is_set(), result.failure) == (False, "the disk is full")
    assert result.status is Status.PARTIAL
