"""Expands the uses of components into the manifests that they stand for. Runs before `for_each` of these.

A component is a file whose first document has `inputs`; the others are manifests, or uses of other components. Each
use gives the resources its own name as a prefix, and values for the inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.reader import Document
from reconciler.model.address import NAME
from reconciler.model.kind import Home
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding, Position, Problem
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.model.value import PENDING, Json
from reconciler.project import component_files, files
from reconciler.project.documents import functions, phrases, validation
from reconciler.project.documents.budget import Budget, weigh
from reconciler.project.documents.merge import Layer, Role, SourceLocation, merge, own_layer
from reconciler.project.documents.scope import Scope, name_use
from reconciler.project.manifests.filling import Filling, Names, Wrong, find_kind
from reconciler.project.manifests.for_each import VARIABLE
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import TYPES, Setting, check_type

KEY: Final = "component"
HEAD: Final = "inputs"
MAX_DEPTH: Final = 8  # components inside each other
_USE_KEYS: Final = (KEY, "name", "with", "for_each", "when", "moved")
_INPUT_KEYS: Final = ("type", "default", "description")
_INPUT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PATH: Final = re.compile(r"input\.([A-Za-z_][A-Za-z0-9_-]*)((?:\.[A-Za-z0-9_-]+)*)\s*")
_INSTANCE: Final = re.compile(r"component\.name\s*")
_REFERENCE: Final = re.compile(r"(?<!\$)\$\{\{\s*([A-Z][A-Za-z0-9]*/[^{}\s]+)")
_CODE: Final = "invalid-component"


class Input(Struct, frozen=True):
    """A declared input. `spot` is that of its default, or of its declaration."""

    type: str
    description: str
    has_default: bool
    default: Json
    spot: SourceLocation


class Component(Struct, frozen=True):
    """The content of a component's file."""

    name: str
    file: str
    inputs: Mapping[str, Input]
    documents: tuple[Document, ...]

    @property
    def names(self) -> Iterator[str]:
        """What the component calls its own resources: `Kind/name`."""
        return (
            f"{document.value['kind']}/{document.value['name']}"
            for document in self.documents
            if "kind" in document.value
        )


class Argument(Struct, frozen=True):
    """The value of an input in one use, with the source of a path in it, and those of the texts in it."""

    value: Json
    layer: Layer | None  # of the use; None for a default
    spot: SourceLocation

    def find(self, name: str, below: Path) -> SourceLocation:
        if self.layer is not None:
            return self.layer.spot(("with", name, *below))
        return replace(self.spot, path=(*self.spot.path, *below))

    def feeds(self, name: str, below: Path) -> Sequence[SourceLocation]:
        at = ("with", name, *below)
        fed = self.layer.fed.items() if self.layer is not None else ()
        inner = [spot for path, spots in fed if path[: len(at)] == at for spot in spots]
        return (self.find(name, below), *inner)


