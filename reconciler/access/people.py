"""Who a request is signed in as: reads a person as users write it, and finds the providers that an account asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from reconciler.access.account import Account
from reconciler.access.compare import analyze
from reconciler.access.conditions import Login, Person
from reconciler.access.programs import conditions_of
from reconciler.model.access_test import ATTRIBUTES
from reconciler.model.suggestions import closest

SAML: Final = "SAML"
PROVIDERS: Final = ("amazon", "facebook", "github", "gitlab", "google", "linkedin", "microsoft", "twitch", SAML)
"""The providers that have a name; others are named by the URL of their issuer."""

_PERSON: Final = re.compile(
    r"(https?://.+?|[^:]*):(?:([^:=@/]*)=(.*)|([^:=/]*@.*))",  # the URL of an issuer may contain colons, before a port
    re.DOTALL,
)


def read_person(text: str) -> Person:
    """`google`, `google:ann@example.com`, `github:team=ops` or an issuer's URL, with the same endings.

    A value may contain colons, as `SAML:group=urn:example:ops`. Raises ValueError as `check_provider`.
    """
    match = _PERSON.fullmatch(text)
    if match is None:
        check_provider(text)
        return Person(text)
    provider, attribute, value, email = match.groups()
    check_provider(provider)
    if email is not None:
        return Person(provider, "email", email)
    if attribute not in ATTRIBUTES:
        near = closest(attribute, ATTRIBUTES)
        remedy = f"did you mean {near}?" if near else f"use one of {', '.join(ATTRIBUTES)}"
        raise ValueError(f"has the unknown attribute {attribute}; {remedy}")
    return Person(provider, attribute, value)


def check_provider(name: str) -> None:
    """Raises ValueError with what is wrong and what to do, separated by `; `, if a text names no provider."""
    if name in PROVIDERS or is_issuer(name):
        return
    near = closest(name, PROVIDERS)
    remedy = f"did you mean {near}?" if near else f"use one of {', '.join(PROVIDERS)}, or the URL of an issuer"
    raise ValueError(f"is no identity provider; {remedy}")


def is_issuer(name: str) -> bool:
    """Whether a provider is named by the URL of its issuer."""
    scheme, separator, host = name.partition("://")
    return scheme in ("https", "http") and bool(separator and host)


def find_unknown_issuer(provider: str, list_known: Callable[[], Iterable[str]]) -> str:
    """What to do about an issuer that no entry point of an account asks for; empty if one does, and for other names.

    list_known  the providers of the account; called for issuers only
    """
    if not is_issuer(provider):
        return ""
    known = sorted(filter(is_issuer, list_known()))
    if provider in known:
        return ""
    near = closest(provider, known)
    listed = f"use one of {', '.join(known[:5])}" if known else "use a sign-in of the account"
    return f"did you mean {near}?" if near else listed


def list_providers(account: Account) -> frozenset[str]:
    """The providers and issuers that the entry points of an account ask for."""
    return frozenset(
        condition.provider.partition(" (")[0]
        for entry in analyze(account)
        for condition in conditions_of(entry.program)
        if isinstance(condition, Login)
    )
