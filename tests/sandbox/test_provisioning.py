"""Certificates that the platform obtains: late, failing with either code, healed, renewed, by the platform's clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.testing import Sandbox

DAY = 86_400


@pytest.fixture
def domain(sandbox: Sandbox) -> str:
    """The path of a domain whose certificate the platform obtains; it was not read yet."""
    body = {"domain": "shop.example.com", "certificate_management_policy": {}}
    return f"/reserved_domains/{sandbox.post('/reserved_domains', body)['id']}"


def job(sandbox: Sandbox, path: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = sandbox.get(path)["certificate_management_status"]["provisioning_job"]
    return found


def code(sandbox: Sandbox, path: str) -> str | None:
    found = job(sandbox, path)
    return "" if found is None else found["error_code"]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("error", ["DNS_ERROR", "INTERNAL_ERROR"])
def test_provisioning_fails_until_the_fault_is_removed(sandbox: Sandbox, domain: str, error: str) -> None:
    sandbox.provision({"host": "*.example.com", "error_code": error, "retry_after": DAY})
    assert code(sandbox, domain) is None
    failed = job(sandbox, domain)
    assert failed is not None
    assert failed["error_code"] == error
    assert "shop.example.com" in failed["msg"]
    assert moment(failed["retries_at"]) - moment(failed["started_at"]) == pytest.approx(DAY, abs=5)
    assert job(sandbox, domain) == failed
    assert sandbox.get(domain)["certificate"] is None
    sandbox.provision()
    assert job(sandbox, domain) is None
    assert sandbox.get(domain)["certificate"] is not None


def test_a_fault_affects_the_hosts_that_match_and_the_first_one_that_matches_applies(
    sandbox: Sandbox, domain: str
) -> None:
    other = sandbox.post("/reserved_domains", {"domain": "other.example.org", "certificate_management_policy": {}})
    sandbox.provision(
        {"host": "shop.*", "error_code": "INTERNAL_ERROR", "msg": "busy"}, {"host": "*", "error_code": "DNS_ERROR"}
    )
    found = [sandbox.collection("/reserved_domains", "reserved_domains") for _ in range(2)][-1]
    jobs = {body["domain"]: body["certificate_management_status"]["provisioning_job"] for body in found}
    assert (jobs["shop.example.com"]["error_code"], jobs["shop.example.com"]["msg"]) == ("INTERNAL_ERROR", "busy")
    assert jobs[other["domain"]]["error_code"] == "DNS_ERROR"


def test_a_failed_job_is_tried_again_at_its_time_and_not_before(sandbox: Sandbox, domain: str) -> None:
    sandbox.provision({"host": "*", "error_code": "DNS_ERROR"}, retry_after=3600)
    [sandbox.get(domain) for _ in range(2)]
    first = job(sandbox, domain)
    sandbox.move_clock(seconds=3500)
    assert job(sandbox, domain) == first
    sandbox.move_clock(seconds=3700)
    again = job(sandbox, domain)
    assert first is not None
    assert again is not None
    assert again["started_at"] == first["started_at"]
    assert moment(again["retries_at"]) >= moment(first["retries_at"]) + 3600


def test_a_late_certificate_is_in_progress_until_its_delay_has_passed(sandbox: Sandbox, domain: str) -> None:
    sandbox.provision({"host": "*", "delay": 600})
    assert [code(sandbox, domain) for _ in range(4)] == [None] * 4
    sandbox.move_clock(seconds=601)
    assert code(sandbox, domain) == ""


def test_a_certificate_is_renewed_30_days_before_its_end(sandbox: Sandbox, domain: str) -> None:
    before = [sandbox.get(domain) for _ in range(2)][-1]
    sandbox.move_clock(days=59)
    assert sandbox.get(domain) == before
    sandbox.move_clock(days=61)
    assert code(sandbox, domain) is None
    assert sandbox.get(before["certificate"]["uri"])["id"] == before["certificate"]["id"]  # while it is renewed
    after = sandbox.get(domain)
    assert after["certificate"]["id"] != before["certificate"]["id"]
    days = (moment(sandbox.get(after["certificate"]["uri"])["not_after"]) - datetime.now(UTC).timestamp()) / DAY
    assert days == pytest.approx(61 + 90, abs=1)


def test_a_certificate_expires_if_its_renewal_fails(sandbox: Sandbox, domain: str) -> None:
    before = [sandbox.get(domain) for _ in range(2)][-1]
    sandbox.provision({"host": "*", "error_code": "DNS_ERROR"})
    sandbox.move_clock(days=91)
    failed = [sandbox.get(domain) for _ in range(2)][-1]
    assert failed["certificate"] == before["certificate"]
    status = failed["certificate_management_status"]
    assert (status["renews_at"], status["provisioning_job"]["error_code"]) == (
        before["certificate_management_status"]["renews_at"],
        "DNS_ERROR",
    )
    sandbox.provision()
    assert sandbox.get(domain)["certificate"] != before["certificate"]


def test_a_certificate_obtained_in_the_past_is_about_to_expire_today(sandbox: Sandbox, domain: str) -> None:
    sandbox.move_clock(days=-85)
    [sandbox.get(domain) for _ in range(2)]
    sandbox.provision({"host": "*", "error_code": "INTERNAL_ERROR"})
    sandbox.move_clock()
    found = [sandbox.get(domain) for _ in range(2)][-1]
    assert found["certificate_management_status"]["provisioning_job"]["error_code"] == "INTERNAL_ERROR"
    not_after = sandbox.get(found["certificate"]["uri"])["not_after"]
    assert (moment(not_after) - datetime.now(UTC).timestamp()) / DAY == pytest.approx(5, abs=0.1)


def test_an_agent_ingress_fails_heals_and_is_renewed_like_a_domain(sandbox: Sandbox) -> None:
    sandbox.provision({"host": "*", "error_code": "DNS_ERROR"})
    made = sandbox.post("/agent_ingresses", {"domain": "agents.example.com", "certificate_management_policy": {}})
    path = f"/agent_ingresses/{made['id']}"
    codes = [code(sandbox, path) for _ in range(2)]
    sandbox.provision()
    codes.append(code(sandbox, path))
    sandbox.move_clock(days=61)
    assert [*codes, *(code(sandbox, path) for _ in range(2))] == [None, "DNS_ERROR", "", None, ""]


def test_the_clock_dates_objects_and_does_not_affect_the_request_budget(sandbox: Sandbox) -> None:
    sandbox.move_clock(days=400)
    created = moment(sandbox.post("/ip_policies", {})["created_at"]) - datetime.now(UTC).timestamp()
    assert created / DAY == pytest.approx(400, abs=0.1)
    assert moment(sandbox.get("/_sandbox/clock")["now"]) == pytest.approx(
        datetime.now(UTC).timestamp() + 400 * DAY, abs=60
    )
    sandbox.put("/_sandbox/budget", {"limit": 2, "window": 60})
    statuses = [sandbox.request("GET", "/ip_policies").status_code for _ in range(2)]
    sandbox.move_clock(days=500)  # a day does not end the minute
    assert [*statuses, sandbox.request("GET", "/ip_policies").status_code] == [200, 200, 429]


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("provisioning", {"faults": [{"host": "*", "error_code": "WEATHER"}]}, "faults.0.error_code"),
        ("provisioning", {"faults": [{"host": ""}]}, "faults.0.host"),
        ("provisioning", {"nameserver": "ns1.example.net:53"}, "nameserver"),
        ("provisioning", {"nameserver": "127.0.0.1:0"}, "such as 127.0.0.1:5353"),
        ("provisioning", {"retry_after": -1}, "retry_after"),
        ("clock", {"offset": "10d"}, "offset"),
        ("clock", {"now": "2027-01-01T00:00:00Z"}, "now"),
    ],
)
def test_invalid_conditions_are_refused(sandbox: Sandbox, path: str, body: dict[str, Any], why: str) -> None:
    before = sandbox.get(f"/_sandbox/{path}")
    answer = sandbox.request("PUT", f"/_sandbox/{path}", body)
    assert (answer.status_code, why in answer.json()["msg"]) == (400, True)
    after = sandbox.get(f"/_sandbox/{path}")
    assert {**after, "now": ""} == {**before, "now": ""}