class Components:
    """The components of a project. Each file is read once.

    texts      the files that were read, by path
    complete   False if a use could not be expanded
    """

    def __init__(self, config: Config, settings: Mapping[str, Setting], budget: Budget) -> None:
        self._config = config
        self._settings = settings
        self._budget = budget
        self._known: dict[str, Component | None] = {}
        self.texts: dict[str, bytes] = {}
        self.complete = True

    def expand(self, use: Document, problems: list[Problem]) -> list[Document]:
        """The documents of the component, with the inputs of one use; none if the use is wrong. Raises OverBudget."""
        layer = own_layer(use)
        name = f"{use.value.get(KEY)}/{use.value.get('name')}"
        try:
            findings = list(_check_use(use.value, layer.scope))
            component = None if findings or not use.sound else self._find(use, layer.scope, problems)
            if component is None:
                self.complete = False
                return []
            scope = _open_scope(component, use, layer)
            arguments = self._read_arguments(component, use.value.get("with") or {}, layer, findings)
            return [] if findings else list(self._instantiate(component, scope, arguments, layer, problems))
        except Wrong as wrong:
            findings = [wrong.finding]
            return []
        finally:
            self.complete = self.complete and not findings
            found = [validation.to_problem(finding, use.places, name) for finding in findings]
            problems += [name_use(problem, layer.scope) for problem in found]

    def load(self, path: str, problems: list[Problem]) -> Component | None:
        """The component in a file; None if it is wrong, which is reported once. Raises OverBudget."""
        name = component_files.name_of(path)
        if name not in self._known:
            try:
                self._known[name] = self._read(path, problems)
            except Wrong as wrong:
                finding = wrong.finding
                problems.append(Problem(finding.text, finding.remedy, "", Position(path, 1, 1), code=finding.code))
                self._known[name] = None
        return self._known[name]

    def check(self, use: Document, scope: Scope, problems: list[Problem]) -> None:
        """Checks the keys and inputs of a use, without its resources. Raises OverBudget.

        scope  of the component that has it
        """
        layer = own_layer(use)
        try:
            findings = list(_check_use(use.value, scope))
            component = None if findings or not use.sound else self._find(use, scope, problems)
            if component is not None:
                self._read_arguments(component, use.value.get("with") or {}, layer, findings)
        except Wrong as wrong:
            findings = [wrong.finding]
        subject = f"{use.value.get(KEY)}/{use.value.get('name')}"
        problems += [validation.to_problem(finding, use.places, subject) for finding in findings]

    def _find(self, use: Document, scope: Scope | None, problems: list[Problem]) -> Component | None:
        """The component of a use; None if its file is wrong, which is reported once. Raises Wrong."""
        name = use.value[KEY]
        chain = list(scope.chain()) if scope is not None else []
        names = [name, *(around.component for around in chain)]
        if name in names[1:]:
            loop = " → ".join(reversed(names[: names.index(name, 1) + 1]))
            raise Wrong((KEY,), f"the component uses itself: {loop}", "remove this use", "component-loop")
        if len(chain) >= MAX_DEPTH:
            text = f"more than {MAX_DEPTH} components inside each other"
            raise Wrong((KEY,), text, "use fewer levels", "limit-exceeded")
        if name not in self._known:
            path = self._locate(name)
            self._known[name] = self._read(path, problems)
        return self._known[name]

    def _locate(self, name: str) -> str:
        root, folders = self._config.root, self._config.components
        found = component_files.find(root, folders, name)
        if len(found) > 1:
            raise Wrong((KEY,), f"{name} is in {phrases.join_words(found, 'and')}", "rename one of the files", _CODE)
        if found:
            return found[0]
        repository = self._config.repository
        names = [*map(component_files.name_of, component_files.list_all(root, folders, repository))]
        remedy = did_you_mean(name, names) or f"create {folders[0] if folders else 'components'}/{name}.yaml"
        raise Wrong((KEY,), f"there is no component {name}", remedy, "unknown-component")

    def _read(self, path: str, problems: list[Problem]) -> Component | None:
        try:
            text = self.texts[path] = component_files.read(self._config.root, path, self._config.repository)
            self._budget.charge_file(text)
        except files.Unreadable as wrong:
            raise Wrong((KEY,), str(wrong), wrong.remedy, wrong.code) from None
        self._budget.charge_content(text)
        reading = yaml.read(text, path)
        self._budget.charge_copies(reading.copied_values, reading.copied_characters)
        component, found = parse(reading, path)
        problems += found
        return component

    def _read_arguments(
        self, component: Component, written: Json, layer: Layer, findings: list[Finding]
    ) -> dict[str, Argument]:
        """The values of the inputs. Adds to `findings`."""
        arguments: dict[str, Argument] = {}
        values: dict[str, Json] = written if isinstance(written, dict) else {}
        findings += [_report_unknown_input(component, name) for name in values if name not in component.inputs]
        for name, declared in component.inputs.items():
            value = values.get(name)
            if value is not None:
                spot = layer.spot(("with", name))
                if (mismatch := self._check(value, declared.type)) is not None:
                    findings.append(Finding(("with", name), *mismatch, code="wrong-type"))
                arguments[name] = Argument(value, layer, spot)
            elif declared.has_default:
                arguments[name] = Argument(declared.default, None, declared.spot)
            else:
                text = f"the input {name} of {component.file} has no value"
                remedy = f"write with: {{{name}: …}}" + (f" ({declared.description})" if declared.description else "")
                findings.append(Finding(("with",), text, remedy, code="missing-input", values={"input": name}))
        return arguments

    def _check(self, value: Json, kind: str) -> tuple[str, str] | None:
        """Text and remedy for a value of the wrong type. What is known later, as a reference, is not checked."""
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in phrases.EXPRESSIONS:
            return check_type(value, kind) if kind == "list" else None
        if isinstance(value, str) and "${{" in value.replace("$${{", ""):
            variable = VARIABLE.fullmatch(value.strip())
            setting = self._settings.get(variable[1]) if variable is not None else None
            known: Json = setting.value if setting is not None else None
            return None if known is None or known is PENDING else check_type(known, kind)
        return check_type(value, kind)

    def _instantiate(
        self, component: Component, scope: Scope, arguments: Mapping[str, Argument], use: Layer, problems: list[Problem]
    ) -> Iterator[Document]:
        names = _Inputs(component, arguments, scope, use)
        for document in component.documents:
            self._budget.charge_instance()
            filling = Filling(names, self._budget, find_kind(document))
            value = filling.fill(document.value, ())
            if isinstance(local := value.get("name"), str):
                value["name"] = scope.qualify(local)
                self._budget.charge_text(scope.name)
                self._add_former_names(document.value, local, value, scope, filling, use)
                self._qualify_entries(document.value, value, scope)
            layer = Layer(Role.MANIFEST, value, document.places, (), filling.grafts, filling.fed, scope=scope)
            made = merge([layer], layer, sound=document.sound and not filling.findings)
            self.complete = self.complete and not filling.findings
            subject = f"{value.get('kind', value.get(KEY))}/{value.get('name')}"
            found = [validation.to_problem(finding, document.places, subject) for finding in filling.findings]
            problems += [name_use(problem, scope) for problem in found]
            if not filling.findings:
                yield made

    def _add_former_names(
        self,
        written: Mapping[str, Json],
        local: str,
        value: dict[str, Any],
        scope: Scope,
        filling: Filling,
        use: Layer,
    ) -> None:
        """Qualifies the names in `moved`, and adds those that the resource had below former names of the instance."""
        kind = value.get("kind")
        is_use = KEY in value
        known = kinds.find(kind) if isinstance(kind, str) and kind.isidentifier() else None
        if not is_use and (known is None or known.home is Home.FILE):
            return
        prefix = "" if is_use else f"{kind}/"
        if isinstance(by_key := value.get("moved"), dict):
            if scope.former:
                text = "moves items while the instance has a former name"
                filling.findings.append(Finding(("moved",), text, "apply one of the two first", code=_CODE))
            value["moved"] = {key: _qualify_former(names, prefix, scope) for key, names in by_key.items()}
            return
        if any(not isinstance(text, str) for _, text in _list_former_names(value.get("moved"))):
            return  # reported with the envelope
        formers = list(_former_names(written.get("moved"), value.get("moved"), prefix))
        own = [former for former in formers if former.is_local]
        if not own and not scope.former:
            return
        instances, names = (scope.name, *scope.former), (local, *(former.text for former in own))
        size = len(names) * sum(map(weigh, instances))
        size += len(instances) * sum(weigh(f"{prefix}-{name}") for name in names)
        self._budget.charge_addresses(len(instances) * len(names), size)
        moved = [former.text for former in formers if not former.is_local]
        moved += [f"{prefix}{instance}-{name}" for instance in instances for name in names]
        moved = [text for text in dict.fromkeys(moved) if text != f"{prefix}{value['name']}"]
        if moved:
            if "moved" not in value:
                filling.grafts[("moved",)] = use.spot(("moved",))
            value["moved"] = moved

    def _qualify_entries(self, written: Mapping[str, Json], value: dict[str, Any], scope: Scope) -> None:
        """Qualifies the names in `moved` of inline children that the component itself declares."""
        kind = value.get("kind")
        for key, child in kinds.inline_children(kind).items() if isinstance(kind, str) and kind.isidentifier() else ():
            entries, put = written.get(key), value.get(key)
            filled = put if isinstance(put, dict) else {}
            for name, entry in entries.items() if isinstance(entries, dict) else ():
                found = filled.get(name)
                if not isinstance(entry, dict) or not isinstance(found, dict) or not found.get("moved"):
                    continue
                if any(not isinstance(text, str) for _, text in _list_former_names(found["moved"])):
                    continue  # reported with the envelope
                prefix, instances = f"{child.name}/", (scope.name, *scope.former)
                formers = list(_former_names(entry.get("moved"), found["moved"], prefix))
                own = [former.text for former in formers if former.is_local]
                self._budget.charge_addresses(len(instances) * len(own), sum(map(weigh, own)) * len(instances))
                moved = [former.text for former in formers if not former.is_local]
                found["moved"] = moved + [f"{prefix}{instance}-{text}" for instance in instances for text in own]


