"""Estimates an upper bound of the memory and time of an expression before it is evaluated. Pure.

The language limits steps, but one step can double a text. So each value has an upper bound (its longest text, its
longest list, its total size), and each operation costs what it would create and compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any, Final

MAX_COST: Final = 64 * 1024 * 1024  # characters and items that one evaluation may create
_STEPS: Final = 10_000  # limit of the language
_CEILING: Final = 1e18  # larger values are cut to this
_NUMBER: Final = 32  # characters
_PRECISE: Final = 1100  # characters of a number with the most digits that the language writes
_SIZES: Final = (1e6, 1e5, 1e4, 3e3, 1e3)
_FREE: Final = frozenset(
    """
    _&&_ _||_ !_ _-_ _*_ _/_ _%_ -_ _<_ _<=_ _>_ _>=_ @in @not_strictly_false bool contains double duration endsWith
    getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds
    indexOf int lastIndexOf matches size startsWith timestamp type uint
    """.split()  # noqa: SIM905 - as a paragraph they can be read
)
# Fields of the messages of cel/expr/checked.proto and cel/expr/syntax.proto; the first is wrapped in an Any.
_VALUE, _EXPR, _CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _FOLD = 2, 4, 3, 4, 5, 6, 7, 8, 9
_TEXTS: Final = (6, 7)


@dataclass(frozen=True)
class Bound:
    """Upper bound of a value: characters of one text, items of one list, and the size of everything in it.

    `value` is the value itself if it is known, or the bounds of a map's members. `item` bounds each item of a list.
    """

    text: float = 0
    items: float = 0
    whole: float = 1
    value: Any = None
    item: Bound | None = None


_NOTHING: Final = Bound(0, 0, 0)


def max_input_size(program: bytes, names: Iterable[str]) -> float:
    """The largest size of all variables together with which the expression certainly stays within MAX_COST."""
    names = tuple(names)
    return next(
        (size for size in _SIZES if estimate(program, dict.fromkeys(names, Bound(size, size, size))) <= MAX_COST), 0
    )


def estimate(program: bytes, values: Mapping[str, Any]) -> float:
    """Upper bound of what a checked expression creates and compares, for plain values or bounds of its variables."""
    root = _field(_field(program, _VALUE) or b"", _EXPR)
    if root is None:
        return _CEILING  # cannot be parsed
    if not _grows(program):
        return 0
    counter = _Counter(values)
    answer = counter.measure_expression(root, 1)
    return min(counter.spent + answer.whole, _CEILING)


def measure(value: Any) -> Bound:
    """The bound of a plain value, which must not be modified later: results for large values are cached."""
    return value if isinstance(value, Bound) else Bound(*_measure_parts(value), value)


_Sizes = tuple[float, float, float]


def _measure_parts(value: Any) -> _Sizes:
    """The longest text, the longest list and the size of everything in a value. Runs for all that policies read."""
    if isinstance(value, (str, bytes)):
        return len(value), 0, 1 + len(value)
    if isinstance(value, Bound):
        return value.text, value.items, value.whole
    if value is None or not isinstance(value, (dict, list, tuple, Mapping)):
        return 0, 0, 1
    if (known := _MEASURED.get(id(value))) is not None and known.value is value:
        return known.text, known.items, known.whole
    text, items, whole = 0.0, float(len(value)), 1.0
    for item in value if isinstance(value, (list, tuple)) else chain.from_iterable(value.items()):
        longest, most, size = (len(item), 0, 1 + len(item)) if type(item) is str else _measure_parts(item)
        whole += size
        if longest > text:
            text = longest
        if most > items:
            items = most
    whole = min(whole, _CEILING)
    if len(value) > _LARGE:
        if len(_MEASURED) >= _LARGE:
            _MEASURED.clear()
        _MEASURED[id(value)] = Bound(text, items, whole, value)
    return text, items, whole


def limit_each(values: Iterable[Any]) -> Bound:
    """The bound of any one of several values. If all are maps, it has the bound of each member."""
    parts: list[_Sizes] = []
    members: dict[str, list[_Sizes]] = {}
    are_maps = True
    for value in values:
        parts.append(_measure_parts(value))
        are_maps = are_maps and isinstance(value, Mapping)
        for name, member in value.items() if are_maps else ():
            members.setdefault(name, []).append(_measure_parts(member))
    known = {name: _join(bounds) for name, bounds in members.items()} if are_maps else {}
    return replace(_join(parts), value=known or None)


def _join(parts: Sequence[_Sizes]) -> Bound:
    return Bound(*map(max, zip(*parts, strict=True))) if parts else _NOTHING


def limit_list(most: float, item: Bound) -> Bound:
    """The bound of a list of at most so many items."""
    return Bound(item.text, max(most, item.items), min(1 + most * item.whole, _CEILING), None, item)


def result_of(function: str) -> str:
    """The name under which an estimate finds the upper bound of a function's result."""
    return f"{function}()"


