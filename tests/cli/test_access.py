"""`reconciler access`: the inventory in each format, its filters, and the explanation of one request."""

from __future__ import annotations

import json
import re

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, Shell

ANSWERS = {"type": "custom-response", "config": {"status_code": 200}}
OFFICE = {"type": "restrict-ips", "config": {"enforce": True, "allow": ["203.0.113.0/24"]}}
SIGN_IN = {"type": "oauth", "config": {"provider": "google"}}


def serve(name: str, *actions: object) -> dict[str, object]:
    policy = {"on_http_request": [{"actions": [*actions, ANSWERS]}]}
    return {
        "kind": "CloudEndpoint",
        "name": name,
        "spec": {"url": f"https://{name}.example.com", "traffic_policy": policy},
    }


def reserve(name: str) -> dict[str, object]:
    return {"kind": "ReservedDomain", "name": name, "spec": {"domain": f"{name}.example.com"}}


RESOURCES = [serve("shop"), serve("office", OFFICE), serve("staff", SIGN_IN)]


@pytest.fixture
def endpoints(on_sandbox: Project) -> Project:
    """A project with an endpoint for everyone, one for the office and one for those who are signed in."""
    on_sandbox.declare(*RESOURCES, *map(reserve, ("shop", "office", "staff")))
    applied = on_sandbox("apply", "--auto-approve")
    assert applied.code == 0, applied.err
    return on_sandbox


def test_the_inventory_lists_each_way_in_and_who_gets_through(endpoints: Project) -> None:
    listed = endpoints("access")
    assert listed.code == 0, listed.err
    lines = listed.out.splitlines()
    assert lines[:10] == [
        "Reachable from the internet:",
        "  https://office.example.com",
        "    203.0.113.0/24",
        "    CloudEndpoint/office",
        "! https://shop.example.com",
        "    everyone",
        "    CloudEndpoint/shop",
        "  https://staff.example.com",
        "    sign-in at google",
        "    CloudEndpoint/staff",
    ]
    assert lines[-1] == "3 ways in, 1 of them public."


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (("--public",), ["shop"]),
        (("--host", "s*"), ["shop", "staff"]),
        (("--from", "203.0.113.9"), ["office", "shop", "staff"]),
        (("--from", "198.51.100.0/24"), ["shop", "staff"]),
        (("--from", "203.0.112.0/23", "--host", "*.example.com"), ["office", "shop", "staff"]),
    ],
)
@pytest.mark.parametrize("declared", [(), ("--declared",)], ids=["live", "declared"])
def test_filters_select_entry_points(
    endpoints: Project, words: tuple[str, ...], declared: tuple[str, ...], hosts: list[str]
) -> None:
    listed = endpoints("access", "--format", "json", *words, *declared)
    assert listed.code == 0, listed.err
    entries = [entry for entry in json.loads(listed.out)["entries"] if entry["binding"] == "public"]
    assert [entry["host"] for entry in entries] == [f"{host}.example.com" for host in hosts]


def test_the_same_account_is_written_with_the_same_bytes(endpoints: Project) -> None:
    for form in ("text", "markdown", "json"):
        assert endpoints("access", "--format", form).out == endpoints("access", "--format", form).out


def test_markdown_has_a_table_for_each_group(endpoints: Project) -> None:
    text = endpoints("access", "--format", "markdown").out
    assert "| `https://shop.example.com` **public** | `everyone` | `CloudEndpoint/shop` |" in text
    assert "## The account" in text


def test_declared_access_needs_no_key_and_no_network(shell: Shell) -> None:
    shell.write("manifests/shop.yaml", json.dumps(serve("shop")))
    listed = shell("access", "--declared")
    assert listed.code == 0, listed.err
    assert listed.out.splitlines()[:2] == ["Reachable from the internet:", "! https://shop.example.com"]


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("https://shop.example.com/a", "--from", "192.0.2.1"), "The request passes."),
        (("https://office.example.com", "--from", "203.0.113.9"), "The request passes."),
        (("https://office.example.com", "--from", "192.0.2.1"), "The request is refused."),
        (("https://staff.example.com", "--from", "192.0.2.1"), "The request is refused."),
        (("https://staff.example.com", "--from", "192.0.2.1", "--signed-in", "google"), "The request passes."),
        (("https://staff.example.com", "--from", "192.0.2.1", "--signed-in", "github"), "The request is refused."),
        (("https://nothing.example.com", "--from", "192.0.2.1"), "The request is refused."),
    ],
)
def test_a_request_is_explained(endpoints: Project, words: tuple[str, ...], end: str) -> None:
    explained = endpoints("access", "--explain", *words)
    assert explained.code == 0, explained.err
    assert explained.out.splitlines()[-1] == end


