"""The lists of words that decide what the product does: all of them in `words.txt`, and each against another source.

A word that is missing from a list, or misspelled, changes behavior for this word only, which no test of another word
notices. `words.txt` has the lists as they are in the source: a change of one is reviewed together with its line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import reconciler
from reconciler import kinds
from reconciler.access import destinations, entering, people
from reconciler.cli.commands.fleet import pause, retry
from reconciler.cli.fleets import options as fleet_options
from reconciler.cli.terminal import formats, options, snapshot_options
from reconciler.kinds.catalog import https_edge_route
from reconciler.kinds.rules import access as access_rules
from reconciler.kinds.rules import syntax
from reconciler.kinds.types import agent_files, route_modules
from reconciler.model import exit_codes
from reconciler.model.change import Risk
from reconciler.model.fields.field import fields_of
from reconciler.model.fleet import TaskState
from reconciler.model.rule_change import RuleRisk
from reconciler.project.documents.manifest_document import ManifestDocument
from reconciler.project.yaml import format as yaml_format
from reconciler.sandbox.base import vocabulary
from reconciler.sandbox.rules import edges, routes
from tests.harness.golden import compare_golden

PRODUCT = Path(reconciler.__file__).parent
DOCS = PRODUCT.parent / "docs"
_ALTERNATIVES = re.compile(r"(?<![\\[A-Za-z])[A-Za-z][A-Za-z_-]+(?:\|[A-Za-z][A-Za-z_-]+)+")


def find_lists(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Lists of two or more words with their names: of a module, of a comparison, and of a regular expression."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            for part in ast.walk(node.value):
                yield ast.unparse(target), list_words(part)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ast.walk(node):
                for side in part.comparators if isinstance(part, ast.Compare) else ():
                    yield f"{node.name}()", list_words(side)


def list_words(node: ast.AST) -> list[str]:
    parts: list[Any]
    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            parts = node.elts
        case ast.Dict():
            parts = [key for key in node.keys if key is not None]
        case ast.Call(func=ast.Attribute(value=ast.Constant(str(text)), attr="split")):
            return text.split()
        case ast.Call(func=ast.Attribute(value=ast.Name("re")), args=[first, *_]):
            parts = [part.value for part in ast.walk(first) if isinstance(part, ast.Constant)]
            text = "".join(part for part in parts if isinstance(part, str))
            return [word for found in _ALTERNATIVES.findall(text) for word in found.split("|")]
        case _:
            return []
    found = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    is_list = len(found) == len(parts) and not any(text.count(" ") > 1 for text in found)  # sentences are no words
    return [text for text in found if text.strip()] if is_list else []


def test_a_list_of_words_changes_only_together_with_its_line() -> None:
    lines = []
    for file in sorted(PRODUCT.rglob("*.py")):
        path = file.relative_to(PRODUCT).as_posix()
        if path.startswith("sandbox/"):
            continue  # the sandbox is the other source of many lists
        found = {
            f"{path} {name}: {' '.join(map(repr, words))}"
            for name, words in find_lists(ast.parse(file.read_text(encoding="utf-8")))
            if len(words) > 1 and name not in ("__all__", "_MODULES")
        }
        lines += sorted(found)
    compare_golden(Path(__file__).with_name("words.txt"), "".join(f"{line}\n" for line in lines))


# --- lists that must be the same

SAME: Mapping[str, tuple[object, ...]] = {
    "schemes": (destinations.SCHEMES, syntax._SCHEMES, edges._SCHEMES),
    "bindings": (destinations.BINDINGS, agent_files.BINDINGS, vocabulary.BINDINGS),
    "versions of TLS": (access_rules._TLS_VERSIONS, syntax._TLS_VERSIONS, vocabulary.TLS_VERSIONS),
    "sign-in methods": (entering._LOGINS, https_edge_route._LOGINS, routes.LOGINS),
    "units of time": (snapshot_options._SECONDS, pause._SECONDS),
    "formats": (fleet_options.FORMS, [form for form in formats.FORMS if form not in ("sarif", "github", "gitlab")]),
    "keys of manifests": (
        [key for key in yaml_format.ORDER if key not in ("component", "for_each", "when", "with")],
        [field.name for field in fields_of(ManifestDocument)],
    ),
    "risks": (
        [name for name in options._SCOPES if name in set(map(str, Risk))],
        [str(risk) for risk in Risk if risk is not Risk.ADDED],  # nothing of an addition is approved
    ),
    "providers of webhooks": (route_modules.PROVIDERS, vocabulary.WEBHOOK_PROVIDERS),
    "risks of rules": (options._RULE_RISKS, [*map(str, RuleRisk)]),
}


@pytest.mark.parametrize("name", SAME)
def test_lists_of_the_same_words_are_equal(name: str) -> None:
    first, *others = (set(words) for words in SAME[name])  # type: ignore[call-overload]
    for other in others:
        assert first == other


SECONDS = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60, "w": 7 * 24 * 60 * 60}


def test_a_unit_of_time_has_its_seconds() -> None:
    assert snapshot_options._SECONDS == pause._SECONDS == SECONDS


def test_every_state_in_which_a_task_did_not_succeed_can_be_retried() -> None:
    ended = {str(state) for state in TaskState if state.is_final}
    assert {*retry.STATES} == ended - {"succeeded"}


def test_the_documented_exit_codes_are_those_of_the_commands() -> None:
    rows = re.findall(r"^\| ([0-9]+) \| (.+) \|$", (DOCS / "commands.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code, _ in rows] == sorted(exit_codes.MEANINGS)


def test_the_providers_of_identities_are_those_of_the_edges() -> None:
    (provider,) = (field for field in kinds.get("HTTPSEdgeRoute").by_name["oauth"].fields if field.name == "provider")
    assert {*people.PROVIDERS} == {field.name for field in provider.fields} | {"SAML"}
