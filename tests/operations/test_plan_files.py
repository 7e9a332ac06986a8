"""Plan files: which ones are refused, where their secrets come from, and what the manifests have to say about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import InvalidProject, Runtime, Selection, Status, WrongAccount
from reconciler.model.change import Action, Change, Reason
from reconciler.model.manifest import Declaration, Delivery, Ensure, Manifest
from reconciler.model.plan import Call, Observed, OwnerDraft, Plan, Verb
from reconciler.model.problem import Position, Rejected
from reconciler.model.value import Json, Secret, secrets_in
from reconciler.operations.applying import plan_files
from reconciler.operations.applying.plan_files import PlanFile
from reconciler.operations.errors import UnusablePlan, UnusableSetting
from reconciler.operations.opening import plan_key
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.project_openers import open_with_plan
from reconciler.operations.workspace import Workspace
from reconciler.project.documents.resolve import Variable
from reconciler.project.manifests.load import Loaded
from reconciler.project.settings.config import Config
from reconciler.rendering.wire import plan_json
from reconciler.testing import Sandbox
from tests.harness.builders import at, declare
from tests.harness.workspaces import domain, open_on, policy, write_project
from tests.kinds import pems

SIGNED = {"RECONCILER_PLAN_KEY": "0123456789abcdef"}
CREDENTIAL = at("TunnelCredential/agent")


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def source(
    sandbox: Sandbox, root: Path, variables: Mapping[str, Variable] | None = None, environ: Mapping[str, str] = {}
) -> ProjectSource:
    runtime = Runtime(environ={**sandbox.environ, **environ}, platform=sandbox)
    return ProjectSource(root, variables=variables or {}, runtime=runtime)


async def plan_to(file: Path, sandbox: Sandbox, root: Path, **changes: Any) -> Plan:
    """Writes a plan of the project, with these fields changed, and returns it."""
    plan = replace((await open_on(sandbox, root).plan()).plan, **changes)
    plan_files.write_plan(file, plan, {})
    return plan


# --- keys, signatures and age -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({}, None),
        (SIGNED, b"0123456789abcdef"),
        ({plan_key.PLAN_KEY: "é" * 16}, b"\xc3\xa9" * 16),
    ],
)
def test_plans_are_signed_with_the_key_of_the_environment(environ: Mapping[str, str], key: bytes | None) -> None:
    assert plan_key.find_plan_key(environ) == key


def test_a_key_that_is_set_but_empty_is_a_missing_secret() -> None:
    with pytest.raises(UnusableSetting, match="RECONCILER_PLAN_KEY is set, but empty"):
        plan_key.find_plan_key({plan_key.PLAN_KEY: ""})


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(UnusableSetting, match="RECONCILER_PLAN_KEY must be at least 16 characters long"):
        plan_key.find_plan_key({plan_key.PLAN_KEY: "k" * 15})


def test_a_file_is_shown_with_its_key_or_with_a_note(tmp_path: Path) -> None:
    plan, signed, plain = Plan("prod", commit="abc"), tmp_path / "signed.json", tmp_path / "plain.json"
    plan_files.write_plan(signed, plan, SIGNED)
    plan_files.write_plan(plain, plan, {})
    assert (signed.stat().st_mode & 0o777, plain.stat().st_mode & 0o777) == (0o600, 0o600)
    assert plan_files.read_plan(signed.read_text(), "p", SIGNED) == (plan, "")
    assert plan_files.read_plan(plain.read_text(), "p", {}) == (plan, "")
    read, note = plan_files.read_plan(signed.read_text(), "p", {})
    assert (read, note) == (plan, "note: the signature was not checked: RECONCILER_PLAN_KEY is not set")
    for text, key in ((plain, SIGNED), (signed, {plan_key.PLAN_KEY: "another key of 16"})):
        with pytest.raises(Rejected, match=r"^p: this plan file cannot be used"):
            plan_files.read_plan(text.read_text(), "p", key)


@pytest.mark.parametrize(
    ("created", "max_age", "now", "text"),
    [
        (1000.0, None, 9e9, ""),
        (0.0, None, 9e9, ""),
        (1000.0, 60, 1060.0, ""),
        (
            1000.0,
            60,
            1061.4,
            "p was created 61 seconds ago, and --max-age allows 60; plan again, or increase --max-age",
        ),
        (1000.0, 0, 1000.5, "p was created 0 seconds ago, and --max-age allows 0; plan again, or increase --max-age"),
        (0.0, 60, 0.0, "p has no creation time; plan again"),
    ],
)
def test_a_file_is_too_old_once_it_is_older_than_the_limit(
    created: float, max_age: int | None, now: float, text: str
) -> None:
    planned = PlanFile("p", Plan("prod", created=created), "", False, None, "")
    assert plan_files.reason_too_old(planned, max_age, now) == text


# --- which files are read ---------------------------------------------------------------------------------------------


async def test_a_file_of_this_project_is_read_with_its_manifests_and_selection(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root, file = write_project(tmp_path / "project", policy("a"), policy("b")), tmp_path / "plan.json"
    selected = Selection(targets=("IPPolicy/a",), excludes=("IPPolicy/z*",))
    planned = await open_on(sandbox, root).plan(selection=Selection(targets=selected.targets))
    plan = replace(planned.plan, excludes=selected.excludes)
    plan_files.write_plan(file, plan, {})
    opened, found = open_with_plan(source(sandbox, root), file)
    workspace = Workspace.of(opened)
    assert (found.plan, found.name, found.is_signed, found.secrets) == (plan, str(file), False, 0)
    assert (found.digest, found.text) == (plan_json.digest(file.read_text()), file.read_text())
    assert (workspace.options.targets, workspace.options.excludes) == (selected.targets, selected.excludes)
    assert list(workspace.manifest.declarations) == [at("IPPolicy/a"), at("IPPolicy/b")]
    assert (found.is_of_these_manifests, found.note, found.problems) == (True, "", ())
    plan_files.write_plan(file, plan, SIGNED)
    assert open_with_plan(source(sandbox, root, environ=SIGNED), file)[1].is_signed


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"stack": "other"}, WrongAccount, "plan.json is a plan for the stack other, not prod"),
        ({"account": "https://other"}, WrongAccount, "is a plan for the account https://other, not https://sandbox"),
        ({"snapshot_time": 5.0}, UnusablePlan, "was created from a snapshot and cannot be applied"),
    ],
)
async def test_a_file_that_is_no_plan_is_refused(
    sandbox: Sandbox, tmp_path: Path, changes: dict[str, Any], error: type[Exception], text: str
) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "plan.json"
    await plan_to(file, sandbox, root, **changes)
    with pytest.raises(error, match=text):
        open_with_plan(source(sandbox, root), file)


async def test_a_signed_file_needs_the_key_and_a_key_a_signed_file(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "plan.json"
    plan = await plan_to(file, sandbox, root)
    with pytest.raises(InvalidProject, match="it is not signed"):
        open_with_plan(source(sandbox, root, environ=SIGNED), file)
    plan_files.write_plan(file, plan, SIGNED)
    with pytest.raises(UnusablePlan, match="is signed, but RECONCILER_PLAN_KEY is not set"):
        open_with_plan(source(sandbox, root), file)


async def test_a_binary_file_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "plan.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UnusablePlan, match=r"plan\.json: not UTF-8 text"):
        open_with_plan(source(sandbox, root), file)


CALL = Call("create BotUser/b", at("BotUser/b"), Verb.CREATE, "/bot_users")


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (
            Plan("prod", changes=(Change(at("Cloud/b"), Action.CREATE, Reason.DECLARED),)),
            "it contains Cloud/b, whose kind",
        ),
        (Plan("prod", calls=(replace(CALL, address=at("Cloud/b")),)), "it contains Cloud/b, whose kind does not exist"),
        (Plan("prod", observed={at("AgentConfig/b"): Observed("b", {})}), "it contains AgentConfig/b, whose kind"),
        (Plan("prod", calls=(replace(CALL, needs=(CALL.id,)),)), "cannot be used: "),
        (Plan("prod", calls=(replace(CALL, needs=("create BotUser/a",)),)), "cannot be used: "),
    ],
)
def test_a_file_that_no_engine_could_apply_is_refused(plan: Plan, text: str) -> None:
    with pytest.raises(Rejected, match=f"^the file: .*{text}"):
        plan_files.read_plan(plan_json.write_plan(plan), "the file", {})


# --- manifests that changed -------------------------------------------------------------------------------------------


async def test_a_file_is_applied_as_reviewed_while_the_manifests_are_invalid(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "plan.json"
    await plan_to(file, sandbox, root)
    weak = {"kind": "IPPolicy", "name": "b", "spec": {"descripton": "b"}}
    write_project(root, policy("a"), weak)
    opened, planned = open_with_plan(source(sandbox, root), file)
    workspace = Workspace.of(opened)
    assert [problem.code for problem in planned.problems] == ["unknown-field"]
    assert planned.loaded is not None
    assert list(map(str, planned.loaded.manifest.declarations)) == ["IPPolicy/a"]
    assert workspace.manifest.declarations == {}
    assert planned.note == (
        "note: the manifests cannot be read; the plan is applied as it was reviewed, without these changes"
    )
    assert (await workspace.apply(planned)).status is Status.APPLIED
    assert [found["description"] for found in sandbox.get("/ip_policies")["ip_policies"]] == ["a"]


async def test_a_file_of_other_manifests_has_a_note(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "plan.json"
    await plan_to(file, sandbox, root)
    write_project(root, policy("a"), policy("b"))
    opened, planned = open_with_plan(source(sandbox, root), file)
    workspace = Workspace.of(opened)
    assert (planned.is_of_these_manifests, workspace.manifest.declarations) == (False, {})
    assert planned.note.startswith("note: the manifests or their variables changed after this plan was created; ")
    destroying = replace(planned.plan, changes=(Change(at("IPPolicy/a"), Action.DELETE, Reason.DESTROYED),))
    assert dataclasses.replace(planned, plan=destroying).note == ""
    assert not planned.is_destroy


async def test_an_unknown_variable_is_refused_with_a_file(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "plan.json"
    await plan_to(file, sandbox, root)
    with pytest.raises(InvalidProject, match="regoin"):
        open_with_plan(source(sandbox, root, {"regoin": "eu"}), file)


# --- a plan that was never in a file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"stack": "other"}, {"account": "https://other"}])
async def test_a_result_of_another_stack_or_account_is_refused(
    sandbox: Sandbox, tmp_path: Path, changes: dict[str, str]
) -> None:
    workspace = open_on(sandbox, write_project(tmp_path / "project", policy("a")))
    planned = await workspace.plan()
    other = replace(planned, plan=replace(planned.plan, **changes))
    with pytest.raises(WrongAccount, match=f"not the stack prod on {workspace.account_name}"):
        await workspace.apply(other)
    assert sandbox.calls() == []


async def test_a_result_is_applied_with_the_approvals_of_both_the_later_one_first(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    workspace = open_on(sandbox, write_project(tmp_path / "project", policy("a")))
    planned = await workspace.select(allow={("delete", "A"): 1, ("delete", "B"): 1}).plan()
    later = workspace.select(allow={("delete", "B"): 2, ("delete", "C"): 3})
    own, file = plan_files.from_plan_result(planned, later)
    assert own.options.allow == {("delete", "A"): 1, ("delete", "B"): 2, ("delete", "C"): 3}
    assert (file.plan, file.is_of_these_manifests, file.is_signed) == (planned.plan, True, False)


# --- secrets ----------------------------------------------------------------------------------------------------------


CERTIFICATE = at("TLSCertificate/leaf")


def file_with(*secrets: Json, loaded: Loaded | None = None, environ: Mapping[str, str] = {}) -> PlanFile:
    """A file with one call whose body has these secrets."""
    body = {f"f{number}": secret for number, secret in enumerate(secrets)}
    call = Call(f"create {CERTIFICATE}", CERTIFICATE, Verb.CREATE, "/tls_certificates", body=body)
    text = plan_json.write_plan(Plan("prod", calls=(call,)))
    plan = plan_json.read_plan(text, lambda source, _: Secret("", source))
    return PlanFile("p", plan, "", False, loaded, text, environ=environ, secrets=len(secrets))


def texts_of(plan: Plan) -> list[str]:
    return [secret.reveal() for call in plan.calls for secret in secrets_in(call.body)]


def test_secrets_are_read_again_from_their_sources(tmp_path: Path) -> None:
    config = Config(tmp_path, "prod")
    (tmp_path / "key").write_text("of the file")
    declared = declare(str(CERTIFICATE), {"private_key_pem": Secret("of a manifest", "manifest:m.yaml")})
    loaded = Loaded(Manifest("prod", {CERTIFICATE: declared}), ())
    file = file_with(
        Secret("of the environment", "env:KEY"),
        Secret("of the file", "file:key"),
        Secret("of a manifest", "manifest:m.yaml"),
        Secret("of the platform", plan_files.LIVE),
        loaded=loaded,
        environ={"KEY": "of the environment"},
    )
    live = {CERTIFICATE: {"private_key_pem": Secret("of the platform", plan_files.LIVE)}}
    found = plan_files.with_secrets(file, config, live)
    assert texts_of(found.plan) == ["of the environment", "of the file", "of a manifest", "of the platform"]
    assert found.changed == {}
    assert texts_of(plan_files.with_secrets(file, config, {}).plan)[3] == ""


@pytest.mark.parametrize(
    ("environ", "sources", "lines"),
    [
        ({"KEY": "new"}, ["env:KEY"], ["the secret from env:KEY changed after the plan was created"]),
        ({}, ["env:KEY"], ["the secret from env:KEY cannot be read"]),
        ({}, [plan_files.LIVE], ["the secret on the platform cannot be read"]),
        ({}, ["file:key"], ["the secret from file:key cannot be read"]),
        ({}, ["elsewhere:KEY"], ["the secret from elsewhere:KEY cannot be read"]),
        ({}, ["env:KEY", "env:KEY"], ["the secret from env:KEY cannot be read"]),
        (
            {"A": "new"},
            ["env:B", "env:A"],
            ["the secret from env:B cannot be read", "the secret from env:A changed after the plan was created"],
        ),
    ],
)
def test_a_changed_secret_is_reported_once(
    tmp_path: Path, environ: dict[str, str], sources: list[str], lines: list[str]
) -> None:
    file = file_with(*(Secret("old", source) for source in sources), environ=environ)
    found = plan_files.with_secrets(file, Config(tmp_path, "prod"), {})
    assert found.changed == {CERTIFICATE: [f"{CERTIFICATE}: {line}" for line in lines]}


def test_secrets_of_owner_records_are_compared_too(tmp_path: Path) -> None:
    old = Secret("old", "env:KEY")
    for draft in (OwnerDraft(CERTIFICATE, text=old), OwnerDraft(CERTIFICATE, applied={"private_key_pem": old})):
        call = Call("update", CERTIFICATE, Verb.UPDATE, "/tls_certificates/c", "c", {}, owner=draft)
        text = plan_json.write_plan(Plan("prod", calls=(call,)))
        plan = plan_json.read_plan(text, lambda source, _: Secret("", source))
        for current, changed in (("old", []), ("new", [CERTIFICATE])):
            file = PlanFile("p", plan, "", False, None, text, environ={"KEY": current}, secrets=1)
            assert list(plan_files.with_secrets(file, Config(tmp_path, "prod"), {}).changed) == changed


def test_a_secret_is_found_in_the_canonical_form_that_owner_records_have(tmp_path: Path) -> None:
    key = pems.private_key("leaf")
    same = file_with(Secret(key.strip(), "env:KEY"), environ={"KEY": key.strip() + "\n"})
    assert plan_files.with_secrets(same, Config(tmp_path, "prod"), {}).changed == {}


async def test_the_secrets_of_a_file_are_counted_with_their_sources(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "plan.json"
    body = {"a": Secret("0", "env:A"), "b": Secret("1", "env:B"), "c": Secret("2", "env:C")}
    await plan_to(file, sandbox, root, calls=(replace(CALL, body=body),))
    _, planned = open_with_plan(source(sandbox, root), file)
    assert planned.secrets == 3
    (call,) = planned.plan.calls
    assert [(secret.source, secret.reveal()) for secret in secrets_in(call.body)] == [
        ("env:A", ""),
        ("env:B", ""),
        ("env:C", ""),
    ]
    assert "canary" not in repr(dataclasses.replace(planned, text="canary", environ={"KEY": "canary"}))


def test_a_file_without_secrets_is_as_it_was_read(tmp_path: Path) -> None:
    file = file_with()
    assert plan_files.with_secrets(file, Config(tmp_path, "prod"), {}) is file
    assert (
        plan_files.with_secrets(dataclasses.replace(file, secrets=None), Config(tmp_path, "prod"), {}).plan == file.plan
    )


# --- rules and deliveries ---------------------------------------------------------------------------------------------


TOKEN = Delivery("to_file", "secrets/agent.token", Position("m.yaml", 1, 1))


def plan_with_token(
    delivery: Delivery | None, *declared: Declaration, is_readable: bool = True
) -> tuple[PlanFile, Plan]:
    """A file with a create that delivers a token, beside manifests that declare this."""
    owner = OwnerDraft(CREDENTIAL)
    deliver = {} if delivery is None else {"token": delivery}
    call = Call(f"create {CREDENTIAL}", CREDENTIAL, Verb.CREATE, "/credentials", body={}, owner=owner, deliver=deliver)
    plan = Plan("prod", changes=(Change(CREDENTIAL, Action.CREATE, Reason.DECLARED),), calls=(call,))
    loaded = Loaded(Manifest("prod", {declaration.address: declaration for declaration in declared}), ())
    return PlanFile("p.json", plan, "", False, loaded if is_readable else None, ""), plan


def declare_delivery(delivery: Delivery, **more: Any) -> Declaration:
    return replace(declare(str(CREDENTIAL), **more), deliver={"token": delivery})


def test_a_token_is_delivered_to_the_target_in_any_manifest() -> None:
    moved = replace(TOKEN, position=Position("other.yaml", 9, 9))
    plan_files.check_rules(*plan_with_token(TOKEN, declare_delivery(moved)))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            plan_with_token(TOKEN, is_readable=False),
            "and the manifests, which declare its delivery, cannot be read; correct them",
        ),
        (plan_with_token(TOKEN), "issues a token that the manifests do not declare; plan again"),
        (
            plan_with_token(TOKEN, declare_delivery(replace(TOKEN, target="secrets/other"))),
            "delivers its token to another target than the manifests declare; plan again",
        ),
        (
            plan_with_token(TOKEN, declare_delivery(replace(TOKEN, settings={"name": "a"}))),
            "delivers its token to another target than the manifests declare; plan again",
        ),
    ],
)
def test_a_token_is_not_delivered_to_another_target(file: tuple[PlanFile, Plan], text: str) -> None:
    with pytest.raises(Rejected) as refused:
        plan_files.check_rules(*file)
    (problem,) = refused.value.problems
    assert (problem.subject, problem.code) == (f"p.json: {CREDENTIAL}", "plan-delivery-differs")
    assert str(problem).endswith(text)


def test_an_irreversible_deletion_without_a_listed_approval_is_refused_also_if_declared_absent() -> None:
    where = at("ReservedDomain/d")
    delete = Call(f"delete {where}", where, Verb.DELETE, "/reserved_domains/rd_1", "rd_1")
    plan = Plan(
        "prod",
        changes=(Change(where, Action.DELETE, Reason.ABSENT, "rd_1"),),
        calls=(delete,),
        observed={where: Observed("rd_1", {}, f"prod {where}")},
    )
    for ensure in (Ensure.ABSENT, Ensure.PRESENT):
        loaded = Loaded(Manifest("prod", {where: declare(str(where), ensure=ensure)}), ())
        file = PlanFile("p.json", plan, "", False, loaded, "")
        with pytest.raises(Rejected, match=r"^p\.json: ReservedDomain: deletes 1 without"):
            plan_files.check_rules(file, plan)


async def test_a_file_requires_the_approvals_that_it_names(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", domain("a"), policy("b")), tmp_path / "plan.json"
    await open_on(sandbox, root).apply()
    write_project(root, policy("b"))
    await plan_to(file, sandbox, root)
    opened, planned = open_with_plan(source(sandbox, root), file)
    workspace = Workspace.of(opened)
    blocked = await workspace.apply(planned)
    assert (blocked.status, [approval.flag for approval in blocked.plan.missing_approvals]) == (
        Status.BLOCKED,
        ["--allow delete:ReservedDomain=1"],
    )
    allowed = workspace.select(allow={("delete", "ReservedDomain"): 1})
    assert (await allowed.apply(planned)).status is Status.APPLIED
    assert sandbox.get("/reserved_domains")["reserved_domains"] == []