def test_an_explanation_names_the_gate_its_resource_and_position(endpoints: Project) -> None:
    lines = endpoints("access", "--explain", "https://office.example.com", "--from", "192.0.2.1").out.splitlines()
    assert lines[0] == "  https://office.example.com"
    assert lines[1].startswith("    CloudEndpoint/office  manifests/")
    assert lines[2] == "- 192.0.2.1 is not in 203.0.113.0/24"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--explain", "https://shop.example.com"), "--explain needs --from"),
        (("--explain", "https://shop.example.com", "--from", "10.0.0.0/8"), "'10.0.0.0/8' is no address"),
        (("--explain", "shop.example.com", "--from", "192.0.2.1"), "'shop.example.com' is no URL"),
        (
            ("--declared", "--explain", "https://a.example.com", "--from", "192.0.2.1", "--certificate", "typo"),
            "no certificate authority is named 'typo'",
        ),
        (("--certificate", "partners"), "--certificate needs --explain"),
        (("--explain", "https://a.example.com", "--from", "192.0.2.1", "--public"), "--public cannot be used with"),
        (("--from", "everywhere"), "'everywhere' is no address or network"),
    ],
)
def test_unreadable_options_are_usage_errors(shell: Shell, words: tuple[str, ...], message: str) -> None:
    result = shell("access", *words)
    assert (result.code, result.out) == (64, "")
    assert message in result.err


def test_an_incomplete_list_is_an_error_beside_what_was_read(endpoints: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /ip_restrictions", times=9, then="status", status=403)
    listed = endpoints("access")
    assert listed.code == 1
    assert "error: the list of IPRestriction is incomplete" in listed.err
    assert "unknown: not read: IPRestriction" in listed.out


def test_the_page_of_a_plan_lists_every_way_in_as_the_plan_leaves_it(endpoints: Project, sandbox: Sandbox) -> None:
    endpoints.declare(serve("office"), serve("staff", SIGN_IN), *map(reserve, ("office", "staff")))
    assert endpoints("snapshot", "--out", "snapshot.json").code == 0
    for words in ((), ("--snapshot", "snapshot.json")):
        assert endpoints("plan", *words, "--out", "plan.json", "--format", "html=plan.html").code == 0
        rows = list_rows((endpoints.root / "plan.html").read_text())
        assert rows["https://office.example.com"] == ("everyone", "lets in requests that were refused")
        assert rows["https://shop.example.com"] == ("no way in", "is no longer a way in")
        assert rows["https://staff.example.com"] == ("sign-in at google", "")
    endpoints("show", "plan.json", "--format", "html=plan.html")  # a plan file has the changes, not the account
    assert "entry-data" not in (endpoints.root / "plan.html").read_text()


def test_the_page_of_drift_lists_every_way_in_as_it_is(endpoints: Project, sandbox: Sandbox) -> None:
    found = next(item for item in sandbox.collection("/endpoints", "endpoints") if "office" in item["url"])
    policy = json.dumps({"on_http_request": [{"actions": [ANSWERS]}]})
    sandbox.patch(f"/endpoints/{found['id']}", {"traffic_policy": policy})
    endpoints("drift", "--format", "html=drift.html")
    rows = list_rows((endpoints.root / "drift.html").read_text())
    assert rows["https://office.example.com"] == ("everyone", "Access was widened on the platform")
    assert rows["https://shop.example.com"] == ("everyone", "")


def list_rows(page: str) -> dict[str, tuple[str, str]]:
    """By entry point of the list in a page: who gets through, and what changes."""
    written = re.search(r'id="entry-data">(.*?)</script>', page)
    assert written is not None
    data = json.loads(written[1])
    texts = data["texts"]
    return {row[0]: (texts[row[2]], texts[row[7][1]] if len(row) > 7 else "") for row in data["rows"]}
