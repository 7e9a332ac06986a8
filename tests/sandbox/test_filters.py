"""The filter language: its laws, and filtered lists."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.sandbox.wire import filters
from reconciler.sandbox.wire.queries import FILTERED
from tests.harness.platform import Sandbox
from tests.sandbox.account import BODIES, Account

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DOCUMENT: dict[str, Any] = {
    "name": "a",
    "count": 3,
    "share": 0.5,
    "active": True,
    "tags": ["x", "y"],
    "nothing": None,
    "certificate": {"id": "cert_1"},
    "created_at": "2026-02-22T12:00:00Z",
}


def _holds(text: str) -> bool:
    return filters.compile_filter(text, DOCUMENT, NOW)(DOCUMENT)


# --- laws -------------------------------------------------------------------------------------------------------------

Expression = tuple[str, bool]  # an expression, and its value for the document


_SIGNS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def _compare(left: int, sign: str, right: int) -> Expression:
    return f"{left} {sign} {right}", _SIGNS[sign](left, right)


_ATOMS: st.SearchStrategy[Expression] = st.one_of(
    st.sampled_from(
        [
            ("true", True),
            ("false", False),
            ("obj.active", True),
            ('obj.name == "a"', True),
            ('"z" in obj.tags', False),
            ("size(obj.tags) == 2", True),
            ("obj.nothing == null", True),
        ]
    ),
    st.builds(_compare, st.integers(0, 9), st.sampled_from(sorted(_SIGNS)), st.integers(0, 9)),
)


def _not(inner: Expression) -> Expression:
    return f"!({inner[0]})", not inner[1]


def _and(left: Expression, right: Expression) -> Expression:
    return f"({left[0]}) && ({right[0]})", left[1] and right[1]


def _or(left: Expression, right: Expression) -> Expression:
    return f"({left[0]}) || ({right[0]})", left[1] or right[1]


_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(st.builds(_not, inner), st.builds(_and, inner, inner), st.builds(_or, inner, inner)),
)


@given(_EXPRESSIONS)
def test_operators_combine_the_values_of_their_operands(expression: Expression) -> None:
    assert _holds(expression[0]) is expression[1]


@given(_ATOMS, _ATOMS, _ATOMS)
def test_and_binds_closer_than_or(a: Expression, b: Expression, c: Expression) -> None:
    assert _holds(f"{a[0]} || {b[0]} && {c[0]}") is (a[1] or (b[1] and c[1]))


@given(st.text(alphabet="obj.name()[]!&|<>='\"0a ,+-\\\n\té", max_size=60) | st.text(max_size=60))
def test_any_text_is_a_filter_or_is_refused(text: str) -> None:
    with suppress(ValueError):
        _holds(text)


@pytest.mark.parametrize("text", ["(" * 4000, "!" * 4000, "[" * 4000, "true||" * 600 + "true", "1" + "-1" * 2000])
def test_no_expression_exhausts_the_stack(text: str) -> None:
    with suppress(ValueError):
        _holds(text)


# --- supported and unsupported expressions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "obj.created_at < time.now",
        'obj.created_at < timestamp("2026-02-22T12:00:01Z")',
        'obj.created_at == timestamp("2026-02-22T13:00:00+01:00")',
        'obj.created_at >= timestamp(time.now).subtract("7d")',
        'obj.created_at > time.now - duration("168h1s")',
        'timestamp(obj.created_at).add("1h30m") < time.now',
        'obj.name in ["a", "b"]',
        "obj.name == 'a' && !(obj.count > 3)",
        "!obj.active || obj.share >= 0.5",
        'obj.certificate.id == "cert_1"',
        "obj.nothing.id == null",
        'size(obj.name) == 1 && size("") == 0',
        "obj.count > -1",
        r'"\"" != "\\"',
        "!(obj.nothing < 1)",
        "obj.name != 1 && obj.active != 1",
    ],
)
def test_the_documented_operators_work(text: str) -> None:
    assert _holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "obj",
        "obj.name",
        "obj.count",
        "obj.colour == 1",
        "name == 'a'",
        "obj.name == ",
        "obj.name == 'a' obj",
        "obj.name = 'a'",
        "1 < 2 < 3",
        "obj.name.startsWith('a')",
        "obj.tags.exists(t, t == 'x')",
        "obj.name < 1",
        "obj.name + 'b' == 'ab'",
        "size(obj.count) == 1",
        "timestamp('yesterday') < time.now",
        "timestamp('2026-01-01T00:00:00') < time.now",
        "time.now - duration('1y') < time.now",
        "time.now - duration('999999999999d') < time.now",
        "time.now.subtract('9999999d') < time.now",
        "'a' in obj.name",
        "'open == 1",
        r"'\q' == 'q'",
        "true ? 1 : 2",
        "a" * 5000,
    ],
)
def test_invalid_filters_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        _holds(text)


# --- lists ------------------------------------------------------------------------------------------------------------


def _list_filtered(sandbox: Sandbox, path: str, key: str, wanted: str) -> list[str]:
    found = sandbox.get(f"{path}?filter={quote(wanted)}")
    assert found["next_page_uri"] is None
    return [object_["id"] for object_ in found[key]]


def _kinds(wanted: Callable[[str], bool]) -> list[str]:
    """Collections of the sandbox that come in pages."""
    return sorted(kind.path for kind in kinds.every() if kind.id_prefix and kind.parent is None and wanted(kind.path))


@pytest.mark.parametrize("path", _kinds(lambda path: path in FILTERED and path in BODIES))
def test_a_filtered_list_has_the_matching_objects(sandbox: Sandbox, path: str) -> None:
    made = Account(sandbox).make(path)
    [key] = sandbox.get(path).keys() - {"uri", "next_page_uri"}
    wanted = f'obj.id == "{made["id"]}"'
    assert _list_filtered(sandbox, path, key, wanted) == [made["id"]]
    others = {object_["id"] for object_ in sandbox.get(path)[key]} - {made["id"]}
    assert set(_list_filtered(sandbox, path, key, f"!({wanted})")) == others


@pytest.mark.parametrize("path", _kinds(lambda path: path not in FILTERED))
def test_other_lists_refuse_a_filter(sandbox: Sandbox, path: str) -> None:
    assert sandbox.refusal("GET", f"{path}?filter=true") == (400, "231")


def test_a_filtered_list_is_followed_to_its_end(sandbox: Sandbox) -> None:
    made = [sandbox.post("/ip_policies", {"description": "ab"[number % 2]})["id"] for number in range(9)][::-1]
    path, pages = "/ip_policies?limit=2&filter=" + quote('obj.description == "b"'), []
    while path:
        page = sandbox.get(path)
        pages.append([policy["id"] for policy in page["ip_policies"]])
        path = page["next_page_uri"]
    assert pages == [made[1:4:2], made[5:8:2]]


def test_ephemeral_endpoints_match_the_type_agent(sandbox: Sandbox) -> None:
    sandbox.plant("/endpoints", {"type": "ephemeral", "url": "https://a.example.com"})
    [found] = _list_filtered(sandbox, "/endpoints", "endpoints", 'obj.type == "agent"')
    assert sandbox.get(f"/endpoints/{found}")["type"] == "ephemeral"


def test_endpoints_are_selected_by_id_and_by_url(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    first, second, third = (account.make("/endpoints") for _ in range(3))
    ids = f"/endpoints?id={first['id']}&id={third['id']}"
    assert [endpoint["id"] for endpoint in sandbox.get(ids)["endpoints"]] == [third["id"], first["id"]]
    assert [endpoint["id"] for endpoint in sandbox.get(f"/endpoints?url={second['url']}")["endpoints"]] == [
        second["id"]
    ]
    assert sandbox.get(f"{ids}&url={second['url']}")["endpoints"] == []
    page = sandbox.get(f"{ids}&limit=1")
    assert [endpoint["id"] for endpoint in sandbox.get(page["next_page_uri"])["endpoints"]] == [first["id"]]
