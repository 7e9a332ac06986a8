"""Traffic policy documents: reading them, and the shape a document must have. Pure.

A policy is JSON or YAML 1.2 text, or the document itself. Its expressions have to be CEL. What its actions do is the
platform's business; an action, a phase, a variable or a function that is not known here is a warning, because the
platform learns new ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NoReturn

from reconciler.kinds import cel, glance, skim
from reconciler.model.kind import Finding
from reconciler.model.problem import Severity
from reconciler.model.value import Json, Ref, Secret, Template

PHASES = ("on_tcp_connect", "on_http_request", "on_http_response")
_RULE_KEYS = ("name", "expressions", "actions")
_ACTION_KEYS = ("type", "config")
ACTIONS = frozenset(
    """
    add-headers ai-gateway basic-auth circuit-breaker close-connection compress-response custom-response deny
    forward-internal http-request jwt-validation log oauth openid-connect owasp-crs-request owasp-crs-response
    rate-limit redirect remove-headers request-body-find-replace response-body-find-replace restrict-ips saml
    set-vars sse-find-replace terminate-tls url-rewrite user-agent-filter verify-webhook
    """.split()  # noqa: SIM905 - as a paragraph they can be read
)

# What expressions may speak of: variables, and the namespaces of the platform's own functions.
VARIABLES = frozenset(
    """
    actions b64 base64 basic_auth conn endpoint json queryString rand req res secrets time url vars
    """.split()  # noqa: SIM905 - as above
)
_FUNCTIONS = frozenset(
    """
    getQueryParam getReqCookie getReqHeader getResCookie getResHeader hasQueryParam hasReqCookie hasReqHeader
    hasResCookie hasResHeader inCidrRange inCidrRanges
    bool bytes double duration dyn int size string timestamp type uint
    """.split()  # noqa: SIM905 - as above
)
_EMBEDDED = re.compile(r"(?<!\$)\$\{([^{}]+)\}")  # one with braces inside is left to the platform

# What ruamel.yaml takes for a number, a moment or a mistake, and manifests for text.
_OLDER = re.compile(
    r"[0-9]_|0b[01]|\t|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]|(?:^|[\s\[{,:-])=(?:[\s\]},]|$)"
)

_SIZE = 256 * 1024  # characters: a hundred times a long policy
_DEPTH = 40
_TOO_DEEP = f"the policy has more than {_DEPTH} levels; simplify it"
_NODES = 20_000  # counted with aliases written out, so that a small text cannot grow without end


class _Unreadable(Exception):
    """The text is no document; says why."""


# --- reading ----------------------------------------------------------------------------------------------------------


def parse(text: str) -> dict[str, Any] | None:
    """The document that a text spells, or None. Shared between callers: not to be changed."""
    document = _read(text)
    return document if isinstance(document, dict) else None


def why_not(text: str) -> str | None:
    """Why a text is not a policy document, as `what; what to do`; None if it is one."""
    found = _read(text)
    return found if isinstance(found, str) else None


@lru_cache(maxsize=512)
def _read(text: str) -> dict[str, Any] | str:
    if not text.strip():
        return "the policy is empty; write rules below on_http_request or on_http_response"
    if len(text) > _SIZE:
        return f"the policy has more than {_SIZE} characters; shorten it"
    try:
        document = _plain(_decode(text), [_NODES])
    except _Unreadable as why:
        return str(why)
    if not isinstance(document, dict) or not document:
        return "this is not a policy document; write a mapping of phases, such as on_http_request, to rules"
    return document


def _decode(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except RecursionError:
        raise _Unreadable(_TOO_DEEP) from None
    except ValueError:
        return _decode_yaml(text)


def _decode_yaml(text: str) -> Any:
    """What is unusual goes to a reader that says where something is wrong, and takes long."""
    octets = text.encode(errors="surrogatepass")
    skimmed = None if _OLDER.search(text) else skim.documents(octets)
    documents = _read_patiently(text, octets) if skimmed is None else [document for document, _, _ in skimmed]
    if len(documents) > 1:
        raise _Unreadable("the policy is several documents; keep one, and no line of --- between its rules")
    return documents[0] if documents else None


def _read_patiently(text: str, octets: bytes) -> list[Any]:
    if skim.is_deeper(octets, _DEPTH):  # which takes that reader minutes
        raise _Unreadable(_TOO_DEEP)

    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return [*YAML(typ="safe", pure=True).load_all(text)]
    except MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        if isinstance(wrong, DuplicateKeyError):
            raise _Unreadable(f"a key of the policy is repeated{where}; keep it once") from None
        raise _Unreadable(f"the policy is neither JSON nor YAML{where}; correct it there") from None
    except (YAMLError, ValueError, RecursionError):
        raise _Unreadable("the policy is neither JSON nor YAML; correct it") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is repeated")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _plain(value: Any, budget: list[int], depth: int = 0) -> Json:
    """The same in JSON's own types, with aliases written out."""
    budget[0] -= 1
    if depth > _DEPTH:
        raise _Unreadable(_TOO_DEEP)
    if budget[0] < 0:
        raise _Unreadable(f"the policy has more than {_NODES} values; simplify it")
    match value:
        case dict():
            return {_key(key): _plain(item, budget, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, budget, depth + 1) for item in value]
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
    return str(value)  # YAML's dates, which JSON has not


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


