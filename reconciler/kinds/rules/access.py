"""Words for kind files: which change of a value gives access to more people, addresses or programs, or stops agents.

Each rule compares two canonical values, `None` standing for an absent one. It returns None where that is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.model.change import Risk
from reconciler.model.fields.annotations import Raises
from reconciler.model.value import Json

# Actions of a traffic policy that reject some requests of every client.
_FILTERS = ("owasp-crs-request", "owasp-crs-response", "rate-limit", "user-agent-filter")
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


def becomes_true(old: Json, new: Json) -> bool | None:
    return new is True and old is not True


def becomes_false(old: Json, new: Json) -> bool | None:
    return new is not True and old is True


def accepts_older_tls(old: Json, new: Json) -> bool | None:
    if old not in _TLS_VERSIONS or new not in _TLS_VERSIONS:
        return None
    return _TLS_VERSIONS.index(str(new)) < _TLS_VERSIONS.index(str(old))


def filters_less(old: Json, new: Json) -> bool | None:
    """Of a traffic policy: whether a rule that filters traffic, or sets the TLS version, is removed, changed or moved.

    Gates, such as a sign-in, are not among them: `reconciler.access` compares who gets through.
    """
    if not old:
        return False
    if not isinstance(old, dict) or not isinstance(new, dict | None):
        return None
    after = iter(list(_find_filters(new or {})))
    return not all(rule in after for rule in _find_filters(old))  # consumes `after`: the order counts


def drops_filters(old: Json, new: Json) -> bool | None:
    """Of the module of a traffic policy: whether it is removed or disabled while its policy filters."""
    return _is_enabled(old) and not _is_enabled(new) and filters_less(old.get("value"), None)


def is_deleted(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool | None:
    """Of a resource as a whole."""
    return old is not None and new is None


def _is_enabled(module: Json) -> bool:
    return isinstance(module, dict) and module.get("enabled") is not False


def _has_more(old: list[Any], new: list[Any]) -> bool:
    return any(item not in old for item in new)


def _find_filters(policy: Mapping[str, Any]) -> Iterator[Json]:
    """Each rule that filters, by phase: its expressions, and the filters among its actions with their settings."""
    for phase, rules in sorted(policy.items()):
        for rule in rules if isinstance(rules, list) else ():
            actions = rule.get("actions") if isinstance(rule, dict) else None
            found = [_describe_filter(action) for action in actions if isinstance(action, dict)] if actions else []
            if filters := [action for action in found if action is not None]:
                yield phase, rule.get("expressions"), filters


def _describe_filter(action: Mapping[str, Any]) -> Json:
    config = action.get("config")
    if action.get("type") == "terminate-tls" and isinstance(config, dict) and "min_version" in config:
        return ["terminate-tls", config["min_version"]]
    return [action["type"], config] if action.get("type") in _FILTERS else None


RESTRICTS = Raises(Risk.WIDENS_ACCESS, is_removed)
ALLOW_LIST = Raises(Risk.WIDENS_ACCESS, admits_more)
DENY_LIST = Raises(Risk.WIDENS_ACCESS, rejects_less)
OPENS = Raises(Risk.WIDENS_ACCESS, becomes_true)
CLOSES = Raises(Risk.WIDENS_ACCESS, becomes_false)
FILTERS = Raises(Risk.WIDENS_ACCESS, filters_less)
FILTERS_OF_MODULE = Raises(Risk.WIDENS_ACCESS, drops_filters)
TLS_VERSION = Raises(Risk.WIDENS_ACCESS, accepts_older_tls)
SERVES_AGENTS = Raises(Risk.DISABLES_AGENT, is_deleted)
ACTIVE = Raises(Risk.DISABLES_AGENT, becomes_false)
