from pathlib import Path

import pytest

from reconciler.model.address import Address
from reconciler.model.value import Ref, Secret, Template
from reconciler.project.documents.outside import Outside
from tests.project.test_manifests import load, one, told

DOMAIN = "\n---\nkind: ReservedAddress\nname: na.me\n---\nkind: IPPolicy\nname: office\n"


def described(expression: str) -> str:
    return f"kind: IPPolicy\nname: a\nspec:\n  description: {expression}{DOMAIN}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{ref: IPPolicy/office}", Ref(Address("IPPolicy", "office"))),
        ("{ref: ReservedAddress/na.me}", Ref(Address("ReservedAddress", "na.me"))),
        ("{ref: ReservedAddress/na.me.addr}", Ref(Address("ReservedAddress", "na.me"), "addr")),
        ("'${{ ReservedAddress/na.me.addr }}'", Ref(Address("ReservedAddress", "na.me"), "addr")),
        (
            "'tcp://${{ReservedAddress/na.me.addr}}!'",
            Template(("tcp://", Ref(Address("ReservedAddress", "na.me"), "addr"), "!")),
        ),
        ("'team ${{ var.team }} has ${{ var.size }}'", "team x has 3"),
        ("'$${{ literally }} ${left} $${alone}'", "${{ literally }} ${left} $${alone}"),
        ("{from_env: WORDS}", "some words"),
    ],
)
def test_an_expression_means(written: str, meant: object) -> None:
    spec = one(described(written), {"WORDS": "some words"}, variables={"team": "x", "size": 3}).spec
    assert spec == {"description": meant}


def test_what_comes_from_the_environment_is_told_where_it_is_not_hidden() -> None:
    shown = load(described("{from_env: WORDS}"), {"WORDS": "some words"}).warnings
    assert [(str(problem.position), problem.subject, problem.text, problem.remedy) for problem in shown] == [
        (
            "a.yaml:4:16",
            "IPPolicy/a.description",
            "from_env is for secrets, but plans, reports and snapshots show this field",
            "use a variable for values that are not secret: ${{ var.name }}",
        )
    ]
    policy = "kind: CloudEndpoint\nname: e\nspec: {url: https://a.x, traffic_policy: {from_env: WORDS}}"
    assert len(load(policy, {"WORDS": "on_http_request: []"}).warnings) == 1
    file = "kind: AgentConfig\nname: c\nspec: {server_addr: {from_env: WORDS}}"
    assert load(file, {"WORDS": "connect.example.com:443"}).warnings == ()  # no plan shows it
    hidden = "kind: Secret\nname: s\nspec: {vault_id: vault_x, name: s, value: {from_env: WORDS}}"
    assert load(hidden, {"WORDS": "some words"}).warnings == ()


def test_an_environment_variable_that_is_not_set_is_reported() -> None:
    assert told(described("{from_env: NOPE}")) == [
        "a.yaml:4:16: IPPolicy/a.description: the environment variable NOPE is not set; "
        "export NOPE where reconciler runs"
    ]


def test_an_empty_environment_variable_is_no_secret() -> None:
    assert told(ROUTE % "{from_env: EMPTY}", {"EMPTY": ""}) == [
        "a.yaml:7:52: HTTPSEdgeRoute/r.webhook_verification.secret: the environment variable EMPTY is empty; "
        "export EMPTY where reconciler runs"
    ]


def test_a_value_that_plans_show_is_checked_like_any_other() -> None:
    said = told(described("{from_env: LONG}"), {"LONG": "x" * 256})
    assert "a.yaml:4:16: IPPolicy/a.description: 256 bytes, and at most 255 are allowed; shorten it" in said


ROUTE = """\
kind: HTTPSEdgeRoute
name: r
spec:
  edge_id: edghts_1
  match_type: path_prefix
  match: /
  webhook_verification: {provider: github, secret: %s}
"""


@pytest.mark.parametrize(
    ("written", "source"),
    [
        ("hunter2", "manifest:HTTPSEdgeRoute/r.webhook_verification.secret"),
        ("{from_env: HOOK}", "env:HOOK"),
        ("{from_file: hook}", "file:hook"),
        ("'${{ var.hook }}'", "manifest:HTTPSEdgeRoute/r.webhook_verification.secret"),
    ],
)
def test_what_is_sensitive_is_a_secret_wherever_it_comes_from(tmp_path: Path, written: str, source: str) -> None:
    (tmp_path / "hook").write_text("hunter2\n")
    declared = one(ROUTE % written, {"HOOK": "hunter2"}, variables={"hook": "hunter2"}, root=tmp_path)
    secret = declared.spec["webhook_verification"]["secret"]
    assert isinstance(secret, Secret)
    assert (secret.reveal(), secret.source) == ("hunter2", source)
    assert "hunter2" not in repr(declared)


def test_an_empty_variable_is_a_value_but_no_secret(tmp_path: Path) -> None:
    outside = Outside(tmp_path, {"EMPTY": "", "SET": "x"})
    cases = [(name, is_secret) for name in ("EMPTY", "SET", "NOPE") for is_secret in (True, False)]
    found = [case for case in cases if outside.has("from_env", case[0], is_secret=case[1])]
    assert found == [("EMPTY", False), ("SET", True), ("SET", False)]


def test_a_map_of_labels_may_hold_any_key_and_its_values_are_expressions() -> None:
    text = "kind: TunnelGroupBackend\nname: b\nspec: {labels: {ref: plain, team: {from_env: TEAM}}}"
    assert one(text, {"TEAM": "x"}).spec == {"labels": {"ref": "plain", "team": "x"}}


def test_a_number_may_come_from_the_environment() -> None:
    text = "kind: HTTPResponseBackend\nname: b\nspec: {status_code: {from_env: STATUS}}"
    assert one(text, {"STATUS": "503"}).spec == {"status_code": 503}


def test_a_policy_may_come_from_a_file_whole_and_keeps_the_platforms_braces(tmp_path: Path) -> None:
    policy = '{"on_http_request": [{"actions": [{"type": "deny", "config": {"x": "${{ not ours }}"}}]}]}'
    (tmp_path / "policy.json").write_text(policy)
    text = (
        "kind: CloudEndpoint\nname: e\nspec: {url: 'https://a.example.com', traffic_policy: {from_file: policy.json}}"
    )
    assert one(text, root=tmp_path).spec["traffic_policy"] == policy


def test_a_file_is_named_from_the_root_of_the_project(tmp_path: Path) -> None:
    from tests.project.texts import load_texts

    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/words").write_text("two\nlines\n")
    texts = {"deep/a.yaml": b"kind: IPPolicy\nname: a\nspec: {description: {from_file: deep/words}}"}
    declared = load_texts(texts, "prod", {}, root=tmp_path).manifest.declarations[Address("IPPolicy", "a")]
    assert declared.spec == {"description": "two\nlines\n"}


def test_the_longest_declared_name_wins() -> None:
    text = described("{ref: ReservedAddress/na.me.addr}") + "---\nkind: ReservedAddress\nname: na.me.addr\n"
    declared = load(text).manifest.declarations[Address("IPPolicy", "a")]
    assert declared.spec == {"description": Ref(Address("ReservedAddress", "na.me.addr"))}