def _qualify_former(names: Json, prefix: str, scope: Scope) -> Json:
    """Former addresses of one item with the name of the instance; whatever else stands there is left as it is."""
    if isinstance(names, list):
        return [_qualify_former(name, prefix, scope) for name in names]
    if not isinstance(names, str) or not names.startswith(prefix):
        return names
    return f"{prefix}{scope.qualify(names.removeprefix(prefix))}"


class _Former(Struct, frozen=True):
    text: str
    is_local: bool  # a name within the component


def _former_names(written: Json, filled: Json, prefix: str) -> Iterator[_Former]:
    """The former names in `moved`: one that contains the instance's name stands as it is."""
    before = written if isinstance(written, list) else [written]
    after = filled if isinstance(filled, list) else [filled]
    for text, name in zip(before, after, strict=False):
        if not isinstance(text, str) or not isinstance(name, str):
            continue
        is_whole = "component.name" in text or not name.startswith(prefix)
        yield _Former(name if is_whole else name.removeprefix(prefix), not is_whole)


class _Inputs(Names):
    """`input.NAME` and `component.name` of one use."""

    roots = ("input", KEY)
    code = "invalid-expression"
    usage = "write input.NAME, component.name, each.key, each.value.NAME or var.NAME"
    part = "name a value inside it, as in ${{ input.NAME.key }}"
    drops_null = True

    def __init__(self, component: Component, arguments: Mapping[str, Argument], scope: Scope, use: Layer) -> None:
        self._component = component
        self._arguments = arguments
        self._scope = scope
        self._use = use

    def evaluate(self, expression: str, path: Path) -> tuple[Json, SourceLocation | None, Sequence[SourceLocation]]:
        if _INSTANCE.fullmatch(expression):
            spot = self._use.spot(("name",))
            return self._scope.name, spot, (spot,)
        match = _PATH.fullmatch(expression)
        if match is None:
            text = f"unknown expression {expression.rstrip()}"
            raise Wrong(path, text, "use input.NAME or component.name", self.code)
        name = match[1]
        if name not in self._arguments:
            remedy = did_you_mean(name, self._component.inputs) or f"declare it under inputs: in {self._component.file}"
            raise Wrong(path, f"unknown input {name}", remedy, "unknown-input")
        argument, below = self._arguments[name], tuple(filter(None, match[2].split(".")))
        value = argument.value
        for key in below:
            if not isinstance(value, dict) or key not in value:
                suggestion = did_you_mean(key, value) if isinstance(value, dict) else ""
                raise Wrong(
                    path, f"{expression.rstrip()} does not exist", suggestion or "add it to the value", self.code
                )
            value = value[key]
        return value, argument.find(name, below), argument.feeds(name, below)

    def check_part(self, text: str, path: Path) -> None:
        """References in a longer text are those of the component, and one from its use would be another resource."""
        for match in _REFERENCE.finditer(text):
            if any(f"{match[1]}.".startswith(f"{own}.") for own in self._component.names):
                wrong = f"{match[1]} is a resource of the component too, within this text"
                raise Wrong(path, wrong, "pass the whole text as the input", self.code)

    def to_argument(self, value: Json) -> Json | functions.Unevaluated:
        return functions.to_argument(value) if isinstance(value, str) else value


