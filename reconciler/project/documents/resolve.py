"""Turns what is written in a spec into values: references, text from environment and files, variables in text.

    {ref: Kind/name}  {ref: Kind/name.output}  {from_env: NAME}  {from_file: path}
    "text with ${{ Kind/name.output }} or ${{ var.name }}"

The schema decides what is an expression: a map in the place of text is one, a map that is a field's own shape is not.
`$${{` spells a literal `${{`; `${…}` with one brace belongs to the platform and is left alone. A name may contain dots,
so in `Kind/a.b.c` the longest declared name wins: `a.b.c`, then `a.b` with output `c`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from operator import is_
from pathlib import Path as Folder
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel

from reconciler import kinds
from reconciler.languages import yaml_scalars
from reconciler.model.address import Address
from reconciler.model.kind import Behaviour, Field, Finding, Home, Shape, fields_of
from reconciler.model.manifest import Ensure, Path
from reconciler.model.problem import Position, Severity, cut
from reconciler.model.value import PENDING, Json, Ref, Secret, Template, Value
from reconciler.project import files
from reconciler.project.documents import phrases, validation

MAX_INCLUDE: Final = 1024 * 1024
_OPENING: Final = re.compile(r"\$?\$\{\{")
_VARIABLE: Final = re.compile(r"var\.([A-Za-z_][A-Za-z0-9_-]*)")
_EACH: Final = re.compile(r"each\b")
_SCALARS: Final = (Shape.INTEGER, Shape.NUMBER, Shape.FLAG)

Variable = str | int | float | bool | list[Any] | dict[str, Any]
# What stands for the value of a source (`env:NAME`) that is not there, in a field that is secret or not; None: nothing
# does, and it is an error.
Absent = Callable[[str, bool], Value | None]

_OWN_KEYS: Final = "RECONCILER_"  # what the environment variables of this program begin with
_SECRET_NAME: Final = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(?<!PUBLIC_)(?<!PUB_)(?<![A-Z])(API|ACCESS|PRIVATE|SIGNING)?KEY(?![A-Z])(?!_ID)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Declared:
    """The addresses that references may lead to."""

    ensures: dict[Address, Ensure] = field(default_factory=dict)
    known: dict[Address, Address] = field(default_factory=dict)  # each by its equals: references share one
    complete: bool = True  # otherwise some file could not be read, and what is not found may be in there
    left_out: dict[Address, Position] = field(default_factory=dict)  # by the environment, and where it says so

    def add(self, address: Address, ensure: Ensure) -> None:
        """Of two with one address the first counts."""
        if self.known.setdefault(address, address) is address:
            self.ensures[address] = ensure


@dataclass(frozen=True, slots=True)
class Shown:
    """A value from outside the manifests, in a field that plans and reports show. `text` is None if it is not there."""

    address: Address
    path: Path
    source: str  # `env:NAME`, `file:path` or `var:name`
    text: str | None


@dataclass(frozen=True, slots=True)
class _Slot:
    """A field as this module needs it, with sensitivity handed down."""

    shape: Shape
    sensitive: bool
    refs: tuple[str, ...]
    item: _Slot | None
    fields: Mapping[str, _Slot]


def _slot(of: Field, sensitive: bool = False) -> _Slot:
    sensitive = sensitive or Behaviour.SENSITIVE in of.behaviours
    return _Slot(
        of.shape,
        sensitive,
        of.refs,
        _slot(of.item, sensitive) if of.item else None,
        {each.name: _slot(each, sensitive) for each in of.fields},
    )


@cache
def slots_of(model: type[BaseModel]) -> Mapping[str, _Slot]:
    return {each.name: _slot(each) for each in fields_of(model)}


def _is_plain_text(items: Iterable[Json], slot: _Slot) -> bool:
    """Whether nothing among these stands for something else."""
    if slot.sensitive:
        return False
    return all(each.__class__ is str and "${{" not in each and not (slot.refs and "/" in each) for each in items)


class _Unresolved(Exception):
    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy


@lru_cache(maxsize=64)  # whoever misspells a kind does so throughout
def kind_meant(name: str) -> str:
    """What to do about the name of a kind that there is not."""
    return (
        phrases.meant(name, [each.name for each in kinds.declarable()]) or "the command `kinds` lists those there are"
    )


class Resolver:
    """Resolves one spec after the other; `included` collects the files that were read on the way."""

    def __init__(
        self,
        root: Folder,
        environ: Mapping[str, str],
        variables: Mapping[str, Variable | None],
        declared: Declared,
        absent: Absent | None = None,
        sources: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._root = root
        self._environ = environ
        self._variables = variables
        self._declared = declared
        self._absent = absent
        self._sources = sources  # of variables whose value is not written in a file: `env:NAME`, `--var`
        self._references: dict[str, Ref | _Unresolved] = {}
        self.included: dict[str, bytes] = {}
        self.findings: list[Finding] = []
        self.shown: list[Shown] = []  # of all specs
        self.secret_sources: set[str] = set()  # where the secrets of all specs come from
        self.links: list[tuple[Address, Path]] = []  # what the spec refers to, and where
        self._subject: str | Address = ""

    def resolve(self, model: type[BaseModel], subject: str | Address, raw: dict[str, Json]) -> dict[str, Value]:
        """The values of what is written in the model's shape; `findings` says what is wrong with them."""
        self.findings = []
        self.links = []
        self._subject = subject
        return self._object(raw, slots_of(model), ())

    def _object(self, raw: dict[str, Json], slots: Mapping[str, _Slot], path: Path) -> dict[str, Value]:
        """What is written itself, where nothing in it stands for something else: there are thousands, all kept."""
        changed: dict[str, Value] = {}
        for key, item in raw.items():
            slot = slots.get(key)
            if item.__class__ is str and "${{" not in item and (slot is None or not (slot.sensitive or slot.refs)):
                continue
            if slot is not None and (value := self._value(item, slot, (*path, key))) is not item:
                changed[key] = value
        return {**raw, **changed} if changed else raw

    def _value(self, item: Json, slot: _Slot, path: Path) -> Value:
        if isinstance(item, str):
            if "${{" in item:
                return self._guarded(self._text, item, slot, path)
            if slot.refs and "/" in item:
                return self._guarded(self._id, item, slot, path)
            return self._literal(item, path) if slot.sensitive else item
        if isinstance(item, dict):
            return self._map(item, slot, path)
        if isinstance(item, list):
            if slot.shape is Shape.ANY:
                return self._free(item, slot, path)
            if slot.item is not None and slot.shape is Shape.LIST:
                inner = slot.item
                if _is_plain_text(item, inner):
                    return item
                values = [self._value(each, inner, (*path, index)) for index, each in enumerate(item)]
                return item if all(map(is_, values, item)) else values
        return item

    def _id(self, text: str, slot: _Slot, path: Path) -> str:
        """Text in the place of an id, which an address is not."""
        kind_name = text.partition("/")[0]
        if slot.refs and kind_name.isidentifier() and kinds.find(kind_name) is not None:
            raise _Unresolved(f"expected an id, found the address {text}", f"write {{ref: {text}}}")
        return text

    def _literal(self, text: str, path: Path) -> Secret:
        """A secret that is written in the file itself."""
        if text:
            name = next((part for part in reversed(path) if isinstance(part, str)), "value")
            remedy = f"write {name}: {{from_env: NAME}} or {{from_file: PATH}}"
            text_found = "the secret is written here in plain text"
            self.findings.append(Finding(path, text_found, remedy, Severity.WARNING, "literal-secret"))
        return Secret(text, self._here(path))

    def _map(self, item: dict[str, Json], slot: _Slot, path: Path) -> Value:
        match slot.shape:
            case Shape.OBJECT:
                return self._object(item, slot.fields, path)
            case Shape.MAP if slot.item is not None:
                inner = slot.item
                if _is_plain_text(item.values(), inner):
                    return item
                found = {key: self._value(each, inner, (*path, key)) for key, each in item.items()}
                return item if all(map(is_, found.values(), item.values())) else found
            case Shape.ANY:
                if len(item) == 1 and next(iter(item)) in phrases.EXPRESSIONS:
                    return self._guarded(self._expression, item, slot, path)
                return self._free(item, slot, path)
            case Shape.LIST | Shape.MAP:
                return item
        if any(key in phrases.EXPRESSIONS for key in item):
            return self._guarded(self._expression, item, slot, path)
        return item

    def _free(self, item: Json, slot: _Slot, path: Path) -> Value:
        """Free-form content: only text is looked into."""
        match item:
            case str() if "${{" in item:
                return self._guarded(self._text, item, slot, path)
            case dict():
                found = {key: self._free(each, slot, (*path, key)) for key, each in item.items()}
                return item if all(map(is_, found.values(), item.values())) else found
            case list():
                values = [self._free(each, slot, (*path, index)) for index, each in enumerate(item)]
                return item if all(map(is_, values, item)) else values
        return item

    def _guarded(self, resolve: Any, item: Json, slot: _Slot, path: Path) -> Value:
        if len(self.findings) > validation.MAX_FINDINGS:
            return PENDING
        try:
            return resolve(item, slot, path)
        except (_Unresolved, files.Unreadable) as wrong:
            text, remedy = str(wrong), wrong.remedy
            if slot.sensitive and isinstance(item, str):  # not repeated: it may be the secret itself
                text, remedy = "'${{' leads to nothing here", "write $${{ for the text itself"
            self.findings.append(Finding(path, text, remedy))
            return PENDING

    def _expression(self, item: dict[str, Json], slot: _Slot, path: Path) -> Value:
        if len(item) != 1:
            raise _Unresolved("a value has one source", f"keep one of {phrases.listed(item)}")
        (word, operand), *_ = item.items()
        if not isinstance(operand, str):
            raise _Unresolved(f"{word} takes text, found {phrases.found(operand)}", _USAGE[word])
        if word == "ref":
            return self._reference(operand, slot, path)
        if word == "from_env" and operand.startswith(_OWN_KEYS) and not self._is_of_platform(path):
            raise _Unresolved(f"{cut(operand)} is an environment variable of reconciler itself", _NOT_OURS)
        source = f"{word.removeprefix('from_')}:{operand if word == 'from_env' else files.inside(operand)}"
        is_absent = self._absent is not None and not self._is_there(word, operand, slot)
        if is_absent and self._absent and (value := self._absent(source, slot.sensitive)) is not None:
            self._note(source, None, slot, path)
            return value
        text = self._from_env(operand, slot) if word == "from_env" else self._from_file(operand)
        self._note(source, text, slot, path)
        return self._outside(text, source, slot)

    def _is_of_platform(self, path: Path) -> bool:
        """Whether it is in the section `platform` of the project's settings, which no plan shows."""
        return not isinstance(self._subject, Address) and path[:1] == ("platform",)

    def _note(self, source: str, text: Variable | None, slot: _Slot, path: Path, origin: str = "") -> None:
        """Remembers where secrets come from, and which values from outside are shown; warns of names like secrets."""
        if slot.sensitive:
            self.secret_sources |= {source, origin} - {""}
        if not self._is_shown(slot):
            return
        assert isinstance(self._subject, Address)
        for each in {source, origin} - {""}:
            self.shown.append(Shown(self._subject, path, each, text if isinstance(text, str) else None))
        word, _, name = (origin or source).partition(":")
        if word == "env" and _SECRET_NAME.search(name):
            told = f"{cut(name)} is named like a secret, and plans, reports and snapshots show this field"
            self.findings.append(Finding(path, told, _RENAME, Severity.WARNING, "secret-name-shown"))
        elif source.startswith("env:"):
            self.findings.append(Finding(path, *_NOT_HIDDEN, Severity.WARNING, "from-env-shown"))

    def _is_shown(self, slot: _Slot) -> bool:
        """Whether plans show what is here: a resource's text that is no secret."""
        is_resource = isinstance(self._subject, Address) and kinds.get(self._subject.kind).home is not Home.FILE
        return is_resource and not slot.sensitive and slot.shape in (Shape.TEXT, Shape.ANY)

    def _is_there(self, word: str, operand: str, slot: _Slot) -> bool:
        if word == "from_env":
            return bool(self._environ.get(operand)) or (not slot.sensitive and operand in self._environ)
        where = files.inside(operand)
        return where in self.included or os.path.lexists(self._root / where)

    def _outside(self, text: Variable, source: str, slot: _Slot) -> Value:
        """Text from elsewhere as the field wants it: hidden, or a number or flag where the field holds one."""
        if isinstance(text, (list, dict)):
            return self._whole(text, source, slot)
        if slot.sensitive:
            return Secret(str(text), source)
        if slot.shape in _SCALARS and isinstance(text, str):
            try:
                return yaml_scalars.plain(text.strip())
            except ValueError:
                return text
        return text if slot.shape in (*_SCALARS, Shape.ANY) else self._id(_as_text(text), slot, ())

    def _whole(self, value: Variable, source: str, slot: _Slot) -> Value:
        """A list or map from a variable: plain values, in which nothing is looked for."""
        if isinstance(value, dict):
            slots = {key: slot.item if slot.shape is Shape.MAP else slot.fields.get(key) for key in value}
            return {key: self._inside(item, source, slots[key]) for key, item in value.items()}
        assert isinstance(value, list)
        return [self._inside(item, source, slot.item if slot.shape is Shape.LIST else None) for item in value]

    def _inside(self, item: Json, source: str, slot: _Slot | None) -> Value:
        return item if slot is None or item is None else self._outside(item, source, slot)

    def _from_env(self, name: str, slot: _Slot) -> str:
        text = self._environ.get(name)
        if text is None:
            raise _Unresolved(f"the environment variable {cut(name)} is not set", "set it")
        if not text.isascii() and "\udc80" <= max(text) <= "\udfff":
            raise _Unresolved(f"the environment variable {cut(name)} is not UTF-8", "set it to text")
        if not text and slot.sensitive:
            raise _Unresolved(f"the environment variable {cut(name)} is empty", "set it to the secret")
        return text

    def _from_file(self, path: str) -> str:
        where = files.inside(path)
        content = self.included.get(where)
        if content is None:
            content = self.included[where] = files.read(self._root, where, MAX_INCLUDE)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise _Unresolved(
                f"{where} is not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}"
            ) from None
        # The newline that editors and `echo` put behind a single line is not part of a password.
        return text.rstrip("\r\n") if "\n" not in text.rstrip("\r\n") else text

    def _text(self, text: str, slot: _Slot, path: Path) -> Value:
        """A text with `${{ … }}` inside."""
        parts: list[str | Ref] = []
        end = 0
        for opening in _OPENING.finditer(text):
            if opening.start() < end:
                continue
            parts.append(text[end : opening.start()])
            if opening[0].startswith("$$"):
                parts.append("${{")
                end = opening.end()
                continue
            close = text.find("}}", opening.end())
            if close < 0:
                raise _Unresolved("'${{' is not closed with '}}'", "close it, or write $${{ for the text itself")
            inner = text[opening.end() : close].strip()
            end = close + 2
            whole = opening.start() == 0 and end == len(text)
            if variable := _VARIABLE.fullmatch(inner):
                value, origin = self._variable(variable[1]), self._sources.get(variable[1], "")
                self._note(f"var:{variable[1]}", value, slot, path, origin.replace("--var", ""))
                if value is None:
                    return PENDING
                if slot.sensitive and not origin and value != "":
                    remedy = f"write {{from_env: NAME}} as the value of {variable[1]}"
                    told = f"the secret is the variable {variable[1]}, which is written in plain text"
                    self.findings.append(Finding(path, told, remedy, Severity.WARNING, "literal-secret"))
                if whole:
                    return self._outside(value, self._here(path), slot)
                parts.append(_within_text(value, variable[1]))
            elif slot.sensitive and not whole:
                raise _Unresolved(*_NOT_PUT_TOGETHER)
            else:
                parts.append(self._reference(inner, slot if whole else None, path))
        parts.append(text[end:])
        return self._joined(parts, slot, path)

    def _joined(self, parts: list[str | Ref], slot: _Slot, path: Path) -> Value:
        kept = [part for part in parts if part != ""]
        if len(kept) == 1 and isinstance(kept[0], Ref):
            return kept[0]
        if any(isinstance(part, Ref) for part in kept):
            return Template(tuple(kept))
        text = self._id("".join(str(part) for part in kept), slot, path)
        return Secret(text, self._here(path)) if slot.sensitive else text

    def _here(self, path: Path) -> str:
        return f"manifest:{self._subject}.{phrases.dotted(path)}"

    def _variable(self, name: str) -> Variable | None:
        """None if it waits for a value: that is told of the variable, once."""
        if name not in self._variables:
            remedy = phrases.meant(name, self._variables) or "define it under variables: in reconciler.yaml"
            raise _Unresolved(f"there is no variable {cut(name)}", remedy)
        value: Any = self._variables[name]
        return None if value is PENDING else value

    def _reference(self, text: str, slot: _Slot | None, path: Path) -> Ref:
        found = self._references.get(text)
        if found is None:
            try:
                found = self._look_up(text)
            except _Unresolved as wrong:
                found = wrong
            self._references[text] = found
        if isinstance(found, _Unresolved):
            raise _Unresolved(str(found), found.remedy)
        if slot is not None and slot.refs:
            if found.target.kind not in slot.refs:
                raise _Unresolved(
                    f"refers to the kind {found.target.kind}, where {phrases.listed(slot.refs)} belongs",
                    "refer to another resource",
                )
            if found.output != "id":
                raise _Unresolved(f"refers to {found}, and this field takes an id", f"write {found.target}")
        elif kinds.get(found.target.kind).home is Home.FILE:
            raise _Unresolved(f"refers to {found.target}, which is a file and no object", "write the value itself")
        self.links.append((found.target, path))
        return found

    def _look_up(self, text: str) -> Ref:
        kind_name, slash, rest = text.partition("/")
        if _EACH.match(text):
            raise _Unresolved(f"{text!r} means something only in a manifest with for_each", "add for_each above spec")
        if not slash or not rest:
            raise _Unresolved(f"{text!r} is not a reference", "write Kind/name or Kind/name.output")
        kind = kinds.find(kind_name) if kind_name.isidentifier() else None
        if kind is None:
            raise _Unresolved(f"refers to the unknown kind {cut(kind_name)}", kind_meant(kind_name))
        name, output = rest, ""
        while Address(kind_name, name) not in self._declared.ensures:
            name, dot, last = name.rpartition(".")
            if not dot:
                return self._unknown(kind_name, rest)
            output = f"{last}.{output}" if output else last
        address = self._declared.known[Address(kind_name, name)]
        if self._declared.ensures[address] is not Ensure.PRESENT:
            raise _Unresolved(f"refers to {address}, which is declared {self._declared.ensures[address]}", "remove it")
        if output and output == kind.one_time:
            raise _Unresolved(f"{address}.{output} can be read only once", "use deliver on that resource")
        if output and output not in kind.outputs:
            own = " (it is declared there, so write its value)" if output in kind.by_name else ""
            known_outputs = [each for each in kind.outputs if each != kind.one_time]
            remedy = phrases.meant(output, known_outputs) or f"use {phrases.listed(known_outputs)}"
            raise _Unresolved(f"{kind_name} has no output {output}{own}", remedy)
        return Ref(address, output or "id")

    def _unknown(self, kind_name: str, rest: str) -> Ref:
        if not self._declared.complete:
            return Ref(Address(kind_name, rest))
        if (where := self._declared.left_out.get(Address(kind_name, rest))) is not None:
            raise _Unresolved(f"refers to {kind_name}/{rest}, which {where} leaves out", "leave this out there too")
        names = [each.name for each in self._declared.ensures if each.kind == kind_name]
        close = phrases.meant(rest, names) or phrases.meant(rest.rpartition(".")[0] or rest, names)
        remedy = close.replace("did you mean ", f"did you mean {kind_name}/") or "declare it, or give the id itself"
        raise _Unresolved(f"refers to {kind_name}/{rest}, which is not declared", remedy)


_USAGE: Final = {
    "ref": "write {ref: Kind/name}",
    "from_env": "write {from_env: NAME}",
    "from_file": "write {from_file: path}",
}


_NOT_OURS: Final = "use another variable; only platform: in reconciler.yaml may name it"
_RENAME: Final = "put secrets into fields that take secrets, or give the value another name if it is none"
_NOT_HIDDEN: Final = (
    "from_env is for secrets, and this field holds none: plans, reports and snapshots show it",
    "give what may be seen as a variable, ${{ var.name }}",
)
_NOT_PUT_TOGETHER: Final = ("a secret cannot be put together from references", "take it from a file or variable")


def _within_text(value: Variable, name: str) -> str:
    if isinstance(value, (list, dict)):
        raise _Unresolved(f"the variable {name} is {phrases.found(value)}, and cannot be put into text", "use it alone")
    return _as_text(value)


def _as_text(value: Variable) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
