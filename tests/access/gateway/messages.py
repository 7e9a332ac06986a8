"""Requests that the reference gateway is asked about, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tests.access.gateway.open_rows import FORM_ONLY

Outcome = Literal["pass", "refuse", "unknown"]
Binding = Literal["public", "internal", "kubernetes"]
Plane = Literal["api", "dashboard", "agent", "endpoints"]

HTTP = frozenset({"http", "https"})
PORTS = {"http": 80, "https": 443, "tls": 443}


@dataclass(frozen=True, slots=True)
class Identity:
    """A user who is signed in. `issuer` is the name of an OAuth provider, the issuer URL of OpenID Connect, or the text
    of the metadata of a SAML identity provider. `application`: the client id with which the user signed in at the
    issuer; the empty text is the application that the platform manages."""

    issuer: str
    kind: Literal["oauth", "oidc", "saml"] = "oauth"
    email: str = ""
    groups: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    organizations: frozenset[str] = frozenset()
    application: str = ""


class Signature(NamedTuple):
    """The signature of a webhook provider, made with a secret."""

    provider: str
    secret: str = ""


class Token(NamedTuple):
    """A JSON web token. `name` is that of its header or body field, `keys` the URL of the key set that verifies it."""

    name: str
    issuer: str
    audience: str = ""
    keys: str = ""
    algorithm: str = "RS256"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, or one connection of the schemes tls and tcp.

    `sni`: the empty text is the host, None a client that sends no name. `certificate`: the id (or the PEM text) of the
    certificate authority that issued the client certificate. `assignments`: the value of each expression by its text;
    None is an expression that fails at run time. An expression behind an action that rewrites the request takes the
    value of the key `expression_key(text, rewrites)` if `assignments` has it.
    """

    scheme: str
    host: str
    port: int = 443
    path: str = "/"
    method: str = "GET"
    source: str = "198.51.100.1"
    sni: str | None = ""
    certificate: str | None = None
    identity: Identity | None = None
    webhook_signed_by: Signature | None = None
    basic: str | None = None
    tokens: tuple[Token, ...] = ()
    headers: tuple[tuple[str, str], ...] = (("user-agent", "browser"),)
    binding: Binding = "public"
    assignments: Mapping[str, bool | None] = field(default_factory=dict)

    def header(self, name: str) -> str | None:
        """The first header of this name."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def server_name(self) -> str | None:
        return self.host if self.sni == "" else self.sni


@dataclass(frozen=True, slots=True)
class BindRequest:
    """An agent that opens a host, a tcp address (host and port) or labels with a credential. Neither: a random name."""

    credential: str
    scheme: str = "https"
    host: str = ""
    port: int = 0
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlaneRequest:
    """A source address that uses one of the four planes that IP restrictions guard."""

    plane: Plane
    source: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a request. `code` is a public error code, and `served_by` the id of the object that answered:
    an endpoint, a route, a backend, or the name of an agent's tunnel."""

    outcome: Outcome
    reason: str
    status: int | None = None
    code: str = ""
    served_by: str = ""
    open_rows: frozenset[str] = frozenset()

    @property
    def open_outcome(self) -> frozenset[str]:
        """The open rows whose readings may give another outcome, not only another status or code."""
        return self.open_rows - FORM_ONLY


def expression_key(text: str, rewrites: tuple[str, ...]) -> str:
    """The key of an expression that is evaluated after actions that rewrite the request, in their order."""
    return f"{text} after {' '.join(rewrites)}" if rewrites else text
