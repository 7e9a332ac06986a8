from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.plan import Plan
from reconciler.model.problem import Rejected
from reconciler.model.value import Secret
from reconciler.rendering.wire import codec, plan_json
from reconciler.rendering.wire.codec import Secrets
from tests.harness.schemas import check_schema
from tests.harness.tiers import examples
from tests.rendering import interpreted_codec
from tests.rendering.plans import WHOLE, plans

SCHEMA = Path(__file__).parents[2] / "schemas" / "plan.json"
VALIDATOR = jsonschema.Draft202012Validator(plan_json.plan_schema())
TEXTS = ("hunter2", "correct horse")


def keep(stack: str) -> Secrets:
    """Finds secrets as a caller that has read the manifests again."""

    def find(source: str, digest: str) -> Secret:
        found = [Secret(text, source) for text in TEXTS]
        return next(secret for secret in found if plan_json.secret_digest(secret, stack) == digest)

    return find


@given(plans)
def test_a_plan_file_is_read_back_as_the_same_plan(plan: Plan) -> None:
    text = plan_json.write_plan(plan)
    assert plan_json.read_plan(text, keep(plan.stack)) == plan
    assert plan_json.write_plan(plan_json.read_plan(text, keep(plan.stack))) == text


@given(plans, st.data())
def test_the_compiled_and_the_interpreted_decoder_agree(plan: Plan, data: st.DataObject) -> None:
    content = json.loads(plan_json.write_plan(plan))
    for key in ("format", "summary", "integrity", "signature"):
        del content[key]
    if data.draw(st.booleans(), "damaged"):
        damage(content, data)
    assert outcome(codec.decode, content, plan.stack) == outcome(interpreted_codec.decode, content, plan.stack)


def damage(content: dict[str, Any], data: st.DataObject) -> None:
    """Replaces, adds or removes a value somewhere inside."""
    container: Any = content
    while True:
        keys = sorted(container) if isinstance(container, dict) else list(range(len(container)))
        inner = [key for key in keys if isinstance(container[key], (dict, list)) and container[key]]
        if not inner or not data.draw(st.booleans(), "deeper"):
            break
        container = container[data.draw(st.sampled_from(inner), "key")]
    odd = data.draw(st.sampled_from([None, True, 7, 10**400, 0.5, float("inf"), "", "x", "Kind/a", [], ["x"], {}, ODD]))
    if isinstance(container, dict):
        key = data.draw(st.sampled_from([*keys, "$ref", "$$x", "more"]))
        if data.draw(st.booleans(), "removed"):
            container.pop(key, None)
        else:
            container[key] = odd
    elif keys:
        container[data.draw(st.sampled_from(keys))] = odd
    else:
        container.append(odd)


ODD = {"$secret": {"source": "env:NOWHERE", "digest": "0"}}


def outcome(decode: Any, content: Any, stack: str) -> object:
    try:
        return repr(decode(Plan, content, keep(stack), plan_json._DERIVED))
    except (codec.Malformed, StopIteration) as error:  # StopIteration: `keep` does not find the secret
        return type(error), str(error)


@given(plans)
@settings(max_examples=examples(30))
def test_a_plan_file_matches_the_schema(plan: Plan) -> None:
    VALIDATOR.validate(json.loads(plan_json.write_plan(plan)))


def test_the_committed_schema_is_that_of_the_model() -> None:
    assert json.loads(SCHEMA.read_text()) == plan_json.plan_schema()


def test_the_schema_of_a_plan_is_valid() -> None:
    check_schema(plan_json.plan_schema())


@given(plans)
@settings(max_examples=examples(30))
def test_a_plan_file_has_no_secret(plan: Plan) -> None:
    text = plan_json.write_plan(plan)
    assert all(secret not in text for secret in TEXTS)


def test_a_plan_file_does_not_depend_on_the_order_of_keys() -> None:
    turned = replace(WHOLE, observed=dict(reversed(list(WHOLE.observed.items()))))
    assert plan_json.write_plan(turned) == plan_json.write_plan(WHOLE)


