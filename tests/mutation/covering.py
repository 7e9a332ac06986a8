"""Chooses the tests for a mutant: which tests run its line, the most telling first."""

from __future__ import annotations

import ast
import json
import sqlite3
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path

from cosmic_ray.work_item import MutationSpec
from coverage.numbits import numbits_to_nums

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
TOPICS = Path(__file__).parents[1] / "topics.toml"
IMPORTING = 60  # tests that import the module of a mutant: each may be in another file, which takes time to load


@dataclass(frozen=True)
class Recorded:
    """One test of the record."""

    name: str  # as pytest names it
    cpu: float  # seconds, with the tracing


class Record:
    """Which test runs which line: what `tests.mutation.recorder` wrote to a folder."""

    def __init__(self, folder: Path) -> None:
        self.tests: dict[str, Recorded] = {}
        for file in folder.glob("tests-*.jsonl"):
            for line in file.read_text().splitlines():
                entry = json.loads(line)
                if entry["passed"]:
                    self.tests[entry["test"]] = Recorded(entry["test"], entry["cpu"])
        self.imported: dict[str, set[int]] = defaultdict(set)
        """By file: the lines that are run outside the tests, as a rule when the module is imported."""
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._breadth: dict[str, int] = defaultdict(int)
        for file in folder.glob("lines.*"):
            self._load(file)

    def _load(self, file: Path) -> None:
        # The public methods of coverage read one file and one line at a time. The tables are documented.
        with closing(sqlite3.connect(file)) as database:
            rows = database.execute(
                "select file.path, context.context, numbits from line_bits join file on file.id = file_id"
                " join context on context.id = context_id"
            )
            for path, test, numbits in rows:
                lines = numbits_to_nums(numbits)
                if not test:
                    self.imported[path].update(lines)
                    continue
                self._breadth[test] += len(lines)
                if test in self.tests:
                    for line in lines:
                        self._lines[path][line].add(test)

    def find_tests(self, path: str, lines: Iterable[int]) -> set[str]:
        known = self._lines.get(path, {})
        return set().union(*(known.get(line, ()) for line in lines))

    def order(self, tests: Iterable[str], path: str) -> list[str]:
        """In turns: three quick tests, three that run little besides this file, and one that runs much of this file, as
        the properties do, which are slow. The cases of one test function are spread."""
        within: dict[str, int] = defaultdict(int)
        for known in self._lines.get(path, {}).values():
            for test in known:
                within[test] += 1
        tests = list(tests)
        quick = self._spread(sorted(tests, key=lambda test: (self.tests[test].cpu, test)))
        specific = self._spread(sorted(tests, key=lambda test: (-self._share(test, within[test]), test)))
        thorough = self._spread(sorted(tests, key=lambda test: (-within[test], self.tests[test].cpu, test)))
        ways = [(quick, 3), (specific, 3), (thorough, 1)]
        turns = zip_longest(*(way[start::step] for way, step in ways for start in range(step)))
        return list(dict.fromkeys(test for turn in turns for test in turn if test is not None))

    def _share(self, test: str, lines: int) -> float:
        """The part of a test's lines that is in the file; less for a slow test."""
        return lines / max(1, self._breadth[test]) / (0.1 + self.tests[test].cpu)

    def order_by_file(self, files: Iterable[str]) -> list[str]:
        """The quickest test of each file, then the second of each, and so on."""
        tests: dict[str, list[str]] = {file: [] for file in files}
        for test in sorted(self.tests, key=lambda test: (self.tests[test].cpu, test)):
            if (file := test.partition("::")[0]) in tests:
                tests[file].append(test)
        turns = zip_longest(*map(self._spread, tests.values()))
        return [test for turn in turns for test in turn if test is not None]

    @staticmethod
    def _spread(tests: list[str]) -> list[str]:
        """The first case of each test function, then the second of each, and so on."""
        numbers: dict[str, int] = defaultdict(int)
        ranks = []
        for test in tests:
            function = test.partition("[")[0]
            ranks.append(numbers[function])
            numbers[function] += 1
        return [test for _, test in sorted(zip(ranks, tests, strict=True), key=lambda pair: pair[0])]


