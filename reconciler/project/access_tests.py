"""Reads the access tests of a project: `tests/access.yaml`, and the YAML files below `tests/access/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from reconciler.access.destinations import BINDINGS, read_destination
from reconciler.access.people import check_provider
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.positions import Places
from reconciler.languages.yaml.reader import Document
from reconciler.model.access_test import ATTRIBUTES, METHODS, MOST_VALUES, AccessTest, Caller, Expected
from reconciler.model.manifest import Path as ValuePath
from reconciler.model.problem import Finding, Position, Problem, Rejected, Severity, cut
from reconciler.model.suggestions import did_you_mean
from reconciler.project import files
from reconciler.project.documents import phrases, validation
from reconciler.project.settings.environments import describe_known, environment_names
from reconciler.project.settings.one_document import MAX_BYTES

FILE: Final = "tests/access.yaml"
PLACES: Final = (FILE, "tests/access.yml", "tests/access")
MAX_TESTS: Final = 2_000  # of a project; a test with several URLs counts for each
_KEYS: Final = ("from", "to", "with", "binding", "expect", "severity", "env")
_NEEDED: Final = ("from", "to", "expect")
_WITH: Final = ("method", "client_certificate", "signed_in", *ATTRIBUTES, "token")
_EXAMPLE: Final = "write a list, as in `- {from: 203.0.113.9, to: https://shop.example.com/admin, expect: deny}`"


def load_tests(root: Path, environment: str | None = None) -> tuple[AccessTest, ...]:
    """The tests of an environment, or of the project without one. Raises Rejected with all problems."""
    problems: list[Problem] = []
    tests: list[AccessTest] = []
    names = environment_names(root)
    for path, text in _read_texts(root, problems):
        reader = _Reader(environment, names, len(tests))
        reading = yaml.read(text, path)
        problems += reading.problems
        if not reading.problems:
            problems += reader.read(reading.documents, path)
            tests += reader.tests
    if problems:
        raise Rejected(sorted(problems, key=lambda problem: (problem.position or Position("", 0, 0), problem.text)))
    return tuple(tests)


def _exists(root: Path, path: str) -> bool:
    try:
        return (root / path).exists() or (root / path).is_symlink()
    except OSError:
        return False


def _read_texts(root: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    for place in PLACES:
        if not _exists(root, place):
            continue
        try:
            for path in files.find_manifests(root, place):
                yield path, files.read(root, path, MAX_BYTES)
        except files.Unreadable as wrong:
            problems.append(Problem(str(wrong), wrong.remedy, position=Position(place, 1, 1), code=wrong.code))


class _Reader(Struct):
    """Reads one file. `before`: the number of tests of the files before it."""

    environment: str | None
    environments: Sequence[str]
    before: int
    tests: list[AccessTest] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def read(self, documents: list[Document], path: str) -> Iterator[Problem]:
        """Adds the tests of a file to `tests`, and yields its problems."""
        if len(documents) > 1:
            where = documents[1].places.start
            text = f"expected one document, found {len(documents)}"
            yield Problem(text, "remove the '---' and write one list", position=where, code="several-documents")
            return
        for document in documents:
            self._read_list(document.value, document.places)
            yield from (validation.to_problem(finding, document.places) for finding in self.findings)

    def _read_list(self, value: Any, places: Places) -> None:
        if value is None:
            return
        if not isinstance(value, list):
            self._report((), f"expected a list of tests, found {phrases.describe_found(value)}", _EXAMPLE, "wrong-type")
            return
        for index, (entry, position) in enumerate(zip(value, places.items_of(()), strict=True)):
            self._read_entry(entry, (index,), position)
            if self.before + len(self.tests) > MAX_TESTS:
                self._report((index,), f"more than {MAX_TESTS:,} access tests", "use fewer", "limit-exceeded")
                return

    def _read_entry(self, entry: Any, path: ValuePath, position: Position) -> None:
        count = len(self.findings)
        if not isinstance(entry, dict):
            text = f"expected a test, found {phrases.describe_found(entry)}"
            self._report(path, text, _EXAMPLE, "wrong-type")
            return
        self._check_keys(entry, path, _KEYS)
        self.findings += [
            validation.report_missing_field((*path, key), _EXAMPLE) for key in _NEEDED if key not in entry
        ]
        sources = self._read_texts(entry, (*path, "from"), _check_source)
        binding = self._read_choice(entry, (*path, "binding"), BINDINGS, "public")
        targets = self._read_texts(entry, (*path, "to"), lambda text: _check_target(text, binding))
        expect = self._read_choice(entry, (*path, "expect"), tuple(map(str, Expected)), "allow")
        severity = self._read_choice(entry, (*path, "severity"), ("error", "warning"), "error")
        environment = self._read_environment(entry, (*path, "env"))
        caller = self._read_caller(entry.get("with"), (*path, "with"))
        if len(self.findings) > count or environment not in ("", self.environment or ""):
            return
        for target in targets:
            self.tests.append(
                AccessTest(sources, target, Expected(expect), position, binding, caller, Severity(severity))
            )

    def _read_environment(self, entry: Mapping[str, Any], path: ValuePath) -> str:
        name = self._read_text(entry, path)
        if name and name not in self.environments:
            remedy = did_you_mean(name, self.environments) or describe_known(self.environments) or "remove env"
            self._report(path, f"unknown environment {cut(name)}", remedy, "unknown-environment")
        return name

    def _read_caller(self, written: Any, path: ValuePath) -> Caller:
        if written is None:
            return Caller()
        if not isinstance(written, dict):
            text = f"expected a map, found {phrases.describe_found(written)}"
            self._report(path, text, "write it as in {signed_in: google}", "wrong-type")
            return Caller()
        self._check_keys(written, path, _WITH)
        found = [name for name in ATTRIBUTES if name in written]
        provider = self._read_provider(written, (*path, "signed_in"))
        value = self._read_text(written, (*path, found[0])) if found else ""
        if len(found) > 1:
            self._report(
                (*path, found[1]), f"not allowed beside {found[0]}", "write one test for each", "invalid-value"
            )
        if found and "signed_in" not in written:
            self._report((*path, found[0]), "needs signed_in beside it", "add signed_in: google", "missing-field")
        token = written.get("token", False)
        if not isinstance(token, bool):
            text = f"expected true or false, found {phrases.describe_found(token)}"
            self._report((*path, "token"), text, "write true or false", "wrong-type")
        return Caller(
            self._read_choice(written, (*path, "method"), METHODS, "GET"),
            self._read_text(written, (*path, "client_certificate")),
            provider,
            found[0] if found else "",
            value,
            token is True,
        )

    def _read_provider(self, written: Mapping[str, Any], path: ValuePath) -> str:
        name = self._read_text(written, path)
        try:
            if name:
                check_provider(name)
        except ValueError as wrong:
            problem, _, remedy = str(wrong).partition("; ")
            self._report(path, f"{cut(name)} {problem}", remedy, "unknown-choice")
        return name

    def _check_keys(self, written: Mapping[str, Any], path: ValuePath, known: tuple[str, ...]) -> None:
        unknown = (key for key in written if key not in known)
        self.findings += [validation.report_unknown_field((*path, key), known) for key in unknown]

    def _read_texts(self, written: Mapping[str, Any], path: ValuePath, check: Callable[[str], None]) -> tuple[str, ...]:
        """One text or a list of texts, each checked: the check raises ValueError with `problem; remedy`."""
        key = path[-1]
        if key not in written:
            return ()
        value = written[str(key)]
        items = value if isinstance(value, list) else [value]
        if not items or len(items) > MOST_VALUES:
            self._report(path, f"expected 1 to {MOST_VALUES} values", "write several tests", "value-out-of-range")
            return ()
        for index, item in enumerate(items):
            where = (*path, index) if isinstance(value, list) else path
            if not isinstance(item, str):
                text = f"expected text, found {phrases.describe_found(item)}"
                self._report(where, text, "write text, in quotes if need be", "wrong-type")
                continue
            try:
                check(item)
            except ValueError as wrong:
                problem, _, remedy = str(wrong).partition("; ")
                self._report(where, f"{cut(item)} {problem}", remedy, "invalid-value")
        return tuple(item for item in items if isinstance(item, str))

    def _read_text(self, written: Mapping[str, Any], path: ValuePath) -> str:
        key = str(path[-1])
        if key not in written:
            return ""
        value = written[key]
        if isinstance(value, str) and value and value.isprintable() and len(value) <= 1_000:
            return value
        text = f"expected a name, found {'another text' if isinstance(value, str) else phrases.describe_found(value)}"
        self._report(path, text, "write a name, or remove the key", "wrong-type")
        return ""

    def _read_choice(self, written: Mapping[str, Any], path: ValuePath, choices: tuple[str, ...], default: str) -> str:
        key = str(path[-1])
        if key not in written:
            return default
        value = written[key]
        if isinstance(value, str) and value in choices:
            return value
        if not isinstance(value, str):
            text = f"expected text, found {phrases.describe_found(value)}"
            self._report(path, text, f"use one of {', '.join(choices)}", "wrong-type")
            return default
        remedy = did_you_mean(value, choices) or f"use one of {', '.join(choices)}"
        self._report(path, f"unknown choice {cut(value)}", remedy, "unknown-choice")
        return default

    def _report(self, path: ValuePath, text: str, remedy: str, code: str) -> None:
        self.findings.append(Finding(path, text, remedy, code=code))


def _check_source(text: str) -> None:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        network = None
    if network is None or "%" in text:
        raise ValueError("is no address or network; write it as 203.0.113.9 or 203.0.113.0/24")
    try:
        ip_network(text)
    except ValueError:
        raise ValueError(f"has bits after its prefix; write {network}") from None


def _check_target(text: str, binding: str) -> None:
    region = read_destination(text, binding)
    if binding != "public" and region.door.binding == "account":
        raise ValueError("has no binding; remove binding")
