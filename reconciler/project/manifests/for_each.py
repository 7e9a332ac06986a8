"""Expands a manifest with `for_each` into instances, one for each item of a list or map.

`${{ each.key }}`, `${{ each.value }}` and `${{ each.value.a.b }}` are substituted before the manifest is read. They are
part of an instance's name, which references and environments use. The budget of the project limits the expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.languages.yaml.reader import Document
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import PENDING, Json
from reconciler.project.documents import phrases, terraform
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.documents.merge import SourceLocation, merge, own_layer
from reconciler.project.manifests.filling import Filling, Names, Wrong, find_kind
from reconciler.project.settings.variables import Setting

KEY: Final = "for_each"
_NESTED: Final = re.compile(r"(?<!\$)\$\{\{\s*each\b")
VARIABLE: Final = re.compile(r"\$\{\{\s*var\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
_MOVED: Final = "moved"  # also a map from the keys of items to former addresses
_CODE: Final = "invalid-for-each"
_USE_COMPONENT: Final = "put the inner resources into a component with that list as an input, and use it with for_each"
_PATH: Final = re.compile(r"each\.(?:key|value((?:\.[A-Za-z0-9_-]+)*))\s*")


class Item(Struct, frozen=True):
    """One item of `for_each`. Items of a list of maps have no key.

    at      its path in the list or map
    find    the source of a path in the list or map; None for a value from the command line
    """

    key: str | None
    value: Json
    at: Path
    find: Callable[[Path], SourceLocation | None]

    @property
    def label(self) -> str:
        return repr(self.key) if self.key is not None else "an item without a key"

    def spot(self, below: Path) -> SourceLocation | None:
        """The source of the value, or of one inside it."""
        return self.find((*self.at, *below))

    @property
    def key_spot(self) -> SourceLocation | None:
        """The source of the key: of an item of a list, the item itself."""
        spot = self.spot(())
        return spot if spot is None or isinstance(self.at[-1], int) else replace(spot, of_key=True)


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
    except Wrong as wrong:
        return [], [wrong.finding]
    if items is None:
        return None, []
    own = own_layer(document)
    moved = document.value.get(_MOVED)
    by_key: Mapping[str, Json] = moved if isinstance(moved, dict) else {}
    without = (KEY, _MOVED) if isinstance(moved, dict) else (KEY,)
    template = {key: item for key, item in document.value.items() if key not in without}
    documents: list[Document] = []
    is_written = not isinstance(document.value[KEY], str) and (KEY,) not in own.grafts
    unknown = _check_moved(by_key, items) if is_written else ()  # a variable may have other items elsewhere
    findings: dict[tuple[Path, str], Finding] = {(found.path, ""): found for found in unknown}
    named: dict[str, Item] = {}
    kind = find_kind(document)
    for item in items:
        filling = Filling(_Each(item), budget, kind)
        try:
            budget.charge_instance()
            value = filling.fill(template, ())
            if item.key is not None and item.key in by_key:
                value[_MOVED] = filling.fill(by_key[item.key], (_MOVED,))
                filling.grafts.setdefault((_MOVED,), own.spot((_MOVED, item.key)))
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
        layer = replace(own, value=value, grafts={**own.grafts, **filling.grafts}, fed=_join(own.fed, filling.fed))
        documents.append(merge([layer], layer, sound=document.sound))
    return ([] if findings else documents), list(findings.values())


def _check_moved(by_key: Mapping[str, Json], items: Sequence[Item]) -> Iterator[Finding]:
    """Findings about keys of `moved` that no item has: the object would be deleted instead of moved."""
    keys = [item.key for item in items if item.key is not None]
    for key in by_key:
        if key not in keys:
            remedy = did_you_mean(key, keys) or "write moved: {KEY: Kind/oldname} with the new key"
            yield Finding((_MOVED, key), f"no item has the key {key!r}", remedy, code=_CODE, is_key=True)


def _join(
    before: Mapping[Path, Sequence[SourceLocation]], now: Mapping[Path, Sequence[SourceLocation]]
) -> Mapping[Path, Sequence[SourceLocation]]:
    return {**before, **{path: [*before.get(path, ()), *spots] for path, spots in now.items()}} if before else now


def _check_name(document: Document) -> None:
    name = document.value.get("name")
    if isinstance(name, str) and not _Each.are_in(name):
        text, remedy = "every instance would have this name", "use ${{ each.key }} in the name"
        raise Wrong(("name",), text, remedy, _CODE)


def _items(document: Document, settings: Mapping[str, Setting]) -> list[Item] | None:
    items: Json = document.value[KEY]
    own = own_layer(document)
    find: Callable[[Path], SourceLocation | None] = lambda path: own.spot((KEY, *path))  # noqa: E731 - replaced below
    if isinstance(items, str) and (variable := VARIABLE.fullmatch(items.strip())):
        setting = settings.get(variable[1])
        if setting is None:
            remedy = did_you_mean(variable[1], settings) or "define it under variables: in reconciler.yaml"
            raise Wrong((KEY,), f"unknown variable {variable[1]}", remedy, "unknown-variable")
        items, find = setting.value, partial(_below, setting.spot)
        if items is None or items is PENDING:
            return None
    match items:
        case dict():
            return [Item(key, value, (key,), find) for key, value in items.items()]
        case list():
            return list(_list_items(items, find))
        case str() if _NESTED.search(items):
            text = "for_each cannot take its items from another for_each"
            raise Wrong((KEY,), text, _USE_COMPONENT, _CODE)
    raise Wrong(
        (KEY,),
        f"expected a list or a map, found {phrases.describe_found(items)}",
        (terraform.find_bare(items) or terraform.find_inserted(items) if isinstance(items, str) else None)
        or "write [a, b] or {a: …, b: …}",
        "wrong-type",
    )


def _below(spot: SourceLocation | None, path: Path) -> SourceLocation | None:
    return None if spot is None else replace(spot, path=(*spot.path, *path))


def _list_items(items: list[Json], find: Callable[[Path], SourceLocation | None]) -> Iterator[Item]:
    """The items of a list. A text or number is its own key, so that the order of the list has no effect."""
    seen: set[str] = set()
    for index, value in enumerate(items):
        if isinstance(value, dict):
            yield Item(None, value, (index,), find)
            continue
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            text = f"expected text, a number or a map, found {phrases.describe_found(value)}"
            raise Wrong((KEY, index), text, "write a map, as in {key: value}", "wrong-type")
        if str(value) in seen:
            raise Wrong((KEY, index), f"duplicate item {str(value)!r}", "remove one of the two", "duplicate-item")
        seen.add(str(value))
        yield Item(str(value), value, (index,), find)


class _Each(Names):
    """`each.key` and `each.value` of one item."""

    roots = ("each",)
    code = _CODE
    usage = "write each.key, each.value.NAME or var.NAME"
    part = "name a value inside it, as in ${{ each.value.name }}"
    may_lack = True

    def __init__(self, item: Item) -> None:
        self._item = item

    def evaluate(self, expression: str, path: Path) -> tuple[Json, SourceLocation | None, Sequence[SourceLocation]]:
        match = _PATH.fullmatch(expression)
        if match is None:
            text = f"unknown expression {expression.rstrip()}"
            raise Wrong(path, text, "use each.key, each.value or each.value.name", self.code)
        item = self._item
        if match[1] is None:
            if item.key is None:
                remedy = "use each.value.name, or write for_each as a map of maps"
                raise Wrong(path, "items that are maps in a list have no key", remedy, self.code)
            return item.key, item.spot(()), () if item.key_spot is None else (item.key_spot,)
        value, below = item.value, tuple(filter(None, match[1].split(".")))
        for name in below:
            if not isinstance(value, dict) or name not in value:
                suggestion = did_you_mean(name, value) if isinstance(value, dict) else ""
                text = f"{expression.rstrip()} does not exist for {item.label}"
                raise Wrong(path, text, suggestion or "add it to each item", self.code)
            value = value[name]
        spot = item.spot(below)
        return value, spot, () if spot is None else (spot,)
