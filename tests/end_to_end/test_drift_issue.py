"""`drift --issue` keeps one issue per stack, at stand-ins of GitHub and GitLab."""

from __future__ import annotations

import pytest

from tests.cli.code_hosts import ALICE, BOT, TOKEN, CodeHost
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

OFFICE = resource("IPPolicy", "office", description="Office")


@pytest.fixture(params=["github", "gitlab"])
def hosted(
    request: pytest.FixtureRequest, on_sandbox: Project, host: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> Project:
    for name in ("CI_API_V4_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    variables = {
        "github": {"GITHUB_API_URL": host.url, "GITHUB_REPOSITORY": "octo/infra", "GITHUB_TOKEN": TOKEN},
        "gitlab": {"CI_API_V4_URL": f"{host.url}/api/v4", "CI_PROJECT_ID": "42", "GITLAB_TOKEN": TOKEN},
    }
    on_sandbox.environ |= variables[request.param]
    on_sandbox.declare(OFFICE)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    return on_sandbox


def change(sandbox: Sandbox, description: str) -> None:
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": description})


def test_one_issue_is_opened_updated_and_closed(hosted: Project, host: CodeHost, sandbox: Sandbox) -> None:
    assert "ssue" not in hosted("drift", "--issue").err
    assert host.issues == []
    change(sandbox, "changed by hand")
    found = hosted("drift", "--issue")
    assert (found.code, "Issue opened.\n" in found.err) == (2, True)
    assert "Issue unchanged.\n" in hosted("drift", "--issue").err
    change(sandbox, "changed again")
    assert "Issue updated.\n" in hosted("drift", "--issue").err
    (issue,) = host.issues
    assert "IPPolicy/office" in issue["body"]
    assert "changed again" in issue["body"]
    assert hosted("apply", "-y", "--quiet").code == 0
    repaired = hosted("drift", "--issue")
    assert (repaired.code, "Issue closed.\n" in repaired.err) == (0, True)
    assert (issue["state"], "changed again" in issue["body"]) == ("closed", False)
    change(sandbox, "changed once more")
    assert "Issue opened.\n" in hosted("drift", "--issue").err
    assert [issue["state"] for issue in host.issues] == ["closed", "open"]


def test_the_issue_of_another_author_is_never_changed(hosted: Project, host: CodeHost, sandbox: Sandbox) -> None:
    change(sandbox, "changed by hand")
    hosted("drift", "--issue")
    host.issues[0]["user"] = host.issues[0]["author"] = ALICE
    before = dict(host.issues[0])
    assert "Issue opened.\n" in hosted("drift", "--issue").err
    assert host.issues[0] == before


def test_a_code_host_that_fails_is_a_warning(hosted: Project, host: CodeHost, sandbox: Sandbox) -> None:
    change(sandbox, "changed by hand")
    host.failing = 503
    found = hosted("drift", "--issue")
    assert (found.code, "warning: issue not changed: " in found.err) == (2, True)
    assert TOKEN not in found.out + found.err


def test_a_drift_check_of_some_resources_has_no_issue(hosted: Project, host: CodeHost) -> None:
    for words in (("--target", "IPPolicy/*"), ("--exclude", "IPPolicy/*"), ("IPPolicy/office",)):
        refused = hosted("drift", "--issue", *words)
        assert (refused.code, "error: --issue " in refused.err) == (64, True)
    assert host.asked == []


def test_a_missing_repository_is_an_error_with_the_variables_to_set(
    on_sandbox: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI_API_V4_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    refused = on_sandbox("drift", "--issue")
    assert refused.code == 64
    assert "set GITHUB_REPOSITORY and GITHUB_TOKEN" in refused.err


def test_a_workflows_token_finds_the_issue_of_its_bot(hosted: Project, host: CodeHost, sandbox: Sandbox) -> None:
    hosted("drift", "--issue")
    if any("/projects/" in path for _, path in host.asked):
        return  # GitLab's tokens know their user
    host.me = None
    change(sandbox, "changed by hand")
    for expected in ("opened", "unchanged"):
        assert f"Issue {expected}.\n" in hosted("drift", "--issue").err
    assert host.issues[0]["user"] == BOT
