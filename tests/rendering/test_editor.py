"""Diagnostics of editors: the schemas in a real yaml-language-server, found by the line that `fmt` writes.

`make test-editor` installs the server; without it these tests are deselected.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.harness import yaml_server
from tests.harness.yaml_server import Server

pytestmark = pytest.mark.editor
QUICKSTART = Path(__file__).parents[2] / "examples/quickstart/manifests"

GOOD = """\
kind: IPPolicy
name: office
spec:
  description: Office in ${{ var.region }}
---
kind: IPPolicyRule
name: "${{ each.key }}"
for_each:
  berlin: {cidr: 203.0.113.0/24}
  oslo: {cidr: 198.51.100.0/24}
spec:
  ip_policy_id: {ref: IPPolicy/office}
  cidr: ${{ each.value.cidr }}
  action: allow
---
kind: TLSEdge
name: "pay-${{ each.key }}"
for_each: ${{ var.regions }}
spec:
  hostports: ${{ var.hostports }}
  description: {from_env: TEXT}
  backend: {backend_id: {ref: "FailoverBackend/pay-${{ each.key }}"}}
  tls_termination: ${{ each.value.tls }}
"""
BAD = """\
kind: TLSEdge
name: pay
spec:
  hostports: pay.example.com:443
  descripton: x
  tls_termination: {terminate_at: nowhere}
---
kind: IPPolicyRule
name: a
spec:
  cidr: [1]
  action: allow
---
kind: TLSEdg
name: pay
"""
REFERENCES = """\
kind: IPPolicyRule
name: oslo-lan
spec:
  ip_policy_id: {ref: IPPolicy/ofice}
  cidr: 203.0.113.0/24
  action: allow
---
kind: IPPolicyRule
name: bergen-lan
spec:
  ip_policy_id: {ref: IPPolicy/office}
  cidr: 203.0.113.0/24
  action: allow
"""
OFFICE = """\
kind: IPPolicy
name: office
spec: {description: a}
---
kind: IPPolicy
name: oslo.two
spec: {description: b}
"""
POLICY = "name: described\nwhen: change.action == 'create'\nrequire: 'true'\nmesage: x\n"
ENVIRONMENT = """\
stack: shop-prod
platform: {base_url: "https://api.example.com", api_key: {from_env: KEY}}
guards: {max_delete_percent: 10}
variables: {region: us, regions: [a, b]}
TLSEdge/pay-a:
  spec: {hostports: ["a.example.com:443"], backend: null}
  lifecycle: {protect: true}
IPPolicy/office: null
"""
BAD_ENVIRONMENT = """\
stak: shop
guards: {max_delete_percent: lots}
TLSEdge/pay: {spec: {hostport: []}}
TLSEdg/pay: {}
"""
PROJECT = """\
version: 1
stack: shop
variables: {region: eu, regions: {type: list}, size: {type: integer, default: 3}}
defaults: {TLSEdge: {spec: {description: made by Git}, lifecycle: {protect: true}}}
"""
WRONG_PROJECT = """\
stack: shop
defaults: {TLSEdge: {spec: {hostport: []}}}
limits: {concurrency: 0}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    written = {
        "reconciler.yaml": PROJECT,
        "manifests/good.yaml": GOOD,
        "manifests/bad.yaml": BAD,
        "environments/prod.yaml": ENVIRONMENT,
        "environments/bad.yaml": BAD_ENVIRONMENT,
        "wrong.yaml": f"# yaml-language-server: $schema=.reconciler/schemas/project.json\n{WRONG_PROJECT}",
        **{f"manifests/quickstart/{path.name}": path.read_text() for path in sorted(QUICKSTART.glob("*.yaml"))},
    }
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert main(["schema", "--all", str(root / ".reconciler/schemas")]) == 0
    assert main(["fmt", "--modeline", "--project", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a project whose schemas have the names of its resources."""
    root = tmp_path_factory.mktemp("named")
    written = {
        "reconciler.yaml": "version: 1\nstack: shop\n",
        "manifests/office.yaml": OFFICE,
        "policies/rules.yaml": POLICY,
    }
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "policies/rules.yaml").write_text("")
    assert main(["schema", "--all", str(root / ".reconciler/schemas"), "--project", str(root)]) == 0
    (root / "policies/rules.yaml").write_text(POLICY)
    (root / "manifests/rules.yaml").write_text(REFERENCES)
    assert main(["fmt", "--modeline", "--project", str(root)]) == 0
    command = yaml_server.program()
    assert command is not None
    with Server(command, root) as running:
        yield running


def test_a_misspelt_reference_is_marked_and_names_are_completed(named: Server) -> None:
    assert [text.partition(" ")[0] for text in named.diagnostics("manifests/rules.yaml")] == ["5:23:"]
    assert {"IPPolicy/office", "IPPolicy/oslo.two"} <= named.completions("manifests/rules.yaml", 13, 23)


def test_an_unknown_key_of_a_policy_is_marked(named: Server) -> None:
    assert "5:1: Property mesage is not allowed." in named.diagnostics("policies/rules.yaml")


@pytest.fixture(scope="module")
def server(project: Path) -> Iterator[Server]:
    command = yaml_server.program()
    assert command is not None, "RECONCILER_YAML_SERVER names no folder of node modules; run make test-editor"
    with Server(command, project) as running:
        yield running


@pytest.mark.parametrize("name", ["reconciler.yaml", "manifests/good.yaml", "environments/prod.yaml"])
def test_a_valid_file_has_no_diagnostics(server: Server, name: str) -> None:
    assert server.diagnostics(name) == []


def test_the_manifests_of_the_quickstart_have_no_diagnostics(server: Server, project: Path) -> None:
    names = [path.relative_to(project).as_posix() for path in sorted((project / "manifests/quickstart").glob("*"))]
    assert names
    assert {name: server.diagnostics(name) for name in names} == {name: [] for name in names}


def test_each_document_of_an_invalid_manifest_has_diagnostics_at_its_lines(server: Server) -> None:
    diagnostics = server.diagnostics("manifests/bad.yaml")
    assert [
        diagnostic.partition(" Valid values")[0]
        for diagnostic in sorted(diagnostics, key=lambda diagnostic: int(diagnostic.split(":")[0]))
    ] == [
        '5:14: Incorrect type. Expected "array".',
        "6:3: Property descripton is not allowed.",
        "7:35: Value is not accepted.",
        '12:1: Missing property "ip_policy_id".',
        '13:9: Incorrect type. Expected "string | object(Manifest)".',
        "17:7: Value is not accepted.",
    ]


def test_an_invalid_environment_has_diagnostics_at_its_lines(server: Server) -> None:
    texts = [diagnostic.partition(". Expected")[0] for diagnostic in server.diagnostics("environments/bad.yaml")]
    assert sorted(texts) == [
        "2:1: Property stak is not allowed.",
        "3:30: Incorrect type",
        "4:22: Property hostport is not allowed.",
        "5:1: Property TLSEdg/pay is not allowed.",
    ]


def test_an_invalid_project_file_has_diagnostics_at_its_lines(server: Server) -> None:
    texts = [diagnostic.partition(" of 1")[0] for diagnostic in server.diagnostics("wrong.yaml")]
    assert sorted(texts) == ["3:29: Property hostport is not allowed.", "4:23: Value is below the minimum"]


def test_fields_are_completed_and_explained(server: Server) -> None:
    offered = server.completions("manifests/good.yaml", 15, 3)
    assert {"cidr", "description"} <= offered
    assert "hostports" not in offered
    assert "Whether traffic from the network is allowed or denied." in server.hover("manifests/good.yaml", 16, 4)
