"""The OpenAPI document describes the sandbox, and nothing that it lets a client send breaks the sandbox."""

from __future__ import annotations

import hypothesis
import schemathesis
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from reconciler.kinds import observed
from reconciler.sandbox.openapi import document
from reconciler.sandbox.routes import operations
from tests.platform import HEADERS, Sandbox

TABLE = tuple(operations(observed.served()))
schema = schemathesis.openapi.from_dict(document(TABLE, "http://sandbox.test"))


def test_two_kinds_of_one_object_require_the_same() -> None:
    schemas = document(TABLE, "http://sandbox.test")["components"]["schemas"]
    assert schemas["ServiceUserCreate"]["required"] == schemas["BotUserCreate"]["required"] == ["name"]


@schema.parametrize()
@hypothesis.settings(
    max_examples=4,  # for each of 170 operations,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_no_request_breaks_the_sandbox(case: Case, sandbox: Sandbox) -> None:
    answer = case.call(base_url=sandbox.base_url, headers=HEADERS)
    checks = [not_a_server_error, status_code_conformance, response_schema_conformance]
    case.validate_response(answer, checks=checks)
