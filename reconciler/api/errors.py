"""Maps an error response to one of the engine's failures, by status, error code and body.

Only this module decides which statuses and codes may be retried. Texts of the platform are sanitized before they are
shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from reconciler.engine.ports import Conflict, Failure, Gone, Lost, Refused, Transient
from reconciler.model.value import Json

CLEARS = frozenset({446, 511, 18016, 18017, 381, 7122})
"""Codes of a 400 that is caused by the state of another object and may be retried: domain still attached, dangling
CNAME, pooling being changed, hostport still in use."""


class Unreachable(Transient):
    """No connection could be opened. Before the first response this means that the address is probably wrong."""


_NOT_YET = (HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)  # rejected before processing: not done
_PERMANENT = (
    HTTPStatus.NOT_IMPLEMENTED,
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
    HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED,
)
_TOO_MANY_AT_ONCE = 225  # the code of a 429 for the number of concurrent requests
_LONGEST = 500  # characters of a text of the platform; the longest known message has half of that


def failure_of(method: str, status: int, body: Json, *, retry_after: float | None = None) -> Failure:
    """The Failure for a status other than 2xx, for a request of this method."""
    code = _code(body)
    text = _text(status, body, code)
    match status:
        case 404 | 410:
            return Gone(text, code=code, status=status)
        case 409 | 412:
            return Conflict(text, code=code, status=status)
        case 400 if _number(code) in CLEARS:
            return Transient(text, code=code, status=status, retry_after=retry_after)
        case _ if status in _NOT_YET:
            return Transient(text, code=code, status=status, retry_after=retry_after)
        case _ if (status == HTTPStatus.REQUEST_TIMEOUT or status >= 500) and status not in _PERMANENT:
            if method == "POST":
                return Lost(f"{text}; outcome unknown", code=code, status=status)
            return Transient(text, code=code, status=status, retry_after=retry_after)
    return Refused(text, code=code, status=status)


def failure_without_answer(method: str, text: str, *, sent: bool) -> Failure:
    """The Failure for a missing response. `sent`: the request may have reached the platform."""
    return Lost(text) if sent and method != "GET" else Transient(text)


def is_for_concurrency(failure: Failure) -> bool:
    """Whether the platform refused a request because too many others were running."""
    return failure.status == 429 and _number(failure.code) == _TOO_MANY_AT_ONCE


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The seconds of a Retry-After header, which is a number or a date; None for anything else."""
    if value is None:
        return None
    if re.fullmatch(r"\s*\d{1,9}(\.\d+)?\s*", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError, TypeError, IndexError):  # for invalid dates it raises any of these
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def sanitize(text: str, longest: int = _LONGEST) -> str:
    """A text of the platform on one line, without control characters and escape sequences, shortened to `longest`."""
    plain = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?", "", text)
    plain = "".join(" " if unicodedata.category(char) in _UNPRINTED else char for char in plain)
    plain = " ".join(plain.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


_UNPRINTED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


_OF_PROXY: dict[int, str] = {
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "a proxy answered: it asks for a user and password; set HTTPS_PROXY to "
    "http://user:password@host:port, or add the platform's host to NO_PROXY",
    HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED: "this network answered: it asks for a login; log in to the network, "
    "then try again",
}


def _text(status: int, body: Json, code: str) -> str:
    message = body.get("msg") if isinstance(body, Mapping) else None
    text = sanitize(message) if isinstance(message, str) and message.strip() else _phrase(status)
    if status in _OF_PROXY:
        text = f"not the platform but {_OF_PROXY[status]}"
    details = body.get("details") if isinstance(body, Mapping) else None
    operation = details.get("operation_id") if isinstance(details, Mapping) else None
    marks = [f"status {status}", code, sanitize(operation, 60) if isinstance(operation, str) else ""]
    return f"{text} ({', '.join(mark for mark in marks if mark)})"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "error of the platform"


def _code(body: Json) -> str:
    code = body.get("error_code") if isinstance(body, Mapping) else None
    return sanitize(code, 60) if isinstance(code, str) else ""


def _number(code: str) -> int | None:
    """The number of an error code: 446 for `ERR_NGROK_446`, with any prefix."""
    digits = re.search(r"(\d+)$", code)
    return int(digits[1]) if digits else None