class Source:
    """The package's source: the lines that a mutant changes, and the lines that use what it defines."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._trees: dict[str, ast.Module] = {}

    def _tree(self, path: str) -> ast.Module:
        if path not in self._trees:
            self._trees[path] = ast.parse((self._root / path).read_text())
        return self._trees[path]

    def find_lines(self, mutant: MutationSpec) -> tuple[str, set[int]]:
        """The file and the lines of the statement; of a definition, those of its body."""
        path = mutant.module_path.as_posix()
        statement = _find_chain(self._tree(path), mutant.start_pos)[-1]
        if not isinstance(statement, DEFINITIONS):
            return path, _head(statement, mutant.start_pos[0])
        return path, {line for inner in statement.body for line in range(_start(inner), (inner.end_lineno or 0) + 1)}

    def is_outside_functions(self, mutant: MutationSpec) -> bool:
        """Whether the mutant is run when the module is imported, as the head of a function is."""
        chain = _find_chain(self._tree(mutant.module_path.as_posix()), mutant.start_pos)
        return not any(isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) for statement in chain[:-1])

    def is_function(self, mutant: MutationSpec) -> bool:
        """Whether the innermost statement is a function, of which the mutant changes the head."""
        chain = _find_chain(self._tree(mutant.module_path.as_posix()), mutant.start_pos)
        return isinstance(chain[-1], ast.FunctionDef | ast.AsyncFunctionDef)

    def find_importing(self, path: str) -> Iterator[list[str]]:
        """The files of tests that import a module: first those that import the whole program, and those in the folder
        of the module's package; then the others; then those that import another module which imports this one."""
        module, folder = _name(path), path.split("/")[1]
        importers = {_name(file) for file, names in self._imports.items() if module in names}
        tests = {file: names for file, names in self._imports.items() if file.startswith("tests/")}
        whole = [file for file, names in tests.items() if f"{module.partition('.')[0]}.*" in names]
        direct = [file for file, names in tests.items() if module in names and file not in whole]
        near = [file for file in direct if file.startswith(f"tests/{folder}/")]
        yield [*whole, *near]
        yield [file for file in direct if file not in near]
        yield [file for file, names in tests.items() if names & importers and file not in {*whole, *direct}]

    @cached_property
    def _imports(self) -> dict[str, set[str]]:
        """By file: what it imports, modules of the program at their top level. `import a` is also `a.*`."""
        found: dict[str, set[str]] = {}
        for folder, pattern in (("reconciler", "*.py"), ("tests", "test_*.py")):
            for file in sorted((self._root / folder).rglob(pattern)):
                path = file.relative_to(self._root).as_posix()
                tree = self._tree(path)
                names = found[path] = set()
                for node in ast.walk(tree) if folder == "tests" else tree.body:
                    if isinstance(node, ast.Import):
                        names |= {name for alias in node.names for name in (alias.name, f"{alias.name}.*")}
                    elif isinstance(node, ast.ImportFrom) and node.module:
                        names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return found

    def find_uses(self, mutant: MutationSpec) -> Iterator[list[tuple[str, set[int]]]]:
        """The lines that use a name which the statement defines, or the definition around it; then those that use the
        names which such lines define."""
        names = _find_defined(_find_chain(self._tree(mutant.module_path.as_posix()), mutant.start_pos))
        known = set[str]()
        for _ in range(3):
            known |= names
            uses = [
                (file, known_uses[name]) for file, known_uses in self._uses.items() for name in names & set(known_uses)
            ]
            yield [(file, {line for line, _ in places}) for file, places in uses]
            names = {defined for _, places in uses for _, defined in places if defined} - known

    @cached_property
    def _uses(self) -> dict[str, dict[str, set[tuple[int, str]]]]:
        """By file and name: the lines that use it, and the name that such a line defines at the module's level."""
        uses: dict[str, dict[str, set[tuple[int, str]]]] = {}
        for file in sorted((self._root / "reconciler").rglob("*.py")):
            path = file.relative_to(self._root).as_posix()
            found = uses[path] = defaultdict(set)
            for statement in self._tree(path).body:
                defined = next(iter(_find_defined([statement])), "") if not isinstance(statement, DEFINITIONS) else ""
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name):
                        found[node.id].add((node.lineno, defined))
                    elif isinstance(node, ast.Attribute):
                        found[node.attr].add((node.lineno, defined))
        return uses


