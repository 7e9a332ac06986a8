"""The steps of the generated pipelines on branches of hostile authors."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.examples.forge import Change, Forge, Run
from tests.examples.repository import Clone, gitlab, good, merge_as, on_push, write_event
from tests.examples.workflows import Ran, read
from tests.harness.git import GIT
from tests.harness.platform import KEY, Sandbox
from tests.security.test_git import embed, has_run

pytestmark = pytest.mark.usefixtures("over_socket")

GITOPS = Path(__file__).parents[2] / "examples" / "gitops"
HOSTS = ["github", pytest.param("gitlab", marks=pytest.mark.full)]
DOMAIN = "kind: ReservedDomain\nname: shop\nspec:\n  domain: shop.example.com\n"
FAILED = """\
## No environment could be planned

| environment | status | changes | access | approvals | drift |
| --- | --- | --- | --- | --- | --- |
| `production` | ❔ **not planned**; see the log | unknown | unknown | unknown | unknown |
"""


class Author:
    """An author with push rights; the pipelines plan his requests and apply his merges."""

    def __init__(self, host: str, clone: Clone, forge: Forge, origin: Path) -> None:
        self.host, self.clone, self.forge, self.origin = host, clone, forge, origin
        clone(host)
        self.commit("main", {"manifests/shop.yaml": DOMAIN})

    def git(self, *words: str) -> str:
        command = [*GIT, "-C", str(self.origin), *words]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    def commit(self, branch: str, files: dict[str, str | None], start: str = "main") -> str:
        if self.git("branch", "--list", branch):
            self.git("checkout", "--quiet", branch)
        elif branch != "main":
            self.git("checkout", "--quiet", "-b", branch, start)
        for name, text in files.items():
            if text is None:
                (self.origin / name).unlink()
            else:
                (self.origin / name).parent.mkdir(parents=True, exist_ok=True)
                (self.origin / name).write_text(text)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def plan(
        self, head: str, base: str = "main", change: Change | None = None, variables: Mapping[str, str] | None = None
    ) -> Ran:
        """The plan job of a request. `change` is that of an earlier push."""
        variables = variables or {}
        change = change or self.forge.open(head, base)
        change.head = head
        runner = self.clone(
            self.host, branch=self.branch_of(head), onto=base if self.host == "github" else "", commit=False
        )
        number = int(runner.environ["GITHUB_RUN_ID"])
        if self.host == "github":
            sides = {"base": {"ref": base}, "head": {"sha": head}}
            write_event(runner, {"pull_request": {"number": change.number, **sides}})
            runner.environ |= {"GITHUB_BASE_REF": base, "GITHUB_REF": f"refs/pull/{change.number}/merge"}
            runner.context |= variables
            ran = runner.job("plan.yml", "plan")
        else:
            runner.environ |= {
                "CI_MERGE_REQUEST_IID": str(change.number),
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": base,
                **variables,
            }
            ran = gitlab(runner, "plan", RECONCILER_READ_KEY=KEY)
            folder = self.forge.artifacts / str(number) / "plan"
            folder.mkdir(parents=True)
            for file in runner.clone.glob(".reconciler/plan-*.json"):
                (folder / file.name).write_bytes(file.read_bytes())
        self.forge.runs.append(Run(number, head, number=change.number, result="failure" if ran.code else "success"))
        return ran

    def branch_of(self, head: str) -> str:
        return self.git("branch", "--points-at", head, "--format", "%(refname:short)").splitlines()[0]

    def merge(self, change: Change, **variables: str) -> Ran:
        """The apply job of a merge into main."""
        self.git("checkout", "--quiet", "main")
        before = self.git("rev-parse", "HEAD")
        self.git("merge", "--quiet", "--no-ff", "--no-edit", change.head)
        merge_as(change, self.git("rev-parse", "HEAD"))
        runner = on_push(self.clone(self.host, branch="main", commit=False), before)
        if self.host == "github":
            runner.context |= {"secrets.RECONCILER_API_KEY": KEY, **variables}
            return runner.job("apply.yml", "apply-production")
        runner.environ |= variables
        return gitlab(runner, "apply-production", RECONCILER_API_KEY=KEY)

    @property
    def last(self) -> Change:
        return self.forge.requests[-1]


@pytest.fixture
def author(clone: Clone, forge: Forge, tmp_path: Path) -> Callable[[str], Author]:
    return lambda host: Author(host, clone, forge, tmp_path / "origin")


def entries_of(ran: Ran) -> str:
    """The entries of approvals.yaml that a plan printed."""
    found = [line for line in ran.err.splitlines() if re.match(r"  - |    \S", line)]
    return "\n".join(["approvals:", *dict.fromkeys(found), ""])


# --- the plan of another request --------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_approvals_of_a_second_request_with_the_same_head_delete_nothing(
    author: Callable[[str], Author], host: str, sandbox: Sandbox
) -> None:
    team = author(host)
    good(team.plan(team.commit("first", {})))
    good(team.merge(team.last))
    assert len(sandbox.get("/reserved_domains")["reserved_domains"]) == 1
    team.commit("evil", {"README.md": "mine\n"})
    head = team.commit("topic", {"manifests/shop.yaml": None}, "evil")
    refused = team.plan(head)
    assert refused.code == 4
    honest = team.last
    team.commit("evil", {"approvals.yaml": entries_of(refused)})
    good(team.plan(head, "evil"))
    sandbox.forget_log()
    merged = team.merge(honest)
    assert merged.code == 3
    assert "ReservedDomain/shop: not reviewed: delete\n" in merged.err
    assert sandbox.calls() == []


@pytest.mark.parametrize("host", HOSTS)
def test_a_retargeted_request_is_not_applied_with_the_plan_for_its_earlier_base(
    author: Callable[[str], Author], host: str, sandbox: Sandbox
) -> None:
    team = author(host)
    team.commit("other", {"README.md": "other\n"})
    good(team.plan(team.commit("topic", {}, "other"), "other"))
    team.last.base = "main"
    merged = team.merge(team.last)
    assert merged.code == 3
    assert "into other at" in merged.err
    assert sandbox.calls() == []


# --- what a branch contains -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_a_committed_bare_repository_runs_no_program_in_a_pipeline(
    author: Callable[[str], Author], host: str, tmp_path: Path
) -> None:
    team = author(host)
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nenv > {tmp_path}/ran\nexec git-upload-pack "$@"\n')
    program.chmod(0o755)
    team.git("checkout", "--quiet", "-b", "topic")
    embed(team.origin / "manifests", team.origin, program)
    for name in ("HEAD", "config", "packed-refs"):
        shutil.copy(team.origin / "manifests" / name, team.origin / name)
    for name in ("objects", "refs"):
        shutil.copytree(team.origin / "manifests" / name, team.origin / name)
    good(team.plan(team.commit("topic", {})))
    good(team.merge(team.last))
    assert not has_run(program)


@pytest.mark.parametrize("host", HOSTS)
def test_a_committed_module_is_not_run_by_an_installation(
    author: Callable[[str], Author], host: str, tmp_path: Path
) -> None:
    team = author(host)
    module = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    good(team.plan(team.commit("topic", {"pip.py": module, "urllib.py": module, "json.py": module})))
    good(team.merge(team.last))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("host", HOSTS)
def test_a_tag_with_the_name_of_the_base_is_not_used(author: Callable[[str], Author], host: str) -> None:
    team = author(host)
    settings = (team.origin / "reconciler.yaml").read_text()
    head = team.commit("topic", {"reconciler.yaml": re.sub(r"guards:.*\n(  .*\n)*", "", settings)})
    team.git("tag", "origin/main")
    ran = team.plan(head)
    assert ran.code == 1, ran.out + ran.err
    assert "--base origin/main is ambiguous" in ran.err


@pytest.mark.parametrize("host", HOSTS)
def test_a_committed_plan_is_not_shown_and_the_comment_reports_the_failed_plan(
    author: Callable[[str], Author], host: str, forge: Forge
) -> None:
    """The plan of the push before is removed from the comment too."""
    team = author(host)
    head = team.commit("topic", {})
    good(team.plan(head))
    change = team.last
    (comment,) = forge.bodies
    run = forge.artifacts / str(forge.runs[-1].id) / "plan" / "plan-production.json"
    head = team.commit("topic", {".reconciler/plan-production.json": run.read_text(), "reconciler.yaml": "stack: ["})
    ran = team.plan(head, change=change)
    assert ran.code == 1
    (body,) = forge.bodies
    assert body == f"{comment.splitlines()[0]}\n{FAILED}"
    assert team.merge(change).code == 1


@pytest.mark.parametrize("host", HOSTS)
def test_committed_folders_with_the_names_of_outputs_do_not_stop_a_plan(
    author: Callable[[str], Author], host: str
) -> None:
    team = author(host)
    team.git("checkout", "--quiet", "-b", "topic")
    head = team.commit("topic", {f".reconciler/plan-production.{end}/x": "x\n" for end in ("json", "md", "d")})
    good(team.plan(head))


def test_gitlab_a_conflict_with_the_target_branch_is_reported_in_the_comment(
    author: Callable[[str], Author], forge: Forge
) -> None:
    team = author("gitlab")
    start = team.git("rev-parse", "main")
    team.commit("main", {"manifests/shop.yaml": DOMAIN.replace("shop.example", "a.example")})
    head = team.commit("topic", {"manifests/shop.yaml": DOMAIN.replace("shop.example", "b.example")}, start)
    assert team.plan(head).code == 1
    assert forge.bodies[0].rstrip().endswith(FAILED.rstrip())


# --- keys and secrets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_without_the_plan_key_nothing_is_planned_unsigned_or_applied(
    author: Callable[[str], Author], host: str, forge: Forge, sandbox: Sandbox
) -> None:
    team = author(host)
    missing = {"secrets.RECONCILER_PLAN_KEY": ""} if host == "github" else {"RECONCILER_PLAN_KEY": ""}
    head = team.commit("topic", {})
    ran = team.plan(head, variables=missing)
    assert ran.code == 64
    assert "RECONCILER_PLAN_KEY is set, but empty" in ran.err
    good(team.plan(head, change=team.last))
    sandbox.forget_log()
    assert team.merge(team.last, **missing).code == 64
    assert sandbox.calls() == []


EVENTS: list[tuple[dict[str, Any], set[str]]] = [
    ({"event_name": "pull_request", "actor": "alice", "head": "octo/infra"}, {"plan"}),
    ({"event_name": "pull_request", "actor": "dependabot[bot]", "head": "octo/infra"}, {"fork"}),
    ({"event_name": "pull_request", "actor": "alice", "head": "alice/infra"}, {"fork"}),
    ({"event_name": "pull_request", "actor": "dependabot[bot]", "head": "alice/infra"}, {"fork"}),
    ({"event_name": "pull_request", "actor": "alice", "head": ""}, {"fork"}),  # the fork was deleted
    ({"event_name": "merge_group", "actor": "alice", "head": ""}, set()),
]


@pytest.mark.parametrize(("event", "jobs"), EVENTS)
def test_a_request_without_secrets_is_planned_by_the_job_without_secrets(event: dict[str, Any], jobs: set[str]) -> None:
    values = {
        "github.event_name": event["event_name"],
        "github.actor": event["actor"],
        "github.event.pull_request.head.repo.full_name": event["head"],
        "github.repository": "octo/infra",
    }

    def holds(condition: str) -> bool:
        words = re.sub(r"github\.[a-z_.]+", lambda name: repr(values[name[0]]), condition)
        words = words.replace("&&", "and").replace("||", "or")
        assert re.fullmatch(r"(?:'[^']*'|==|!=|and|or|[() ])+", words), words
        return bool(eval(words))  # noqa: S307 - of the form above

    described = read(GITOPS / "github/.github/workflows/plan.yml")["jobs"]
    assert {name for name, job in described.items() if holds(job["if"])} == jobs


@pytest.mark.parametrize("host", HOSTS)
def test_the_job_of_a_request_needs_and_sees_no_secret_of_a_manifest(
    author: Callable[[str], Author], host: str, sandbox: Sandbox, forge: Forge
) -> None:
    someone, key = author(host), "canary" + "OfTheShop"
    apply = someone.origin / ".github/workflows/apply.yml"
    if host == "github":  # as a user adds it to the step Apply
        named = "          SHOP_KEY: ${{ secrets.SHOP_KEY }}\n          GITHUB_TOKEN:"
        someone.commit(
            "main", {".github/workflows/apply.yml": apply.read_text().replace("          GITHUB_TOKEN:", named)}
        )
    vault = "kind: Vault\nname: shop\nspec:\n  name: shop\n---\nkind: Secret\nname: shop\nspec:\n"
    secret = "  vault_id: {ref: Vault/shop}\n  name: shop\n  value: {from_env: SHOP_KEY}\n"
    head = someone.commit("topic", {"manifests/secret.yaml": vault + secret})
    ran = someone.plan(head, variables={"secrets.SHOP_KEY": key} if host == "github" else {})
    assert ran.code == 0, ran
    assert re.search(r"unknown: from env:SHOP\\?_KEY, will be sent", forge.bodies[0])
    assert key not in f"{ran.out}{ran.err}{forge.bodies}"
    plans = [file for file in forge.artifacts.rglob("plan-production.*") if key in file.read_text()]
    assert plans == []
    variables = {"secrets.SHOP_KEY": key} if host == "github" else {"SHOP_KEY": key}
    merged = someone.merge(someone.last, **variables)
    assert merged.code == 0, merged
    assert "POST /vault_secrets" in sandbox.calls()


def test_a_plan_is_created_again_for_another_base_branch() -> None:
    events = read(GITOPS / "github/.github/workflows/plan.yml")[True]  # `on`
    assert set(events["pull_request"]["types"]) == {"opened", "synchronize", "reopened", "edited"}


# --- rules ------------------------------------------------------------------------------------------------------------

RESTRICTED = "  ip_restriction:\n    ip_policy_ids:\n      - ref: IPPolicy/office\n"
EDGE = f"""\
kind: HTTPSEdge
name: shop
spec:
  hostports:
    - shop.example.com:443
