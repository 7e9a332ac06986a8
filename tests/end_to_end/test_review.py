"""A pull request in a real Git repository: planned with `--base`, and shown in its comment."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.code_hosts import TOKEN, CodeHost
from tests.harness.git import GIT
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource

OFFICE, OTHER = policies("office", "other")
DOMAIN = resource("ReservedDomain", "pay", domain="pay.example.com")
BACKEND = resource("TunnelGroupBackend", "pay", labels={"app": "pay"})
OPEN = {"hostports": ["pay.example.com:443"], "backend": {"backend_id": {"ref": "TunnelGroupBackend/pay"}}}
EDGE = resource("TLSEdge", "pay", **OPEN, ip_restriction={"ip_policy_ids": [{"ref": "IPPolicy/office"}]})
SERVED = (OFFICE, OTHER, DOMAIN, BACKEND)
SETTINGS = """\
version: 1
stack: prod
limits: {requests_per_minute: 100000}
guards: {require_approval: [widens_access]}
"""


def run_git(project: Project, *arguments: str) -> None:
    subprocess.run([*GIT, *arguments], cwd=project.root, check=True, capture_output=True)


def commit(project: Project) -> None:
    run_git(project, "add", "reconciler.yaml", "manifests")
    run_git(project, "commit", "--quiet", "--message=next")


@pytest.fixture
def merged(on_sandbox: Project, host: CodeHost, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that was applied, with an object that drifted since, and a branch that is checked out."""
    monkeypatch.delenv("CI_API_V4_URL", raising=False)
    monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)
    on_sandbox.environ |= {
        "GITHUB_API_URL": host.url,
        "GITHUB_REPOSITORY": "octo/infra",
        "GITHUB_REF": "refs/pull/12/merge",
        "GITHUB_TOKEN": TOKEN,
    }
    on_sandbox.write("reconciler.yaml", SETTINGS)
    on_sandbox.declare(*SERVED, EDGE)
    run_git(on_sandbox, "init", "--quiet", "--initial-branch=main")
    commit(on_sandbox)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    (other,) = (policy for policy in sandbox.get("/ip_policies")["ip_policies"] if policy["description"] == "other")
    sandbox.patch(f"/ip_policies/{other['id']}", {"description": "by hand"})
    run_git(on_sandbox, "checkout", "--quiet", "-b", "review")
    return on_sandbox


def comment(project: Project, host: CodeHost) -> str:
    assert project("plan", "--base", "main", "--out", "plan.json").code == 0
    answer = project("comment", "plan.json")
    assert answer.code == 0, answer
    (body,) = host.bodies
    return body


def test_a_pull_request_that_removes_an_ip_restriction_widens_access(merged: Project, host: CodeHost) -> None:
    merged.declare(*SERVED, resource("TLSEdge", "pay", **OPEN))
    commit(merged)
    body = comment(merged, host)
    top, _, rest = body.partition("### Changes by this branch")
    assert "**Changes by this branch: 1 to update.** Compared with `main`" in top
    assert "- Drift: 1 to update." in top
    assert "**Access: 1 entry point widens.**" in top
    assert "- ⚠️ `tls://pay.example.com` **lets in requests that were refused**\n  - `no one` → `everyone`\n" in top
    assert "  - caused by `TLSEdge/pay`\n" in top
    assert "- ✋ **required**: `tls://pay.example.com`: `widens access`\n" in top
    assert "```yaml\napprovals:\n  - widens_access: tls://pay.example.com\n    until:" in top
    assert "IPPolicy/office (ipp_" in rest
    assert rest.index("TLSEdge/pay") < rest.index("<summary><b>Drift: changed on the platform")
    assert rest.index("<summary><b>Drift: changed on the platform") < rest.index("IPPolicy/other")
    assert "IPPolicy/office (ipp_" in merged("show", "plan.json").out


def test_a_pull_request_that_only_edits_a_comment_has_no_changes_beside_drift(merged: Project, host: CodeHost) -> None:
    file = merged.root / "manifests" / "all.yaml"
    file.write_text(f"# reviewed\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    commit(merged)
    body = comment(merged, host)
    assert "**No changes by this branch.** Compared with `main`" in body
    assert "- Drift: 1 to update." in body
    assert "### Risks" not in body
    text = merged("show", "plan.json").out
    assert "Drift: changed on the platform\n" in text
    assert "No changes by this branch.\nDrift: 1 to update.\n" in text


def test_a_branch_behind_its_base_is_reported_with_what_to_merge(merged: Project) -> None:
    run_git(merged, "checkout", "--quiet", "main")
    merged.declare(*SERVED, EDGE, *policies("newer"))
    commit(merged)
    run_git(merged, "checkout", "--quiet", "review")
    text = merged("plan", "--base", "main").out
    assert "This branch is behind main by 1 commit: changes are not attributed; merge main first." in text
    assert "by this branch" not in text
