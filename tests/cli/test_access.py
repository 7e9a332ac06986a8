"""`reconciler access`: the inventory in each format, its filters, and the explanation of one request."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from reconciler.planning import planner
from tests.harness.platform import Sandbox
from tests.harness.project import Project, Shell, resource
from tests.kinds import pems

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


PREFLIGHTS = {"type": "oauth", "config": {"provider": "google", "allow_cors_preflight": True}}
TOKEN = {"type": "basic-auth", "config": {"credentials": ["ann:${{ var.x }}"], "enforce": True}}


@pytest.mark.parametrize(
    ("action", "words", "end"),
    [
        (PREFLIGHTS, (), "The request is refused."),
        (PREFLIGHTS, ("--method", "POST"), "The request is refused."),
        (PREFLIGHTS, ("--method", "options"), "It is unknown whether the request passes."),
        (SIGN_IN, ("--method", "OPTIONS"), "The request is refused."),
        (TOKEN, (), "The request is refused."),
        (TOKEN, ("--with-token",), "The request passes."),
    ],
)
def test_the_method_and_the_token_of_a_request_decide(
    shell: Shell, action: dict[str, Any], words: tuple[str, ...], end: str
) -> None:
    shell.write("reconciler.yaml", "version: 1\nstack: prod\nvariables: {x: {default: long-enough}}\n")
    policy = {"on_http_request": [{"actions": [action, ANSWERS]}]}
    spec = {"url": "https://api.example.com", "traffic_policy": policy}
    shell.write("manifests/payments.yaml", json.dumps({"kind": "CloudEndpoint", "name": "api", "spec": spec}))
    asked = ("--explain", "https://api.example.com", "--from", "192.0.2.1")
    explained = shell("access", "--declared", *asked, *words)
    assert (explained.code, end in map(str.strip, explained.out.splitlines())) == (0, True), explained


def test_a_certificate_is_that_of_an_authority_by_its_name(shell: Shell) -> None:
    authority = pems.certificate("partners", ca=True)
    terminate = {"mutual_tls_certificate_authorities": [authority]}
    policy = {
        "on_tcp_connect": [{"actions": [{"type": "terminate-tls", "config": terminate}]}],
        "on_http_request": [{"actions": [ANSWERS]}],
    }
    declared = (
        resource("CertificateAuthority", "partners", ca_pem=authority),
        resource("CloudEndpoint", "api", url="https://api.example.com", traffic_policy=policy),
    )
    shell.write("manifests/all.yaml", "---\n".join(json.dumps(one) + "\n" for one in declared))
    asked = ("--declared", "--explain", "https://api.example.com", "--from", "192.0.2.1")
    refused, passed = shell("access", *asked), shell("access", *asked, "--certificate", "partners")
    ends = [(one.code, one.out.splitlines()[-1]) for one in (refused, passed)]
    assert ends == [(0, "The request is refused."), (0, "The request passes.")]


def test_an_explanation_names_the_gate_its_resource_and_position(endpoints: Project) -> None:
    lines = endpoints("access", "--explain", "https://office.example.com", "--from", "192.0.2.1").out.splitlines()
    assert lines[0] == "  https://office.example.com"
    assert lines[1].startswith("    CloudEndpoint/office  manifests/")
    assert lines[2] == "- 192.0.2.1 is not in 203.0.113.0/24"


EXPLAINED = ("--explain", "https://a.example.com", "--from", "192.0.2.1")


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
        (
            (*EXPLAINED, "--signed-in", "gogle"),
            "'gogle' is no identity provider; did you mean google?",
        ),
        (
            (*EXPLAINED, "--signed-in", "okta"),
            "use one of amazon, facebook, github, gitlab, google, linkedin, microsoft, twitch, SAML, or the URL",
        ),
        ((*EXPLAINED, "--signed-in", ""), "'' is no identity provider"),
        (
            (*EXPLAINED, "--signed-in", "github:taem=ops"),
            "'github:taem=ops' has the unknown attribute taem; did you mean team?",
        ),
        (
            ("--declared", *EXPLAINED, "--signed-in", "https://idp.example.com"),
            "no entry point asks for 'https://idp.example.com'; use a sign-in of the account",
        ),
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


POLICY = "policy: p\ncheck: '!access.exists(e, e.host == \"nowhere.example.com\")'\nmessage: open\n"


def test_policies_tests_and_the_page_ask_for_the_accounts_of_a_plan_once(
    endpoints: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints.write("policies/p.yaml", POLICY)
    endpoints.write("tests/access.yaml", "[{from: 192.0.2.1, to: https://shop.example.com, expect: allow}]\n")
    find, snapshots = planner.find_accounts, []

    def count(manifest: Any, snapshot: Any, *more: Any) -> Any:
        snapshots.append(snapshot)
        return find(manifest, snapshot, *more)

    monkeypatch.setattr(planner, "find_accounts", count)
    for number in (1, 2):
        planned = endpoints("plan", "--format", "html=plan.html")
        assert planned.code == 0, planned.err
        assert len(snapshots) == number  # each plan reads the account anew


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


PROPOSED = """\
# Proposed by `reconciler access --write-tests`: who gets through now. Change what is not intended.

