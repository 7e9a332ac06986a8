"""Destinations of requests as users write them."""

from __future__ import annotations

import re

import pytest

from reconciler.access.destinations import read_destination
from reconciler.access.places import Door, Region


@pytest.mark.parametrize(
    ("text", "binding", "region"),
    [
        ("https://Shop.example.com", "public", Region(Door("https", 443), "shop.example.com", "/")),
        ("https://shop.example.com:8443/admin", "public", Region(Door("https", 8443), "shop.example.com", "/admin")),
        ("http://shop.example.com/", "public", Region(Door("http", 80), "shop.example.com", "/")),
        ("tls://db.example.com", "internal", Region(Door("tls", 443, "internal"), "db.example.com")),
        ("tcp://1.tcp.example.com:5432", "public", Region(Door("tcp", 5432), "1.tcp.example.com")),
        ("dashboard", "public", Region(Door("dashboard", 0, "account"), "the dashboard")),
    ],
)
def test_a_destination_is_read_as_the_region_that_serves_it(text: str, binding: str, region: Region) -> None:
    assert read_destination(text, binding) == region


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shop.example.com", "is no URL; write a URL, or one of api, dashboard, agent"),
        ("dashbord", "is no URL; did you mean dashboard?"),
        ("htps://shop.example.com", "has an unknown scheme; did you mean https?"),
        ("https://", "names no host; write it as https://shop.example.com/admin"),
        ("https://user@shop.example.com", "names no host; write it as https://shop.example.com/admin"),
        ("https://*.example.com", "names many hosts; write one of them, as in https://any.example.com"),
        ("https://a.example.com/?a=1", "has a query or a fragment; leave it out: only host and path are compared"),
        ("https://a.example.com/#", "has a query or a fragment; leave it out: only host and path are compared"),
        ("https://a.example.com:99999", "is no valid URL; write it as https://shop.example.com:8443/admin"),
        ("tcp://a.example.com", "has no port; write it as tcp://db.example.com:5432"),
        ("tls://a.example.com/x", "has a path, which tls has not; remove the path"),
    ],
)
def test_a_destination_that_cannot_be_requested_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_destination(text)
