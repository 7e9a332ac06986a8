"""Words for kind files: which change of a value gives access to more people, addresses or programs, or stops agents.

Each rule compares two canonical values, `None` standing for an absent one. It returns None where it cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from reconciler.model.change import Risk
from reconciler.model.fields.annotations import Raises
from reconciler.model.value import Json

# Actions of a traffic policy that can reject a request or a connection.
_RESTRICTING = frozenset(
    """
    basic-auth close-connection deny jwt-validation oauth openid-connect owasp-crs-request owasp-crs-response rate-limit
    restrict-ips saml terminate-tls user-agent-filter verify-webhook
    """.split()  # noqa: SIM905 - one word to read per action
)
_TLS_VERSIONS = ("1.0", "1.1", "1.2", "1.3")


def is_removed(old: Json, new: Json) -> bool | None:
    """Of a module that restricts access: whether it is removed or disabled."""
    return _is_enabled(old) and not _is_enabled(new)


def admits_more(old: Json, new: Json) -> bool | None:
    """Of a list of who is admitted, where an empty one admits everyone."""
    old, new = old or [], new or []
    if not (isinstance(old, list) and isinstance(new, list)):
        return None
    return bool(old) and (not new or _has_more(old, new))


def accepts_more(old: Json, new: Json) -> bool | None:
    """Of a list in which each item admits someone, and an empty list no one."""
    old, new = old or [], new or []
    return _has_more(old, new) if isinstance(old, list) and isinstance(new, list) else None


def rejects_less(old: Json, new: Json) -> bool | None:
    """Of a list in which each item rejects someone."""
    return accepts_more(new, old)


def binds_more(old: Json, new: Json) -> bool | None:
    """Of the rules of a credential, where no rule and the rule `*` allow everything."""
    old, new = old or [], new or []
    if not (isinstance(old, list) and isinstance(new, list)):
        return None
    if not old or "*" in old:
        return False
    return not new or _has_more(old, new)


def becomes_true(old: Json, new: Json) -> bool | None:
    return new is True and old is not True


def becomes_false(old: Json, new: Json) -> bool | None:
    return new is not True and old is True


def is_changed(old: Json, new: Json) -> bool | None:
    """Of a value whose direction cannot be told, such as the issuer of identities."""
    return None


def accepts_older_tls(old: Json, new: Json) -> bool | None:
    if old not in _TLS_VERSIONS or new not in _TLS_VERSIONS:
        return None
    return _TLS_VERSIONS.index(str(new)) < _TLS_VERSIONS.index(str(old))


def becomes_public(old: Json, new: Json) -> bool | None:
    """Of the bindings of an endpoint."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return None
    return "public" in new and "public" not in old


def restricts_less(old: Json, new: Json) -> bool | None:
    """Of a traffic policy: whether a rule with a restricting action is removed, changed or moved."""
    if not old:
        return False
    if not isinstance(old, dict) or not isinstance(new, dict | None):
        return None
    after = iter(list(_find_restricting_rules(new or {})))
    return not all(rule in after for rule in _find_restricting_rules(old))  # consumes `after`: the order counts


def opens_network(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool | None:
    """Of a rule of an IP policy, as a whole."""
    if old is None and new is not None and not isinstance(new.get("ip_policy_id"), str):
        return False  # nothing refers to a policy that is created with its rules
    before, after = _networks(old), _networks(new)
    if before is None or after is None:
        return None
    (allowed_before, denied_before), (allowed, denied) = before, after
    return not (_covers(allowed_before, allowed) and _covers(denied, denied_before))


def lifts_restriction(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool | None:
    """Of an IP restriction, as a whole: whether an enforced one goes or is enforced no more."""
    return _is_enforced(old) and not _is_enforced(new)


def is_deleted(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool | None:
    """Of a resource as a whole."""
    return old is not None and new is None


def _is_enabled(module: Json) -> bool:
    return isinstance(module, dict) and module.get("enabled") is not False


def _has_more(old: list[Any], new: list[Any]) -> bool:
    return any(item not in old for item in new)


def _find_restricting_rules(policy: Mapping[str, Any]) -> Iterator[Any]:
    """The rules that can reject traffic, by phase, without their names. What cannot be read counts as one."""
    for phase, rules in sorted(policy.items()):
        for rule in rules if isinstance(rules, list) else [rules]:
            if not isinstance(rule, dict):
                yield phase, rule
            elif any(_is_restricting(action) for action in rule.get("actions") or [None]):
                yield phase, {key: item for key, item in rule.items() if key != "name"}


def _is_restricting(action: Any) -> bool:
    type_ = action.get("type") if isinstance(action, dict) else None
    return not isinstance(type_, str) or type_ in _RESTRICTING


def _networks(rule: Mapping[str, Any] | None) -> tuple[Any, Any] | None:
    """The networks that a rule allows and denies, each None if it has none. None if they cannot be read."""
    if rule is None:
        return None, None
    cidr = rule.get("cidr")
    if not isinstance(cidr, str):  # a number would be read as an address
        return None
    try:
        network = ip_network(cidr)
    except ValueError:
        return None
    return (network, None) if rule.get("action") == "allow" else (None, network)


def _covers(outer: Any, inner: Any) -> bool:
    if inner is None:
        return True
    return outer is not None and outer.version == inner.version and inner.subnet_of(outer)


def _is_enforced(restriction: Mapping[str, Any] | None) -> bool:
    return restriction is not None and restriction.get("enforced") is True


RESTRICTS = Raises(Risk.WIDENS_ACCESS, is_removed)
ALLOW_LIST = Raises(Risk.WIDENS_ACCESS, admits_more)
TRUST_LIST = Raises(Risk.WIDENS_ACCESS, accepts_more)
DENY_LIST = Raises(Risk.WIDENS_ACCESS, rejects_less)
ACL = Raises(Risk.WIDENS_ACCESS, binds_more)
OPENS = Raises(Risk.WIDENS_ACCESS, becomes_true)
CLOSES = Raises(Risk.WIDENS_ACCESS, becomes_false)
UNKNOWN_DIRECTION = Raises(Risk.WIDENS_ACCESS, is_changed)
TLS_VERSION = Raises(Risk.WIDENS_ACCESS, accepts_older_tls)
BINDINGS = Raises(Risk.WIDENS_ACCESS, becomes_public)
TRAFFIC_POLICY = Raises(Risk.WIDENS_ACCESS, restricts_less)
NETWORK_RULE = Raises(Risk.WIDENS_ACCESS, opens_network)
RESTRICTION = Raises(Risk.WIDENS_ACCESS, lifts_restriction)
SERVES_AGENTS = Raises(Risk.DISABLES_AGENT, is_deleted)
ACTIVE = Raises(Risk.DISABLES_AGENT, becomes_false)
