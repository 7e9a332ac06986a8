"""Lists of live objects: which columns are cut if a line does not fit."""

from __future__ import annotations

import pytest

from reconciler import kinds
from reconciler.model.snapshot import Live
from reconciler.rendering import listing
from tests.planning.builders import live, record

OWNER = "prod TLSEdge/payments-of-shop"


def edge(description: str, owner: str) -> Live:
    body = {"description": description, "created_at": "2026-03-01T04:05:06Z"}
    return live("TLSEdge", "edgtls_2ABCDEFGHIJKLMNOPQRSTUVWX", body, owner=record(owner, {}, stack="prod"))


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("description", ["pay", "Payments of all shops " * 3])
def test_the_owner_is_cut_last(width: int, description: str) -> None:
    lives = [edge(description, "TLSEdge/pay"), edge("b", "TLSEdge/payments")]
    rows = [listing.Row(kinds.get("TLSEdge"), live, "prod", "TLSEdge/payments-of-shop") for live in lives]
    one = listing.render_table(kinds.get("TLSEdge"), lives, width)
    assert "prod TLSEdge/payments" in one
    assert OWNER in listing.render_all_table(rows, width)
    for table in (one, listing.render_all_table(rows, width)):
        assert max(map(len, table.splitlines())) <= width
    assert "2026-03-01" in one or "2026-03-0…" in one
