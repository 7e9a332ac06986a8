"""Health as a line of text."""

from __future__ import annotations

import pytest

from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.rendering.health_text import format_row
from reconciler.rendering.plan.health_section import headline

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


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("length", [179, 180, 181])
def test_a_headline_names_the_first_degraded_object_in_180_characters(length: int, number: int) -> None:
    name = "Kind/" + "a" * (length - len("Kind/ is degraded"))
    text = f"{name} is degraded" if length <= 180 else f"{name} is degrade"[:179] + "…"
    more = {0: "", 1: ", and 1 more object", 2: ", and 2 more objects"}[number]
    rows = [HealthRow(name if place == 0 else f"Kind/b{place}", "", DNS) for place in range(number + 1)]
    assert headline([HealthRow("Kind/0", "", Health(State.UNKNOWN)), *rows]) == text + more
    assert headline([HealthRow("Kind/0", "", Health(State.UNKNOWN))]) == ""
