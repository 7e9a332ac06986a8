"""The OpenAPI document describes the sandbox, and no request that it allows breaks the sandbox."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.kinds import read_only
from reconciler.sandbox.operations.routes import operations
from reconciler.sandbox.wire.openapi import document
from tests.harness.platform import HEADERS, Sandbox
from tests.harness.tiers import full

pytestmark = pytest.mark.usefixtures("over_socket")

TABLE = tuple(operations(read_only.list_served()))
DOCUMENT = document(TABLE, "http://sandbox.test")
AREAS = ["/edges/https/[^/]+/routes", "/edges/(?!https/[^/]+/routes)", "/[a-d]", "/(?!edges)[e-z]"]
SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))
OPTIONS = (
    "--seed=1 --generation-database=none --no-color --continue-on-failure "
    "--checks=not_a_server_error,status_code_conformance,response_schema_conformance"
)


def test_two_kinds_of_one_object_require_the_same_fields() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert schemas["ServiceUserCreate"]["required"] == schemas["BotUserCreate"]["required"] == ["name"]


def test_each_operation_is_in_one_area() -> None:
    assert [path for path in DOCUMENT["paths"] if sum(bool(re.match(area, path)) for area in AREAS) != 1] == []


@full
def test_no_random_request_breaks_the_sandbox(sandbox: Sandbox, tmp_path: Path) -> None:
    """One of each operation."""
    assert requests_that_pass("/", "--phases=fuzzing --max-examples=1", sandbox, tmp_path) >= len(TABLE)


@full
@pytest.mark.parametrize("area", AREAS)
def test_no_request_breaks_the_sandbox(area: str, sandbox: Sandbox, tmp_path: Path) -> None:
    """About ten thousand requests, at the limits of what the document allows and beyond them."""
    assert requests_that_pass(area, "--phases=coverage,fuzzing --max-examples=4", sandbox, tmp_path) > 1_000


def requests_that_pass(area: str, options: str, sandbox: Sandbox, tmp_path: Path) -> int:
    """Sends requests to a part of the paths with schemathesis. Fails if a response violates the document."""
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    asked = f"run {described} --url={sandbox.base_url} --include-path-regex=^{area} {options} {OPTIONS}".split()
    headers = [f"--header={name}: {value}" for name, value in HEADERS.items()]
    done = subprocess.run(
        [SCHEMATHESIS, *asked, *headers],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counted = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert counted is not None, done.stdout
    return int(counted[2])
