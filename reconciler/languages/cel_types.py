"""Checks an expression against typed variables: fields, functions, and the types of values. Pure.

Google's implementation of CEL checks types. Maps with known fields are declared to it as messages of Protocol Buffers;
evaluation does not need them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from reconciler.languages import cel
from reconciler.model.suggestions import did_you_mean

Fields = Mapping[str, str]
"""The type of each field: `string`, `bool`, `int`, `double`, `any`, the name of a message, or `list<…>` of these."""

_PACKAGE: Final = "known"
_WRAPPERS: Final = {"string": "StringValue", "bool": "BoolValue", "int": "Int64Value", "double": "DoubleValue"}
_LIST: Final = re.compile(r"list<(.*)>")
_UNDEFINED: Final = re.compile(rf"undefined field '(.*?)' not found in struct '{_PACKAGE}\.(.*?)'")
_SELECTED: Final = re.compile(r"expression of type '(.*?)' cannot be the operand of a select operation")
_OVERLOAD: Final = re.compile(r"found no matching overload for '(.*?)' applied to '\((.*)\)'")
_RANGE: Final = re.compile(r"expression of type '(.*?)' cannot be the range of a comprehension")
_WRAPPED: Final = re.compile(r"wrapper\((\w+)\)")
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_EQUALITY: Final = frozenset({"_==_", "_!=_"})
_CHOICE: Final = "_?_:_"
_OF_MAPS: Final = frozenset(
    {"@in", "_[_]", "size", _CHOICE, *_EQUALITY}
)  # also defined for maps, which messages stand for
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
        self._environment = _make_environment(messages, variables, functions)

    def find_mistakes(self, text: str, answers: str = "BOOL") -> tuple[Mistake, ...]:
        """The mistakes of an expression in the order of the text. None of its syntax: `Language` reports them.

        answers  the type that it evaluates to; empty: any type
        """
        if len(text) > cel.MAX_LENGTH or cel.find_syntax_error(text) is not None:
            return ()
        result, problems = cel.check_types(text, self._environment)
        is_right = _WRAPPED.sub(r"\1", result).upper() in (answers, "DYN", "ANY", "GOOGLE.PROTOBUF.ANY")
        if not problems and answers and not is_right:
            what = f"evaluates to {_describe_type(result)}, not to {cel.describe_type(answers)}"
            return (Mistake(what, "compare it with a value"),)
        lines = text.split("\n")
        found = [
            mistake
            for problem in problems
            if 0 < problem.line <= len(lines)
            and (mistake := self._describe(problem, lines[problem.line - 1])) is not None
        ]
        return tuple(sorted(found, key=lambda mistake: (mistake.line, mistake.column)))

    def _describe(self, problem: cel.TypeProblem, line: str) -> Mistake | None:
        """The mistake; None if it may be none, since a map has what a message lacks."""
        if (name := problem.undeclared_name) != "":
            is_call = line[problem.column - 1 : problem.column] == "("
            return self._describe_call(name, problem) if is_call else self._describe_variable(name, problem)
        if (match := _UNDEFINED.match(problem.text)) is not None:
            known = self._messages.get(match[2], {})
            remedy = did_you_mean(match[1], known) or f"use {_list_words(known)}"
            return Mistake(
                f"uses the unknown field {match[1]}", remedy, problem.line, _find_member(line, problem.column, match[1])
            )
        if (match := _SELECTED.match(problem.text)) is not None and match[1] != "*error*":
            member = re.match(r"\W*(\w*)", line[problem.column - 1 :])
            what = f"uses the field {member[1] if member else ''} of {_describe_type(match[1])}, which has no fields"
            return Mistake(what, "remove it", problem.line, problem.column + 1)
        if (match := _OVERLOAD.match(problem.text)) is not None and not _may_fit(match[1], match[2].split(", ")):
            types = list(map(_describe_type, _split_types(match[2])))
            call = f"found no matching overload for '{match[1]}' applied to '({', '.join(types)})'"
            what = (
                cel.rewrite_error(call) if match[1] != _CHOICE else f"chooses by {types[0]}: {' or '.join(types[1:])}"
            )
            return Mistake(what, self._usage(match[1]), problem.line, problem.column)
        if (match := _RANGE.match(problem.text)) is not None and not _is_message(match[1]):
            what = f"looks for items in {_describe_type(match[1])}"
            return Mistake(what, "use a list or a map", problem.line, problem.column)
        return None

    def _describe_call(self, name: str, problem: cel.TypeProblem) -> Mistake:
        begin = max(1, problem.column - len(name))
        known = {*_BUILT_IN, *self._functions}
        if name in known:
            what = f"calls {name} with other arguments than it takes"
            return Mistake(what, self._usage(name), problem.line, begin)
        remedy = did_you_mean(name, known) or "CEL has no such function"
        return Mistake(f"calls the unknown function {name}", remedy, problem.line, begin)

    def _describe_variable(self, name: str, problem: cel.TypeProblem) -> Mistake:
        known = sorted(self._variables)
        first, _, rest = name.partition(".")
        column = problem.column - len(name.rpartition(".")[0]) if rest else problem.column
        remedy = did_you_mean(first, known) or f"use {_list_words(known)}"
        return Mistake(f"uses the unknown name {first}", remedy, problem.line, max(1, column))

    def _usage(self, name: str) -> str:
        if name in self._functions:
            return "write " + " or ".join(f"{name}({_word(of)})" for of, _ in self._functions[name])
        return "expressions are written in CEL (https://cel.dev)"


def _may_fit(name: str, types: Sequence[str]) -> bool:
    """Whether the types may be right in an evaluation, where messages are maps and numbers are compared freely."""
    plain = {_WRAPPED.sub(r"\1", of) for of in types}
    is_null = "null_type" in plain and name in (_CHOICE, *_EQUALITY)
    is_map = name in _OF_MAPS and any(map(_is_message, plain))
    return is_null or is_map or (len(plain) > 1 and plain <= _NUMBERS)


def _is_message(name: str) -> bool:
    return f"{_PACKAGE}." in name


def _split_types(text: str) -> list[str]:
    return re.split(r", (?![^(]*\))", text)


def _describe_type(name: str) -> str:
    name = _WRAPPED.sub(r"\1", name)
    if name.lower().startswith(("list(", "list<")):
        return "a list"
    if name.startswith(f"{_PACKAGE}."):
        return _word(name.removeprefix(f"{_PACKAGE}."))
    name = name.removeprefix("google.protobuf.")
    return cel.describe_type(name.partition("(")[0])


def _word(name: str) -> str:
    """The name of a message as words: `PlannedChange` → `planned change`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.partition("__")[0]).lower()


