"""One project under each profile: the same manifests, plans and account, with the public example."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.terminal import exit_codes
from reconciler.testing import Sandbox as InProcess
from tests.harness.platform import HEADERS, Sandbox
from tests.harness.project import Output, Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "public"
SECRETS = {"STRIPE_KEY": "sk_live_of_the_example", "METRICS_API_KEY": "intake key of the example"}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """An empty sandbox with an agent, whose endpoints the example declares."""
    with InProcess(host="emulator", agent=True) as with_agent:
        yield with_agent


def example(root: Path, capsys: pytest.CaptureFixture[str], sandbox: Sandbox, profile: str = "ngrok") -> Project:
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("secrets", "state"))
    file = root / "reconciler.yaml"
    # The public budget would have a test wait for minutes.
    text = file.read_text().replace("profile: ngrok", f"profile: {profile}")
    file.write_text(text + "limits: {requests_per_minute: 100000}\n")
    project = Project(root, capsys, environ=dict(SECRETS))
    project.use(sandbox)
    project.environ["RECONCILER_AGENT_URL"] = sandbox.agent_url
    return project


def run_lifecycle(project: Project, sandbox: Sandbox) -> list[Output]:
    """Plan, apply, plan, changes on the platform, drift, apply, plan, destroy."""
    results = [project("plan"), project("apply", "-y"), project("plan")]
    cloud = [endpoint for endpoint in sandbox.get("/endpoints")["endpoints"] if endpoint["type"] == "cloud"]
    (endpoint,) = [endpoint for endpoint in cloud if not endpoint["pooling_enabled"]]
    sandbox.patch(f"/endpoints/{endpoint['id']}", {"description": "by hand"})
    (destination,) = sandbox.get("/event_destinations")["event_destinations"]
    target = {"metrics": {**destination["target"]["metrics"], "api_key": "k", "tags": "by:hand"}}
    sandbox.patch(f"/event_destinations/{destination['id']}", {"target": target})
    results += [project("drift"), project("apply", "-y", "--allow", "update:*=9"), project("plan")]
    allowed = ",".join(("delete:ReservedDomain=1", "delete:BotUser=1", "delete:AgentEndpoint=2"))
    return [*results, project("destroy", "-y", "--allow", allowed)]


def hide_random(result: Output) -> str:
    """The output without what is random in it: ids, and the targets of DNS records."""
    return re.sub(r"\w+\.\w+(?=\.cname\.)", "TARGET", result.number_ids().out)


def test_a_project_has_the_same_outputs_under_both_profiles(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specification = run_lifecycle(example(tmp_path / "a", capsys, sandbox, "specification"), sandbox)
    sandbox.reset()
    public = run_lifecycle(example(tmp_path / "b", capsys, sandbox, "ngrok"), sandbox)
    assert [result.code for result in public] == [0, 0, 0, exit_codes.CHANGES, 0, 0, 0], public
    assert [hide_random(result) for result in public] == [hide_random(result) for result in specification]
    assert "No changes" in public[2].out
    assert sandbox.get("/endpoints")["endpoints"] == []


def test_the_sandbox_returns_the_field_names_of_each_profile(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert example(tmp_path / "a", capsys, sandbox)("apply", "-y").code == 0
    (ours,) = sandbox.get("/event_destinations")["event_destinations"]
    headers = {"Authorization": HEADERS["Authorization"], "Ngrok-Version": "2"}
    (theirs,) = sandbox.request("GET", "/event_destinations", headers=headers).json()["event_destinations"]
    assert (ours["target"]["metrics"]["tags"], "datadog" in ours["target"]) == ("stack:public", False)
    assert (theirs["target"]["datadog"]["ddtags"], "metrics" in theirs["target"]) == ("stack:public", False)


def test_a_declaration_of_a_retired_kind_is_a_warning(project: Project, sandbox: Sandbox) -> None:
    project.declare({"kind": "TCPEdge", "name": "ssh", "spec": {}}, {"kind": "TCPEdge", "name": "git", "spec": {}})
    assert project("validate").err == ""
    project.write("reconciler.yaml", "stack: prod\nplatform: {profile: ngrok}\nlimits: {requests_per_minute: 100000}\n")
    validated = project("validate")
    assert validated.code == 0
    assert "warning: TCPEdge/ssh: ngrok no longer creates objects of the kind TCPEdge" in validated.err
    assert "ERR_NGROK_7008" in validated.err
    assert validated.err.endswith("1 warning\n")
    project.use(sandbox)
    assert "ERR_NGROK_7008" in project("plan").out


def test_the_base_url_of_the_public_platform_is_the_default(project: Project) -> None:
    project.write("reconciler.yaml", "stack: prod\nplatform: {profile: ngrok}\n")
    assert "platform.api_key" in (error := project("plan").err)
    assert "platform.base_url" not in error
