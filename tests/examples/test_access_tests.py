"""The access tests that docs/access.md shows, run on the project of `make demo`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler import kinds
from reconciler.access.account import Account
from reconciler.access.compare import analyze
from reconciler.operations.authoring.access_proposal import render
from reconciler.planning.access import declare_account
from reconciler.planning.access_proposals import propose_tests
from reconciler.planning.access_tests import run_tests
from reconciler.project.access_tests import load_tests
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/access.md").read_text().partition("## Access tests")[2].partition("\n## ")[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project, with the access tests of the page."""
    copy = tmp_path / "shop"
    ignored = shutil.ignore_patterns("pki", "secrets", "state", "__pycache__")
    shutil.copytree(ROOT / "examples/quickstart", copy, ignore=ignored)
    make = "import certificates, pathlib; certificates.write_all(pathlib.Path('pki'))"
    subprocess.run([sys.executable, "-c", make], cwd=copy, check=True)
    (copy / "tests").mkdir()
    (copy / "tests/access.yaml").write_text(SECTION.partition("```yaml\n")[2].partition("```")[0])
    return copy


def read_account(project: Path) -> Account:
    environ = {"STRIPE_KEY": "made up", "METRICS_API_KEY": "made up"}
    config = load_config(project, environ, None, lambda source, is_secret: "placeholder")
    loaded = load_manifests(config, environ, None, lambda source, is_secret: "placeholder")
    return declare_account(loaded.manifest, {kind.name: kind for kind in kinds.list_planned()})


def test_the_access_tests_of_the_page_pass_in_the_project_as_it_is(project: Path) -> None:
    results = run_tests(load_tests(project), read_account(project)).results
    assert [result.status for result in results] == ["passed", "passed", "passed", "passed", "skipped", "skipped"]


def test_the_failure_that_the_page_shows_is_that_of_the_changed_route(project: Path) -> None:
    before = read_account(project)
    edges = project / "manifests/edges.yaml"
    edges.write_text(edges.read_text().replace("match: /admin\n", "match: /admins\n"))
    after = read_account(project)
    problems = [str(problem) for problem in run_tests(load_tests(project), after, before).problems]
    (quoted,) = re.findall(r"^tests/access.yaml:.*$", SECTION, re.MULTILINE)
    assert quoted in problems


def test_the_proposed_tests_of_the_page_are_those_of_the_project(project: Path) -> None:
    account = read_account(project)
    text = render(tuple(propose_tests(account, sorted(analyze(account), key=lambda entry: entry.region))))
    quoted = next(block for block in SECTION.split("```") if block.startswith("yaml\n# tls://payments"))
    assert quoted.removeprefix("yaml\n") in text
