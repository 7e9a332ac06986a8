"""`plan --base`: which changes the reviewed commits cause, on real Git repositories."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler import Runtime, Selection, Workspace
from reconciler.model.change import Cause
from reconciler.model.plan import Base, Plan
from reconciler.model.value import Secret, Value
from reconciler.operations.errors import UnusableBase
from reconciler.operations.opening.commits import Commit
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config
from reconciler.testing import Sandbox
from tests.harness.git import GIT
from tests.harness.workspaces import Document, bot, domain, open_on, policy, write_project

EXAMPLES = Path(__file__).parents[2] / "examples"


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
        done = subprocess.run([*GIT, *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
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
    policies = {policy["description"]: policy["id"] for policy in sandbox.get("/ip_policies")["ip_policies"]}
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


async def test_a_review_without_changes_is_reported_beside_drift(sandbox: Sandbox, repository: Repository) -> None:
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
    reviewed = {**edge, "spec": {**edge["spec"], "hostports": ["a.example.com:443", "b.example.com:443"]}}  # type: ignore[dict-item]
    repository.commit(domain("a"), reviewed)

    (change,) = (await open_on(sandbox, repository.root).plan(base="main")).plan.changes

    assert change.cause is Cause.THIS_CHANGE
    assert {field.path: field.cause for field in change.fields} == {
        "description": Cause.DRIFT,
        "hostports": Cause.THIS_CHANGE,
    }


async def test_a_change_that_the_review_resolves_is_withdrawn(sandbox: Sandbox, repository: Repository) -> None:
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


async def test_files_of_the_base_are_read_from_git_and_untracked_secrets_from_the_folder(
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


COMPONENT = "inputs: {text: {type: string}}\n---\nkind: IPPolicy\nname: p\nspec: {description: '${{ input.text }}%s'}\n"


async def test_components_of_the_base_are_read_from_git(sandbox: Sandbox, repository: Repository) -> None:
    """Also those of another folder of the repository, and through a symlink in it."""
    use: Document = {"component": "rule", "name": "a", "with": {"text": "x"}}
    linked: Document = {"component": "linked", "name": "b", "with": {"text": "y"}}
    (repository.folder / "infra" / "common").mkdir()
    rule = repository.folder / "infra" / "common" / "rule.yaml"
    rule.write_text(COMPONENT % "")
    (repository.root / "components").mkdir()
    (repository.root / "components" / "linked.yaml").symlink_to("../../common/rule.yaml")
    settings = "components: [components, ../common]\n"
    repository.commit(use, linked, settings=settings)
    await open_on(sandbox, repository.root).apply()
    repository.git("checkout", "--quiet", "-b", "review")
    rule.write_text(COMPONENT % " changed")
    repository.commit(use, linked, settings=settings)

    plan = (await open_on(sandbox, repository.root).plan(base="main")).plan

    assert base_of(plan).is_comparable
    assert causes(plan) == {"IPPolicy/a-p": "this_change", "IPPolicy/b-p": "this_change"}


async def test_a_component_of_the_base_may_not_leave_the_repository(sandbox: Sandbox, repository: Repository) -> None:
    (repository.folder.parent / "outside.yaml").write_text(COMPONENT % "")
    (repository.root / "components").mkdir()
    link = repository.root / "components" / "rule.yaml"
    link.symlink_to("../../../../outside.yaml")
    use: Document = {"component": "rule", "name": "a", "with": {"text": "x"}}
    repository.commit(use)
    link.unlink()
    link.write_text(COMPONENT % "")

    plan = (await open_on(sandbox, repository.root).plan(base="main")).plan

    (problem,) = base_of(plan).problems
    assert "there is a symlink" in str(problem) or "outside" in str(problem)


async def test_an_untracked_file_is_read_from_the_folder_for_the_base_too(
    sandbox: Sandbox, repository: Repository
) -> None:
    noted = {"kind": "IPPolicy", "name": "a", "spec": {"description": {"from_file": "note.txt"}}}
    repository.folder.joinpath(".gitignore").write_text("note.txt\n")
    (repository.root / "note.txt").write_text("noted")
    repository.commit(noted)
    await open_on(sandbox, repository.root).apply()
    repository.commit(noted, policy("b"))
    plan = (await open_on(sandbox, repository.root).plan(base="HEAD^")).plan
    assert (base_of(plan).problems, causes(plan)) == ((), {"IPPolicy/b": "this_change"})
    repository.commit(policy("a", "noted"), policy("b"))
    (repository.root / "note.txt").unlink()
    (problem,) = base_of((await open_on(sandbox, repository.root).plan(base="HEAD^")).plan).problems
    assert "note.txt" in str(problem)


async def test_a_variable_that_only_the_base_needs_is_not_read_from_a_file(
    sandbox: Sandbox, repository: Repository
) -> None:
    repository.folder.joinpath(".gitignore").write_text("NOTE\n")
    (repository.root / "NOTE").write_text("noted")
    repository.commit({"kind": "IPPolicy", "name": "a", "spec": {"description": {"from_env": "NOTE"}}})
    repository.commit(policy("a", "noted"))
    (problem,) = base_of((await open_on(sandbox, repository.root).plan(base="HEAD^")).plan).problems
    assert "the environment variable NOTE is not set" in str(problem)


@pytest.mark.parametrize("ref", ["nowhere", "--all", ""])
async def test_a_base_that_is_no_commit_is_an_error(sandbox: Sandbox, repository: Repository, ref: str) -> None:
    repository.commit(bot("a"))
    with pytest.raises(UnusableBase, match=r"no such commit|not a branch"):
        await open_on(sandbox, repository.root).plan(base=ref)
    assert repository.git("status", "--porcelain") == ""


# --- files of a commit ------------------------------------------------------------------------------------------------


def files_of(commit: Commit, folder: Path, *added: str) -> dict[str, str]:
    """What is copied of a commit, by path; of a link, where it leads."""
    folder.mkdir()
    with commit.files() as base:
        base.add(*added)
        shutil.copytree(base.root, folder, symlinks=True, dirs_exist_ok=True)
    return {
        file.relative_to(folder).as_posix(): f"→ {file.readlink()}" if file.is_symlink() else file.read_bytes().decode()
        for file in sorted(folder.rglob("*"))
        if file.is_symlink() or file.is_file()
    }


def test_the_files_below_the_project_are_those_of_the_commit(repository: Repository, tmp_path: Path) -> None:
    root = repository.root
    texts = {
        "a.txt": "a\n",
        "empty": "",
        "deep/er/b c.txt": "no newline",
        "été.txt": "é\r\n\nblob 3\n",
        "run.sh": "#!/bin/sh\n",
        "reconciler.yaml": "version: 1\n",
        "manifests/deep/a.yaml": "kind: A\n",
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    (root / "large").write_bytes(b"x" * (8 * 1024 * 1024 + 1))
    (root / "just-right").write_bytes(b"x" * 16)
    (repository.folder / "outside.txt").write_text("of another folder")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message=one")
    inner = repository.git("rev-parse", "HEAD")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{inner},infra/tunnels/module")
    repository.git("commit", "--quiet", "--message=with a module")
    (root / "a.txt").write_text("not committed")
    commit = Commit.resolve(root, os.environ, "HEAD")
    found = files_of(commit, tmp_path / "copy", *texts, "manifests", "link", "just-right", "missing", "deep")
    assert found == {**texts, "link": "a\n", "just-right": "x" * 16}
    settings = {"reconciler.yaml": "version: 1\n"}
    assert files_of(Commit.resolve(root, os.environ, "HEAD^"), tmp_path / "before") == settings


def test_a_commit_is_found_by_any_of_its_names(repository: Repository) -> None:
    repository.commit(policy("a"))
    repository.git("tag", "v1")
    first = repository.git("rev-parse", "HEAD")
    repository.commit(policy("b"))
    repository.commit(policy("c"))
    for name in ("v1", "main~2", first, first[:10], "HEAD^^"):
        commit = Commit.resolve(repository.root, os.environ, name)
        assert (commit.id, commit.ref, commit.count_missing()) == (first, name, 0)
    repository.git("checkout", "--quiet", "v1")
    assert Commit.resolve(repository.root, os.environ, "main").count_missing() == 2


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("--all", "--base '--all' is not a branch, tag or commit"),
        ("", "--base '' is not a branch, tag or commit"),
        (
            "origin/nowhere",
            "Git repository of {root}\nfetch it first, for example `git fetch origin nowhere`",
        ),
        ("HEAD:README", "there is no such commit in the Git repository of {root}"),
    ],
)
def test_an_unknown_commit_is_reported_with_a_remedy(repository: Repository, ref: str, text: str) -> None:
    repository.commit(policy("a"))
    with pytest.raises(UnusableBase) as refused:
        Commit.resolve(repository.root, os.environ, ref)
    assert text.format(root=repository.root) in str(refused.value)


def test_the_error_of_git_about_an_unreadable_commit_is_reported(repository: Repository, tmp_path: Path) -> None:
    repository.commit(policy("a"))
    commit = Commit.resolve(repository.root, os.environ, "HEAD")
    with pytest.raises(UnusableBase, match=r"--base HEAD: fatal"):
        replace(commit, id="0" * 40).count_missing()
    with pytest.raises(UnusableBase, match="not a git repository"):
        Commit.resolve(tmp_path, {**os.environ, "GIT_CEILING_DIRECTORIES": "/"}, "HEAD")


# --- manifests of a base ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            "",
            "platform: {account: b}\n",
            "platform.account is not set in the base and b here; changes cannot be attributed",
        ),
        ("platform: {account: a}\n", "platform: {account: b}\n", "platform.account is a in the base and b here; "),
    ],
)
async def test_a_base_for_another_account_is_not_compared(
    sandbox: Sandbox, repository: Repository, before: str, after: str, text: str
) -> None:
    repository.commit(policy("a"), settings=before)
    repository.commit(policy("a"), settings=after)
    (problem,) = base_of((await open_on(sandbox, repository.root).plan(base="HEAD^")).plan).problems
    assert (text in str(problem), problem.subject, problem.code) == (True, "reconciler.yaml", "different-account")


async def test_a_base_of_another_stack_is_not_compared(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(policy("a"))
    text = (repository.root / "reconciler.yaml").read_text()
    (repository.root / "reconciler.yaml").write_text(text.replace("stack: prod", "stack: other"))
    repository.git("commit", "--quiet", "--all", "--message=renamed")
    (problem,) = base_of((await open_on(sandbox, repository.root).plan(base="HEAD^")).plan).problems
    assert "stack is prod in the base and other here" in str(problem)


async def test_the_base_is_read_in_the_same_environment_with_the_same_variables(
    sandbox: Sandbox, repository: Repository
) -> None:
    settings = "variables: {text: {type: string}}\n"
    (repository.root / "environments").mkdir()
    (repository.root / "environments/eu.yaml").write_text("IPPolicy/a: {spec: {metadata: eu}}\n")
    repository.commit(policy("a", "${{ var.text }}"), settings=settings)
    runtime = Runtime(environ={**os.environ, **sandbox.environ}, platform=sandbox)

    def open_workspace() -> Workspace:
        return Workspace.open(repository.root, environment="eu", variables={"text": "x"}, runtime=runtime)

    await open_workspace().apply()
    repository.commit(policy("a", "${{ var.text }}"), policy("b"), settings=settings)
    plan = (await open_workspace().plan(base="HEAD^")).plan
    assert (base_of(plan).problems, causes(plan)) == ((), {"IPPolicy/b": "this_change"})


async def test_a_requested_replacement_has_no_commit_as_its_cause(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(policy("a"))
    await open_on(sandbox, repository.root).apply()
    repository.commit(policy("a"))
    plan = (
        await open_on(sandbox, repository.root).plan(selection=Selection(replace=("IPPolicy/a",)), base="HEAD^")
    ).plan
    assert causes(plan) == {"IPPolicy/a": "this_change"}


@pytest.mark.parametrize("example", ["environments", "public", "components"])
def test_a_commit_is_loaded_like_its_checkout(repository: Repository, example: str) -> None:
    """Only files that the project names are copied: none may be missing."""
    shutil.copytree(EXAMPLES / example, repository.root, dirs_exist_ok=True)
    repository.git("add", "--all", "--force")
    repository.git("commit", "--quiet", "--message=example")
    environment = "prod" if example == "environments" else None
    environ = dict.fromkeys(("NGROK_API_KEY", "RECONCILER_API_KEY"), "k")

    def absent(source: str, is_secret: bool) -> Value | None:
        return Secret("secret-value", source) if is_secret else None

    here = load_manifests(load_config(repository.root, environ, environment, absent), environ, None, absent)
    with Commit.resolve(repository.root, os.environ, "HEAD").files() as base:

        def resolve_nothing(source: str, is_secret: bool) -> Value | None:
            word, _, path = source.partition(":")
            return None if word == "file" and base.has(path) else absent(source, is_secret)

        config = load_config(base.root, environ, environment, resolve_nothing)
        base.add(*config.manifests, *config.policies)
        base.add_components(*config.components)
        from_folder = load_manifests(config, environ, None, resolve_nothing)
    before, after = here.manifest, from_folder.manifest
    assert (after.digest, after.left_out) == (before.digest, before.left_out)
    specs = {address: declaration.spec for address, declaration in before.declarations.items()}
    assert {address: declaration.spec for address, declaration in after.declarations.items()} == specs != {}


@pytest.mark.parametrize("ref", ["origin/main", "origin/main~0"])
async def test_a_tag_with_the_name_of_the_base_is_not_used(sandbox: Sandbox, repository: Repository, ref: str) -> None:
    """Git prefers tags, and who can push a branch can push a tag."""
    repository.commit(policy("a"))
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repository.git("checkout", "--quiet", "-b", "review")
    repository.commit(policy("a", "reviewed"))
    repository.git("tag", "origin/main")
    with pytest.raises(
        UnusableBase, match="is ambiguous: refs/tags/origin/main and refs/remotes/origin/main"
    ) as refused:
        await open_on(sandbox, repository.root).plan(base=ref)
    whole = ref.replace("origin", "refs/remotes/origin")
    assert f"--base {shlex.quote(whole)}`" in str(refused.value)
    assert causes((await open_on(sandbox, repository.root).plan(base=whole)).plan) == {"IPPolicy/a": "this_change"}


async def test_a_tag_of_the_same_commit_is_accepted_as_the_base(sandbox: Sandbox, repository: Repository) -> None:
    repository.commit(policy("a"))
    repository.git("tag", "main")
    assert base_of((await open_on(sandbox, repository.root).plan(base="main")).plan).is_comparable


@pytest.mark.parametrize("annotated", [(), ("--annotate", "--message=release")], ids=["lightweight", "annotated"])
async def test_a_tag_without_a_branch_is_the_base_with_its_manifests_and_rules(
    sandbox: Sandbox, repository: Repository, annotated: tuple[str, ...]
) -> None:
    repository.commit(policy("a"), settings="guards: {require_approval: [widens_access]}\n")
    await open_on(sandbox, repository.root).apply()
    repository.git("tag", *annotated, "v1")
    repository.git("checkout", "--quiet", "-b", "review")
    repository.git("branch", "--delete", "--quiet", "main")
    repository.commit(policy("a", "reviewed"), settings="guards: {require_approval: []}\n")
    plan = (await open_on(sandbox, repository.root).plan(base="v1")).plan
    assert (base_of(plan).ref, base_of(plan).is_comparable) == ("v1", True)
    assert causes(plan) == {"IPPolicy/a": "this_change"}
    assert [change.rule for change in plan.rule_changes] == ["guards.require_approval"]
    assert {approval.what for approval in plan.missing_approvals} == {"loosens_rule"}
