"""Variables: their declarations in the project file, and their values for one run.

A value comes from `--var`, the environment's file or the project file, in this order. Problems have the position of
the value. `documents.resolve` substitutes values into text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml import scalars
from reconciler.languages.yaml.positions import Places
from reconciler.model.problem import Finding, Problem, Rejected
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.model.value import PENDING, Json
from reconciler.project.documents import phrases, validation
from reconciler.project.documents.merge import SourceLocation
from reconciler.project.documents.resolve import Variable
from reconciler.project.settings.environments import Environment

TYPES: Final[Mapping[str, tuple[str, type | tuple[type, ...]]]] = {
    "string": ("text", str),
    "integer": ("a whole number", int),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", bool),
    "list": ("a list", list),
    "map": ("a map", dict),
}
NO_VALUE: Final = "variable-without-value"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_KEYS: Final = ("type", "default", "description")
_EXAMPLES: Final = {
    "string": '"text"',
    "integer": "3",
    "number": "0.5",
    "boolean": "true",
    "list": "[a, b]",
    "map": "{a: 1}",
}


class Setting(Struct, frozen=True):
    """A variable with its type, value and source. `value` is None if nothing sets it.

    source    `--var`, `environment prod` or `default`
    origin    `env:NAME` or `file:path`, if the value is read from there
    spot      location of the value, or of the declaration if there is no value
    """

    value: Variable | None = None
    type: str | None = None
    source: str = "default"
    spot: SourceLocation | None = None
    origin: str = ""


def origins(written: Any) -> dict[str, str]:
    """Sources of the variables whose value is `{from_env: NAME}` or `{from_file: path}`, by name."""
    by_name = {}
    for name, item in written.items() if isinstance(written, Mapping) else ():
        if isinstance(item, Mapping) and len(item) == 1:
            (word, operand), *_ = item.items()
            if word in ("from_env", "from_file") and isinstance(operand, str):
                by_name[name] = f"{word.removeprefix('from_')}:{operand}"
    return by_name


def sources(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Sources of the variables whose value is not written in YAML, by name: `env:NAME`, `file:path` or `--var`."""
    by_name = {
        name: setting.source if setting.source == "--var" else setting.origin for name, setting in settings.items()
    }
    return {name: source for name, source in by_name.items() if source}


def read_variables(values: Mapping[str, Any], written: Any, places: Places) -> tuple[dict[str, Setting], list[Finding]]:
    """Reads the variables of a project file. Returns them by name, and findings with paths in the file.

    `values` is `written` with resolved `{from_env: NAME}` and `{from_file: path}`.
    """
    sources = origins(written)
    settings: dict[str, Setting] = {}
    findings: list[Finding] = []
    for name, item in values.items():
        path = ("variables", name)
        if not _NAME.fullmatch(name):
            text = f"{name!r} is not a valid variable name"
            findings.append(
                Finding(path, text, "use letters, digits, '_' and '-', beginning with a letter", code="invalid-name")
            )
        elif isinstance(item, dict):
            settings[name] = _read_declaration(item, places, path, findings)
        elif item is None:
            findings.append(
                Finding(
                    path, "expected a value, found nothing", "write {type: …} if it has no default", code="wrong-type"
                )
            )
        else:
            kind = "list" if isinstance(item, list) else None
            settings[name] = Setting(item, kind, spot=SourceLocation(places, path))
    return {name: replace(setting, origin=sources.get(name, "")) for name, setting in settings.items()}, findings


def _read_declaration(item: dict[str, Any], places: Places, path: tuple[str, ...], findings: list[Finding]) -> Setting:
    findings += [validation.report_unknown_field((*path, key), _KEYS) for key in item if key not in _KEYS]
    kind, default = item.get("type"), item.get("default")
    if kind is not None and kind not in TYPES:
        remedy = did_you_mean(str(kind), TYPES) or f"use {phrases.join_words(TYPES)}"
        findings.append(Finding((*path, "type"), "unknown type", remedy, code="unknown-choice"))
        kind = None
    if default is None:
        return Setting(type=kind, spot=SourceLocation(places, path))
    if (mismatch := check_type(default, kind)) is not None:
        findings.append(Finding((*path, "default"), *mismatch, code="wrong-type"))
    return Setting(default, kind, spot=SourceLocation(places, (*path, "default")))