def read_components(config: Config) -> Iterator[Component]:
    """Yields the valid components in the folders of a project, whether they are used or not."""
    for path in component_files.list_all(config.root, config.components, config.repository):
        try:
            text = component_files.read(config.root, path, config.repository)
        except files.Unreadable:
            continue
        component, _ = parse(yaml.read(text, path), path)
        if component is not None:
            yield component


def parse(reading: yaml.Reading, path: str) -> tuple[Component | None, list[Problem]]:
    """The component in a file, and the problems of the file."""
    problems = list(reading.problems)
    documents = [document for document in reading.documents if document.value is not None]
    if not documents or not component_files.is_head(documents[0].value):
        text = "is no component: its first document does not declare inputs"
        where = documents[0].places.start if documents else Position(path, 1, 1)
        remedy = "begin with inputs: {NAME: {type: string}}, or inputs: {}"
        problems.append(Problem(text, remedy, "", where, code=_CODE))
        return None, problems
    head, *others = documents
    inputs: dict[str, Input] = {}
    findings = list(_read_inputs(head, inputs))
    problems += [validation.to_problem(finding, head.places) for finding in findings]
    for document in others:
        problems += [validation.to_problem(finding, document.places) for finding in _check_document(document)]
    if not reading.complete or any(problem.is_error for problem in problems):
        return None, problems
    return Component(component_files.name_of(path), path, inputs, tuple(others)), problems


