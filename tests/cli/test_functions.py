"""The functions of `${{ … }}` in manifests: where they may be used, and their errors in `validate`."""

from __future__ import annotations

import pytest

from tests.harness.project import Shell

SETTINGS = """\
version: 1
stack: prod
variables:
  region: EU
  hosts: "a.example.com:443,b.example.com:443"
  empty: ""
"""


@pytest.fixture
def project(shell: Shell) -> Shell:
    shell.write("reconciler.yaml", SETTINGS)
    (shell.root / "manifests/payments.yaml").unlink()
    return shell


def explain(shell: Shell, what: str) -> str:
    answer = shell("explain", what)
    assert answer.code == 0, answer
    return answer.out


def test_values_of_a_spec_are_evaluated(project: Shell) -> None:
    project.write(
        "manifests/a.yaml",
        "kind: TLSEdge\nname: a\nspec:\n  description: In ${{ lower(var.region) }}, $${{ lower(x) }}\n"
        "  hostports: ${{ split(var.hosts, ',') }}\n  metadata: ${{ default(var.empty, \"none\") }}\n",
    )
    assert "In eu, ${{ lower(x) }}" in explain(project, "TLSEdge/a.description")
    assert "b.example.com:443" in explain(project, "TLSEdge/a.hostports")
    assert "none" in explain(project, "TLSEdge/a.metadata")
    assert "variable region" in explain(project, "TLSEdge/a.description")


def test_items_of_for_each_are_arguments(project: Shell) -> None:
    project.write(
        "manifests/a.yaml",
        "kind: IPPolicy\nname: ${{ lower(each.key) }}-${{ each.value.id }}\nfor_each:\n"
        "  Office: {id: 1, label: '}} ${{ x'}\n  Home: {id: 2}\nspec:\n"
        '  description: ${{ format("{0} in {1}", default(each.value.label, "none"), var.region) }}\n'
        '  metadata: ${{ default(each.value.label, "no label") }}\n',
    )
    assert project("validate").code == 0, project("validate")
    assert "}} ${{ x in EU" in explain(project, "IPPolicy/office-1.description")
    assert "none in EU" in explain(project, "IPPolicy/home-2.description")
    assert "}} ${{ x" in explain(project, "IPPolicy/office-1.metadata")
    assert "no label" in explain(project, "IPPolicy/home-2.metadata")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${{ lower(each.key) }}", "each.… is only available in a manifest with for_each"),
        ("${{ lower(var.regio) }}", "unknown variable regio; did you mean region?"),
        ("a ${{ split(var.hosts, ',') }}", "cannot be part of a text"),
        ("${{ lower(IPPolicy/a) }}", "IPPolicy/a is a reference"),
    ],
)
def test_errors_have_the_position_of_the_value(project: Shell, text: str, problem: str) -> None:
    project.write("manifests/a.yaml", f'kind: IPPolicy\nname: a\nspec:\n  description: "{text}"\n')
    answer = project("validate")
    assert answer.code == 1
    assert "manifests/a.yaml:4:" in answer.out + answer.err
    assert problem in answer.out + answer.err


@pytest.mark.parametrize("call", ["lower(var.region)", "lower(each.value)", "default(each.value, var.region)"])
def test_functions_are_refused_in_secret_fields(project: Shell, call: str) -> None:
    for_each = "for_each: {a: ABC}\n" if "each" in call else ""
    name = "${{ each.key }}" if for_each else "a"
    spec = f"spec:\n  name: x\n  value: ${{{{ {call} }}}}\n  vault_id: vault_2vJ0QmZr8sT1uV3wX5yZ7aB9cD4\n"
    project.write("manifests/a.yaml", f"kind: Secret\nname: {name}\n{for_each}{spec}")
    answer = project("validate")
    assert answer.code == 1
    output = answer.out + answer.err
    assert "functions are not available in secret fields" in output or "invalid expression ${{ … }}" in output
    assert "abc" not in output.lower().replace("each", "")
