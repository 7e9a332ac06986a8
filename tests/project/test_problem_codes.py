"""Mistakes in a project's files have the codes and values that scripts rely on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.model.problem import Problem, Rejected
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config

BOT = "kind: BotUser\nname: b\n"
VALID = f"{BOT}spec: {{name: b}}\n"
EDGE = "kind: TLSEdge\nname: e\n"
PAIR = "kind: FailoverBackend\nname: %s\nspec: {backends: [{ref: FailoverBackend/%s}]}\n"
MANIFESTS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{EDGE}spec: {{hostprots: []}}\n": ("unknown-field", {"field": "hostprots", "suggestion": "hostports"}),
    f"{BOT}spec: {{}}\n": ("missing-field", {"field": "name"}),
    f"{BOT}spec: {{name: [b]}}\n": ("wrong-type", {"expected": "text", "found": "a list"}),
    f"{EDGE}spec: {{tls_termination: {{terminate_at: egde}}}}\n": (
        "unknown-choice",
        {"choices": ["edge", "upstream"]},
    ),
    f"{EDGE}spec: {{hostports: ['https://x.example.com']}}\n": ("invalid-value", {}),
    f"{EDGE}spec: {{description: {'x' * 300}}}\n": ("value-too-long", {"limit": 255}),
    "kind: TLSEgde\nname: e\nspec: {}\n": ("unknown-kind", {"kind": "TLSEgde", "suggestion": "TLSEdge"}),
    "kind: BotUser\nname: -b\nspec: {name: b}\n": ("invalid-name", {}),
    f"{VALID}---\n{VALID}": ("duplicate-address", {"first": "manifests/a.yaml:1:1"}),
    f"{VALID}---\nkind: BotUser\nname: c\nspec: {{name: b}}\n": ("duplicate-object", {"first": "BotUser/b"}),
    f"{PAIR % ('a', 'b')}---\n{PAIR % ('b', 'a')}": (
        "circular-reference",
        {"addresses": ["FailoverBackend/a", "FailoverBackend/b"]},
    ),
    f"{EDGE}spec: {{backend: {{backend_id: {{ref: StaticBackend/x}}}}}}\n": (
        "unknown-reference",
        {"reference": "StaticBackend/x"},
    ),
    f"{BOT}spec: {{name: '${{{{ var.x }}}}'}}\n": ("unknown-variable", {"variable": "x"}),
    f"{BOT}spec: {{name: {{from_env: UNSET}}}}\n": ("unset-environment-variable", {}),
    f"{BOT}spec: {{name: {{from_file: ../x}}}}\n": ("path-outside-project", {}),
    f"{BOT}spec: {{name: {{from_file: x}}}}\n": ("unreadable-file", {}),
    f"{BOT}spec: {{name: [\n": ("invalid-yaml", {}),
    f"{BOT}name: c\nspec: {{name: b}}\n": ("duplicate-key", {}),
    f"{BOT}spec: {{<<: {{name: b}}}}\n": ("unsupported-yaml", {}),
}


def problems(root: Path) -> list[Problem]:
    try:
        return [*load_manifests(load_config(root, {}), {}).warnings]
    except Rejected as rejected:
        return [*rejected.problems]


@pytest.mark.parametrize(("manifest", "expected"), MANIFESTS.items(), ids=[code for code, _ in MANIFESTS.values()])
def test_a_mistake_in_a_manifest(tmp_path: Path, manifest: str, expected: tuple[str, dict[str, Any]]) -> None:
    (tmp_path / "reconciler.yaml").write_text("stack: s\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/a.yaml").write_text(manifest)
    found = [(problem.code, dict(problem.values)) for problem in problems(tmp_path)]
    assert found[0] == expected


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("stack: s\nmanifest: [a]\n", "unknown-field"),
        ("stack: s\nmanifests: [/a]\n", "path-outside-project"),
        ("stack: s\ndefaults: {BotUsr: {}}\n", "unknown-kind"),
        ("stack: s\nvariables: {a: {type: txt}}\n", "unknown-choice"),
        ("stack: s\nvariables: {a: {type: string}}\n", "variable-without-value"),
        ("stack: s\n---\nstack: t\n", "several-documents"),
        ("[]\n", "wrong-type"),
    ],
)
def test_a_mistake_in_the_project_file(tmp_path: Path, settings: str, code: str) -> None:
    (tmp_path / "reconciler.yaml").write_text(settings)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/a.yaml").write_text(VALID)
    assert code in [problem.code for problem in problems(tmp_path)]
