"""Which parts of policies, headers and live objects are secret, and that numbers are compared by their spelling."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from reconciler import kinds
from reconciler.kinds import read_only
from reconciler.kinds.rules import canonical, secret_parts
from reconciler.kinds.visible_fields import show_body
from reconciler.languages import traffic_catalog
from reconciler.model.canonical import canonicalize, canonicalize_live
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.value import Sealed, Secret, digest, has_secret, reveal
from reconciler.planning.comparing.canonical_fields import body_value, is_identical
from reconciler.planning.comparing.last_applied import LastApplied

CANARY = "canary-4711-abcdefgh"
POLICY = kinds.get("CloudEndpoint").by_name["traffic_policy"]
EVERY = [*kinds.every(), *read_only.KINDS]


def action(name: str, config: Any) -> dict[str, Any]:
    return {"on_http_request": [{"actions": [{"type": name, "config": config}]}]}


def secret_in(document: Any) -> bool:
    """Whether the canary is found, and nothing else."""
    marked = canonicalize_live(POLICY, document)
    assert CANARY not in repr(marked) or not has_secret(marked)
    return has_secret(marked)


@pytest.mark.parametrize(
    "document",
    [
        action("basic-auth", {"credentials": [f"user:{CANARY}"]}),
        action("basic-auth", {"credentials": [{"username": "u", "password": CANARY}]}),
        action("basic-auth", {"credentials": f"user:{CANARY}"}),
        action("verify-webhook", {"provider": "github", "secret": CANARY}),
        action("webhook-validation", {"provider": "github", "secret": CANARY}),
        action("oauth", {"provider": "google", "client_id": "a", "client_secret": CANARY}),
        action("oidc", {"issuer_url": "https://a", "client_id": "a", "client_secret": CANARY}),
        action("terminate-tls", {"server_private_key": CANARY}),
        action("saml", {"idp_metadata": CANARY}),
        action("add-headers", {"headers": {"AUTHORIZATION": CANARY}}),
        action("add-headers", {"headers": {"proxy-authorization": CANARY}}),
        action("add-headers", {"headers": {"x-api-key": CANARY}}),
        action("custom-response", {"headers": {"set-cookie": f"session={CANARY}; Path=/; HttpOnly"}}),
        action("http-request", {"headers": {"cookie": CANARY}}),
        action("http-request", {"url": f"https://user:{CANARY}@example.com/"}),
        action("http-request", {"url": f"https://example.com/?a=b&access_token={CANARY}"}),
        action("http-request", {"query_params": [{"key": "api_key", "value": CANARY}]}),
        action("redirect", {"headers": {"x-auth": CANARY}}),
        action("set-vars", {"vars": [{"db_password": CANARY}]}),
        action("set-vars", {"vars": [{"a": f"Bearer {CANARY}"}]}),
        action("log", {"metadata": {"token": {"deep": [CANARY]}}}),
        action("ai-gateway", {"providers": [{"id": "x", "api_keys": [{"value": CANARY}]}]}),
        action("an-action-of-tomorrow", {"client_secret": CANARY}),
        action("add-headers", {"settings_of_tomorrow": {"password": CANARY}}),
        {"phase_of_tomorrow": {"private_key": CANARY}},
        {"on_http_request": [{"type": "verify-webhook", "config": {"secret": CANARY}}]},
        {"on_http_request": {"actions": {"type": "verify-webhook", "config": {"secret": CANARY}}}},
        action("add-headers", {"headers": {"authorization": f"${{basic_auth.encode('user', '{CANARY}')}}"}}),
        action("add-headers", {"headers": {"authorization": f"{CANARY} ${{secrets.get('v', 'n')}}"}}),
    ],
)
def test_a_secret_inside_a_policy_is_found_in_text_and_in_a_document(document: Any) -> None:
    for written in (document, json.dumps(document)):
        marked = canonicalize_live(POLICY, written)
        assert has_secret(marked)
        assert CANARY not in repr(marked)
        assert reveal(marked) == canonical.policy(document)


@pytest.mark.parametrize(
    "document",
    [
        action("add-headers", {"headers": {"authorization": "Bearer ${secrets.get('vault', 'name')}"}}),
        action("add-headers", {"headers": {"authorization": "${req.headers['authorization'][0]}"}}),
        action("add-headers", {"headers": {"x-user": "someone", "x-version": 1.5}}),
        action("basic-auth", {"credentials": ["admin:${secrets.get('vault', 'admin')}"]}),
        action("custom-response", {"headers": {"set-cookie": "session=; Max-Age=0; Path=/"}}),
        action("rate-limit", {"name": "a", "bucket_key": ["req.headers['x-api-key'][0]"]}),
        action("jwt-validation", {"http": {"tokens": [{"type": "jwt", "name": "Authorization", "prefix": "Bearer "}]}}),
        action("jwt-validation", {"jws": {"keys": {"identification": {"token_claims": ["kid"]}}}}),
        action("http-request", {"url": "https://example.com/?page=1"}),
    ],
)
def test_a_reference_to_a_secret_and_an_ordinary_setting_are_shown(document: Any) -> None:
    assert not has_secret(canonicalize_live(POLICY, document))


def test_every_secret_setting_of_the_catalogue_is_one_that_has_such_a_name_or_credentials() -> None:
    marked = {
        (name, setting)
        for name, known in traffic_catalog.actions().items()
        for setting, about in known.settings.items()
        if about.is_secret
    }
    named = {
        (name, setting)
        for name, known in traffic_catalog.actions().items()
        for setting, about in known.settings.items()
        if secret_parts.SECRET_KEY.search(setting)
    }
    assert marked <= named  # also where the action around a setting is not known
    assert {setting for _, setting in named - marked} == {
        "api_key_selection",  # how a key is chosen, not a key
        "auth_cookie_domain",
        "max_input_tokens",
        "max_output_tokens",
    }


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        " ",
        "://",
        "://a:",
        "${",
        "get",
        "secrets.get('",
        "; ",
        "; expires= ",
        "-----BEGIN A ",
        "Bearer ",
        "?token=",
    ],
)
def test_a_long_text_is_searched_in_no_time(piece: str) -> None:
    text = piece * (200_000 // len(piece)) + "!"
    began = time.process_time()
    canonicalize_live(POLICY, action("add-headers", {"headers": {"authorization": text, "other": text}}))
    assert time.process_time() - began < 2


def test_a_policy_that_cannot_be_read_is_a_secret_as_a_whole() -> None:
    assert isinstance(canonicalize_live(POLICY, f"{{{CANARY}"), Secret)


def test_a_document_has_the_same_digest_where_only_digests_of_its_secrets_are_known() -> None:
    document = canonicalize_live(POLICY, action("verify-webhook", {"secret": CANARY}))
    sealed = {"secret": Sealed("live", {"salt": digest(Secret(CANARY, "live"), "salt")})}
    assert digest(document, "salt") == digest(action("verify-webhook", sealed), "salt")
    assert digest(document, "salt") != digest(document, "another")


def test_an_owner_record_that_holds_the_digest_of_the_whole_document_still_counts() -> None:
    former = digest(action("verify-webhook", {"secret": CANARY}))
    document = canonicalize_live(POLICY, action("verify-webhook", {"secret": CANARY}))
    assert LastApplied({}, "salt").matches(former, document)
    plain = action("deny", {"status_code": 404, "share": 0.5})
    assert LastApplied({}, "salt").matches(digest(plain), canonicalize_live(POLICY, json.dumps(plain)))


# --- live objects -----------------------------------------------------------------------------------------------------


def sensitive_bodies(fields: tuple[Field, ...]) -> Iterator[dict[str, Any]]:
    """Objects with the canary in one sensitive place each."""
    for field in fields:
        if Behavior.SENSITIVE in field:
            yield {field.name: CANARY}
            yield {field.name: {"inside": CANARY}}
        elif field.conceals is not None and field.shape is Shape.MAP:
            yield {field.name: {"Authorization": CANARY}}
        elif field.conceals is not None:
            yield {field.name: json.dumps(action("verify-webhook", {"secret": CANARY}))}
            yield {field.name: f"# {CANARY}\non_http_request: {{"}
        for inner in sensitive_bodies(field.fields):
            yield {field.name: inner}
        for inner in sensitive_bodies(field.item.fields if field.item else ()):
            yield {field.name: [inner]}


def with_parents(kind: Kind, body: dict[str, Any]) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """The object by itself, and inside its parent."""
    yield kind, body
    if kind.parent is not None and kind.parent.embedded:
        yield from with_parents(kinds.get(kind.parent.kind), {"id": "x", kind.parent.embedded: [body]})


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: str(kind.name))
def test_no_secret_and_no_unknown_field_of_a_live_object_is_shown(kind: Kind) -> None:
    bodies = [*sensitive_bodies(kind.fields), {"new_secret_field": CANARY}, {"description": {"inside": CANARY}}]
    shaped = [field.name for field in kind.fields if field.shape is not Shape.MAP]  # users choose the keys of maps
    bodies += [{name: {"new_secret_field": CANARY}} for name in shaped]
    bodies += [{"id": "x", "uri": {"inside": CANARY}}]
    bodies += [{kind.one_time: CANARY}] if kind.one_time else []
    for body in bodies:
        for outer, whole in with_parents(kind, body):
            assert CANARY not in json.dumps(show_body(outer, whole)), whole


# --- spelling ---------------------------------------------------------------------------------------------------------

SPELLINGS = (
    "1.10",
    "1.1",
    "1.100",
    "11e-1",
    "1",
    "1.0",
    "1e0",
    "10e-1",
    "-0",
    "0",
    "0.0",
    "100000000000000000000000.0",
)
SCALARS = st.one_of(
    st.sampled_from(SPELLINGS),
    st.booleans().map(json.dumps),
    st.just("null"),
    st.text("abc 1.0:#'\"-é", max_size=6).map(json.dumps),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3).map(
            lambda items: "{" + ", ".join(f'"{key}": {item}' for key, item in items.items()) + "}"
        ),
    ),
    max_leaves=8,
)


def document(tree: str) -> str:
    return f'{{"on_http_request": [{{"name": "x", "actions": {tree}}}]}}'


def layouts(text: str) -> Iterator[Any]:
    """The same document in other layouts: JSON with other white space and order, YAML, and inline."""
    from reconciler.kinds.rules import traffic_policy
    from reconciler.languages.yaml import reader
    from reconciler.project.yaml import emit

    parsed = traffic_policy.parse(text)
    yield text.replace(", ", ",\n  ").replace(": ", " :\t") if '"' not in text.replace('": ', "") else f"  {text}\n"
    block = "\n".join(emit.block(parsed)) + "\n"
    yield block
    yield f"# a comment\n{block}"
    (read,) = reader.read(f"a: {text}\n".encode(), "a.yaml").documents
    yield read.value["a"]
    yield body_value(POLICY, read.value["a"])


@given(TREES)
def test_another_layout_of_a_policy_is_no_difference(tree: str) -> None:
    text = document(tree)
    form = canonicalize(POLICY, text)
    for other in layouts(text):
        assert is_identical(canonicalize(POLICY, other), form), other


@given(TREES, st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_another_spelling_of_a_number_is_a_difference(tree: str, one: str, other: str) -> None:
    first, second = (document(f"[{tree}, {{{json.dumps('n')}: {spelt}}}]") for spelt in (one, other))
    forms = [canonicalize(POLICY, text) for text in (first, second)]
    assert is_identical(*forms) == (one == other)
    assert (digest(forms[0]) == digest(forms[1])) == (one == other)


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("1.10", "1.10"),
        ("1e3", "1e3"),
        ("-1.50", "-1.50"),
        ("007", "7"),
        ("0x1F", "31"),
        ("0o17", "15"),
        ("+5", "5"),
        (".5", "0.5"),
        ("5.", "5.0"),
        ("1_000", '"1_000"'),
        ("2024-01-01", '"2024-01-01"'),
        ("no", '"no"'),
        ("True", "true"),
        ("~", "null"),
    ],
)
def test_an_inline_scalar_is_sent_as_it_is_spelled_if_json_can(written: str, sent: str) -> None:
    from reconciler.languages.yaml import reader

    (read,) = reader.read(f"a: {{n: {written}}}\n".encode(), "a.yaml").documents
    text = body_value(POLICY, read.value["a"])
    assert text == f'{{"n": {sent}}}'
    assert is_identical(canonicalize(POLICY, text), canonicalize(POLICY, read.value["a"]))


def test_ruamel_reads_what_we_emit() -> None:
    from reconciler.languages.yaml import reader
    from reconciler.project.yaml import emit

    (read,) = reader.read(b"a: [1.10, 1e3, 007]\n", "a.yaml").documents
    text = "\n".join(emit.block(read.value))
    assert text == "a:\n  - 1.10\n  - 1e3\n  - 007"
    assert YAML(typ="safe").load(io.StringIO(text))["a"][:2] == [1.1, 1000.0]
