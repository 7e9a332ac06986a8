"""Wrong ids and expressions of Terraform in manifests: the problems that `validate` reports, with their positions."""

from __future__ import annotations

import pytest

from tests.harness.project import Shell


def rule(id: str) -> str:
    return f"kind: IPPolicyRule\nname: r\nspec: {{ip_policy_id: '{id}', cidr: 10.0.0.0/8, action: allow}}\n"


@pytest.mark.parametrize(
    ("id", "line"),
    [
        ("edgtls_1", "edgtls_1 is an id of TLSEdge; ids of this field begin with ipp_"),
        ("TLSEdge/payments", "expected an id, found the address TLSEdge/payments; write {ref: TLSEdge/payments}"),
        ("ngrok_ip_policy.office.id", "ngrok_ip_policy.office.id is an expression of Terraform; "
         "write {ref: IPPolicy/office}"),
        ("${ngrok_ip_policy.office.id}", "${ngrok_ip_policy.office.id} is an expression of Terraform; "
         "write {ref: IPPolicy/office}"),
        ("${var.policy}", "${var.policy} is an expression of Terraform; "
         "write ${{ var.policy }}, with policy under variables: in reconciler.yaml"),
        ("${each.value.id}", "${each.value.id} is an expression of Terraform; "
         "write ${{ each.value.id }}, in a manifest with for_each"),
        ("${{ ngrok_ip_policy.office.id }}", "'ngrok_ip_policy.office.id' is not a reference; "
         "write {ref: IPPolicy/office}"),
        ("${{ local.policy }}", "'local.policy' is not a reference; "
         "write ${{ var.policy }}, with policy under variables: in reconciler.yaml"),
    ],
)  # fmt: skip
def test_a_wrong_id_is_an_error_at_its_position(shell: Shell, id: str, line: str) -> None:
    shell.write("manifests/r.yaml", rule(id))
    result = shell("validate")
    assert (result.code, result.err.splitlines()[0]) == (
        1,
        f"manifests/r.yaml:3:22: IPPolicyRule/r.ip_policy_id: {line}",
    )


@pytest.mark.parametrize(
    ("id", "warns"), [("policy-1", True), ("ipp_", True), ("ipp_2", False), ("xyz_3", True), ("${ipp}", True)]
)
def test_an_unusual_id_is_a_warning_since_prefixes_are_not_guaranteed(shell: Shell, id: str, warns: bool) -> None:
    shell.write("manifests/r.yaml", rule(id))
    result = shell("validate")
    assert result.code == 0
    assert result.err == (
        f"manifests/r.yaml:3:22: warning: IPPolicyRule/r.ip_policy_id: {id} does not look like an id; "
        "ids of this field begin with ipp_\n1 warning\n"
        if warns
        else ""
    )


@pytest.mark.parametrize("owner", ["usr_1", "bot_1"])
def test_a_user_may_own_a_credential(shell: Shell, owner: str) -> None:
    shell.write("manifests/r.yaml", "kind: SSHUserCertificate\nname: a\nensure: absent\nspec: {}\n")
    shell.write("manifests/r.yaml", f"kind: APIKey\nname: a\nid: ak_1\nspec: {{owner_id: {owner}}}\n")
    assert "does not look like an id" not in shell("validate").err


@pytest.mark.parametrize("id", ["ipp_1", "tls_1", "edgtls_"])
def test_an_id_of_a_manifest_must_have_the_prefix_of_its_kind(shell: Shell, id: str) -> None:
    shell.write("manifests/r.yaml", f"kind: TLSEdge\nname: a\nid: {id}\nspec: {{}}\n")
    line = shell("validate").err.splitlines()[0]
    assert line == f"manifests/r.yaml:3:5: TLSEdge/a.id: {id!r} is not an id of TLSEdge; its ids begin with edgtls_"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("from ${var.region}", "write ${{ var.region }}, with region under variables: in reconciler.yaml"),
        ("${local.name}", "write ${{ var.name }}, with name under variables: in reconciler.yaml"),
        ("a-${each.key}-b", "write ${{ each.key }}, in a manifest with for_each"),
        ("edge ${ngrok_tls_edge.pay.id}", "write ${{ TLSEdge/pay }}"),
        ("${ngrok_reserved_domain.pay.cname_target}", "write ${{ ReservedDomain/pay.cname_target }}"),
        ("${ngrok_tls_edge.pay[0].id}", "write {ref: TLSEdge/pay}"),
        ("${data.ngrok_ip_policy.office.id}",
         "write the id of the existing object, or declare it and write {ref: IPPolicy/office}"),
    ],
)  # fmt: skip
def test_a_terraform_expression_in_a_text_is_a_warning(shell: Shell, text: str, remedy: str) -> None:
    shell.write("manifests/r.yaml", f"kind: IPPolicy\nname: p\nspec: {{description: '{text}'}}\n")
    result = shell("validate")
    assert result.code == 0
    assert result.err.splitlines()[0] == (
        "manifests/r.yaml:3:21: warning: IPPolicy/p.description: an expression of Terraform, which is sent as it is; "
        + remedy
    )


def test_for_each_in_the_syntax_of_terraform_is_an_error_with_the_right_syntax(shell: Shell) -> None:
    shell.write("manifests/r.yaml", "kind: IPPolicy\nname: p-${{ each.key }}\nfor_each: ${var.offices}\nspec: {}\n")
    line = shell("validate").err.splitlines()[0]
    assert line.startswith(
        "manifests/r.yaml:3:11: IPPolicy/p-${{ each.key }}.for_each: expected a list or a map, found"
    )
    assert line.endswith("write ${{ var.offices }}, with offices under variables: in reconciler.yaml")


def test_a_terraform_expression_in_a_strict_field_is_one_error_with_the_right_syntax(shell: Shell) -> None:
    """The remedy of the field itself would repeat the expression: `write ${var.office}/32`."""
    shell.write(
        "manifests/r.yaml",
        "kind: IPPolicyRule\nname: r\nspec: {ip_policy_id: ipp_1, cidr: '${var.office}', action: allow}\n",
    )
    result = shell("validate")
    assert result.code == 1
    assert [line for line in result.err.splitlines() if ".cidr" in line] == [
        "manifests/r.yaml:3:35: IPPolicyRule/r.cidr: an expression of Terraform; "
        "write ${{ var.office }}, with office under variables: in reconciler.yaml"
    ]
