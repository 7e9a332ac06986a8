"""Reads traffic policy documents and checks their phases, rules, actions, settings and expressions. Pure functions.

A policy is JSON or YAML 1.2 text, or the document itself. `traffic_catalog` lists what the platform documents.
Violations of the documented structure are errors. Undocumented phases, actions, settings and names are warnings,
because the platform adds new ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from reconciler.kinds.rules import secret_parts
from reconciler.languages import cel_plain, traffic_catalog
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.scalars import plain_lenient
from reconciler.model.numerals import keep_spelling
from reconciler.model.problem import Finding, Problem, Severity
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import Json, Ref, Sealed, Secret, Template, walk_texts

if TYPE_CHECKING:
    from reconciler.languages import cel_check

_RULE_KEYS = ("name", "expressions", "actions")
_ACTION_KEYS = ("type", "config")
_EMBEDDED = re.compile(r"(?<!\$)\$\{([^{}]+)\}")  # an expression that contains braces is not checked

Path = tuple[str | int, ...]

_SIZE = 256 * 1024  # characters: a hundred times a long policy
_DEPTH = 40
_TOO_DEEP = f"the policy has more than {_DEPTH} levels; simplify it"
_NODES = 20_000  # values with aliases expanded, so that a small text cannot grow without limit
_DIALECT = yaml.Dialect(merges=True, plain=plain_lenient, depth=_DEPTH, values=_NODES)


class _Unreadable(Exception):
    """The text is not a policy document; the message says why."""


# --- reading ----------------------------------------------------------------------------------------------------------


def parse(text: str) -> dict[str, Any] | None:
    """The document in a text, or None. Cached and shared between callers, who must not modify it."""
    document = _read(text)
    return document if isinstance(document, dict) else None


def why_not(text: str) -> str | None:
    """Why a text is not a policy document, as `problem; remedy`; None if it is one."""
    document = _read(text)
    return document if isinstance(document, str) else None


@lru_cache(maxsize=512)
def _read(text: str) -> dict[str, Any] | str:
    if not text.strip():
        return "the policy is empty; write rules below on_http_request or on_http_response"
    if len(text) > _SIZE:
        return f"the policy has more than {_SIZE} characters; shorten it"
    try:
        document = _limit_size(_decode(text), [_NODES])
    except _Unreadable as why:
        return str(why)
    if not isinstance(document, dict):
        return "this is not a policy document; write a mapping of phases, such as on_http_request, to rules"
    return document


def _decode(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_read_float, parse_int=_read_integer
        )
    except RecursionError:
        raise _Unreadable(_TOO_DEEP) from None
    except ValueError:
        return _decode_yaml(text)


def _decode_yaml(text: str) -> Json:
    reading = yaml.read(text.encode(errors="surrogatepass"), "", _DIALECT)
    for problem in reading.problems:
        raise _Unreadable(_explain(problem))
    if len(reading.documents) > 1:
        raise _Unreadable("the policy has several YAML documents; remove the --- lines between them")
    try:
        return yaml.resolve_merges(reading.documents[0].value) if reading.documents else None
    except ValueError as wrong:
        raise _Unreadable(f"{wrong}; write `<<: *name` of a mapping") from None


def _explain(problem: Problem) -> str:
    """A problem of the reader, without the words of the text: it may be a secret."""
    where = f"line {problem.position.line}, column {problem.position.column}" if problem.position else "the beginning"
    match problem.code:
        case "invalid-yaml":
            what = problem.text.removeprefix("invalid YAML: ")
            remedy = problem.remedy or "correct the syntax"
            return f"the policy is neither valid JSON nor valid YAML at {where}: {what}; {remedy}"
        case "duplicate-key":
            return f"the policy has a duplicate key at {where}; remove one of the two"
    return f"{problem.text} at {where}; {problem.remedy}"


def _read_float(text: str) -> float:
    return keep_spelling(text, float(text))


def _read_integer(text: str) -> int | float:
    return keep_spelling(text, int(text))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _limit_size(value: Json, budget: list[int], depth: int = 0) -> Json:
    """The value, whose floats are finite. `budget` holds the number of values that are still allowed."""
    budget[0] -= 1
    if depth > _DEPTH:
        raise _Unreadable(_TOO_DEEP)
    if budget[0] < 0:
        raise _Unreadable(f"the policy has more than {_NODES} values; simplify it")
    match value:
        case dict():
            return {key: _limit_size(item, budget, depth + 1) for key, item in value.items()}
        case list():
            return [_limit_size(item, budget, depth + 1) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
    return value


# --- shape ------------------------------------------------------------------------------------------------------------


def findings(value: Any, *at: str | int) -> Iterator[Finding]:
    """Finds the errors of the policy at this path of a spec. References are skipped.

    In inline YAML the path of a finding leads to the value itself. In a text it leads to the text, and `within`
    continues inside the document.
    """
    match value:
        case dict():
            for finding in (*_document(value), *_check_value_sources(value, ())):
                yield replace(finding, path=(*at, *finding.path))
        case Sealed():
            return
        case str() | Secret():
            for finding in _find_in_text(value if isinstance(value, str) else value.reveal()):
                text = f"{_format_path(finding.path)}: {finding.text}" if finding.path else finding.text
                yield replace(finding, path=at, text=text, within=finding.path)


@lru_cache(maxsize=512)  # thousands of resources may have the same policy
def _find_in_text(text: str) -> tuple[Finding, ...]:
    document = parse(text)
    return tuple(_document(document)) if document is not None else ()


def _document(document: dict[str, Any]) -> Iterator[Finding]:
    if not document:
        what = "the policy is empty: no rule applies to the traffic"
        yield _doubt((), what, "write rules below on_http_request or on_http_response", "traffic-empty")
    for phase, rules in document.items():
        if (now := traffic_catalog.OLD_PHASES.get(phase)) is not None:
            yield _doubt((phase,), f"{phase} is a deprecated name of a phase", f"use {now}", "traffic-renamed")
        elif phase not in traffic_catalog.PHASES:
            yield _unknown((phase,), "phase", phase, traffic_catalog.PHASES, "traffic-phase")
        if _is_open(rules) or phase not in {*traffic_catalog.PHASES, *traffic_catalog.OLD_PHASES}:
            continue
        if rules is None:
            yield Finding(
                (phase,), "has no rules", "write a list of rules below it, or remove it", code="traffic-missing"
            )
        elif isinstance(rules, dict) and "actions" in rules:
            yield Finding(
                (phase,), "is a single rule, not a list of rules", "put `- ` before the rule", code="traffic-rules"
            )
            yield from _rule(rules, (phase,), traffic_catalog.PHASES.get(phase, ""))
        elif not isinstance(rules, list):
            yield Finding((phase,), "is not a list", "write a list of rules", code="traffic-shape")
        else:
            for index, rule in enumerate(rules):
                yield from _rule(rule, (phase, index), traffic_catalog.PHASES.get(phase, ""))


def _rule(rule: Any, at: Path, phase: str) -> Iterator[Finding]:
    if _is_open(rule):
        return
    if not isinstance(rule, dict):
        yield Finding(at, "is not a rule", "write a mapping with name, expressions and actions", code="traffic-shape")
        return
    is_action = "type" in rule and "actions" not in rule
    if is_action:
        yield Finding(at, "is an action, not a rule", "put it below `- actions:`", code="traffic-rules")
    yield from _unknown_keys(rule, (*_RULE_KEYS, *_ACTION_KEYS) if is_action else _RULE_KEYS, at)
    if not (_is_open(name := rule.get("name")) or name is None or isinstance(name, str)):
        yield Finding((*at, "name"), "is not text", "put it in quotes", code="traffic-shape")
    yield from _expressions(rule.get("expressions", []), (*at, "expressions"))
    if is_action:
        yield from _action({key: rule[key] for key in _ACTION_KEYS if key in rule}, at, phase)
    else:
        yield from _actions(rule, at, phase)


def _actions(rule: dict[str, Any], at: Path, phase: str) -> Iterator[Finding]:
    actions = rule.get("actions")
    if _is_open(actions):
        return
    if isinstance(actions, dict) and "type" in actions:
        at = (*at, "actions")
        yield Finding(
            at, "is a single action, not a list of actions", "put `- ` before the action", code="traffic-rules"
        )
        yield from _action(actions, at, phase)
        return
    if not isinstance(actions, list) or not actions:
        yield Finding(
            (*at, "actions") if "actions" in rule else at,
            "has no actions",
            "write a list of at least one action",
            code="traffic-missing",
        )
        return
    for index, action in enumerate(actions):
        yield from _action(action, (*at, "actions", index), phase)


def _expressions(written: Any, at: Path) -> Iterator[Finding]:
    if _is_open(written) or written is None:
        return
    if not isinstance(written, list):
        yield Finding(at, "is not a list", "write a list of expressions, even for one", code="traffic-shape")
        return
    for index, expression in enumerate(written):
        if _is_open(expression):
            continue
        if not isinstance(expression, str) or not expression.strip():
            yield Finding((*at, index), "is not an expression", "write it as text, in quotes", code="traffic-shape")
        else:
            yield from (_place_flaw(flaw, (*at, index)) for flaw in _find_flaws(expression))


def _find_flaws(expression: str, *, is_condition: bool = True) -> Iterable[cel_check.Flaw]:
    if is_condition and cel_plain.is_plain_condition(expression):
        return ()
    # Imported here: it takes a tenth of the start, and few expressions need it.
    from reconciler.languages import cel_check

    return cel_check.find_flaws(expression, is_condition=is_condition)


def _place_flaw(flaw: cel_check.Flaw, at: Path, text: str = "", begin: int = 0) -> Finding:
    """The finding of a flaw in an expression that begins at the offset `begin` of `text`."""
    line, column = flaw.line, flaw.column
    before = text[:begin]
    if line == 1:
        column += len(before) - before.rfind("\n") - 1
    return Finding(at, flaw.text, flaw.remedy, flaw.severity, code=flaw.code, spot=(line + before.count("\n"), column))


def _action(action: Any, at: Path, phase: str) -> Iterator[Finding]:
    if _is_open(action):
        return
    if not isinstance(action, dict):
        yield Finding(at, "is not an action", "write a mapping with type and config", code="traffic-shape")
        return
    yield from _unknown_keys(action, _ACTION_KEYS, at)
    type_ = action.get("type")
    known: traffic_catalog.Action | None = None
    if not (isinstance(type_, str) and type_) and not _is_open(type_):
        yield Finding(
            (*at, "type") if "type" in action else at,
            "has no type",
            "set the type of the action, such as `type: deny`",
            code="traffic-missing",
        )
    elif isinstance(type_, str):
        if (now := traffic_catalog.OLD_ACTIONS.get(type_)) is not None:
            yield _doubt((*at, "type"), f"{type_} is a deprecated name of an action", f"use {now}", "traffic-renamed")
        elif (known := traffic_catalog.actions().get(type_)) is None:
            yield _unknown((*at, "type"), "action", type_, sorted(traffic_catalog.actions()), "traffic-action")
        if (remedy := traffic_catalog.DEPRECATED_ACTIONS.get(type_)) is not None:
            yield _doubt((*at, "type"), f"the action {type_} is deprecated", remedy, "traffic-deprecated")
        if known is not None and phase and phase not in known.phases:
            phases = [name for name, letter in traffic_catalog.PHASES.items() if letter in known.phases]
            what = f"the action {type_} is not documented for this phase"
            yield _doubt((*at, "type"), what, f"move it to {' or '.join(phases)}", "traffic-phase")
    config = action.get("config")
    if config is not None and not isinstance(config, dict) and not _is_open(config):
        yield Finding(
            (*at, "config"), "is not a mapping", "write the action's settings below config", code="traffic-shape"
        )
    elif known is not None and isinstance(type_, str) and not known.is_open and not _is_open(config):
        yield from _settings(config or {}, known.settings, (*at, "config") if config else at, type_, ())
    else:
        yield from _check_embedded(config, (*at, "config"), False)


_Settings = Mapping[str, traffic_catalog.Setting]


def _settings(written: dict[str, Any], known: _Settings, at: Path, action: str, above: Path) -> Iterator[Finding]:
    """Finds the errors in the settings of an action, or in the settings inside one of them (`above`)."""
    names = set()
    for key, value in written.items():
        now = traffic_catalog.OLD_SETTINGS.get((action, key)) or next(
            (k for k in known if k == key.lower() != key), None
        )
        if now is not None:
            yield _doubt((*at, key), f"{key} is a deprecated name of a setting", f"use {now}", "traffic-renamed")
        name = now or key
        names.add(name)
        if name in known:
            yield from _setting(value, known[name], (*at, key), action, (*above, name))
            continue
        from reconciler.languages import cel_check

        meant = cel_check.find_misspelling(key, known)
        what = f"{action} has no setting {_format_path((*above, key))!r}"
        if meant is not None:
            yield Finding((*at, key), what, f"did you mean {meant}?", code="traffic-setting", is_key=True)
        else:
            hint = f"the known settings are {', '.join(known)}" if known else "remove it"
            what = f"unknown setting {_format_path((*above, key))!r} of {action}"
            yield replace(_doubt((*at, key), what, hint, "traffic-setting"), is_key=True)
        yield from _check_embedded(value, (*at, key), False)
    for name in known:
        if known[name].is_required and written.get(name) is None and name not in names:
            if (action, name) == ("verify-webhook", "secret") and written.get("provider") == "sns":
                continue  # sns signs without a secret
            what = f"{action} requires the setting {_format_path((*above, name))!r}"
            yield Finding(at, what, f"add {name} below {_format_path(above) or 'config'}", code="traffic-missing")


def _setting(value: Any, known: traffic_catalog.Setting, at: Path, action: str, above: Path) -> Iterator[Finding]:
    if _is_open(value) or value is None or (known.is_secret and any(secret_parts.find_below(value))):
        return
    if known.is_expression:
        for path, text in walk_texts(value, at):
            yield from (_place_flaw(flaw, path) for flaw in _find_flaws(text, is_condition=False))
        return
    if known.settings and isinstance(value, (dict, list)):
        items = [(at, value)] if isinstance(value, dict) else [((*at, index), item) for index, item in enumerate(value)]
        for path, item in items:
            if isinstance(item, dict):
                yield from _settings(item, known.settings, path, action, above)
        return
    if known.values:
        for path, item in [(at, value)] if not isinstance(value, list) else walk_texts(value, at):
            if str(item) not in known.values and "${" not in str(item):
                what = f"unknown value {item!r} of {_format_path(above)}"
                yield _doubt(path, what, f"the known values are {', '.join(known.values)}", "traffic-value")
    yield from _check_embedded(value, at, known.is_template)


def _check_embedded(value: Any, at: Path, is_template: bool) -> Iterator[Finding]:
    """Finds the errors of expressions inside the texts of a setting, such as `${req.url.path}`.

    Only a warning if the setting is not documented to take expressions, or if the text is not an expression or begins
    with an unknown name: it may then be meant for another system.
    """
    for path, text in walk_texts(value, at):
        for match in _EMBEDDED.finditer(text):
            for flaw in _find_flaws(match[1], is_condition=False):
                finding = _place_flaw(flaw, path, text, match.start(1))
                is_text = flaw.code == "traffic-syntax"
                foreign = is_text or (flaw.line, flaw.column) == (1, 1)
                if foreign or not is_template:
                    code = "unreadable-interpolation" if is_text else finding.code
                    finding = replace(finding, severity=Severity.WARNING, code=code)
                yield replace(finding, text=f"${{{match[1]}}}: {finding.text}") if foreign else finding


_ELSEWHERE = {
    "ref": "write ${{ Kind/name.output }}, in quotes",
    "from_env": "write ${{ var.name }}, or ${secrets.get('vault', 'name')} for a secret in a vault",
    "from_file": "read the whole policy from the file, or write ${{ var.name }}",
}


def _check_value_sources(value: Any, at: Path) -> Iterator[Finding]:
    """Warns of `ref`, `from_env` and `from_file` inside a document, where they are not resolved."""
    match value:
        case dict():
            if len(value) == 1 and (word := next(iter(value))) in _ELSEWHERE and isinstance(value[word], str):
                what = f"{word} is not resolved inside a policy: the platform receives the mapping itself"
                yield _doubt(at, what, _ELSEWHERE[word], "policy-expression-source")
            for key, item in value.items():
                yield from _check_value_sources(item, (*at, key))
        case list():
            for index, item in enumerate(value):
                yield from _check_value_sources(item, (*at, index))


def _unknown_keys(mapping: dict[str, Any], known: tuple[str, ...], at: Path) -> Iterator[Finding]:
    for key in mapping:
        if key not in known:
            remedy = did_you_mean(str(key), known) or f"the valid keys are {', '.join(known)}"
            yield Finding((*at, key), f"unknown key {key!r}", remedy, code="traffic-key", is_key=True)


def _unknown(at: Path, what: str, word: str, known: Collection[str], code: str) -> Finding:
    remedy = did_you_mean(word, known) or "check the spelling"
    return _doubt(at, f"unknown {what} {word!r}", remedy, code)


def _doubt(at: Path, text: str, remedy: str, code: str) -> Finding:
    return Finding(at, text, remedy, Severity.WARNING, code=code)


def _is_open(value: Any) -> bool:
    """Whether a value cannot be checked, because it is a reference, a template or a secret."""
    return isinstance(value, (Ref, Template, Secret))


def _format_path(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
