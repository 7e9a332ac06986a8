"""What a kind offers besides the fields of its spec, and how many words declare a kind."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from msgspec import NODEFAULT, Struct, structs

from reconciler import kinds
from reconciler.kinds import read_only
from reconciler.model import kind as kind_module
from reconciler.model.fields.field import Field
from reconciler.model.fields.spec import Read
from reconciler.model.kind import Kind
from tests.model.test_fields import Example

RECORD = Path(__file__).parents[2] / "docs/decisions/0024-a-word-serves-two-kinds.md"

MOST_WORDS = 23


class ExampleRead(Read):
    address: str = ""


def test_a_kind_has_its_id_and_the_fields_of_responses_as_outputs() -> None:
    kind = Kind(spec=Example, read=ExampleRead, path="/examples", list_key="examples", id_prefix="ex_")
    assert kind.name == "Example"
    assert kind.outputs[:2] == ("id", "address")
    assert isinstance(kind.by_name["name"], Field)
    assert not kind.keeps_owner
    assert kind.modules_by_id == kind.required_unless_id == ()


def test_modules_managed_by_id_are_set_before_the_traffic_module() -> None:
    """What a route lets through is restricted before its backend is attached (decisions 4 and 11)."""
    assert kinds.get("HTTPSEdgeRoute").modules_by_id == (
        "ip_restriction",
        "saml",
        "oidc",
        "oauth",
        "webhook_verification",
        "user_agent_filter",
        "circuit_breaker",
        "request_headers",
        "response_headers",
        "compression",
        "websocket_tcp_converter",
        "traffic_policy",
        "backend",
    )
    assert [kind.name for kind in kinds.declarable() if kind.modules_by_id] == ["HTTPSEdgeRoute"]


def test_an_identity_is_required_except_on_objects_managed_by_id() -> None:
    required = {kind.name: kind.required_unless_id for kind in kinds.declarable() if kind.required_unless_id}
    assert required == {"HTTPSEdgeRoute": ("match_type", "match")}


def test_a_kind_is_declared_with_few_words() -> None:
    """A new word replaces another one, or joins a group; decision 24 has the reasons."""
    assert len(structs.fields(Kind)) <= MOST_WORDS


def test_each_word_is_used_by_two_kinds_or_has_a_decision_record() -> None:
    users = find_users()
    assert {word for word in users if not users[word]} == set()
    single = {word: names[0] for word, names in users.items() if len(names) == 1}
    rows = re.findall(r"^\| `([\w.]+)` \| `(\w+)` \| \S.* \|$", RECORD.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(single.items())


def test_each_word_is_described_beside_its_field() -> None:
    tree = ast.parse(inspect.getsource(kind_module))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    described = {name for name, node in classes.items() if ast.get_docstring(node)}
    assert described == classes.keys()
    words = [(node.name, *pair) for node in classes.values() for pair in pairwise([*node.body, ast.Pass()])]
    fields = [(name, word, text) for name, word, text in words if isinstance(word, ast.AnnAssign)]
    assert len(fields) > MOST_WORDS
    bare = [
        f"{name}.{ast.unparse(word.target)}"
        for name, word, text in fields
        if not (isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant))
        and ast.unparse(word.annotation) not in described  # a group, which its class describes
    ]
    assert bare == []


def find_users() -> Mapping[str, list[str]]:
    """The kinds that use each word, such as `wire.fixed`: a word is used if its value is not the default."""
    users: dict[str, list[str]] = {}
    every = {kind.name: kind for kind in (*kinds.declarable(), *read_only.list_served(), *read_only.KINDS)}
    for kind in every.values():
        for word, is_used in walk_words(kind):
            users.setdefault(word, []).extend([kind.name] if is_used else [])
    return users


def walk_words(group: Struct, prefix: str = "") -> Iterator[tuple[str, bool]]:
    """The words of a kind and of its groups, and whether each is used."""
    for word in structs.fields(type(group)):
        default = word.default if word.default_factory is NODEFAULT else word.default_factory()
        value = getattr(group, word.name)
        yield prefix + word.name, value != default
        if isinstance(value, Struct):
            yield from walk_words(value, f"{prefix}{word.name}.")
