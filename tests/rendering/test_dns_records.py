"""Every format of a plan shows the DNS records that a change needs or leaves behind, and the zone that has them."""

from __future__ import annotations

import html
import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Order, Reason, Risk
from reconciler.model.dns import PlannedRecord
from reconciler.model.plan import Plan
from reconciler.model.value import Secret
from reconciler.rendering.html import plan_page as page
from reconciler.rendering.plan import ci_annotations, dns_records, markdown, sarif, text
from reconciler.rendering.plan.findings import list_findings
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.wire import plan_json

OLD = PlannedRecord("shop.example.com", "CNAME", "abc.cname.platform.example", "example.com")
NEW = PlannedRecord("www.example.org", "CNAME")
DOMAIN = Address("ReservedDomain", "shop")
CHANGE = Change(
    DOMAIN,
    Action.REPLACE,
    Reason.REQUESTED,
    order=Order.DELETE_FIRST,
    risks=(Risk.LEAVES_DNS_RECORD,),
    needs_records=(NEW,),
    leaves_records=(OLD,),
)
LINES = (
    "DNS record to remove before the deletion: shop.example.com CNAME abc.cname.platform.example, in the file of the "
    "zone example.com",
    "DNS record to set: www.example.org CNAME (known after apply), unless the platform owns the domain",
)
RISK = "leaves a dangling DNS record: others may take the name over"
FORMS: dict[str, Callable[[Plan], str]] = {
    "text": lambda plan: text.render_text(plan, width=300),
    "markdown": markdown.render_markdown,
    "html": lambda plan: html.unescape(page.render_page(plan)),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_format_shows_the_records_and_the_risk(form: str) -> None:
    output = FORMS[form](Plan("prod", changes=(CHANGE,)))
    assert [line for line in (*LINES, RISK) if line not in output] == []


def test_annotations_of_the_risk_name_the_records() -> None:
    findings = list_findings(Plan("prod", changes=(CHANGE,)))
    assert [finding.rule.id for finding in findings] == ["leaves-dns-record"]
    (result,) = json.loads(sarif.render_sarif(findings, version="1", fallback="x"))["runs"][0]["results"]
    assert result["ruleId"] == "leaves-dns-record"
    assert all(line in result["message"]["text"] for line in LINES)
    assert all(line in ci_annotations.render_github(findings) for line in LINES)


def test_json_has_the_records_and_a_plan_file_has_them_after_reading() -> None:
    plan = Plan("prod", changes=(CHANGE,))
    written = plan_json.write_plan(plan)
    (change,) = json.loads(written)["changes"]
    assert change["leaves_records"] == [
        {"owner": OLD.owner, "type": "CNAME", "value": OLD.value, "zone": "example.com"}
    ]
    assert change["needs_records"][0]["owner"] == NEW.owner
    assert plan_json.read_plan(written, lambda source, _: Secret("", source)) == plan


def test_drift_shows_no_records() -> None:
    assert "DNS record to" not in text.render_text(Plan("prod", changes=(CHANGE,)), flavour=Flavour.DRIFT)


def test_the_record_of_a_replaced_object_with_the_same_name_is_removed_after_the_replacement() -> None:
    change = replace(CHANGE, needs_records=(PlannedRecord(OLD.owner, "CNAME"),))
    (first, _) = dns_records.describe(change)
    assert first.startswith("DNS record to remove after the replacement: shop.example.com CNAME abc.")


def test_text_of_the_platform_cannot_break_a_line_or_a_page() -> None:
    evil = PlannedRecord("a\n::error::x\x1b[2J", "CNAME", "<script>alert(1)</script>", "example.com")
    change = Change(DOMAIN, Action.DELETE, Reason.REMOVED, leaves_records=(evil,))
    assert all("\n" not in line and "\x1b" not in line for line in dns_records.describe(change))
    assert "<script>alert(1)" not in page.render_page(Plan("prod", changes=(change,)))
