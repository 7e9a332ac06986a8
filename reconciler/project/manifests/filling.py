"""Inserts values into a document before it is read: the item of a `for_each`, or the inputs of a component.

A text that is one expression becomes the value itself, any other text contains it. Where each value comes from is kept.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from reconciler import kinds
from reconciler.languages.yaml.reader import Document
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding
from reconciler.model.value import Json
from reconciler.project.documents import functions, phrases, validation
from reconciler.project.documents.budget import Budget
from reconciler.project.documents.merge import SourceLocation

_CALL: Final = re.compile(r"(\$?)\$\{\{\s*([a-z]+\s*\((?:(?!\}\}).)*)\}\}", re.DOTALL)
_LATER: Final = ("var.", "each.")  # names that are evaluated after these
_KEPT: Final = (("for_each",), ("when",))  # keys that need a value: nothing is an error there


class Wrong(Exception):
    """A mistake in a document, as a finding with a path in it."""

    def __init__(self, path: Path, text: str, remedy: str, code: str) -> None:
        super().__init__(text)
        self.finding = Finding(path, text, remedy, code=code)


class Names(ABC):
    """The names whose values are inserted.

    roots        what expressions begin with, such as `each`
    code         of mistakes in expressions
    usage        the remedy for an unknown name in a call
    part         the remedy for a value that cannot be part of a text
    may_lack     whether `default` may name a value that does not exist
    drops_null   whether a field whose value is nothing is left out
    """

    roots: tuple[str, ...]
    code: str
    usage: str
    part: str
    may_lack = False
    drops_null = False

    expression: re.Pattern[str]

    def __init_subclass__(cls) -> None:
        cls.expression = re.compile(rf"(\$?)\$\{{\{{\s*((?:{'|'.join(cls.roots)})\b[^{{}}]*)\}}\}}")

    @abstractmethod
    def evaluate(self, expression: str, path: Path) -> tuple[Json, SourceLocation | None, Sequence[SourceLocation]]:
        """The value of an expression, its source, and the sources of the texts in it. Raises Wrong."""

    def check_part(self, text: str, path: Path) -> None:  # noqa: B027 - most texts may contain any
        """Raises Wrong for a text that cannot become part of another one."""

    def to_argument(self, value: Json) -> Json | functions.Unevaluated:
        """A value as an argument of a function."""
        return value

    @classmethod
    def are_in(cls, text: str) -> bool:
        """Whether a text has one of these names, as an expression or in a call."""
        return cls.expression.search(text) is not None or cls.are_in_calls(text)

    @classmethod
    def are_in_calls(cls, text: str) -> bool:
        # Without a `}}` behind it, each opening would be searched to the end of the text.
        calls = _CALL.finditer(text, 0, text.rfind("}}") + 2)
        return any(not match[1] and cls.are_in_call(match[2]) for match in calls)

    @classmethod
    def are_in_call(cls, expression: str) -> bool:
        return functions.is_call(expression) and any(map(cls.is_one, functions.names_in(expression)))

    @classmethod
    def is_one(cls, name: str) -> bool:
        return name.partition(".")[0] in cls.roots


def find_kind(document: Document) -> Kind | None:
    """The kind of a document; None if it is unknown."""
    name = document.value.get("kind")
    return kinds.find(name) if isinstance(name, str) and name.isidentifier() else None


class Filling:
    """Inserts the values of some names into one document.

    grafts    sources of the values that were inserted as a whole, by path
    fed       sources of the texts that were inserted into a value, by path
    """

    def __init__(self, names: Names, budget: Budget, kind: Kind | None) -> None:
        self._names = names
        self._budget = budget
        self._kind = kind
        self.grafts: dict[Path, SourceLocation] = {}
        self.fed: dict[Path, list[SourceLocation]] = {}
        self.findings: list[Finding] = []

    def fill(self, value: Json, path: Path) -> Json:
        """Returns the value with the names replaced. Raises OverBudget."""
        match value:
            case str() if "${{" in value:
                return self._text(value, path)
            case dict():
                self._budget.charge({})
                return self._map(value, path)
            case list():
                self._budget.charge([])
                return [self.fill(item, (*path, index)) for index, item in enumerate(value)]
        self._budget.charge(value)
        return value

    def _map(self, value: dict[str, Json], path: Path) -> dict[str, Json]:
        filled: dict[str, Json] = {}
        for key, item in value.items():
            self._budget.charge_key(key)
            here = (*path, key)
            put = self.fill(item, here)
            if put is None and item is not None and self._names.drops_null and not self._needs_value(here):
                continue
            filled[key] = put
        return filled

    def _needs_value(self, path: Path) -> bool:
        """Whether the key is kept if its value is nothing: that is an error there."""
        inline = kinds.inline_children(self._kind.name) if self._kind is not None else ()
        return path in _KEPT or (len(path) == 3 and path[0] in inline and path[2:] in _KEPT)

    def _text(self, text: str, path: Path) -> Json:
        self._budget.charge(text)
        try:
            whole = self._names.expression.fullmatch(text)
            if whole is not None and not whole[1]:
                value, spot = self._evaluate(whole[2], path)
                self._budget.charge(value)
                if spot is not None:
                    self.grafts[path] = spot
                is_text = path == ("name",) or (isinstance(value, (int, float)) and self._takes_text(path))
                return self._to_text(value, path) if is_text else value
            if self._names.are_in_calls(text):
                filled = self._fill_calls(text, path)
                if not isinstance(filled, str):
                    return filled
                text = filled
            return self._names.expression.sub(lambda match: self._substitute(match, path), text)
        except Wrong as wrong:
            self.findings.append(wrong.finding)
            return text

    def _fill_calls(self, text: str, path: Path) -> Json:
        """Evaluates calls of functions with the names. A call that also has others gets their values as literals."""
        whole = _CALL.fullmatch(text)
        if whole is not None and not whole[1] and self._names.are_in_call(whole[2]):
            return self._call(whole[2].strip(), path, is_whole=True)

        def put(match: re.Match[str]) -> str:
            if match[1] or not self._names.are_in_call(match[2]):
                return match[0]
            return str(self._call(match[2].strip(), path, is_whole=False))

        end = text.rfind("}}") + 2  # as in `are_in_calls`
        return _CALL.sub(put, text[:end]) + text[end:]

    def _call(self, expression: str, path: Path, *, is_whole: bool) -> Json:
        if self._is_secret(path):
            text = "functions are not available in secret fields"
            raise Wrong(path, text, "read the whole secret with {from_env: NAME}", "invalid-expression")
        try:
            names = list(functions.names_in(expression))
            own = {name: self._argument(name, expression, path) for name in names if self._names.is_one(name)}
            is_later = any(isinstance(value, functions.Unevaluated) for value in own.values())
            if is_later or any(name.startswith(_LATER) for name in names if name not in own):
                substituted = f"${{{{ {functions.substitute(expression, own)} }}}}"
                self._budget.charge_text(substituted)
                return substituted
            value = functions.evaluate(expression, partial(self._look_up, own), self._budget.charge)
        except functions.InvalidCall as wrong:
            raise Wrong(path, str(wrong), wrong.remedy, "invalid-expression") from None
        is_number = isinstance(value, (int, float)) and self._takes_text(path)
        text = self._to_text(value, path) if not is_whole or path == ("name",) or is_number else value
        return text.replace("${{", "$${{") if isinstance(text, str) else text

    def _argument(self, name: str, expression: str, path: Path) -> Json | functions.Unevaluated:
        try:
            return self._names.to_argument(self._evaluate(name, path)[0])
        except Wrong:
            has_fallback = re.search(rf"\bdefault\(\s*{re.escape(name)}\s*,", expression)
            if not has_fallback or not self._names.may_lack:
                raise
            return None  # a value that this item does not have

    def _look_up(self, own: Mapping[str, Any], name: str) -> Json:
        if name not in own:
            raise functions.InvalidCall(f"unknown name {name}", self._names.usage)
        return own[name]

    def _is_secret(self, path: Path) -> bool:
        """Whether the field at the path, or one around it, is secret."""
        return self._field_at(path)[1]

    def _takes_text(self, path: Path) -> bool:
        """Whether the field at the path takes text, so that a number is converted."""
        field, _ = self._field_at(path)
        return field is not None and field.shape is Shape.TEXT

    def _field_at(self, path: Path) -> tuple[Field | None, bool]:
        return validation.field_in_manifest(self._kind, path) if self._kind is not None else (None, False)

    def _substitute(self, match: re.Match[str], path: Path) -> str:
        if match[1]:
            return match[0]  # $${{ is a literal ${{
        value, _ = self._evaluate(match[2], path)
        substituted = self._to_text(value, path)
        self._names.check_part(substituted, path)
        self._budget.charge_text(substituted)
        return substituted

    def _to_text(self, value: Json, path: Path) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, (str, int, float)):
            text = f"{phrases.describe_found(value)} cannot be part of a text"
            raise Wrong(path, text, self._names.part, self._names.code)
        return str(value)

    def _evaluate(self, expression: str, path: Path) -> tuple[Json, SourceLocation | None]:
        value, spot, feeds = self._names.evaluate(expression, path)
        if feeds:
            self.fed.setdefault(path, []).extend(feeds)
        return value, spot
