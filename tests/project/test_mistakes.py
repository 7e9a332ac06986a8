"""Mistakes of users: each file in `mistakes/` has one, and ends with a comment that lists the problems reported for it.

The first folder says which file of a project the text is:

    manifests      a manifest
    settings       reconciler.yaml
    environments   environments/prod.yaml, the environment that is validated
    policies       a policy
    approvals      approvals.yaml
    fleet          fleet.yaml, above the projects `.`, `base` and `shop`

A mistake that needs further files has them after the first, each below a line `# file: PATH`. Their lines are counted
from the beginning of the whole file, as an editor shows them. A new file needs no comment: `--rewrite` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from reconciler.model.problem import Problem, Rejected
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.runtime import Runtime
from reconciler.operations.validate import validate_project
from reconciler.project.fleets.load import load_fleet
from tests.harness.golden import is_rewriting

FOLDER = Path(__file__).parent / "mistakes"
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yaml"))
MAIN = {
    "manifests": "manifests/a.yaml",
    "settings": "reconciler.yaml",
    "environments": "environments/prod.yaml",
    "policies": "policies/a.yaml",
    "approvals": "approvals.yaml",
    "fleet": "fleet.yaml",
}
PROJECT = {
    "reconciler.yaml": "stack: shop\n",
    "manifests/a.yaml": "kind: IPPolicy\nname: office\nspec: {description: base}\n",
}
FLEET = {f"{folder}reconciler.yaml": "stack: s\n" for folder in ("", "base/", "shop/")}
NEW_YEAR = 1_767_225_600.0  # 2026-01-01, the day of validation
EXPECTED = re.compile(r"# .+ \[[a-z-]+\]")
FURTHER = re.compile(r"# file: (\S+)")


def split_expected(text: str) -> tuple[str, list[str]]:
    """A mistake, and the lines of the comment at its end without their `# `."""
    lines = text.split("\n")
    while lines[-1:] == [""]:
        lines.pop()
    count = 0
    while count < len(lines) and EXPECTED.fullmatch(lines[-1 - count]):
        count += 1
    kept = len(lines) - count
    return "".join(f"{line}\n" for line in lines[:kept]), [line[2:] for line in lines[kept:]]


def split_files(text: str, main: str) -> dict[str, str]:
    """The files of a mistake by path. Empty lines stand for the lines of the files before."""
    found = {main: ""}
    path = main
    for number, line in enumerate(text.split("\n")[:-1], 1):
        if marker := FURTHER.fullmatch(line):
            path = marker[1]
            found[path] = "\n" * number
        else:
            found[path] += f"{line}\n"
    return found


def write_files(root: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())


def find_problems(root: Path, topic: str) -> Sequence[Problem]:
    """The problems that `validate` or, for a fleet file, `fleet validate` reports."""
    if topic == "fleet":
        try:
            return load_fleet(root).warnings
        except Rejected as rejected:
            return rejected.problems
    environment = "prod" if (root / MAIN["environments"]).exists() else None
    runtime = Runtime(environ={}, now=lambda: NEW_YEAR)
    (result,) = validate_project(ProjectSource(root, environment, runtime=runtime))
    return [*result.problems, *result.shared]


def describe(problems: Sequence[Problem], main: str) -> Iterator[str]:
    """Each problem as it is printed, without the name of the main file, and with its code."""
    for problem in problems:
        yield f"{str(problem).removeprefix(f'{main}:')} [{problem.code}]"


def report(root: Path, topic: str, mistake: str) -> list[str]:
    """The comment of a mistake in a new project at this path."""
    write_files(root, {**(FLEET if topic == "fleet" else PROJECT), **split_files(mistake, MAIN[topic])})
    return list(describe(find_problems(root, topic), MAIN[topic]))


@pytest.mark.parametrize("name", FILES)
def test_a_mistake_is_reported_as_its_last_comment_says(tmp_path: Path, name: str) -> None:
    file = FOLDER / name
    mistake, expected = split_expected(file.read_bytes().decode())
    reported = report(tmp_path, name.split("/", maxsplit=1)[0], mistake)
    assert reported, f"{name} is valid"
    if is_rewriting():
        file.write_bytes((mistake + "".join(f"# {line}\n" for line in reported)).encode())
        return
    assert expected, f"{name} has no comment that lists its problems; write it with --rewrite"
    assert reported == expected


def test_the_comment_of_a_mistake_is_not_part_of_it() -> None:
    text = "# The user wrote this.\na: 1\n# file: b.yaml\nb: 2\n# 2:1: a: unknown field [unknown-field]\n# c: d [e]\n"
    mistake, expected = split_expected(text)
    assert expected == ["2:1: a: unknown field [unknown-field]", "c: d [e]"]
    assert split_files(mistake, "a.yaml") == {"a.yaml": "# The user wrote this.\na: 1\n", "b.yaml": "\n\n\nb: 2\n"}
    assert split_expected("a: 1\n\n") == ("a: 1\n", [])