---
kind: HTTPSEdgeRoute
name: admin
spec:
  edge_id: {{ref: HTTPSEdge/shop}}
  match_type: path_prefix
  match: /admin
{RESTRICTED}"""


@pytest.mark.parametrize("host", HOSTS)
def test_an_author_who_removes_the_rule_that_judges_him_opens_nothing(
    author: Callable[[str], Author], host: str, sandbox: Sandbox
) -> None:
    """Not even if he makes the plan job succeed by changing it, which push rights allow."""
    team = author(host)
    good(team.plan(team.commit("edge", {"manifests/edge.yaml": EDGE})))
    good(team.merge(team.last))
    settings = (team.origin / "reconciler.yaml").read_text()
    loosened = re.sub(r"guards:.*\n(  .*\n)*", "", settings)
    assert loosened != settings
    branch: dict[str, str | None] = {"reconciler.yaml": loosened, "manifests/edge.yaml": EDGE.replace(RESTRICTED, "")}
    refused = team.plan(team.commit("open", branch))
    assert refused.code == 4, refused.out + refused.err
    assert "guards.require_approval" in team.forge.bodies[-1]
    team.forge.runs[-1].result = "success"
    sandbox.forget_log()
    merged = team.merge(team.last)
    assert merged.code == 4, merged.out + merged.err
    assert sandbox.calls() == []
