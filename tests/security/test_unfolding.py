"""A small project that unfolds to a large one is refused at a position, within 1 GiB of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests.harness.tiers import first_of_each

SETTINGS = "version: 1\nstack: prod\n"
BIG = "x" * 900_000
LONG = "y" * 1_000_000
KEYS = ", ".join(f"k{number}" for number in range(5000))


def responses(body: str, count: int = 5000) -> str:
    return "".join(f"---\nkind: HTTPResponseBackend\nname: a{n}\nspec: {{body: {body}}}\n" for n in range(count))


def variables(**written: Any) -> str:
    return SETTINGS + f"variables: {json.dumps(written)}\n"


def each(spec: str, kind: str = "HTTPResponseBackend", keys: str = KEYS) -> str:
    return f"kind: {kind}\nname: 'n-${{{{ each.key }}}}'\nfor_each: [{keys}]\nspec: {spec}\n"


CHARACTERS = "more than 60,000,000 characters"
PROJECTS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("a variable in thousands of resources", CHARACTERS): {
        "reconciler.yaml": variables(big=BIG),
        "manifests/a.yaml": responses('"${{ var.big }}"'),
    },
    ("a variable within a text", CHARACTERS): {
        "reconciler.yaml": variables(big=BIG),
        "manifests/a.yaml": responses('"x ${{ var.big }} ${{ var.big }}"'),
    },
    ("a variable many times in one text", CHARACTERS): {
        "reconciler.yaml": variables(big=BIG),
        "manifests/a.yaml": responses('"' + "${{var.big}}" * 80_000 + '"', 1),
    },
    ("for_each with a file", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        "body.txt": LONG,
        "manifests/a.yaml": each("{body: {from_file: body.txt}}"),
    },
    ("for_each with a secret file", "has the same vault_id"): {
        "reconciler.yaml": SETTINGS,
        "body.txt": LONG,
        "manifests/a.yaml": each("{name: a, value: {from_file: body.txt}, vault_id: v_1}", "Secret"),
    },
    ("for_each with a large text", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        "manifests/a.yaml": each(f"{{body: '{BIG}'}}"),
    },
    ("for_each with a large item", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        "manifests/a.yaml": (
            "kind: HTTPResponseBackend\nname: 'n-${{ each.key }}'\n"
            f"for_each: {{a: '{BIG}'}}\nspec: {{body: '" + "${{ each.value }}" * 40_000 + "'}\n"
        ),
    },
    ("for_each with a large item as an argument", "the result of the call"): {
        "reconciler.yaml": variables(a="a"),
        "manifests/a.yaml": (
            "kind: HTTPResponseBackend\nname: 'n-${{ each.key }}'\n"
            f"for_each: {{a: '{BIG}'}}\nspec:\n  body: >-\n    "
            + '${{ format("{0}", var.a, '
            + "each.value, " * 40_000
            + "var.a) }}\n"
        ),
    },
    ("more instances than allowed", "more than 50,000 resources"): {
        "reconciler.yaml": SETTINGS,
        "manifests/a.yaml": each("{}", keys=", ".join(map(str, range(60_000)))),
    },
    ("a list variable in thousands of resources", "more than 100 problems"): {
        "reconciler.yaml": variables(big=list(range(100_000))),
        "manifests/a.yaml": "".join(
            f"---\nkind: TLSEdge\nname: a{n}\nspec: {{hostports: '${{{{ var.big }}}}'}}\n" for n in range(5000)
        ),
    },
    ("aliases of a large text", "aliases expand"): {
        "reconciler.yaml": SETTINGS,
        "manifests/a.yaml": f"kind: IPPolicy\nname: a\nspec:\n  description: &a '{BIG}'\n  x: ["
        + "*a, " * 90_000
        + "]\n",
    },
    ("aliases in many files", "unknown field"): {
        "reconciler.yaml": SETTINGS,
        **{
            f"manifests/a{n}.yaml": f"kind: IPPolicy\nname: a{n}\nspec: {{x: &a '{BIG}', y: [*a, *a, *a, *a, *a]}}\n"
            for n in range(30)
        },
    },
    ("aliases in a variable", "more than 100 problems"): {
        "reconciler.yaml": SETTINGS
        + f"variables:\n  small: &a '{'z' * 40_000}'\n  big: {{default: ["
        + "*a, " * 120
        + "], type: list}\n",
        "manifests/a.yaml": "".join(
            f"---\nkind: TLSEdge\nname: a{n}\nspec: {{hostports: '${{{{ var.big }}}}'}}\n" for n in range(5000)
        ),
    },
    ("defaults", CHARACTERS): {
        "reconciler.yaml": SETTINGS + f"defaults: {{HTTPResponseBackend: {{spec: {{body: '{BIG}'}}}}}}\n",
        "manifests/a.yaml": responses('""').replace('spec: {body: ""}', "spec: {}"),
    },
    ("defaults for for_each", CHARACTERS): {
        "reconciler.yaml": SETTINGS + f"defaults: {{HTTPResponseBackend: {{spec: {{body: '{BIG}'}}}}}}\n",
        "manifests/a.yaml": each("{}"),
    },
    ("a patch of an environment", "declared twice"): {
        "reconciler.yaml": SETTINGS,
        "environments/prod.yaml": f"HTTPResponseBackend/a0: {{spec: {{body: '{BIG}'}}}}\n",
        "manifests/a.yaml": "---\nkind: HTTPResponseBackend\nname: a0\nspec: {}\n" * 5000,
    },
    ("variables from one file", CHARACTERS): {
        "body.txt": LONG,
        "reconciler.yaml": SETTINGS
        + "variables:\n"
        + "".join(f"  v{n}: {{from_file: body.txt}}\n" for n in range(5000)),
        "manifests/a.yaml": "kind: IPPolicy\nname: a\nspec: {}\n",
    },
    ("format", "the result of format"): {
        "reconciler.yaml": variables(big="x" * 500_000, fields="{0}" * 150_000),
        "manifests/a.yaml": responses('"${{ format(var.fields, var.big) }}"', 3),
    },
    ("join", "the result of join"): {
        "reconciler.yaml": variables(big="x" * 400_000, many=["a"] * 100_000),
        "manifests/a.yaml": responses('"${{ join(var.many, var.big) }}"', 3),
    },
    ("calls as arguments", CHARACTERS): {
        "reconciler.yaml": variables(big="x" * 100_000),
        "manifests/a.yaml": "kind: HTTPResponseBackend\nname: a\nspec:\n  body: >-\n    ${{ format('{0}', "
        + "lower(var.big), " * 60_000
        + "'a') }}\n",
    },
    ("an expression of many words", "expected ',' or ')'"): {
        "reconciler.yaml": variables(a="a"),
        "manifests/a.yaml": responses("\"${{ format('{1}', " + "var.a, " * 140_000 + "'a', 'b'  c) }}\"", 1),
    },
    ("an opening that is never closed", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        "manifests/a.yaml": each("{body: '" + "${{ lower(" * 95_000 + "'}"),
    },
    ("a call with a million spaces", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        "manifests/a.yaml": each("{body: '${{ lower(each.key" + " " * 1_000_000 + "'}"),
    },
    ("files", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        **{
            f"manifests/a{n}.yaml": f"kind: IPPolicy\nname: a{n}\nspec: {{description: '{BIG}', metadata: '{BIG}'}}\n"
            for n in range(40)
        },
    },
    ("values in files", "expected a map"): {
        "reconciler.yaml": SETTINGS,
        **{f"manifests/a{n}.yaml": "- {a: 1}\n" * 120_000 for n in range(9)},
    },
    ("values in files of maps", "unknown field"): {
        "reconciler.yaml": SETTINGS,
        **{
            f"manifests/a{n}.yaml": f"kind: IPPolicy\nname: a{n}\nspec:\n  x:\n" + "  - {a: 1}\n" * 110_000
            for n in range(9)
        },
    },
    ("characters of four bytes", CHARACTERS): {
        "reconciler.yaml": SETTINGS + f"variables: {{big: '{'z' * 900_000}\U0001f600'}}\n",
        "manifests/a.yaml": responses('"x ${{ var.big }}"'),
    },
    ("a component with a large text", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        "components/a.yaml": "inputs: {text: {type: string}}\n---\n" + responses("'${{ input.text }}'", 200),
        "manifests/a.yaml": f"component: a\nname: '${{{{ each.key }}}}'\nfor_each: [{KEYS}]\nwith: {{text: '{BIG}'}}\n",
    },
    ("components without resources that use others many times", "more than 50,000 resources"): {
        "reconciler.yaml": SETTINGS,
        **{
            f"components/c{n}.yaml": "inputs: {}\n"
            + "".join(f"---\ncomponent: c{n + 1}\nname: n{m}\n" for m in range(100))
            for n in range(7)
        },
        "components/c7.yaml": "inputs: {}\n",
        "manifests/a.yaml": "component: c0\nname: a\n",
    },
    ("a component with many aliases", "aliases expand"): {
        "reconciler.yaml": SETTINGS,
        "components/a.yaml": f"inputs: {{}}\n---\nkind: IPPolicy\nname: a\nspec:\n  description: &a '{BIG}'\n  x: ["
        + "*a, " * 90_000
        + "]\n",
        "manifests/a.yaml": "component: a\nname: a\n",
    },
    ("former names of a use with those of a resource", CHARACTERS): {
        "reconciler.yaml": SETTINGS,
        "components/a.yaml": "inputs: {}\n---\nkind: IPPolicy\nname: a\nspec: {}\nmoved:\n"
        + "".join(f"- IPPolicy/o{n}\n" for n in range(4000)),
        "manifests/a.yaml": "component: a\nname: a\nmoved:\n" + "".join(f"- u{n}\n" for n in range(4000)),
    },
    ("former names of a parent with many inline children", "more than 3,000,000 values"): {
        "reconciler.yaml": SETTINGS,
        "manifests/a.yaml": "kind: IPPolicy\nname: a\nspec: {}\nmoved:\n"
        + "".join(f"- IPPolicy/o{n}\n" for n in range(2000))
        + "rules:\n"
        + "".join(f"  r{n}: {{cidr: 10.0.0.0/8, action: allow}}\n" for n in range(2000)),
    },
    ("a large target of deliveries", "too long for a path"): {
        "reconciler.yaml": variables(big=BIG),
        "manifests/a.yaml": "".join(
            f"---\nkind: APIKey\nname: a{n}\nspec: {{}}\ndeliver: {{token: {{to_file: 'x${{{{ var.big }}}}'}}}}\n"
            for n in range(1000)
        ),
    },
}

_SERVER = """
import io, json, os, resource, sys, time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from reconciler import kinds
from reconciler.cli.main import main
kinds.every()
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
def check(folder):
    resource.setrlimit(resource.RLIMIT_CPU, (40, 40))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    began = time.process_time()
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["validate", "--project", folder])
    return [code, peak(), time.process_time() - began, err.getvalue()[:200_000]]