class _Map(Bound):
    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "value", value)

    def __getattribute__(self, name: str) -> Any:
        if name in ("text", "items", "whole"):
            return getattr(measure(object.__getattribute__(self, "value")), name)
        return object.__getattribute__(self, name)


def _measure_lazily(value: Any) -> Bound:
    """As `measure`, but measures a map only on demand, since mostly single members are used."""
    return _Map(value) if isinstance(value, Mapping) else measure(value)


_LARGE: Final = 64
_MEASURED: Final[dict[int, Bound]] = {}
_ITEMS: Final[dict[int, tuple[Any, Bound]]] = {}


def _most(parts: Sequence[Bound], what: str) -> float:
    return max((getattr(part, what) for part in parts), default=0)


def _sum(parts: Sequence[Bound]) -> float:
    return min(sum(part.whole for part in parts), _CEILING)


class _Counter:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._variables: dict[str, Bound] = {}  # of macros
        self.spent: float = 0

    def _spend(self, much: float, times: float) -> None:
        self.spent = min(self.spent + much * times, _CEILING)

    def measure_expression(self, expr: bytes, times: float) -> Bound:
        """The bound of the value of an expression that is evaluated `times` times. Adds its cost to `spent`."""
        for number, content in _fields(expr):
            match number:
                case n if n == _CONST:
                    texts = [part for field, part in _fields(content) if field in _TEXTS]
                    return measure(texts[0]) if texts else Bound()
                case n if n == _IDENT:
                    name = _text(content, 1)
                    value = self._values.get(name)
                    return self._variables.get(name) or (value if isinstance(value, Bound) else _measure_lazily(value))
                case n if n == _SELECT:
                    operand = self.measure_expression(_field(content, 1) or b"", times)
                    return _part(operand, _text(content, 2))
                case n if n == _CALL:
                    target = [part for field, part in _fields(content) if field == 1]
                    arguments = [part for field, part in _fields(content) if field == 3]
                    return self._call(_text(content, 2), [*target, *arguments], times)
                case n if n in (_LIST, _STRUCT):
                    return self._literal(content, n == _STRUCT, times)
                case n if n == _FOLD:
                    return self._fold(content, times)
        return Bound()

    def _literal(self, content: bytes, is_map: bool, times: float) -> Bound:
        operands = [part for field, part in _fields(content) if field == (2 if is_map else 1)]
        if is_map:
            operands = [part for entry in operands for field, part in _fields(entry) if field in (3, 4)]
        parts = [self.measure_expression(part, times) for part in operands]
        self._spend(len(parts), times)
        most = max(len(parts), _most(parts, "items"))
        return Bound(_most(parts, "text"), most, 1 + _sum(parts), None, _either([_NOTHING, *parts]))

    def _fold(self, content: bytes, times: float) -> Bound:
        """A macro such as `all`, `exists` or `map`. Its steps add to the accumulated value and never read it."""
        parts = dict(_fields(content))
        over = self.measure_expression(parts.get(2, b""), times)
        start = self.measure_expression(parts.get(4, b""), times)
        rounds = min(over.items, _STEPS)
        inside = min(times * max(rounds, 1), max(times, _STEPS))
        names = {_text(content, 1): _item(over), _text(content, 8): _item(over), _text(content, 3): start}
        before = {name: self._variables.get(name) for name in names}
        self._variables |= names
        self.measure_expression(parts.get(5, b""), inside)
        step = self.measure_expression(parts.get(6, b""), inside)
        accumulated = Bound(
            max(start.text, step.text),
            start.items + rounds * max(0, step.items - start.items),
            min(start.whole + rounds * max(0, step.whole - start.whole), _CEILING),
            None,
            _either([start, step]).item,
        )
        self._variables[_text(content, 3)] = accumulated
        answer = self.measure_expression(parts.get(7, b""), times)
        for name, was in before.items():
            self._variables.pop(name, None)
            if was is not None:
                self._variables[name] = was
        return answer

    def _call(self, name: str, operands: Sequence[bytes], times: float) -> Bound:
        bounds = [self.measure_expression(operand, times) for operand in operands]
        texts = [bound.text for bound in bounds]
        if (result := self._values.get(result_of(name))) is not None:
            return measure(result)
        match name:
            case "_==_" | "_!=_":
                self._spend(min((bound.whole for bound in bounds), default=0), times)
                return Bound()
            case "_?_:_":
                return _either(bounds[1:])
            case "_[_]" | "_[?_]" | "_?._":
                key = bounds[1].value if len(bounds) > 1 else None
                return _part(bounds[0], key.decode() if isinstance(key, bytes) else key)
            case "replace":
                length = texts[0] + (texts[0] + 1) * texts[2] if len(texts) > 2 else texts[0]
            case "join":
                length = bounds[0].whole + bounds[0].items * (texts[1] if len(texts) > 1 else 0)
            case "format":
                length = texts[0] + bounds[-1].whole + bounds[-1].items * _PRECISE
            case "split":
                self._spend(2 * texts[0] + 1, times)
                return Bound(texts[0], texts[0] + 1, 2 * texts[0] + 2)
            case "strings.quote":
                length = 8 * sum(texts) + 2
            case "_+_":
                are_lists = any(bound.item is not None for bound in bounds)
                length = max(texts, default=0) if are_lists else sum(texts)
                items = sum(bound.items for bound in bounds)
                self._spend(items if are_lists else length + items, times)
                return Bound(min(length, _CEILING), min(items, _CEILING), _sum(bounds), None, _either(bounds).item)
            case _ if name in _FREE:
                return Bound()
            case _:
                self._spend(sum(texts) + _NUMBER, times)
                return Bound(max(sum(texts), _NUMBER), sum(bound.items for bound in bounds), _sum(bounds) + _NUMBER)
        length = min(length, _CEILING)
        self._spend(length, times)
        return Bound(length, 0, length + 1)


