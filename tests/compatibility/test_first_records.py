"""Owner records as the first version wrote them: read, and equal to what the same manifests mean now.

`first_records` holds that version's manifests, with event sources as they are declared now, the account after one
apply, and the store, which is refused: owner records are read without it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.engine.ports import Gone
from reconciler.model.change import ChangedBy
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Json, digest
from reconciler.planning.planner import PlanOptions, plan
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config
from reconciler.store.errors import Unreleased
from reconciler.store.store import open_store
from tests.harness import builders
from tests.harness.builders import change_of

FIRST = Path(__file__).parent / "first_records"
ACCOUNT: dict[str, dict[str, list[dict[str, Json]]]] = json.loads((FIRST / "account.json").read_text())
ENVIRON = {
    "SANDBOX_KEY": "sandbox",
    "STRIPE_KEY": "stripe secret key",
    "OWN_KEY": (FIRST / "own.key").read_text(),
}


class _Account:
    """The lists of the account, as a `Reader`."""

    def __init__(self, lists: Mapping[str, Mapping[str, Sequence[Mapping[str, Json]]]]) -> None:
        self._lists = lists

    async def get(self, path: str) -> Json:
        raise Gone(path)

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        yield self._lists.get(path, {}).get(key, [])


def load_declared() -> Manifest:
    return load_manifests(load_config(FIRST, ENVIRON), ENVIRON, {}).manifest


def snapshot() -> Snapshot:
    """The account, read with a new store."""
    return asyncio.run(observe(_Account(ACCOUNT), kinds.list_planned(), bindings={}, receipts=frozenset()))


def plan_again() -> Plan:
    return plan(load_declared(), snapshot(), kinds.list_planned(), PlanOptions())


def test_earlier_owner_records_are_read_and_in_sync() -> None:
    seen = snapshot()
    lives = [live for listing in seen.listings.values() for live in listing.objects]
    owned = {live.owner.address for live in lives if live.owner is not None}
    assert owned >= {
        declaration for declaration in load_declared().declarations if kinds.get(declaration.kind).keeps_owner
    }
    made = plan_again()
    assert [*made.errors, *made.changes, *made.calls] == []


async def test_an_earlier_store_is_refused_and_not_changed(tmp_path: Path) -> None:
    content = gzip.decompress((FIRST / "store.db.gz").read_bytes())
    file = tmp_path / "store.db"
    file.write_bytes(content)
    with pytest.raises(Unreleased, match=f"{file} has schema version 3, .* not changed"):
        async with open_store(str(file)):
            pass
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {file: content}


@pytest.mark.parametrize(
    ("collection", "path", "value", "address"),
    [
        ("/reserved_domains", "description", "by hand", "ReservedDomain/pay"),
        ("/edges/tls", "tls_termination.min_version", "1.2", "TLSEdge/pay"),
        ("/edges/tls", "description", "by hand", "TLSEdge/pay"),
        ("/edges/https", "routes.saml.maximum_duration", 1, "HTTPSEdgeRoute/web"),
        ("/edges/https", "routes.webhook_verification.secret", "by hand", "HTTPSEdgeRoute/web"),
        ("/edges/https", "routes.request_headers.remove", [], "HTTPSEdgeRoute/web"),
    ],
)
def test_changes_on_the_platform_and_in_git_are_distinguished(
    collection: str, path: str, value: Json, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = json.loads(json.dumps(ACCOUNT))
    ((_, objects),) = changed[collection].items()
    names = path.split(".")
    for body in objects:
        parts = body["routes"] if names[0] == "routes" else [body]
        for part in (part for part in parts if f'"{address}"' in part["metadata"]):
            for name in (steps := names[names[0] == "routes" :])[:-1]:
                part = part[name]
            part[steps[-1]] = value
    monkeypatch.setattr("tests.compatibility.test_first_records.ACCOUNT", changed)
    change = change_of(plan_again(), address)
    assert {field.changed_by for field in change.fields} == {ChangedBy.PLATFORM}


def test_a_secret_recorded_without_salt_replaces_no_object() -> None:
    """The first version recorded a sensitive value that a reference brought in by the digest of its plain text."""
    key = (FIRST / "own.key").read_text().strip()
    spec = {"certificate_pem": (FIRST / "own.pem").read_text(), "private_key_pem": builders.secret(key)}
    owner = builders.record("TLSCertificate/own", spec)
    owner = owner._replace(applied={**owner.applied, "private_key_pem": digest(key)})
    seen = builders.live("TLSCertificate", "cert_1", {"certificate_pem": spec["certificate_pem"]}, owner=owner)
    made = builders.make_plan(builders.declare("TLSCertificate/own", spec), seen=builders.snapshot(seen))
    assert (made.changes, made.errors) == ((), ())
