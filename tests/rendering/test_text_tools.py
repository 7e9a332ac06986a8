"""Numbers, times and durations as text."""

from __future__ import annotations

import pytest

from reconciler.rendering import text_tools


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "less than a second"),
        (0.9, "less than a second"),
        (1, "1 second"),
        (59.9, "59 seconds"),
        (60, "1 minute"),
        (119, "1 minute"),
        (120, "2 minutes"),
        (3599, "59 minutes"),
        (3599.9, "59 minutes"),
        (3600, "1 hour"),
        (7200, "2 hours"),
        (86399, "23 hours"),
        (86400, "1 day"),
        (3 * 86400 + 5, "3 days"),
    ],
)
def test_a_duration_is_described_in_its_largest_unit(seconds: float, text: str) -> None:
    assert text_tools.format_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.2, "1 s"),
        (99, "99 s"),
        (100, "2 min"),
        (99 * 60, "99 min"),
        (100 * 60, "1 h 40 min"),
        (47 * 3600, "47 h"),
        (52 * 3600, "2 d 4 h"),
        (48 * 3600, "2 d"),
        (-1, "0 s"),
        (1.4, "1 s"),
        (1.6, "2 s"),
        (99.6, "100 s"),
        (101, "2 min"),
        (150, "2 min"),
        (151, "3 min"),
        (6000 - 31, "99 min"),
        (2 * 3600, "2 h"),
        (48 * 3600 - 60, "47 h 59 min"),
        (48 * 3600 + 59 * 60, "2 d"),
        (49 * 3600, "2 d 1 h"),
    ],
)
def test_seconds_are_described_in_at_most_two_units(seconds: float, text: str) -> None:
    assert text_tools.format_seconds(seconds) == text


def test_numbers_have_the_plural_of_their_noun() -> None:
    assert [text_tools.count(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert text_tools.count(2, "policy", "policies") == "2 policies"


def test_a_time_is_in_utc() -> None:
    assert text_tools.format_time(1_772_337_900) == "2026-03-01 04:05 UTC"


def test_numbers_of_rows_that_are_left_out_have_commas() -> None:
    assert [text_tools.count_more(number, "row") for number in (1, 2, 1200)] == [
        "1 more row",
        "2 more rows",
        "1,200 more rows",
    ]
    assert text_tools.count_omitted(1, "row") == "… and 1 more row; --format json lists all of them"
