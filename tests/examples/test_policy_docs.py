"""The page about policies: each policy and each expression in it is loaded, type-checked and evaluated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.access.inventory import list_entries, list_unread
from reconciler.model.problem import Position
from reconciler.planning import planner
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.policies import evaluate as judge
from reconciler.planning.policies.rule import LANGUAGE, Rule
from reconciler.planning.policies.vocabulary import list_messages, make_typed_language
from reconciler.project.policies.load import load_policies
from reconciler.project.settings.config import load_config
from tests.harness.builders import KINDS, declare, make_plan, manifest, snapshot

PAGE = (Path(__file__).parents[2] / "docs/policies.md").read_text()
POLICIES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
EXPRESSIONS = [line for block in re.findall(r"```cel\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
ANSWER = {"on_http_request": [{"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}]}
DECLARED = (
    declare("IPPolicy/unused", {"description": "unused"}),
    declare("TunnelCredential/all", {"acl": ["*"]}),
    *(
        item
        for name in ("wiki", "status")
        for item in (
            declare(f"ReservedDomain/{name}", {"domain": f"{name}.corp.example.com"}),
            declare(f"CloudEndpoint/{name}", {"url": f"https://{name}.corp.example.com", "traffic_policy": ANSWER}),
        )
    ),
)
VIOLATED = {
    "credentials-have-an-acl": ["TunnelCredential/all can bind every domain and address"],
    "ip-policies-are-used": ["no edge, route or restriction refers to IPPolicy/unused"],
    "nothing-internal-is-public": ["https://wiki.corp.example.com admits everyone, because of CloudEndpoint/wiki"],
    "few-public-ways-in": [],
}


def judge_plan(rule: Rule) -> list[str]:
    _, account = planner.find_accounts(manifest(*DECLARED), snapshot(), KINDS, PlanOptions())
    access = judge.AccessList(tuple(list_entries(account)), list_unread(account))
    found = judge.check_plan([rule], make_plan(*DECLARED), KINDS, 0.0, manifest(*DECLARED), lambda: access)
    return [problem.text.removesuffix(f" (policy {rule.name})") for problem in found]


@pytest.mark.parametrize("text", POLICIES)
def test_each_policy_of_the_page_finds_its_violations(tmp_path: Path, text: str) -> None:
    (tmp_path / "reconciler.yaml").write_text("version: 1\nstack: docs\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/page.yaml").write_text(text)
    (rule,) = load_policies(load_config(tmp_path, {}))
    found = judge_plan(rule)
    assert not any("cannot be evaluated" in text for text in found), found
    expected = VIOLATED[rule.name]
    assert len(found) == len(expected)
    assert all(one.removeprefix("TunnelCredential/all ") in other for one, other in zip(found, expected, strict=True))


def test_the_page_has_an_example_for_each_expectation() -> None:
    assert [re.search(r"^policy: (.*)", text, re.MULTILINE)[1] for text in POLICIES] == list(VIOLATED)  # type: ignore[index]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_each_expression_of_the_page_is_right_and_can_be_evaluated(text: str) -> None:
    assert make_typed_language(()).find_mistakes(text) == ()
    rule = Rule("a", LANGUAGE.expression(text), ("no",), Position("policies/a.yaml", 1, 1))
    assert not any("cannot be evaluated" in problem for problem in judge_plan(rule))


@pytest.mark.parametrize(("variable", "fields"), list(list_messages()))
def test_the_page_lists_each_field_of_a_variable(variable: str, fields: dict[str, str]) -> None:
    *_, row = (line for line in PAGE.splitlines() if line.startswith(f"| `{variable}` |"))
    assert sorted(field for field in fields if f"`{field}`" not in row) == []
