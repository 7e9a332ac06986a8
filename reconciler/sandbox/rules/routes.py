"""Validation of the modules that only HTTPS edge routes have: authentication, headers, circuit breaker."""

from __future__ import annotations

from typing import Any

from reconciler.sandbox.base.draft import Draft, World
from reconciler.sandbox.wire import refusal

LOGINS = ("saml", "oidc", "oauth")
_BREAKER = {  # the allowed range of each number, and the error of another
    "tripped_duration": (1, 2**32 - 1, refusal.BREAKER_TRIPPED),
    "rolling_window": (1, 2**32 - 1, refusal.BREAKER_WINDOW),
    "num_buckets": (1, 128, refusal.BREAKER_BUCKETS),
    "error_threshold_percentage": (0, 1, refusal.BREAKER_THRESHOLD),
}


def check_route_modules(draft: Draft, world: World) -> None:
    doc = draft.doc
    used = [name for name in LOGINS if doc.get(name) is not None]
    if len(used) > 1:
        raise refusal.LOGIN_COUNT(names=" and ".join(used))
    for other in world.database.page(draft.kind.name, draft.parent) if used else ():
        if other.id != draft.id and any(other.body.get(name) is not None for name in LOGINS):
            raise refusal.LOGIN_ON_EDGE(id=other.id)
    if doc.get("oauth") is not None:
        _check_providers(doc["oauth"]["provider"])
    for name in ("request_headers", "response_headers"):
        if doc.get(name) is not None:
            doc[name] = _lower_header_names(doc[name])
    for name, (low, high, cause) in _BREAKER.items() if doc.get("circuit_breaker") is not None else ():
        value = doc["circuit_breaker"][name]
        if not low <= value <= high:
            raise cause(field=name, wanted=f"from {low} to {high}", value=value)


def _check_providers(providers: dict[str, Any]) -> None:
    used = {name: provider for name, provider in providers.items() if provider is not None}
    if not used:
        raise refusal.OAUTH_NO_PROVIDER()
    if len(used) > 1:
        raise refusal.OAUTH_PROVIDERS(count=len(used))
    for name, provider in used.items():
        if bool(provider["client_id"]) is not bool(provider["client_secret"]):
            raise refusal.OAUTH_CLIENT(field=f"oauth.provider.{name}")
        if provider["scopes"] and not provider["client_id"]:
            raise refusal.OAUTH_SCOPES(field=f"oauth.provider.{name}")


def _lower_header_names(module: dict[str, Any]) -> dict[str, Any]:
    """The module with header names in lower case, as the platform returns them."""
    return {
        **module,
        "add": {name.lower(): value for name, value in module["add"].items()},
        "remove": [name.lower() for name in module["remove"]],
    }
