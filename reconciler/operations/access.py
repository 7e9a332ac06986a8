"""Finds who can reach what: every way into the account as it is, or as the manifests alone declare it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler import kinds
from reconciler.access.account import Account, Resource
from reconciler.access.compare import analyze
from reconciler.access.entering import EntryPoint
from reconciler.access.inventory import conceal_others, describe_entry, list_entries
from reconciler.access.networks import Networks
from reconciler.access.questions import find_sources
from reconciler.engine.observe import observe
from reconciler.kinds import read_only
from reconciler.model.access import WayIn
from reconciler.model.access_entry import AccessEntry
from reconciler.model.manifest import Manifest
from reconciler.model.snapshot import Listing, Snapshot
from reconciler.operations.opening.stores import open_existing_store
from reconciler.operations.reporting import OnEvent
from reconciler.planning.access import declare_account
from reconciler.planning.comparing.canonical_fields import canonical_live

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject
    from reconciler.planning.access_proposals import ProposedTests

_ENDPOINTS = read_only.ENDPOINT.name


class AccessResult(Struct, frozen=True):
    """Every way into one state of an account.

    account     answers questions about single requests (`reconciler.access.questions`)
    incomplete  the kinds whose list could not be read in full, with the reason: what they decide is unknown
    """

    account: Account
    incomplete: Mapping[str, str]

    @property
    def entries(self) -> tuple[AccessEntry, ...]:
        """The entry points, ordered by scheme, port, host and path."""
        return tuple(list_entries(self.account))

    def select(
        self, *, is_public: bool = False, networks: Networks | None = None, host: str | None = None
    ) -> tuple[AccessEntry, ...]:
        """The entry points that are public, reachable from some of the networks, and of hosts that match a glob."""
        return tuple(entry for _, entry in self._select(is_public, networks, host))

    def propose_tests(
        self, *, is_public: bool = False, networks: Networks | None = None, host: str | None = None
    ) -> tuple[ProposedTests, ...]:
        """Access tests of the entry points of this stack that are selected so: who gets through today, and who not."""
        from reconciler.planning.access_proposals import propose_tests

        selected = self._select(is_public, networks, host)
        own = (region_entry for region_entry, entry in selected if not entry.stack and not entry.origin)
        return tuple(propose_tests(self.account, own))

    def markdown(self) -> str:
        """As `reconciler access --format markdown`."""
        from reconciler.rendering import inventory

        return inventory.render_markdown(self.entries)

    def html(self) -> str:
        """A page with a table of the entry points."""
        from reconciler.rendering.html import summary_page
        from reconciler.rendering.summary import summarize_access

        return summary_page.render_page(summarize_access(self.entries, self.incomplete))

    def to_json(self) -> str:
        """As `reconciler access --format json`."""
        from reconciler.rendering import inventory

        return inventory.render_json(self.entries, self.incomplete)

    def _select(
        self, is_public: bool, networks: Networks | None, host: str | None
    ) -> Iterator[tuple[EntryPoint, AccessEntry]]:
        for region_entry in sorted(analyze(self.account), key=lambda entry: entry.region):
            if networks is not None and not _is_reachable(region_entry, networks):
                continue
            entry = describe_entry(self.account, region_entry)
            is_place = entry.binding not in ("account", "credential")
            if (is_public and not (entry.public and is_place)) or (host is not None and not is_place):
                continue
            if host is None or fnmatchcase(entry.host, host.lower()):
                yield region_entry, entry


def _is_reachable(entry: EntryPoint, networks: Networks) -> bool:
    """Whether some request from the networks may pass. A credential has no network."""
    if entry.region.door.binding == "credential":
        return False
    sources = find_sources(entry.program)
    return sources is None or bool((sources | sources.map()) & networks)


def find_declared_access(manifest: Manifest) -> AccessResult:
    """The ways in that a manifest alone declares."""
    by_name = {kind.name: kind for kind in kinds.list_planned()}
    return AccessResult(declare_account(manifest, by_name), {})


def list_page_entries(project: OpenProject, snapshot: Snapshot, *, is_planned: bool) -> tuple[AccessEntry, ...]:
    """Every way into the account for the page of a plan: other stacks' by host only.

    is_planned  as the plan leaves the account; otherwise as it is
    """
    live, planned = project.find_accounts(snapshot)
    return tuple(conceal_others(list_entries(planned if is_planned else live)))


async def find_access(project: OpenProject, *, declared: bool, on_event: OnEvent) -> AccessResult:
    """See `Workspace.access`."""
    if declared:
        return find_declared_access(project.manifest)
    async with open_existing_store(project.config) as store, project.open_reader(on_event) as reader:
        snapshot = await project.account_reading.read(reader, store, on_event=on_event)
        endpoints = await observe(reader, [read_only.ENDPOINT], concurrency=project.parallelism)
    live, _ = project.find_accounts(snapshot)
    served = endpoints.of(_ENDPOINTS)
    resources = (*live.resources.values(), *_list_ephemeral(served, live))
    account = Account(resources, live.builder, live.unread)
    incomplete = dict(live.unread)
    if not served.complete and served.is_offered:
        incomplete[_ENDPOINTS] = served.why or "its list was not read"
    return AccessResult(account, dict(sorted(incomplete.items())))


def _list_ephemeral(listing: Listing, account: Account) -> Iterator[Resource]:
    """The endpoints that agents have open and no stack declares, by URL: ids change with each session."""
    served_by_agent, cloud = kinds.get("AgentEndpoint"), kinds.get("CloudEndpoint")
    declared = {
        str(url)
        for resource in account.resources.values()
        if isinstance(role := resource.kind.access, WayIn) and role.from_agent
        for url in role.urls(resource.fields)
    }
    for live in listing.objects:
        fields = canonical_live(cloud, live)
        url = fields.get("url") or live.body.get("public_url")
        if live.body.get("type") == "ephemeral" and isinstance(url, str) and url not in declared:
            known = {**fields, "url": url}
            own = {field.name: known.get(field.name) for field in served_by_agent.fields}
            yield Resource(served_by_agent, f"{_ENDPOINTS}/{live.id}", f"agent at {url}", own, origin="ephemeral")