def apply_environment(
    settings: Mapping[str, Setting], values: Mapping[str, Any], environment: Environment
) -> tuple[dict[str, Setting], list[Finding]]:
    """Sets the values of an environment's file. Returns the variables, and findings with paths in that file."""
    merged = dict(settings)
    sources = origins(environment.variables)
    findings: list[Finding] = []
    for name, value in values.items():
        path = ("variables", name)
        variable = settings.get(name)
        if variable is None:
            findings.append(
                Finding(
                    path,
                    f"unknown variable {name}",
                    _suggest_variable(name, settings),
                    code="unknown-variable",
                    values=with_suggestion("variable", name, settings),
                )
            )
        elif value is None:
            findings.append(
                Finding(
                    path, "expected a value, found nothing", "remove the line to keep the default", code="wrong-type"
                )
            )
        elif (mismatch := check_type(value, variable.type)) is not None:
            findings.append(Finding(path, *mismatch, code="wrong-type"))
        else:
            merged[name] = Setting(
                value,
                variable.type,
                f"environment {environment.name}",
                SourceLocation(environment.places, path),
                sources.get(name, ""),
            )
    return merged, findings


def _suggest_variable(name: str, settings: Mapping[str, Setting]) -> str:
    """The remedy for an unknown variable."""
    return did_you_mean(name, settings) or "define it under variables: in reconciler.yaml"


def settle_variables(
    settings: Mapping[str, Setting], overrides: Mapping[str, Variable], problems: list[Problem]
) -> dict[str, Setting]:
    """Sets values from the command line. Returns the variables of this run; adds to `problems`."""
    merged = dict(settings)
    for name, value in overrides.items():
        variable = settings.get(name)
        if variable is None:
            problems.append(_report_undeclared(name, settings))
            continue
        merged[name] = replace(variable, value=value, source="--var", spot=None, origin="")
        if variable.type is not None:
            converted, mismatch = convert(value, variable.type)
            usable: Any = converted if mismatch is None else PENDING  # whose uses are not reported
            merged[name] = replace(merged[name], value=usable)
            if mismatch is not None:
                text, _ = mismatch
                remedy = f"write --var '{name}={_EXAMPLES.get(variable.type, 'text')}'"
                problems.append(Problem(text, remedy, f"--var {name}", code="wrong-type"))
    problems += _report_unset(merged)
    return merged


def check_names(settings: Mapping[str, Setting], names: Iterable[str]) -> None:
    """Raises Rejected if the command line names an unknown variable."""
    if problems := [_report_undeclared(name, settings) for name in names if name not in settings]:
        raise Rejected(problems)


def _report_undeclared(name: str, settings: Mapping[str, Setting]) -> Problem:
    return Problem(
        "unknown variable",
        _suggest_variable(name, settings),
        f"--var {name}",
        code="unknown-variable",
        values=with_suggestion("variable", name, settings),
    )


def _report_unset(settings: Mapping[str, Setting]) -> Iterator[Problem]:
    for name, setting in settings.items():
        if setting.value is None:
            remedy = f"set it with --var {name}=VALUE, in environments/NAME.yaml or with a default"
            where = setting.spot.position if setting.spot else None
            yield Problem("has no value", remedy, f"variables.{name}", where, code=NO_VALUE)


def convert(value: Variable, kind: str) -> tuple[Variable, tuple[str, str] | None]:
    """Converts text from the command line to the type of the variable. Returns the value and a type error, if any."""
    converted: Json = value
    if isinstance(value, str) and kind in ("list", "map"):
        reading = yaml.read(value.encode(), "--var")
        if reading.problems or len(reading.documents) != 1:
            return value, (f"expected {TYPES[kind][0]}, found invalid YAML", "")
        converted = reading.documents[0].value
    elif isinstance(value, str) and kind != "string" and value:
        try:
            converted = scalars.plain(value)
        except ValueError:
            converted = value
    return converted, check_type(converted, kind)


def check_type(value: Json, kind: str | None) -> tuple[str, str] | None:
    """Checks a value against a type. Returns text and remedy of the problem, if any."""
    if kind is None or value is PENDING:
        return None
    expected, python_type = TYPES[kind]
    if isinstance(value, python_type) and (kind == "boolean" or not isinstance(value, bool)):
        return None
    quote = kind == "string" and isinstance(value, (int, float))
    return (
        f"expected {expected}, found {phrases.describe_found(value)}",
        "quote it" if quote else f"write {expected}, as in {_EXAMPLES[kind]}",
    )
