"""Projects of any size for the benchmark: the same seed gives the same bytes.

One service is ten resources of nine or ten kinds: backends, a policy with rules, a domain, an edge that mentions the
domain and refers to policy and backend, an address or a route, an endpoint with a traffic policy.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from reconciler import kinds
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Listing, Snapshot
from reconciler.planning import planner
from reconciler.planning.planner import PlanOptions
from reconciler.project.manifests.load import Loaded, load_manifests
from reconciler.project.settings.config import load_config

PER_SERVICE = 10
SERVICES_PER_FILE = 10
KEY = "sandbox"
_WORDS = ("payments", "search", "mail", "billing", "media", "login", "orders", "stock", "maps", "reports")


@dataclass(frozen=True)
class SizedProject:
    """A project on disk, with its store after an apply to the account in a sandbox database (None: never applied)."""

    resources: int
    root: Path
    database: Path | None = None


def project(root: Path, resources: int, *, seed: int = 7) -> SizedProject:
    """Manifests for so many resources (a multiple of ten)."""
    random = Random(seed)
    (root / "manifests").mkdir(parents=True)
    (root / "reconciler.yaml").write_text(
        "version: 1\nstack: bench\n"
        "platform: {base_url: http://127.0.0.1:9, api_key: {from_env: RECONCILER_API_KEY}}\n"
        "manifests: [manifests/]\n"
    )
    services = resources // PER_SERVICE
    for first in range(0, services, SERVICES_PER_FILE):
        texts = (_service(random, number) for number in range(first, min(first + SERVICES_PER_FILE, services)))
        (root / "manifests" / f"services-{first:06}.yaml").write_text("---\n".join(texts))
    return SizedProject(resources, root)


def _service(random: Random, number: int) -> str:
    word = random.choice(_WORDS)
    return "---\n".join(_documents(random, number, f"{word}-{number}"))


def _documents(random: Random, number: int, name: str) -> Iterator[str]:
    owner = f'{{"team":"{random.choice(_WORDS)}","pager":{random.randrange(10_000)}}}'
    network = f"10.{number // 256 % 256}.{number % 256}"
    yield f"""kind: TunnelGroupBackend
name: {name}
spec:
  description: tunnels of {name}
  metadata: '{owner}'
  labels:
    service: {name}
    tier: "{random.randrange(3)}"
"""
    yield f"""kind: HTTPResponseBackend
name: sorry-{name}
spec:
  status_code: {random.choice((500, 502, 503))}
  headers:
    content-type: text/plain
    retry-after: "{random.randrange(10, 600)}"
  body: {name} is back in a moment.
"""
    yield f"""kind: FailoverBackend
name: {name}
spec:
  backends:
    - ref: TunnelGroupBackend/{name}
    - ref: HTTPResponseBackend/sorry-{name}
"""
    yield f"""kind: IPPolicy
name: {name}
spec:
  description: who may reach {name}
"""
    for rule, action in enumerate(("allow", "deny")):
        yield f"""kind: IPPolicyRule
name: {name}-{action}
spec:
  ip_policy_id:
    ref: IPPolicy/{name}
  cidr: {network}.{rule * 128}/25
  action: {action}
  description: {action} half of {network}
"""
    yield f"""kind: ReservedDomain
name: {name}
spec:
  domain: {name}.example.com
  description: {name}
"""
    yield f"""kind: CloudEndpoint
name: {name}
spec:
  url: https://{name}.internal
  bindings: [internal]
  traffic_policy: |
    on_http_request:
      - expressions: ["req.method != 'GET'"]
        actions:
          - type: deny
            config:
              status_code: {random.choice((403, 404, 405))}
"""
    yield from (_tls if number % 2 else _https)(name)


def _tls(name: str) -> Iterator[str]:
    yield f"""kind: TLSEdge
name: {name}
spec:
  description: edge of {name}
  hostports: ["{name}.example.com:443"]
  backend:
    backend_id: {{ref: FailoverBackend/{name}}}
  ip_restriction:
    ip_policy_ids: [{{ref: IPPolicy/{name}}}]
  tls_termination:
    terminate_at: edge
    min_version: "1.3"
"""
    yield f"""kind: ReservedAddress
name: {name}
spec:
  description: ssh to {name}
  region: eu
"""


def _https(name: str) -> Iterator[str]:
    yield f"""kind: HTTPSEdge
name: {name}
spec:
  description: edge of {name}
  hostports: ["{name}.example.com:443"]
  tls_termination:
    min_version: "1.2"
"""
    yield f"""kind: HTTPSEdgeRoute
name: {name}
spec:
  edge_id: {{ref: HTTPSEdge/{name}}}
  match_type: path_prefix
  match: /
  backend:
    backend_id: {{ref: FailoverBackend/{name}}}
  ip_restriction:
    ip_policy_ids: [{{ref: IPPolicy/{name}}}]
"""


def with_new_descriptions(world: SizedProject, root: Path) -> SizedProject:
    """A copy of a project in which every description differs: 65 updates for each hundred resources."""
    shutil.copytree(world.root, root)
    for file in (root / "manifests").iterdir():
        file.write_text(file.read_text().replace("\n  description: ", "\n  description: new "))
    return SizedProject(world.resources, root, world.database)


def with_new_networks(world: SizedProject, root: Path) -> SizedProject:
    """A copy of a project in which every network of an IP policy differs, so that every entry point changes."""
    shutil.copytree(world.root, root)
    for file in (root / "manifests").iterdir():
        file.write_text(file.read_text().replace("cidr: 10.", "cidr: 11."))
    return SizedProject(world.resources, root, world.database)


def load(world: SizedProject) -> Loaded:
    return load_manifests(load_config(world.root, {"RECONCILER_API_KEY": KEY}), {})


def all_creates(world: SizedProject) -> Plan:
    """The plan of the project against an empty account."""
    empty = Snapshot({kind.name: Listing() for kind in kinds.every()})
    plan = planner.plan(load(world).manifest, empty, kinds.every(), PlanOptions())
    assert not plan.errors, plan.errors[0]
    return plan


def small_account(number: int, objects: int) -> Iterator[tuple[str, dict[str, str]]]:
    """The creates of a small account: a quarter domains, a quarter credentials, IP policies; with owner records."""
    for place in range(objects):
        record = f"{place:0300}"
        match place % 4:
            case 0:
                yield "/reserved_domains", {"domain": f"d{place}.a{number}.example.com", "metadata": record}
            case 1:
                yield "/credentials", {"description": f"device {place}", "metadata": record}
            case _:
                yield "/ip_policies", {"description": f"policy {place}", "metadata": record}
