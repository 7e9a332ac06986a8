"""Finds the secrets inside traffic policies and headers. Pure functions.

Secret are the settings that the catalogue marks, everything below a key that is named like a secret, and texts that
carry credentials, wherever they stand. A text that only refers to a secret, such as `${secrets.get('vault', 'name')}`,
is none. docs/manifests.md documents the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from reconciler.languages import traffic_catalog
from reconciler.model.value import Json, Secret, Template

Path = tuple[str | int, ...]

SECRET_KEY: Final = re.compile(
    r"(?:^|[-_.])(?:authorization|auth|pwd|jwt|hmac|bearer)$|cookie|secret|password|passwd|passphrase|token|credential|idp[-_]metadata"
    r"|(?:api|access|private|auth|signing|encryption|shared)[-_]?key",
    re.IGNORECASE,
)
_CREDENTIALS: Final = re.compile(
    r"://[^/\s:@$]*:[^/\s@$]+@"
    r"|[?&](?:api[-_]?key|apikey|access[-_]?token|token|secret|password|sig|signature)=[^&\s$]{4}"
    r"|^\s*(?:Bearer|Basic|Token)\s+[A-Za-z0-9._~+/=-]{8,}\s*$"
    r"|-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----",
    re.IGNORECASE,
)
_EXPRESSION: Final = re.compile(r"(?<!\$)\$\{(?!\{)([^{}]*)\}")
_ATTRIBUTES: Final = re.compile(
    r";\s*(?:path=[\w/.-]*|domain=[\w.-]*|max-age=-?\d+|expires=[\w,:+-]+(?: [\w,:+-]+)*|samesite=\w+"
    r"|httponly|secure|partitioned)\s*(?=;|$)",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(r"\s*(?:[\w.@+-]{1,64}[:=]|[A-Za-z-]{1,16} )?\s*")  # a user, a cookie's name, a scheme
_LOOKUP: Final = re.compile(
    r"""secrets\.get\(\s*(?:'[^']*'|"[^"]*")\s*,\s*(?:'[^']*'|"[^"]*")\s*\)|get\w+\(\s*(?:'[^']*'|"[^"]*")\s*\)"""
    r"""|\[\s*(?:'[\w.-]*'|"[\w.-]*")\s*\]"""
)
_LONGEST: Final = 1024  # characters of a text that only refers to a secret
_HARMLESS: Final = re.compile(r"(?!.*\d{6})[\w.\[\]()\s,?:+!=&|-]*", re.DOTALL)


def find_in_policy(document: Json) -> Iterator[Path]:
    """Yields the path of each secret in a traffic policy."""
    yield from _find(document, (), None)


def find_in_headers(headers: Json) -> Iterator[Path]:
    """Yields the path of each secret header in a map of headers."""
    yield from _find(headers, (), None)


def find_below(value: Json) -> Iterator[Path]:
    """Yields the path of each secret in a value that is secret as a whole."""
    yield from _leaves(value, ())


def is_reference(text: str) -> bool:
    """Whether a text at the place of a secret contains none: it is empty, or refers to values that are elsewhere."""
    if len(text) > _LONGEST:
        return False
    expressions = _EXPRESSION.findall(text)
    rest = _ATTRIBUTES.sub("", _EXPRESSION.sub("", text))
    if not expressions:
        return not rest.strip() or (rest.strip().endswith("=") and _BEFORE.fullmatch(rest) is not None)
    return _BEFORE.fullmatch(rest) is not None and all(
        _HARMLESS.fullmatch(_LOOKUP.sub("", expression)) is not None for expression in expressions
    )


_Settings = Mapping[str, traffic_catalog.Setting]


def _find(value: Any, at: Path, settings: _Settings | None) -> Iterator[Path]:
    """Yields the paths of secrets. `settings`: those that the value may have, if it is the config of a known action."""
    match value:
        case str() if _CREDENTIALS.search(value):
            yield at
        case dict():
            known = settings if settings is not None else _settings_of_action(value)
            is_action = settings is None and known is not None
            named = next((value[name] for name in ("key", "name") if isinstance(value.get(name), str)), "")
            for key, item in value.items():
                if is_action and key == "config":
                    yield from _find(item, (*at, key), known)
                elif key == "value" and _is_secret_key(named):
                    yield from _leaves(item, (*at, key))
                else:
                    yield from _find_below(str(key), item, (*at, key), {} if is_action or known is None else known)
        case list():
            for index, item in enumerate(value):
                yield from _find(item, (*at, index), settings)


def _find_below(key: str, item: Any, at: Path, settings: _Settings) -> Iterator[Path]:
    setting = settings.get(key) or settings.get(key.lower())
    if setting.is_secret if setting is not None else _is_secret_key(key):
        yield from _leaves(item, at)
    else:
        yield from _find(item, at, setting.settings or None if setting is not None else None)


@lru_cache(maxsize=1024)  # thousands of resources have the same keys
def _is_secret_key(key: str) -> bool:
    return SECRET_KEY.search(key) is not None


def _settings_of_action(value: Mapping[str, Any]) -> _Settings | None:
    """The settings that the config of an action may have; None if the map is no action."""
    name = value.get("type")
    if not isinstance(name, str) or "config" not in value:
        return None
    action = traffic_catalog.actions().get(traffic_catalog.OLD_ACTIONS.get(name, name))
    return action.settings if action is not None else {}


def _leaves(value: Any, at: Path) -> Iterator[Path]:
    """The paths of the texts and numbers of a value that is secret as a whole."""
    match value:
        case str():
            if not is_reference(value):
                yield at
        case bool() | None | Secret() | Template():
            return
        case int() | float():
            yield at
        case dict():
            for key, item in value.items():
                yield from _leaves(item, (*at, key))
        case list():
            for index, item in enumerate(value):
                yield from _leaves(item, (*at, index))
