"""`reconciler agent config`: from manifests and delivered tokens to the file that an agent starts with."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.platform import SandboxProcess, open_client
from tests.harness.project import Project, resource

CREDENTIAL = {
    **resource("TunnelCredential", "berlin", acl=["bind:*.berlin.example.com"]),
    "deliver": {"token": {"to_file": "secrets/berlin.token"}},
}
INGRESS = resource("AgentIngress", "connect", domain="connect.example.com")
DOMAIN = resource("ReservedDomain", "berlin", domain="*.berlin.example.com")
API = {"proto": "http", "domain": "agent.berlin.example.com", "addr": "4040", "inspect": False}
BERLIN = resource(
    "AgentConfig",
    "berlin",
    credential={"ref": "TunnelCredential/berlin"},
    ingress={"ref": "AgentIngress/connect"},
    region="eu",
    tunnels={"agent-api": API},
)


def read_config(project: Project, name: str = "agent.yml") -> dict[str, Any]:
    return yaml.safe_load((project.root / name).read_text())


def test_the_file_holds_the_delivered_token_and_the_ingress_as_it_is_on_the_platform(on_sandbox: Project) -> None:
    on_sandbox.declare(CREDENTIAL, INGRESS, BERLIN)
    assert on_sandbox("apply", "-y").code == 0
    result = on_sandbox("agent", "config", "berlin", "--out", "new/agent.yml")
    assert (result.code, result.out, result.err) == (0, "", "Wrote new/agent.yml.\n")
    assert read_config(on_sandbox, "new/agent.yml") == {
        "version": "2",
        "authtoken": (on_sandbox.root / "secrets/berlin.token").read_text(),
        "server_addr": "eu.connect.example.com",
        "tunnels": {"agent-api": API},
    }
    file = on_sandbox.root / "new/agent.yml"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file)] == [0o700, 0o600]


def test_a_printed_configuration_contains_no_token(on_sandbox: Project) -> None:
    on_sandbox.declare(CREDENTIAL, INGRESS, BERLIN)
    assert on_sandbox("apply", "-y").code == 0
    result = on_sandbox("agent", "config", "berlin")
    assert result.code == 0
    assert "authtoken" not in yaml.safe_load(result.out)
    assert "# Secrets are not printed; --out FILE writes them: authtoken." in result.out


def test_a_token_is_read_from_its_dotenv_entry(on_sandbox: Project) -> None:
    deliver = {"token": {"to_dotenv": {"file": "secrets/.env", "name": "BERLIN"}}}
    config = resource("AgentConfig", "berlin", credential={"ref": "TunnelCredential/berlin"})
    on_sandbox.declare({**CREDENTIAL, "deliver": deliver}, config)
    assert on_sandbox("apply", "-y").code == 0
    assert on_sandbox("agent", "config", "berlin", "--out", "agent.yml").code == 0
    assert f"BERLIN={read_config(on_sandbox)['authtoken']}" in (on_sandbox.root / "secrets/.env").read_text()


def test_the_token_of_another_credential_is_not_overwritten(on_sandbox: Project) -> None:
    oslo = {**resource("TunnelCredential", "oslo"), "deliver": {"token": {"to_file": "secrets/oslo.token"}}}
    on_sandbox.declare(CREDENTIAL, INGRESS, oslo, BERLIN)
    assert on_sandbox("apply", "-y").code == 0
    token = (on_sandbox.root / "secrets/oslo.token").read_text()
    result = on_sandbox("agent", "config", "berlin", "--out", "secrets/oslo.token")
    assert (result.code, result.out) == (1, "")
    assert "secrets/oslo.token overlaps with a delivery: TunnelCredential/oslo to secrets/oslo.token" in result.err
    assert (on_sandbox.root / "secrets/oslo.token").read_text() == token


def test_a_token_that_is_not_delivered_yet_is_an_error_at_its_credential(on_sandbox: Project) -> None:
    on_sandbox.declare(CREDENTIAL, resource("AgentConfig", "berlin", credential={"ref": "TunnelCredential/berlin"}))
    result = on_sandbox("agent", "config", "berlin", "--out", "agent.yml")
    assert result.code == 1
    assert "manifests/all.yaml:3:" in result.err
    assert "there is no file secrets/berlin.token; apply first" in result.err
    assert not (on_sandbox.root / "agent.yml").exists()


def test_a_plan_does_not_contain_an_agent_configuration(on_sandbox: Project) -> None:
    on_sandbox.declare(resource("AgentConfig", "berlin", server_addr="eu.example.com:443"))
    result = on_sandbox("plan", "--detailed-exitcode")
    assert result.code == 0
    assert "AgentConfig" not in result.out + result.err


def test_several_are_merged_with_what_they_extend(project: Project) -> None:
    project.environ["BERLIN_TOKEN"] = "made-up-token"
    project.declare(
        resource("AgentConfig", "base", server_addr="eu.connect.example.com:443", tunnels={"agent-api": API}),
        resource("AgentConfig", "token", authtoken={"from_env": "BERLIN_TOKEN"}),
        resource("AgentConfig", "berlin", extends=[{"ref": "AgentConfig/base"}], tunnels={"agent-api": API}),
    )
    assert project("agent", "config", "berlin", "token", "--out", "agent.yml").code == 0
    assert read_config(project) == {
        "version": "2",
        "authtoken": "made-up-token",
        "server_addr": "eu.connect.example.com:443",
        "tunnels": {"agent-api": API},
    }


def test_two_that_disagree_are_refused_with_both_places(project: Project) -> None:
    project.environ["BERLIN_TOKEN"] = "made-up-token"
    base = resource("AgentConfig", "base", authtoken={"from_env": "BERLIN_TOKEN"}, tunnels={"agent-api": API})
    other = resource("AgentConfig", "other", version="3", tunnels={"agent-api": {**API, "addr": "4041"}})
    project.declare(base, file="base.yaml")
    project.declare(other, file="other.yaml")
    result = project("agent", "config", "base", "other", "--out", "agent.yml")
    assert result.code == 1
    (line,) = [line for line in result.err.splitlines() if "tunnels" in line]
    assert line.startswith("manifests/other.yaml:1:")
    assert "AgentConfig/other.tunnels.agent-api: differs from AgentConfig/base (manifests/base.yaml:1:" in line
    assert not (project.root / "agent.yml").exists()


def test_validate_reports_what_a_configuration_and_those_that_it_extends_contradict(project: Project) -> None:
    """Without the values of environment variables, and only once."""
    project.declare(
        resource("AgentConfig", "base", version="2", metadata="base", authtoken={"from_env": "BASE"}),
        resource(
            "AgentConfig",
            "berlin",
            extends=[{"ref": "AgentConfig/base"}],
            metadata="berlin",
            authtoken={"from_env": "BERLIN"},
            endpoints=[ENDPOINT],
        ),
        resource("AgentConfig", "oslo", extends=[{"ref": "AgentConfig/base"}], metadata={"from_env": "OSLO"}),
    )
    result = project("validate")
    assert result.code == 1
    subjects = [line.partition("AgentConfig/")[2].partition(":")[0] for line in result.err.splitlines()]
    assert [subject for subject in subjects if subject] == ["base.metadata", "berlin.endpoints"]


def test_an_unknown_configuration_is_an_error_that_suggests_a_similar_name(project: Project) -> None:
    project.declare(resource("AgentConfig", "berlin", server_addr="eu.example.com:443"))
    result = project("agent", "config", "berlim")
    assert result.code == 1
    assert "there is no AgentConfig/berlim in the manifests; did you mean berlin?" in result.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"lifecycle": {"protect": True}}, "AgentConfig/berlin.lifecycle: AgentConfig is rendered to a file"),
        ({"ensure": "absent"}, "AgentConfig/berlin.ensure: AgentConfig is rendered to a file"),
    ],
)
def test_a_configuration_is_no_object_of_the_platform(project: Project, more: dict[str, Any], message: str) -> None:
    project.declare({**resource("AgentConfig", "berlin", server_addr="eu.example.com:443"), **more})
    result = project("validate")
    assert result.code == 1
    assert message in result.err


def test_the_command_without_a_subcommand_lists_the_subcommands(project: Project) -> None:
    result = project("agent")
    assert result.code == 64
    assert "config  Print or write an agent" in result.out


def test_nothing_refers_to_a_configuration(project: Project) -> None:
    project.declare(
        resource("AgentConfig", "berlin", server_addr="eu.example.com:443"),
        resource("IPPolicy", "office", description={"ref": "AgentConfig/berlin"}),
    )
    result = project("validate")
    assert result.code == 1
    assert "refers to AgentConfig/berlin, which is rendered to a file and has no outputs" in result.err


ENDPOINT = {"name": "agent-api", "url": "https://agent.berlin.example.com", "upstream": {"url": "4040"}}
BERLIN_3 = resource(
    "AgentConfig",
    "berlin",
    credential={"ref": "TunnelCredential/berlin"},
    ingress={"ref": "AgentIngress/connect"},
    region="eu",
    metadata="berlin",
    endpoints=[ENDPOINT],
)


def test_the_file_of_version_3_has_the_delivered_token_and_the_ingress_below_agent(on_sandbox: Project) -> None:
    on_sandbox.declare(CREDENTIAL, INGRESS, BERLIN_3)
    assert on_sandbox("apply", "-y").code == 0
    assert on_sandbox("agent", "config", "berlin", "--out", "agent.yml").code == 0
    token = (on_sandbox.root / "secrets/berlin.token").read_text()
    assert read_config(on_sandbox) == {
        "version": "3",
        "agent": {"authtoken": token, "connect_url": "eu.connect.example.com", "metadata": "berlin"},
        "endpoints": [ENDPOINT],
    }


@pytest.mark.parametrize(("config", "opened"), [(BERLIN, "tunnels"), (BERLIN_3, "endpoints")], ids=["2", "3"])
def test_the_agent_starts_with_the_file_that_was_written_for_it(
    project: Project, tmp_path: Path, config: dict[str, Any], opened: str
) -> None:
    file = tmp_path / "agent.yml"
    with SandboxProcess(agent_config=file) as sandbox:
        agent = open_client(sandbox.agent_url)
        tunnel = {"name": "late", "proto": "http", "addr": "80", "domain": "late.berlin.example.com"}
        assert agent.post("/api/tunnels", json=tunnel).status_code == 503
        project.use(sandbox)
        project.declare(CREDENTIAL, DOMAIN, INGRESS, config)
        assert project("apply", "-y").code == 0
        assert project("agent", "config", "berlin", "--out", str(file)).code == 0
        sandbox.post("/_sandbox/agent", {})
        (running,) = agent.get(f"/api/{opened}").json()[opened]
        agent.close()
        (session,) = sandbox.get("/tunnel_sessions")["tunnel_sessions"]
        (credential,) = sandbox.get("/credentials")["credentials"]
        (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    assert running["name"] == "agent-api"
    assert endpoint["url"] == "https://agent.berlin.example.com"
    assert session["credential"]["id"] == credential["id"]
    assert session["metadata"] == config["spec"].get("metadata", "")