def _read_inputs(head: Document, inputs: dict[str, Input]) -> Iterator[Finding]:
    for key in head.value:
        if key != HEAD:
            yield validation.report_unknown_field((key,), (HEAD,), "write manifests below, each after a line with ---")
    declared = head.value[HEAD]
    if not isinstance(declared, dict):
        text = f"expected a map, found {phrases.describe_found(declared)}"
        yield Finding((HEAD,), text, "write inputs: {NAME: {type: string}}, or inputs: {}", code="wrong-type")
        return
    for name, item in declared.items():
        path = (HEAD, name)
        if not _INPUT.fullmatch(name):
            rule = "use letters, digits, '_' and '-', beginning with a letter"
            yield Finding(path, f"{name!r} is not a valid name of an input", rule, code="invalid-name")
            continue
        if not isinstance(item, dict):
            text = f"expected a map, found {phrases.describe_found(item)}"
            yield Finding(path, text, "write {type: string}", code="wrong-type")
            continue
        yield from _read_input(head, name, item, inputs)


def _read_input(head: Document, name: str, item: dict[str, Any], inputs: dict[str, Input]) -> Iterator[Finding]:
    path = (HEAD, name)
    for key in item:
        if key not in _INPUT_KEYS:
            yield validation.report_unknown_field((*path, key), _INPUT_KEYS)
    kind, default, description = item.get("type"), item.get("default"), item.get("description", "")
    if not isinstance(kind, str) or kind not in TYPES:
        where = (*path, "type") if "type" in item else path
        remedy = did_you_mean(str(kind), TYPES) or f"use {phrases.join_words(TYPES)}"
        text = "unknown type" if "type" in item else "the input has no type"
        yield Finding(where, text, remedy, code="unknown-choice" if "type" in item else "missing-field")
        return
    is_expression = isinstance(default, str) and "${{" in default
    if default is not None and not is_expression and (mismatch := check_type(default, kind)) is not None:
        yield Finding((*path, "default"), *mismatch, code="wrong-type")
    spot = SourceLocation(head.places, (*path, "default") if "default" in item else path)
    inputs[name] = Input(kind, description if isinstance(description, str) else "", "default" in item, default, spot)


