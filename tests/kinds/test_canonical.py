"""Canonical forms: idempotent, equal for equivalent values, and defined for any value."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.kinds.rules import canonical
from reconciler.model.value import Json

FORMS: list[Callable[[Json], Json]] = [
    canonical.host,
    canonical.hostport,
    canonical.url,
    canonical.scheme,
    canonical.pem,
    canonical.ssh_key,
    canonical.instant,
    canonical.cidr,
    canonical.acl,
    canonical.headers,
    canonical.word,
    canonical.policy,
]

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
likely = st.one_of(
    st.text(alphabet="aA.: \t/*[]=@#?-0\uff11", max_size=14),
    st.from_regex(r"\s*(HTTPS?|tcp|tls)://[aB.]{1,5}(:(443|80|1))?/{0,2} ?", fullmatch=True),
    st.from_regex(r"[0-2]{1,3}\.0\.1\.[0-9]{1,2}/[0-9]{1,2}", fullmatch=True),
    st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()),
    st.fixed_dictionaries(
        {"on_http_request": st.lists(st.fixed_dictionaries({"expressions": st.just([]), "name": st.text(max_size=2)}))}
    ),
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@given(value=likely | plain)
@example(value="0001-01-01T00:00:00+14:00")
@example(value="https://[::1]:443/")
@example(value=". .")
def test_a_canonical_form_is_its_own_canonical_form(form: Callable[[Json], Json], value: Json) -> None:
    once = form(value)
    assert form(once) == once


@given(value=plain)
def test_member_accepts_any_value(value: Json) -> None:
    assert canonical.member(value) == (canonical.member(value) if isinstance(value, dict) else value)


near_networks = st.ip_addresses(v=4).flatmap(
    lambda address: st.sampled_from(
        [f"{address}/{length}" for length in range(35)]
        + [str(ipaddress.ip_network(f"{address}/{length}", strict=False)) for length in range(33)]
        + [f"0{address}/32", f"{address}/032", f"{address}/32 ", f"{address}", f"{address}.0/32"]
    )
)


@given(text=near_networks)
@example(text="\uff11.0.0.0/8")
@example(text="256.0.0.0/8")
def test_a_plain_network_is_spelled_as_by_the_standard_library(text: str) -> None:
    try:
        spelt = str(ipaddress.ip_network(text)) if "/" in text else ""
    except ValueError:
        spelt = ""
    assert canonical.is_plain_network(text) == (spelt == text)


Form = Callable[[Json], Json]

SAME: dict[Form, list[tuple[Json, Json]]] = {
    canonical.host: [("App.Example.com.", "app.example.com")],
    canonical.hostport: [("App.Example.com.:443", "app.example.com:443")],
    canonical.url: [
        ("HTTPS://App.Example.com", "https://app.example.com"),
        ("https://app.example.com:443", "https://app.example.com"),
        ("http://app.example.com:80", "http://app.example.com"),
        ("tls://app.example.com:443/", "tls://app.example.com"),
    ],
    canonical.cidr: [("2001:DB8:0::/32", "2001:db8::/32"), (" 10.0.0.0/8", "10.0.0.0/8")],
    canonical.instant: [
        ("2030-01-01T02:00:00+02:00", "2030-01-01T00:00:00Z"),
        ("2030-01-01t00:00:00.5z", "2030-01-01T00:00:00Z"),
    ],
    canonical.pem: [
        ("-----BEGIN X-----\r\n AAAA \r\n-----END X-----\r\n\r\n", "-----BEGIN X-----\nAAAA\n-----END X-----")
    ],
    canonical.ssh_key: [("ssh-ed25519 AAAA me@laptop", "ssh-ed25519  AAAA")],
    canonical.acl: [(["bind:a.example.com", "*"], [])],
    canonical.headers: [({"Content-Type": "text/plain"}, {"content-type": "text/plain"})],
    canonical.word: [("TWILIO", "twilio")],
    canonical.policy: [
        ('{"on_http_request": [{"actions": [{"type": "deny"}]}]}', "on_http_request:\n- actions:\n  - type: deny\n"),
        ({"on_http_request": [], "on_http_response": None}, {}),
        ({"on_http_request": [{"name": "", "expressions": [], "actions": []}]}, {"on_http_request": [{"actions": []}]}),
    ],
}

FALSY: list[Json] = [False, 0, "", {}]
DIFFERENT: dict[Form, list[tuple[Json, Json]]] = {
    canonical.url: [("https://app.example.com", "http://app.example.com"), ("tcp://a.b:443", "tcp://a.b:444")],
    canonical.cidr: [("10.0.0.0/8", "10.0.0.0/9")],
    canonical.instant: [("2030-01-01T00:00:00Z", "2030-01-01T00:00:01Z")],
    canonical.pem: [("-----BEGIN X-----\nAAAA\n-----END X-----", "-----BEGIN X-----\nAAAB\n-----END X-----")],
    canonical.acl: [(["bind:a.example.com"], [])],
    canonical.policy: [
        ("on_http_request: [{actions: [{type: deny}]}]", "on_http_response: [{actions: [{type: deny}]}]"),
        ("not: a\npolicy", "not: another"),
        *(({"enabled": value}, {}) for value in [*FALSY, [], None]),
        *(({"on_http_request": value}, {}) for value in FALSY),
    ],
}


@pytest.mark.parametrize(("form", "pair"), [(form, pair) for form, pairs in SAME.items() for pair in pairs])
def test_equivalent_values_have_the_same_canonical_form(form: Callable[[Json], Json], pair: tuple[Json, Json]) -> None:
    assert form(pair[0]) == form(pair[1])


@pytest.mark.parametrize(("form", "pair"), [(form, pair) for form, pairs in DIFFERENT.items() for pair in pairs])
def test_different_values_have_different_canonical_forms(form: Callable[[Json], Json], pair: tuple[Json, Json]) -> None:
    assert form(pair[0]) != form(pair[1])


def test_only_members_that_are_set_count() -> None:
    assert canonical.member({"metrics": {"api_key": "x"}, "logs": None}) == ["metrics"]
