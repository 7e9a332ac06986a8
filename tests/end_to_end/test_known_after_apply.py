"""Values that only the platform can say, used by other resources in the same apply."""

from __future__ import annotations

import json

import pytest

from reconciler.model.value import digest
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, resource
from tests.kinds import pems

ODD = 'x", "evil": "O\'Brien\\ \n ü'


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize(
    ("written", "config"),
    [
        ("cn ${{ CertificateAuthority/ca.subject_common_name }}!", f"cn {ODD}!"),
        ("${{ CertificateAuthority/ca.subject_common_name }}", ODD),
        ("${{ CertificateAuthority/ca.key_usages }}", []),
        ("${{ ReservedDomain/app.is_dev }}", False),
        ("dev: ${{ ReservedDomain/app.is_dev }}", "dev: false"),
    ],
)
def test_a_computed_attribute_in_an_inline_policy_is_only_a_value(
    written: str, config: object, by_file: bool, on_sandbox: Project, sandbox: Sandbox
) -> None:
    def policy(config: object) -> dict[str, object]:
        return {"on_http_request": [{"actions": [{"type": "log", "config": {"metadata": {"x": config}}}]}]}

    on_sandbox.declare(
        resource("ReservedDomain", "app", domain="app.example.com"),
        resource("CertificateAuthority", "ca", ca_pem=pems.certificate(ODD, ca=True)),
        resource("CloudEndpoint", "app", url="https://app.example.com", traffic_policy=policy(written)),
    )
    if by_file:
        on_sandbox("plan", "--out", "made.plan")
    assert on_sandbox("apply", *(["made.plan"] if by_file else []), "-y", "--quiet").code == 0
    (endpoint,) = sandbox.get("/endpoints")["endpoints"]
    assert json.loads(endpoint["traffic_policy"]) == policy(config)
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_a_computed_attribute_of_a_domain_is_the_value_of_a_secret_in_one_apply(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    """Nobody can read the value back: what was written is known by its digest alone."""
    on_sandbox.declare(
        resource("ReservedDomain", "pay", domain="pay.example.com"),
        resource("Vault", "pay", name="pay"),
        resource(
            "Secret",
            "target",
            vault_id={"ref": "Vault/pay"},
            name="target",
            value={"ref": "ReservedDomain/pay.cname_target"},
        ),
    )
    assert on_sandbox("apply", "-y", "--quiet") == Output(0, "Applied: 3 created.\n", "")
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
    (secret,) = sandbox.get("/vault_secrets")["secrets"]
    (domain,) = sandbox.get("/reserved_domains")["reserved_domains"]
    assert digest(domain["cname_target"]) not in secret["metadata"]
