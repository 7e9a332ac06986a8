"""Resolves the expressions in a spec: references, values from the environment and from files, variables in text.

    {ref: Kind/name}  {ref: Kind/name.output}  {from_env: NAME}  {from_file: path}
    "text with ${{ Kind/name.output }}, ${{ var.name }} or ${{ lower(var.name) }}"

The schema decides what is an expression: a map in the place of text is one, a map that is a field's own shape is not.
`$${{` is a literal `${{`. `${…}` with one brace is an interpolation of the platform and is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import is_
from pathlib import Path as Folder
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from reconciler import kinds
from reconciler.languages.yaml import scalars
from reconciler.model.address import Address
from reconciler.model.fields.field import Shape
from reconciler.model.fields.form import Form
from reconciler.model.kind import Home
from reconciler.model.manifest import Ensure, Path
from reconciler.model.numerals import to_plain
from reconciler.model.problem import Finding, Severity, cut
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.model.value import PENDING, Json, Ref, Secret, Template, Value
from reconciler.project import files
from reconciler.project.documents import functions, literal_ids, phrases, secret_sources, terraform, validation
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.documents.outside import Outside
from reconciler.project.documents.references import Declared, References, Unresolved
from reconciler.project.documents.scope import Scope
from reconciler.project.documents.slots import SECRET_TEXT, Slot, is_plain_text, slots_of

_OPENING: Final = re.compile(r"\$?\$\{\{")
_VARIABLE: Final = re.compile(r"var\.([A-Za-z_][A-Za-z0-9_-]*)")
_SCALARS: Final = (Shape.INTEGER, Shape.NUMBER, Shape.FLAG)

Variable = str | int | float | bool | list[Any] | dict[str, Any]
# Returns a placeholder for a missing source (`env:NAME`) in a field that is secret or not; None: report an error.
Absent = Callable[[str, bool], Value | None]

_OWN_KEYS: Final = "RECONCILER_"  # prefix of the environment variables of this program
SECRET_NAME: Final = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(?<!PUBLIC_)(?<!PUB_)(?<![A-Z])(API|ACCESS|PRIVATE|SIGNING)?KEY(?![A-Z])(?!_ID)",
    re.IGNORECASE,
)


def _is_secret(text: str, slot: Slot) -> bool:
    """Whether a text in a sensitive field is a secret. A field that may hold a path or URL tells secrets apart."""
    return slot.conceals is None or any(True for _ in slot.conceals.find(text))


class VisibleValue(Struct, frozen=True):
    """A value from outside the manifests in a field that plans and reports show. `text`: None if it does not exist."""

    address: Address
    path: Path
    source: str  # `env:NAME`, `file:path` or `var:name`
    text: str | None


class Resolver:
    """Resolves specs one after the other."""

    def __init__(
        self,
        root: Folder,
        environ: Mapping[str, str],
        variables: Mapping[str, Variable | None],
        declared: Declared,
        absent: Absent | None = None,
        sources: Mapping[str, str] = MappingProxyType({}),
        budget: Budget | None = None,
    ) -> None:
        self._budget = budget or Budget()
        self.invalid_values = 0  # of all declarations; only the first ones of each are reported
        self._outside = Outside(root, environ)
        self._secret_values = frozenset(secret_sources.find_secret_values(environ))
        self._variables = variables
        self._references = References(declared)
        self._absent = absent
        self._sources = sources  # origin of variables whose value is not in a file: `env:NAME`, `--var`
        self.findings: list[Finding] = []
        self.visible_values: list[VisibleValue] = []  # in all specs
        self.secret_sources: set[str] = set()  # sources of the secrets in all specs
        self.links: list[tuple[Address, Path]] = []  # references of the spec: target, and path of the reference
        self._subject: str | Address = ""
        self._ensure = Ensure.PRESENT  # of the subject
        self._scope_at: Callable[[Path], Scope | None] | None = None

    @property
    def included_files(self) -> dict[str, bytes]:
        """Contents of the files that were read, by path relative to the root."""
        return self._outside.included_files

    @property
    def visible_files(self) -> Mapping[str, bytes]:
        """Those of the included files that are not only read for secrets."""
        visible = self._outside.visible_files
        return {path: content for path, content in self.included_files.items() if path in visible}

    def resolve(
        self,
        model: type[Form],
        subject: str | Address,
        raw: dict[str, Json],
        ensure: Ensure = Ensure.PRESENT,
        scope_at: Callable[[Path], Scope | None] | None = None,
    ) -> dict[str, Value]:
        """Returns the spec `raw`, of the shape of `model`, with every expression resolved. Errors are in `findings`.

        scope_at  the use of a component whose file has the value at a path, which its references are relative to
        """
        self._ensure = ensure
        self._scope_at = scope_at
        self.findings = []
        self.links = []
        self._subject = subject
        return self._object(raw, slots_of(model), ())

    def _object(self, raw: dict[str, Json], slots: Mapping[str, Slot], path: Path) -> dict[str, Value]:
        """Returns `raw` itself if it contains no expression: a copy of thousands of specs would cost memory."""
        changed: dict[str, Value] = {}
        for key, item in raw.items():
            slot = slots.get(key)
            if slot is None or (slot.is_plain and item.__class__ is str and "${" not in item):
                continue
            if (value := self._value(item, slot, (*path, key))) is not item:
                changed[key] = value
        return {**raw, **changed} if changed else raw

    def _value(self, item: Json, slot: Slot, path: Path) -> Value:
        if isinstance(item, str):
            if slot.conceals is not None and slot.shape is Shape.ANY:
                return self._document_text(item, slot, path)
            if "${{" in item:
                return self._resolve_or_report(self._text, item, slot, path)
            if slot.refs:
                return self._resolve_or_report(self._literal_id, item, slot, path)
            if slot.sensitive and _is_secret(item, slot):
                return self._literal(item, path)
            self._warn_of_terraform(item, path)
            return item
        if isinstance(item, dict):
            return self._map(item, slot, path)
        if isinstance(item, list):
            if slot.shape is Shape.ANY:
                return self._free(item, slot, path)
            if slot.item is not None and slot.shape is Shape.LIST:
                inner = slot.item
                if is_plain_text(item, inner):
                    return item
                values = [self._value(value, inner, (*path, index)) for index, value in enumerate(item)]
                return item if all(map(is_, values, item)) else values
        return to_plain(item) if slot.shape in _SCALARS else item

    def _id(self, text: str, slot: Slot, path: Path) -> str:
        """Returns a text in a field for ids. Raises Unresolved if it is an address."""
        kind_name = text.partition("/")[0]
        if slot.refs and kind_name.isidentifier() and kinds.find(kind_name) is not None:
            raise Unresolved(
                f"expected an id, found the address {text}", f"write {{ref: {text}}}", code="invalid-reference"
            )
        return text

    def _literal_id(self, text: str, slot: Slot, path: Path) -> str:
        """Returns an id that is written in the manifest. Raises Unresolved if no id of the field looks like that."""
        if (remedy := terraform.find_bare(text) or terraform.find_inserted(text)) is not None:
            raise Unresolved(f"{cut(text)} is an expression of Terraform", remedy, code="terraform-expression")
        expected = f"ids of this field begin with {literal_ids.describe_prefixes(slot.refs)}"
        if other := literal_ids.find_other_kind(text, slot.refs):
            raise Unresolved(f"{cut(text)} is an id of {other}", expected, code="invalid-id")
        if text and "/" not in text and literal_ids.is_unusual(text, slot.refs):
            self.findings.append(
                Finding(path, f"{cut(text)} does not look like an id", expected, Severity.WARNING, code="unusual-id")
            )
        return self._id(text, slot, path)

    def _warn_of_terraform(self, text: str, path: Path) -> None:
        """Warns of a text that would be sent as it is: it may be meant so."""
        if "${" in text and (remedy := terraform.find_inserted(text)) is not None:
            wrong = "an expression of Terraform, which is sent as it is"
            self.findings.append(Finding(path, wrong, remedy, Severity.WARNING, code="terraform-expression"))

    def _literal(self, text: str, path: Path) -> Secret:
        """Wraps a secret that is written in the file, with a warning."""
        if text:
            place = f"{path[-1]}: " if path and isinstance(path[-1], str) else ""  # an item of a list has no key
            remedy = f"write {place}{{from_env: NAME}} or {{from_file: PATH}}"
            text_found = "the secret is written here in plain text"
            self.findings.append(Finding(path, text_found, remedy, Severity.WARNING, code="literal-secret"))
        return Secret(text, self._source_at(path))

    def _map(self, item: dict[str, Json], slot: Slot, path: Path) -> Value:
        if slot.shape is Shape.TEXT and "ref" in item:  # most maps in manifests
            return self._resolve_or_report(self._expression, item, slot, path)
        match slot.shape:
            case Shape.OBJECT:
                return self._object(item, slot.fields, path)
            case Shape.MAP if slot.item is not None:
                inner = slot.item
                secret = {str(found[0]) for found in slot.conceals.find(item)} if slot.conceals is not None else set()
                if not secret and is_plain_text(item.values(), inner):
                    return item
                resolved = {
                    key: self._value(value, SECRET_TEXT if key in secret else inner, (*path, key))
                    for key, value in item.items()
                }
                return item if all(map(is_, resolved.values(), item.values())) else resolved
            case Shape.ANY:
                if len(item) == 1 and next(iter(item)) in phrases.EXPRESSIONS:
                    return self._conceal(self._resolve_or_report(self._expression, item, slot, path), item, slot, path)
                secrets = frozenset(slot.conceals.find(item)) if slot.conceals is not None else frozenset()
                return self._free(item, slot, path, secrets)
            case Shape.LIST | Shape.MAP:
                return item
        if any(key in phrases.EXPRESSIONS for key in item):
            return self._resolve_or_report(self._expression, item, slot, path)
        return item

    def _free(self, item: Json, slot: Slot, path: Path, secrets: frozenset[Path] = frozenset(), at: Path = ()) -> Value:
        """Resolves free-form content: only expressions in text, and the secrets at the paths `secrets`.

        path, at   of the item: in the resource, and in the free-form content
        """
        if at in secrets:
            return self._value(str(item), SECRET_TEXT, path)
        match item:
            case str() if "${{" in item:
                return self._resolve_or_report(self._text, item, slot, path)
            case str():
                self._warn_of_terraform(item, path)
            case dict():
                is_source = len(item) == 1 and next(iter(item)) in phrases.EXPRESSIONS
                if is_source and ((*at, next(iter(item))) in secrets or self._leads_to_secret(item, slot)):
                    return self._resolve_or_report(self._expression, item, SECRET_TEXT, path)
                resolved = {
                    key: self._free(value, slot, (*path, key), secrets, (*at, key)) for key, value in item.items()
                }
                return item if all(map(is_, resolved.values(), item.values())) else resolved
            case list():
                values = [
                    self._free(value, slot, (*path, index), secrets, (*at, index)) for index, value in enumerate(item)
                ]
                return item if all(map(is_, values, item)) else values
        return item

    def _leads_to_secret(self, item: dict[str, Json], slot: Slot) -> bool:
        """Whether the text of `{from_env: NAME}` or `{from_file: PATH}` has credentials, or cannot be read.

        Such a text is a secret also in a setting that is not named like one. Any other map is sent as it is.
        """
        (word, operand), *_ = item.items()
        if slot.conceals is None or word == "ref" or not isinstance(operand, str):
            return False
        try:
            text = self._outside.read(word, operand, is_secret=True)
        except (Unresolved, files.Unreadable):
            return True
        return any(True for _ in slot.conceals.find(text))

    def _document_text(self, text: str, slot: Slot, path: Path) -> Value:
        """Resolves a document that is written as text, which is a secret as a whole if secrets are inside."""
        value = self._resolve_or_report(self._text, text, slot, path) if "${{" in text else text
        return self._conceal(value, text, slot, path)

    def _conceal(self, value: Value, written: Json, slot: Slot, path: Path) -> Value:
        """A resolved document as a secret, with a warning, if it is text with secrets inside."""
        if isinstance(value, Template) and value is not PENDING:
            whole = "".join(part if isinstance(part, str) else "x" for part in value.parts)
            if slot.has_secrets(whole):
                self.findings.append(Finding(path, *_SECRET_BESIDE_REFERENCE, code="secret-in-template"))
                return PENDING
        if not isinstance(value, str) or not slot.has_secrets(value):
            return value
        source = self._source_at(path)
        if isinstance(written, dict):
            (word, operand), *_ = written.items()
            source = f"{word.removeprefix('from_')}:{operand if word == 'from_env' else files.path_inside(operand)}"
        if not source.startswith("env:"):
            self.findings.append(Finding(path, *_SECRET_IN_DOCUMENT, Severity.WARNING, code="literal-secret"))
        return Secret(value, source)

    def _resolve_or_report(self, resolve: Any, item: Json, slot: Slot, path: Path) -> Value:
        if len(self.findings) > validation.MAX_FINDINGS or self._budget.is_spent:
            return PENDING
        try:
            return resolve(item, slot, path)
        except OverBudget as over:
            if over.is_first:
                self.findings.append(Finding(path, str(over), over.remedy, code=over.code))
            return PENDING
        except (Unresolved, files.Unreadable) as wrong:
            text, remedy = str(wrong), wrong.remedy
            values = wrong.values if isinstance(wrong, Unresolved) else {}
            if slot.sensitive and isinstance(item, str):  # the item is not repeated: it may be the secret
                text, remedy, values = "invalid expression ${{ … }}", "write $${{ for a literal ${{", {}
            self.findings.append(Finding(path, text, remedy, code=wrong.code, values=values))
            return PENDING

    def _expression(self, item: dict[str, Json], slot: Slot, path: Path) -> Value:
        if len(item) != 1:
            raise Unresolved(
                "several sources for one value", f"keep one of {phrases.join_words(item)}", code="invalid-expression"
            )
        (word, operand), *_ = item.items()
        if not isinstance(operand, str):
            raise Unresolved(
                f"{word} takes text, found {phrases.describe_found(operand)}", _USAGE[word], code="invalid-expression"
            )
        if word == "ref":
            return self._reference(operand, slot, path)
        if word == "from_env" and operand.startswith(_OWN_KEYS) and not self._is_of_platform(path):
            raise Unresolved(
                f"{cut(operand)} is an environment variable of reconciler itself",
                _RESERVED_VARIABLE,
                code="reserved-environment-variable",
            )
        source = f"{word.removeprefix('from_')}:{operand if word == 'from_env' else files.path_inside(operand)}"
        if not slot.sensitive:
            self._refuse_secret_source(source, path)
        if self._absent is not None and not self._outside.has(word, operand, is_secret=slot.sensitive):
            value = self._absent(source, slot.sensitive)
            if value is not None:
                self._note(source, None, slot, path)
                return value
        text = self._outside.read(word, operand, is_secret=slot.sensitive)
        self._budget.charge(text)
        self._note(source, text, slot, path)
        return self._convert(text, source, slot)

    def _is_of_platform(self, path: Path) -> bool:
        """Whether the path is in `platform` of the project file, which no plan shows."""
        return not isinstance(self._subject, Address) and path[:1] == ("platform",)

    def _note(self, source: str, text: Variable | None, slot: Slot, path: Path, origin: str = "") -> None:
        """Records the source of a secret or visible value, and warns of visible values that are named like secrets."""
        if slot.sensitive or (isinstance(text, str) and slot.has_secrets(text)):
            self.secret_sources |= {source, origin} - {""}
            return
        self._refuse_secret_source(origin, path)
        self._refuse_secret_value(text, source, path)
        if not self._is_shown(slot):
            return
        assert isinstance(self._subject, Address)
        for name in {source, origin} - {""}:
            self.visible_values.append(VisibleValue(self._subject, path, name, text if isinstance(text, str) else None))
        word, _, name = (origin or source).partition(":")
        if word == "env" and SECRET_NAME.search(name):
            warning = f"{cut(name)} is named like a secret, but plans, reports and snapshots show this field"
            self.findings.append(Finding(path, warning, _RENAME_VARIABLE, Severity.WARNING, code="secret-name-shown"))
        elif source.startswith("env:"):
            self.findings.append(Finding(path, *_ENV_IS_SHOWN, Severity.WARNING, code="from-env-shown"))

    def _refuse_secret_source(self, source: str, path: Path) -> None:
        """Raises Unresolved for a variable or file that is known to hold keys, in a field that is not secret."""
        word, _, name = source.partition(":")
        is_secret = (word == "env" and secret_sources.is_secret_variable(name)) or (
            word == "file" and any(map(secret_sources.is_secret_file, (name, self._outside.real_path(name))))
        )
        if is_secret and not self._is_kept(path):
            what = "holds a key or token" if word == "env" else "is a file of keys"
            raise Unresolved(f"{cut(name)} {what}, and this field is not secret", _KEEP_HIDDEN, code="secret-shown")

    def _refuse_secret_value(self, value: Variable | None, source: str, path: Path) -> None:
        """Raises Unresolved for a private key, and in settings for the value of a variable that holds a key."""
        if not isinstance(value, str) or self._is_kept(path):
            return
        name = source.partition(":")[2]
        if secret_sources.holds_private_key(value):
            text = f"{cut(name)} contains a private key, and this field is not secret"
            raise Unresolved(text, _KEEP_HIDDEN, code="secret-shown")
        if not isinstance(self._subject, Address) and secret_sources.contains_secret(value, self._secret_values):
            text = f"{cut(name)} holds the value of a key or token, and this field is not secret"
            raise Unresolved(text, _KEEP_HIDDEN, code="secret-shown")

    def _is_kept(self, path: Path) -> bool:
        """Whether the path is in a setting that nothing shows: the store, or a variable, whose uses are checked."""
        return not isinstance(self._subject, Address) and path[:1] in (("variables",), ("store",))

    def _is_shown(self, slot: Slot) -> bool:
        """Whether plans show the field: text of a resource that is not secret."""
        is_resource = isinstance(self._subject, Address) and kinds.get(self._subject.kind).home is not Home.FILE
        return is_resource and not slot.sensitive and slot.shape in (Shape.TEXT, Shape.ANY)

    def _convert(self, text: Variable, source: str, slot: Slot) -> Value:
        """Converts a value from outside to the type of the field: a Secret, a number or a flag."""
        if isinstance(text, (list, dict)):
            return self._whole(text, source, slot)
        if slot.sensitive:
            return Secret(str(text), source)
        if slot.shape in _SCALARS and isinstance(text, str):
            try:
                return to_plain(scalars.plain(text.strip()))
            except ValueError:
                return text
        if slot.shape in _SCALARS:
            return to_plain(text)
        return text if slot.shape is Shape.ANY else self._id(_as_text(text), slot, ())

    def _whole(self, value: Variable, source: str, slot: Slot) -> Value:
        """Converts a list or map from a variable. Expressions inside are not resolved."""
        if isinstance(value, dict):
            slots = {key: slot.item if slot.shape is Shape.MAP else slot.fields.get(key) for key in value}
            return {key: self._inside(item, source, slots[key]) for key, item in value.items()}
        assert isinstance(value, list)
        return [self._inside(item, source, slot.item if slot.shape is Shape.LIST else None) for item in value]

    def _inside(self, item: Json, source: str, slot: Slot | None) -> Value:
        return item if slot is None or item is None else self._convert(item, source, slot)

    def _text(self, text: str, slot: Slot, path: Path) -> Value:
        """Resolves a text that contains `${{ … }}`."""
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
                raise Unresolved(
                    "'${{' is not closed with '}}'",
                    "add '}}', or write $${{ for a literal ${{",
                    code="invalid-expression",
                )
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
                    warning = f"the secret comes from the variable {variable[1]}, whose value is written in plain text"
                    self.findings.append(Finding(path, warning, remedy, Severity.WARNING, code="literal-secret"))
                self._budget.charge(value)
                if whole:
                    return self._convert(value, self._source_at(path), slot)
                parts.append(_within_text(value, variable[1]))
            elif functions.is_call(inner):
                value = self._call(inner, slot, path)
                if value is PENDING:
                    return PENDING
                if whole:
                    return self._convert(value, self._source_at(path), slot)
                parts.append(_within_text(value, inner))
            elif slot.sensitive and not whole:
                raise Unresolved(*_SECRET_IN_TEMPLATE, code="secret-in-template")
            else:
                parts.append(self._reference(inner, slot if whole else None, path))
        parts.append(text[end:])
        return self._join(parts, slot, path)

    def _call(self, expression: str, slot: Slot, path: Path) -> Any:
        """The value of a function call; PENDING if a variable has no value. Raises Unresolved."""
        if slot.sensitive:
            raise Unresolved(*_SECRET_IN_FUNCTION, code="invalid-expression")
        is_pending = False

        def look_up(name: str) -> Json:
            nonlocal is_pending
            variable = _VARIABLE.fullmatch(name)
            if variable is None:
                raise functions.InvalidCall(f"unknown name {cut(name)}", _ARGUMENT)
            value, origin = self._variable(variable[1]), self._sources.get(variable[1], "")
            self._note(f"var:{variable[1]}", value, slot, path, origin.replace("--var", ""))
            is_pending = is_pending or value is None
            return "" if value is None else value

        try:
            value = functions.evaluate(expression, look_up, self._budget.charge)
        except functions.InvalidCall as wrong:
            raise Unresolved(str(wrong), wrong.remedy, code="invalid-expression") from None
        return PENDING if is_pending else value

    def _join(self, parts: list[str | Ref], slot: Slot, path: Path) -> Value:
        parts = [part for part in parts if part != ""]
        if len(parts) == 1 and isinstance(parts[0], Ref):
            return parts[0]
        if any(isinstance(part, Ref) for part in parts):
            return Template(tuple(parts))
        text = self._id("".join(str(part) for part in parts), slot, path)
        return Secret(text, self._source_at(path)) if slot.sensitive else text

    def _source_at(self, path: Path) -> str:
        return f"manifest:{self._subject}.{phrases.format_path(path)}"

    def _variable(self, name: str) -> Variable | None:
        """The value of a variable; None if it has none, which is reported once, at the variable."""
        if name not in self._variables:
            remedy = did_you_mean(name, self._variables) or "define it under variables: in reconciler.yaml"
            values = with_suggestion("variable", name, self._variables)
            raise Unresolved(f"unknown variable {cut(name)}", remedy, code="unknown-variable", values=values)
        value: Any = self._variables[name]
        return None if value is PENDING else value

    def _reference(self, text: str, slot: Slot | None, path: Path) -> Ref:
        scope = self._scope_at(path) if self._scope_at is not None else None
        ref = self._references.find(text, slot.refs if slot is not None else (), self._ensure, scope)
        self.links.append((ref.target, path))
        return ref


_USAGE: Final = {
    "ref": "write {ref: Kind/name}",
    "from_env": "write {from_env: NAME}",
    "from_file": "write {from_file: path}",
}


_RESERVED_VARIABLE: Final = "use another variable; only platform: in reconciler.yaml may read this one"
_SECRET_IN_DOCUMENT: Final = (
    "the policy contains a secret in plain text",
    "write ${secrets.get('vault', 'name')}, or the policy as YAML in the manifest with {from_env: NAME} for the secret",
)
_SECRET_BESIDE_REFERENCE: Final = (
    "a text that contains a secret cannot contain references",
    "write the policy as YAML in the manifest, instead of as text",
)
_KEEP_HIDDEN: Final = "use it only in secret fields: plans, reports and the platform show all others"
_RENAME_VARIABLE: Final = "use secrets only in secret fields, or rename the variable if its value is not secret"
_ENV_IS_SHOWN: Final = (
    "from_env is for secrets, but plans, reports and snapshots show this field",
    "use a variable for values that are not secret: ${{ var.name }}",
)
_ARGUMENT: Final = "write var.NAME, or a text in quotes; each.… is only available in a manifest with for_each"
_SECRET_IN_FUNCTION: Final = (
    "functions are not available in secret fields",
    "read the whole secret with {from_env: NAME} or {from_file: PATH}",
)
_SECRET_IN_TEMPLATE: Final = (
    "a secret cannot be combined with references",
    "read the whole secret with {from_env: NAME} or {from_file: PATH}",
)


def _within_text(value: Variable, name: str) -> str:
    if isinstance(value, (list, dict)):
        raise Unresolved(
            f"the variable {name} is {phrases.describe_found(value)} and cannot be part of a text",
            f"use it as the whole value: ${{{{ var.{name} }}}}",
            code="invalid-expression",
        )
    return _as_text(value)


def _as_text(value: Variable) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
