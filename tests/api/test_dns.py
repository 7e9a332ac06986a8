"""Questions to name servers that are processes on loopback addresses: delegation from the root, and answers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.api import dns
from reconciler.api.dns import Server, Settings
from reconciler.model.dns import Answer, Evidence, Reply
from tests.harness.name_server import free_port, name_server

ROOT_ZONE = """
. 60 IN SOA a.root. hostmaster.root. 1 60 60 60 60
com. 60 IN NS a.com-servers.com.
a.com-servers.com. 60 IN A 127.0.0.2
net. 60 IN NS a.com-servers.com.
test. 60 IN NS nowhere.test.
"""
COM_ZONE = """
com. 60 IN SOA a.com-servers.com. hostmaster.com. 1 60 60 60 60
com. 60 IN NS a.com-servers.com.
a.com-servers.com. 60 IN A 127.0.0.2
example.com. 60 IN NS ns1.dns-host.net.
example.com. 60 IN NS ns2.example.com.
ns2.example.com. 60 IN A 127.0.0.4
lame.com. 60 IN NS ns1.lame.com.
ns1.lame.com. 60 IN A 127.0.0.3
half.com. 60 IN NS ns2.example.com.
half.com. 60 IN NS ns9.half.com.
ns9.half.com. 60 IN A 127.0.0.9
ring.com. 60 IN NS ns.gnir.com.
gnir.com. 60 IN NS ns.ring.com.
"""
NET_ZONE = """
net. 60 IN SOA a.com-servers.com. hostmaster.com. 1 60 60 60 60
dns-host.net. 60 IN NS a.com-servers.com.
"""
HOST_ZONE = """
dns-host.net. 60 IN SOA a.com-servers.com. hostmaster.com. 1 60 60 60 60
ns1.dns-host.net. 60 IN A 127.0.0.3
"""
EXAMPLE = """
example.com. 60 IN SOA ns1.dns-host.net. hostmaster.example.com. 1 60 60 60 60
example.com. 60 IN NS ns1.dns-host.net.
example.com. 60 IN NS ns2.example.com.
example.com. 60 IN CAA 0 issue "letsencrypt.org"
shop.example.com. 60 IN CNAME Abc.cname.Platform.example.
*.apps.example.com. 60 IN CNAME wild.cname.platform.example.
www.example.com. 60 IN A 192.0.2.1
agents.example.com. 60 IN NS ns-1.agent.platform.example.
agents.example.com. 60 IN NS ns-2.agent.platform.example.
inner.example.com. 60 IN NS ns2.example.com.
ns2.example.com. 60 IN A 127.0.0.4
"""
INNER = """
inner.example.com. 60 IN SOA ns2.example.com. hostmaster.example.com. 1 60 60 60 60
inner.example.com. 60 IN NS ns2.example.com.
shop.inner.example.com. 60 IN CNAME inner.cname.platform.example.
"""
HALF = """
half.com. 60 IN SOA ns2.example.com. hostmaster.example.com. 1 60 60 60 60
shop.half.com. 60 IN CNAME abc.cname.platform.example.
"""
SHOP = Answer("", Reply.FOUND, ("abc.cname.platform.example",))


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A root, a registry, and the servers of zones, each a process of its own."""
    folder, port = tmp_path_factory.mktemp("zones"), free_port()

    def write(name: str, text: str) -> Path:
        file = folder / name
        file.write_text(text, encoding="utf-8")
        return file

    com = {"com.": COM_ZONE, "net.": NET_ZONE, "dns-host.net.": HOST_ZONE}
    second = {"example.com.": EXAMPLE, "inner.example.com.": INNER, "half.com.": HALF}
    with contextlib.ExitStack() as running:
        for address, zones in (
            ("127.0.0.1", {".": ROOT_ZONE}),
            ("127.0.0.2", com),
            ("127.0.0.3", {"example.com.": EXAMPLE}),
            ("127.0.0.4", second),
        ):
            files = {origin: write(f"{address}-{origin}zone", text) for origin, text in zones.items()}
            running.enter_context(name_server(address, port, files))
        yield Settings(roots=("127.0.0.1",), port=port, seconds=0.5)


