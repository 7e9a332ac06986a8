"""Names of access tests, which approvals and reports use."""

from __future__ import annotations

import pytest

from reconciler.model.access_test import AccessTest, Caller, Expected
from reconciler.model.problem import Position

AT = Position("tests/access.yaml", 1, 3)


@pytest.mark.parametrize(
    ("test", "name"),
    [
        (
            AccessTest(("192.0.2.1",), "https://a.example.com/x", Expected.DENY, AT),
            "GET https://a.example.com/x from 192.0.2.1",
        ),
        (AccessTest(("192.0.2.1", "::1"), "api", Expected.DENY, AT), "api from 192.0.2.1 and 1 more"),
        (
            AccessTest(("10.0.0.0/8",), "http://a", Expected.ALLOW, AT, "internal", Caller("OPTIONS", has_token=True)),
            "OPTIONS http://a (internal) from 10.0.0.0/8, with a token",
        ),
        (
            AccessTest(
                ("::/0",),
                "tls://a",
                Expected.ALLOW,
                AT,
                "public",
                Caller("GET", "partners", "google", "email", "a@b.c"),
            ),
            "tls://a from ::/0, with a client certificate of partners, signed in at google with email a@b.c",
        ),
    ],
)
def test_a_test_is_called_by_its_request(test: AccessTest, name: str) -> None:
    assert test.name == name