# https://office.example.com: 203.0.113.0/24
- from: "203.0.113.0/24"
  to: "https://office.example.com"
  expect: allow
- from: "192.0.2.1"
  to: "https://office.example.com"
  expect: deny

# https://shop.example.com: everyone
- from:
    - "0.0.0.0/0"
    - "::/0"
  to: "https://shop.example.com"
  expect: allow

# https://staff.example.com: sign-in at google
- from:
    - "0.0.0.0/0"
    - "::/0"
  to: "https://staff.example.com"
  with:
    signed_in: google
  expect: allow
- from: "192.0.2.1"
  to: "https://staff.example.com"
  expect: deny
"""


def read_tests(project: Shell, file: str = "tests/access.yaml") -> str:
    return (project.root / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("declared", [(), ("--declared",)], ids=["live", "declared"])
def test_proposed_tests_pass_at_once_and_fail_when_a_gate_is_removed(
    endpoints: Project, sandbox: Sandbox, declared: tuple[str, ...]
) -> None:
    sandbox.post("/reserved_domains", {"domain": "other.example.com"})
    policy = json.dumps({"on_http_request": [{"actions": [ANSWERS]}]})
    sandbox.post("/endpoints", {"url": "https://other.example.com", "traffic_policy": policy})
    written = endpoints("access", "--write-tests", *declared)
    assert (written.code, written.out) == (0, "tests/access.yaml: 5 access tests\n")
    assert read_tests(endpoints) == PROPOSED  # without the endpoint that the stack does not manage
    assert (endpoints("validate").code, endpoints("plan").code) == (0, 0)
    endpoints.declare(serve("shop"), serve("office"), serve("staff"), *map(reserve, ("shop", "office", "staff")))
    found = endpoints("plan", "--quiet")
    assert (found.code, sum("access test failed" in line for line in found.out.splitlines())) == (4, 2)


def test_write_tests_changes_no_existing_file(shell: Shell) -> None:
    shell.write("manifests/shop.yaml", json.dumps(serve("shop")))
    assert shell("access", "--declared", "--write-tests").code == 0
    assert shell("access", "--declared", "--write-tests").out == "tests/access.yaml: 1 access test (unchanged)\n"
    own = "- {from: 203.0.113.9, to: dashboard, expect: deny}\n"
    shell.write("tests/access.yaml", own)
    refused = shell("access", "--declared", "--write-tests")
    assert (refused.code, read_tests(shell)) == (1, own)
    assert refused.err.splitlines() == [
        "error: tests/access.yaml exists with other content",
        "nothing was written; name another file, as in --write-tests=tests/access/proposed.yaml",
    ]
    assert shell("access", "--declared", "--write-tests=tests/access/more.yaml").code == 0
    assert read_tests(shell, "tests/access/more.yaml").startswith("# Proposed by ")


def test_proposed_tests_of_an_environment_are_run_in_it_only(shell: Shell) -> None:
    shell.write("manifests/shop.yaml", json.dumps(serve("shop")))
    for name in ("prod", "staging"):
        shell.write(f"environments/{name}.yaml", f"stack: {name}\n")
    assert shell("access", "--declared", "--write-tests", "--env", "prod").code == 0
    assert "  expect: allow\n  env: prod\n" in read_tests(shell)


def test_selected_entry_points_only_are_proposed(shell: Shell) -> None:
    shell.write("manifests/shop.yaml", "---\n".join(json.dumps(one) + "\n" for one in RESOURCES))
    assert shell("access", "--declared", "--write-tests", "--host", "office.*").out.endswith(": 2 access tests\n")
    nothing = shell("access", "--declared", "--write-tests=tests/access/b.yaml", "--host", "no.example.com")
    assert (nothing.code, nothing.out, "No access tests to propose" in nothing.err) == (0, "", True)
    assert not (shell.root / "tests/access").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--write-tests=access.yaml",), 1, "access.yaml is not read as access tests"),
        (("--write-tests=../tests/access.yaml",), 1, "../tests/access.yaml"),
        (("--write-tests", "--format", "json"), 64, "--write-tests cannot be used with --format"),
        (("--write-tests", "--explain", "https://a.example.com"), 64, "--write-tests cannot be used with --explain"),
    ],
)
def test_write_tests_refuses_other_files_and_outputs(
    shell: Shell, words: tuple[str, ...], code: int, message: str
) -> None:
    shell.write("manifests/shop.yaml", json.dumps(serve("shop")))
    refused = shell("access", "--declared", *words)
    assert (refused.code, message in refused.err) == (code, True), refused


def test_no_tests_are_proposed_from_an_incomplete_list(endpoints: Project, sandbox: Sandbox) -> None:
    sandbox.fault("GET /ip_restrictions", times=9, then="status", status=403)
    refused = endpoints("access", "--write-tests")
    assert (refused.code, (endpoints.root / "tests").exists()) == (1, False)
