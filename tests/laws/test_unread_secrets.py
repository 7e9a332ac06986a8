"""Laws of plans without secrets, over random worlds: what they assume is never sent with another value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.plan import Plan
from reconciler.model.value import Hidden, Secret, Value, find_secrets, replace_secrets, secrets_in
from reconciler.operations import unread_secrets
from reconciler.operations.applying.remaining_plan import without_changed
from reconciler.planning.planner import plan
from reconciler.planning.reviewed_changes import digest_changes, find_unreviewed
from reconciler.rendering.wire import plan_json
from tests.harness.tiers import examples
from tests.harness.world import RandomAccount
from tests.laws.manifests import manifests
from tests.laws.test_laws import EVERYTHING, KINDS, apply_manifest, make_plan

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

law = settings(max_examples=examples(8), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

Texts = Mapping[str, str]
SOURCES = ("env:A", "env:B", "file:secrets/c")
TEXTS = st.fixed_dictionaries({source: st.sampled_from(["one", "two"]) for source in SOURCES})


@st.composite
def edits(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[Manifest, Manifest, Texts, Texts]:
    """A manifest before and after an edit, and the texts of its secrets before and after."""
    before, after = draw(manifests()), draw(manifests())
    if draw(st.booleans()):
        after = before
    texts, later = draw(TEXTS), draw(TEXTS)
    return _add_secrets(draw, before, texts), _add_secrets(draw, after, later), texts, later


def _add_secrets(draw: Callable[[st.SearchStrategy[Any]], Any], manifest: Manifest, texts: Texts) -> Manifest:
    """The manifest with secrets that responses show, that they hide, and that are inside documents."""

    def some() -> Secret:
        source = draw(st.sampled_from(SOURCES))
        return Secret(texts[source], source)

    def add(declaration: Declaration) -> Declaration:
        return replace(declaration, spec={**declaration.spec, **_secret_fields(declaration.address.kind, some)})

    return replace(manifest, declarations={address: add(found) for address, found in manifest.declarations.items()})


def _secret_fields(kind: str, some: Callable[[], Secret]) -> Mapping[str, Any]:
    match kind:
        case "HTTPSEdgeRoute":
            return {"webhook_verification": {"provider": "github", "secret": some()}}
        case "CloudEndpoint":
            login = {"type": "basic-auth", "config": {"credentials": [some(), some()]}}
            return {"traffic_policy": {"on_http_request": [{"actions": [login]}]}}
        case "EventDestination":
            return {"target": {"metrics": {"api_key": some(), "site": "eu"}}}
        case "Secret":
            return {"value": some()}
    return {}


def plan_without_secrets(manifest: Manifest, world: RandomAccount) -> Plan:
    options = replace(EVERYTHING, assumes_secrets=True, unread=frozenset(SOURCES))
    return plan(unread_secrets.withhold_from(manifest, SOURCES), world.snapshot(), KINDS, options)


def fill(planned: Plan, texts: Texts) -> Plan:
    """What an apply with the secrets sends of a plan without them."""
    secrets = {source: Secret(text, source) for source, text in texts.items()}
    others = {address for address, _ in unread_secrets.compare_assumed(planned.assumed, secrets)}
    return without_changed(unread_secrets.fill_secrets(planned, secrets), others)[0]


def list_unknown(value: Value) -> Iterator[str]:
    """The sources that a plan shows as unknown."""
    match value:
        case Hidden(_, source) if source:
            yield source
        case dict():
            for item in value.values():
                yield from list_unknown(item)
        case list():
            for item in value:
                yield from list_unknown(item)


def list_sources(declared: Declaration | None) -> list[Any]:
    """Which secrets a declaration names, and where."""
    if declared is None:
        return []
    return [(place, secret.source) for place, secret in find_secrets(dict(declared.spec))]


@law
@given(edits())
def test_a_reviewed_plan_sends_no_secret_that_differs_from_what_it_assumed(
    edit: tuple[Manifest, Manifest, Texts, Texts],
) -> None:
    before, after, texts, later = edit
    world = apply_manifest(before)
    planned = plan_without_secrets(after, world)
    assume(all(problem.code == "secrets-assumed" for problem in planned.problems))
    reviewed = digest_changes(plan_json.read_plan(plan_json.write_plan(planned), lambda source, _: Secret("", source)))
    assert find_unreviewed(plan_without_secrets(after, world.copy()), reviewed, has_begun=False) == []
    sent = fill(planned, later)
    assumed = {(secret.address, secret.source) for secret in planned.assumed}
    visible = {
        (change.address, source)
        for change in planned.changes
        for field in change.fields
        for source in list_unknown(field.new)
    }
    for call in sent.calls:
        for secret in secrets_in(call.body):
            here = (call.address, secret.source)
            assert here in visible or (here in assumed and secret.reveal() == texts[secret.source])
    # What was sent is recorded, so that the next plan assumes it, and sends nothing again.
    world.carry_out(sent)
    done = {change.address for change in sent.changes}
    assert [change for change in plan_without_secrets(after, world).changes if change.address in done] == []


@law
@given(edits())
def test_a_plan_without_secrets_is_the_plan_with_them_if_all_are_as_last_applied(
    edit: tuple[Manifest, Manifest, Texts, Texts],
) -> None:
    before, after, texts, _ = edit
    world = apply_manifest(before)
    after = _with_texts(after, texts)
    with_secrets, without = make_plan(after, world), fill(plan_without_secrets(after, world), texts)
    for address, declared in after.declarations.items():
        former = before.declarations.get(address)
        if former is not None and list_sources(declared) == list_sources(former):
            assert _at(with_secrets, address) == _at(without, address)


def _at(planned: Plan, address: Address) -> list[object]:
    changes = [change for change in planned.changes if change.address == address]
    return [*changes, *(call for call in planned.calls if call.address == address)]


def _with_texts(manifest: Manifest, texts: Texts) -> Manifest:
    def read(secret: Secret) -> Secret:
        return Secret(texts[secret.source], secret.source)

    declarations = {
        address: replace(found, spec={name: replace_secrets(value, read) for name, value in found.spec.items()})
        for address, found in manifest.declarations.items()
    }
    return replace(manifest, declarations=declarations)
