"""`plan --base`: which changes the reviewed commits cause, on real Git repositories."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.change import Cause
from reconciler.model.plan import Base, Plan
from reconciler.operations.errors import UnusableBase
from reconciler.testing import Sandbox
from tests.operations.projects import Document, bot, domain, open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


class Repository:
    """A project below the root of a Git repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "infra" / "tunnels"
        self.root.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, *documents: Document, settings: str = "") -> None:
        write_project(self.root, *documents, settings=settings)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=next")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def base_of(plan: Plan) -> Base:
    assert plan.base is not None
    return plan.base


def causes(plan: Plan) -> dict[str, str]:
    return {str(change.address): str(change.cause) for change in (*plan.changes, *plan.additions)}


async def test_each_change_has_its_cause(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(policy("drifted"), policy("pending"), policy("changed"), policy("gone"), policy("dropped"))
    await open_on(sandbox, repository.root).apply()
    policies = {each["description"]: each["id"] for each in sandbox.get("/ip_policies")["ip_policies"]}
    sandbox.patch(f"/ip_policies/{policies['drifted']}", {"description": "by hand"})
    sandbox.delete(f"/ip_policies/{policies['gone']}")
    before = [policy("drifted"), policy("pending", "new text"), policy("gone"), policy("old")]
    repository.commit(*before, policy("changed"), policy("dropped"))
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(*before, policy("changed", "reviewed"), policy("added"))

    plan = (await open_on(sandbox, repository.root).plan(base="main")).plan

    assert base_of(plan).is_comparable
    assert causes(plan) == {
        "IPPolicy/added": "this_change",
        "IPPolicy/changed": "this_change",
        "IPPolicy/dropped": "this_change",
        "IPPolicy/drifted": "drift",
        "IPPolicy/gone": "drift",
        "IPPolicy/old": "pending",
        "IPPolicy/pending": "pending",
    }


async def test_a_review_that_changes_no_resource_says_so_while_the_account_drifts(
    sandbox: Sandbox, repository: Repository
) -> None:
    repository.commit(policy("a"))
    await open_on(sandbox, repository.root).apply()
    (first,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{first['id']}", {"description": "by hand"})
    repository.git("checkout", "--quiet", "-b", "review")
    file = repository.root / "manifests" / "all.yaml"
    file.write_text(f"# a comment\n{file.read_text()}")
    repository.git("commit", "--quiet", "--all", "--message=comment")

    plan = (await open_on(sandbox, repository.root).plan(base="main")).plan

    assert causes(plan) == {"IPPolicy/a": "drift"}
    assert base_of(plan).withdrawn == ()


async def test_fields_of_one_resource_have_different_causes(sandbox: Sandbox, repository: Repository) -> None:
    edge = {"kind": "TLSEdge", "name": "e", "spec": {"description": "a", "hostports": ["a.example.com:443"]}}
    repository.commit(domain("a"), edge)
    await open_on(sandbox, repository.root).apply()
    (live,) = sandbox.get("/edges/tls")["tls_edges"]
    sandbox.patch(f"/edges/tls/{live['id']}", {"description": "by hand"})
    repository.git("checkout", "--quiet", "-b", "review")
    reviewed = {**edge, "spec": {**edge["spec"], "hostports": ["a.example.com:443", "a.example.com:8443"]}}  # type: ignore[dict-item]
    repository.commit(domain("a"), reviewed)

    (change,) = (await open_on(sandbox, repository.root).plan(base="main")).plan.changes

    assert change.cause is Cause.THIS_CHANGE
    assert {field.path: field.cause for field in change.fields} == {
        "description": Cause.DRIFT,
        "hostports": Cause.THIS_CHANGE,
    }


async def test_a_change_that_the_review_makes_unnecessary_is_withdrawn(
    sandbox: Sandbox, repository: Repository
) -> None:
    repository.commit(policy("a"))
    await open_on(sandbox, repository.root).apply()
    (first,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{first['id']}", {"description": "accepted"})
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(policy("a", "accepted"))

    plan = (await open_on(sandbox, repository.root).plan(base="main")).plan

    assert [str(change.address) for change in base_of(plan).withdrawn] == ["IPPolicy/a"]


async def test_an_addition_that_the_review_declares_is_not_withdrawn(sandbox: Sandbox, repository: Repository) -> None:
    rule = {"cidr": "10.0.0.0/8", "action": "allow"}
    repository.commit(policy("a"))
    await open_on(sandbox, repository.root).apply()
    (first,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.post("/ip_policy_rules", {**rule, "ip_policy_id": first["id"]})
    repository.git("checkout", "--quiet", "-b", "review")
    spec = {**rule, "ip_policy_id": {"ref": "IPPolicy/a"}}
    repository.commit(policy("a"), {"kind": "IPPolicyRule", "name": "r", "spec": spec})

    plan = (await open_on(sandbox, repository.root).plan(base="main")).plan

    assert base_of(plan).withdrawn == ()


async def test_a_branch_behind_its_base_is_not_attributed(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(policy("a"))
    repository.git("branch", "review")
    repository.commit(policy("a"), policy("b"))
    repository.commit(policy("a"), policy("b"), policy("c"))
    repository.git("checkout", "--quiet", "review")

    plan = (await open_on(sandbox, repository.root).plan(base="main")).plan

    assert (base_of(plan).behind, causes(plan)) == (2, {"IPPolicy/a": "None"})


async def test_a_merge_of_the_base_is_attributed(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(policy("a"))
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(policy("a"))
    repository.git("checkout", "--quiet", "main")
    repository.commit(policy("a"), policy("b"))
    repository.git("checkout", "--quiet", "review")
    repository.git("merge", "--quiet", "--no-edit", "main")

    plan = (await open_on(sandbox, repository.root).plan(base="HEAD^2")).plan

    assert causes(plan) == {"IPPolicy/a": "pending", "IPPolicy/b": "pending"}


@pytest.mark.parametrize(
    ("settings", "documents", "text"),
    [
        ("", [{"kind": "IPPolicy", "name": "a", "spec": {"descripton": "a"}}], "IPPolicy/a.descripton: unknown field"),
        ("platform: {account: other}\n", [policy("a")], "platform.account is other in the base and not set here; "),
    ],
)
async def test_a_base_that_cannot_be_compared_is_reported(
    sandbox: Sandbox, repository: Repository, settings: str, documents: list[Document], text: str
) -> None:
    repository.commit(*documents, settings=settings)
    repository.commit(policy("a"))

    plan = (await open_on(sandbox, repository.root).plan(base="HEAD^")).plan

    (problem,) = base_of(plan).problems
    assert text in str(problem)
    assert causes(plan) == {"IPPolicy/a": "None"}


async def test_a_base_without_the_project_declares_nothing(sandbox: Sandbox, repository: Repository) -> None:
    (repository.folder / "README").write_text("no project yet\n")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message=first")
    repository.commit(policy("a"))

    plan = (await open_on(sandbox, repository.root).plan(base="HEAD^")).plan

    assert causes(plan) == {"IPPolicy/a": "this_change"}


async def test_files_of_the_base_come_from_git_and_untracked_secrets_from_here(
    sandbox: Sandbox, repository: Repository
) -> None:
    def endpoint(text: str) -> Document:
        spec = {"url": "https://a.example.com", "traffic_policy": {"from_file": "policy.json"}, "description": text}
        return {"kind": "CloudEndpoint", "name": "a", "spec": spec}

    vault = {"kind": "Vault", "name": "v", "spec": {"name": "v"}}
    value = {"vault_id": {"ref": "Vault/v"}, "name": "s", "value": {"from_file": "secrets/key"}}
    secret = {"kind": "Secret", "name": "s", "spec": value}
    (repository.root / "policy.json").write_text(json.dumps({"on_http_request": []}))
    repository.folder.joinpath(".gitignore").write_text("secrets/\n")
    (repository.root / "secrets").mkdir()
    (repository.root / "secrets" / "key").write_text("0123456789abcdef")
    repository.commit(domain("a"), endpoint("a"), vault, secret)
    await open_on(sandbox, repository.root).apply()
    actions = [{"actions": [{"type": "deny"}]}]
    (repository.root / "policy.json").write_text(json.dumps({"on_http_request": actions}))
    repository.commit(domain("a"), endpoint("a"), vault, secret)

    plan = (await open_on(sandbox, repository.root).plan(base="HEAD^")).plan

    assert base_of(plan).problems == ()
    assert causes(plan) == {"CloudEndpoint/a": "this_change"}


@pytest.mark.parametrize("ref", ["nowhere", "--all", ""])
async def test_a_base_that_is_no_commit_is_an_error(sandbox: Sandbox, repository: Repository, ref: str) -> None:
    repository.commit(bot("a"))
    with pytest.raises(UnusableBase, match=r"no such commit|not a branch"):
        await open_on(sandbox, repository.root).plan(base=ref)
    assert repository.git("status", "--porcelain") == ""