def _check_document(document: Document) -> Iterator[Finding]:
    """Findings about what a document of a component is: a resource, or a use of another component."""
    value = document.value
    if not isinstance(value, dict):
        text = f"expected a map, found {phrases.describe_found(value)}"
        yield Finding((), text, "write kind, name and spec", code="wrong-type")
    elif HEAD in value:
        yield Finding((HEAD,), "only the first document declares inputs", "write all inputs there", code=_CODE)
    elif "kind" not in value and KEY not in value:
        remedy = "write kind, name and spec: a component has only resources, no settings, policies or approvals"
        yield Finding((), "declares no resource", remedy, code=_CODE)
    elif not isinstance(value.get("name"), str):
        found = phrases.describe_found(value.get("name"))
        path: Path = ("name",) if "name" in value else ()
        text = f"expected text, found {found}" if "name" in value else "missing required field name"
        remedy = "write a name, which the name of the instance precedes: shop-NAME"
        yield Finding(path, text, remedy, code="wrong-type" if path else "missing-field")


def _check_use(value: Mapping[str, Json], scope: Scope | None) -> Iterator[Finding]:
    for key in value:
        if key not in _USE_KEYS:
            remedy = "write it under with" if key not in ("kind", "spec") else "write either component or kind"
            yield validation.report_unknown_field((key,), _USE_KEYS, did_you_mean(key, _USE_KEYS) or remedy)
    name, component, arguments = value.get("name"), value.get(KEY), value.get("with")
    if not isinstance(component, str) or not component_files.NAME.fullmatch(component):
        text = "is not the name of a component"
        yield Finding((KEY,), text, "write the name of its file, without .yaml", code="invalid-name")
    if name is None:
        yield validation.report_missing_field(("name",), "write a name, which precedes those of its resources")
    elif not isinstance(name, str) or not NAME.fullmatch(name):
        rule = "use up to 100 letters, digits, '.', '_' and '-', beginning with a letter or digit"
        yield Finding(("name",), "is not a valid name", rule, code="invalid-name")
    if arguments is not None and not isinstance(arguments, dict):
        text = f"expected a map, found {phrases.describe_found(arguments)}"
        yield Finding(("with",), text, "write with: {input: value}", code="wrong-type")
    for path, text in _list_former_names(value.get("moved")):
        if not isinstance(text, str) or not NAME.fullmatch(text):
            yield Finding(path, "is not a former name of the instance", "write moved: OLDNAME", code="invalid-name")


def _list_former_names(moved: Json) -> Iterator[tuple[Path, Json]]:
    if isinstance(moved, list):
        yield from ((("moved", index), text) for index, text in enumerate(moved))
    elif moved is not None:
        yield ("moved",), moved


def _open_scope(component: Component, use: Document, layer: Layer) -> Scope:
    name = use.value["name"]
    former = tuple(str(text) for _, text in _list_former_names(use.value.get("moved")) if text != name)
    return Scope(name, component.name, component.file, use.places.start, former, layer.scope)


def _report_unknown_input(component: Component, name: str) -> Finding:
    values = with_suggestion("input", name, component.inputs)
    known = phrases.join_words(component.inputs) if component.inputs else ""
    remedy = did_you_mean(name, component.inputs) or (f"use {known}" if known else "remove it")
    text = f"unknown input of {component.file}"
    return Finding(("with", name), text, remedy, code="unknown-input", values=values, is_key=True)
