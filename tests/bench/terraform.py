"""The same number of resources for Terraform, with no provider at all: `terraform_data`, references as ours have them.

The state is written instead of applied, because to apply ten thousand would take it the better part of an hour.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

_NEEDS = {2: (0, 1), 4: (3,), 5: (3,), 7: (6,), 8: (2, 3, 6), 9: (8,)}  # within a service of ten


def is_here() -> bool:
    return shutil.which("terraform") is not None


def version() -> str:
    version = subprocess.run(["terraform", "version", "-json"], capture_output=True, text=True, check=True).stdout
    return str(json.loads(version)["terraform_version"])


def project(root: Path, resources: int, *, applied: bool) -> Path:
    """A folder in which `terraform plan` finds nothing to do, or (not applied) everything."""
    root.mkdir(parents=True)
    text, state = [], []
    for number in range(resources):
        needs = [f"r{number - number % 10 + offset}" for offset in _NEEDS.get(number % 10, ())]
        refs = "".join(f", terraform_data.{need}.id" for need in needs)
        text.append(f'resource "terraform_data" "r{number}" {{\n  input = ["value of {number}"{refs}]\n}}\n')
        state.append(_state(number, needs))
    (root / "main.tf").write_text("\n".join(text))
    if applied:
        whole = {
            "version": 4,
            "terraform_version": version(),
            "serial": 1,
            "lineage": "7f5c1c30-0000-4000-8000-000000000000",
            "outputs": {},
            "resources": state,
            "check_results": None,
        }
        (root / "terraform.tfstate").write_text(json.dumps(whole))
    subprocess.run(["terraform", "init", "-no-color"], cwd=root, check=True, capture_output=True)
    return root


def _state(number: int, needs: list[str]) -> dict[str, Any]:
    values = [f"value of {number}", *(_id(int(need[1:])) for need in needs)]
    typed = {"value": values, "type": ["tuple", ["string"] * len(values)]}
    return {
        "mode": "managed",
        "type": "terraform_data",
        "name": f"r{number}",
        "provider": 'provider["terraform.io/builtin/terraform"]',
        "instances": [
            {
                "schema_version": 0,
                "attributes": {"id": _id(number), "input": typed, "output": typed, "triggers_replace": None},
                "sensitive_attributes": [],
                "dependencies": [f"terraform_data.{need}" for need in needs],
            }
        ],
    }


def _id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"
