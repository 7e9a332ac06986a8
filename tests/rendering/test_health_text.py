"""Health as a line of text."""

from __future__ import annotations

import pytest

from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.rendering.health_text import format_row

DNS = Health(State.DEGRADED, "the certificate waits for DNS", "set shop.example.com CNAME x.example", Actor.ZONE_OWNER)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            HealthRow("ReservedDomain/shop", "rd_1", DNS),
            "ReservedDomain/shop: the certificate waits for DNS"
            " (the owner of the DNS zone acts: set shop.example.com CNAME x.example)",
        ),
        (
            HealthRow("", "rd_1", Health(State.PROGRESSING, "it is being obtained", actor=Actor.PLATFORM)),
            "rd_1: it is being obtained (the platform acts)",
        ),
        (HealthRow("Kind/a", "1", Health(State.UNKNOWN)), "Kind/a: unknown"),
        (HealthRow("Kind/a", "1", Health(State.DEGRADED, "it is off", "turn it on")), "Kind/a: it is off (turn it on)"),
    ],
)
def test_a_line_names_the_object_why_and_who_acts(row: HealthRow, text: str) -> None:
    assert format_row(row) == text
