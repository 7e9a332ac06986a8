"""Imported objects as manifests."""

from __future__ import annotations

from typing import Any

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.model.address import Address
from reconciler.model.snapshot import Live
from reconciler.model.value import Ref, Template, Value
from reconciler.planning.importing.describe import Attachment
from reconciler.planning.importing.survey import Imported
from reconciler.project.manifests import write


def make_import(spec: dict[str, Value], kind: str = "IPPolicy", **more: Any) -> Imported:
    return Imported(Address(kind, more.pop("name", "a")), Live(kind, "id_1", {}), spec, **more)


def test_an_imported_object_is_written_as_a_manifest() -> None:
    included: dict[str, str] = {}
    spec: dict[str, Value] = {
        "description": "$${{ x }} ${{ y }}",
        "metadata": Attachment("long\ntext", "json"),
        "more": {"ref": Ref(Address("IPPolicy", "b")), "list": [Template(("a ", Ref(Address("Vault", "v"))))]},
    }
    text = write.render_document(make_import(spec, id="ipp_1", protect=True, ignore=("x.y",)), "manifests", included)
    assert included == {"manifests/files/ip-policy/a.metadata.json": "long\ntext"}
    assert text == (
        "kind: IPPolicy\nname: a\nid: ipp_1\nlifecycle:\n  protect: true\n"
        "  # Secret values cannot be imported and stay unmanaged; declare them to manage them.\n  ignore: [x.y]\n"
        'spec:\n  description: "$$${{ x }} $${{ y }}"\n'
        "  metadata: {from_file: manifests/files/ip-policy/a.metadata.json}\n"
        '  more:\n    ref: {ref: IPPolicy/b}\n    list:\n      - "a ${{ Vault/v }}"\n'
    )


def test_keys_that_do_not_apply_are_not_written() -> None:
    assert write.render_document(make_import({}), ".", {}) == "kind: IPPolicy\nname: a\nspec: {}\n"
    protected = write.render_document(make_import({}, protect=True), ".", {})
    assert protected == "kind: IPPolicy\nname: a\nlifecycle:\n  protect: true\nspec: {}\n"
    ignoring = write.render_document(make_import({}, ignore=("a", "b")), ".", {})
    assert "protect" not in ignoring
    assert "  ignore: [a, b]\n" in ignoring


def test_appending_a_document_does_not_change_those_before() -> None:
    assert write.append("", "x\n") == "x\n"
    assert write.append("\n", "x\n") == "\nx\n"
    assert write.append("a\n", "x\n") == "a\n---\nx\n"
    assert write.append("a", "x\n") == "a\n---\nx\n"


def test_children_are_written_inline_below_their_parent() -> None:
    catalog = {kind.name: kind for kind in kinds.declarable()}
    above = Ref(Address("IPPolicy", "office"))
    rule: dict[str, Value] = {"ip_policy_id": above, "cidr": "lan", "action": "allow"}
    members = [
        make_import(rule, "IPPolicyRule", name="office-lan", protect=True),
        make_import(rule, "IPPolicyRule", name="other"),
        make_import({"description": "Office"}, name="office"),
    ]
    texts, _ = write.render_files(members, catalog, "manifests")
    assert texts == {
        "manifests/ip-policy.yaml": (
            "kind: IPPolicy\nname: office\nspec:\n  description: Office\n"
            "rules:\n  lan:\n    lifecycle:\n      protect: true\n    cidr: lan\n    action: allow\n"
            "---\nkind: IPPolicyRule\nname: other\n"
            "spec:\n  ip_policy_id: {ref: IPPolicy/office}\n  cidr: lan\n  action: allow\n"
        )
    }


def test_children_are_written_after_their_parent() -> None:
    catalog = {kind.name: kind for kind in kinds.declarable()}
    members = [
        make_import({}, "IPPolicyRule", name="a"),
        make_import({}, "IPPolicy", name="z"),
        make_import({}, "Vault", name="v"),
        make_import({}, "IPPolicy", name="b"),
    ]
    manifests, _ = write.render_files(members, catalog, ".")
    assert [*manifests] == ["ip-policy.yaml", "vault.yaml"]
    found = [document.value for document in yaml.read(manifests["ip-policy.yaml"].encode(), "f").documents]
    assert [(document["kind"], document["name"]) for document in found] == [
        ("IPPolicy", "b"),
        ("IPPolicy", "z"),
        ("IPPolicyRule", "a"),
    ]
    assert write.file_of(members[2], catalog, "manifests") == "manifests/vault.yaml"
    alone = {name: kind for name, kind in catalog.items() if name != "IPPolicy"}
    assert write.family_of(catalog["IPPolicyRule"], alone) == "IPPolicyRule"
