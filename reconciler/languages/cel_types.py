"""Checks an expression against typed variables: fields, functions, and the types of values. Pure.

Names and functions are checked by Google's implementation of CEL, which also knows the types that its functions accept.
It has no type for a map of known fields, so types are derived here from the tree of the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from reconciler.languages import cel
from reconciler.languages.cel_ast import Node, parse_tree
from reconciler.model.suggestions import did_you_mean

Fields = Mapping[str, str]
"""The type of each field: `string`, `bool`, `int`, `double`, `any`, the name of a message, or `list<…>` of these."""

_LIST: Final = re.compile(r"list<(.*)>")
_SELECTED: Final = re.compile(r"expression of type '(.*?)' cannot be the operand of a select operation")
_OVERLOAD: Final = re.compile(r"found no matching overload for '(.*?)' applied to '\((.*)\)'")
_RANGE: Final = re.compile(r"expression of type '(.*?)' cannot be the range of a comprehension")
_ANY: Final = "any"
_NOTHING: Final = ""  # the type of the items of an empty list
_SCALARS: Final = frozenset({"string", "bool", "int", "double", "bytes", "timestamp", "duration"})
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_EQUALITY: Final = frozenset({"_==_", "_!=_"})
_COMPARISONS: Final = frozenset({*_EQUALITY, "_<_", "_<=_", "_>_", "_>=_"})
_CHOICE: Final = "_?_:_"
_BUILT_IN: Final = tuple(
    """
    all bool bytes charAt contains double duration dyn endsWith exists exists_one filter format getDate getDayOfMonth
    getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds has hasValue indexOf
    int join lastIndexOf lowerAscii map matches optional or orValue replace reverse size split startsWith string
    substring timestamp trim type uint upperAscii value
    """.split()  # noqa: SIM905 - as a paragraph they can be read
)


class Mistake(Struct, frozen=True):
    """What is wrong with an expression, what to do, and the line and column in it, from 1."""

    text: str
    remedy: str
    line: int = 1
    column: int = 1


class TypedLanguage:
    """Expressions over variables whose types are known.

    messages   the fields of maps, by the name of the message
    variables  the type of each variable; `timestamp` is a type, too
    functions  by name, the parameter and the result of each overload
    """

    def __init__(
        self,
        messages: Mapping[str, Fields],
        variables: Mapping[str, str],
        functions: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self._messages, self._variables, self._functions = messages, variables, functions
        instants = [name for name, of in variables.items() if of == "timestamp"]
        names = (name for name in variables if name not in instants)
        self._language = cel.Language(*names, instants=instants, functions=functions)

    def find_mistakes(self, text: str, answers: str = "BOOL") -> tuple[Mistake, ...]:
        """The mistakes of an expression in the order of the text. None of its syntax: `Language` reports them.

        answers  the type that it evaluates to; empty: any type
        """
        if len(text) > cel.MAX_LENGTH or cel.find_syntax_error(text) is not None:
            return ()
        program, problems = self._language.check(text)
        lines = text.split("\n")
        if program is None:
            known = (problem for problem in problems if 0 < problem.line <= len(lines))
            mistakes = [self._describe(problem, lines[problem.line - 1]) for problem in known]
            return tuple(sorted(filter(None, mistakes), key=lambda mistake: (mistake.line, mistake.column)))
        reader = _Reader(text, self._messages, self._variables, self._functions)
        result = reader.infer(parse_tree(program))
        if not reader.mistakes and answers and result != _ANY and result.upper() != answers:
            what = f"evaluates to {_describe_type(result)}, not to {cel.describe_type(answers)}"
            return (Mistake(what, "compare it with a value"),)
        return tuple(sorted(reader.mistakes, key=lambda mistake: (mistake.line, mistake.column)))

    def _describe(self, problem: cel.TypeProblem, line: str) -> Mistake | None:
        """The mistake; None if it may be none, since a map has what a message lacks."""
        if (name := problem.undeclared_name) != "":
            is_call = line[problem.column - 1 : problem.column] == "("
            return self._describe_call(name, problem) if is_call else self._describe_variable(name, problem)
        if (match := _SELECTED.match(problem.text)) is not None and match[1] != "*error*":
            member = re.match(r"\W*(\w*)", line[problem.column - 1 :])
            what = f"uses the field {member[1] if member else ''} of {_describe_type(match[1])}, which has no fields"
            return Mistake(what, "remove it", problem.line, problem.column + 1)
        if (match := _OVERLOAD.match(problem.text)) is not None:
            what = _describe_misuse(match[1], _split_types(match[2]))
            return Mistake(what, _write_usage(match[1], self._functions), problem.line, problem.column)
        if (match := _RANGE.match(problem.text)) is not None:
            what = f"looks for items in {_describe_type(match[1])}"
            return Mistake(what, "use a list or a map", problem.line, problem.column)
        return None

    def _describe_call(self, name: str, problem: cel.TypeProblem) -> Mistake:
        begin = max(1, problem.column - len(name))
        known = {*_BUILT_IN, *self._functions}
        if name in known:
            what = f"calls {name} with other arguments than it takes"
            return Mistake(what, _write_usage(name, self._functions), problem.line, begin)
        remedy = did_you_mean(name, known) or "CEL has no such function"
        return Mistake(f"calls the unknown function {name}", remedy, problem.line, begin)

    def _describe_variable(self, name: str, problem: cel.TypeProblem) -> Mistake:
        known = sorted(self._variables)
        first, _, rest = name.partition(".")
        column = problem.column - len(name.rpartition(".")[0]) if rest else problem.column
        remedy = did_you_mean(first, known) or f"use {_list_words(known)}"
        return Mistake(f"uses the unknown name {first}", remedy, problem.line, max(1, column))


class _Reader:
    """Infers the type of each part of an expression, and collects what does not fit."""

    def __init__(
        self,
        text: str,
        messages: Mapping[str, Fields],
        variables: Mapping[str, str],
        functions: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self._text, self._messages, self._functions = text, messages, functions
        self._types = dict(variables)
        self.mistakes: set[Mistake] = set()

    def infer(self, node: Node) -> str:
        """The type of a node."""
        match node.shape:
            case "constant":
                return node.name
            case "name":
                return self._types.get(node.name, _ANY)
            case "member" | "has":
                of = self._infer_member(node, self.infer(node.parts[0]))
                return of if node.shape == "member" else "bool"
            case "call":
                return self._infer_call(node, [self.infer(part) for part in node.parts])
            case "list":
                return f"list<{_join([self.infer(part) for part in node.parts])}>"
            case "macro":
                return self._infer_macro(node)
        for part in node.parts:
            self.infer(part)
        return _ANY

    def _infer_member(self, node: Node, of: str) -> str:
        if (fields := self._messages.get(of)) is not None:
            if node.name in fields:
                return fields[node.name]
            remedy = did_you_mean(node.name, fields) or f"use {_list_words(fields)}"
            self._add(f"uses the unknown field {node.name}", remedy, self._find_member(node))
        elif of in _SCALARS or _LIST.fullmatch(of):
            what = f"uses the field {node.name} of {_describe_type(of)}, which has no fields"
            self._add(what, "remove it", self._find_member(node))
        return _ANY

    def _infer_call(self, node: Node, types: list[str]) -> str:
        name = node.name
        if (overloads := self._functions.get(name)) is not None:
            found = next((result for parameter, result in overloads if types[0] in (parameter, _ANY)), None)
            return found if found is not None else self._refuse(node, types)
        if name.startswith("@not"):
            return "bool"
        if "?" in name and name != _CHOICE:
            return _ANY  # of optional values
        if name == _CHOICE:
            return _join(types[1:]) if types[0] in ("bool", _ANY) else self._refuse(node, types)
        if name == "_[_]" and (of := _LIST.fullmatch(types[0])) and types[1] in (*_NUMBERS, _ANY):
            return of[1] or _ANY
        if name == "_+_" and all(_LIST.fullmatch(of) for of in types):
            return _join(types)
        if name in _EQUALITY and ("null" in types or any(of in self._messages for of in types)):
            return "bool"
        if len(types) == 2 and _NUMBERS.issuperset(types) and types[0] != types[1]:
            return "bool" if name in _COMPARISONS else _ANY
        plain = tuple(_name_plain_type(of, self._messages) for of in types)
        result = _find_result(name, plain, node.is_method)
        return result if result is not None else self._refuse(node, types)

    def _infer_macro(self, node: Node) -> str:
        """`all`, `exists`, `map` and the like: the step adds to an accumulated value for each item of the range."""
        among, start, step, answer = node.parts
        of, (second, accumulated) = self.infer(among), node.others
        if of in _SCALARS:
            self._add(f"looks for items in {_describe_type(of)}", "use a list or a map", among.offset)
        items = _LIST.fullmatch(of)
        before = dict(self._types)
        item = (items[1] or _ANY) if items else "string" if of in self._messages else _ANY
        self._types |= {node.name: _ANY if second else item, accumulated: self.infer(start)}
        if second:
            self._types[second] = _ANY
        self._types[accumulated] = self.infer(step)
        result = self.infer(answer)
        self._types = before
        return result

    def _refuse(self, node: Node, types: Sequence[str]) -> str:
        self._add(_describe_misuse(node.name, types), _write_usage(node.name, self._functions), node.offset)
        return _ANY

    def _find_member(self, node: Node) -> int:
        found = re.compile(rf"\b{re.escape(node.name)}\b").search(self._text, node.offset)
        return found.start() if found is not None else node.offset

    def _add(self, what: str, remedy: str, offset: int) -> None:
        before = self._text[:offset]
        self.mistakes.add(Mistake(what, remedy, before.count("\n") + 1, offset - before.rfind("\n")))


def _join(types: Sequence[str]) -> str:
    """The type of a value that has one of these types."""
    known = {of for of in types if of not in (_NOTHING, "null")}
    if len(known) == 1 and "null" not in types:
        return known.pop()
    lists = [of for of in map(_LIST.fullmatch, known) if of is not None]
    if lists and len(lists) == len(known):
        return f"list<{_join([of[1] for of in lists])}>"
    return known.pop() if len(known) == 1 else _ANY if types and known else _NOTHING if not types else _ANY


def _name_plain_type(of: str, messages: Mapping[str, Fields]) -> str:
    """A type as the library knows it."""
    if (items := _LIST.fullmatch(of)) is not None:
        return f"list<{_name_plain_type(items[1], messages)}>"
    return "map<string, dyn>" if of in messages else "dyn" if of in (_ANY, _NOTHING) else of


@lru_cache(maxsize=1024)
def _find_result(name: str, types: tuple[str, ...], is_method: bool) -> str | None:
    """The type that a function of CEL returns for arguments of these types; None if it does not accept them."""
    arguments = [f"a{number}" for number in range(len(types))]
    if name == "_[_]":
        text = "a0[a1]"
    elif name.startswith(("_", "@")) and len(types) == 2:
        text = f"a0 {name.strip('_@')} a1"
    elif name in ("!_", "-_"):
        text = f"{name[0]}a0"
    elif name.startswith(("_", "@")):
        return _ANY
    else:
        text = f"a0.{name}({', '.join(arguments[1:])})" if is_method else f"{name}({', '.join(arguments)})"
    environment = cel.make_typed_environment(dict(zip(arguments, types, strict=True)), (), {})
    result, problems = cel.check_types(text, environment)
    return _read_type(result.lower()) if not problems else None


def _read_type(name: str) -> str:
    name = re.sub(r"wrapper\((\w+)\)", r"\1", name).removeprefix("google.protobuf.")
    if name.startswith("list"):
        items = _LIST.fullmatch(name)
        return f"list<{_read_type(items[1])}>" if items else "list<any>"
    return name if name in _SCALARS else _ANY


def _write_usage(name: str, functions: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    if name in functions:
        return "write " + " or ".join(dict.fromkeys(f"{name}({_word(of)})" for of, _ in functions[name]))
    return "expressions are written in CEL (https://cel.dev)"


def _describe_misuse(name: str, types: Sequence[str]) -> str:
    words = list(map(_describe_type, types))
    if name == _CHOICE:
        return f"chooses by {words[0]}: {' or '.join(words[1:])}"
    return cel.rewrite_error(f"found no matching overload for '{name}' applied to '({', '.join(words)})'")


def _split_types(text: str) -> list[str]:
    return re.split(r", (?![^(]*\))", text)


def _describe_type(name: str) -> str:
    if name.lower().startswith(("list(", "list<")):
        return "a list"
    if name[:1].isupper() and name not in ("DYN", "ANY"):
        return _word(name)
    return cel.describe_type(name.removeprefix("google.protobuf.").partition("(")[0])


def _word(name: str) -> str:
    """The name of a message as words: `PlannedChange` → `planned change`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.partition("__")[0]).lower()


def _list_words(names: Iterable[str]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} or {last}" if most else last