# --- shape ------------------------------------------------------------------------------------------------------------


def findings(value: Any, *at: str | int) -> Iterator[Finding]:
    """What is wrong with the policy that stands at this path. References are left alone.

    Within inline YAML a finding's path leads to the very value; within a text it ends at the text, and the words say
    where to look.
    """
    match value:
        case dict():
            for each in (*_document(value), *_unread(value, ())):
                yield Finding((*at, *each.path), each.text, each.remedy, each.severity, each.code)
        case str() | Secret():
            for each in _document(parse(value if isinstance(value, str) else value.reveal()) or {}):
                yield Finding(at, f"{_shown(each.path)}: {each.text}", each.remedy, each.severity, each.code)


def _document(document: dict[str, Any]) -> Iterator[Finding]:
    for phase, rules in document.items():
        if phase not in PHASES:
            yield _warning((phase,), f"{phase!r} is not a phase we know", phase, PHASES)
        elif _is_open(rules):
            continue
        elif rules is None:
            yield Finding((phase,), "has no rules", "write a list of rules below it, or leave it out")
        elif not isinstance(rules, list):
            yield Finding((phase,), "is not a list", "write a list of rules")
        else:
            for index, rule in enumerate(rules):
                yield from _rule(rule, (phase, index))


def _rule(rule: Any, at: tuple[str | int, ...]) -> Iterator[Finding]:
    if _is_open(rule):
        return
    if not isinstance(rule, dict):
        yield Finding(at, "is not a rule", "write a mapping with name, expressions and actions")
        return
    yield from _unknown_keys(rule, _RULE_KEYS, at)
    if not (_is_open(name := rule.get("name")) or name is None or isinstance(name, str)):
        yield Finding((*at, "name"), "is not text", "put it in quotes")
    yield from _expressions(rule.get("expressions", []), (*at, "expressions"))
    actions = rule.get("actions")
    if _is_open(actions):
        return
    if not isinstance(actions, list) or not actions:
        yield Finding((*at, "actions") if "actions" in rule else at, "has no actions", "write a list of at least one")
        return
    for index, action in enumerate(actions):
        yield from _action(action, (*at, "actions", index))


def _expressions(expressions: Any, at: tuple[str | int, ...]) -> Iterator[Finding]:
    if _is_open(expressions) or expressions is None:
        return
    if not isinstance(expressions, list):
        yield Finding(at, "is not a list", "write a list of expressions, even for one")
        return
    for index, expression in enumerate(expressions):
        if _is_open(expression):
            continue
        if not isinstance(expression, str) or not expression.strip():
            yield Finding((*at, index), "is not an expression", "write it as text, in quotes")
        else:
            yield from _expression(expression, (*at, index))


