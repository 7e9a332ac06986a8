"""Environment variables override the project file, and flags override both."""

from __future__ import annotations

import dataclasses

import pytest

from tests.harness.platform import KEY, Sandbox
from tests.harness.project import Project, policies

ELSEWHERE = """\
stack: prod
platform: {base_url: "https://elsewhere.example.com", api_key: {from_env: NOT_SET}}
"""


def test_base_url_and_key_of_the_environment_override_the_project_file(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.write("reconciler.yaml", ELSEWHERE)
    on_sandbox.declare(*policies("a"))
    assert on_sandbox("apply", "-y", "--quiet").out == "Applied: 1 created.\n"
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1


def test_the_project_file_sets_the_account_without_environment_variables(
    project: Project, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_THE_ACCOUNT", KEY)
    platform = f"{{base_url: {sandbox.base_url!r}, api_key: {{from_env: KEY_OF_THE_ACCOUNT}}}}"
    project.write("reconciler.yaml", f"stack: prod\nplatform: {platform}\n")
    project.reach(sandbox)
    project.declare(*policies("a"))
    assert project("apply", "-y", "--quiet").out == "Applied: 1 created.\n"


def test_the_project_may_be_named_by_the_environment_and_by_a_flag_before_it(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(*policies("a"))
    named = dataclasses.replace(
        on_sandbox, root=on_sandbox.root.parent, environ={**on_sandbox.environ, "RECONCILER_PROJECT": "project"}
    )
    assert "IPPolicy/a" in named("plan").out
    named.environ["RECONCILER_PROJECT"] = "nowhere"
    assert named("plan").code == 1
    assert "IPPolicy/a" in named("plan", "--project", "project").out


def test_the_store_may_be_elsewhere(on_sandbox: Project, sandbox: Sandbox) -> None:
    elsewhere = on_sandbox.root.parent / "memory.db"
    on_sandbox.environ["RECONCILER_STORE"] = str(elsewhere)
    on_sandbox.declare(*policies("a"))
    assert on_sandbox("apply", "-y").code == 0
    assert elsewhere.is_file()
    assert not (on_sandbox.root / "state").exists()
    assert "create IPPolicy/a" in on_sandbox("history").out
