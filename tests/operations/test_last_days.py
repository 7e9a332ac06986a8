"""What is valid `until` a day is valid to the end of that day in UTC, in whatever time zone the command runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from reconciler.operations.runtime import Runtime
from tests.harness.platform import Reachable, Sandbox
from tests.harness.project import Project, policies, resource

SETTINGS = "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000, settle_seconds: 0}\n"
DAY = "2031-03-31"
LAST, FIRST = "2031-03-31T23:59:59", "2031-04-01T00:00:00"
DOMAIN = resource("ReservedDomain", "pay", domain="pay.example.com")


@pytest.fixture(params=["LINT-14", "UTC0", "NST+3:30"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def at(on_sandbox: Project, sandbox: Sandbox, _zone: None) -> Callable[[str], None]:
    """Sets the moment, in UTC, at which the next commands run."""

    def set_moment(text: str) -> None:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        on_sandbox.runtime = Runtime(platform=Reachable(sandbox), now=lambda: moment)

    on_sandbox.declare(*policies("a"), DOMAIN)
    on_sandbox.write("reconciler.yaml", SETTINGS)
    set_moment("2031-03-17T12:00:00")
    assert on_sandbox("apply", "-y", "-q").code == 0
    return set_moment


def test_known_drift_is_ignored_to_the_end_of_its_last_day(
    on_sandbox: Project, sandbox: Sandbox, at: Callable[[str], None]
) -> None:
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": "by hand"})
    ignored = f"{{match: IPPolicy/a.description, until: {DAY}, reason: known}}"
    on_sandbox.write("reconciler.yaml", f"{SETTINGS}drift: {{ignore: [{ignored}]}}\n")
    at(LAST)
    assert on_sandbox("drift").code == 0
    at(FIRST)
    expired = on_sandbox("drift")
    assert (expired.code, f"expired on {DAY}" in " ".join(expired.out.split())) == (2, True)


def test_an_approval_is_valid_to_the_end_of_its_last_day(on_sandbox: Project, at: Callable[[str], None]) -> None:
    on_sandbox.declare(*policies("a"))
    at("2031-03-17T00:00:00")
    assert f'until: "{DAY}"' in on_sandbox("plan", "--fail-on", "approvals").err
    at("2031-03-17T23:59:59")
    asked = on_sandbox("plan", "--fail-on", "approvals")
    assert (asked.code, f'until: "{DAY}"' in asked.err) == (4, True), asked.err
    on_sandbox.write("approvals.yaml", asked.err[asked.err.index("approvals:\n") :])
    at(LAST)
    assert on_sandbox("plan", "--fail-on", "approvals").code == 0
    at(FIRST)
    assert on_sandbox("plan", "--fail-on", "approvals").code == 4
    assert on_sandbox("apply", "-y", "-q").code == 4


def test_an_exemption_is_valid_to_the_end_of_its_last_day(on_sandbox: Project, at: Callable[[str], None]) -> None:
    exempt = f"exemptions: [{{address: IPPolicy/a, reason: known, until: {DAY}}}]\n"
    check = "check: resource.kind != 'IPPolicy' || resource.spec.description == 'b'\nmessage: is not b\n"
    on_sandbox.write("policies/b.yaml", f"policy: b\n{check}{exempt}")
    for words in (("plan",), ("validate",)):
        at(LAST)
        assert on_sandbox(*words).code == 0
        at(FIRST)
        expired = on_sandbox(*words)
        assert (expired.code, f"expired on {DAY}" in " ".join((expired.out + expired.err).split())) == (4, True)
