"""Converts pydantic's errors into findings in plain words, and findings into problems with positions.

No message repeats a value that may be secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml import scalars
from reconciler.languages.yaml.positions import Places
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape, fields_of
from reconciler.model.fields.form import Form
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.kind import Kind
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding, Problem
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.model.value import Sealed, Secret, Value, has_secret, value_at
from reconciler.project.documents import phrases

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MISSING: Final = "missing required field"
MAX_FINDINGS: Final = 100  # per resource
_EXPECTED: Final = {
    "string_type": "text",
    "string_sub_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
}
_EXAMPLES: Final = {
    "text": 'write text, as in "value"',
    "a map": "write a map, as in {key: value}",
    "a whole number": "write digits without quotes, as in 10",
    "a number": "write digits without quotes, as in 0.5",
}
_RULES: Final = {  # code by pydantic's error type; any other type is an `invalid-value`
    "too_many_bytes": "value-too-long",
    "string_too_long": "value-too-long",
    "too_long": "value-too-long",
    "out_of_range": "value-out-of-range",
    "traffic_policy": "traffic-unreadable",
}
_BOUNDS: Final = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def problems_of(error: ValidationError, value: Value, fields: Sequence[Field]) -> list[Finding]:
    """Converts a pydantic error into findings. Several errors about one value (the arms of a union) become one."""
    by_path: dict[Path, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False, include_input=False):
        by_path.setdefault(_path(detail, value), []).append(detail)
    # One more than the limit, so that the caller can tell that there are more.
    return [_make_finding(path, by_path[path], value, fields) for path in islice(by_path, MAX_FINDINGS + 1)]


def to_problem(finding: Finding, places: Places, subject: str = "", below: Path = ()) -> Problem:
    """Converts a finding into a problem with a position.

    The path of the finding is relative to `below` in the document, and is appended to the subject.
    """
    path = (*below, *finding.path)
    is_key = finding.is_key and not finding.within and path in places
    where = places.key(path) if is_key else places.nearest(path)
    name = ".".join(part for part in (subject, phrases.format_path(finding.path)) if part)
    code, values = finding.code, finding.values
    return Problem(finding.text, finding.remedy, name, where, finding.severity, code=code, values=values)


def report_unknown_field(path: Path, known: Sequence[str], remedy: str = "") -> Finding:
    """The finding for an unknown key. `remedy` replaces the suggestion of a known name."""
    name = str(path[-1])
    remedy = remedy or did_you_mean(name, known) or (f"use {phrases.join_words(known)}" if known else "remove it")
    values = with_suggestion("field", name, known)
    return Finding(path, "unknown field", remedy, code="unknown-field", values=values, is_key=True)


def report_missing_field(path: Path, remedy: str = "") -> Finding:
    """The finding for a missing required field."""
    return Finding(path, MISSING, remedy, code="missing-field", values={"field": str(path[-1])})


def findings_of(spec: Form) -> list[Finding]:
    """Runs the rules of a valid spec and of its parts at every depth. Returns findings with paths in the spec."""
    findings: list[Finding] = []
    if isinstance(spec, (Spec, Part)) and _has_rules(type(spec)):
        findings += spec.findings()
    if parts := _with_parts(type(spec)):
        values = vars(spec)
        for name in parts:
            if (inner := values[name]) is not None:
                findings += _inner(inner, (name,))
    return findings


@cache
def _with_parts(shape: type[Form]) -> tuple[str, ...]:
    """Names of the fields that contain parts, or lists or maps of parts."""
    return tuple(
        field.name for field in fields_of(shape) if Shape.OBJECT in (field.shape, field.item and field.item.shape)
    )


@cache
def _has_rules(shape: type[Spec] | type[Part]) -> bool:
    return shape.findings not in (Spec.findings, Part.findings)


def _inner(item: Any, path: Path) -> Iterator[Finding]:
    match item:
        case Part():
            for finding in findings_of(item):
                yield replace(finding, path=(*path, *finding.path))
        case list():
            for index, inner in enumerate(item):
                yield from _inner(inner, (*path, index))
        case dict():
            for key, inner in item.items():
                yield from _inner(inner, (*path, key))


def field_at(fields: Sequence[Field], path: Path) -> tuple[Field | None, bool]:
    """Returns the field at a path (None if there is none), and whether it or a field around it is sensitive."""
    here: Field | None = None
    sensitive = False
    for part in path:
        if isinstance(part, int) or (here is not None and here.shape is Shape.MAP):
            here = here.item if here is not None else None
        else:
            here = next((field for field in (fields if here is None else here.fields) if field.name == part), None)
        if here is None:
            return None, sensitive
        sensitive = sensitive or Behavior.SENSITIVE in here.behaviors
    return here, sensitive


def field_in_manifest(kind: Kind, path: Path) -> tuple[Field | None, bool]:
    """As `field_at`, for a path in a manifest of the kind: below its spec, or in an inline child."""
    if path[:1] == ("spec",):
        return field_at(kind.fields, path[1:])
    child = kinds.inline_children(kind.name).get(str(path[0])) if len(path) > 2 else None
    return (None, False) if child is None else field_at(child.fields, path[2:])


def _path(detail: ErrorDetails, value: Value) -> Path:
    """The location of an error without pydantic's markers for arms of unions and validators."""
    *parts, last = detail["loc"] or ("",)
    path: list[str | int] = []
    here = value
    for part in parts:
        if _holds(here, part):
            path.append(part)
            here = here[part]
    if detail["type"] == "missing" or _holds(here, last):
        path.append(last)
    return tuple(path)


