"""The configuration files of the sandbox's agent: what it reads, merges, starts and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kinds import read_only
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Position
from reconciler.model.value import Secret
from reconciler.rendering.agent_config import merge, render_file
from reconciler.sandbox.agent import config_files
from reconciler.sandbox.agent.process import ENDPOINTS, Agent
from reconciler.sandbox.agent.tunnels import AgentError
from reconciler.sandbox.base.database import Database
from reconciler.sandbox.operations.objects import Objects

Start = Callable[..., Agent]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts an agent with these files on an account without objects."""
    database = Database(":memory:")

    def run(*texts: str) -> Agent:
        files = [tmp_path / f"{number}.yml" for number, _ in enumerate(texts)]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        agent = Agent(Objects(database, read_only.list_served()), files)
        agent.start()
        return agent

    yield run
    database.close()


def list_tunnels(agent: Agent) -> dict[str, Any]:
    return {tunnel["name"]: tunnel["config"] for tunnel in agent.list_tunnels()}


def list_endpoints(agent: Agent) -> dict[str, str]:
    return {endpoint["name"]: endpoint["upstream"]["url"] for endpoint in agent.list_running(ENDPOINTS)}


def test_files_of_version_2_are_merged_key_by_key_within_a_tunnel_too(start: Start) -> None:
    agent = start(
        "version: 2\nauthtoken: unknown\ntunnels: {orders: {proto: http, addr: 8080, inspect: false}}\n",
        "version: '2'\nauthtoken: ''\ntunnels: {orders: {addr: 9090}, shop: {proto: http, addr: 80}}\n",
    )
    assert list_tunnels(agent) == {
        "orders": {"addr": "http://localhost:9090", "inspect": False},
        "shop": {"addr": "http://localhost:80", "inspect": True},
    }


def test_the_last_file_of_version_3_replaces_the_list_of_endpoints_and_adds_settings_of_the_agent(start: Start) -> None:
    agent = start(
        "version: 3\nagent: {authtoken: '', metadata: berlin}\nendpoints: [{name: a, upstream: {url: 80}}]\n",
        "version: 3\nagent: {web_addr: 127.0.0.1:4041}\nendpoints: [{name: b, upstream: {url: 81}}]\n",
        "version: 3\nagent: {log: false}\ntunnels: {c: {proto: http, addr: 82}}\n",
    )
    assert list_endpoints(agent) == {"b": "http://localhost:81"}
    assert list_tunnels(agent).keys() == {"c"}


def test_files_of_different_versions_are_refused_together(start: Start) -> None:
    with pytest.raises(AgentError, match=r"1\.yml': it has version 3, and '.*0\.yml' version 2"):
        start("version: 2\n", "version: 3\n")


def test_a_file_of_version_3_opens_its_endpoints_and_tunnels(start: Start) -> None:
    agent = start("""
        version: "3"
        agent: {metadata: berlin}
        endpoints:
          - {name: web, upstream: {url: 8080}, description: shop, metadata: '{"a": 1}'}
          - {name: ssh, url: "tcp://", upstream: {url: 22}, inspect: false}
          - {name: inner, url: "https://shop.internal", upstream: {url: "https://web:8443", protocol: http2}}
          - {name: pass, url: "tls://", upstream: {url: 443}, agent_tls_termination: {server_certificate: a.pem}}
        tunnels: {old: {proto: http, addr: 80}}
    """)
    assert agent.is_ready
    assert list_endpoints(agent) == {
        "web": "http://localhost:8080",
        "ssh": "localhost:22",
        "inner": "https://web:8443",
        "pass": "tls://localhost:443",
    }
    assert list_tunnels(agent).keys() == {"old"}


def test_the_url_of_an_endpoint_may_be_a_list_of_one(start: Start) -> None:
    agent = start('version: 3\nendpoints: [{name: a, url: ["https://a.internal"], upstream: {url: 80}}]\n')
    assert [endpoint["url"] for endpoint in agent.list_running(ENDPOINTS)] == ["https://a.internal"]
    with pytest.raises(AgentError, match="cannot unmarshal !!seq into string"):
        start("version: 3\nendpoints: [{name: a, url: [a.test, b.test], upstream: {url: 80}}]\n")


