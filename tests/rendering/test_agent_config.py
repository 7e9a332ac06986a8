"""The configuration file of an agent: it contains what is declared, merged from several declarations."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Position
from reconciler.model.value import Secret
from reconciler.rendering.agent_config import find_regional_domain, merge, render_file

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=12).filter(lambda name: name[0].isalnum())
TUNNELS = st.dictionaries(
    NAMES,
    st.fixed_dictionaries(
        {"proto": st.sampled_from(["http", "tls"]), "addr": st.sampled_from(["80", "8080", "no", "1e3", "web:80"])},
        optional={"domain": st.sampled_from(["a.example.com", "b.example.com"]), "inspect": st.booleans()},
    ),
    max_size=4,
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


@given(TUNNELS, st.sampled_from([None, "2", "3"]))
def test_a_file_is_read_back_as_the_declaration(tunnels: dict[str, Any], version: str | None) -> None:
    spec = {"authtoken": TOKEN, "tunnels": tunnels, **({"version": version} if version else {})}
    read = whole(declare(berlin=spec), "berlin")
    assert read.pop("tunnels", {}) == tunnels
    assert read == {"version": version or "2", "authtoken": TOKEN.reveal(), "server_addr": "eu.example.com:443"}


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