def _holds(value: Value, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(value, list) and part < len(value)
    return isinstance(value, dict) and part in value


def _make_finding(path: Path, details: list[ErrorDetails], value: Value, fields: Sequence[Field]) -> Finding:
    field, sensitive = field_at(fields, path)
    here = value_at(value, path)
    kind, context = details[0]["type"], details[0].get("ctx", {})
    if kind == "missing":
        return report_missing_field(path)
    if kind == "extra_forbidden":
        around, _ = field_at(fields, path[:-1])
        return report_unknown_field(path, [field.name for field in (around.fields if around else fields)])
    if kind == "literal_error":
        return _report_unknown_choice(path, here, field.choices if field else (), sensitive)
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        values = {"limit": context[key]}
        remedy = f"the default is {field.default}" if field is not None and field.default is not None else ""
        return Finding(path, f"must be {words} {context[key]}", remedy, code="value-out-of-range", values=values)
    expected = list(dict.fromkeys(_EXPECTED[detail["type"]] for detail in details if detail["type"] in _EXPECTED))
    rules = [detail for detail in details if detail["type"] not in _EXPECTED]
    if not rules:
        return _report_wrong_type(path, phrases.join_words(expected), here)
    text, _, remedy = _message(rules[0]).partition("; ")
    if has_secret(here) or sensitive:
        text, remedy = _without_secret(text, here), _without_secret(remedy, here)
    limit = rules[0].get("ctx", {}).get("limit")
    values = {} if limit is None else {"limit": limit}
    return Finding(path, text, remedy, code=_RULES.get(rules[0]["type"], "invalid-value"), values=values)


def _message(detail: ErrorDetails) -> str:
    """The message of a kind's own rule; for pydantic's other errors only their type, since messages repeat values."""
    wrong = detail.get("ctx", {}).get("wrong")
    if isinstance(wrong, str):
        return wrong
    if detail["msg"].startswith(("Input ", "Value ", "Assertion ")):
        return f"invalid value ({detail['type'].replace('_', ' ')}); `reconciler explain` shows what the field takes"
    return detail["msg"]


def _without_secret(text: str, value: Value) -> str:
    if isinstance(value, Sealed):
        return text
    secret = value.reveal() if isinstance(value, Secret) else value if isinstance(value, str) else ""
    return text.replace(repr(secret), "the value").replace(secret, "…") if secret else text


def _report_unknown_choice(path: Path, value: Value, choices: Sequence[str], sensitive: bool) -> Finding:
    if len(choices) == 1 and isinstance(value, int) and not sensitive:
        return Finding(path, f"expected {choices[0]}, found {value}", f"write {choices[0]}", code="unknown-choice")
    if not isinstance(value, str):
        return _report_wrong_type(path, f"one of {phrases.join_words(choices)}" if choices else "text", value)
    quoted = "this" if sensitive else repr(value)
    return Finding(
        path,
        f"{quoted} is not one of {phrases.join_words(choices)}",
        did_you_mean(value, choices),
        code="unknown-choice",
        values={"choices": list(choices)},
    )


def _report_wrong_type(path: Path, expected: str, value: Value) -> Finding:
    found = phrases.describe_found(value)
    values = {"expected": expected, "found": found}
    return Finding(
        path,
        f"expected {expected}, found {found}",
        _suggest_type_fix(expected, value),
        code="wrong-type",
        values=values,
    )


def _suggest_type_fix(expected: str, value: Value) -> str:
    """The remedy for a value of the wrong type."""
    if value is None:
        return "set a value, or remove the line"
    if (
        isinstance(value, dict)
        and len(value) == 1
        and (remedy := phrases.suggest_expression(*next(iter(value.items()))))
    ):
        return remedy
    if expected.startswith("text") and isinstance(value, (bool, int, float)):
        return "quote it"
    if expected == "a list":
        return (
            "put it in brackets: [ … ]"
            if not isinstance(value, dict) or phrases.describe_found(value) != "a map"
            else "write a list"
        )
    if isinstance(value, str):
        try:
            unquoted = scalars.plain(value)
        except ValueError:
            unquoted = value
        if phrases.describe_found(unquoted) == expected or (expected == "true or false" and isinstance(unquoted, bool)):
            return "remove the quotes"
    return _EXAMPLES.get(expected, f"write {expected}")