def test_a_plan_file_is_ascii_without_escape_sequences() -> None:
    text = plan_json.write_plan(WHOLE)
    assert text.isascii()
    assert "\x1b" not in text


def test_a_key_of_the_user_that_begins_with_a_dollar_is_escaped() -> None:
    call = json.loads(plan_json.write_plan(WHOLE))["calls"][2]
    assert call["body"] == {"$$ref": 1, "secret": {"$secret": {"source": "env:HOOK", "digest": "c1bb47cd69"}}}


def refusal(text: str) -> str:
    with pytest.raises(Rejected) as caught:
        plan_json.read_plan(text, keep("prod"))
    return str(caught.value)


def test_an_edited_plan_file_is_refused() -> None:
    text = plan_json.write_plan(WHOLE).replace("/ip_policies", "/ip_policieS")
    assert refusal(text) == "this plan file cannot be used: it was changed after it was written; plan again"


@pytest.mark.parametrize("text", ["", "{", "\x00", "[" * 100_000])
def test_a_file_that_is_not_json_is_refused(text: str) -> None:
    assert refusal(text) == "this plan file cannot be used: it is not JSON; pass a file that `plan --out` wrote"


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"format": "something else"}'])
def test_json_that_is_not_a_plan_is_refused(text: str) -> None:
    assert refusal(text) == "this plan file cannot be used: it is not a plan; pass a file that `plan --out` wrote"


def test_a_plan_file_of_another_version_is_refused() -> None:
    text = plan_json.write_plan(WHOLE).replace('"version": 3', '"version": 4')
    assert (
        refusal(text) == "this plan file cannot be used: its version is 4, and this release reads version 3; plan again"
    )


def test_an_error_of_finding_a_secret_is_raised_to_the_caller() -> None:
    def refuse(source: str, _digest: str) -> Secret:
        raise LookupError(source)

    with pytest.raises(LookupError, match="env:HOOK"):
        plan_json.read_plan(plan_json.write_plan(WHOLE), refuse)


@pytest.mark.parametrize(
    ("written", "read", "why"),
    [
        (None, None, ""),
        (b"a", None, ""),
        (b"a", b"a", ""),
        (b"a", b"b", "its signature was made with another key; plan again with the same RECONCILER_PLAN_KEY"),
        (None, b"a", "it is not signed; plan again with RECONCILER_PLAN_KEY set, or apply without it"),
    ],
)
def test_a_signature_is_checked_with_a_key(written: bytes | None, read: bytes | None, why: str) -> None:
    text = plan_json.write_plan(WHOLE, written)
    assert plan_json.is_signed(text) is (written is not None)
    if why:
        with pytest.raises(Rejected) as error:
            plan_json.read_file(text, keep("prod"), read)
        assert str(error.value) == f"this plan file cannot be used: {why}"
    else:
        found = plan_json.read_file(text, keep("prod"), read)
        assert (found.plan, found.digest, found.is_signed) == (WHOLE, plan_json.digest(text), written is not None)


@pytest.mark.parametrize("signature", [7, "", "hmac-sha256:é"])
def test_a_signature_of_another_form_is_refused(signature: object) -> None:
    text = json.dumps({**json.loads(plan_json.write_plan(WHOLE)), "signature": signature})
    with pytest.raises(Rejected, match="its signature was made with another key"):
        plan_json.read_plan(text, keep("prod"), b"a")


@pytest.mark.parametrize(("levels", "is_read"), [(196, True), (197, False)])
def test_a_plan_file_of_two_hundred_levels_is_read(levels: int, is_read: bool) -> None:
    """Four of them are around the value: the file, all observed objects, the object and its fields."""
    deep: Any = "x"
    for _ in range(levels):
        deep = [deep]
    (address, observed), *_ = WHOLE.observed.items()
    text = plan_json.write_plan(replace(WHOLE, observed={address: replace(observed, fields={"deep": deep})}))
    if is_read:
        plan_json.read_plan(text, keep("prod"))
    else:
        assert refusal(text) == "this plan file cannot be used: it is nested too deeply; plan again"
