"""Operations that only look: validation, lists of the account, drift and its history, plans from a snapshot file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import InvalidProject, NothingSelected, Runtime, Selection, Workspace, kinds
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.history import DriftCheck, Past
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.problem import Severity
from reconciler.model.snapshot import Place
from reconciler.model.value import Secret
from reconciler.operations import drift
from reconciler.operations.authoring import snapshot_files
from reconciler.operations.history import read_calls, read_past
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.opening.stores import store_location
from reconciler.operations.reporting import Note, OperationEvent, ReadRetried
from reconciler.operations.sinks import RoutedSinks
from reconciler.operations.validate import validate_environment
from reconciler.store.store import open_store
from reconciler.testing import Sandbox
from tests.harness.builders import at, live, manifest, record, snapshot
from tests.harness.workspaces import Document, bot, domain, open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


# --- validation -------------------------------------------------------------------------------------------------------


def credential(target: str, name: str = "t") -> Document:
    return {"kind": "TunnelCredential", "name": name, "spec": {}, "deliver": {"token": {"to_file": target}}}


def environment(root: Path, name: str, text: str = "") -> None:
    (root / "environments").mkdir(exist_ok=True)
    (root / f"environments/{name}.yaml").write_text(text or f"stack: {name}\n")


def test_each_environment_is_validated_or_the_one_that_is_chosen(tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"), policy("b"))
    for name in ("eu", "us"):
        environment(root, name)
    (root / "manifests/agent.yaml").write_text(
        "kind: AgentConfig\nname: a\nspec: {server_addr: 'a.example.com:443', authtoken: {from_env: T}}\n"
    )
    (root / "policies").mkdir()
    (root / "policies/a.yaml").write_text("policy: a\nmessage: no\ncheck: resource.spec.description != 'a'\n")
    results = Workspace.validate(root, runtime=Runtime(environ={}))
    assert [(result.environment, result.resources, result.files, result.policies) for result in results] == [
        (name, 3, 2, 1) for name in (None, "eu", "us")
    ]
    assert [[problem.subject for problem in result.problems if problem.rule] for result in results] == [
        ["IPPolicy/a"]
    ] * 3
    (chosen,) = Workspace.validate(root, environment="us", runtime=Runtime(environ={}))
    assert chosen.environment == "us"
    (chosen,) = Workspace.validate(root, runtime=Runtime(environ={"RECONCILER_ENV": "eu"}))
    assert chosen.environment == "eu"


def test_a_project_that_only_environments_complete_is_validated_with_them(tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a", "${{ var.text }}"), settings="variables: {text: {type: string}}\n")
    (alone,) = Workspace.validate(root, runtime=Runtime(environ={}))
    assert (alone.environment, alone.is_valid) == (None, False)
    environment(root, "eu", "variables: {text: eu}\n")
    assert [
        (result.environment, result.is_valid) for result in Workspace.validate(root, runtime=Runtime(environ={}))
    ] == [("eu", True)]
    (given,) = Workspace.validate(root, environment="eu", variables={"text": "b"}, runtime=Runtime(environ={}))
    assert given.is_valid
    source = ProjectSource(root, runtime=Runtime(environ={}))
    assert not validate_environment(source, None).is_valid
    assert validate_environment(source, "eu").is_valid


def test_an_error_in_one_environment_is_no_error_of_another(tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"))
    environment(root, "eu", "IPPolicy/b: {spec: {description: x}}\n")
    environment(root, "us")
    assert [result.is_valid for result in Workspace.validate(root, runtime=Runtime(environ={}))] == [True, False, True]


@pytest.mark.parametrize(
    ("ci", "is_told"), [("true", True), ("1", True), ("TRUE", True), ("false", False), ("", False), (None, False)]
)
def test_a_delivery_to_a_file_on_an_ephemeral_runner_is_a_warning(
    tmp_path: Path, ci: str | None, is_told: bool
) -> None:
    root = write_project(tmp_path, credential("secrets/t"), policy("a"))
    (result,) = Workspace.validate(root, runtime=Runtime(environ={} if ci is None else {"CI": ci}))
    assert ([problem.subject.partition(".")[0] for problem in result.problems], result.is_valid) == (
        ["TunnelCredential/t"] if is_told else [],
        True,
    )


def test_a_delivery_target_shared_by_environments_is_a_warning(tmp_path: Path) -> None:
    root = write_project(tmp_path, credential("secrets/t"))
    assert [result.shared for result in Workspace.validate(root, runtime=Runtime(environ={}))] == [()]
    environment(root, "eu")
    environment(root, "us", "stack: us\nTunnelCredential/t: null\n")
    results = Workspace.validate(root, runtime=Runtime(environ={}))
    assert [len(result.shared) for result in results] == [0, 0, 1]
    assert "secrets/t" in str(results[-1].shared[0])
    for chosen, count in (("eu", 1), ("us", 0)):
        for choice in ({"environment": chosen}, {"runtime": Runtime(environ={"RECONCILER_ENV": chosen})}):
            arguments: dict[str, Any] = {"runtime": Runtime(environ={}), **choice}
            (result,) = Workspace.validate(root, **arguments)
            assert len(result.shared) == count


# --- the account ------------------------------------------------------------------------------------------------------


async def test_each_object_of_the_account_is_listed_once_with_its_owner(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path / "ours", policy("a"), bot("ci"))
    theirs = write_project(tmp_path / "theirs", policy("b"), bot("cd"))
    (theirs / "reconciler.yaml").write_text("version: 1\nstack: theirs\nstore: ../ours/state/reconciler.db\n")
    for folder in (root, theirs):
        await open_on(sandbox, folder).apply()
    sandbox.post("/ip_policies", {"description": "c"})
    sandbox.post("/bot_users", {"name": "nobody"})
    listing = await open_on(sandbox, root).list_account()
    found = [
        (item.kind.name, item.live.body.get("description") or item.live.body.get("name"), item.stack, item.address)
        for item in listing.objects
    ]
    assert sorted(found, key=str) == [
        ("BotUser", "cd", "theirs", ""),
        ("BotUser", "ci", "prod", "BotUser/ci"),
        ("BotUser", "nobody", "", ""),
        ("IPPolicy", "a", "prod", "IPPolicy/a"),
        ("IPPolicy", "b", "theirs", "IPPolicy/b"),
        ("IPPolicy", "c", "", ""),
    ]
    assert [name for name, *_ in found] == sorted(name for name, *_ in found)
    assert listing.incomplete == {}


async def test_ownership_is_known_only_from_owner_records_without_a_store(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/bot_users", {"name": "nobody"})
    listing = await open_on(sandbox, write_project(tmp_path)).list_account()
    assert [(item.kind.name, item.stack) for item in listing.objects] == [("BotUser", "")]


async def test_incomplete_lists_are_reported_and_missing_collections_are_not(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.fault("GET /vaults", times=0, then="status", status=422)
    sandbox.fault("GET /bot_users", times=0, then="status", status=422)
    sandbox.fault("GET /ip_policies", times=0, then="status", status=404)
    listing = await open_on(sandbox, write_project(tmp_path)).list_account()
    assert [*listing.incomplete] == ["BotUser", "Vault"]
    assert "422" in listing.incomplete["Vault"]


async def test_one_kind_is_listed_without_the_others(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "a"})
    workspace = open_on(sandbox, write_project(tmp_path))
    listing = await workspace.list_objects(kinds.get("IPPolicy"))
    assert ([item.body["description"] for item in listing.objects], listing.complete) == (["a"], True)
    assert {entry["path"].partition("?")[0] for entry in sandbox.log()} == {"/ip_policies"}


# --- drift ------------------------------------------------------------------------------------------------------------


def test_unmanaged_objects_and_those_of_other_stacks_are_counted() -> None:
    seen = snapshot(
        live("IPPolicy", "ipp_1", {"description": "office"}),
        live("IPPolicy", "ipp_2", owner=record("IPPolicy/a", {}, stack="theirs")),
        live("IPPolicy", "ipp_3", owner=record("IPPolicy/b", {}, stack="theirs")),
        live("IPPolicy", "ipp_4", owner=record("IPPolicy/c", {}, stack="prod")),
        live("BotUser", "bot_1", {"name": "ci"}),
    )
    plan = Plan(
        "prod",
        unmanaged=(("IPPolicy", "ipp_1"), ("IPPolicy", "ipp_gone")),
        elsewhere={"other": (("BotUser", "bot_1"),), "theirs": (("BotUser", "bot_2"), ("BotUser", "bot_3"))},
    )
    found = drift.list_unmanaged(plan, seen, manifest())
    assert [(str(address), id) for address, id in found.objects] == [("IPPolicy/office", "ipp_1")]
    assert [*found.stacks.items()] == [("other", 1), ("theirs", 4)]


async def test_drift_checks_are_recorded_with_what_differs(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"), policy("b"))
    await open_on(sandbox, root).apply()
    (first, _) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{first['id']}", {"description": "by hand"})
    workspace = open_on(sandbox, root, now=lambda: 1234.0, commit="abc")
    found = await workspace.drift()
    await drift.record_drift(workspace, found)
    past = await read_past(workspace.config, 0.0)
    (check,) = past.checks
    assert isinstance(check, DriftCheck)
    assert (check.at, check.declared, check.commit) == (1234.0, 2, "abc")
    (resource,) = check.moved
    assert (str(resource.address), resource.fields) == (f"IPPolicy/{first['description']}", ("description",))
    assert len(past.runs) == 1
    assert await read_past(workspace.config, 9e12) == Past()
    assert len(await read_calls(workspace.config, 1)) == 1


async def test_an_apply_repairs_the_drift_of_a_check_before_it_if_all_its_calls_succeed(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path, policy("a"), policy("b"), policy("c"))
    await open_on(sandbox, root).apply()
    for found in sandbox.get("/ip_policies")["ip_policies"]:
        sandbox.patch(f"/ip_policies/{found['id']}", {"metadata": "by hand"})
    workspace = open_on(sandbox, root)
    seen = await workspace.drift()
    await drift.record_drift(workspace, seen)
    assert (await read_past(workspace.config, 0.0)).applied == {}
    broken = next(found["id"] for found in sandbox.get("/ip_policies")["ip_policies"] if found["description"] == "b")
    sandbox.fault(f"PATCH /ip_policies/{broken}", then="status", status=400)
    await open_on(sandbox, root).select(Selection(excludes=("IPPolicy/c",))).apply()
    assert set(map(str, (await read_past(workspace.config, 0.0)).applied)) == {"IPPolicy/a"}
    await open_on(sandbox, root).apply()
    past = await read_past(workspace.config, 0.0)
    assert set(map(str, past.applied)) == {"IPPolicy/a", "IPPolicy/b", "IPPolicy/c"}
    assert all(at > past.checks[-1].at for at in past.applied.values())


@pytest.mark.parametrize("first", ["check", "apply"])
async def test_only_what_was_applied_after_the_last_check_is_repaired(
    sandbox: Sandbox, tmp_path: Path, first: str
) -> None:
    """In every order of four checks and applies: what a later check found, an earlier apply did not repair."""
    config = open_on(sandbox, write_project(tmp_path)).config
    times = itertools.count(1000)
    async with open_store(store_location(config), now=lambda: float(next(times))) as store:
        for number, order in enumerate(itertools.product(["check", "apply"], repeat=3)):
            stack, applied, has_check = f"stack-{number}", dict[Address, float](), False
            for place, step in enumerate((first, *order)):
                if step == "check":
                    await store.drift_history.record(stack, DriftCheck(float(next(times)), 1))
                    applied, has_check = {}, True
                    continue
                address = at(f"IPPolicy/p{place % 2}")
                async with store.journal(stack, command="apply") as journal:
                    await journal.record(Ended(Call("c", address, Verb.UPDATE, "/ip_policies/p"), Outcome.DONE, 1.0))
                applied[address] = 0.0
            past = await read_past(replace(config, stack=stack), 0.0)
            assert set(past.applied) == (set(applied) if has_check else set()), (first, *order)


async def test_a_project_without_a_store_has_no_history(tmp_path: Path, sandbox: Sandbox) -> None:
    workspace = open_on(sandbox, write_project(tmp_path))
    assert (await workspace.history(), await read_past(workspace.config, 0.0)) == ((), Past())
    assert drift.keeps_history(workspace)
    assert not drift.keeps_history(open_on(sandbox, workspace.config.root, store="memory:"))


async def test_known_drift_is_not_drift_until_its_last_day(sandbox: Sandbox, tmp_path: Path) -> None:
    entry = '{match: "IPPolicy/a.*", until: "1970-01-02", reason: r}'
    root = write_project(tmp_path, policy("a"), settings=f"drift: {{ignore: [{entry}]}}\n")
    await open_on(sandbox, root).apply()
    (first,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{first['id']}", {"description": "by hand"})
    day = 86_400.0
    for now, has_drift in ((day, False), (2 * day - 1, False), (2 * day, True)):
        assert (await open_on(sandbox, root, now=lambda now=now: now).drift()).has_drift is has_drift


async def test_a_drift_check_of_something_misspelled_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, policy("a"))).select(Selection(targets=("IPPolicy/b",)))
    with pytest.raises(NothingSelected):
        await workspace.drift()


# --- plans ------------------------------------------------------------------------------------------------------------


async def test_a_plan_has_its_time_its_account_its_environment_and_the_warnings(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path, credential("secrets/t"), settings="platform: {account: a}\n")
    environment(root, "eu", "platform: {account: b}\n")
    runtime = Runtime(environ=sandbox.environ, platform=sandbox, now=lambda: 5.0)
    workspace = Workspace.open(root, environment="eu", runtime=runtime)
    plan = (await workspace.plan()).plan
    assert (plan.created, plan.account, plan.environment) == (5.0, f"{sandbox.base_url} (b)", "eu")
    assert (await Workspace.open(root, runtime=runtime).plan()).plan.environment == ""
    events: list[OperationEvent] = []
    with Sandbox() as busy:
        busy.fault("GET /ip_policies", then="status", status=503)
        await open_on(busy, root).plan(on_event=events.append)
    assert [event.why for event in events if isinstance(event, ReadRetried)] != []


def test_a_selection_inherits_options_that_are_not_set(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, policy("a"), policy("b")))
    chosen = workspace.select(
        Selection(("IPPolicy/*",), ("IPPolicy/b",), ("IPPolicy/a",)), allow={("a", "b"): 1}, adopt=True
    )
    options = chosen.options
    assert (options.targets, options.excludes) == (("IPPolicy/*",), ("IPPolicy/b",))
    assert options.to_replace == {at("IPPolicy/a")}
    assert (options.allow, options.adopt) == ({("a", "b"): 1}, True)
    assert chosen.select().options == options
    assert chosen.select(adopt=False, allow={}).options == replace(options, adopt=False, allow={})
    destroying = chosen.to_destroy()
    assert (destroying.manifest.declarations, destroying.options) == ({}, replace(options, destroy=True))
    with pytest.raises(NothingSelected):
        workspace.select(Selection(excludes=("IPPolicy/a",), replace=("IPPolicy/a",)))


async def test_a_plan_from_a_snapshot_is_marked_as_such(sandbox: Sandbox, tmp_path: Path) -> None:
    vault = {"kind": "Vault", "name": "v", "spec": {"name": "v"}}
    spec = {"vault_id": {"ref": "Vault/v"}, "name": "s", "value": {"from_env": "VALUE"}}
    root, file = (
        write_project(tmp_path / "p", policy("a"), vault, {"kind": "Secret", "name": "s", "spec": spec}),
        tmp_path / "s",
    )
    environ = {**sandbox.environ, "VALUE": "0123456789"}
    workspace = Workspace.open(root, runtime=Runtime(environ=environ, platform=sandbox, commit="abc"))
    await workspace.apply()
    written = await snapshot_files.write_snapshot(workspace, file, None)
    assert (written.objects, written.incomplete, file.stat().st_mode & 0o777) == (3, {}, 0o644)
    source = ProjectSource(root, runtime=Runtime(environ={}, now=lambda: 2_000_000_000.0))
    opened = snapshot_files.open_with_snapshot(source, file, max_age=10**9)
    assert opened.unread == ()  # known to the file
    assert opened.age == pytest.approx(2_000_000_000 - opened.snapshot_file.at)
    assert opened.project.account.base_url == sandbox.base_url
    plan = snapshot_files.plan_offline(opened.project, opened.snapshot_file)
    assert (plan.snapshot_time, plan.created) == (opened.snapshot_file.at, 2_000_000_000.0)
    assert plan.problems[0].code == "planned-from-snapshot"
    assert (plan.problems[0].severity, plan.changes) == (Severity.WARNING, ())
    spec["value"] = {"from_env": "ANOTHER"}
    write_project(root, policy("a"), vault, {"kind": "Secret", "name": "s", "spec": spec})
    other = snapshot_files.open_with_snapshot(source, file, max_age=10**9)
    assert other.unread == ("env:ANOTHER",)
    planned = snapshot_files.plan_offline(other.project, other.snapshot_file)
    assert [str(change.address) for change in planned.changes] == ["Secret/s"]
    chosen = opened.project.select(Selection(targets=("IPPolicy/zzz",)))
    with pytest.raises(NothingSelected):
        snapshot_files.plan_offline(chosen, opened.snapshot_file)


async def test_missing_lists_of_a_snapshot_are_reported_in_order(sandbox: Sandbox, tmp_path: Path) -> None:
    for path in ("/vaults", "/bot_users"):
        sandbox.fault(f"GET {path}", times=0, then="status", status=422)
    workspace = open_on(sandbox, write_project(tmp_path, policy("a")))
    written = await snapshot_files.write_snapshot(workspace, tmp_path / "s", None)
    assert (written.objects, [*written.incomplete]) == (0, ["BotUser", "Vault"])
    assert "422" in written.incomplete["Vault"]


def test_snapshots_are_signed_only_with_a_valid_key() -> None:
    assert snapshot_files.read_signing_key({}) is None
    assert snapshot_files.read_signing_key({snapshot_files.KEY: ""}) is None
    with pytest.raises(InvalidProject) as refused:
        snapshot_files.read_signing_key({snapshot_files.KEY: "canary"})
    assert "canary" not in str(refused.value)


# --- deliveries -------------------------------------------------------------------------------------------------------


class NotingSinks:
    def __init__(self, name: str, log: list[tuple[str, ...]]) -> None:
        self._name, self._log = name, log

    def place(self, delivery: Delivery) -> Place:
        return Place(delivery.way, self._name)

    async def check(self, delivery: Delivery, *, overwrites: bool = False) -> None:
        self._log.append((self._name, "check", delivery.way, str(overwrites)))

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool = False) -> None:
        self._log.append((self._name, secret.reveal(), delivery.way, str(overwrites)))


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("to_file", "local"),
        ("to_dotenv", "local"),
        ("to_command", "local"),
        ("to_vault", "remote"),
        ("to_github_secret", "remote"),
    ],
)
async def test_a_secret_is_sent_only_to_its_delivery_target(way: str, name: str) -> None:
    log: list[tuple[str, ...]] = []
    sinks = RoutedSinks(NotingSinks("local", log), NotingSinks("remote", log))
    delivery = Delivery(way, "x")
    await sinks.check(delivery)
    await sinks.check(delivery, overwrites=True)
    await sinks.deliver(delivery, Secret("token", "s"), overwrites=True)
    await sinks.deliver(delivery, Secret("token", "s"))
    assert log == [
        (name, what, way, str(over))
        for what, over in (("check", False), ("check", True), ("token", True), ("token", False))
    ]
    assert sinks.place(delivery) == Place(way, name)


async def test_a_target_that_exists_already_needs_approval(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, credential("secrets/t"))
    (root / "secrets").mkdir()
    (root / "secrets/t").write_text("of somebody")
    plan = (await open_on(sandbox, root).plan()).plan
    assert [approval.what for approval in plan.missing_approvals] == ["overwrite"]
    (root / "secrets/t").unlink()
    assert (await open_on(sandbox, root).plan()).plan.missing_approvals == ()
    assert (await open_on(sandbox, root).apply()).exit_code == 0
    assert (await open_on(sandbox, root).plan()).plan.is_empty
    (root / "secrets/t").unlink()
    (problem,) = (await open_on(sandbox, root).plan()).plan.problems
    assert "its token was delivered to secrets/t on this machine" in problem.text


# --- policies ---------------------------------------------------------------------------------------------------------


def rules(root: Path, **checks: str) -> None:
    (root / "policies").mkdir(exist_ok=True)
    documents = [{"policy": name, "message": "no", "check": check} for name, check in checks.items()]
    (root / "policies/rules.yaml").write_text("---\n".join(f"{json.dumps(document)}\n" for document in documents))


async def findings(sandbox: Sandbox, root: Path, **more: Any) -> Mapping[str, str]:
    plan = (await open_on(sandbox, root, **more).plan()).plan
    assert {problem.rule for problem in plan.problems} <= plan.judged.keys()
    return plan.judged


async def test_the_digest_of_a_policy_changes_with_all_that_its_result_depends_on(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path, policy("a"))
    assert await findings(sandbox, root) == {}
    rules(root, a="resource.kind != ''", b="now > timestamp('2020-01-01T00:00:00Z')")
    first = await findings(sandbox, root, now=lambda: 2e9)
    later = await findings(sandbox, root, now=lambda: 2e9 + 1)
    assert first.keys() == {"a", "b"}
    assert (first["a"] == later["a"], first["b"] == later["b"]) == (True, False)
    rules(root, a="resource.kind != 'x'", b="now > timestamp('2020-01-01T00:00:00Z')")
    assert (await findings(sandbox, root, now=lambda: 2e9))["a"] != first["a"]


async def test_an_exemption_counts_until_the_end_of_its_last_day(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"))
    (root / "policies").mkdir()
    day = 86_400.0

    async def judge(until: str, now: float) -> tuple[str, bool]:
        exempt = [{"address": "IPPolicy/a", "until": until, "reason": "r"}]
        rule = {"policy": "p", "message": "no", "check": "resource.kind == ''", "exemptions": exempt}
        (root / "policies/rules.yaml").write_text(json.dumps(rule))
        plan = (await open_on(sandbox, root, now=lambda: now).plan()).plan
        return plan.judged["p"], bool(plan.errors)

    valid, expired = await judge("1970-01-02", 2 * day - 1), await judge("1970-01-02", 2 * day)
    assert (valid[1], expired[1]) == (False, True)
    assert valid[0] != expired[0]


async def test_policies_that_are_configured_must_exist(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"), settings="policies: [rules]\n")
    with pytest.raises(InvalidProject, match="there is no file rules"):
        await open_on(sandbox, root).plan()


async def test_a_note_is_no_detail_unless_it_is_marked_as_one(sandbox: Sandbox, tmp_path: Path) -> None:
    events: list[OperationEvent] = []
    workspace = open_on(sandbox, write_project(tmp_path, policy("a"))).to_destroy()
    await workspace.select(Selection(targets=("IPPolicy/zzz",))).plan(on_event=events.append)
    ((text, is_detail),) = [(event.text, event.is_detail) for event in events if isinstance(event, Note)]
    assert (text.startswith("warning: IPPolicy/zzz"), is_detail) == (True, False)


async def test_a_listing_reads_kinds_that_cannot_be_declared_too(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, domain("a"), policy("b"))
    snapshot_of_both, only_read = await open_on(sandbox, root).take_survey()
    assert {"ReservedDomain", "IPPolicy"} <= snapshot_of_both.listings.keys()
    assert not only_read.listings.keys() & snapshot_of_both.listings.keys()
