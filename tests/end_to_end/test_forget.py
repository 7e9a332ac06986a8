"""`reconciler forget`: the object is kept, what refers to it stays valid, and another stack adopts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

OFFICE = resource("IPPolicy", "office", description="Office")
RULE = resource("IPPolicyRule", "desk", ip_policy_id={"ref": "IPPolicy/office"}, cidr="192.0.2.0/24", action="allow")
DOMAIN = resource("ReservedDomain", "shop", domain="shop.example.com")
EDGE = resource("TLSEdge", "shop", hostports=["shop.example.com:443"])
RESTRICTED = {"ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/office"}]}}


def ids(sandbox: Sandbox) -> dict[str, list[str]]:
    paths = ("ip_policies", "ip_policy_rules", "reserved_domains", "edges/tls")
    return {path: sorted(item["id"] for item in one_list(sandbox.get(f"/{path}"))) for path in paths}


def one_list(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return next(value for value in answer.values() if isinstance(value, list))


@pytest.fixture
def other(tmp_path: Path, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> Project:
    found = Project(tmp_path / "other", capsys)
    found.write("reconciler.yaml", "version: 1\nstack: other\nlimits: {requests_per_minute: 100000}\n")
    found.use(sandbox)
    return found


def test_a_split_moves_resources_to_another_stack_and_no_id_changes(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(OFFICE, RULE)
    on_sandbox.declare(DOMAIN, EDGE, file="shop.yaml")
    assert on_sandbox("apply", "-y", "-q").code == 0
    before = ids(sandbox)
    forgotten = on_sandbox("forget", "*/shop")
    assert (forgotten.code, forgotten.err) == (0, "")
    moved = (on_sandbox.root / "manifests/shop.yaml").read_text()
    other.write("manifests/shop.yaml", moved.replace(", ensure: forgotten", ""))
    assert before["edges/tls"][0] in moved  # no unique field identifies an edge
    assert on_sandbox("apply", "-y", "-q").out == "Applied: 2 forgotten.\n"
    adopted = other("adopt", "ReservedDomain/shop", "TLSEdge/shop", "-y", "-q")
    assert adopted.out == "Adopted: 2 adopted.\n"
    assert "removed `id` of TLSEdge/shop from manifests/shop.yaml" in adopted.err
    (on_sandbox.root / "manifests/shop.yaml").unlink()
    for project in (on_sandbox, other):
        assert project("plan", "--detailed-exitcode").code == 0
        assert project("drift").code == 0
    assert ids(sandbox) == before
    assert not [call for call in sandbox.log() if call["method"] == "DELETE"]


def test_a_reference_to_a_forgotten_resource_gets_its_id_and_remains_valid_after_the_move(
    on_sandbox: Project, other: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(OFFICE, RULE, DOMAIN, {**EDGE, "spec": {**EDGE["spec"], **RESTRICTED}})
    assert on_sandbox("apply", "-y", "-q").code == 0
    before = ids(sandbox)
    (office,) = before["ip_policies"]
    forgotten = on_sandbox("forget", "IPPolicy/office")
    assert forgotten.err == "note: IPPolicyRule/desk is part of a forgotten resource, and is forgotten too\n"
    documents = list(yaml.safe_load_all((on_sandbox.root / "manifests/all.yaml").read_text()))
    assert [(item.get("ensure"), item.get("id")) for item in documents] == [
        ("forgotten", office), ("forgotten", None), (None, None), (None, None)
    ]  # fmt: skip
    assert on_sandbox("apply", "-y", "-q").out == "Applied: 2 forgotten.\n"
    other.declare(OFFICE, RULE)
    assert other("adopt", "IPPolicy/office", "--id", office, "-y", "-q").code == 0
    assert other("adopt", "IPPolicyRule/desk", "-y", "-q").code == 0
    on_sandbox.declare(  # without the rule, and with a new reference to the policy that the other stack manages
        {**OFFICE, "ensure": "forgotten", "id": office},
        DOMAIN,
        {**EDGE, "spec": {**EDGE["spec"], **RESTRICTED}},
        resource("TCPEdge", "new", **RESTRICTED),
    )
    assert on_sandbox("apply", "-y", "-q").out == "Applied: 1 created.\n"
    for project in (on_sandbox, other):
        assert project("plan", "--detailed-exitcode").code == 0
        assert project("drift").code == 0
    assert ids(sandbox) == before


def test_a_reference_to_a_resource_without_an_object_is_refused(on_sandbox: Project) -> None:
    on_sandbox.declare(OFFICE, DOMAIN, {**EDGE, "spec": {**EDGE["spec"], **RESTRICTED}})
    before = (on_sandbox.root / "manifests/all.yaml").read_text()
    refused = on_sandbox("forget", "IPPolicy/office")
    assert refused.code == 1
    assert "TLSEdge/shop refers to IPPolicy/office, of which this stack manages no object; apply first" in refused.err
    assert (on_sandbox.root / "manifests/all.yaml").read_text() == before


def test_a_dry_run_prints_the_diff_and_writes_nothing(on_sandbox: Project) -> None:
    on_sandbox.write("manifests/all.yaml", "kind: IPPolicy\nname: office\nspec: {}\n")
    answer = on_sandbox("forget", "IPPolicy/office", "--dry-run")
    assert "\n+ensure: forgotten\n" in answer.out
    assert (on_sandbox.root / "manifests/all.yaml").read_text() == "kind: IPPolicy\nname: office\nspec: {}\n"


def test_items_of_for_each_without_a_unique_field_are_named_with_their_ids(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    text = "kind: TCPEdge\nname: db-${{ each.key }}\nfor_each: [one]\nspec: {}\n"
    on_sandbox.write("manifests/all.yaml", text)
    assert on_sandbox("apply", "-y", "-q").code == 0
    (edge,) = sandbox.get("/edges/tcp")["tcp_edges"]
    forgotten = on_sandbox("forget", "TCPEdge/*")
    assert f"`reconciler adopt TCPEdge/db-one --id {edge['id']}` adopts it in another stack" in forgotten.err
    written = text.replace("key }}\n", "key }}\nensure: forgotten\n")
    assert (on_sandbox.root / "manifests/all.yaml").read_text() == written
