"""Access tests of a project: which requests are expected to get through, and the result of each test."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from reconciler.model.problem import Position, Severity

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CORS preflight")
ATTRIBUTES: Final = ("email", "domain", "team", "organization", "group")  # of a person: a test has one of them at most
MOST_VALUES: Final = 100  # addresses or URLs of one test


class Expected(StrEnum):
    """What a test expects of a request, and what became of it."""

    ALLOW = "allow"
    DENY = "deny"
    UNKNOWN = "unknown"


class Caller(Struct, frozen=True):
    """What a request has besides its source and its destination.

    method       as in HTTP, or `CORS preflight`
    certificate  the authority that signed the client certificate; empty: none
    provider     where the caller is signed in; empty: nowhere
    attribute    `email`, `domain`, `team`, `organization` or `group` of the caller; empty: none that a list names
    value        of the attribute
    has_token    whether it has whatever token, password or signature an entry point asks for
    """

    method: str = "GET"
    certificate: str = ""
    provider: str = ""
    attribute: str = ""
    value: str = ""
    has_token: bool = False


class AccessTest(Struct, frozen=True):
    """One expectation. It must hold for all addresses of its sources.

    sources   addresses and networks in CIDR notation
    target    a URL, or `api`, `dashboard`, `agent`
    binding   `public`, `internal` or `kubernetes`: from where the URL is requested
    severity  of the problem if it fails
    base      the base of a review that has the test; empty: the project itself
    """

    sources: tuple[str, ...]
    target: str
    expect: Expected
    position: Position
    binding: str = "public"
    caller: Caller = Caller()
    severity: Severity = Severity.ERROR
    base: str = ""

    @property
    def name(self) -> str:
        """`GET https://shop.example.com/admin from 203.0.113.9, signed in at google`"""
        caller, where = self.caller, self.target
        if where.startswith("http"):
            where = f"{caller.method} {where}"
        if self.binding != "public":
            where += f" ({self.binding})"
        first, *more = self.sources
        sources = first + (f" and {len(more)} more" if more else "")
        return ", ".join([f"{where} from {sources}", *self._list_properties()])

    def _list_properties(self) -> list[str]:
        caller = self.caller
        found = [f"with a client certificate of {caller.certificate}"] if caller.certificate else []
        if caller.provider:
            who = f" with {caller.attribute} {caller.value}" if caller.attribute else ""
            found.append(f"signed in at {caller.provider}{who}")
        return [*found, "with a token"] if caller.has_token else found


class AccessStatus(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class AccessResult(Struct, frozen=True):
    """The result of one test.

    test      its name
    outcome   of the requests; of those that differ from the expectation, if there are any
    decides   who gets through, and the resources that decide; of a skipped test, why it was skipped
    base      as of AccessTest
    severity  as of AccessTest
    """

    test: str
    status: AccessStatus
    expect: Expected
    outcome: Expected
    decides: str
    position: Position
    base: str = ""
    severity: Severity = Severity.ERROR
