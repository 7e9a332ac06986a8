"""Messages quote at most a line of a file, from each place that they quote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.model.problem import LONGEST_QUOTE, Problem, Rejected
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config

BOT = "kind: BotUser\nname: b\n"
EDGE = "kind: TLSEdge\nname: e\n"
PLACES = {
    "key of the settings": {"reconciler.yaml": "stack: s\n%s: 1\n"},
    "stack": {"reconciler.yaml": "stack: %s\n"},
    "address": {"reconciler.yaml": "stack: s\nplatform: {base_url: %s}\n"},
    "profile": {"reconciler.yaml": "stack: s\nplatform: {profile: %s}\n"},
    "folder": {"reconciler.yaml": "stack: s\nmanifests: [%s]\n"},
    "absolute folder": {"reconciler.yaml": "stack: s\nmanifests: [/, %s]\n"},
    "default of a kind": {"reconciler.yaml": "stack: s\ndefaults: {%s: 1}\n"},
    "name of a variable": {"reconciler.yaml": "stack: s\nvariables: {%s: 1}\n"},
    "type of a variable": {"reconciler.yaml": "stack: s\nvariables: {v: {type: %s}}\n"},
    "key of a variable": {"reconciler.yaml": "stack: s\nvariables: {v: {%s: 1}}\n"},
    "key of a manifest": {"manifests/a.yaml": BOT + "%s: 1\n"},
    "kind": {"manifests/a.yaml": "kind: %s\nname: b\n"},
    "name": {"manifests/a.yaml": "kind: BotUser\nname: %s\n"},
    "id": {"manifests/a.yaml": BOT + "id: %s\n"},
    "moved": {"manifests/a.yaml": BOT + "moved: %s\n"},
    "ensure": {"manifests/a.yaml": BOT + "ensure: %s\n"},
    "ignore": {"manifests/a.yaml": BOT + "lifecycle: {ignore: [%s]}\n"},
    "key of a spec": {"manifests/a.yaml": BOT + "spec: {%s: 1}\n"},
    "reference": {"manifests/a.yaml": BOT + "spec: {name: {ref: %s}}\n"},
    "template": {"manifests/a.yaml": BOT + "spec: {name: ['${{', %s]}\n"},
    "environment variable": {"manifests/a.yaml": BOT + "spec: {name: {from_env: %s}}\n"},
    "file": {"manifests/a.yaml": BOT + "spec: {name: {from_file: %s}}\n"},
    "host": {"manifests/a.yaml": EDGE + "spec: {hostports: [%s]}\n"},
    "choice": {"manifests/a.yaml": EDGE + "spec: {tls_termination: {terminate_at: %s}}\n"},
    "policy": {"manifests/a.yaml": EDGE + "spec: {traffic_policy: {value: {%s: []}}}\n"},
    "action": {
        "manifests/a.yaml": EDGE + "spec: {traffic_policy: {value: {on_http_request: [{actions: [{type: %s}]}]}}}\n"
    },
    "key of a rule": {"manifests/a.yaml": EDGE + "spec: {traffic_policy: {value: {on_http_request: [{%s: 1}]}}}\n"},
    "expression": {
        "manifests/a.yaml": EDGE
        + "spec: {traffic_policy: {value: {on_http_request: [{expressions: [%s], actions: [{type: deny}]}]}}}\n"
    },
    "sink": {"manifests/a.yaml": "kind: TunnelCredential\nname: c\ndeliver: {token: {to_file: %s}, other: {%s: 1}}\n"},
    "output": {"manifests/a.yaml": "kind: TunnelCredential\nname: c\ndeliver: {%s: {to_file: a}}\n"},
    "age": {"manifests/a.yaml": "kind: TunnelCredential\nname: c\nrotate: {after: %s}\n"},
    "item": {"manifests/a.yaml": "kind: BotUser\nname: '${{ each.key }}'\nfor_each: [%s, %s]\nspec: {name: a}\n"},
    "patch": {"environments/e.yaml": "%s: {spec: {}}\n"},
    "kind of a patch": {"environments/e.yaml": "%s/x: {spec: {}}\n"},
    "key of a patch": {"environments/e.yaml": "BotUser/b: {%s: 1}\n"},
    "value of a variable": {"environments/e.yaml": "variables: {%s: 1}\n"},
}
WRITTEN = {
    "a word": "x" * 50_000,
    "words": "x y " * 12_000,
    "a reference": "Vault/" + "x" * 50_000,
    "a template": "${{ " + "x" * 50_000 + " }}",
    "lines": "x\n" * 2_000,
    "quotes": "x'\" " * 12_000,
}


def problems(root: Path) -> tuple[Problem, ...]:
    try:
        project = load_config(root, {}, "e" if (root / "environments").exists() else None)
        return load_manifests(project, {}).warnings
    except Rejected as rejected:
        return rejected.problems


@pytest.mark.parametrize("place", PLACES)
def test_a_message_quotes_at_most_a_line(tmp_path: Path, place: str) -> None:
    for what, written in WRITTEN.items():
        texts = {"reconciler.yaml": "stack: s\n", "manifests/a.yaml": BOT + "spec: {name: b}\n", **PLACES[place]}
        for file, text in texts.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(text.replace("%s", json.dumps(written)))
        for problem in problems(tmp_path):
            message = str(problem)
            assert len(message) < 700, (what, message[:1000])
            assert "x" * (LONGEST_QUOTE + 1) not in message, what
            assert "\n" not in message, what
            assert len(json.dumps(dict(problem.values))) < 5000, what


def test_short_quotations_and_long_lists_are_not_cut() -> None:
    text = f"{'x' * 80!r} is the platform's; use {', '.join(['name'] * 60)}, as the user's"
    assert Problem(text, text, code="invalid-value").text == text