def ask(settings: Settings, *questions: tuple[str, str]) -> Evidence:
    return asyncio.run(dns.observe(questions, settings))


def from_servers(answer: Answer, *servers: str) -> list[Answer]:
    return [Answer(server, answer.reply, answer.values, answer.why) for server in servers]


BOTH = ("ns1.dns-host.net", "ns2.example.com")


def test_each_server_that_the_zone_above_names_is_queried(internet: Settings) -> None:
    found = ask(internet, ("shop.example.com", "CNAME"), ("nothing.example.com", "CNAME"))
    assert found.of("shop.example.com", "CNAME") == from_servers(SHOP, *BOTH)
    assert found.of("nothing.example.com", "CNAME") == from_servers(Answer("", Reply.ABSENT), *BOTH)


def test_a_wildcard_is_queried_by_its_name_and_found_for_the_names_below_it(internet: Settings) -> None:
    found = ask(internet, ("*.apps.example.com", "CNAME"), ("deep.shop.apps.example.com", "CNAME"))
    wild = Answer("", Reply.FOUND, ("wild.cname.platform.example",))
    assert found.of("*.apps.example.com", "CNAME") == from_servers(wild, *BOTH)
    assert found.of("deep.shop.apps.example.com", "CNAME") == from_servers(wild, *BOTH)


def test_a_zone_inside_of_another_is_queried_itself_even_if_one_server_has_both(internet: Settings) -> None:
    found = ask(internet, ("shop.inner.example.com", "CNAME"))
    assert found.of("shop.inner.example.com", "CNAME") == [
        Answer("ns2.example.com", Reply.FOUND, ("inner.cname.platform.example",))
    ]


def test_a_delegation_is_queried_of_the_zone_above_it(internet: Settings) -> None:
    found = ask(internet, ("agents.example.com", "NS"), ("shop.example.com", "NS"))
    targets = ("ns-1.agent.platform.example", "ns-2.agent.platform.example")
    assert found.of("agents.example.com", "NS") == from_servers(Answer("", Reply.FOUND, targets), *BOTH)
    assert found.of("shop.example.com", "NS") == from_servers(Answer("", Reply.ABSENT), *BOTH)


def test_types_that_a_name_with_an_alias_does_not_have_are_absent(internet: Settings) -> None:
    found = ask(internet, ("shop.example.com", "A"), ("www.example.com", "A"), ("example.com", "CAA"))
    assert found.of("shop.example.com", "A") == from_servers(Answer("", Reply.ABSENT), *BOTH)
    assert found.of("www.example.com", "A") == from_servers(Answer("", Reply.FOUND, ("192.0.2.1",)), *BOTH)
    caa = Answer("", Reply.FOUND, ('0 issue "letsencrypt.org"',))
    assert found.of("example.com", "CAA") == from_servers(caa, *BOTH)


def test_a_server_that_does_not_answer_is_unknown_and_the_others_are_queried(internet: Settings) -> None:
    found = ask(internet, ("shop.half.com", "CNAME"))
    first, second = found.of("shop.half.com", "CNAME")
    assert first == from_servers(SHOP, "ns2.example.com")[0]
    assert (second.server, second.reply) == ("ns9.half.com", Reply.UNKNOWN)
    assert second.why


def test_a_lame_delegation_is_unknown_and_not_absent(internet: Settings) -> None:
    found = ask(internet, ("shop.lame.com", "CNAME"))
    assert not found.answers
    assert found.unreachable == {"shop.lame.com": "ns1.lame.com: it answered REFUSED"}


@pytest.mark.parametrize("name", ["shop.ring.com", "shop.test", "test"])
def test_servers_without_an_address_end_the_search(internet: Settings, name: str) -> None:
    found = ask(internet, (name, "CNAME"))
    assert not found.answers
    assert "address" in found.unreachable[name] or "depend on each other" in found.unreachable[name]


