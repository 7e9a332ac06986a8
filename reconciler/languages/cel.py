"""CEL, the Common Expression Language: compiles expressions, lists the names that they use, evaluates them. Pure.

Uses Google's implementation, which is imported with the first expression. Its error messages are rewritten here, with
line and column within the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

from msgspec import Struct

from reconciler.languages import cel_cost
from reconciler.model.value import Json

MAX_LENGTH = 8192  # characters
_TOO_MUCH = f"could build more than {cel_cost.MAX_COST // 1024 // 1024} million characters and items"
_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?: \[[A-Z_]+\])?$", re.MULTILINE)
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_TOO_DEEP = re.compile("recursion (limit|depth)")
_MESSAGES = (
    (r"Syntax error: .* '<EOF>'.*", "ends unexpectedly"),
    (r"Syntax error: token recognition error at: '[\"'].*", "has an unclosed quote"),
    (r"Syntax error: token recognition error at: '\s*'?$", "has an invalid character"),
    (r"Syntax error: token recognition error at: '(.*?)\s*'?$", "has the invalid character {0!r}"),
    (r"Invalid string literal: .*", "has an invalid string literal"),
    (r"Syntax error: \D*?(?:input|at) '(.*?)'(?: expecting .*)?", "has an unexpected {0!r}"),
    (r"found no matching overload for '_\[_\]' applied to '\((.*), (.*)\)'", "indexes {0} with {1}"),
    (r"found no matching overload for '@in' applied to '\((.*), (.*)\)'", "uses 'in' with {0} and {1}"),
    (r"found no matching overload for '_(.*?)_' applied to '\((.*)\)'", "applies the operator {0!r} to {1}"),
    (r"found no matching overload for '(.*?)' applied to '(.*)'", "calls {0!r} with {1}"),
)
_TYPES = {
    "BOOL": "true or false", "STRING": "text", "INT": "a number", "DOUBLE": "a number", "DYN": "anything",
    "LIST": "a list", "MAP": "a map", "TIMESTAMP": "a timestamp", "DURATION": "a duration", "BYTES": "bytes",
}  # fmt: skip
_MISSING_KEY = re.compile(r'Key not found in map : "?(.*?)"?$')
_NO_OVERLOAD = re.compile(r"No matching overloads found : (.*)")


class SyntaxProblem(Struct, frozen=True):
    """What is wrong with an expression, and where in it: line and column count from 1."""

    text: str
    line: int = 1
    column: int = 1


class UnknownName(Struct, frozen=True):
    """A name in an expression that is neither a known variable nor a function of the language."""

    name: str
    is_function: bool
    line: int
    column: int


class TypeProblem(Struct, frozen=True):
    """An error of the type checker. `undeclared_name`: the unknown name, if that is the error."""

    text: str
    line: int
    column: int

    @property
    def undeclared_name(self) -> str:
        found = _UNDECLARED.match(self.text)
        return found[1] if found else ""


class InvalidExpression(Exception):
    """A text that is not a valid expression, with the problem in `wrong`."""

    def __init__(self, wrong: SyntaxProblem) -> None:
        super().__init__(wrong.text)
        self.wrong = wrong


class EvaluationFailed(Exception):
    """An expression that cannot be evaluated for the given values. The text is the reason."""


Call = Callable[[str, Mapping[str, Any]], list[Any]]
"""Answers a call of a function: takes its name and its argument. Raises EvaluationFailed."""
FindBound = Callable[[str], cel_cost.Bound]
"""The bound of all that a function returns, by its name."""


def _refuse_call(name: str, argument: Mapping[str, Any]) -> list[Any]:
    raise EvaluationFailed(f"{name} cannot be called here")


_call: Final[ContextVar[Call]] = ContextVar("_call", default=_refuse_call)


class Language:
    """Expressions over variables of these names. Variables have any type, those in `instants` are timestamps.

    functions  names of functions that take a map and return a list of values; `bind` says what they return
    """

    def __init__(self, *names: str, instants: Collection[str] = (), functions: Collection[str] = ()) -> None:
        self.names = frozenset({*names, *instants})
        self._instants = frozenset(instants)
        self._functions = frozenset(functions)

    @property
    def _environment(self) -> Any:
        return _env(self.names, self._instants, self._functions)

    def expression(self, text: str, answers: str = "BOOL") -> Expression:
        """Compiles an expression that evaluates to the type `answers` (empty: any type). Raises InvalidExpression."""
        program = _compile(text, self._environment)
        result_type = program.return_type().name()
        if answers and result_type not in (answers, "DYN"):
            raise InvalidExpression(
                SyntaxProblem(f"evaluates to {describe_type(result_type)}, not to {describe_type(answers)}")
            )
        written = program.serialize()
        if cel_cost.estimate(written, {}) > cel_cost.MAX_COST:
            raise InvalidExpression(SyntaxProblem(_TOO_MUCH))
        unknown = list(_unknown_names(text, frozenset()))
        uses = frozenset(name.name for name in unknown if not name.is_function) & self.names
        calls = frozenset(name.name for name in unknown if name.is_function) & self._functions
        inputs = (*uses, *map(cel_cost.result_of, calls))
        return Expression(text, program, answers, uses, written, cel_cost.max_input_size(written, inputs), calls)

    def check(self, text: str) -> tuple[bytes | None, tuple[TypeProblem, ...]]:
        """The program of an expression; None, and the errors of its names and types, if it is invalid."""
        try:
            return self._environment.compile(_replace_surrogates(text)).serialize(), ()
        except RuntimeError as error:
            found = tuple(TypeProblem(what, line, column) for line, column, what in _parse_errors(str(error)))
            return None, found or (TypeProblem(str(error), 1, 1),)

    def bind(
        self,
        values: Mapping[str, Any],
        around: Mapping[str, Any] | None = None,
        call: Call = _refuse_call,
        bound: FindBound = lambda name: cel_cost.Bound(),
    ) -> Bindings:
        """Binds plain JSON and timestamps to the variables, for any number of expressions.

        around  values that `to_cel_values` converted before, shared by many bindings
        call    answers the calls of functions, with values that `to_cel_values` converted
        bound   finds the upper bound of the result of a function, by its name
        """
        variables = {**(around or {}), **to_cel_values(values)}
        return Bindings(self._environment.Activation(variables), variables, call, bound)


@dataclass(frozen=True)
class Bindings:
    """Values of the variables for an evaluation."""

    activation: Any = field(repr=False)
    values: Mapping[str, Any] = field(repr=False, default_factory=dict)
    call: Call = field(repr=False, default=_refuse_call)
    bound: FindBound = field(repr=False, default=lambda name: cel_cost.Bound())

    def inputs(self, variables: Collection[str], functions: Collection[str]) -> dict[str, Any]:
        """The values of variables, and upper bounds of the results of functions."""
        results = {cel_cost.result_of(name): self.bound(name) for name in functions}
        return {name: self.values.get(name) for name in variables} | results


@dataclass(frozen=True)
class Expression:
    """A compiled expression.

    uses   the variables in it
    room   the size of values that needs no cost estimate
    calls  the functions of the language in it, besides those of CEL
    """

    text: str
    program: Any = field(repr=False)
    answers: str
    uses: frozenset[str]
    written: bytes = field(repr=False, default=b"")
    room: float = 0
    calls: frozenset[str] = frozenset()

    def has_word(self, word: str) -> bool:
        """Whether a field or a text in the expression has this name, or contains it."""
        return word.encode() in self.written

    def ask(self, bindings: Bindings) -> Json:
        """The answer; Failed if there is none, or one of another type, or if it could take too much to find."""
        inputs = bindings.inputs(self.uses, self.calls)
        if _measure_all(inputs) > self.room and cel_cost.estimate(self.written, inputs) > cel_cost.MAX_COST:
            raise EvaluationFailed(f"it {_TOO_MUCH}")
        token = _call.set(bindings.call)
        try:
            answer = self.program.eval(bindings.activation)
        except RuntimeError as error:
            raise EvaluationFailed(_reason(str(error))) from None
        finally:
            _call.reset(token)
        result_type = answer.type().name()
        if result_type == "ERROR":
            raise EvaluationFailed(_reason(str(answer.plain_value())))
        if self.answers and result_type != self.answers:
            raise EvaluationFailed(
                f"it evaluates to {describe_type(result_type)}, not to {describe_type(self.answers)}"
            )
        return answer.plain_value()


def _measure_all(values: Mapping[str, Any]) -> float:
    return sum(cel_cost.measure(value).whole for value in values.values())


@lru_cache(maxsize=4096)
def find_syntax_error(text: str) -> SyntaxProblem | None:
    """The syntax error of a text; None if there is none, or the text is nested too deeply to be parsed."""
    try:
        _compile(text, _env(frozenset()), checked=False)
    except InvalidExpression as unfit:
        return None if _TOO_DEEP.search(unfit.wrong.text) else unfit.wrong
    return None


@lru_cache(maxsize=4096)
def find_unknown_names(text: str, known: frozenset[str]) -> tuple[UnknownName, ...]:
    """The names in an expression that are neither known nor part of the language, in order."""
    found = {(unknown.line, unknown.column, unknown.name): unknown for unknown in _unknown_names(text, known)}
    return tuple(found[key] for key in sorted(found))


def check_types(text: str, language: Any) -> tuple[str, tuple[TypeProblem, ...]]:
    """Returns the type of an expression in a typed environment, or the errors of its names and types."""
    try:
        return str(language.compile(_replace_surrogates(text)).return_type().name()), ()
    except RuntimeError as error:
        found = tuple(TypeProblem(what, line, column) for line, column, what in _parse_errors(str(error)))
        return "", found or (TypeProblem(str(error), 1, 1),)


def make_typed_environment(
    variables: Mapping[str, str],
    holders: Collection[str],
    functions: Mapping[tuple[str, bool], Collection[tuple[Collection[str], str]]],
) -> Any:
    """Creates an environment of typed variables and functions. `holders` have members, but no value of their own.

    `functions`: by name and whether it is a method, the types of arguments and result of each overload.
    """
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    kinds = {name: cel.Type(kind) for name, kind in variables.items()}
    kinds |= {name: cel.Type.AbstractType(name) for name in holders}
    declared: dict[str, list[Any]] = {}
    for (name, is_method), ways in functions.items():
        for number, (arguments, result) in enumerate(ways):
            label = f"{name}_{'method' if is_method else 'call'}_{number}"
            arguments = [cel.Type(argument) for argument in arguments]
            declared.setdefault(name, []).append(cel.Overload(label, cel.Type(result), arguments, is_method))
    return cel.NewEnv(
        variables=kinds,
        functions=[cel.FunctionDecl(name, overloads) for name, overloads in declared.items()],
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()],
    )


def _unknown_names(text: str, known: frozenset[str]) -> Iterator[UnknownName]:
    try:
        _env(known).compile(_replace_surrogates(text))
    except RuntimeError as error:
        lines = text.split("\n")
        for line, column, message in _parse_errors(str(error)):
            if (name := _UNDECLARED.match(message)) is not None and 0 < line <= len(lines):
                yield from _unknown_name(name[1], line, column, lines[line - 1])


def _unknown_name(name: str, line: int, column: int, text: str) -> Iterator[UnknownName]:
    """The unknown name of an error, whose position is that of its last dot or of the bracket, with its beginning.

    Methods are skipped, since the types of values are not known here.
    """
    if text[column - 1 : column] == "(":
        begin = column - len(name)
        if not text[: begin - 1].endswith("."):
            yield UnknownName(name, True, line, max(1, begin))
        return
    before = name.rpartition(".")[0]
    begin = column - len(before) if text[: column - 1].endswith(before) else column
    yield UnknownName(name.partition(".")[0], False, line, begin)


@lru_cache(maxsize=64)
def _env(names: frozenset[str], instants: frozenset[str] = frozenset(), functions: frozenset[str] = frozenset()) -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    types = {name: cel.Type.TIMESTAMP if name in instants else cel.Type.DYN for name in sorted(names)}
    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional()]
    declared = [_declare_function(name) for name in sorted(functions)]
    return cel.NewEnv(variables=types, extensions=extensions, functions=declared)


def _declare_function(name: str) -> Any:
    """A function from a map to a list, which the bindings of an evaluation answer."""
    from cel_expr_python import cel

    parameter, result = cel.Type("map<string, dyn>"), cel.Type("list<dyn>")
    return cel.FunctionDecl(name, [cel.Overload(f"{name}_map", result, [parameter], False, partial(_answer, name))])


def _answer(name: str, argument: Any) -> list[Any]:
    return _call.get()(name, argument)


def _compile(text: str, env: Any, *, checked: bool = True) -> Any:
    if len(text) > MAX_LENGTH:
        raise InvalidExpression(SyntaxProblem(f"has more than {MAX_LENGTH} characters"))
    try:
        return env.compile(_replace_surrogates(text), disable_check=not checked)
    except RuntimeError as error:
        line, column, message = next(_parse_errors(str(error)), (1, 1, str(error)))
        raise InvalidExpression(_make_problem(message, max(line, 1), max(column, 1), text)) from None


def _replace_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode(errors="replace").decode()


def _parse_errors(text: str) -> Iterator[tuple[int, int, str]]:
    return ((int(match[1]), int(match[2]), match[3]) for match in _ERROR.finditer(text))


def _make_problem(message: str, line: int, column: int, text: str) -> SyntaxProblem:
    if (name := _UNDECLARED.match(message)) is None:
        return SyntaxProblem(rewrite_error(message), line, column)
    at = next(_unknown_name(name[1], line, column, text.split("\n")[line - 1]), None)
    return SyntaxProblem(f"uses the unknown name {name[1]}", line, at.column if at else column)


def rewrite_error(message: str) -> str:
    """Rewrites an error message of the implementation in plain words."""
    for pattern, words in _MESSAGES:
        if (found := re.match(pattern, message)) is not None:
            return words.format(*found.groups())
    return _reason(message)


def _reason(text: str) -> str:
    """An error message without the codes of the library."""
    text = re.sub(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$", "", text.partition("\n")[0])
    if (found := _MISSING_KEY.search(text)) is not None:
        return f"there is no {found[1]}"
    if (found := _NO_OVERLOAD.search(text)) is not None:
        return f"{found[1]} is not defined for such values"
    return text


def describe_type(name: str) -> str:
    """A type in plain words."""
    return _TYPES.get(name.upper(), name.lower())


def to_cel_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts values to types of the language, by name."""
    return {name: _to_cel_value(value) for name, value in values.items()}


def _to_cel_value(value: Any) -> Any:
    """Converts a value to types of the language: no integers beyond 64 bits, no lone surrogates, no tuples."""
    match value:
        case bool() | None | float():
            return value
        case int():
            return value if -(2**63) <= value < 2**63 else float(value)
        case str():
            return _replace_surrogates(str(value))
        case Mapping():
            return {str(_to_cel_value(key)): _to_cel_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_to_cel_value(item) for item in value]
    return value
