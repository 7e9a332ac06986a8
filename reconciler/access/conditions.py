"""Conditions of a request that gates test: its source address, method, client certificate, login, tokens and claims.

Each condition divides one property of the request. A property has a set of possible values; a condition splits it into
the values that satisfy it and the others. `Claim` is a property that is only true or false, such as an expression.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from reconciler.access.networks import Networks

OPTIONS: Final = "OPTIONS"
PREFLIGHT: Final = "CORS preflight"
ANY_METHOD: Final = "GET"
METHODS: Final = frozenset({ANY_METHOD, OPTIONS, PREFLIGHT})
"""The methods that gates distinguish; GET stands for every other method."""


class Source(Struct, frozen=True, cache_hash=True):
    """The source address is in the networks."""

    networks: Networks


class Method(Struct, frozen=True, cache_hash=True):
    """The request has one of the methods."""

    methods: frozenset[str]


class Certificate(Struct, frozen=True, cache_hash=True):
    """The client certificate is signed by one of the authorities, given by the digests of their certificates."""

    authorities: frozenset[str]
    names: tuple[str, ...] = ()  # of the authorities, for people


class Person(Struct, frozen=True, cache_hash=True):
    """One way to be signed in: as anyone of a provider, or as someone with an attribute that an allow list names.

    attribute   `email`, `domain`, `team`, `organization`, `group`; empty: none that a list names
    """

    provider: str
    attribute: str = ""
    value: str = ""

    def __str__(self) -> str:
        at = f" at {self.provider.partition(' (secret ')[0]}"
        match self.attribute:
            case "":
                return f"signed in{at}"
            case "email":
                return f"signed in as {self.value}{at}"
            case "domain":
                return f"signed in with an address of {self.value}{at}"
        return f"signed in as a member of the {self.attribute} {self.value}{at}"


class Login(Struct, frozen=True, cache_hash=True):
    """The client is signed in at the provider and, if `admitted` is not empty, is one of the admitted people."""

    provider: str
    admitted: frozenset[tuple[str, str]] = frozenset()  # attribute and value

    def admits(self, person: Person | None) -> bool:
        if person is None or person.provider != self.provider:
            return False
        if not self.admitted or (person.attribute, person.value) in self.admitted:
            return True
        return person.attribute == "email" and ("domain", person.value.rpartition("@")[2]) in self.admitted

    def people(self) -> Iterable[Person]:
        """The people that this condition distinguishes."""
        yield Person(self.provider)
        for attribute, value in self.admitted:
            yield Person(self.provider, attribute, value)


class Token(Struct, frozen=True, cache_hash=True):
    """The request has a token, or a user's password, that `accepted` lists, one tuple for each property.

    scheme    what kind of token; tokens of different schemes have nothing in common
    accepted  for each property the accepted values; None: any
    """

    scheme: str
    accepted: tuple[frozenset[str] | None, ...]

    def admits(self, token: tuple[str, ...] | None) -> bool:
        return (
            token is not None
            and token[0] == self.scheme
            and all(values is None or value in values for value, values in zip(token[1:], self.accepted, strict=True))
        )


class Claim(Struct, frozen=True, cache_hash=True):
    """Something that holds for a request or not, and that no other property says: an expression, a signature.

    text      in words, or the text of the expression
    context   what else decides about it, such as earlier actions that rewrite the request
    is_open   not documented, or not known: a result that depends on it is unknown
    """

    text: str
    context: str = ""
    is_open: bool = False


Condition = Source | Method | Certificate | Login | Token | Claim
