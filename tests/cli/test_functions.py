"""The functions of `${{ … }}` in manifests, as `explain` and `validate` evaluate them. Errors are in `mistakes`."""

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
