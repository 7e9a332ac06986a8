"""The law of redacted snapshots: planning sees no difference, and no secret is left in them."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.platform import open_reader
from reconciler.engine.observe import observe
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Position
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Secret, Value
from reconciler.planning.comparing.canonical_fields import canonical_live
from reconciler.planning.matching.references import find_live_references
from reconciler.planning.planner import PlanOptions, plan
from reconciler.planning.redaction import redact_snapshot, seal
from reconciler.project import snapshots
from reconciler.rendering.wire import plan_json
from reconciler.rendering.wire.snapshot_json import SnapshotFile
from tests.harness.builders import build_account, declare, manifest, ref
from tests.harness.platform import KEY, Sandbox
from tests.harness.tiers import examples
from tests.harness.world import RandomAccount
from tests.laws.accounts import SECRET as FILLED
from tests.laws.accounts import Filled
from tests.laws.manifests import manifests

ACCOUNTS = 15
KINDS = kinds.every()
SECRET = "canary" + "OfTheProvider"
law = settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def make_plan(manifest: Manifest, snapshot: Snapshot) -> str:
    return plan_json.write_plan(plan(manifest, snapshot, KINDS, PlanOptions(adopt=True)))


def apply_manifest(manifest: Manifest) -> RandomAccount:
    world = RandomAccount(KINDS)
    first: Plan = plan(manifest, world.snapshot(), KINDS, PlanOptions())
    world.carry_out(first)
    return world


@law
@given(manifests(), manifests())
def test_a_redacted_snapshot_and_the_account_have_the_same_plan(before: Manifest, after: Manifest) -> None:
    snapshot = apply_manifest(before).snapshot()
    assert make_plan(after, redact_snapshot(snapshot, before, KINDS)) == make_plan(after, snapshot)


def login(secret: Value, client: str = "shop", name: str = "login") -> Manifest:
    """A route that signs users in: one of the few secrets that the platform shows again."""
    where = Position("manifests/all.yaml", 1, 1)
    oidc = {"issuer": "https://login.example.com", "client_id": client, "client_secret": secret}
    edge, route = Address("HTTPSEdge", "shop"), Address("HTTPSEdgeRoute", name)
    spec = {"edge_id": "edghts_000000000000000000000000001", "match_type": "path_prefix", "match": "/", "oidc": oidc}
    return Manifest(
        "laws",
        {
            edge: Declaration(edge, {"hostports": ["shop.example.com:443"]}, where),
            route: Declaration(route, spec, where),
        },
    )


async def test_objects_of_each_kind_are_read_from_a_snapshot_file_unchanged_and_without_secrets(
    sandbox: Sandbox,
) -> None:
    kinds_read = set()
    for seed in range(ACCOUNTS):
        Filled(sandbox, seed)
        async with open_reader(Account(sandbox.base_url, Secret(KEY, "test"))) as reader:
            snapshot = await observe(reader, kinds.list_planned())
        taken = SnapshotFile(
            redact_snapshot(snapshot, Manifest("laws", {}), KINDS), "laws", sandbox.base_url, None, 1.0
        )
        text = snapshots.write(taken, None)
        assert FILLED not in text
        again = snapshots.read(text, "snapshot.json", None).snapshot
        for kind in KINDS:
            for live, back in zip(snapshot.of(kind.name).objects, again.of(kind.name).objects, strict=True):
                kinds_read.add(kind.name)
                assert canonical_live(kind, back) == canonical_live(kind, live)
                assert set(find_live_references(kind, back)) == set(find_live_references(kind, live))
        sandbox.reset()
    assert len(kinds_read) > 20


HERE = Secret(SECRET, "env:CLIENT_SECRET")


def test_a_redacted_snapshot_contains_no_secret() -> None:
    snapshot = apply_manifest(login(HERE)).snapshot()
    assert SECRET in repr(snapshot)
    assert SECRET not in repr(redact_snapshot(snapshot, login(HERE), KINDS))


def test_only_a_secret_that_changed_is_a_change() -> None:
    snapshot = apply_manifest(login(HERE)).snapshot()
    seen = redact_snapshot(snapshot, login(HERE), KINDS)
    assert plan(login(HERE), seen, KINDS, PlanOptions()).is_empty
    other = login(Secret("another", "env:CLIENT_SECRET"))
    assert not plan(other, seen, KINDS, PlanOptions()).is_empty
    assert make_plan(other, seen) == make_plan(other, snapshot)


def test_fields_beside_a_redacted_secret_have_the_same_changes() -> None:
    snapshot = apply_manifest(login(HERE)).snapshot()
    after = login(HERE, client="another")
    assert make_plan(after, redact_snapshot(snapshot, login(HERE), KINDS)) == make_plan(after, snapshot)


def test_an_unset_secret_of_the_environment_is_in_sync_with_the_sealed_one() -> None:
    snapshot = apply_manifest(login(HERE)).snapshot()
    sealed = seal(login(HERE), snapshot, KINDS)
    (here,) = sealed.values()
    seen = redact_snapshot(snapshot, login(HERE), KINDS)
    assert plan(login(here), seen, KINDS, PlanOptions()).is_empty
    assert make_plan(login(here, client="another"), seen) == make_plan(login(HERE, client="another"), snapshot)


def test_a_secret_that_no_response_shows_is_in_sync_with_the_sealed_one() -> None:
    """Only the owner record proves it, with a digest that is salted with the intent of the create."""

    def list_declarations(value: Value) -> list[Declaration]:
        spec = {"vault_id": ref("Vault/v"), "name": "s", "value": value}
        return [declare("Vault/v", {"name": "v"}), declare("Secret/s", spec)]

    snapshot = build_account(*list_declarations(HERE)).snapshot()
    (sealed,) = seal(manifest(*list_declarations(HERE)), snapshot, KINDS).values()
    seen = redact_snapshot(snapshot, manifest(*list_declarations(HERE)), KINDS)
    assert plan(manifest(*list_declarations(sealed)), seen, KINDS, PlanOptions()).is_empty
    (other,) = seal(manifest(*list_declarations(Secret("another", "env:CLIENT_SECRET"))), snapshot, KINDS).values()
    assert not plan(manifest(*list_declarations(other)), seen, KINDS, PlanOptions()).is_empty
