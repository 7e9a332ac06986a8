"""Expressions in a spec: their values, and secrets, which remain hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.manifest import Ensure
from reconciler.model.value import Ref, Secret, Template
from reconciler.project.documents.outside import Outside
from reconciler.project.documents.references import Declared
from reconciler.project.documents.resolve import Resolver
from tests.project.texts import load, load_one, load_texts, problem_lines

DOMAIN = "\n---\nkind: ReservedAddress\nname: na.me\n---\nkind: IPPolicy\nname: office\n"


def describe(expression: str) -> str:
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
def test_an_expression_is_resolved(written: str, meant: object) -> None:
    spec = load_one(describe(written), {"WORDS": "some words"}, variables={"team": "x", "size": 3}).spec
    assert spec == {"description": meant}


def test_an_environment_variable_in_a_shown_field_is_a_warning() -> None:
    warnings = load(describe("{from_env: WORDS}"), {"WORDS": "some words"}).warnings
    assert [(str(problem.position), problem.subject, problem.text, problem.remedy) for problem in warnings] == [
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
    assert problem_lines(describe("{from_env: NOPE}")) == [
        "a.yaml:4:16: IPPolicy/a.description: the environment variable NOPE is not set; "
        "export NOPE where reconciler runs"
    ]


def test_an_empty_environment_variable_is_no_secret() -> None:
    assert problem_lines(ROUTE % "{from_env: EMPTY}", {"EMPTY": ""}) == [
        "a.yaml:7:52: HTTPSEdgeRoute/r.webhook_verification.secret: the environment variable EMPTY is empty; "
        "export EMPTY where reconciler runs"
    ]


def test_a_value_of_an_environment_variable_is_validated() -> None:
    lines = problem_lines(describe("{from_env: LONG}"), {"LONG": "x" * 256})
    assert "a.yaml:4:16: IPPolicy/a.description: 256 bytes, and at most 255 are allowed; shorten it" in lines


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
def test_a_sensitive_value_of_any_source_is_a_secret(tmp_path: Path, written: str, source: str) -> None:
    (tmp_path / "hook").write_text("hunter2\n")
    declared = load_one(ROUTE % written, {"HOOK": "hunter2"}, variables={"hook": "hunter2"}, root=tmp_path)
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
    assert load_one(text, {"TEAM": "x"}).spec == {"labels": {"ref": "plain", "team": "x"}}


def test_a_number_is_read_from_an_environment_variable() -> None:
    text = "kind: HTTPResponseBackend\nname: b\nspec: {status_code: {from_env: STATUS}}"
    assert load_one(text, {"STATUS": "503"}).spec == {"status_code": 503}


def test_a_policy_is_read_from_a_file_without_resolving_expressions(tmp_path: Path) -> None:
    policy = '{"on_http_request": [{"actions": [{"type": "deny", "config": {"x": "${{ not ours }}"}}]}]}'
    (tmp_path / "policy.json").write_text(policy)
    text = (
        "kind: CloudEndpoint\nname: e\nspec: {url: 'https://a.example.com', traffic_policy: {from_file: policy.json}}"
    )
    assert load_one(text, root=tmp_path).spec["traffic_policy"] == policy


def test_the_path_of_a_file_is_relative_to_the_project(tmp_path: Path) -> None:

    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/words").write_text("two\nlines\n")
    texts = {"deep/a.yaml": b"kind: IPPolicy\nname: a\nspec: {description: {from_file: deep/words}}"}
    declared = load_texts(texts, "prod", {}, root=tmp_path).manifest.declarations[Address("IPPolicy", "a")]
    assert declared.spec == {"description": "two\nlines\n"}


def test_a_reference_is_to_the_longest_declared_name() -> None:
    text = describe("{ref: ReservedAddress/na.me.addr}") + "---\nkind: ReservedAddress\nname: na.me.addr\n"
    declared = load(text).manifest.declarations[Address("IPPolicy", "a")]
    assert declared.spec == {"description": Ref(Address("ReservedAddress", "na.me.addr"))}


def resolve(
    kind: str, spec: dict[str, Any], environ: dict[str, str] | None = None, **given: Any
) -> tuple[Any, list[str]]:
    declared = Declared()
    declared.add(Address("IPPolicy", "p"), Ensure.PRESENT)
    declared.add(Address("ReservedAddress", "r"), Ensure.PRESENT)
    resolver = Resolver(Path(), environ or {}, given.get("variables", {}), declared, None, given.get("sources", {}))
    found = resolver.resolve(kinds.get(kind).spec, Address(kind, "a"), spec)
    return found, [f"{'.'.join(map(str, finding.path))}: {finding.text}" for finding in resolver.findings]


VARIABLES = {"t": "x", "n": 3, "f": True, "l": ["a", 1], "m": {"a": 1, "b": None}, "none": None, "e": ""}


@pytest.mark.parametrize(
    ("kind", "field", "written", "value"),
    [
        ("IPPolicy", "description", "${{ var.t }}-${{ var.n }}-${{ var.f }}", "x-3-true"),
        ("IPPolicy", "description", "${{ var.n }}", "3"),
        ("IPPolicy", "description", "${{ var.f }}", "true"),
        ("IPPolicy", "description", "a$${{ b ${{var.t}}$${{", "a${{ b x${{"),
        ("IPPolicy", "description", "${{ lower('A') }}b", "ab"),
        ("IPPolicy", "description", "${{ IPPolicy/p }}", Ref(Address("IPPolicy", "p"))),
        ("IPPolicy", "description", "${{ IPPolicy/p }}${{ var.e }}", Ref(Address("IPPolicy", "p"))),
        ("IPPolicy", "description", "x ${{ IPPolicy/p }}", Template(("x ", Ref(Address("IPPolicy", "p"))))),
        ("IPPolicy", "description", "${{ IPPolicy/p }} x", Template((Ref(Address("IPPolicy", "p")), " x"))),
        ("IPPolicy", "description", "${{ var.none }}", Template(())),
        ("IPPolicy", "description", "x ${{ lower(var.none) }}", Template(())),
        ("HTTPResponseBackend", "status_code", "${{ var.n }}", 3),
        ("HTTPResponseBackend", "status_code", {"from_env": "N"}, 503),
        ("HTTPResponseBackend", "status_code", {"from_env": "T"}, "text"),
        ("HTTPResponseBackend", "headers", {"a": "${{ var.t }}", "b": "y"}, {"a": "x", "b": "y"}),
        ("HTTPResponseBackend", "headers", "${{ var.m }}", {"a": "1", "b": None}),
        ("CloudEndpoint", "pooling_enabled", "${{ var.f }}", True),
        ("TLSEdge", "hostports", "${{ var.l }}", ["a", "1"]),
        ("TLSEdge", "hostports", ["${{ var.t }}", "y"], ["x", "y"]),
        (
            "CloudEndpoint",
            "traffic_policy",
            {"a": ["${{ var.n }}", {"b": "${{ var.l }}"}]},
            {"a": [3, {"b": ["a", 1]}]},
        ),
    ],
)
def test_an_expression_has_the_type_of_its_field(kind: str, field: str, written: Any, value: Any) -> None:
    found, problems = resolve(kind, {field: written}, {"N": " 503 ", "T": "text"}, variables=VARIABLES)
    assert (found[field], type(found[field]), problems) == (value, type(value), [])


def test_a_spec_without_expressions_is_returned_unchanged() -> None:
    specs: list[tuple[str, dict[str, Any]]] = [
        ("IPPolicy", {"description": "a", "metadata": "{}"}),
        ("IPPolicy", {}),
        ("TLSEdge", {"hostports": ["a"], "mutual_tls": {"certificate_authority_ids": ["ca_1"]}}),
        ("HTTPResponseBackend", {"headers": {"a": "b"}}),
    ]
    for kind, spec in specs:
        found, problems = resolve(kind, spec)
        assert found is spec
        assert problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${{ var.l }} x", "the variable l is a list and cannot be part of a text"),
        ("x ${{ var.m }}", "the variable m is a map and cannot be part of a text"),
        ("x ${{ split('a,b', ',') }}", "the variable split('a,b', ',') is a list and cannot be part of a text"),
        ("${{ var.x }}", "unknown variable x"),
        ("${{ lower(var.x) }}", "unknown variable x"),
        ("${{ lower(name) }}", "unknown name name"),
        ("x ${{ var.t }", "'${{' is not closed with '}}'"),
        ("${{ IPPolicy/none }}", "refers to IPPolicy/none, which is not declared"),
    ],
)
def test_a_text_that_cannot_be_resolved_is_reported(text: str, problem: str) -> None:
    found, problems = resolve("IPPolicy", {"description": text}, variables=VARIABLES)
    assert (found["description"], problems) == (Template(()), [f"description: {problem}"])


@pytest.mark.parametrize(
    ("written", "text", "source", "problems"),
    [
        ("plain", "plain", "manifest:Secret/a.value", ["value: the secret is written here in plain text"]),
        ("", "", "manifest:Secret/a.value", []),
        ({"from_env": "S"}, "canary", "env:S", []),
        (
            "${{ var.t }}",
            "x",
            "manifest:Secret/a.value",
            ["value: the secret comes from the variable t, whose value is written in plain text"],
        ),
        ("${{ var.e }}", "", "manifest:Secret/a.value", []),
        ("${{ var.given }}", "g", "manifest:Secret/a.value", []),
        ("a${{ var.given }}$${{", "ag${{", "manifest:Secret/a.value", []),
    ],
)
def test_a_resolved_secret_is_hidden_and_has_its_source(
    written: Any, text: str, source: str, problems: list[str]
) -> None:
    spec = {"name": "n", "value": written}
    given = {**VARIABLES, "given": "g"}
    found, lines = resolve("Secret", spec, {"S": "canary"}, variables=given, sources={"given": "--var"})
    assert isinstance(found["value"], Secret)
    assert (found["value"].reveal(), found["value"].source, lines) == (text, source, problems)


def test_the_remedy_for_a_secret_in_plain_text_names_its_field() -> None:
    resolver = Resolver(Path(), {}, {}, Declared())
    resolver.resolve(kinds.get("HTTPSEdgeRoute").spec, Address("HTTPSEdgeRoute", "a"), {"oidc": {"client_secret": "s"}})
    assert [finding.remedy for finding in resolver.findings] == [
        "write client_secret: {from_env: NAME} or {from_file: PATH}"
    ]


@pytest.mark.parametrize(
    "written", ["x ${{ IPPolicy/p }}", "canary ${{ var.x }}", "${{ lower('canary') }}", "canary ${{", "${{ canary }}"]
)
def test_a_secret_that_cannot_be_resolved_is_not_quoted(written: str) -> None:
    found, problems = resolve("Secret", {"name": "n", "value": written}, variables=VARIABLES)
    assert (found["value"], problems) == (Template(()), ["value: invalid expression ${{ … }}"])


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("REGION", "from_env is for secrets, but plans, reports and snapshots show this field"),
        ("DB_PASSWORD", "DB_PASSWORD is named like a secret, but plans, reports and snapshots show this field"),
        ("api_key", "api_key is named like a secret, but plans, reports and snapshots show this field"),
        ("PUBLIC_KEY", "from_env is for secrets, but plans, reports and snapshots show this field"),
        ("KEY_ID", "from_env is for secrets, but plans, reports and snapshots show this field"),
        ("MONKEY", "from_env is for secrets, but plans, reports and snapshots show this field"),
    ],
)
def test_an_environment_variable_in_a_visible_field_has_a_warning(name: str, warning: str) -> None:
    _, problems = resolve("IPPolicy", {"description": {"from_env": name}}, {name: "x"})
    assert problems == [f"description: {warning}"]
    sources = {"v": f"env:{name}"}
    _, problems = resolve("IPPolicy", {"description": "${{ var.v }}"}, variables={"v": "x"}, sources=sources)
    assert problems == ([f"description: {warning}"] if "named" in warning else [])
    assert resolve("AgentConfig", {"region": {"from_env": name}}, {name: "x"})[1] == []


@pytest.mark.parametrize(
    ("field", "plain", "secret"),
    [
        ("proxy_url", "http://proxy.example.com:3128", "http://user:made-up@proxy.example.com"),
        ("server_private_key", "/etc/tls/key.pem", "-----BEGIN PRIVATE KEY-----\nmade-up\n-----END PRIVATE KEY-----"),
    ],
)
def test_a_path_or_url_in_a_sensitive_field_is_a_secret_only_if_it_contains_one(
    field: str, plain: str, secret: str
) -> None:
    def declare(text: Any) -> tuple[Any, list[str]]:
        if field == "proxy_url":
            found, problems = resolve("AgentConfig", {field: text}, {"V": secret})
            return found[field], problems
        endpoint = {"name": "a", "upstream": {"url": "80"}, "agent_tls_termination": {field: text}}
        found, problems = resolve("AgentConfig", {"endpoints": [endpoint]}, {"V": secret})
        return found["endpoints"][0]["agent_tls_termination"][field], problems

    assert declare(plain) == (plain, [])
    found, (problem,) = declare(secret)
    assert isinstance(found, Secret)
    assert "the secret is written here in plain text" in problem
    assert declare({"from_env": "V"}) == (Secret(secret, "env:V"), [])


def test_an_address_in_a_field_for_ids_is_reported() -> None:
    def backend(text: str) -> list[str]:
        return resolve("TLSEdge", {"backend": {"backend_id": text}})[1]

    assert backend("FailoverBackend/a") == ["backend.backend_id: expected an id, found the address FailoverBackend/a"]
    assert backend("Unknown/a") == backend("bk d/a") == backend("bkdfo_1") == []
    assert "does not look like an id" in backend("FailoverBackend")[0]
