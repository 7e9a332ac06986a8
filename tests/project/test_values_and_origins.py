"""Values of a spec: how they are resolved, what is wrong with them, where they come from, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field as PydanticField
from pydantic import ValidationError

from reconciler import kinds
from reconciler.kinds.types.fields import check_with
from reconciler.model.address import Address
from reconciler.model.fields.annotations import Between, Sensitive
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.spec import StrictModel
from reconciler.model.manifest import Ensure
from reconciler.model.problem import Finding, Position, Rejected
from reconciler.model.snapshot import Live
from reconciler.model.value import Hidden, Ref, Sealed, Secret, Template, Value
from reconciler.planning.importing.describe import Attachment
from reconciler.planning.importing.survey import Imported
from reconciler.project.documents import validation
from reconciler.project.documents.references import Declared
from reconciler.project.documents.resolve import Resolver
from reconciler.project.manifests import write
from reconciler.project.manifests.trace import path_of, show_value, trace_values
from reconciler.project.policies import offsets
from reconciler.project.settings import variables
from reconciler.project.yaml import reader as yaml
from tests.project.test_environments import ProjectFolder, project
from tests.project.test_manifests import load, one, told

__all__ = ["project"]

# --- what is wrong with a value ---------------------------------------------------------------------------------------


def _check_even(text: str) -> str | None:
    return None if len(text) % 2 == 0 else f"{text!r} is odd: {text}; write {text}{text}"


class Part(StrictModel):
    number: float = 0.5
    key: str


class Sample(StrictModel):
    text: str = ""
    choice: Literal["edge", "upstream"] = "edge"
    one: Literal[1] = 1
    size: Annotated[int, Between(1, 5)] = 3
    most: Annotated[int, PydanticField(le=9, gt=1)] = 2
    least: Annotated[int | None, PydanticField(ge=2)] = None
    flag: bool = False
    names: list[str] = PydanticField(default_factory=list)
    labels: dict[str, str] = PydanticField(default_factory=dict)
    part: Part | None = None
    parts: list[Part] = PydanticField(default_factory=list)
    mixed: str | list[str] = ""
    even: Annotated[str, check_with(_check_even)] = ""
    secret: Annotated[Annotated[str, check_with(_check_even)], Sensitive] = ""
    hidden: Annotated[Literal["a", "b"], Sensitive] = "a"


def findings(value: Any) -> list[str]:
    try:
        Sample.model_validate(value)
    except ValidationError as error:
        found = validation.problems_of(error, value, fields_of(Sample))
        return [f"{'.'.join(map(str, each.path))}: {each.text}; {each.remedy} ({each.code})" for each in found]
    return []


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"text": 1}, ["text: expected text, found a whole number; quote it (wrong-type)"]),
        ({"text": 1.5}, ["text: expected text, found a number; quote it (wrong-type)"]),
        ({"text": True}, ["text: expected text, found true; quote it (wrong-type)"]),
        ({"text": None}, ["text: expected text, found nothing; set a value, or remove the line (wrong-type)"]),
        ({"text": []}, ['text: expected text, found a list; write text, as in "value" (wrong-type)']),
        ({"text": {}}, ['text: expected text, found a map; write text, as in "value" (wrong-type)']),
        ({"text": {"env": "X"}}, ["text: expected text, found a map; write {from_env: X} (wrong-type)"]),
        ({"text": {"env": "X", "a": 1}}, ['text: expected text, found a map; write text, as in "value" (wrong-type)']),
        ({"size": "3"}, ["size: expected a whole number, found text; remove the quotes (wrong-type)"]),
        ({"size": "x"}, ["size: expected a whole number, found text; write digits without quotes, as in 10 (wrong-t"]),
        ({"size": ".inf"}, ["size: expected a whole number, found text; write digits without quotes, as in 10 (wro"]),
        ({"size": 1.5}, ["size: expected a whole number, found a number; write digits without quotes, as in 10 (wr"]),
        ({"size": 0}, ["size: 0 is out of range; write a number from 1 to 5 (value-out-of-range)"]),
        ({"most": 10}, ["most: must be at most 9; the default is 2 (value-out-of-range)"]),
        ({"least": 1}, ["least: must be at least 2;  (value-out-of-range)"]),
        ({"most": 1}, ["most: must be more than 1; the default is 2 (value-out-of-range)"]),
        ({"flag": "true"}, ["flag: expected true or false, found text; remove the quotes (wrong-type)"]),
        ({"flag": 1}, ["flag: expected true or false, found a whole number; write true or false (wrong-type)"]),
        ({"flag": "yes"}, ["flag: expected true or false, found text; write true or false (wrong-type)"]),
        ({"names": "a"}, ["names: expected a list, found text; put it in brackets: [ … ] (wrong-type)"]),
        ({"names": {"a": 1}}, ["names: expected a list, found a map; write a list (wrong-type)"]),
        ({"names": {"ref": "A/b"}}, ["names: expected a list, found a reference; put it in brackets: [ … ] (wrong-t"]),
        ({"names": ["a", 1]}, ["names.1: expected text, found a whole number; quote it (wrong-type)"]),
        ({"labels": []}, ["labels: expected a map, found a list; write a map, as in {key: value} (wrong-type)"]),
        ({"labels": {"a": 1}}, ["labels.a: expected text, found a whole number; quote it (wrong-type)"]),
        ({"part": {}}, ["part.key: missing required field;  (missing-field)"]),
        ({"part": {"key": "a", "kez": 1}}, ["part.kez: unknown field; did you mean key? (unknown-field)"]),
        ({"part": {"key": "a", "zzz": 1}}, ["part.zzz: unknown field; use number or key (unknown-field)"]),
        ({"part": {"key": "a", "number": "0.5"}}, ["part.number: expected a number, found text; remove the quotes (w"]),
        ({"parts": [{"key": "a"}, {}]}, ["parts.1.key: missing required field;  (missing-field)"]),
        (
            {"parts": [1]},
            ["parts.0: expected a map, found a whole number; write a map, as in {key: value} (wrong-type)"],
        ),
        ({"txt": 1}, ["txt: unknown field; did you mean text? (unknown-field)"]),
        ({"choice": "egde"}, ["choice: 'egde' is not one of edge or upstream; did you mean edge? (unknown-choice)"]),
        ({"choice": "zzzz"}, ["choice: 'zzzz' is not one of edge or upstream;  (unknown-choice)"]),
        (
            {"choice": 1},
            ["choice: expected one of edge or upstream, found a whole number; write one of"],
        ),
        ({"one": 2}, ["one: expected 1, found 2; write 1 (unknown-choice)"]),
        ({"one": "1"}, ["one: '1' is not one of 1; did you mean 1? (unknown-choice)"]),
        ({"one": []}, ["one: expected one of 1, found a list; write one of 1 (wrong-type)"]),
        ({"mixed": 1}, ["mixed: expected text or a list, found a whole number; quote it (wrong-type)"]),
        ({"mixed": [1]}, ["mixed: expected text, found a list; "]),
        ({"even": "abc"}, ["even: 'abc' is odd: abc; write abcabc (invalid-value)"]),
        ({"secret": "abc"}, ["secret: the value is odd: …; write …… (invalid-value)"]),
        ({"hidden": "canary"}, ["hidden: this is not one of a or b;  (unknown-choice)"]),
        ({"secret": 12345}, ["secret: expected text, found a whole number; quote it (wrong-type)"]),
        ({"text": 1, "flag": 2}, ["text: expected text, found a whole", "flag: expected true or false, found a whole"]),
    ],
)
def test_a_wrong_value_is_one_finding_with_a_remedy(value: Any, lines: list[str]) -> None:
    found = findings(value)
    if "mixed" in value and isinstance(value["mixed"], list):
        assert {each.partition(":")[0] for each in found} <= {"mixed", "mixed.0"}
        return
    assert [each[: len(line)] for each, line in zip(found, lines, strict=True)] == lines


def test_a_rule_that_fails_for_a_secret_does_not_repeat_it() -> None:
    for secret in (Secret("abc", "env:X"), Sealed("env:X")):
        with pytest.raises(ValidationError) as raised:
            Sample.model_validate({"even": "abc"})
        (found,) = validation.problems_of(raised.value, {"even": secret}, fields_of(Sample))
        assert found.text == ("the value is odd: …" if type(secret) is Secret else "'abc' is odd: abc")


@pytest.mark.parametrize(
    ("path", "name", "is_sensitive"),
    [
        (("text",), "text", False),
        (("part", "key"), "key", False),
        (("parts", 3, "key"), "key", False),
        (("labels", "any"), "", False),
        (("labels", "any", "deep"), None, False),
        (("names", 0), "", False),
        (("names", "a"), None, False),
        (("parts", "key"), None, False),
        (("none",), None, False),
        (("text", "deep"), None, False),
        (("secret",), "secret", True),
        (("secret", "deep"), None, True),
        ((0,), None, False),
        ((), None, False),
    ],
)
def test_a_field_is_found_by_its_path(path: Any, name: str | None, is_sensitive: bool) -> None:
    field, sensitive = validation.field_at(fields_of(Sample), path)
    assert sensitive == is_sensitive
    assert (field is None) == (name is None)
    if field is not None and name:
        assert field.name == name


@pytest.mark.parametrize(
    ("path", "value"), [((), {"a": [1]}), (("a", 0), 1), (("a", 1), None), (("a", "b"), None), (("a", 0, 0), None)]
)
def test_a_value_is_found_by_its_path(path: Any, value: Any) -> None:
    assert validation.value_at({"a": [1]}, path) == value


def test_a_finding_becomes_a_problem_at_its_key_or_value() -> None:
    places = yaml.read(b"spec:\n  a: {b: 1}\n", "f").documents[0].places
    is_key = Finding(("a", "b"), "text", code="x", is_key=True)
    plain = Finding(("a", "b"), "text", "remedy", code="x", values={"n": 1})
    for finding, where in ((is_key, 7), (plain, 10)):
        problem = validation.to_problem(finding, places, "K/n", ("spec",))
        assert (problem.position, problem.subject) == (Position("f", 2, where), "K/n.a.b")
    assert str(validation.to_problem(plain, places, "", ("spec",))) == "f:2:10: a.b: text; remedy"
    missing = Finding(("a", "c"), "text", code="x", is_key=True)
    assert validation.to_problem(missing, places, "", ("spec",)).position == Position("f", 2, 6)


def test_findings_beyond_a_hundred_of_one_resource_are_counted_not_listed() -> None:
    for count in (99, 100, 101, 150):
        lines = told("kind: IPPolicy\nname: a\nspec:\n" + "".join(f"  k{number}: 1\n" for number in range(count)))
        assert len(lines) == min(count, 101)
        more = [line for line in lines if "more than 100 problems in this resource; correct those above first" in line]
        assert len(more) == (count > 100)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("protect: true", "protect: unknown field; write it under lifecycle, as in lifecycle: {protect: …}"),
        ("lifecycle: {}", "lifecycle: unknown field; write it beside spec"),
        ("name: x", "name: unknown field; write it beside spec"),
        ("descripton: x", "descripton: unknown field; did you mean description?"),
    ],
)
def test_a_key_that_belongs_beside_the_spec_is_reported_as_that(text: str, line: str) -> None:
    assert told(f"kind: IPPolicy\nname: a\nspec: {{{text}}}\n") == [f"a.yaml:3:8: IPPolicy/a.{line}"]


@pytest.mark.parametrize(
    ("more", "is_complete"),
    [
        ("ensure: absent", True),
        ("ensure: forgotten", True),
        ("id: edghtsrt_1\nspec: {edge_id: e}", True),
        ("spec: {edge_id: e, match: /, match_type: exact_path}", True),
        ("spec: {edge_id: edghts_1}", False),
        ("id: edghtsrt_1", False),
        ("ensure: absent\nspec: {backend: {}}", False),
    ],
)
def test_required_fields_are_those_of_an_object_that_must_exist(more: str, is_complete: bool) -> None:
    text = f"kind: HTTPSEdgeRoute\nname: r\n{more}\n"
    if is_complete:
        one(text)
    else:
        assert all("missing required field" in line for line in told(text))


# --- expressions ------------------------------------------------------------------------------------------------------


def resolve(
    kind: str, spec: dict[str, Any], environ: dict[str, str] | None = None, **given: Any
) -> tuple[Any, list[str]]:
    declared = Declared()
    declared.add(Address("IPPolicy", "p"), Ensure.PRESENT)
    declared.add(Address("ReservedAddress", "r"), Ensure.PRESENT)
    resolver = Resolver(Path(), environ or {}, given.get("variables", {}), declared, None, given.get("sources", {}))
    found = resolver.resolve(kinds.get(kind).spec, Address(kind, "a"), spec)
    return found, [f"{'.'.join(map(str, each.path))}: {each.text}" for each in resolver.findings]


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


def test_a_spec_without_expressions_is_returned_as_it_is() -> None:
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
def test_a_secret_stays_secret_and_names_its_source(written: Any, text: str, source: str, problems: list[str]) -> None:
    spec = {"name": "n", "value": written}
    given = {**VARIABLES, "given": "g"}
    found, told = resolve("Secret", spec, {"S": "canary"}, variables=given, sources={"given": "--var"})
    assert isinstance(found["value"], Secret)
    assert (found["value"].reveal(), found["value"].source, told) == (text, source, problems)


def test_the_remedy_for_a_secret_in_plain_text_names_its_field() -> None:
    resolver = Resolver(Path(), {}, {}, Declared())
    resolver.resolve(kinds.get("HTTPSEdgeRoute").spec, Address("HTTPSEdgeRoute", "a"), {"oidc": {"client_secret": "s"}})
    assert [finding.remedy for finding in resolver.findings] == [
        "write client_secret: {from_env: NAME} or {from_file: PATH}"
    ]


@pytest.mark.parametrize(
    "written", ["x ${{ IPPolicy/p }}", "canary ${{ var.x }}", "${{ lower('canary') }}", "canary ${{", "${{ canary }}"]
)
def test_a_secret_that_cannot_be_resolved_is_not_repeated(written: str) -> None:
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
def test_an_environment_variable_in_a_visible_field_is_warned_of(name: str, warning: str) -> None:
    _, problems = resolve("IPPolicy", {"description": {"from_env": name}}, {name: "x"})
    assert problems == [f"description: {warning}"]
    sources = {"v": f"env:{name}"}
    _, problems = resolve("IPPolicy", {"description": "${{ var.v }}"}, variables={"v": "x"}, sources=sources)
    assert problems == ([f"description: {warning}"] if "named" in warning else [])
    assert resolve("AgentConfig", {"region": {"from_env": name}}, {name: "x"})[1] == []


def test_an_address_where_an_id_belongs_is_reported_and_other_texts_are_ids() -> None:
    def backend(text: str) -> list[str]:
        return resolve("TLSEdge", {"backend": {"backend_id": text}})[1]

    assert backend("FailoverBackend/a") == ["backend.backend_id: expected an id, found the address FailoverBackend/a"]
    assert backend("Unknown/a") == backend("bk d/a") == backend("bkdfo_1") == []
    assert "does not look like an id" in backend("FailoverBackend")[0]


# --- origins ----------------------------------------------------------------------------------------------------------


def traces(
    project: ProjectFolder, address: str, path: str = "", environment: str | None = None, **given: str
) -> list[Any]:
    config = project.config(environment)
    found = project.load(environment, **given).manifest.declarations
    settled = variables.settle_variables(config.settings, given, [])
    declaration = found[Address.parse(address)]
    return [
        (
            trace.path,
            trace.value,
            [
                (
                    origin.what + (" (overridden)" if not origin.counts else "") + (" (feeds)" if origin.feeds else ""),
                    str(origin.position and f"{Path(origin.position.file).stem}:{origin.position.line}"),
                    origin.gist or origin.written,
                )
                for origin in trace.origins
            ],
        )
        for trace in trace_values(declaration, path_of(path), config, settled, found)
    ]


def test_a_value_has_an_origin_in_each_layer_that_sets_it(project: ProjectFolder) -> None:
    project.write(
        "reconciler.yaml",
        "stack: s\nvariables: {v: one}\ndefaults: {IPPolicy: {spec: {description: d, metadata: m}}}\n",
    )
    project.write("manifests/a.yaml", "kind: IPPolicy\nname: a\nspec:\n  description: '${{ var.v }}'\n")
    project.write("environments/prod.yaml", "IPPolicy/a: {spec: {description: e}}\n")
    assert traces(project, "IPPolicy/a", "description", "prod") == [
        (
            "description",
            "e",
            [
                ("environment prod", "prod:1", "e"),
                ("manifest (overridden)", "a:4", "${{ var.v }}"),
                ("variable v, from default (overridden) (feeds)", "reconciler:2", "one"),
                ("defaults of the kind (overridden)", "reconciler:3", "d"),
            ],
        )
    ]
    assert traces(project, "IPPolicy/a") == [
        (
            "description",
            "one",
            [
                ("manifest", "a:4", "${{ var.v }}"),
                ("variable v, from default (feeds)", "reconciler:2", "one"),
                ("defaults of the kind (overridden)", "reconciler:3", "d"),
            ],
        ),
        ("metadata", "m", [("defaults of the kind", "reconciler:3", "m")]),
    ]
    assert traces(project, "IPPolicy/a", "description", v="two")[0][2][1] == (
        "variable v, from --var (feeds)",
        "None",
        "two",
    )


def test_a_value_that_nothing_sets_has_its_default(project: ProjectFolder) -> None:
    tunnel = "kind: AgentTunnel\nname: t\nspec: {name: t, proto: http, addr: '80'}\n"
    bot = "kind: BotUser\nname: b\nspec: {name: b}\n"
    project.write("manifests/a.yaml", f"kind: IPPolicy\nname: a\n---\n{tunnel}---\n{bot}")
    assert traces(project, "IPPolicy/a", "description") == [
        ("description", None, [("not declared: the documented default", "None", "")])
    ]
    assert traces(project, "BotUser/b", "active")[0][2] == [("not declared: the documented default", "None", True)]
    assert traces(project, "AgentTunnel/t", "domain")[0][2] == [("not declared: left to the platform", "None", None)]
    assert traces(project, "IPPolicy/a", "nope") == [("nope", None, [("not declared", "None", None)])]
    assert traces(project, "IPPolicy/a")[0][0] == ""


def test_values_of_for_each_and_references_have_their_origins(project: ProjectFolder) -> None:
    project.write(
        "manifests/a.yaml",
        "kind: IPPolicy\nname: 'p-${{ each.key }}'\nfor_each:\n  x: {note: hi}\n"
        "spec:\n  description: 'of ${{ each.value.note }} ${{ each.key }}'\n  metadata: '${{ each.value.note }}'\n"
        "---\nkind: IPRestriction\nname: r\nspec:\n  type: agent\n  ip_policy_ids: [{ref: IPPolicy/p-x}]\n",
    )
    assert traces(project, "IPPolicy/p-x") == [
        (
            "description",
            "of hi x",
            [
                ("manifest", "a:6", "of ${{ each.value.note }} ${{ each.key }}"),
                ("for_each (feeds)", "a:4", "hi"),
                ("for_each (feeds)", "a:4", "x"),
            ],
        ),
        ("metadata", "hi", [("manifest", "a:7", "${{ each.value.note }}"), ("for_each (feeds)", "a:4", "hi")]),
    ]
    (found,) = traces(project, "IPRestriction/r", "ip_policy_ids")
    assert found[2][1:] == [("refers to IPPolicy/p-x (feeds)", "a:1", None)]


def test_a_list_or_map_of_a_variable_is_described_and_a_value_inside_is_traced(project: ProjectFolder) -> None:
    project.write(
        "reconciler.yaml",
        "stack: s\nvariables: {l: ['a.example.com:443', 'b.example.com:443'], m: {default: {terminate_at: edge}}}\n",
    )
    project.write(
        "manifests/a.yaml",
        "kind: TLSEdge\nname: e\nspec:\n  hostports: ${{ var.l }}\n  tls_termination: ${{ var.m }}\n"
        "  description: ${{ join(var.l, ',') }} $${{ var.m }}\n",
    )
    found = {path: origins for path, _, origins in traces(project, "TLSEdge/e")}
    assert found["hostports"][1] == ("variable l, from default (feeds)", "reconciler:2", "a list of 2")
    assert found["tls_termination.terminate_at"][1] == ("variable m, from default (feeds)", "reconciler:2", "a map")
    assert [what for what, _, _ in found["description"]] == ["manifest", "variable l, from default (feeds)"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", ("a",)),
        ("a.b[0].c", ("a", "b", 0, "c")),
        ("a[10][2]", ("a", 10, 2)),
        ("", ()),
        ("a-b.c d", ("a-b", "c d")),
    ],
)
def test_a_dotted_path_is_parsed(path: str, parts: tuple[str | int, ...]) -> None:
    assert path_of(path) == parts


HIDDEN = Hidden("")


@pytest.mark.parametrize(
    ("kind", "path", "value", "shown"),
    [
        ("IPPolicy", ("description",), "x", "x"),
        ("IPPolicy", ("description",), None, None),
        ("IPPolicy", ("unknown",), "x", HIDDEN),
        ("IPPolicy", ("unknown",), None, None),
        ("IPPolicy", ("description", "deep"), "x", HIDDEN),
        ("IPPolicy", ("description",), ["x"], HIDDEN),
        ("IPPolicy", ("description",), {"ref": "A/b"}, {"ref": "A/b"}),
        ("IPPolicy", ("description",), {"ref": {"a": "x"}}, HIDDEN),
        ("IPPolicy", (), {"description": "x", "more": "y"}, {"description": "x", "more": HIDDEN}),
        ("Secret", ("value",), "x", HIDDEN),
        ("Secret", ("value",), "${{ var.x }}", "${{ var.x }}"),
        ("Secret", ("value",), "${{ each.value.x }}", "${{ each.value.x }}"),
        ("Secret", ("value",), "x ${{ var.x }}", HIDDEN),
        ("Secret", ("value",), {"from_env": "X"}, {"from_env": "X"}),
        ("Secret", (), {"name": "n", "value": "x"}, {"name": "n", "value": HIDDEN}),
        ("TLSEdge", ("hostports",), ["a", "b"], ["a", "b"]),
        ("TLSEdge", ("hostports", 0), "a", "a"),
        ("TunnelGroupBackend", ("labels",), {"a": "b"}, {"a": "b"}),
        ("CloudEndpoint", ("traffic_policy",), {"a": [{"b": 1}]}, {"a": [{"b": 1}]}),
        ("CloudEndpoint", ("traffic_policy", "a", 0), {"b": 1}, {"b": 1}),
        (
            "HTTPSEdgeRoute",
            ("oidc",),
            {"client_id": "c", "client_secret": "s"},
            {"client_id": "c", "client_secret": HIDDEN},
        ),
        ("HTTPSEdgeRoute", ("oidc",), "text", HIDDEN),
    ],
)
def test_only_what_may_be_shown_is_shown(kind: str, path: Any, value: Any, shown: Any) -> None:
    assert show_value(kind, path, value) == shown


# --- writing ----------------------------------------------------------------------------------------------------------


def imported(spec: dict[str, Value], kind: str = "IPPolicy", **more: Any) -> Imported:
    return Imported(Address(kind, more.pop("name", "a")), Live(kind, "id_1", {}), spec, **more)


def test_an_imported_object_is_written_as_a_manifest() -> None:
    included: dict[str, str] = {}
    spec: dict[str, Value] = {
        "description": "$${{ x }} ${{ y }}",
        "metadata": Attachment("long\ntext", "json"),
        "more": {"ref": Ref(Address("IPPolicy", "b")), "list": [Template(("a ", Ref(Address("Vault", "v"))))]},
    }
    text = write.render_document(imported(spec, id="ipp_1", protect=True, ignore=("x.y",)), "manifests", included)
    assert included == {"manifests/files/ip-policy/a.metadata.json": "long\ntext"}
    assert text == (
        "kind: IPPolicy\nname: a\nid: ipp_1\nlifecycle:\n  protect: true\n"
        "  # Secret values cannot be imported and stay unmanaged; declare them to manage them.\n  ignore: [x.y]\n"
        'spec:\n  description: "$$${{ x }} $${{ y }}"\n'
        "  metadata: {from_file: manifests/files/ip-policy/a.metadata.json}\n"
        '  more:\n    ref: {ref: IPPolicy/b}\n    list:\n      - "a ${{ Vault/v }}"\n'
    )


def test_keys_that_do_not_apply_are_not_written() -> None:
    assert write.render_document(imported({}), ".", {}) == "kind: IPPolicy\nname: a\nspec: {}\n"
    protected = write.render_document(imported({}, protect=True), ".", {})
    assert protected == "kind: IPPolicy\nname: a\nlifecycle:\n  protect: true\nspec: {}\n"
    ignoring = write.render_document(imported({}, ignore=("a", "b")), ".", {})
    assert "protect" not in ignoring
    assert "  ignore: [a, b]\n" in ignoring


def test_documents_are_appended_without_a_change_to_those_before() -> None:
    assert write.append("", "x\n") == "x\n"
    assert write.append("\n", "x\n") == "\nx\n"
    assert write.append("a\n", "x\n") == "a\n---\nx\n"
    assert write.append("a", "x\n") == "a\n---\nx\n"


def test_children_are_in_the_file_of_their_parent_after_it() -> None:
    catalog = {kind.name: kind for kind in kinds.declarable()}
    members = [
        imported({}, "IPPolicyRule", name="a"),
        imported({}, "IPPolicy", name="z"),
        imported({}, "Vault", name="v"),
        imported({}, "IPPolicy", name="b"),
    ]
    manifests, _ = write.render_files(members, catalog, ".")
    assert [*manifests] == ["ip-policy.yaml", "vault.yaml"]
    found = [document.value for document in yaml.read(manifests["ip-policy.yaml"].encode(), "f").documents]
    assert [(each["kind"], each["name"]) for each in found] == [
        ("IPPolicy", "b"),
        ("IPPolicy", "z"),
        ("IPPolicyRule", "a"),
    ]
    assert write.file_of(members[2], catalog, "manifests") == "manifests/vault.yaml"
    alone = {name: kind for name, kind in catalog.items() if name != "IPPolicy"}
    assert write.family_of(catalog["IPPolicyRule"], alone) == "IPPolicyRule"


# --- positions within texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "start", "text", "offset", "place"),
    [
        (["a: bcd"], (1, 4), "bcd", 0, (1, 4)),
        (["a: bcd"], (1, 4), "bcd", 2, (1, 6)),
        (["a: bcd"], (1, 4), "bcd", 5, (1, 9)),
        (["a: bcd # e"], (1, 4), "bcd", 2, (1, 6)),
        (["a: 'b''c'"], (1, 4), "b'c", 1, (1, 6)),
        (["a: 'b''c'"], (1, 4), "b'c", 2, (1, 8)),
        (['a: "b\\"c\\\\d"'], (1, 4), 'b"c\\d', 4, (1, 11)),
        (["a: |", "  xy", "", "  z"], (1, 4), "xy\n\nz\n", 1, (2, 4)),
        (["a: |", "  xy", "", "  z"], (1, 4), "xy\n\nz\n", 2, (2, 5)),
        (["a: |", "  xy", "", "  z"], (1, 4), "xy\n\nz\n", 4, (4, 3)),
        (["a: |", "    xy", "      z", "b: 1"], (1, 4), "xy\n  z\n", 5, (3, 7)),
        (["a: |-", "  x", " # y"], (1, 4), "x", 0, (2, 3)),
        (["a: >", "  x", "  y", "", "  z"], (1, 4), "x y", 2, (3, 3)),
        (["a: >", "  x", "  y"], (1, 4), "x y\n", 2, (3, 3)),
        (["a: x", "  y"], (1, 4), "x y", 2, (1, 4)),
        (["a: x"], (7, 1), "x", 0, (7, 1)),
        (["a: |", "b: 1"], (1, 4), "", 0, (1, 4)),
        (["a: ''"], (1, 4), "", 0, (1, 4)),
    ],
)
def test_a_character_of_a_text_has_its_place_in_the_file(
    lines: list[str], start: tuple[int, int], text: str, offset: int, place: tuple[int, int]
) -> None:
    assert offsets.place(lines, Position("f", *start), text, offset) == Position("f", *place)


def test_a_line_and_column_of_a_text_are_an_offset() -> None:
    text = "ab\n\ncd"
    found = [offsets.offset(text, line, column) for line, column in ((1, 1), (1, 3), (2, 1), (3, 1), (3, 2))]
    assert found == [0, 2, 3, 4, 5]


# --- loading ----------------------------------------------------------------------------------------------------------


def test_an_unknown_target_is_an_error_only_if_every_document_could_be_read() -> None:
    reference = "kind: IPRestriction\nname: r\nspec: {type: agent, ip_policy_ids: [{ref: IPPolicy/a}]}\n"
    unknown = "refers to IPPolicy/a, which is not declared"
    for other, is_reported in (
        ("kind: IPPolicy\nname: b\n", True),
        ("kind: IPPolicy\nname: b\nspec: {description: 1}\n", True),
        ("kind: IPPolicy\nname: a b\n", False),
        ("- a\n", False),
        ("kind: IPPolicy\nname: '${{ each.key }}'\nfor_each: 3\n", False),
        ("kind: [\n", False),
    ):
        try:
            load(f"{reference}---\n{other}")
            lines = []
        except Rejected as rejected:
            lines = [str(problem) for problem in rejected.problems]
        assert any(unknown in line for line in lines) == is_reported, other


def test_a_nested_key_is_not_taken_for_one_beside_the_spec() -> None:
    assert told("kind: TLSEdge\nname: a\nspec: {backend: {backend_id: bkdfo_1, name: x}}\n") == [
        "a.yaml:3:39: TLSEdge/a.backend.name: unknown field; use enabled or backend_id"
    ]


def test_a_patch_is_no_error_while_its_resource_may_be_in_a_file_that_cannot_be_read(project: ProjectFolder) -> None:
    project.write("environments/prod.yaml", "IPPolicy/zzz: {}\n")
    assert [line for line in project.told("prod") if "not declared in any manifest" in line]
    project.write("manifests/b.yaml", "kind: [\n")
    assert [line for line in project.told("prod") if "not declared in any manifest" in line] == []


def test_problems_are_sorted_by_their_position() -> None:
    text = "---\n".join(f"kind: IPPolicy\nname: n{number}\nspec: {{b: 1, a: 1}}\n" for number in range(12))
    places = [tuple(map(int, line.split(":")[1:3])) for line in told(text)]
    assert places == sorted(places)
    assert len(places) == 24


def test_defaults_change_the_digest(project: ProjectFolder) -> None:
    digests = set()
    for value in ("a", "b"):
        project.write("reconciler.yaml", f"stack: s\ndefaults: {{IPPolicy: {{spec: {{metadata: {value}}}}}}}\n")
        digests.add(project.load().manifest.digest)
    project.write("reconciler.yaml", "stack: s\n")
    digests.add(project.load().manifest.digest)
    assert len(digests) == 3
