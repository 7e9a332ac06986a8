"""Headers are found whatever the case of their names."""

from __future__ import annotations

from reconciler.api.headers import Headers


def test_a_header_is_found_by_its_name_in_any_case() -> None:
    headers = Headers([("Retry-After", "5"), ("x-mark", "")])
    assert (headers.get("retry-after"), headers.get("RETRY-AFTER"), headers.get("X-Mark")) == ("5", "5", "")
    assert ("Retry-after" in headers, "X-Mark" in headers, "X-Other" in headers) == (True, True, False)
    assert (headers.get("X-Other"), headers.get("X-Other", "none")) == (None, "none")


def test_the_values_of_a_repeated_header_are_joined() -> None:
    headers = Headers([("Link", "a"), ("X", "y"), ("LINK", "b")])
    assert headers.get("link") == "a, b"
