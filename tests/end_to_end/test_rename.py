"""`reconciler rename`: the name, `moved` and every reference change; comments do not, and the plan is a move only."""

from __future__ import annotations

import json

import pytest

from reconciler.cli.terminal import exit_codes
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

SETTINGS = """\
version: 1
stack: prod
limits: {requests_per_minute: 100000}
defaults:
  TLSEdge:
    lifecycle: {protect: true}  # IPPolicy/office-2 is another policy
drift:
  ignore:
  - match: IPPolicy/office.description
    until: "2099-01-01"
    reason: changed by hand
"""
POLICY = """\
# the office
kind: IPPolicy
name:   office   # the first
spec:
    description: "The  office"
---
kind: IPPolicy
name: office-2
spec: {description: second}
"""
EDGES = """\
kind: ReservedDomain
name: pay
spec: {domain: pay.example.com}
---
kind: TLSEdge
name: pay
spec:
  description: "for ${{ IPPolicy/office }} and $${{ IPPolicy/office }}"   # kept
  hostports: ["pay.example.com:443"]
  ip_restriction:
    ip_policy_ids:
      -   ref: IPPolicy/office     # a comment
      - {ref: 'IPPolicy/office-2'}
---
kind: IPPolicyRule
for_each:
  a: {cidr: 10.0.0.0/8}
  b: {cidr: 10.1.0.0/16}
name: office-${{ each.key }}
spec:
  action: allow
  cidr: ${{ each.value.cidr }}
  ip_policy_id: {ref: IPPolicy/office}
"""
STAGING = """\
IPPolicy/office:   # smaller
  spec: {description: staging}
TLSEdge/pay:
  spec:
    ip_restriction:
      ip_policy_ids: [{ref: IPPolicy/office}]
"""


@pytest.fixture
def shop(on_sandbox: Project) -> Project:
    on_sandbox.write("reconciler.yaml", SETTINGS)
    on_sandbox.write("manifests/policies.yaml", POLICY)
    on_sandbox.write("manifests/edges.yaml", EDGES)
    on_sandbox.write("environments/staging.yaml", STAGING)
    return on_sandbox


def read(project: Project, *names: str) -> list[str]:
    return [(project.root / name).read_text() for name in names]


FILES = ("manifests/policies.yaml", "manifests/edges.yaml", "environments/staging.yaml", "reconciler.yaml")


def test_every_reference_is_renamed_and_nothing_else_changes(shop: Project) -> None:
    answer = shop("rename", "IPPolicy/office", "IPPolicy/hq")
    assert answer.code == 0, answer
    policies, edges, staging, settings = read(shop, *FILES)
    assert policies == POLICY.replace("name:   office   #", "name:   hq   #").replace(
        "# the first\n", "# the first\nmoved: [IPPolicy/office]\n"
    )
    assert edges == (
        EDGES.replace("for ${{ IPPolicy/office }}", "for ${{ IPPolicy/hq }}")
        .replace("-   ref: IPPolicy/office ", "-   ref: IPPolicy/hq ")
        .replace("{ref: IPPolicy/office}", "{ref: IPPolicy/hq}")
    )
    assert staging == STAGING.replace("IPPolicy/office", "IPPolicy/hq")
    assert settings == SETTINGS.replace("IPPolicy/office.desc", "IPPolicy/hq.desc")
    assert "+moved: [IPPolicy/office]" in answer.out
    assert answer.err == "note: manifests/edges.yaml:8 still mentions IPPolicy/office\n"


def test_the_plan_after_it_is_a_move_only(shop: Project, sandbox: Sandbox) -> None:
    assert shop("apply", "-y", "--quiet").code == 0
    assert shop("rename", "IPPolicy/office", "IPPolicy/hq").code == 0
    assert shop("validate").code == 0
    plan = json.loads(shop("plan", "--format", "json").out)
    assert [(change["address"], change["action"]) for change in plan["changes"]] == [("IPPolicy/hq", "move")]
    sandbox.forget_log()
    assert shop("apply", "-y", "--quiet").out == "Applied: 1 moved.\n"
    assert len(sandbox.calls()) == 1
    assert shop("plan", "--detailed-exitcode").code == 0
    assert shop("rename", "IPPolicy/hq", "IPPolicy/office").code == 0
    assert "moved: [IPPolicy/hq]" in read(shop, FILES[0])[0]
    assert shop("apply", "-y", "--quiet").out == "Applied: 1 moved.\n"


