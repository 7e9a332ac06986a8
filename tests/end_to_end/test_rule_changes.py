"""A pull request that loosens the rules by which it is judged: every output of `plan --base` begins with it."""

from __future__ import annotations

import json

import pytest

from tests.end_to_end.test_review import EDGE, OPEN, SERVED, SETTINGS, run_git
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource

LOOSE = SETTINGS.replace("[widens_access]", "[]")


@pytest.fixture
def loosened(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """A branch that removes a restriction together with the guard that would ask for approval."""
    on_sandbox.write("reconciler.yaml", SETTINGS)
    on_sandbox.declare(*SERVED, EDGE)
    run_git(on_sandbox, "init", "--quiet", "--initial-branch=main")
    commit(on_sandbox)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    run_git(on_sandbox, "checkout", "--quiet", "-b", "review")
    on_sandbox.write("reconciler.yaml", LOOSE)
    on_sandbox.declare(*SERVED, resource("TLSEdge", "pay", **OPEN))
    commit(on_sandbox)
    return on_sandbox


def commit(project: Project) -> None:
    run_git(project, "add", "reconciler.yaml", "manifests")
    run_git(project, "commit", "--quiet", "--message=next")


def test_a_branch_that_removes_the_rule_that_judges_it_is_blocked(loosened: Project) -> None:
    result = loosened("plan", "--base", "main", "--fail-on", "approvals")
    assert result.code == 4
    assert result.out.startswith("! This branch loosens a rule: guards.require_approval: ")
    assert "blocked: guards.require_approval: this branch loosens a rule\n" in result.err
    assert "blocked: tls://pay.example.com: widens access\n" in result.err
    assert "  - loosens_rule: guards.require_approval\n    until:" in result.err.replace("note: ", "")


def test_every_output_begins_with_a_loosened_rule(loosened: Project) -> None:
    formats = ("markdown", "html", "json", "sarif", "github", "gitlab")
    outputs = [word for form in formats for word in ("--format", f"{form}=out.{form}")]
    assert loosened("plan", "--base", "main", *outputs).code == 0
    texts = {form: (loosened.root / f"out.{form}").read_text(encoding="utf-8") for form in formats}
    text = "This branch loosens a rule"
    assert texts["markdown"].index(text) < texts["markdown"].index("Changes by this branch")
    assert texts["html"].index(text) < texts["html"].index('id="h-summary"')
    written = json.loads(texts["json"])
    assert [change["subject"] for change in written["rule_changes"]] == ["guards.require_approval"]
    assert list(written).index("rule_changes") < list(written).index("changes")
    assert written["approvals"][0]["flag"] == "--allow loosens_rule:guards.require_approval=1"
    first, *_ = json.loads(texts["sarif"])["runs"][0]["results"]
    assert (first["ruleId"], first["level"]) == ("loosens-rule", "error")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("reconciler.yaml")
    assert texts["github"].startswith("::error file=reconciler.yaml,line=4")
    assert text in json.loads(texts["gitlab"])[0]["description"]


def test_the_entry_that_plan_prints_approves_the_change_of_the_rule(loosened: Project) -> None:
    result = loosened("plan", "--base", "main", "--fail-on", "approvals")
    lines = [line.removeprefix("note: ") for line in result.err.splitlines()]
    entries = lines[lines.index("approvals:") :]
    loosened.write("approvals.yaml", "\n".join(line for line in entries if not line.startswith("error")) + "\n")
    run_git(loosened, "add", "approvals.yaml")
    run_git(loosened, "commit", "--quiet", "--message=approve")
    result = loosened("plan", "--base", "main", "--fail-on", "approvals", "--format", "github")
    assert result.code == 0
    assert result.out.startswith("::warning file=reconciler.yaml,line=4")
    assert "(approved)" in result.out.splitlines()[0]


def test_a_flag_approves_a_rule_by_its_name(loosened: Project) -> None:
    allow = ("--allow", "loosens_rule:guards.require_approval=1")
    assert loosened("plan", "--base", "main", "--fail-on", "approvals", *allow).code == 0
    wrong = loosened("plan", "--base", "main", "--allow", "loosens_rule:guards.require_aproval=1")
    assert wrong.code == 64
    assert "did you mean loosens_rule:guards.require_approval=1?" in wrong.err
    wrong = loosened("plan", "--allow", "changes_where_it_applies:nothing=1")
    assert "use one of stack, platform.base_url" in wrong.err


def test_a_branch_that_loosens_no_rule_shows_no_rules(loosened: Project) -> None:
    loosened.write("reconciler.yaml", SETTINGS)
    loosened.declare(*SERVED, EDGE, *policies("more"))
    commit(loosened)
    result = loosened(
        "plan", "--base", "main", "--fail-on", "approvals", "--format", "text", "--format", "html=out.html"
    )
    assert (result.code, "rule" in result.out) == (0, False)
    assert 'id="h-rules"' not in (loosened.root / "out.html").read_text(encoding="utf-8")


def test_defaults_that_loosen_a_rule_of_many_resources_take_one_line(on_sandbox: Project) -> None:
    many = [resource("Vault", f"v{number:03}", name=f"v{number}") for number in range(100)]
    on_sandbox.write("reconciler.yaml", f"{SETTINGS}defaults: {{Vault: {{lifecycle: {{protect: true}}}}}}\n")
    on_sandbox.declare(*many)
    run_git(on_sandbox, "init", "--quiet", "--initial-branch=main")
    commit(on_sandbox)
    run_git(on_sandbox, "checkout", "--quiet", "-b", "review")
    on_sandbox.write("reconciler.yaml", SETTINGS)
    commit(on_sandbox)
    result = on_sandbox("plan", "--base", "main", "--format", "text", "--format", "markdown=out.md")
    text = " ".join(result.out.split("manifests/all.yaml")[0].split())
    names = "Vault/v000.lifecycle.protect, Vault/v001.lifecycle.protect, Vault/v002.lifecycle.protect and 97 more"
    assert text == f"! This branch loosens a rule: {names}: true → false"
    assert "pass --allow loosens_rule:lifecycle.protect=100" in result.out
    assert (on_sandbox.root / "out.md").read_text(encoding="utf-8").count("This branch loosens a rule") == 1