def _expression(text: str, at: tuple[str | int, ...], *, embedded: bool = False) -> Iterator[Finding]:
    """What is wrong with an expression. Within a text of a config it may be meant for somebody else: a warning."""
    if glance.is_in_order(text, VARIABLES, _FUNCTIONS):
        return
    if (wrong := cel.broken(text)) is not None:
        where = f"the expression {f'${{{text}}} ' if embedded else ''}{wrong.text}{_where(wrong.line, wrong.column)}"
        severity = Severity.WARNING if embedded else Severity.ERROR
        yield Finding(at, where, "correct it there", severity, "unreadable-interpolation" if embedded else "")
        return
    for each in cel.strangers(text, VARIABLES):
        if each.is_function and each.name in _FUNCTIONS:
            continue
        what = "function" if each.is_function else "variable"
        known = _FUNCTIONS if each.is_function else VARIABLES
        said = f"{each.name!r} is not a {what} we know{_where(each.line, each.column)}"
        yield _warning(at, said, each.name, sorted(known))


def _where(line: int, column: int) -> str:
    return f" (its column {column})" if line == 1 else f" (its line {line}, column {column})"


def _action(action: Any, at: tuple[str | int, ...]) -> Iterator[Finding]:
    if _is_open(action):
        return
    if not isinstance(action, dict):
        yield Finding(at, "is not an action", "write a mapping with type and config")
        return
    yield from _unknown_keys(action, _ACTION_KEYS, at)
    sort = action.get("type")
    if not (isinstance(sort, str) and sort) and not _is_open(sort):
        yield Finding((*at, "type") if "type" in action else at, "has no type", "name the action, such as type: deny")
    elif isinstance(sort, str) and sort not in ACTIONS:
        yield _warning((*at, "type"), f"{sort!r} is not an action we know", sort, sorted(ACTIONS))
    config = action.get("config")
    if config is not None and not isinstance(config, dict) and not _is_open(config):
        yield Finding((*at, "config"), "is not a mapping", "write the action's settings below config")
    yield from _embedded(config, (*at, "config"))


def _embedded(value: Any, at: tuple[str | int, ...]) -> Iterator[Finding]:
    """Expressions within the texts of a config: `${req.url.path}`."""
    match value:
        case str() if "${" in value:
            for found in _EMBEDDED.finditer(value):
                yield from _expression(found[1], at, embedded=True)
        case dict():
            for key, each in value.items():
                yield from _embedded(each, (*at, key))
        case list():
            for index, each in enumerate(value):
                yield from _embedded(each, (*at, index))


_ELSEWHERE = {
    "ref": "write ${{ Kind/name.output }}, in quotes",
    "from_env": "write ${{ var.name }}, or ${secrets.get('vault', 'name')} for a secret that is kept in a vault",
    "from_file": "take the whole policy from the file, or write ${{ var.name }}",
}


def _unread(value: Any, at: tuple[str | int, ...]) -> Iterator[Finding]:
    """What stands for something else in a field of ours, and within a document for itself."""
    match value:
        case dict():
            if len(value) == 1 and (word := next(iter(value))) in _ELSEWHERE and isinstance(value[word], str):
                what = f"{word} means nothing within a policy: the platform gets the map as it stands"
                yield Finding(at, what, _ELSEWHERE[word], Severity.WARNING, "policy-expression-source")
            for key, each in value.items():
                yield from _unread(each, (*at, key))
        case list():
            for index, each in enumerate(value):
                yield from _unread(each, (*at, index))


def _unknown_keys(found: dict[str, Any], known: tuple[str, ...], at: tuple[str | int, ...]) -> Iterator[Finding]:
    for key in found:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            remedy = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
            yield Finding((*at, key), f"{key!r} does not belong here", remedy)


def _warning(at: tuple[str | int, ...], text: str, word: str, known: Any) -> Finding:
    close = get_close_matches(word, list(known), 1)
    remedy = f"did you mean {close[0]}?" if close else "check its spelling; the platform decides"
    return Finding(at, text, remedy, Severity.WARNING, "unknown-in-policy")


def _is_open(value: Any) -> bool:
    """Whether it is not known yet, or hidden."""
    return isinstance(value, (Ref, Template, Secret))


def _shown(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
