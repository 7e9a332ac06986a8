"""The creation time of an object, by which its age counts."""

from __future__ import annotations

import pytest

from reconciler.planning.deciding.rotation import read_creation_time
from tests.planning.builders import live


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02T00:00:00Z", 86_400.0),
        ("1970-01-02T01:00:00+01:00", 86_400.0),
        ("1970-01-02T00:00:00.500Z", 86_400.5),
        ("1970-01-02T00:00:00", None),  # no time zone: nobody knows when
        ("yesterday", None),
        ("", None),
        (None, None),
        (86_400, None),
    ],
)
def test_a_creation_time_counts_only_if_it_is_a_moment(text: object, seconds: float | None) -> None:
    assert read_creation_time(live("TunnelCredential", "cr_1", {"created_at": text})) == seconds
    assert read_creation_time(live("TunnelCredential", "cr_1")) is None
