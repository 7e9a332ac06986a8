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


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("{ref: IPPolicy/ofice}", "refers to IPPolicy/ofice, which is not declared; did you mean IPPolicy/office?"),
        (
            "{ref: IPPolicy/zzz}",
            "refers to IPPolicy/zzz, which is not declared; declare it, or write the id of an existing object",
        ),
        ("{ref: IPolicy/office}", "refers to the unknown kind IPolicy; did you mean IPPolicy?"),
        ("{ref: office}", "'office' is not a reference; write Kind/name or Kind/name.output"),
        ("{ref: ReservedAddress/na.me.adr}", "ReservedAddress has no output adr; did you mean addr?"),
        (
            "{ref: IPPolicy/office.metadata}",
            "IPPolicy has no output metadata (a field of its manifest: write the value itself); use id",
        ),
        ("{ref: 3}", "ref takes text, found a whole number; write {ref: Kind/name}"),
        ("{ref: IPPolicy/office, from_env: X}", "several sources for one value; keep one of ref or from_env"),
        ("{from_env: NOPE}", "the environment variable NOPE is not set; export NOPE where reconciler runs"),
        ("{from_file: ../x}", "../x contains '..'; only paths below the project's root are allowed"),
        (
            "{from_file: /etc/passwd}",
            "/etc/passwd is not a relative path; only paths below the project's root are allowed",
        ),
        ("{from_file: nope.txt}", "there is no file nope.txt; paths are relative to the project's root"),
        ("'${{ var.tem }}'", "unknown variable tem; did you mean team?"),
        ("'${{ var.team'", "'${{' is not closed with '}}'; add '}}', or write $${{ for a literal ${{"),
        ("'${{ }}'", "'' is not a reference; write Kind/name or Kind/name.output"),
        ("{from_nowhere: x}", 'expected text, found a map; write text, as in "value"'),
    ],
)
def test_an_expression_that_cannot_be_resolved_is_one_problem(written: str, line: str) -> None:
    assert told(described(written), variables={"team": "x"}) == [f"a.yaml:4:16: IPPolicy/a.description: {line}"]


def test_two_values_that_cannot_be_resolved_are_not_called_one() -> None:
    written = (
        "backends: [{backend_id: {ref: StaticBackend/a}, weight: 1}, {backend_id: {ref: StaticBackend/b}, weight: 1}]"
    )
    said = told(f"kind: WeightedBackend\nname: w\nspec:\n  {written}\n")
    assert [line.partition(";")[0] for line in said] == [
        "a.yaml:4:27: WeightedBackend/w.backends[0].backend_id: refers to StaticBackend/a, which is not declared",
        "a.yaml:4:76: WeightedBackend/w.backends[1].backend_id: refers to StaticBackend/b, which is not declared",
    ]


def test_a_value_that_plans_show_is_checked_like_any_other() -> None:
    said = told(described("{from_env: LONG}"), {"LONG": "x" * 256})
    assert "a.yaml:4:16: IPPolicy/a.description: 256 bytes, and at most 255 are allowed; shorten it" in said


def test_a_reference_to_the_wrong_kind_is_refused() -> None:
    text = "kind: TLSEdge\nname: e\nspec: {mutual_tls: {certificate_authority_ids: [{ref: IPPolicy/office}]}}" + DOMAIN
    assert told(text) == [
        "a.yaml:3:49: TLSEdge/e.mutual_tls.certificate_authority_ids[0]: refers to the kind IPPolicy;"
        " this field takes a reference to CertificateAuthority; write {ref: CertificateAuthority/NAME}"
    ]


def test_a_reference_to_what_must_be_absent_is_refused() -> None:
    text = (
        "kind: TLSEdge\nname: e\nspec: {ip_restriction: {ip_policy_ids: [{ref: IPPolicy/gone}]}}\n---\n"
        "kind: IPPolicy\nname: gone\nensure: absent\n"
    )
    assert told(text) == [
        "a.yaml:3:41: TLSEdge/e.ip_restriction.ip_policy_ids[0]: refers to IPPolicy/gone, which is declared absent;"
        " remove it"
    ]


def test_a_one_time_secret_cannot_be_referred_to() -> None:
    text = "kind: IPPolicy\nname: a\nspec: {description: {ref: TunnelCredential/c.token}}\n"
    text += "---\nkind: TunnelCredential\nname: c\ndeliver: {token: {to_file: t}}\n"
    assert told(text) == [
        "a.yaml:3:21: IPPolicy/a.description: TunnelCredential/c.token is a one-time secret and cannot be referenced;"
        " write the secret to a file with `deliver` on that resource"
    ]


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


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("12345678", "expected text, found a whole number; quote it"),
        ("{from_env: EMPTY}", "the environment variable EMPTY is empty; export EMPTY where reconciler runs"),
        (
            "{from_file: /etc/shadow}",
            "/etc/shadow is not a relative path; only paths below the project's root are allowed",
        ),
    ],
)
def test_what_is_wrong_with_a_secret_is_told_without_it(written: str, line: str) -> None:
    assert told(ROUTE % written, {"EMPTY": ""}) == [
        f"a.yaml:7:52: HTTPSEdgeRoute/r.webhook_verification.secret: {line}"
    ]


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
