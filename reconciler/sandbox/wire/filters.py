"""The filter language of lists: compiles the subset of CEL that the platform documents for filters.

`!`, `&&`, `||`, the six comparisons, `in`, parentheses, `size()`, `timestamp()`, `duration()`, and arithmetic with
`time.now`, as operators or as `.add("1h")` and `.subtract("7d")`. An unknown field name is an error even if the list is
empty. All errors are ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from reconciler.sandbox.wire import filter_terms

Filter = Callable[[Mapping[str, Any]], bool]
_Eval = Callable[[Mapping[str, Any]], Any]

_LONGEST = 4096  # characters
_DEEPEST = 50  # levels of brackets and negations
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<sign>&&|\|\||[=!<>]=|[!<>()\[\].,+-]))""",
    re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
_COMPARISONS = ("==", "!=", *filter_terms.ORDER, "in")


def compile_filter(text: str, known: Collection[str], now: datetime) -> Filter:
    """Compiles an expression. `known` are the field names of the objects, `now` is the value of `time.now`."""
    if len(text) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST} characters")
    parser = _Parser(_tokens(text), known, now)
    node = parser.disjunction()
    if parser.here:
        raise ValueError(f"unexpected {parser.here!r} after the expression")
    if not node.may_decide:
        raise ValueError("it is not a condition")
    return lambda document: _flag(node.evaluate(document))


def _tokens(text: str) -> list[str]:
    tokens, place, text = [], 0, text.rstrip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"unexpected {text[place:].strip()[:20]!r}")
        tokens.append(found[0].strip())
        place = found.end()
    return tokens


class _Node(Struct, frozen=True):
    """A compiled expression. `may_decide`: its value may be true or false."""

    evaluate: _Eval
    may_decide: bool = False


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("a condition is neither true nor false")
    return value


class _Parser:
    """A recursive-descent parser with one method for each precedence level, lowest first."""

    def __init__(self, tokens: list[str], known: Collection[str], now: datetime) -> None:
        self._tokens, self._place, self._depth = tokens, 0, 0
        self._known, self._now = known, now

    @property
    def here(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, *expected: str) -> str:
        token = self.here
        if not token:
            raise ValueError("unexpected end of the expression")
        if expected and token not in expected:
            raise ValueError(f"expected {' or '.join(expected)}, found {token!r}")
        self._place += 1
        return token

    def _take_if(self, *wanted: str) -> str:
        return self._take() if self.here and self.here in wanted else ""

    def disjunction(self) -> _Node:
        nodes = [self._conjunction()]
        while self._take_if("||"):
            nodes.append(self._conjunction())
        return self._join(nodes, decides=True)

    def _conjunction(self) -> _Node:
        nodes = [self._comparison()]
        while self._take_if("&&"):
            nodes.append(self._comparison())
        return self._join(nodes, decides=False)

    def _join(self, nodes: list[_Node], *, decides: bool) -> _Node:
        """A short-circuit operator: the first operand with the value `decides` decides, and later ones are skipped."""
        if len(nodes) == 1:
            return nodes[0]
        if not all(node.may_decide for node in nodes):
            raise ValueError("the operands of && and || must be conditions")
        return _Node(lambda document: any(_flag(node.evaluate(document)) is decides for node in nodes) is decides, True)

    def _comparison(self) -> _Node:
        left = self._sum()
        sign = self._take_if(*_COMPARISONS)
        if not sign:
            return left
        right = self._sum()
        if self.here in _COMPARISONS:
            raise ValueError("comparisons cannot be chained; use &&")
        return _Node(
            lambda document: filter_terms.compare(sign, left.evaluate(document), right.evaluate(document)), True
        )

    def _sum(self) -> _Node:
        first, moves = self._negation(), []
        while sign := self._take_if("+", "-"):
            moves.append((1 if sign == "+" else -1, self._negation()))
        return _add_durations(first, moves)

    def _negation(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        try:
            if self._take_if("!"):
                inner = self._negation()
                if not inner.may_decide:
                    raise ValueError("the operand of ! must be a condition")
                return _Node(lambda document: not _flag(inner.evaluate(document)), may_decide=True)
            return self._methods(self._primary())
        finally:
            self._depth -= 1

    def _methods(self, node: _Node) -> _Node:
        moves = []
        while self._take_if("."):
            sign = {"add": 1, "subtract": -1}[self._take("add", "subtract")]
            moves.append((sign, self._call(filter_terms.duration)))
        return _add_durations(node, moves)

    def _primary(self) -> _Node:
        word = self._take()
        match word:
            case "(":
                node = self.disjunction()
                self._take(")")
                return node
            case "[":
                return self._list()
            case "true" | "false" | "null":
                value = {"true": True, "false": False, "null": None}[word]
                return _Node(lambda document: value, may_decide=value is not None)
            case "obj":
                return self._field()
            case "time":
                self._take(".")
                self._take("now")
                return _Node(lambda document: self._now)
            case "size" | "timestamp" | "duration":
                return self._call(
                    {"size": filter_terms.size, "timestamp": filter_terms.timestamp, "duration": filter_terms.duration}[
                        word
                    ]
                )
        if word == "-" and self.here[:1].isdigit():
            return _constant(-_number(self._take()))
        if word[0].isdigit():
            return _constant(_number(word))
        if word[0] in "\"'":
            return _constant(_text(word))
        raise ValueError(f"unknown name {word!r}; write fields as obj.<name>")

    def _list(self) -> _Node:
        items: list[_Node] = []
        while not self._take_if("]"):
            if items:
                self._take(",")
            items.append(self.disjunction())
        return _Node(lambda document: [item.evaluate(document) for item in items])

    def _field(self) -> _Node:
        self._take(".")
        path = [self._take()]
        if path[0] not in self._known:
            raise ValueError(f"obj.{path[0]} is not a field of these objects")
        while self.here == "." and self._tokens[self._place + 1 : self._place + 3][1:] != ["("]:
            self._take(".")
            path.append(self._take())

        def evaluate(document: Mapping[str, Any]) -> Any:
            value: Any = document
            for name in path:
                value = value.get(name) if isinstance(value, Mapping) else None
            return value

        return _Node(evaluate, may_decide=True)

    def _call(self, function: Callable[[Any], Any]) -> _Node:
        self._take("(")
        inner = self.disjunction()
        self._take(")")
        return _Node(lambda document: function(inner.evaluate(document)))


def _constant(value: Any) -> _Node:
    return _Node(lambda document: value)


def _number(token: str) -> float | int:
    return float(token) if "." in token else int(token)


def _text(token: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise ValueError(f"invalid escape sequence {match[0]!r}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", unescape, token[1:-1])


def _add_durations(first: _Node, moves: list[tuple[int, _Node]]) -> _Node:
    """A timestamp or duration, with durations added (1) or subtracted (-1)."""
    if not moves:
        return first

    def evaluate(document: Mapping[str, Any]) -> Any:
        value = first.evaluate(document)
        for sign, node in moves:
            by = node.evaluate(document)
            if not isinstance(value, datetime | timedelta) or not isinstance(by, timedelta):
                raise ValueError("only durations can be added to or subtracted from a timestamp or duration")
            try:
                value = value + by * sign
            except OverflowError as error:
                raise ValueError("the timestamp is out of range") from error
        return value

    return _Node(evaluate)