def _part(whole: Bound, key: Any) -> Bound:
    """The bound of an index or member: of the value if it is known, else that of the whole."""
    value = whole.value
    if isinstance(value, Mapping) and key in value:
        return _measure_lazily(value[key])
    return Bound(whole.text, whole.items, whole.whole)


def _item(whole: Bound) -> Bound:
    value = whole.value
    if whole.item is not None:
        return whole.item
    if not isinstance(value, (list, tuple, Mapping)):
        return Bound(whole.text, whole.items, whole.whole)
    known, item = _ITEMS.get(id(value), (None, Bound()))
    if known is value:
        return item
    item = limit_each(value)
    if len(value) > _LARGE:
        if len(_ITEMS) >= _LARGE:
            _ITEMS.clear()
        _ITEMS[id(value)] = value, item
    return item


def _either(several: Sequence[Bound]) -> Bound:
    items = [bound.item for bound in several if bound.item is not None]
    item = _either(items) if items and len(items) == len(several) else None
    values = {id(bound.value): bound.value for bound in several if bound.whole}
    value = values.popitem()[1] if len(values) == 1 else None
    return Bound(_most(several, "text"), _most(several, "items"), _most(several, "whole"), value, item)


def _grows(program: bytes) -> bool:
    """Whether an expression contains an operation that creates texts or lists. Most do not."""
    return any(word in program for word in (b"_+_", b"replace", b"join", b"format", b"split", b"quote", b"@result"))


# --- the checked expression, as bytes ---------------------------------------------------------------------------------


def _field(message: bytes, number: int) -> bytes | None:
    return next((content for tag, content in _fields(message) if tag == number), None)


def _text(message: bytes, number: int) -> str:
    return (_field(message, number) or b"").decode(errors="replace")


@lru_cache(maxsize=4096)
def _fields(message: bytes) -> tuple[tuple[int, bytes], ...]:
    """Numbers and contents of the fields with bytes in a Protocol Buffers message."""
    return tuple(_parse_fields(message))


def _parse_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            _, at = read_varint(message, at)
        elif kind == 2:
            length, at = read_varint(message, at)
            yield number, message[at : at + length]
            at += length
        else:
            at += {1: 8, 5: 4}.get(kind, len(message))


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    """The number of variable length at an offset, and the offset after it."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value, at
