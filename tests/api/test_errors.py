"""What answers mean, apart from the wire."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.api.errors import retry_after, sanitize

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("120", 120),
        (" 0 ", 0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("1e9", None),
        ("99999999999999999999", None),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_retry_after_in_each_form(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\nb\tc", "a b c"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\u202egnp.exe", "gnp.exe"),
        ("lone \ud800 half", "lone half"),
        ("x" * 600, "x" * 499 + "…"),
    ],
)
def test_text_from_the_platform_is_made_harmless(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_retry_after_a_date_is_counted_from_now() -> None:
    assert retry_after("Thu, 01 Jan 1970 00:00:30 GMT") == 0
    assert (retry_after("Fri, 01 Jan 2100 00:00:00 GMT") or 0) > 86_400
