"""Expands a manifest with `for_each` into instances, one for each item of a list or map.

`${{ each.key }}`, `${{ each.value }}` and `${{ each.value.a.b }}` are substituted before the manifest is read. They are
part of an instance's name, which references and environments use. The budget of the project limits the expansion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml.reader import Document
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import PENDING, Json
from reconciler.project.documents import functions, phrases, terraform, validation
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.documents.merge import Layer, Role, SourceLocation, merge
from reconciler.project.settings.variables import Setting

KEY: Final = "for_each"
_EACH: Final = re.compile(r"(\$?)\$\{\{\s*each\b([^{}]*)\}\}")
_VARIABLE: Final = re.compile(r"\$\{\{\s*var\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
_CALL: Final = re.compile(r"(\$?)\$\{\{\s*([a-z]+\s*\((?:(?!\}\}).)*)\}\}", re.DOTALL)
_PATH: Final = re.compile(r"\.(?:key|value((?:\.[A-Za-z0-9_-]+)*))\s*")


class _Wrong(Exception):
    def __init__(self, path: Path, text: str, remedy: str, code: str = "invalid-for-each") -> None:
        super().__init__(text)
        self.finding = Finding(path, text, remedy, code=code)


class Item(Struct, frozen=True):
    """One item of `for_each`. Items of a list of maps have no key."""

    key: str | None
    value: Json
    spot: SourceLocation | None  # None for a value from the command line
    key_spot: SourceLocation | None = None

    @property
    def label(self) -> str:
        return repr(self.key) if self.key is not None else "an item without a key"


def expand(
    document: Document, settings: Mapping[str, Setting], budget: Budget
) -> tuple[list[Document] | None, list[Finding]]:
    """Returns the instances in the order of the items, and findings with paths in the document.

    None instead of instances if a variable has no value, which is reported at the variable, or if the budget is spent,
    which is reported once.
    """
    try:
        _check_name(document)
        items = _items(document, settings)
    except _Wrong as wrong:
        return [], [wrong.finding]
    if items is None:
        return None, []
    template = {key: item for key, item in document.value.items() if key != KEY}
    documents: list[Document] = []
    findings: dict[tuple[Path, str], Finding] = {}
    named: dict[str, Item] = {}
    kind = _find_kind(document)
    for item in items:
        filling = _Filling(item, budget, kind)
        try:
            budget.charge_instance()
            value = filling.fill(template, ())
        except OverBudget as over:
            return None, [Finding((KEY,), str(over), over.remedy, code=over.code)] if over.is_first else []
        for finding in filling.findings:
            findings.setdefault((finding.path, finding.text), finding)
        first = named.setdefault(str(value.get("name")), item)
        if first is not item and not filling.findings:
            text = f"{value.get('name')!r} is the name of two instances, of {first.label} and of {item.label}"
            findings.setdefault(
                (("name",), ""), Finding(("name",), text, "use ${{ each.key }} in the name", code="invalid-for-each")
            )
        layer = Layer(Role.MANIFEST, value, document.places, (), filling.grafts, filling.fed)
        documents.append(merge([layer], layer, sound=document.sound))
    return ([] if findings else documents), list(findings.values())


def _find_kind(document: Document) -> Kind | None:
    name = document.value.get("kind")
    return kinds.find(name) if isinstance(name, str) and name.isidentifier() else None


def _check_name(document: Document) -> None:
    name = document.value.get("name")
    if isinstance(name, str) and not _EACH.search(name) and not _has_call(name):
        raise _Wrong(("name",), "every instance would have this name", "use ${{ each.key }} in the name")


def _items(document: Document, settings: Mapping[str, Setting]) -> list[Item] | None:
    items: Json = document.value[KEY]
    spot: SourceLocation | None = SourceLocation(document.places, (KEY,))
    if isinstance(items, str) and (variable := _VARIABLE.fullmatch(items.strip())):
        setting = settings.get(variable[1])
        if setting is None:
            remedy = did_you_mean(variable[1], settings) or "define it under variables: in reconciler.yaml"
            raise _Wrong((KEY,), f"unknown variable {variable[1]}", remedy, code="unknown-variable")
        items, spot = setting.value, setting.spot
        if items is None or items is PENDING:
            return None
    match items:
        case dict():
            return [_entry(key, value, spot and spot.below(key)) for key, value in items.items()]
        case list():
            return list(_list_items(items, spot))
    raise _Wrong(
        (KEY,),
        f"expected a list or a map, found {phrases.describe_found(items)}",
        (terraform.find_bare(items) or terraform.find_inserted(items) if isinstance(items, str) else None)
        or "write [a, b] or {a: …, b: …}",
        code="wrong-type",
    )


def _entry(key: str, value: Json, spot: SourceLocation | None) -> Item:
    return Item(key, value, spot, spot and replace(spot, of_key=True))


def _list_items(items: list[Json], spot: SourceLocation | None) -> Iterator[Item]:
    """The items of a list. A text or number is its own key, so that the order of the list has no effect."""
    seen: set[str] = set()
    for index, value in enumerate(items):
        if isinstance(value, dict):
            yield Item(None, value, spot and spot.below(index))
            continue
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            text = f"expected text, a number or a map, found {phrases.describe_found(value)}"
            raise _Wrong((KEY, index), text, "write a map, as in {key: value}", code="wrong-type")
        if str(value) in seen:
            raise _Wrong((KEY, index), f"duplicate item {str(value)!r}", "remove one of the two", code="duplicate-item")
        seen.add(str(value))
        here = spot and spot.below(index)
        yield Item(str(value), value, here, here)


def _has_call(text: str) -> bool:
    """Whether a text has a function call with a value of the item."""
    # Without a `}}` behind it, each opening would be searched to the end of the text.
    return any(not match[1] and _is_of_item(match[2]) for match in _CALL.finditer(text, 0, text.rfind("}}") + 2))


def _is_of_item(expression: str) -> bool:
    return functions.is_call(expression) and any(name.startswith("each.") for name in functions.names_in(expression))


class _Filling:
    """Substitutes one item into the manifest.

    grafts    sources of the values that were inserted as a whole, by path
    fed       sources of the texts that were inserted into a value, by path
    """

    def __init__(self, item: Item, budget: Budget, kind: Kind | None) -> None:
        self._item = item
        self._budget = budget
        self._kind = kind
        self.grafts: dict[Path, SourceLocation] = {}
        self.fed: dict[Path, list[SourceLocation]] = {}
        self.findings: list[Finding] = []

    def fill(self, value: Json, path: Path) -> Json:
        """Returns the value with the item substituted. Raises OverBudget."""
        match value:
            case str() if "${{" in value:
                return self._text(value, path)
            case dict():
                self._budget.charge({})
                return {self._key(key): self.fill(item, (*path, key)) for key, item in value.items()}
            case list():
                self._budget.charge([])
                return [self.fill(item, (*path, index)) for index, item in enumerate(value)]
        self._budget.charge(value)
        return value

    def _key(self, key: str) -> str:
        self._budget.charge_key(key)
        return key

    def _text(self, text: str, path: Path) -> Json:
        self._budget.charge(text)
        try:
            whole = _EACH.fullmatch(text)
            if whole is not None and not whole[1]:
                value, spot = self._evaluate(whole[2], path)
                self._budget.charge(value)
                if spot is not None:
                    self.grafts[path] = spot
                is_text = path == ("name",) or (isinstance(value, (int, float)) and self._takes_text(path))
                return self._to_text(value, path) if is_text else value
            if _has_call(text):
                filled = self._fill_calls(text, path)
                if not isinstance(filled, str):
                    return filled
                text = filled
            return _EACH.sub(lambda match: self._substitute(match, path), text)
        except _Wrong as wrong:
            self.findings.append(wrong.finding)
            return text

    def _fill_calls(self, text: str, path: Path) -> Json:
        """Evaluates calls of functions with `each`. A call that also has variables gets those values as literals."""
        whole = _CALL.fullmatch(text)
        if whole is not None and not whole[1] and _is_of_item(whole[2]):
            return self._call(whole[2].strip(), path, is_whole=True)

        def put(match: re.Match[str]) -> str:
            if match[1] or not _is_of_item(match[2]):
                return match[0]
            return str(self._call(match[2].strip(), path, is_whole=False))

        end = text.rfind("}}") + 2  # as in `_has_call`
        return _CALL.sub(put, text[:end]) + text[end:]

    def _call(self, expression: str, path: Path, *, is_whole: bool) -> Json:
        if self._is_secret(path):
            text = "functions are not available in secret fields"
            raise _Wrong(path, text, "read the whole secret with {from_env: NAME}", code="invalid-expression")

        def look_up(name: str) -> Json:
            if not name.startswith("each."):
                raise functions.InvalidCall(f"unknown name {name}", "write each.key, each.value.NAME or var.NAME")
            try:
                return self._evaluate(name.removeprefix("each"), path)[0]
            except _Wrong:
                if not re.search(rf"\bdefault\(\s*{re.escape(name)}\s*,", expression):
                    raise
                return None  # a value that this item does not have

        try:
            if any(name.startswith("var.") for name in functions.names_in(expression)):
                substituted = f"${{{{ {functions.substitute(expression, look_up)} }}}}"
                self._budget.charge_text(substituted)
                return substituted
            value = functions.evaluate(expression, look_up, self._budget.charge)
        except functions.InvalidCall as wrong:
            raise _Wrong(path, str(wrong), wrong.remedy, code="invalid-expression") from None
        is_number = isinstance(value, (int, float)) and self._takes_text(path)
        text = self._to_text(value, path) if not is_whole or path == ("name",) or is_number else value
        return text.replace("${{", "$${{") if isinstance(text, str) else text

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
        self._budget.charge_text(substituted)
        return substituted

    def _to_text(self, value: Json, path: Path) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, (str, int, float)):
            text = f"{phrases.describe_found(value)} cannot be part of a text"
            raise _Wrong(path, text, "name a value inside it, as in ${{ each.value.name }}")
        return str(value)

    def _evaluate(self, expression: str, path: Path) -> tuple[Json, SourceLocation | None]:
        """Returns the value of `.key` or `.value.a.b`, and its source."""
        match = _PATH.fullmatch(expression)
        if match is None:
            text = f"unknown expression each{expression.rstrip()}"
            raise _Wrong(path, text, "use each.key, each.value or each.value.name")
        if match[1] is None:
            if self._item.key is None:
                raise _Wrong(
                    path,
                    "items that are maps in a list have no key",
                    "use each.value.name, or write for_each as a map of maps",
                )
            if self._item.key_spot is not None:
                self.fed.setdefault(path, []).append(self._item.key_spot)
            return self._item.key, self._item.spot
        value, spot = self._item.value, self._item.spot
        for name in filter(None, match[1].split(".")):
            if not isinstance(value, dict) or name not in value:
                suggestion = did_you_mean(name, value) if isinstance(value, dict) else ""
                text = f"each{expression.rstrip()} does not exist for {self._item.label}"
                raise _Wrong(path, text, suggestion or "add it to each item")
            value, spot = value[name], spot and spot.below(name)
        if spot is not None:
            self.fed.setdefault(path, []).append(spot)
        return value, spot
