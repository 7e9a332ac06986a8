"""Reduces a traffic policy to its gates: what an analysis needs of it, without the text of the policy.

Expressions, response bodies, headers, names of rules and settings that decide nothing become digests or are left out.
Reducing a reduced policy changes nothing, so that a plan from a snapshot file equals the plan from the account.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from reconciler.access.policies import ACTIONS, Effect, digest, is_computed, reads_results

SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "basic-auth": ("enforce", "credentials"),
    "forward-internal": ("url", "binding", "on_error"),
    "http-request": ("on_error",),
    "jwt-validation": ("issuer", "audience", "jws", "http"),
    "oauth": ("provider", "client_id", "allow_cors_preflight"),
    "oidc": ("issuer_url", "client_id", "allow_cors_preflight"),
    "openid-connect": ("issuer_url", "client_id", "allow_cors_preflight"),
    "restrict-ips": ("enforce", "ip_policies", "allow", "deny"),
    "saml": ("allow_cors_preflight",),
    "terminate-tls": ("mutual_tls_certificate_authorities", "mutual_tls_verification_strategy"),
    "verify-webhook": ("enforce", "provider"),
    "webhook-validation": ("enforce", "provider"),
}
"""The settings of each gate that say who gets through."""

_CONDITION: Final = re.compile(r"condition [0-9a-f]{16}( on actions)?")
_ODD: Final = re.compile(r"not readable [0-9a-f]{16}")
_REST: Final = "digest"  # the key with the digest of settings that are left out


def keep_gates(document: Any) -> Any:
    """The gates of a traffic policy in canonical form. What is no policy, such as a sealed text, stays as it is."""
    if not isinstance(document, Mapping):
        return document
    return {
        phase: [_keep_rule(rule) for rule in rules] if isinstance(rules, list) else _conceal_odd(rules)
        for phase, rules in document.items()
    }


def _keep_rule(rule: Any) -> Any:
    if not isinstance(rule, Mapping):
        return _conceal_odd(rule)
    expressions, actions = rule.get("expressions") or [], rule.get("actions")
    conditions = expressions if isinstance(expressions, list) else [expressions]
    return {
        **({"expressions": [_conceal_condition(part) for part in conditions]} if conditions else {}),
        "actions": [_keep_action(action) for action in actions] if isinstance(actions, list) else [],
    }


def _conceal_condition(expression: Any) -> str:
    text = expression.strip() if isinstance(expression, str) else ""
    if text in ("true", "false") or _CONDITION.fullmatch(text):
        return text
    return f"condition {digest(text or expression)}{' on actions' if reads_results(text) else ''}"


def _conceal_odd(value: Any) -> str:
    """A text in the place of a phase, rule or action of another shape, which stays unreadable."""
    return value if isinstance(value, str) and _ODD.fullmatch(value) else f"not readable {digest(value)}"


def _keep_action(action: Any) -> Any:
    if not isinstance(action, Mapping):
        return _conceal_odd(action)
    kind, config = str(action.get("type")), action.get("config")
    settings = _keep_settings(kind, config if isinstance(config, Mapping) else {})
    return {"type": kind, **({"config": settings} if settings else {})}


def _keep_settings(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    match ACTIONS.get(kind):
        case Effect.NONE | Effect.REFUSES:
            return {}
        case Effect.ANSWERS:
            pattern = config.get("from") if kind == "redirect" else None
            return {} if pattern is None else {"from": _conceal_condition(pattern)}
        case Effect.GATE | Effect.FORWARDS:
            kept = {name: _conceal_computed(config[name]) for name in SETTINGS[kind] if name in config}
            rest = {name: value for name, value in config.items() if name not in kept}
            if kind == "saml" or is_computed(rest):
                kept |= _conceal_computed(_conceal(rest, computed=is_computed(rest)))
            return kept
    kept = {name: config[name] for name in SETTINGS.get(kind, ()) if name in config}
    rest = {name: value for name, value in config.items() if name not in kept}
    return kept | (_conceal(rest) if rest else {})


def _conceal_computed(value: Any) -> Any:
    """The value with a digest in the place of each text that is known only when a request arrives."""
    match value:
        case str() if "${" in value and not re.fullmatch(r"\$\{[0-9a-f]{16}\}", value):
            return f"${{{digest(value)}}}"
        case Mapping():
            return {key: _conceal_computed(item) for key, item in value.items()}
        case list():
            return [_conceal_computed(item) for item in value]
    return value


def _conceal(value: Any, *, computed: bool = False) -> dict[str, Any]:
    """A digest in the place of a value."""
    if isinstance(value, Mapping) and set(value) == {_REST}:
        return dict(value)
    return {_REST: f"${{{digest(value)}}}" if computed else digest(value)}
