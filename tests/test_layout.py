"""Tests are placed as the code is: `tests/PACKAGE/test_NAME.py` tests NAME of that package.

`tests/topics.toml` lists the exceptions with their reasons: test files that cross modules, and folders that are no
package of the product. Each module has a test file, or a listed topic that covers it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TOPICS = "tests/topics.toml"


def load_topics() -> dict[str, dict[str, Any]]:
    return tomllib.loads((ROOT / TOPICS).read_text(encoding="utf-8"))


def product_modules() -> set[str]:
    """Each module as `PACKAGE/…/MODULE`, below `reconciler` and without its suffix."""
    files = (file.relative_to(ROOT / "reconciler") for file in (ROOT / "reconciler").rglob("*.py"))
    return {file.with_suffix("").as_posix() for file in files if len(file.parts) > 1 and not file.stem.startswith("__")}


def product_packages(modules: set[str]) -> set[str]:
    """Each package and sub-package: `planning`, `planning/matching`."""
    return {parent.as_posix() for module in modules for parent in Path(module).parents if parent.parts}


def layout_problems(topics: Mapping[str, Mapping[str, Any]], tests: set[str], modules: set[str]) -> list[str]:
    """One line for each misplaced test file, each wrong entry and each untested module, with what to do.

    `tests` are the paths of all test files, and of the folders below `tests/` with a slash at the end.
    """
    packages = product_packages(modules)
    roots = {package for package in packages if "/" not in package}
    places = modules | packages
    # `import_` ends so since Python reserves the word.
    names = {(place.split("/")[0], place.rsplit("/", 1)[1].rstrip("_")) for place in places - roots}
    problems = []

    for path in sorted(tests - topics.keys()):
        _, package, *below = path.split("/")
        name = path.rsplit("/", 1)[1].removesuffix(".py").removeprefix("test_")
        if path.endswith("/"):
            if package not in roots:
                problems.append(f"{path}: no package of reconciler; list it in {TOPICS}")
        elif not below:
            problems.append(f"{path}: move it to a package, or list it in {TOPICS}")
        elif package in roots and (package, name) not in names:
            problems.append(
                f"{path}: no module or package {name} below reconciler/{package}; name it after the module that it "
                f"tests, or list it in {TOPICS} if it crosses modules"
            )

    for path, topic in topics.items():
        _, package, *below = path.split("/")
        name = path.rsplit("/", 1)[1].removesuffix(".py").removeprefix("test_")
        if path not in tests:
            problems.append(f"{TOPICS}: {path} does not exist; delete the entry")
        if package in roots if path.endswith("/") else bool(below) and (package, name) in names:
            problems.append(f"{TOPICS}: {path} has the name of a module or package; delete the entry")
        if package in roots and not topic.get("covers"):
            problems.append(f"{TOPICS}: {path} covers nothing; list the modules that it tests")
        if not topic.get("reason"):
            problems.append(f"{TOPICS}: {path} has no reason; describe what it tests across modules")
        if unknown := topic.keys() - {"covers", "reason"}:
            problems.append(f"{TOPICS}: {path} has unknown keys: {', '.join(sorted(unknown))}")
        for place in topic.get("covers", ()):
            if place in roots:
                problems.append(f"{TOPICS}: {path} covers all of {place}; list the modules or sub-packages")
            elif place not in places:
                problems.append(f"{TOPICS}: {path} covers {place}, which does not exist below reconciler/; correct it")

    covered = {place for topic in topics.values() for place in topic.get("covers", ())}
    for module in sorted(modules):
        package, *parts = module.split("/")
        by_name = any(f"tests/{package}/test_{part.rstrip('_')}.py" in tests for part in parts)
        by_topic = any("/".join((package, *parts[:length])) in covered for length in range(1, len(parts) + 1))
        if not by_name and not by_topic:
            problems.append(
                f"reconciler/{module}.py: no test file; write tests/{package}/test_{parts[-1].rstrip('_')}.py, or add "
                f"{module} to `covers` of the topic in {TOPICS} that tests it"
            )
    return problems


def find_tests() -> set[str]:
    files = {file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py")}
    folders = (folder for folder in (ROOT / "tests").iterdir() if folder.is_dir() and folder.name[0] not in "._")
    return files | {f"{folder.relative_to(ROOT).as_posix()}/" for folder in folders}


def test_each_test_file_has_the_name_of_a_module_and_each_module_a_test() -> None:
    assert layout_problems(load_topics(), find_tests(), product_modules()) == []


MODULES = {"store/lock", "store/fleets/rows", "model/plan"}
TESTS = {"tests/store/test_lock.py", "tests/store/test_fleets.py", "tests/model/test_plan.py", "tests/store/"}


def test_a_module_is_covered_by_its_own_test_or_by_that_of_its_package() -> None:
    assert layout_problems({}, TESTS, MODULES) == []


@pytest.mark.parametrize("covers", ["store/fleets/rows", "store/fleets"])
def test_a_module_is_covered_by_a_topic_of_itself_or_of_a_package_above_it(covers: str) -> None:
    tests = TESTS - {"tests/store/test_fleets.py"} | {"tests/store/test_damage.py"}
    topics = {"tests/store/test_damage.py": {"covers": [covers], "reason": "Damaged stores."}}
    assert layout_problems(topics, tests, MODULES) == []


@pytest.mark.parametrize(
    ("change", "topics", "problem"),
    [
        ({"tests/store/test_old.py"}, {}, "tests/store/test_old.py: no module or package old below reconciler/store"),
        (
            {"tests/model/test_lock.py"},
            {},
            "tests/model/test_lock.py: no module or package lock below reconciler/model",
        ),
        ({"tests/test_old.py"}, {}, "tests/test_old.py: move it to a package, or list it"),
        ({"tests/laws/"}, {}, "tests/laws/: no package of reconciler; list it"),
        (set(), {"tests/laws/": {"reason": "Laws."}}, "tests/laws/ does not exist"),
        (
            set(),
            {"tests/store/test_lock.py": {"covers": ["store/lock"], "reason": "Locks."}},
            "test_lock.py has the name of",
        ),
        (set(), {"tests/store/": {"covers": ["store/lock"], "reason": "Locks."}}, "tests/store/ has the name of"),
        ({"tests/store/test_old.py"}, {"tests/store/test_old.py": {"reason": "Old."}}, "test_old.py covers nothing"),
        ({"tests/test_old.py"}, {"tests/test_old.py": {}}, "tests/test_old.py has no reason"),
        ({"tests/test_old.py"}, {"tests/test_old.py": {"reason": "Old.", "cover": []}}, "unknown keys: cover"),
        (
            {"tests/test_old.py"},
            {"tests/test_old.py": {"reason": "Old.", "covers": ["store/rows"]}},
            "covers store/rows",
        ),
        ({"tests/test_old.py"}, {"tests/test_old.py": {"reason": "Old.", "covers": ["store"]}}, "covers all of store"),
    ],
)
def test_a_misplaced_file_and_a_wrong_entry_are_reported(
    change: set[str], topics: dict[str, dict[str, Any]], problem: str
) -> None:
    (found,) = layout_problems(topics, TESTS | change, MODULES)
    assert problem in found


def test_a_module_without_a_test_is_reported() -> None:
    (found,) = layout_problems({}, TESTS, MODULES | {"store/damage"})
    assert found.startswith("reconciler/store/damage.py: no test file; write tests/store/test_damage.py")