def _name(path: str) -> str:
    """The name of a module."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _find_chain(tree: ast.Module, place: tuple[int, int]) -> list[ast.stmt]:
    """The statements around a place, from the outside."""
    chain: list[ast.stmt] = []
    node: ast.AST = tree
    while True:
        inner = [child for child in _statements(node) if _start(child) <= place[0] <= (child.end_lineno or 0)]
        exact = [child for child in inner if _start(child) < place[0] or child.col_offset <= place[1]]
        if not inner:
            return chain
        node = (exact or inner)[-1]
        chain.append(node)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _statements(child)


def _start(statement: ast.stmt) -> int:
    return min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", ()))])


def _head(statement: ast.stmt, line: int) -> set[int]:
    """The lines of a statement. Of one that contains others: those before the first of them, or only the mutated."""
    inner = sorted(child.lineno for child in _statements(statement))
    if isinstance(statement, DEFINITIONS):
        return set()
    if not inner:
        return set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    before = max((other for other in inner if other < line), default=statement.lineno)
    after = min((other for other in inner if other > line), default=line + 1)
    # An `except` or `case` between two inner statements: only its own lines.
    return {line} if before > statement.lineno else set(range(statement.lineno, after))


def _find_defined(chain: list[ast.stmt]) -> set[str]:
    """The names that the innermost statement defines, or the definition around it."""
    names: set[str] = set()
    for statement in reversed(chain):
        if isinstance(statement, DEFINITIONS):
            return names | {statement.name}
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        for target in targets:
            names |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)} if target else set()
    return names


def choose_tests(mutant: MutationSpec, record: Record, source: Source) -> list[str]:
    """The tests that run the mutant's lines, and after every third of them one in the files of the module's name or its
    topics, which may run the lines in processes of their own. For lines that are run when the module is imported, the
    tests that run lines which use what they define; outside functions also tests that import the module."""
    path, lines = source.find_lines(mutant)
    tests = record.find_tests(path, lines)
    is_outside = source.is_outside_functions(mutant)
    if not tests and (is_outside or lines & record.imported[path]):
        steps = (set().union(*(record.find_tests(*use) for use in step)) for step in source.find_uses(mutant))
        tests = next(filter(None, steps), set())
    chosen = record.order(tests, path)
    importing: list[str] = []
    if is_outside and not source.is_function(mutant):
        importing = [test for files in source.find_importing(path) for test in record.order_by_file(files)]
    if not chosen and not importing and (is_outside or lines & record.imported[path]):
        chosen = record.order(record.tests, path)[:5]  # importing the module may fail
    own = record.order_by_file(_name_own_tests(path))
    ways = [*(chosen[start::3] for start in range(3)), importing[:IMPORTING], own]
    return list(dict.fromkeys(test for turn in zip_longest(*ways) for test in turn if test is not None))


def _name_own_tests(path: str) -> list[str]:
    """The test files with the name of a module or of a package that contains it, and those of tests/topics.toml that
    cover it: see tests/test_layout.py."""
    place = path.removeprefix("reconciler/").removesuffix(".py")
    package, *parts = place.split("/")
    named = [f"tests/{package}/test_{part.rstrip('_')}.py" for part in reversed(parts)]
    around = {"/".join([package, *parts[:length]]) for length in range(1, len(parts) + 1)}
    return [*named, *(file for file, topic in _load_topics().items() if around & {*topic.get("covers", ())})]


@cache
def _load_topics() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(TOPICS.read_text(encoding="utf-8"))
