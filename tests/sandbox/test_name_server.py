"""The records that a certificate requires of a name server."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.sandbox.base.name_server import list_required
from reconciler.testing import Sandbox


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
