"""The origins of a value: layers, variables and references, for `explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.model.address import Address
from reconciler.model.value import Hidden
from reconciler.project.manifests.trace import path_of, show_value, trace_values
from reconciler.project.settings import variables
from tests.project.texts import ProjectFolder


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


def test_the_values_of_an_inline_child_are_traced_to_its_entry(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\ndefaults: {IPPolicyRule: {spec: {description: d}}}\n")
    project.write(
        "manifests/a.yaml",
        "kind: IPPolicy\nname: p-${{ each.key }}\nfor_each: {x: {net: 10.0.0.0/8}}\nrules:\n"
        "  lan:\n    cidr: ${{ each.value.net }}\n    action: allow\n",
    )
    project.write("environments/prod.yaml", "IPPolicy/p-x: {rules: {lan: {action: deny}}}\n")
    assert traces(project, "IPPolicyRule/p-x-lan", "cidr") == [
        (
            "cidr",
            "10.0.0.0/8",
            [("manifest", "a:6", "${{ each.value.net }}"), ("for_each (feeds)", "a:3", "10.0.0.0/8")],
        )
    ]
    assert traces(project, "IPPolicyRule/p-x-lan", "action", "prod") == [
        ("action", "deny", [("environment prod", "prod:1", "deny"), ("manifest (overridden)", "a:7", "allow")])
    ]
    assert traces(project, "IPPolicyRule/p-x-lan", "description") == [
        ("description", "d", [("defaults of the kind", "reconciler:2", "d")])
    ]
    ((_, _, origins),) = traces(project, "IPPolicyRule/p-x-lan", "ip_policy_id")
    assert origins[0] == ("manifest", "a:5", {"ref": "IPPolicy/p-x"})


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


def test_an_unset_value_has_its_default_as_origin(project: ProjectFolder) -> None:
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
    ("kind", "path", "value", "text"),
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
def test_hidden_values_are_not_shown(kind: str, path: Any, value: Any, text: Any) -> None:
    assert show_value(kind, path, value) == text
