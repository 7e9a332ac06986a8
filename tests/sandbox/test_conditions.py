"""The conditions that a sandbox starts in: a file of faults."""

from __future__ import annotations

import json
from pathlib import Path

from tests.harness.platform import SandboxProcess


def test_a_reset_restores_the_conditions_of_the_start(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    conditions = {
        "faults": [{"on": "GET /vaults", "then": "status", "status": 500, "times": 0}],
        "provisioning": {"faults": [{"host": "*", "error_code": "DNS_ERROR"}]},
        "clock": {"offset": 864_000},
    }
    file.write_text(json.dumps(conditions))
    with SandboxProcess(faults=file) as sandbox:
        for _ in range(2):
            assert sandbox.get("/_sandbox/provisioning")["faults"][0]["error_code"] == "DNS_ERROR"
            assert sandbox.get("/_sandbox/clock")["offset"] == 864_000
            assert sandbox.request("GET", "/vaults").status_code == 500
            sandbox.provision()
            sandbox.move_clock()
            sandbox.delete("/_sandbox/faults")
            assert sandbox.request("GET", "/vaults").status_code == 200
            sandbox.reset()
