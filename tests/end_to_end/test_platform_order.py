"""Changes that the platform accepts in one order only, applied to the sandbox: no call is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource
from tests.kinds import pems
from tests.sandbox.account import POLICY

Document = dict[str, Any]

KEPT = resource("IPPolicy", "kept")  # so that a project is never emptied by accident


def ref(target: str) -> dict[str, str]:
    return {"ref": target}


def become(project: Project, sandbox: Sandbox, *declared: Document) -> list[str]:
    """Applies these manifests and returns the calls in order; none is refused, and the next plan has no changes."""
    project.declare(KEPT, *declared)
    sandbox.forget_log()
    result = project("apply", "-y", "--quiet", *_APPROVALS)
    log = sandbox.log()
    assert (result.code, [request for request in log if request["status"] >= 400]) == (0, []), result
    again = project("plan", "--quiet")
    assert (again.code, again.err) == (0, ""), again
    return [f"{request['method']} {request['path']}" for request in log if request["method"] != "GET"]


_APPROVALS = [
    word for kind in ("ReservedDomain", "ReservedAddress", "BotUser") for word in ("--allow", f"delete:{kind}=3")
]

RULE = resource("IPPolicyRule", "office", ip_policy_id=ref("IPPolicy/office"), cidr="10.0.0.0/8", action="allow")
DOMAIN = resource("ReservedDomain", "pay", domain="pay.example.com")
GROUP = resource("TunnelGroupBackend", "pods", labels={"app": "pay"})
AUTHORITY = resource("SSHCertificateAuthority", "hosts")
DESTINATION = resource("EventDestination", "audit", target={"metrics": {"api_key": "k", "service": "s"}})

# Each needs the ones before it: created in this order, deleted in the reverse order.
CHAINS: dict[str, list[Document]] = {
    "policy, rule, restriction": [
        resource("IPPolicy", "office"),
        RULE,
        resource("IPRestriction", "dashboard", type="dashboard", ip_policy_ids=[ref("IPPolicy/office")], enforced=True),
    ],
    "domain, endpoint": [
        DOMAIN,
        resource("CloudEndpoint", "pay", url="https://pay.example.com", traffic_policy=POLICY),
    ],
    "domain, TLS edge": [DOMAIN, resource("TLSEdge", "pay", hostports=["pay.example.com:443"])],
    "domain, HTTPS edge, route": [
        DOMAIN,
        resource("HTTPSEdge", "pay", hostports=["pay.example.com:443"]),
        resource("HTTPSEdgeRoute", "pay", edge_id=ref("HTTPSEdge/pay"), match_type="path_prefix", match="/"),
    ],
    "address, TCP edge": [
        resource("ReservedAddress", "ledger"),
        resource("TCPEdge", "ledger", hostports=["${{ ReservedAddress/ledger.addr }}"]),
    ],
    "backend, failover, edge": [
        GROUP,
        resource("FailoverBackend", "pay", backends=[ref("TunnelGroupBackend/pods")]),
        resource("TLSEdge", "pay", backend={"backend_id": ref("FailoverBackend/pay")}),
    ],
    "SSH authority, certificate": [
        AUTHORITY,
        resource(
            "SSHHostCertificate",
            "bastion",
            ssh_certificate_authority_id=ref("SSHCertificateAuthority/hosts"),
            public_key=pems.ssh_key(),
        ),
    ],
    "destination, subscription, source": [
        DESTINATION,
        resource("EventSubscription", "audit", destination_ids=[ref("EventDestination/audit")]),
        resource("EventSource", "made", subscription_id=ref("EventSubscription/audit"), type="ip_policy_created.v0"),
    ],
    "vault, secret": [
        resource("Vault", "payments", name="payments"),
        resource("Secret", "stripe", vault_id=ref("Vault/payments"), name="stripe", value={"from_env": "PAY_KEY"}),
    ],
    "authority, edge": [
        resource("CertificateAuthority", "partners", ca_pem=pems.certificate("root", ca=True)),
        resource("TLSEdge", "pay", mutual_tls={"certificate_authority_ids": [ref("CertificateAuthority/partners")]}),
    ],
    "policy, rule, edge": [
        resource("IPPolicy", "office"),
        RULE,
        resource("TCPEdge", "ledger", ip_restriction={"ip_policy_ids": [ref("IPPolicy/office")]}),
    ],
}


def _collections(calls: list[str], method: str) -> list[str]:
    return [call.split("/", 1)[1].partition("/")[0] for call in calls if call.startswith(method)]


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_chain_is_created_from_its_start_and_deleted_from_its_end(
    on_sandbox: Project, sandbox: Sandbox, chain: list[Document]
) -> None:
    on_sandbox.environ["PAY_KEY"] = pems.private_key("leaf")
    become(on_sandbox, sandbox, *chain)
    become(on_sandbox, sandbox)


def test_a_restriction_is_created_after_the_rules_of_its_policy_and_deleted_before(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    chain = CHAINS["policy, rule, restriction"]
    assert _collections(become(on_sandbox, sandbox, *chain), "POST")[-3:] == [
        "ip_policies",
        "ip_policy_rules",
        "ip_restrictions",
    ]
    assert _collections(become(on_sandbox, sandbox), "DELETE") == ["ip_restrictions", "ip_policy_rules", "ip_policies"]


def test_a_rule_of_a_dashboard_restriction_is_created_before_the_other_is_deleted(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    policy, rule, restriction = CHAINS["policy, rule, restriction"]
    become(on_sandbox, sandbox, policy, rule, restriction)
    other = resource("IPPolicyRule", "home", ip_policy_id=ref("IPPolicy/office"), cidr="11.0.0.0/8", action="allow")
    calls = become(on_sandbox, sandbox, policy, other, restriction)
    assert [call.partition(" ")[0] for call in calls] == ["POST", "DELETE"]


def test_the_rules_of_a_dashboard_restriction_all_flip_one_after_the_other(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    policy, rule, restriction = CHAINS["policy, rule, restriction"]
    other = resource("IPPolicyRule", "home", ip_policy_id=ref("IPPolicy/office"), cidr="11.0.0.0/8", action="allow")
    become(on_sandbox, sandbox, policy, rule, other, restriction)
    flipped = [{**document, "spec": {**document["spec"], "action": "deny"}} for document in (rule, other)]
    calls = become(on_sandbox, sandbox, policy, *flipped, restriction)
    assert [call.partition(" ")[0] for call in calls] == ["DELETE", "POST", "DELETE", "POST"]
    on_sandbox.declare(KEPT, policy, restriction)
    assert on_sandbox("apply", "-y").code == 1
    assert len(sandbox.get("/ip_policy_rules")["ip_policy_rules"]) == 2


# --- a key that only one may have -------------------------------------------------------------------------------------


def test_the_action_of_a_rule_flips_by_deleting_it_first(on_sandbox: Project, sandbox: Sandbox) -> None:
    policy = resource("IPPolicy", "office")
    become(on_sandbox, sandbox, policy, RULE)
    flipped = {**RULE, "spec": {**RULE["spec"], "action": "deny"}}
    calls = become(on_sandbox, sandbox, policy, flipped)
    assert [call.partition(" ")[0] for call in calls] == ["DELETE", "POST"]


def _rules(**cidrs: str) -> list[Document]:
    policy = ref("IPPolicy/office")
    rules = (
        resource("IPPolicyRule", name, ip_policy_id=policy, cidr=cidr, action="allow") for name, cidr in cidrs.items()
    )
    return [resource("IPPolicy", "office"), *rules]


def _edges(**hosts: str) -> list[Document]:
    domains = [resource("ReservedDomain", host, domain=f"{host}.example.com") for host in sorted(hosts.values())]
    edges = [
        resource("TLSEdge", name, hostports=[f"{host}.example.com:443"], description=name)
        for name, host in hosts.items()
    ]
    return [*domains, *edges]


def _endpoints(**hosts: str) -> list[Document]:
    domains = [resource("ReservedDomain", host, domain=f"{host}.example.com") for host in sorted(hosts.values())]
    return [
        *domains,
        *(
            resource("CloudEndpoint", name, url=f"https://{host}.example.com", traffic_policy=POLICY, description=name)
            for name, host in hosts.items()
        ),
    ]


def _bots(**names: str) -> list[Document]:
    return [resource("BotUser", address, name=name) for address, name in names.items()]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_edges(a="one"), _edges(b="one")),
        (_edges(a="one", b="two"), _edges(b="one", c="two")),
        (_endpoints(a="one"), _endpoints(b="one")),
        (_endpoints(a="one", b="two"), _endpoints(b="one", c="two")),
        (_rules(a="10.0.0.0/8"), _rules(b="10.0.0.0/8")),
        (_rules(a="10.0.0.0/8", b="11.0.0.0/8"), _rules(b="10.0.0.0/8", c="11.0.0.0/8")),
        (_bots(a="one"), _bots(b="one")),
    ],
)
def test_a_unique_key_is_released_before_another_resource_uses_it(
    on_sandbox: Project, sandbox: Sandbox, before: list[Document], after: list[Document]
) -> None:
    become(on_sandbox, sandbox, *before)
    become(on_sandbox, sandbox, *after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_edges(a="one", b="two"), _edges(a="two", b="one")),
        (_edges(a="one", b="two", c="three"), _edges(a="two", b="three", c="one")),
        (_endpoints(a="one", b="two"), _endpoints(a="two", b="one")),
        (_rules(a="10.0.0.0/8", b="11.0.0.0/8"), _rules(a="11.0.0.0/8", b="10.0.0.0/8")),
    ],
)
def test_two_resources_can_swap_a_unique_key(
    on_sandbox: Project, sandbox: Sandbox, before: list[Document], after: list[Document]
) -> None:
    become(on_sandbox, sandbox, *before)
    become(on_sandbox, sandbox, *after)


# --- a domain's certificate -------------------------------------------------------------------------------------------

CERTIFICATE = resource(
    "TLSCertificate",
    "pay",
    certificate_pem=pems.certificate("leaf"),
    private_key_pem={"from_env": "PAY_KEY"},
)
OWN = {**DOMAIN, "spec": {**DOMAIN["spec"], "certificate_id": ref("TLSCertificate/pay")}}
MANAGED = {**DOMAIN, "spec": {**DOMAIN["spec"], "certificate_management_policy": {"authority": "letsencrypt"}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([CERTIFICATE, OWN], [CERTIFICATE, MANAGED]),
        ([CERTIFICATE, OWN], [MANAGED]),
        ([CERTIFICATE, OWN], [DOMAIN]),
        ([MANAGED], [CERTIFICATE, OWN]),
        ([MANAGED], [DOMAIN]),
        ([DOMAIN], [CERTIFICATE, OWN]),
        ([CERTIFICATE, OWN], []),
    ],
)
def test_a_domain_can_change_between_its_own_certificate_and_a_managed_one(
    on_sandbox: Project, sandbox: Sandbox, before: list[Document], after: list[Document]
) -> None:
    on_sandbox.environ["PAY_KEY"] = pems.private_key("leaf")
    become(on_sandbox, sandbox, *before)
    become(on_sandbox, sandbox, *after)