while folder := sys.stdin.readline().strip():
    child = os.fork()
    if not child:
        print(json.dumps(check(folder)), flush=True)
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        print(json.dumps(f"ended with {os.waitstatus_to_exitcode(status)}"), flush=True)
"""

Validate = Callable[[Mapping[str, str]], tuple[int, float, float, str]]


@pytest.fixture(scope="module")
def validate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Validate]:
    """Validates a project in a process with 1 GiB: exit code, peak of memory in MiB, seconds of CPU, and messages."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, says = process.stdin, process.stdout

        def run(project: Mapping[str, str]) -> tuple[int, float, float, str]:
            root = tmp_path_factory.mktemp("project")
            write(root, project)
            asks.write(f"{root}\n")
            asks.flush()
            found = json.loads(says.readline())
            assert isinstance(found, list), found
            return found[0], found[1], found[2], found[3]

        yield run


def write(root: Path, project: Mapping[str, str]) -> None:
    for name, text in project.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("name", "why"), first_of_each(PROJECTS, itemgetter(1)))
def test_a_project_that_unfolds_without_end_is_refused_within_a_gigabyte(
    validate: Validate, name: str, why: str
) -> None:
    code, peak, seconds, output = validate(PROJECTS[name, why])
    print(name, code, round(peak), round(seconds, 1), output[:300])
    assert code == 1
    assert peak < 1000
    first, *_ = output.splitlines()
    assert first.startswith(("manifests/", "components/", "reconciler.yaml:", "environments/"))
    assert why in first
    assert len(output) < 100_000
