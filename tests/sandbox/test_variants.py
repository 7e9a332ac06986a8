"""Variants: behaviors of the public platform that can be switched on one by one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.harness.platform import Sandbox
from tests.kinds import pems
from tests.sandbox.account import Account


@pytest.mark.parametrize("empties", [False, True])
@pytest.mark.parametrize("collection", ["/backends/failover", "/backends/weighted", "/backends/tunnel_group"])
def test_an_update_preserves_omitted_fields_or_empties_them_as_the_variant(
    sandbox: Sandbox, collection: str, empties: bool
) -> None:
    child = sandbox.post("/backends/http_response", {})["id"]
    every: dict[str, dict[str, Any]] = {
        "/backends/failover": {"backends": [child]},
        "/backends/weighted": {"backends": {child: 1}},
        "/backends/tunnel_group": {"labels": {"app": "pay"}},
    }
    fields = every[collection]
    path = f"{collection}/{sandbox.post(collection, fields)['id']}"
    assert sandbox.request("PUT", "/_sandbox/variants", {"patch_empties": empties}).status_code == 204
    ((name, before),) = fields.items()
    after = before if not empties or name == "labels" else type(before)()
    assert sandbox.patch(path, {"description": "new"})[name] == after
    assert sandbox.get(path)[name] == after
    assert sandbox.patch(path, fields)[name] == before


def test_a_sparse_response_omits_text_that_is_not_set(sandbox: Sandbox) -> None:
    account = Account(sandbox)
    key = pems.ssh_key()
    made = account.make("/ip_policies", description="", metadata="m")
    route = account.place("/edges/https/{edge_id}/routes/{id}/response_headers")
    sandbox.put(route, {"add": {"x-empty": ""}})
    saml = account.place("/edges/https/{edge_id}/routes/{id}/saml")
    authority = account.id("/ssh_certificate_authorities")
    signed = sandbox.post("/ssh_user_certificates", {"ssh_certificate_authority_id": authority, "public_key": key})
    assert sandbox.request("PUT", "/_sandbox/variants", {"sparse": True}).status_code == 204
    assert set(sandbox.get(f"/ip_policies/{made['id']}")) == {"id", "uri", "created_at", "metadata"}
    assert sandbox.get(route)["add"] == {"x-empty": ""}, "a map of the user's is shown as it is"
    module = sandbox.get(saml)
    assert (module["idp_metadata_url"], "nameid_format" in module) == ("", True)
    assert sandbox.get(f"/ssh_user_certificates/{signed['id']}")["extensions"]["permit-pty"] == ""
    asked = quote('obj.description == ""')
    assert len(sandbox.get(f"/ip_policies?filter={asked}")["ip_policies"]) == 1
    sandbox.reset()
    assert sandbox.post("/ip_policies", {})["description"] == ""
