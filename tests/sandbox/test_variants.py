"""The behaviors in which the public platform differs, each of which can be switched on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.platform import Sandbox


@pytest.mark.parametrize("empties", [False, True])
@pytest.mark.parametrize("collection", ["/backends/failover", "/backends/weighted", "/backends/tunnel_group"])
def test_a_patch_keeps_what_it_leaves_out_or_empties_what_the_public_platform_empties(
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
