"""Instances of a manifest with `for_each`: their values, the positions of these, and the limits of the expansion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.reader import Document
from reconciler.model.problem import Position
from reconciler.model.value import PENDING, Json
from reconciler.project.documents.budget import Budget
from reconciler.project.manifests import for_each
from reconciler.project.settings.variables import Setting

HEAD = "kind: %s\nname: 'n-${{ each.key }}'\nfor_each: %s\n"


def expand(
    text: str, settings: Mapping[str, Any] | None = None, budget: Budget | None = None
) -> tuple[list[Document] | None, list[str]]:
    """The instances, and the findings with their paths."""
    (document,) = yaml.read(text.encode(), "a.yaml").documents
    known = {name: Setting(value) for name, value in (settings or {}).items()}
    documents, findings = for_each.expand(document, known, budget or Budget())
    return documents, [f"{'.'.join(map(str, finding.path))}: {finding.text}; {finding.remedy}" for finding in findings]


def specs(items: str, spec: str, kind: str = "IPPolicy", **settings: Json) -> list[Any]:
    documents, findings = expand(HEAD % (kind, items) + f"spec: {spec}\n", settings)
    assert findings == []
    return [document.value["spec"] for document in documents or []]


@pytest.mark.parametrize(
    ("item", "text", "value"),
    [
        ("{k: v}", "${{ each.key }} is ${{each.value}}", "k is v"),
        ("{k: {a: {b-1: deep}}}", "${{ each.value.a.b-1 }}", "deep"),
        ("{k: 3}", "${{ each.value }}", "3"),
        ("{k: 0.5}", "${{ each.value }}", "0.5"),
        ("{k: true}", "${{ each.value }}", "true"),
        ("{k: true}", "is ${{ each.value }}", "is true"),
        ("{k: [1, 2]}", "${{ each.value }}", [1, 2]),
        ("{k: {ref: IPPolicy/x}}", "${{ each.value }}", {"ref": "IPPolicy/x"}),
        ("{k: null}", "${{ each.value }}", None),
        ("[v]", "${{ each.key }} ${{ each.value }}", "v v"),
        ("[7]", "${{ each.key }}", "7"),
        ("{k: v}", "$${{ each.key }} ${{ each.key }}", "$${{ each.key }} k"),
        ("{k: v}", "$${{ each.key }}", "$${{ each.key }}"),
        ("{k: V}", "${{ lower(each.value) }}", "v"),
        ("{k: V}", "a ${{ lower(each.value) }} b ${{ each.value }}", "a v b V"),
        ("{k: V}", "$${{ lower(each.value) }} ${{ lower(each.value) }}", "$${{ lower(each.value) }} v"),
        ("{k: V}", "$${{ lower(each.value) }}", "$${{ lower(each.value) }}"),
        ("{k: V}", "${{ lower(var.x) }}", "${{ lower(var.x) }}"),
        ("{k: V}", "${{ lower(var.x) }} ${{ lower(each.key) }}", "${{ lower(var.x) }} k"),
        ("{k: a-b}", '${{ split(each.value, "-") }}', ["a", "b"]),
        ("{k: {n: 7}}", "${{ default(each.value.n, 1) }}", "7"),
        ("{k: {n: 7}}", "${{ default(each.value.none, 1) }}", "1"),
        ("{k: {n: 7}}", "x${{ default(each.value.none, 1) }}", "x1"),
        ("{k: {n: true}}", "x${{ default(each.value.n, 1) }}", "xtrue"),
        ("{k: '${{ x }}'}", "${{ lower(each.value) }}", "$${{ x }}"),
        ("{k: '}}'}", '${{ format("{0}{1}", each.value, var.x) }}', '${{ format("{0}{1}","\\u007d\\u007d",var.x) }}'),
        ("{k: true}", "${{ default(var.x, each.value) }}", '${{ default(var.x,"true") }}'),
        ("{k: 1}", "${{ default(var.x, each.value) }}", "${{ default(var.x,1) }}"),
        ("{k: 0}", "${{ default(var.x, each.value) }}", "${{ default(var.x,0) }}"),
        ("{k: null}", "${{ default(each.value, var.x) }}", "${{ default(null,var.x) }}"),
        ("{k: {}}", "${{ default(each.value.a, var.x) }}", "${{ default(null,var.x) }}"),
    ],
)
def test_expressions_of_a_text_are_replaced_by_the_item(item: str, text: str, value: Any) -> None:
    spec = f"{{description: '{text}', hostports: ['{text}']}}"
    (found,) = specs(item, spec)
    assert found["description"] == value
    assert type(found["description"]) is type(value)


@pytest.mark.parametrize("text", ["${{ each.value }}", "${{ default(each.value, 1) }}"])
def test_a_number_becomes_text_only_in_a_text_field(text: str) -> None:
    spec = f"{{status_code: '{text}', body: '{text}', unknown: '{text}'}}"
    assert specs("{k: 503}", spec, "HTTPResponseBackend") == [{"status_code": 503, "body": "503", "unknown": 503}]
    assert specs("{k: 503}", spec, "Unknown") == [{"status_code": 503, "body": 503, "unknown": 503}]
    (flag,) = specs("{k: true}", "{pooling_enabled: '${{ each.value }}', url: '${{ each.value }}'}", "CloudEndpoint")
    assert flag == {"pooling_enabled": True, "url": "true"}


def test_values_beside_the_spec_have_their_type_and_a_name_is_text() -> None:
    text = "kind: IPPolicy\nname: '${{ each.value.n }}'\nfor_each: {a: {n: 5, p: true}}\n"
    documents, findings = expand(f"{text}lifecycle: {{protect: '${{{{ each.value.p }}}}'}}\n")
    assert findings == []
    assert documents is not None
    assert documents[0].value == {"kind": "IPPolicy", "name": "5", "lifecycle": {"protect": True}}
    call = text.replace("each.value.n", "default(each.value.n, 1)")
    documents, _ = expand(call)
    assert documents is not None
    assert documents[0].value["name"] == "5"


@pytest.mark.parametrize(
    ("item", "text", "problem"),
    [
        ("{k: [1]}", "x ${{ each.value }}", "a list cannot be part of a text; name a value inside it, as in ${{ each"),
        ("{k: null}", "x ${{ each.value }}", "nothing cannot be part of a text; name a value inside it"),
        ("{k: a-b}", "x ${{ split(each.value, '-') }}", "a list cannot be part of a text; name a value inside it"),
        ("{k: {nam: 1}}", "${{ each.value.name }}", "each.value.name does not exist for 'k'; did you mean nam?"),
        ("{k: {a: 1}}", "${{ each.value.name }}", "each.value.name does not exist for 'k'; add it to each item"),
        ("{k: v}", "${{ each.value.name }}", "each.value.name does not exist for 'k'; add it to each item"),
        ("[{a: 1}]", "${{ each.value.name }}", "each.value.name does not exist for an item without a key; add it"),
        ("[{a: 1}]", "${{ each.key }}", "items that are maps in a list have no key; use each.value.name, or write"),
        ("{k: abc}", "${{ each.value.b }}", "each.value.b does not exist for 'k'; add it to each item"),
        ("{k: [b]}", "${{ each.value.b }}", "each.value.b does not exist for 'k'; add it to each item"),
        ("{k: v}", "${{ each }}", "unknown expression each; use each.key, each.value or each.value.name"),
        ("{k: v}", "${{ each.values }}", "unknown expression each.values; use each.key, each.value or each.value.name"),
        ("{k: v}", "${{ lower(each.value.n) }}", "each.value.n does not exist for 'k'; add it to each item"),
        ("{k: v}", '${{ lower(default(each.value.n, "")) }}${{ lower(each.value.m) }}', "each.value.m does not exist"),
        ("{k: v}", "${{ upper(each.value) }}", "unknown function upper; use lower, join, split, default or format"),
        ("{k: v}", "${{ join(each.value, name) }}", "unknown name name; write each.key, each.value.NAME or var.NAME"),
        ("{k: [1]}", "${{ default(var.x, each.value) }}", "each.value is a list; use it without var in one call"),
        ("{k: {a: 1}}", "${{ default(var.x, each.value) }}", "each.value is a map; use it without var in one call"),
    ],
)
def test_an_expression_that_cannot_be_resolved_is_reported_at_its_path(item: str, text: str, problem: str) -> None:
    name = "'n-${{ each.value.a }}'" if item.startswith("[") else "'n-${{ each.key }}'"
    quoted = text.replace("'", "''")
    documents, findings = expand(f"kind: IPPolicy\nname: {name}\nfor_each: {item}\nspec: {{description: '{quoted}'}}\n")
    assert documents == []
    assert [finding[: len(problem) + 18] for finding in findings] == [f"spec.description: {problem}"]


def test_a_problem_of_all_items_is_reported_once_and_of_some_for_each() -> None:
    text = HEAD % ("IPPolicy", "{a: {}, b: {}, c: {x: 1}}")
    _, findings = expand(f"{text}spec: {{description: '${{{{ each.id }}}}', metadata: '${{{{ each.value.x }}}}'}}\n")
    assert [finding.partition(";")[0] for finding in findings] == [
        "spec.description: unknown expression each.id",
        "spec.metadata: each.value.x does not exist for 'a'",
        "spec.metadata: each.value.x does not exist for 'b'",
    ]


@pytest.mark.parametrize("text", ["${{ lower(each.value) }}", "x ${{ lower(each.value) }}", "${{ lower(each.key) }}"])
def test_no_function_is_evaluated_in_a_secret_field(text: str) -> None:
    spec = f"spec: {{vault_id: '${{{{ lower(each.key) }}}}', name: n, value: '{text}'}}\n"
    _, findings = expand(HEAD % ("Secret", "{k: V}") + spec)
    assert findings == [
        "spec.value: functions are not available in secret fields; read the whole secret with {from_env: NAME}"
    ]
    nested = f"spec: {{edge_id: e, oidc: {{issuer: i, client_id: '{text}', client_secret: '{text}'}}}}\n"
    _, findings = expand(HEAD % ("HTTPSEdgeRoute", "{k: V}") + nested)
    assert [finding.partition(":")[0] for finding in findings] == ["spec.oidc.client_secret"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("office", "every instance would have this name; use ${{ each.key }} in the name"),
        ("${{ var.x }}", "every instance would have this name; use ${{ each.key }} in the name"),
        ("${{ lower(var.x) }}", "every instance would have this name; use ${{ each.key }} in the name"),
        ("$${{ lower(each.key) }}", "every instance would have this name; use ${{ each.key }} in the name"),
        ("${{ lower(each.key) }}", None),
        ("a-${{ each.value }}", None),
    ],
)
def test_a_name_must_depend_on_the_item(name: str, problem: str | None) -> None:
    _, findings = expand(f"kind: IPPolicy\nname: '{name}'\nfor_each: [a]\n")
    assert findings == ([f"name: {problem}"] if problem else [])


def test_two_items_with_one_name_are_reported_with_their_keys() -> None:
    text = "kind: IPPolicy\nname: 'x-${{ each.value.n }}'\nfor_each: "
    problem = "name: 'x-1' is the name of two instances, of %s and of %s; use ${{ each.key }} in the name"
    assert expand(f"{text}{{a: {{n: 1}}, b: {{n: 2}}, c: {{n: 1}}, d: {{n: 1}}}}\n") == ([], [problem % ("'a'", "'c'")])
    nameless = "an item without a key"
    assert expand(f"{text}[{{n: 1}}, {{n: '1'}}]\n") == ([], [problem % (nameless, nameless)])


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ("[[a]]", "for_each.0: expected text, a number or a map, found a list; write a map, as in {key: value}"),
        ("[a, true]", "for_each.1: expected text, a number or a map, found true; write a map, as in {key: value}"),
        ("[null]", "for_each.0: expected text, a number or a map, found nothing; write a map, as in {key: value}"),
        ("[1, '1']", "for_each.1: duplicate item '1'; remove one of the two"),
        ("3", "for_each: expected a list or a map, found a whole number; write [a, b] or {a: …, b: …}"),
        ("null", "for_each: expected a list or a map, found nothing; write [a, b] or {a: …, b: …}"),
        ("a ${{ var.list }}", "for_each: expected a list or a map, found text; write [a, b] or {a: …, b: …}"),
        ("${{ var.text }}", "for_each: expected a list or a map, found text; write [a, b] or {a: …, b: …}"),
        ("${{ var.lst }}", "for_each: unknown variable lst; did you mean list?"),
        ("${{ var.zzzzz }}", "for_each: unknown variable zzzzz; define it under variables: in reconciler.yaml"),
    ],
)
def test_items_are_a_list_or_a_map(items: str, problem: str) -> None:
    assert expand(HEAD % ("IPPolicy", items), {"list": ["a"], "text": "t"}) == ([], [problem])


def test_items_of_an_unset_variable_are_neither_instances_nor_problems() -> None:
    text = HEAD % ("IPPolicy", "' ${{ var.x }} '")
    assert expand(text, {"x": None}) == (None, [])
    assert expand(text, {"x": PENDING}) == (None, [])
    assert expand(text, {"x": []}) == ([], [])
    documents, _ = expand(text, {"x": {"a": 1}})
    assert documents is not None
    assert documents[0].value["name"] == "n-a"


def test_values_of_the_command_line_have_the_position_of_the_manifest() -> None:
    """Items that are maps, and texts of a list, have no position of their own on the command line."""
    settings = {"maps": [{"a": "x"}], "texts": ["x"], "map": {"x": "x"}}
    for name, expression in (("maps", "each.value.a"), ("texts", "each.key"), ("map", "each.value")):
        text = f"kind: IPPolicy\nname: '${{{{ {expression} }}}}'\nfor_each: ${{{{ var.{name} }}}}\n"
        documents, findings = expand(text + f"spec: {{description: '${{{{ {expression} }}}}'}}\n", settings)
        assert findings == []
        assert documents is not None
        assert documents[0].places[("spec", "description")] == Position("a.yaml", 4, 21)


def test_each_value_has_the_position_of_its_item() -> None:
    text = (
        "kind: TLSEdge\nname: '${{ each.key }}'\nfor_each:\n  a:\n    ports: [x, y]\n    note: hi\n"
        "spec:\n  hostports: '${{ each.value.ports }}'\n  description: '${{ each.value.note }}'\n"
        "  metadata: '${{ each.value.note }}!'\n  mutual_tls: '${{ each.value }}'\n"
    )
    documents, _ = expand(text)
    assert documents is not None
    places = documents[0].places
    assert {path: (places[path].line, places[path].column) for path in places} == {
        (): (1, 1),
        ("kind",): (1, 7),
        ("name",): (4, 3),
        ("spec",): (7, 1),
        ("spec", "hostports"): (5, 12),
        ("spec", "hostports", 0): (5, 13),
        ("spec", "hostports", 1): (5, 16),
        ("spec", "description"): (6, 11),
        ("spec", "metadata"): (10, 13),
        ("spec", "mutual_tls"): (4, 3),
        ("spec", "mutual_tls", "ports"): (5, 12),
        ("spec", "mutual_tls", "ports", 0): (5, 13),
        ("spec", "mutual_tls", "ports", 1): (5, 16),
        ("spec", "mutual_tls", "note"): (6, 11),
    }