def test_an_endpoint_has_the_policy_in_its_file(start: Start, tmp_path: Path) -> None:
    (tmp_path / "policy.yml").write_text("on_http_request: [{actions: [{type: deny}]}]\n")
    agent = start("version: 3\nendpoints: [{name: a, upstream: {url: 80}, traffic_policy_file: policy.yml}]\n")
    (endpoint,) = agent.list_running(ENDPOINTS)
    assert "type: deny" in endpoint["traffic_policy"]
    with pytest.raises(AgentError, match=r"'none\.yml' cannot be read"):
        start("version: 3\nendpoints: [{name: a, upstream: {url: 80}, traffic_policy_file: none.yml}]\n")


@pytest.mark.parametrize("text", ["version: 2\nauthtoken: made-up\n", "version: 3\nagent: {authtoken: made-up}\n"])
def test_an_agent_is_not_online_with_an_unknown_token_in_its_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "agent.yml"
    file.write_text(text)
    database = Database(":memory:")
    agent = Agent(Objects(database, read_only.list_served()), [file])
    with pytest.raises(AgentError, match="ERR_NGROK_107") as failed:
        agent.start()
    assert "made-up" not in str(failed.value)
    assert agent.describe()["status"] == "connecting"
    database.close()


def test_a_refused_tunnel_or_endpoint_does_not_prevent_others_from_starting(tmp_path: Path) -> None:
    file, other = tmp_path / "agent.yml", tmp_path / "other.yml"
    file.write_text("version: 3\ntunnels: {a: {proto: gopher, addr: 1}, b: {proto: http, addr: 80}, c: {addr: 1}}\n")
    other.write_text(
        "version: 3\ntunnels: {c: {proto: http, domain: c.test}}\n"
        "endpoints: [{name: d, url: d.test, upstream: {url: 80}}, {name: e, upstream: {url: 80}}]\n"
    )
    database = Database(":memory:")
    agent = Agent(Objects(database, read_only.list_served()), [file, other])
    with pytest.raises(AgentError) as failed:
        agent.start()
    unknown, *refused = str(failed.value).splitlines()
    assert unknown.startswith("agent.yml: cannot open the tunnel 'a': ")
    assert refused == [
        "agent.yml and other.yml: cannot open the tunnel 'c': You must reserve the hostname 'c.test' before it can be "
        "used. ERR_NGROK_319",
        "other.yml: cannot open the endpoint 'd': You must reserve the hostname 'd.test' before it can be used. "
        "ERR_NGROK_319",
    ]
    assert agent.is_ready
    assert ([*list_tunnels(agent)], [*list_endpoints(agent)]) == (["b"], ["e"])
    database.close()


