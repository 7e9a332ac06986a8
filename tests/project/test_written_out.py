"""Law: a project with components declares the same resources as the same project written out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.project.texts import ProjectFolder

Document = dict[str, Any]
NAMES = ("a", "b", "c")
TEXTS = ("x", "Y z", "${{ IPPolicy/outside.id }}", "${{ var.v }}", "$${{ literal")


class Part:
    """A part of a text in a component: a literal, an input, or the name of the instance."""

    def __init__(self, written: str, expand: Any) -> None:
        self.written = written
        self.expand = expand  # from inputs and the name to a text

    def __repr__(self) -> str:
        return self.written


LITERAL = st.sampled_from(["", "fixed ", "of "]).map(lambda text: Part(text, lambda given, name: text))
INPUT = st.sampled_from(NAMES).map(lambda key: Part(f"${{{{ input.{key} }}}}", lambda given, name: given[key]))
NAME = st.just(Part("${{ component.name }}", lambda given, name: name))
TEXT = st.lists(LITERAL | INPUT | NAME, min_size=1, max_size=3)
RESOURCES = st.dictionaries(
    st.sampled_from(["p", "q", "r"]), st.tuples(TEXT, st.booleans(), st.booleans()), min_size=1
)  # description, with a rule, protected
VALUES = st.fixed_dictionaries({name: st.sampled_from(TEXTS) for name in NAMES})
USES = st.dictionaries(st.sampled_from(["one", "two", "three"]), VALUES, min_size=1)


def component(resources: Mapping[str, tuple[list[Part], bool, bool]]) -> list[Document]:
    documents: list[Document] = [{"inputs": {name: {"type": "string"} for name in NAMES}}]
    for name, (parts, has_rule, is_protected) in resources.items():
        text = "".join(part.written for part in parts)
        documents += write_out(name, text, f"IPPolicy/{name}", has_rule=has_rule, is_protected=is_protected)
    return documents


def by_hand(
    resources: Mapping[str, tuple[list[Part], bool, bool]], instance: str, values: Mapping[str, str]
) -> list[Document]:
    documents: list[Document] = []
    for name, (parts, has_rule, is_protected) in resources.items():
        whole = f"{instance}-{name}"
        text = "".join(part.expand(values, instance) for part in parts)
        documents += write_out(whole, text, f"IPPolicy/{whole}", has_rule=has_rule, is_protected=is_protected)
    return documents


def write_out(name: str, text: str, target: str, *, has_rule: bool, is_protected: bool) -> list[Document]:
    lifecycle = {"lifecycle": {"protect": True}} if is_protected else {}
    rule = {
        "ip_policy_id": {"ref": target},
        "cidr": "10.0.0.0/8",
        "action": "deny",
        "description": f"${{{{ {target}.id }}}}",
    }
    policy: Document = {"kind": "IPPolicy", "name": name, **lifecycle, "spec": {"description": text}}
    return [policy, *([{"kind": "IPPolicyRule", "name": name, "spec": rule}] if has_rule else [])]


def load_specs(root: Path, documents: list[Document], parts: list[Document]) -> dict[str, Any]:
    project = ProjectFolder(root)
    project.write("reconciler.yaml", "stack: shop\nvariables: {v: of a variable}\n")
    outside: Document = {"kind": "IPPolicy", "name": "outside", "spec": {}}
    project.write("manifests/a.yaml", "\n---\n".join(map(json.dumps, (outside, *documents))))
    project.write("components/part.yaml", "\n---\n".join(map(json.dumps, parts)))
    return {
        address: (declaration.spec, declaration.lifecycle, declaration.moved, declaration.ensure)
        for address, declaration in project.declarations().items()
    }


@settings(deadline=None)
@given(resources=RESOURCES, uses=USES, is_listed=st.booleans())
def test_uses_declare_what_is_written_out_by_hand(
    tmp_path_factory: Any, resources: dict[str, tuple[list[Part], bool, bool]], uses: dict[str, Any], is_listed: bool
) -> None:
    used: list[Document] = [{"component": "part", "name": name, "with": values} for name, values in uses.items()]
    if is_listed:
        inputs = {name: f"${{{{ each.value.{name} }}}}" for name in NAMES}
        used = [{"component": "part", "name": "${{ each.key }}", "for_each": uses, "with": inputs}]
    expected = [document for name, values in uses.items() for document in by_hand(resources, name, values)]
    folder = tmp_path_factory.mktemp("written-out")
    assert load_specs(folder / "uses", used, component(resources)) == load_specs(
        folder / "hand", expected, [{"inputs": {}}]
    )
