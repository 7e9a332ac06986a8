"""The configuration file of an agent: it contains what is declared, merged from several declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Position
from reconciler.model.value import JsonTemplate, Ref, Sealed, Secret, Template
from reconciler.rendering import agent_config
from reconciler.rendering.agent_config import find_conflicts, find_regional_domain, merge, render_file
from tests.harness.golden import compare_golden

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=12).filter(lambda name: name[0].isalnum())
TUNNELS = st.dictionaries(
    NAMES,
    st.fixed_dictionaries(
        {"proto": st.sampled_from(["http", "tls"]), "addr": st.sampled_from(["80", "8080", "no", "1e3", "web:80"])},
        optional={"domain": st.sampled_from(["a.example.com", "b.example.com"]), "inspect": st.booleans()},
    ),
    max_size=4,
)
ENDPOINTS = st.lists(
    st.fixed_dictionaries(
        {
            "name": NAMES,
            "upstream": st.sampled_from([{"url": "80"}, {"url": "web:8080", "protocol": "http2"}, {"url": "no"}]),
        },
        optional={
            "url": st.sampled_from(["https://a.example.com", "tcp://", "a.example.com"]),
            "pooling_enabled": st.booleans(),
            "bindings": st.sampled_from([["public"], ["internal"]]),
            "traffic_policy": st.just({"on_http_request": [{"actions": [{"type": "deny"}]}]}),
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
        "inspect_db_size": st.sampled_from([0, -1]),
        "log": st.sampled_from([False, "stdout"]),
        "web_addr": st.sampled_from([False, "127.0.0.1:4041"]),
    },
)
TOKEN = Secret("made-up: \"token\" # 'x'", "test")


def declare(**specs: dict[str, Any]) -> dict[Address, Declaration]:
    found = {}
    for name, spec in specs.items():
        address = Address("AgentConfig", name)
        found[address] = Declaration(address, spec, Position(f"{name}.yaml", 1, 1))
    return found


def whole(declarations: dict[Address, Declaration], *names: str) -> Any:
    merged, problems = merge([Address("AgentConfig", name) for name in names], declarations)
    assert problems == []
    assert merged.signs_in is not None
    return yaml.safe_load(render_file(merged, "eu.example.com:443", merged.signs_in.value.reveal()))


@given(TUNNELS, OPTIONS, st.sampled_from([None, "2"]))
def test_a_file_of_version_2_is_read_back_as_the_declaration(
    tunnels: dict[str, Any], options: dict[str, Any], version: str | None
) -> None:
    spec = {"authtoken": TOKEN, "tunnels": tunnels, **options, **({"version": version} if version else {})}
    read = whole(declare(berlin=spec), "berlin")
    assert read.pop("tunnels", {}) == tunnels
    server = {"authtoken": TOKEN.reveal(), "server_addr": "eu.example.com:443"}
    assert read == {"version": "2", **server, **options}


@given(ENDPOINTS, TUNNELS, OPTIONS, st.booleans())
def test_a_file_of_version_3_has_its_settings_below_agent_and_a_list_of_endpoints(
    endpoints: list[dict[str, Any]], tunnels: dict[str, Any], options: dict[str, Any], is_explicit: bool
) -> None:
    tunnels = {f"t-{name}": tunnel for name, tunnel in tunnels.items()}
    spec = {"authtoken": TOKEN, "endpoints": endpoints, "tunnels": tunnels, **options}
    read = whole(declare(berlin={**spec, "version": "3"} if is_explicit or not endpoints else spec), "berlin")
    assert (read.pop("endpoints", []), read.pop("tunnels", {})) == (endpoints, tunnels)
    server = {"authtoken": TOKEN.reveal(), "connect_url": "eu.example.com:443"}
    assert read == {"version": "3", "agent": {**server, **options}}


@given(TUNNELS)
def test_merging_an_equal_configuration_changes_nothing(tunnels: dict[str, Any]) -> None:
    spec = {"authtoken": TOKEN, "tunnels": tunnels}
    both = declare(one=spec, other=spec)
    assert whole(both, "one", "other") == whole(both, "other", "one") == whole(both, "one")


@given(TUNNELS, TUNNELS)
def test_merging_two_files_reports_each_tunnel_that_differs(some: dict[str, Any], others: dict[str, Any]) -> None:
    both = declare(one={"authtoken": TOKEN, "tunnels": some}, other={"tunnels": others})
    merged, problems = merge(list(both), both)
    differing = {name for name in some.keys() & others.keys() if _plain(some[name]) != _plain(others[name])}
    assert {problem.subject.partition(".tunnels.")[2] for problem in problems} == differing
    assert merged.tunnels.keys() == some.keys() | others.keys()


@given(ENDPOINTS, ENDPOINTS)
def test_a_merge_of_two_files_has_every_endpoint_and_reports_those_that_differ(
    some: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    both = declare(one={"authtoken": TOKEN, "version": "3", "endpoints": some}, other={"endpoints": others})
    merged, problems = merge(list(both), both)
    first = {endpoint["name"]: endpoint for endpoint in some}
    differing = [index for index, endpoint in enumerate(others) if first.get(endpoint["name"], endpoint) != endpoint]
    assert {problem.subject for problem in problems} == {f"AgentConfig/other.endpoints.{index}" for index in differing}
    assert merged.endpoints.keys() == {endpoint["name"] for endpoint in [*some, *others]}


@pytest.mark.parametrize(
    ("one", "other", "subject", "text"),
    [
        ({"version": "2"}, {"version": "3"}, "other.version", "differs from AgentConfig/one"),
        ({"version": "2"}, {"endpoints": [{"name": "a"}]}, "other.endpoints", "is a setting of version 3"),
        ({"version": "3"}, {"server_addr": "a:1"}, "other.server_addr", "set connect_url"),
        ({"root_cas": "host"}, {"connect_cas": "host"}, "one.root_cas", "set connect_cas"),
        (
            {"version": "3"},
            {"tunnels": {"a": {"labels": ["a=b"]}}},
            "other.tunnels.a.labels",
            "do not exist in version 3",
        ),
        (
            {"endpoints": [{"name": "a"}]},
            {"tunnels": {"a": {"proto": "http", "addr": "80"}}},
            "one.endpoints.0",
            "also the name of a tunnel",
        ),
        (
            {},
            {"tunnels": {"a": {"domain": Ref(Address("ReservedDomain", "x"), "domain")}}},
            "other.tunnels.a.domain",
            "is known only after",
        ),
    ],
)
def test_configurations_that_make_no_valid_file_together_are_refused_with_the_place(
    one: dict[str, Any], other: dict[str, Any], subject: str, text: str
) -> None:
    both = declare(one={"authtoken": TOKEN, **one}, other=other)
    (problem,) = merge(list(both), both)[1]
    assert problem.subject == f"AgentConfig/{subject}"
    assert text in str(problem)


SECRET_SPEC: dict[str, Any] = {
    "authtoken": TOKEN,
    "api_key": Secret("made-up-api-key", "test"),
    "proxy_url": Secret("http://user:made-up@proxy.example.com", "test"),
    "tunnels": {
        "web": {
            "proto": "http",
            "addr": "80",
            "basic_auth": [Secret("berlin:made-up-password", "test"), Secret("oslo:made-up-password", "test")],
            "oidc": {
                "issuer_url": "https://id.example.com",
                "client_id": "web",
                "client_secret": Secret("made-up-client", "test"),
            },
            "verify_webhook": {"provider": "github", "secret": Secret("made-up-webhook", "test")},
            "traffic_policy": {"on_http_request": [{"config": {"password": Secret("made-up-policy", "test")}}]},
        }
    },
}


def test_a_printed_file_has_no_secret_and_lists_those_that_are_missing() -> None:
    merged, problems = merge([Address("AgentConfig", "one")], declare(one=SECRET_SPEC))
    assert problems == []
    text = render_file(merged, None, None)
    assert "made-up" not in text
    missing = re.search("--out FILE writes them: (.*)[.]", text)
    assert missing is not None
    assert missing[1].split(", ") == [
        "authtoken",
        "api_key",
        "proxy_url",
        "tunnels.web.basic_auth.0",
        "tunnels.web.basic_auth.1",
        "tunnels.web.oidc.client_secret",
        "tunnels.web.verify_webhook.secret",
        "tunnels.web.traffic_policy.on_http_request.0.config.password",
    ]
    written = yaml.safe_load(render_file(merged, None, "made-up-token"))
    assert written["tunnels"]["web"]["basic_auth"] == ["berlin:made-up-password", "oslo:made-up-password"]
    assert written["tunnels"]["web"]["traffic_policy"]["on_http_request"][0]["config"] == {"password": "made-up-policy"}
    assert (written["authtoken"], written["api_key"]) == ("made-up-token", "made-up-api-key")


@pytest.mark.parametrize("secret", [True, False])
def test_a_traffic_policy_declared_as_text_is_written_as_a_map(secret: bool) -> None:
    text = '{"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 404}}]}]}'
    endpoint = {
        "name": "a",
        "upstream": {"url": "80"},
        "traffic_policy": Secret(text, "test") if secret else text,
    }
    read = whole(declare(one={"authtoken": TOKEN, "endpoints": [endpoint]}), "one")
    assert read["endpoints"][0]["traffic_policy"] == yaml.safe_load(text)


def _plain(tunnel: dict[str, Any]) -> dict[str, Any]:
    return {**tunnel, "addr": f"localhost:{tunnel['addr']}" if tunnel["addr"].isdigit() else tunnel["addr"]}


def test_the_token_is_omitted_unless_it_is_passed() -> None:
    merged, _ = merge([Address("AgentConfig", "one")], declare(one={"authtoken": TOKEN}))
    text = render_file(merged, None, None)
    assert "made-up" not in text
    assert yaml.safe_load(text) == {"version": "2"}


def test_a_file_without_a_token_is_a_problem() -> None:
    (problem,) = merge([Address("AgentConfig", "one")], declare(one={}))[1]
    assert str(problem).startswith("one.yaml:1:1: AgentConfig/one: the configuration has no authtoken")


def test_the_regional_domain_is_the_requested_one_below_the_ingress() -> None:
    domains = ["eu.connect.example.com", "us.connect.example.com", "eu.evil.test", "eu.connect.example.com\n"]
    assert find_regional_domain(domains, "connect.example.com", "EU") == "eu.connect.example.com"
    assert find_regional_domain(domains, "connect.example.com", None) is None
    assert find_regional_domain(domains, "connect.example.com", "jp") is None
    assert find_regional_domain(domains[:1], "connect.example.com", None) == "eu.connect.example.com"
    assert find_regional_domain(["evil.test"], "connect.example.com", None) is None
    assert find_regional_domain([*domains[:2], domains[0]], "connect.example.com", "eu") is None
    assert find_regional_domain(["EU-1.connect.example.com"], "connect.example.com", "1") == "EU-1.connect.example.com"
    assert find_regional_domain(domains[:1], "connect.example.com", "connect") is None
    assert find_regional_domain(["e u.connect.example.com"], "connect.example.com", None) is None


@pytest.mark.parametrize(
    "text", ["1" * 301, "1e999", ".inf", "1e3", "no", "1", "null", "web:80", "", "~", "a: b", "0x1f"]
)
def test_text_that_a_reader_takes_for_something_else_is_quoted(text: str) -> None:
    written = yaml.dump({"addr": text}, Dumper=agent_config._Dumper)
    assert (written == f"addr: {text}\n") is (text == "web:80")
    assert yaml.safe_load(written) == {"addr": text}


# --- whole files and whole lists of problems

RICH = {
    **SECRET_SPEC,
    "region": "eu",
    "console_ui": False,
    "web_addr": "127.0.0.1:4041",
    "dns_resolver_ips": ["192.0.2.1", "1e3"],
    "metadata": "x" * 200 + " é\U0001f600\n  two lines",
    "update_check": None,
}
THIRD = {
    "authtoken": TOKEN,
    "ingress": Ref(Address("AgentIngress", "connect")),
    "log": "{a: 1}",  # names of files, which are no documents
    "proxy_url": "{b: 2}",
    "connect_cas": "host",
    "endpoints": [
        {"name": "a", "upstream": {"url": "80", "protocol": None}, "traffic_policy": {"on_http_request": [{"x": 1.0}]}},
        {"name": "b", "upstream": {"url": "b:1"}, "bindings": ["internal"], "pooling_enabled": False},
    ],
    "tunnels": {"old": {"proto": "tcp", "addr": "22", "ip_restriction": {"allow_cidrs": ["192.0.2.0/24"]}}},
}
NAMED = Template(("x-", Ref(Address("ReservedDomain", "x"), "domain")))


def config(name: str) -> Ref:
    return Ref(Address("AgentConfig", name))


def test_whole_files_are_written_as_reviewed() -> None:
    second = {"extends": [config("base"), config("gone")], "tunnels": {"web": SECRET_SPEC["tunnels"]["web"]}}
    files = []
    for declared in (declare(one=RICH), declare(one=second, base={"authtoken": TOKEN}), declare(one=THIRD, two={})):
        merged, problems = merge(list(declared)[:1] if "base" in str(declared) else list(declared), declared)
        assert problems == []
        files += [
            render_file(merged, server, token) for server, token in ((None, None), ("eu.example.com:443", "t0ken"))
        ]
        files.append(f"{merged.names} {merged.region} {merged.signs_in and merged.signs_in.subject}\n")
    compare_golden(Path(__file__).parent / "pages" / "agent-files.txt", "----\n".join(files))


DECLARED = declare(
    top={"extends": [config("left"), config("right"), "AgentConfig/text"], "version": "3", "log": False},
    left={
        "extends": [config("base")],
        "log": "stdout",
        "metadata": NAMED,
        "api_key": Sealed("env:A"),
        "credential": "x",
    },
    right={
        "extends": [config("base"), config("top")],
        "log": "stderr",
        "metadata": "y",
        "api_key": Secret("k", "test"),
        "ingress": NAMED,
        "server_addr": "a:1",
        "endpoints": [
            {"name": "shared", "upstream": {"url": "80"}},
            {"name": "b", "upstream": {"url": "localhost:80"}},
        ],
    },
    base={
        "log": None,
        "endpoints": [{"name": "b", "upstream": {"url": "80"}}],
        "tunnels": {"shared": {"proto": "tls", "addr": "443", "traffic_policy": JsonTemplate(("{", NAMED, "}"))}},
    },
    alone={"version": "3", "root_cas": "host"},
    other={"extends": [config("alone")], "version": "2"},
)


def place(declared: dict[Address, Declaration]) -> dict[Address, Declaration]:
    """The declarations with a line for each value."""

    def list_paths(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
        yield path
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            yield from list_paths(item, (*path, key))

    def place_one(found: Declaration) -> Declaration:
        paths = enumerate(list_paths(found.spec, ("spec",)), 2)
        return replace(found, positions={path: Position(found.position.file, line, 3) for line, path in paths})

    return {address: place_one(found) for address, found in declared.items()}


CONFLICTS = place(DECLARED)


def test_problems_of_every_sort_are_reported_as_reviewed() -> None:
    addresses = list(CONFLICTS)
    lists = [
        merge(addresses[:1], CONFLICTS)[1],
        merge([addresses[5], addresses[3]], CONFLICTS)[1],
        find_conflicts(CONFLICTS),
        find_conflicts({address: CONFLICTS[address] for address in addresses[1:]}),
    ]
    texts = ["".join(f"{problem} [{problem.code}]\n" for problem in problems) for problems in lists]
    compare_golden(Path(__file__).parent / "pages" / "agent-problems.txt", "----\n".join(texts))


@pytest.mark.parametrize("own", [(), ("base",), ("top",)])
def test_a_configuration_stands_before_those_that_it_extends(own: tuple[str, ...]) -> None:
    """Its value is the first, which the others differ from."""
    names = [Address("AgentConfig", name) for name in (*own, "left")]
    found = merge(names, CONFLICTS)[0]
    assert found.names == (*own, "left")
    assert found.options.get("log") == (False if "top" in own else "stdout")