UNMARSHAL = "YAML parsing error: yaml: unmarshal errors:\n"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "the `version` property is required; `config upgrade` adds it"),
        ("authtoken: made-up\n", "the `version` property is required; `config upgrade` adds it"),
        ("version: 4\n", "unknown version '4'. valid versions are: [2 3]"),
        ("version: 3\n\nauthtoken: x\n", f"{UNMARSHAL}  line 3: field authtoken not found in type config.v3yamlConfig"),
        ("version: 3\nregion: eu\n", f"{UNMARSHAL}  line 2: field region not found in type config.v3yamlConfig"),
        (
            "version: 3\nagent:\n  root_cas: host\n",
            f"{UNMARSHAL}  line 3: field root_cas not found in type config.Agent",
        ),
        (
            "version: 3\nagent: {endpoints: []}\n",
            f"{UNMARSHAL}  line 2: field endpoints not found in type config.Agent",
        ),
        ("version: 2\nagent: {}\n", f"{UNMARSHAL}  line 2: field agent not found in type config.v2yamlConfig"),
        ("version: 2\nendpoints: []\n", f"{UNMARSHAL}  line 2: field endpoints not found in type config.v2yamlConfig"),
        (
            "version: 3\na: 1\nb: 2\n",
            f"{UNMARSHAL}  line 2: field a not found in type config.v3yamlConfig\n"
            "  line 3: field b not found in type config.v3yamlConfig",
        ),
        ("version: 2\ntunnels: 5\n", f"{UNMARSHAL}  line 2: cannot unmarshal !!int into map"),
        ("version: 2\nupdate_check: 'yes'\n", f"{UNMARSHAL}  line 2: cannot unmarshal !!str into bool"),
        ("version: 2\nauthtoken: [made-up]\n", f"{UNMARSHAL}  line 2: cannot unmarshal !!seq into string"),
        ("version: 3\nendpoints: {a: {}}\n", f"{UNMARSHAL}  line 2: cannot unmarshal !!map into list"),
        ("5", f"{UNMARSHAL}  line 1: cannot unmarshal !!int into map"),
        ("version: 3\nagent:\n\tlog: x\n", "YAML parsing error: yaml: line 3: "),
        ("version: 3\nagent: [\n", "YAML parsing error: yaml: line "),
        ("[" * 5000, "YAML parsing error: yaml: line 1: "),
        ("version: 3\nagent: !!int x\n", "YAML parsing error: yaml: line 2: "),
        ("version: 3\nendpoints: [{name: a}]\n", "Endpoint 'a' has no upstream url"),
        ("version: 3\nendpoints: [{upstream: {url: 80}}]\n", "Endpoint 0 has no name"),
        (
            "version: 3\nendpoints: [{name: a, upstream: {url: 80}}, {name: a, upstream: {url: 81}}]\n",
            "Endpoint 'a' is defined twice",
        ),
        (
            "version: 3\nendpoints: [{name: a, upstream: {url: 80}, bindings: [public, internal]}]\n",
            "Endpoint 'a': bindings has 2 items",
        ),
        (
            "version: 3\nendpoints: [{name: main, upstream: {url: 'tcp://localhost:22'}}]\n",
            "Endpoint 'main' specifies a URL with an unsupported scheme: tcp",
        ),
        (
            "version: 3\nendpoints: [{name: a, upstream: {url: 80}, agent_tls_termination: {}}]\n",
            "Endpoint 'a': agent_tls_termination does not apply to an endpoint of https",
        ),
        ("version: 3\ntunnels: {a: {labels: [a=b], addr: 80}}\n", "Tunnel 'a' has labels"),
        (
            "version: 2\ntunnels: {a: {proto: tls, addr: 443, terminate_at: home}}\n",
            "Tunnel 'a': terminate_at is none of edge, agent, upstream\n\nERR_NGROK_224",
        ),
        ("version: 2\ntunnels: {a: {proto: tls, addr: 443, crt: a.pem}}\n", "Tunnel 'a': crt is set without key"),
    ],
)
def test_a_file_that_agents_refuse_is_refused_with_its_path(
    start: Start, tmp_path: Path, text: str, refusal: str
) -> None:
    with pytest.raises(AgentError) as failed:
        start(text)
    message = str(failed.value)
    assert message.startswith(f"Error reading configuration file '{tmp_path / '0.yml'}': {refusal}")
    assert "made-up" not in message


# --- what `agent config` writes ---------------------------------------------------------------------------------------

