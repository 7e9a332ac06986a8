"""Failures by method, status and code of a response, without requests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.api.errors import failure_of, failure_without_answer, is_for_concurrency, retry_after, sanitize
from reconciler.engine.ports import Conflict, Failure, Gone, Lost, Refused, Transient

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
def test_retry_after_is_read_in_each_form(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "body", "text", "code"),
    [
        (400, {"msg": "no", "error_code": "ERR_NGROK_9"}, "no (status 400, ERR_NGROK_9)", "ERR_NGROK_9"),
        (400, {"msg": " a\nb "}, "a b (status 400)", ""),
        (400, {"msg": "  ", "error_code": 9}, "Bad Request (status 400)", ""),
        (400, {"msg": ["no"], "details": ["x"]}, "Bad Request (status 400)", ""),
        (400, {"msg": "no", "details": {"operation_id": "op_1"}}, "no (status 400, op_1)", ""),
        (400, {"msg": "no", "details": {"operation_id": 7}}, "no (status 400)", ""),
        (400, {"msg": "no", "details": {"operation_id": "o" * 61}}, f"no (status 400, {'o' * 59}…)", ""),
        (400, {"msg": "no", "error_code": "E" * 99}, f"no (status 400, {'E' * 59}…)", f"{'E' * 59}…"),
        (400, None, "Bad Request (status 400)", ""),
        (400, ["no"], "Bad Request (status 400)", ""),
        (499, None, "error of the platform (status 499)", ""),
        (
            407,
            None,
            "not the platform but a proxy answered: it asks for a user and password; set HTTPS_PROXY to "
            "http://user:password@host:port, or add the platform's host to NO_PROXY (status 407)",
            "",
        ),
        (
            511,
            {"msg": "Welcome to the hotel"},
            "not the platform but this network answered: it asks for a login; log in to the network, then try again "
            "(status 511)",
            "",
        ),
    ],
)
def test_the_text_of_an_error_has_status_code_and_operation(status: int, body: Any, text: str, code: str) -> None:
    failure = failure_of("GET", status, body)
    assert (type(failure), str(failure), failure.code, failure.status) == (Refused, text, code, status)


@pytest.mark.parametrize(
    ("method", "status", "code", "kind", "waits"),
    [
        ("PATCH", 400, "ERR_NGROK_446", Transient, True),
        ("PATCH", 400, "OTHER_446", Transient, True),
        ("PATCH", 400, "446", Transient, True),
        ("PATCH", 400, "ERR_NGROK_4460", Refused, False),
        ("PATCH", 400, "ERR_446_NGROK", Refused, False),
        ("PATCH", 400, "ERR_NGROK", Refused, False),
        ("PATCH", 403, "ERR_NGROK_446", Refused, False),
        ("POST", 400, "ERR_NGROK_446", Transient, True),
        ("POST", 429, "", Transient, True),
        ("POST", 425, "", Transient, True),
        ("PATCH", 408, "", Transient, True),
        ("POST", 408, "", Lost, False),
        ("PATCH", 499, "", Refused, False),
        ("PATCH", 500, "", Transient, True),
        ("POST", 500, "", Lost, False),
        ("POST", 599, "", Lost, False),
        ("POST", 501, "", Refused, False),
        ("POST", 505, "", Refused, False),
        ("POST", 504, "", Lost, False),
        ("POST", 506, "", Lost, False),
        ("GET", 404, "", Gone, False),
        ("GET", 410, "", Gone, False),
        ("GET", 409, "", Conflict, False),
        ("GET", 412, "", Conflict, False),
        ("GET", 411, "", Refused, False),
    ],
)
def test_method_status_and_code_decide_whether_a_request_is_repeated(
    method: str, status: int, code: str, kind: type[Failure], waits: bool
) -> None:
    """Only a failure that may be retried has the wait that the platform requested."""
    failure = failure_of(method, status, {"error_code": code, "msg": "no"}, retry_after=7.0)
    assert (type(failure), failure.code, failure.status) == (kind, code, status)
    assert (isinstance(failure, Transient) and failure.retry_after == 7.0) is waits
    assert str(failure).endswith("; outcome unknown") is (kind is Lost)


@pytest.mark.parametrize(
    ("method", "sent", "kind"),
    [("POST", True, Lost), ("DELETE", True, Lost), ("GET", True, Transient), ("POST", False, Transient)],
)
def test_the_outcome_of_a_change_without_a_response_is_unknown(method: str, sent: bool, kind: type[Failure]) -> None:
    failure = failure_without_answer(method, "reset", sent=sent)
    assert (type(failure), str(failure)) == (kind, "reset")


@pytest.mark.parametrize("length", [59, 60, 61])
def test_only_a_text_beyond_the_limit_is_shortened(length: int) -> None:
    assert sanitize("x" * length, 60) == ("x" * length if length <= 60 else "x" * 59 + "…")


def test_a_date_without_a_time_zone_is_read_as_utc() -> None:
    assert retry_after("Thu, 01 Jan 2026 12:00:30 -0000", NOW) == 30
    assert retry_after("Thu, 01 Jan 2026 13:00:30 +0100", NOW) == 30
    assert retry_after("2.5", NOW) == 2.5


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_control_characters_of_a_text_are_removed(text: str, expected: str) -> None:
    assert sanitize(text) == expected


def test_retry_after_a_date_is_counted_from_now() -> None:
    assert retry_after("Thu, 01 Jan 1970 00:00:30 GMT") == 0
    assert (retry_after("Fri, 01 Jan 2100 00:00:00 GMT") or 0) > 86_400


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [(429, "ERR_NGROK_225", True), (429, "ERR_NGROK_226", False), (429, "", False), (400, "ERR_NGROK_225", False)],
)
def test_a_429_for_concurrent_requests_is_distinguished_from_other_limits(
    status: int, code: str, expected: bool
) -> None:
    assert is_for_concurrency(failure_of("GET", status, {"error_code": code})) is expected