def test_the_plan_after_the_rename_of_an_instance_moves_all_of_its_resources(on_sandbox: Project) -> None:
    lan = "{cidr: 192.0.2.0/24, action: allow}"
    on_sandbox.write(
        "components/site.yaml", f"inputs: {{}}\n---\nkind: IPPolicy\nname: p\nspec: {{}}\nrules: {{lan: {lan}}}\n"
    )
    on_sandbox.write("manifests/all.yaml", "component: site\nname: ${{ each.key }}\nfor_each: [rome, oslo]\n")
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    assert on_sandbox("rename", "site/oslo", "site/bern").code == 0
    assert on_sandbox("rename", "IPPolicyRule/rome-p-lan", "IPPolicyRule/rome-p-net").code == 0
    plan = json.loads(on_sandbox("plan", "--format", "json").out)
    assert {(change["address"], change["action"]) for change in plan["changes"]} == {
        ("IPPolicy/bern-p", "move"), ("IPPolicyRule/bern-p-net", "move"), ("IPPolicyRule/rome-p-net", "move")
    }  # fmt: skip


def test_a_dry_run_writes_nothing(shop: Project) -> None:
    before = read(shop, *FILES)
    answer = shop("rename", "TLSEdge/pay", "TLSEdge/payments", "--dry-run")
    assert (answer.code, read(shop, *FILES)) == (0, before)
    assert "+TLSEdge/payments:" in answer.out


def test_json_and_names_that_need_quotes(on_sandbox: Project) -> None:
    on_sandbox.declare(
        resource("IPPolicy", "a", description="a"), resource("IPPolicy", "b", description="${{ IPPolicy/a }}")
    )
    assert on_sandbox("rename", "IPPolicy/a", "IPPolicy/yes").code == 0
    assert on_sandbox("validate").code == 0
    on_sandbox.write("manifests/all.yaml", "kind: IPPolicy\nname: a\nmoved: IPPolicy/older\nspec: {}")
    assert on_sandbox("rename", "IPPolicy/a", "IPPolicy/123").code == 0
    (text,) = read(on_sandbox, "manifests/all.yaml")
    assert text == 'kind: IPPolicy\nname: "123"\nmoved:\n  - IPPolicy/older\n  - IPPolicy/a\nspec: {}'


def test_a_name_with_a_dot_is_not_an_output(on_sandbox: Project) -> None:
    documents = (
        "kind: IPPolicy\nname: a\nspec: {}\n---\nkind: IPPolicy\nname: a.id\nspec: {}\n---\nkind: TLSEdge\nname: e\n"
    )
    spec = "spec:\n  ip_restriction:\n    ip_policy_ids: [{ref: IPPolicy/a}, {ref: IPPolicy/a.id}]\n"
    on_sandbox.write("manifests/all.yaml", documents + spec)
    assert on_sandbox("rename", "IPPolicy/a", "IPPolicy/b").code == 0
    assert "[{ref: IPPolicy/b}, {ref: IPPolicy/a.id}]" in read(on_sandbox, "manifests/all.yaml")[0]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("IPPolicy/offic", "IPPolicy/x", "IPPolicy/offic is not declared; did you mean IPPolicy/office?"),
        ("IPPolicy/office", "IPPolicy/office-2", "IPPolicy/office-2 is already declared"),
        ("IPPolicy/office", "TLSEdge/office", "write IPPolicy/office"),
        ("IPPolicy/office", "IPPolicy/office", "has this name already"),
        ("IPPolicyRule/office-a", "IPPolicyRule/x", "is declared with for_each"),
        ("IPPolicy/office", "IPPolicy/a b", "not a valid name"),
    ],
)
def test_a_rename_that_is_not_possible_is_refused(shop: Project, old: str, new: str, problem: str) -> None:
    before = read(shop, *FILES)
    answer = shop("rename", old, new)
    assert answer.code in (exit_codes.ERROR, exit_codes.USAGE)
    assert problem in answer.err
    assert read(shop, *FILES) == before


def test_invalid_manifests_are_reported_first(shop: Project) -> None:
    shop.write("manifests/broken.yaml", "kind: IPPolicy\nname: [\n")
    answer = shop("rename", "IPPolicy/office", "IPPolicy/hq")
    assert answer.code == exit_codes.ERROR
    assert "manifests/broken.yaml:" in answer.err


def test_text_in_the_form_of_a_reference_stops_the_rename(shop: Project) -> None:
    policy = """\
kind: CloudEndpoint
name: a
spec:
  url: https://pay.example.com
  traffic_policy:
    on_http_request:
    - actions:
      - type: add-headers
        config: {headers: {x: {ref: IPPolicy/office}}}
"""
    shop.write("manifests/endpoint.yaml", policy)
    assert shop("validate").code == 0
    answer = shop("rename", "IPPolicy/office", "IPPolicy/hq")
    assert "renaming IPPolicy/office would also change CloudEndpoint/a; rename it by hand" in answer.err