NAMES = st.text("abceXYZ019._-", min_size=1, max_size=12).filter(lambda name: name[0].isalnum())
UPSTREAMS = st.sampled_from(["80", "web:8080", "http://web:80", "no:1", "1e3"])
TUNNELS = st.dictionaries(
    NAMES | st.sampled_from(["1e3", "0x1F", "no", "1.10", "null", "true"]),
    st.fixed_dictionaries(
        {"proto": st.sampled_from(["http", "tls"]), "addr": UPSTREAMS},
        optional={
            "domain": st.sampled_from(["a.example.com", "b.example.com"]),
            "metadata": st.text("aä🦊:#' ", max_size=8),
            "traffic_policy": st.just({"on_http_request": [{"actions": [{"type": "deny"}]}]}),
            "ip_restriction": st.just({"allow_cidrs": ["192.0.2.0/24"]}),
        },
    ),
    max_size=4,
)
ENDPOINTS_OF_3 = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES.map("endpoint-{}".format), "upstream": st.fixed_dictionaries({"url": UPSTREAMS})},
        optional={
            "url": st.sampled_from(["https://a.example.com", "tcp://", "a.example.com", "tls://b.internal"]),
            "pooling_enabled": st.booleans(),
            "bindings": st.sampled_from([["public"], ["internal"]]),
            "description": st.text("aä🦊:#' ", max_size=8),
        },
    ),
    max_size=4,
    unique_by=lambda endpoint: endpoint["name"],
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "console_ui": st.sampled_from([True, False, "iftty"]),
        "dns_resolver_ips": st.just(["192.0.2.1"]),
        "heartbeat_interval": st.just("10s"),
        "inspect_db_size": st.sampled_from([0, -1]),
        "log": st.sampled_from([False, "stdout"]),
        "metadata": st.text("aä🦊:#' ", max_size=8),
    },
)


@given(st.sampled_from(["2", "3"]), TUNNELS, ENDPOINTS_OF_3, OPTIONS)
def test_the_agent_reads_every_file_that_is_written_for_it(
    tmp_path_factory: pytest.TempPathFactory,
    version: str,
    tunnels: dict[str, Any],
    endpoints: list[dict[str, Any]],
    options: dict[str, Any],
) -> None:
    opened = {"tunnels": tunnels, "endpoints": endpoints} if version == "3" else {"tunnels": tunnels}
    token = Secret("made-up", "test")
    address = Address("AgentConfig", "berlin")
    spec = {"version": version, "authtoken": token, **options, **opened}
    merged, problems = merge([address], {address: Declaration(address, spec, Position("berlin.yaml", 1, 1))})
    assert problems == []
    file = tmp_path_factory.getbasetemp() / "written.yml"
    file.write_text(render_file(merged, "eu.example.com:443", token.reveal()), encoding="utf-8")
    read = config_files.read([file])
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["version"] == version
    assert (dict(read.tunnels), list(read.endpoints)) == (tunnels, endpoints if version == "3" else [])
    server = "connect_url" if version == "3" else "server_addr"
    expected = {"authtoken": "made-up", server: "eu.example.com:443", **options}
    assert {name: read.options[name] for name in expected} == expected


def write(folder: Path, name: str, content: dict[str, Any]) -> Path:
    file = folder / name
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return file


@given(TUNNELS, TUNNELS)
def test_tunnels_of_two_files_add_up_and_the_later_keys_win(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, Any], other: dict[str, Any]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    files = [
        write(folder, f"{name}.yml", {"version": "2", "tunnels": tunnels})
        for name, tunnels in (("one", one), ("other", other))
    ]
    read = config_files.read(files)
    assert read.tunnels == {name: {**one.get(name, {}), **other.get(name, {})} for name in one.keys() | other.keys()}
    assert config_files.read([files[0], files[0]]).tunnels == one


@given(ENDPOINTS_OF_3, ENDPOINTS_OF_3, st.booleans())
def test_the_endpoints_of_the_last_file_that_has_them_replace_the_others(
    tmp_path_factory: pytest.TempPathFactory, one: list[Any], other: list[Any], has_endpoints: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    second = {"version": 3, "agent": {"log": False}, **({"endpoints": other} if has_endpoints else {})}
    files = [
        write(folder, "one.yml", {"version": 3, "agent": {"metadata": "m"}, "endpoints": one}),
        write(folder, "other.yml", second),
    ]
    read = config_files.read(files)
    assert read.endpoints == (other if has_endpoints else one)
    assert read.options == {"metadata": "m", "log": False}
