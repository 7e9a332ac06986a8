"""Lists of live objects: which columns are truncated if a line does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler import kinds
from reconciler.model.snapshot import Live
from reconciler.model.value import Json
from reconciler.rendering import listing
from tests.harness.builders import live, record
from tests.harness.golden import compare_golden

OWNER = "prod TLSEdge/payments-of-shop"


def edge(description: str, owner: str) -> Live:
    body = {"description": description, "created_at": "2026-03-01T04:05:06Z"}
    return live("TLSEdge", "edgtls_2ABCDEFGHIJKLMNOPQRSTUVWX", body, owner=record(owner, {}, stack="prod"))


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("description", ["pay", "Payments of all shops " * 3])
def test_the_owner_is_never_truncated(width: int, description: str) -> None:
    lives = [edge(description, "TLSEdge/pay"), edge("b", "TLSEdge/payments")]
    rows = [listing.Row(kinds.get("TLSEdge"), live, "prod", "TLSEdge/payments-of-shop") for live in lives]
    one = listing.render_table(kinds.get("TLSEdge"), lives, width)
    assert "prod TLSEdge/payments" in one
    assert OWNER in listing.render_all_table(rows, width)
    for table in (one, listing.render_all_table(rows, width)):
        assert max(map(len, table.splitlines())) <= width


@pytest.mark.parametrize("width", range(62, 110))
def test_a_creation_time_is_shown_whole_or_as_its_date_and_never_truncated(width: int) -> None:
    table = listing.render_table(kinds.get("TLSEdge"), [edge("Payments of the shop", "TLSEdge/pay")], width)
    head, line = table.splitlines()
    column = head.find("CREATED")
    assert column == -1 or line[column:] in ("2026-03-01", "2026-03-01T04:05:06Z")
    assert column >= 0 or width < 75


@pytest.mark.parametrize("width", [20, 40, 60])
def test_in_a_narrow_terminal_the_owner_is_on_a_line_of_its_own(width: int) -> None:
    lives = [edge("Payments of all shops", "TLSEdge/payments-of-shop")]
    rows = [listing.Row(kinds.get("TLSEdge"), live, "prod", "TLSEdge/payments-of-shop") for live in lives]
    for table in (listing.render_table(kinds.get("TLSEdge"), lives, width), listing.render_all_table(rows, width)):
        assert table.splitlines()[1] == "      MANAGED BY"
        assert table.splitlines()[-1] == f"      {OWNER}"
        assert "edgtls_2ABCDEFGHIJKLMNOPQRSTUVWX  Payments" in table.splitlines()[-2]


def test_the_date_is_omitted_when_the_owner_does_not_fit() -> None:
    kind = kinds.get("HTTPSEdgeRoute")
    body = {"match": "/" + "a" * 50, "match_type": "path_prefix", "created_at": "2026-03-01T04:05:06Z"}
    owner = record("HTTPSEdgeRoute/checkout", {}, stack="prod")
    lives = [
        live(
            "HTTPSEdgeRoute",
            "edghtsrt_2ABCDEFGHIJKLMNOPQRSTUVWXYZ0",
            body,
            owner=owner,
            parent="edghts_2ABCDEFGHIJKLMNOPQRSTUVWXYZ0",
        )
    ]
    table = listing.render_table(kind, lives, 80)
    assert table.splitlines()[-1] == "      prod HTTPSEdgeRoute/checkout"
    assert "CREATED" not in table
    assert "CREATED" in listing.render_table(kind, lives, 160)


@pytest.mark.parametrize(
    ("stack", "address", "owner"),
    [
        ("", "", None),
        ("web", "", {"stack": "web", "address": None}),  # only its owner record names the stack
        ("web", "IPPolicy/a", {"stack": "web", "address": "IPPolicy/a"}),
    ],
)
def test_an_object_has_the_owner_that_is_known(stack: str, address: str, owner: object) -> None:
    row = listing.Row(kinds.get("IPPolicy"), Live("IPPolicy", "ipp_1", {"id": "ipp_1"}), stack, address)
    (found,) = json.loads(listing.render_all_json([row], {}))["objects"]
    assert found["owner"] == owner


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"description": "Office"}, "Office"),
        ({"name": "a\nb", "description": "Office"}, "Office"),
        ({"name": "", "hostports": ["a:1", "b:2"], "description": "Office"}, "a:1 b:2"),
        ({"name": 7, "domain": "a.example.com"}, "a.example.com"),
        ({}, ""),
    ],
)
def test_an_object_is_described_by_its_first_text_of_one_line(body: dict[str, Json], name: str) -> None:
    assert listing._describe(kinds.get("IPPolicy"), body) == name


def test_tables_have_the_expected_columns() -> None:
    time = "2026-03-01T04:05:06Z"
    bodies: list[dict[str, Json]] = [
        {"description": "Office", "created_at": time},
        {"description": "started", "started_at": time},
        {"description": "both", "created_at": time, "started_at": "2025-01-01T00:00:00Z"},
        {"description": "x" * 70},
        {},
    ]
    lives = [
        live("TLSEdge", f"edgtls_{place}", body, owner=record(f"TLSEdge/e{place}", {}) if place % 2 else None)
        for place, body in enumerate(bodies)
    ]
    edges = kinds.get("TLSEdge")
    rows = [
        listing.Row(edges, live, "prod" if place % 2 else "", f"TLSEdge/e{place}" if place % 2 else "")
        for place, live in enumerate(lives)
    ]
    tables = [listing.render_table(edges, lives, width) for width in (50, 75, 160)]
    tables += [listing.render_all_table(rows, width) for width in (50, 90, 160)]
    tables += [listing.render_all_json(rows[:2], {"TLSEdge": "refused"}), listing.render_all_table([], 80)]
    compare_golden(Path(__file__).parent / "pages" / "listing.txt", "\n".join(f"{table}----\n" for table in tables))


def test_each_run_of_objects_of_a_kind_has_a_heading_with_the_number_of_all() -> None:
    rows = [
        listing.Row(kinds.get(name), live(name, f"id_{place}", {}))
        for place, name in enumerate(("TLSEdge", "TLSEdge", "IPPolicy", "TLSEdge"))
    ]
    lines = listing.render_all_table(rows, 80).splitlines()
    assert lines[1:] == ["TLSEdge (3)", "  id_0", "  id_1", "IPPolicy (1)", "  id_2", "TLSEdge (3)", "  id_3"]
