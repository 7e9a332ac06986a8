"""The records that a certificate requires of a name server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.base.name_server import list_required
from reconciler.testing import Sandbox
from tests.harness.name_server import free_port, name_server


@pytest.mark.parametrize(
    ("path", "domain", "owners"),
    [
        ("/reserved_domains", "shop.example.com", {"shop.example.com": ("CNAME", "cname_target")}),
        (
            "/reserved_domains",
            "*.shop.example.com",
            {
                "*.shop.example.com": ("CNAME", "cname_target"),
                "_acme-challenge.shop.example.com": ("CNAME", "acme_challenge_cname_target"),
            },
        ),
        ("/reserved_domains", "shop.sandbox.test", {}),
        ("/agent_ingresses", "agents.example.com", {"agents.example.com": ("NS", "ns_targets")}),
    ],
)
def test_a_certificate_requires_the_records_of_its_host(
    sandbox: Sandbox, path: str, domain: str, owners: dict[str, Any]
) -> None:
    made = sandbox.post(path, {"domain": domain})
    targets = {
        owner: (type, made[field] if isinstance(made[field], list) else [made[field]])
        for owner, (type, field) in owners.items()
    }
    assert {owner: (type, sorted(values)) for owner, type, values in list_required(made)} == targets


def read_errors(sandbox: Sandbox) -> dict[str, str]:
    """The error code of each certificate that is not obtained, by domain, after the platform has tried again."""
    errors: dict[str, str] = {}
    for path, key in (("/reserved_domains", "reserved_domains"), ("/agent_ingresses", "ingresses")):
        sandbox.get(path)  # starts the attempt that the next read shows
        for item in sandbox.get(path)[key]:
            job = item["certificate_management_status"]["provisioning_job"]
            errors |= {item["domain"]: job["error_code"]} if job is not None else {}
    return errors


def test_certificates_are_obtained_when_a_name_server_has_all_their_records(sandbox: Sandbox, tmp_path: Path) -> None:
    port, zone = free_port(), tmp_path / "example.com.zone"
    policy = {"certificate_management_policy": {"authority": "letsencrypt"}}
    made = [
        sandbox.post("/reserved_domains", {"domain": domain, **policy}) for domain in ("a.example.com", "*.example.com")
    ]
    ingress = sandbox.post("/agent_ingresses", {"domain": "agents.example.com", **policy})
    zone.write_text("@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\n")
    sandbox.provision(nameserver=f"127.0.0.1:{port}", retry_after=0)
    all_domains = {*(item["domain"] for item in made), ingress["domain"]}
    assert read_errors(sandbox) == dict.fromkeys(all_domains, "INTERNAL_ERROR")  # the server does not run yet

    with name_server("127.0.0.1", port, {"example.com": zone}):
        assert read_errors(sandbox) == dict.fromkeys(all_domains, "DNS_ERROR")
        delegations = [f"agents IN NS {target}." for target in ingress["ns_targets"]]
        records = [f"{item['domain']}. IN CNAME {item['cname_target']}." for item in made]
        publish(zone, *records, *delegations[1:])
        assert read_errors(sandbox) == {"*.example.com": "DNS_ERROR", "agents.example.com": "DNS_ERROR"}
        publish(zone, f"_acme-challenge IN CNAME {made[1]['acme_challenge_cname_target']}.", delegations[0])
        assert read_errors(sandbox) == {}


def publish(zone: Path, *records: str) -> None:
    zone.write_text(zone.read_text() + "".join(f"{record}\n" for record in records))
