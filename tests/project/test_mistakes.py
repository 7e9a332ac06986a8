"""Mistakes of users: each file in `mistakes/` has one, and ends with a comment that lists the problems reported for it.

The first folder says which file of a project the text is:

    manifests      a manifest
    settings       reconciler.yaml
    environments   environments/prod.yaml, the environment that is validated
    policies       a policy
    approvals      approvals.yaml
    access-tests   tests/access.yaml
    fleet          fleet.yaml, above the projects `.`, `base` and `shop`

A mistake that needs further files has them after the first, each below a line `# file: PATH`. Their lines are counted
from the beginning of the whole file, as an editor shows them. A new file needs no comment: `--rewrite` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.problem import Problem, Rejected
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.runtime import Runtime
from reconciler.operations.validate import validate_project
from reconciler.project.fleets.load import load_fleet
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config
from tests.harness.golden import is_rewriting

FOLDER = Path(__file__).parent / "mistakes"
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yaml"))
MAIN = {
    "manifests": "manifests/a.yaml",
    "components": "components/a.yaml",
    "settings": "reconciler.yaml",
    "environments": "environments/prod.yaml",
    "policies": "policies/a.yaml",
    "approvals": "approvals.yaml",
    "access-tests": "tests/access.yaml",
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
def test_a_mistake_is_reported_as_in_its_last_comment(tmp_path: Path, name: str) -> None:
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


# --- values for scripts -----------------------------------------------------------------------------------------------

BOT = "kind: BotUser\nname: b\n"
VALID = f"{BOT}spec: {{name: b}}\n"
EDGE = "kind: TLSEdge\nname: e\n"
PAIR = "kind: FailoverBackend\nname: %s\nspec: {backends: [{ref: FailoverBackend/%s}]}\n"
MANIFESTS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{EDGE}spec: {{hostprots: []}}\n": ("unknown-field", {"field": "hostprots", "suggestion": "hostports"}),
    f"{BOT}spec: {{}}\n": ("missing-field", {"field": "name"}),
    f"{BOT}spec: {{name: [b]}}\n": ("wrong-type", {"expected": "text", "found": "a list"}),
    f"{EDGE}spec: {{tls_termination: {{terminate_at: egde}}}}\n": (
        "unknown-choice",
        {"choices": ["edge", "upstream"]},
    ),
    f"{EDGE}spec: {{hostports: ['https://x.example.com']}}\n": ("invalid-value", {}),
    f"{EDGE}spec: {{description: {'x' * 300}}}\n": ("value-too-long", {"limit": 255}),
    "kind: TLSEgde\nname: e\nspec: {}\n": ("unknown-kind", {"kind": "TLSEgde", "suggestion": "TLSEdge"}),
    "kind: BotUser\nname: -b\nspec: {name: b}\n": ("invalid-name", {}),
    f"{VALID}---\n{VALID}": ("duplicate-address", {"first": "manifests/a.yaml:1:1"}),
    f"{VALID}---\nkind: BotUser\nname: c\nspec: {{name: b}}\n": ("duplicate-object", {"first": "BotUser/b"}),
    f"{PAIR % ('a', 'b')}---\n{PAIR % ('b', 'a')}": (
        "circular-reference",
        {"addresses": ["FailoverBackend/a", "FailoverBackend/b"]},
    ),
    f"{EDGE}spec: {{backend: {{backend_id: {{ref: StaticBackend/x}}}}}}\n": (
        "unknown-reference",
        {"reference": "StaticBackend/x"},
    ),
    f"{BOT}spec: {{name: '${{{{ var.x }}}}'}}\n": ("unknown-variable", {"variable": "x"}),
    f"{BOT}spec: {{name: {{from_env: UNSET}}}}\n": ("unset-environment-variable", {}),
    f"{BOT}spec: {{name: {{from_file: ../x}}}}\n": ("path-outside-project", {}),
    f"{BOT}spec: {{name: {{from_file: x}}}}\n": ("unreadable-file", {}),
    f"{BOT}spec: {{name: [\n": ("invalid-yaml", {}),
    f"{BOT}name: c\nspec: {{name: b}}\n": ("duplicate-key", {}),
    f"{BOT}spec: {{<<: {{name: b}}}}\n": ("unsupported-yaml", {}),
}


@pytest.mark.parametrize(("manifest", "expected"), MANIFESTS.items(), ids=[code for code, _ in MANIFESTS.values()])
def test_the_names_in_a_message_are_values_of_the_problem(
    tmp_path: Path, manifest: str, expected: tuple[str, dict[str, Any]]
) -> None:
    write_files(tmp_path, {**PROJECT, "manifests/a.yaml": manifest})
    with pytest.raises(Rejected) as caught:
        load_manifests(load_config(tmp_path, {}), {})
    problem = caught.value.problems[0]
    assert (problem.code, dict(problem.values)) == expected