def test_a_name_below_no_zone_is_absent_at_the_registry(internet: Settings) -> None:
    found = ask(internet, ("shop.unregistered.com", "CNAME"))
    assert found.of("shop.unregistered.com", "CNAME") == [Answer("a.com-servers.com", Reply.ABSENT)]


def test_without_a_network_nothing_is_known() -> None:
    began = time.monotonic()
    found = ask(Settings(roots=("127.0.0.77",), port=free_port(), seconds=0.2), ("shop.example.com", "CNAME"))
    assert not found.answers
    assert found.unreachable["shop.example.com"].startswith("the root: ")
    assert time.monotonic() - began < 3


# --- one server -------------------------------------------------------------------------------------------------------


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    file = tmp_path / "example.com.zone"
    file.write_text(EXAMPLE, encoding="utf-8")
    return file


def ask_one(zone: Path, *faults: str, name: str = "shop.example.com", type: str = "CNAME") -> Answer:
    port = free_port()
    with name_server("127.0.0.1", port, {"example.com.": zone}, *faults):
        settings = Settings(only=Server("mine", ("127.0.0.1",), port), seconds=0.5)
        found = ask(settings, (name, type))
    (answer,) = found.of(name, type)
    return answer


def test_a_named_server_is_queried_instead_of_those_of_the_zone(zone: Path) -> None:
    assert ask_one(zone) == Answer("mine", Reply.FOUND, SHOP.values)


def test_an_answer_that_is_too_long_for_udp_is_queried_for_by_tcp(zone: Path) -> None:
    assert ask_one(zone, "--stingy") == Answer("mine", Reply.FOUND, SHOP.values)


def test_a_silent_server_is_unknown(zone: Path) -> None:
    assert ask_one(zone, "--mute") == Answer("mine", Reply.UNKNOWN, why="no answer within 0.5 s")


def test_an_answer_of_a_server_that_is_not_responsible_is_unknown(zone: Path) -> None:
    """As of a cache, which may be out of date."""
    lame = Answer("mine", Reply.UNKNOWN, why="it is not responsible for shop.example.com")
    assert ask_one(zone, "--lame") == lame
    assert ask_one(zone, name="shop.example.org") == Answer("mine", Reply.UNKNOWN, why="it answered REFUSED")


def test_a_closed_port_and_an_unknown_host_are_unknown() -> None:
    closed = Settings(only=Server("mine", ("127.0.0.1",), free_port()), seconds=0.3)
    (answer,) = ask(closed, ("shop.example.com", "CNAME")).of("shop.example.com", "CNAME")
    assert (answer.reply, bool(answer.why)) == (Reply.UNKNOWN, True)
    unknown = Settings(only=Server("ns.invalid", ("ns.invalid",)), seconds=0.3)
    assert ask(unknown, ("shop.example.com", "CNAME")).unreachable["shop.example.com"].startswith("ns.invalid: ")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("ns1.example.net", "ns1.example.net", 53),
        ("127.0.0.1:5353", "127.0.0.1", 5353),
        ("[::1]:5353", "::1", 5353),
        ("[::1]", "::1", 53),
        ("2001:db8::53", "2001:db8::53", 53),
    ],
)
def test_a_name_server_is_a_host_with_or_without_a_port(text: str, host: str, port: int) -> None:
    assert dns.parse_server(text) == Server(text, (host,), port)


@pytest.mark.parametrize("text", ["", ":53", "ns1:0", "ns1:65536", "ns1:dns", "127.0.0.1:"])
def test_any_other_name_server_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="write HOST or HOST:PORT"):
        dns.parse_server(text)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dns", None)
    monkeypatch.setitem(sys.modules, "dns.asyncquery", None)
    with pytest.raises(dns.MissingLibrary, match=r"install the extra `reconciler\[dns\]`"):
        ask(Settings(), ("shop.example.com", "CNAME"))
