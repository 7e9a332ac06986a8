"""`accept`: what somebody changed on the platform is written into the manifests, and nothing else is."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project

MANIFEST = """\
# Who may come in.
kind: IPPolicy
name: office
spec:
  description: Office  # as the sign at the door says
---
kind: IPPolicy
name: home
spec: {description: Home}
---
kind: ReservedDomain
name: pay
spec:
  domain: pay.example.com
---
kind: TLSEdge
name: pay
spec:
  # one line each
  hostports:
    - pay.example.com:443  # the shop

  tls_termination: {min_version: "1.2"}  # see the audit
  ip_restriction:
    ip_policy_ids:
      - ref: IPPolicy/office
"""


@pytest.fixture
def applied(on_sandbox: Project, sandbox: Sandbox) -> Project:
    on_sandbox.write("manifests/all.yaml", MANIFEST)
    assert on_sandbox("apply", "-y", "-q").code == 0
    sandbox.forget_log()
    return on_sandbox


def text(project: Project) -> str:
    return (project.root / "manifests/all.yaml").read_text(encoding="utf-8")


def edge(sandbox: Sandbox, **fields: Any) -> None:
    (found,) = sandbox.get("/edges/tls")["tls_edges"]
    sandbox.patch(f"/edges/tls/{found['id']}", fields)


def policy(sandbox: Sandbox, was: str, **fields: Any) -> str:
    found = next(policy for policy in sandbox.get("/ip_policies")["ip_policies"] if policy["description"] == was)
    sandbox.patch(f"/ip_policies/{found['id']}", fields)
    return str(found["id"])


def test_without_drift_nothing_is_written(applied: Project) -> None:
    result = applied("accept")
    assert (result.code, result.out, result.err) == (0, "", "Accepted 0 values.\n")
    assert text(applied) == MANIFEST


def test_a_value_is_patched_in_its_place_and_the_patch_is_printed(applied: Project, sandbox: Sandbox) -> None:
    policy(sandbox, "Office", description="The new office")
    edge(sandbox, tls_termination={"terminate_at": "edge", "min_version": "1.3"})
    result = applied("accept")
    assert (result.code, result.err) == (0, "Accepted 2 values in 1 file.\n")
    assert text(applied) == MANIFEST.replace("description: Office ", "description: The new office ").replace(
        "1.2", "1.3"
    )
    assert [line for line in result.out.splitlines() if line[0] in "+-"] == [
        "--- a/manifests/all.yaml",
        "+++ b/manifests/all.yaml",
        "-  description: Office  # as the sign at the door says",
        "+  description: The new office  # as the sign at the door says",
        '-  tls_termination: {min_version: "1.2"}  # see the audit',
        '+  tls_termination: {min_version: "1.3"}  # see the audit',
    ]


@pytest.mark.parametrize(
    "written", [MANIFEST, MANIFEST.replace("\n", "\r\n"), MANIFEST.rstrip("\n")], ids=["LF", "CRLF", "no last newline"]
)
def test_the_printed_patch_applies(applied: Project, sandbox: Sandbox, written: str) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    file = applied.root / "manifests/all.yaml"
    file.write_bytes(written.encode())
    edge(sandbox, tls_termination={"terminate_at": "edge", "min_version": "1.3"})
    result = applied("accept")
    file.write_bytes(written.encode())
    subprocess.run(["git", "apply"], input=result.out.encode(), cwd=applied.root, check=True)
    assert file.read_bytes() == written.replace("1.2", "1.3").encode()


def test_unchanged_items_of_a_list_keep_their_comments(applied: Project, sandbox: Sandbox) -> None:
    sandbox.post("/reserved_domains", {"domain": "api.example.com"})
    edge(sandbox, hostports=["api.example.com:443", "pay.example.com:443"])
    applied("accept")
    assert text(applied) == MANIFEST.replace("# the shop\n", "# the shop\n    - api.example.com:443\n").replace(
        "    - api.example.com:443\n", '    - "api.example.com:443"\n'
    )


def test_a_module_that_was_removed_or_added_is_so_in_the_manifest(applied: Project, sandbox: Sandbox) -> None:
    (found,) = sandbox.get("/edges/tls")["tls_edges"]
    sandbox.delete(f"/edges/tls/{found['id']}/ip_restriction")
    rules = '{"on_tcp_connect": [{"actions": [{"type": "deny"}]}]}'
    edge(sandbox, traffic_policy={"enabled": True, "value": rules})
    result = applied("accept")
    assert result.code == 0, result
    kept, _, _ = MANIFEST.partition("  ip_restriction:")
    added = "  traffic_policy:\n    value:\n      on_tcp_connect:\n        - actions:\n            - type: deny\n"
    assert text(applied) == kept + added


def test_a_reference_follows_to_what_is_declared(applied: Project, sandbox: Sandbox) -> None:
    home = policy(sandbox, "Home", description="Home")
    edge(sandbox, ip_restriction={"enabled": True, "ip_policy_ids": [home]})
    assert applied("accept").code == 0
    assert text(applied) == MANIFEST.replace("- ref: IPPolicy/office", "- ref: IPPolicy/home")


def test_a_reference_to_an_undeclared_object_is_not_accepted(applied: Project, sandbox: Sandbox) -> None:
    other = sandbox.post("/ip_policies", {"description": "other"})["id"]
    edge(sandbox, ip_restriction={"enabled": True, "ip_policy_ids": [other]})
    result = applied("accept")
    assert (result.code, text(applied)) == (2, MANIFEST)
    place = "TLSEdge/pay.ip_restriction.ip_policy_ids"
    assert f"not accepted: {place}: it refers to {other}, which is not declared" in result.err


def test_only_what_is_named_is_accepted(applied: Project, sandbox: Sandbox) -> None:
    policy(sandbox, "Office", description="The new office")
    edge(sandbox, tls_termination={"terminate_at": "edge", "min_version": "1.3"})
    assert applied("accept", "TLSEdge/*").code == 2
    assert text(applied) == MANIFEST.replace("1.2", "1.3")


def test_a_field_changed_in_git_too_is_accepted_only_with_both(applied: Project, sandbox: Sandbox) -> None:
    policy(sandbox, "Office", description="The new office")
    ours = MANIFEST.replace("Office  #", "Bureau  #")
    applied.write("manifests/all.yaml", ours)
    result = applied("accept")
    assert (result.code, text(applied)) == (2, ours)
    assert "Git changed it too; --both takes the platform's value" in result.err
    assert applied("accept", "--both").code == 0
    assert text(applied) == MANIFEST.replace("Office  #", "The new office  #")


def test_a_field_changed_only_in_git_is_not_accepted(applied: Project) -> None:
    ours = MANIFEST.replace("Office  #", "Bureau  #")
    applied.write("manifests/all.yaml", ours)
    assert (applied("accept", "--both").code, text(applied)) == (2, ours)


def test_a_value_that_is_an_expression_is_not_accepted(applied: Project, sandbox: Sandbox) -> None:
    applied.write("reconciler.yaml", "version: 1\nstack: prod\nvariables: {sign: Office}\n")
    ours = MANIFEST.replace("description: Office  #", "description: ${{ var.sign }}  #")
    applied.write("manifests/all.yaml", ours)
    policy(sandbox, "Office", description="The new office")
    result = applied("accept")
    assert (result.code, text(applied)) == (2, ours)
    assert result.err.startswith(
        "not accepted: IPPolicy/office.description: "
        "manifests/all.yaml:5:16: the value is the expression ${{ … }}; edit the manifest\n"
    )


def test_an_object_deleted_on_the_platform_is_reported_and_not_accepted(applied: Project, sandbox: Sandbox) -> None:
    (found,) = sandbox.get("/reserved_domains")["reserved_domains"]
    (its_edge,) = sandbox.get("/edges/tls")["tls_edges"]
    sandbox.delete(f"/edges/tls/{its_edge['id']}")
    sandbox.delete(f"/reserved_domains/{found['id']}")
    result = applied("accept")
    assert (result.code, text(applied)) == (2, MANIFEST)
    assert (
        "ReservedDomain/pay: it was deleted on the platform; remove its manifest, or apply to create it again"
        in result.err
    )


def test_control_characters_of_a_live_value_are_not_printed(applied: Project, sandbox: Sandbox) -> None:
    policy(sandbox, "Office", description="a\x1b[2Jb\n---\nkind: x")
    result = applied("accept")
    assert (result.code, "\x1b" in result.out + text(applied)) == (0, False)
    assert applied("drift").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("drift", "IPPolicy/office", "--record"), "--record checks the whole stack; select no resources"),
        (("drift", "IPPolicy/office", "--issue"), "--issue checks the whole stack; select no resources"),
        (("drift", "--both"), "no such option '--both'"),
        (("accept", "--record"), "no such option '--record'"),
        (("accept", "--format", "json"), "no such option '--format'"),
        (("accept", "--unmanaged"), "no such option '--unmanaged'"),
    ],
)
def test_invalid_arguments_of_drift_and_accept_are_a_usage_error(
    project: Project, words: tuple[str, ...], message: str
) -> None:
    answer = project(*words)
    assert (answer.code, answer.err.startswith(f"error: {message}")) == (64, True)
