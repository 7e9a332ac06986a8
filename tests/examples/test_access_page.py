"""Every command of docs/access.md prints the output on the page."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.testing import SandboxProcess
from tests.examples import transcripts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "access.md"
_DAY = re.compile(r'until: "[0-9-]+"')
_FOLDER = shutil.ignore_patterns("pki", "secrets", "state", "__pycache__")


def without_days(page: str) -> str:
    return _DAY.sub("until:", transcripts.number_ids(page))


def test_the_commands_of_the_access_page_print_the_documented_output(
    tmp_path: Path, commands: Path, request: pytest.FixtureRequest
) -> None:
    page, project = PAGE.read_text(encoding="utf-8"), tmp_path / "shop"
    shutil.copytree(ROOT / "examples/quickstart", project, ignore=_FOLDER)
    make = "import certificates, pathlib; certificates.write_all(pathlib.Path('pki'))"
    subprocess.run([sys.executable, "-c", make], cwd=project, check=True)
    manifests = project / "manifests/edges.yaml"
    applied = manifests.read_text()
    with SandboxProcess() as sandbox:

        def run(part: str) -> str:
            return transcripts.rewrite(part, transcripts.run(part, project, commands, sandbox.environ))

        words = ["apply", "--auto-approve", "--quiet", "--project", str(project)]
        subprocess.run([str(commands / "reconciler"), *words], env=sandbox.environ, check=True, capture_output=True)
        day, heading, rest = page.partition("## At night")
        night, approvals, after = rest.partition("## Approvals")
        ran = run(day)
        changed = manifests.read_text()
        manifests.write_text(applied)
        policies = sandbox.collection("/ip_policies", "ip_policies")
        office = next(policy["id"] for policy in policies if "office" in policy["description"])
        rule = sandbox.post("/ip_policy_rules", {"ip_policy_id": office, "cidr": "0.0.0.0/0", "action": "allow"})
        ran += heading + run(night)
        sandbox.delete(f"/ip_policy_rules/{rule['id']}")
        manifests.write_text(changed)
        ran += approvals + run(after)
    transcripts.compare(PAGE, ran, write=request.config.getoption("--rewrite"), normalize=without_days)