def _list_words(names: Iterable[str]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} or {last}" if most else last


def _find_member(line: str, column: int, name: str) -> int:
    """The column of a member's name at or after a column, that of the dot or of `has(`."""
    found = re.compile(rf"\b{re.escape(name)}\b").search(line, column - 1)
    return found.start() + 1 if found is not None else column


# --- the environment --------------------------------------------------------------------------------------------------


def _make_environment(
    messages: Mapping[str, Fields],
    variables: Mapping[str, str],
    functions: Mapping[str, Sequence[tuple[str, str]]],
) -> Any:
    from cel_expr_python import cel as library
    from cel_expr_python.ext import ext_optional, ext_strings

    declared = [
        library.FunctionDecl(
            name,
            [
                library.Overload(f"{name}_{number}", _to_type(result, library), [_to_type(parameter, library)], False)
                for number, (parameter, result) in enumerate(overloads)
            ],
        )
        for name, overloads in functions.items()
    ]
    return library.NewEnv(
        descriptor_pool=_make_pool(messages),
        variables={name: _to_type(of, library) for name, of in variables.items()},
        functions=declared,
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()],
    )


def _to_type(name: str, library: Any) -> Any:
    if (of := _LIST.fullmatch(name)) is not None:
        return library.Type.List(_to_type(of[1], library))
    if name[:1].isupper():
        return library.Type(f"{_PACKAGE}.{name}")
    return library.Type("dyn" if name == "any" else name)


def _make_pool(messages: Mapping[str, Fields]) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2, wrappers_pb2

    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    pool = descriptor_pool.DescriptorPool()
    for used in (struct_pb2, wrappers_pb2):
        pool.AddSerializedFile(used.DESCRIPTOR.serialized_pb)
        file.dependency.append(used.DESCRIPTOR.name)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, (field, of) in enumerate(fields.items(), 1):
            inner = _LIST.fullmatch(of)
            message.field.add(
                name=field,
                number=number,
                label=3 if inner else 1,
                type=11,  # a message: also for scalars, which may be null
                type_name=_name_type(inner[1] if inner else of),
                json_name=f"f{number}",  # else names that differ only in case and underscores collide
            )
    pool.Add(file)
    return pool


def _name_type(name: str) -> str:
    if name in _WRAPPERS:
        return f".google.protobuf.{_WRAPPERS[name]}"
    return ".google.protobuf.Value" if name == "any" else f".{_PACKAGE}.{name}"
