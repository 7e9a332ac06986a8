"""The DNS records that an account needs: read from the platform, written as files of zones, compared with DNS."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.health.facts import Facts
from reconciler.health.records import list_jobs, list_records
from reconciler.health.zones import place_records
from reconciler.model.dns import DNSFinding, DNSRecords
from reconciler.model.health import WORST_FIRST, State
from reconciler.operations.errors import OperationError, UnreadableAccount
from reconciler.operations.output_files import check_output
from reconciler.operations.reporting import OnEvent, ignore_event
from reconciler.rendering import dns as rendering

if TYPE_CHECKING:
    from reconciler.api import dns
    from reconciler.operations.open_project import OpenProject

_MODE = 0o644  # it is meant to be committed, and has no secrets
_LARGEST = 16_000_000  # bytes of a file of a zone


class DNSReport(Struct, frozen=True):
    """What name servers say about the records that an account needs.

    findings  one for each name and type
    records   what was asked for; its misplaced records cannot be asked for
    unread    the kinds whose list is incomplete, so that more records may be needed, with the reason
    """

    findings: tuple[DNSFinding, ...]
    records: DNSRecords
    unread: Mapping[str, str] = {}

    @property
    def state(self) -> State:
        """The worst state: a record that cannot be set counts as degraded, and an incomplete list as unknown."""
        states = [finding.health.state for finding in self.findings]
        states += [State.DEGRADED] if self.records.misplaced else []
        states += [State.UNKNOWN] if self.unread else []
        return min(states, key=WORST_FIRST.index, default=State.HEALTHY)


async def find_records(project: OpenProject, on_event: OnEvent = ignore_event) -> DNSRecords:
    """The records that the account needs, by zone of the project. Raises UnreadableAccount if a list is incomplete."""
    facts = await _read_facts(project, on_event)
    for name, why in _list_unread(facts).items():
        raise UnreadableAccount(f"the list of {name} is incomplete, so that records may be missing: {why}")
    return _place(project, facts)


async def verify_records(
    project: OpenProject, name_server: str | None = None, on_event: OnEvent = ignore_event
) -> DNSReport:
    """Asks the name servers of each zone for the records that the account needs, as far as its lists could be read.

    name_server  `HOST:PORT` of the server to ask instead

    Raises UnreadableAccount if no list could be read, and OperationError if the library is missing or `name_server` is
    no address.
    """
    _settings(name_server)
    facts = await _read_facts(project, on_event)
    unread = _list_unread(facts)
    if unread and not any(listing.complete or listing.objects for listing in facts.snapshot.listings.values()):
        raise UnreadableAccount(f"no list of objects that need records could be read: {min(unread.values())}")
    return await verify_facts(project, facts, name_server)


async def verify_facts(
    project: OpenProject, facts: Facts, name_server: str | None = None, *, only: Collection[str] | None = None
) -> DNSReport:
    """As `verify_records`, of an account that was read. `only`: the names to ask for; None: all."""
    from reconciler.api import dns
    from reconciler.health.dns_check import judge_records, list_needs, list_questions

    settings = _settings(name_server)
    found, jobs = _place(project, facts), list_jobs(facts)
    questions = [
        question
        for need in list_needs(found.records, jobs)
        if only is None or need.owner in only
        for question in list_questions(need)
    ]
    try:
        evidence = await dns.observe(questions, settings)
    except dns.MissingLibrary as missing:
        raise OperationError(str(missing)) from None
    return DNSReport(judge_records(found.records, jobs, evidence), found, _list_unread(facts))


def _settings(name_server: str | None) -> dns.Settings:
    """How name servers are asked. Raises OperationError if `name_server` is no address."""
    from reconciler.api import dns

    try:
        return dns.Settings(only=dns.parse_server(name_server) if name_server is not None else None)
    except ValueError as wrong:
        raise OperationError(str(wrong)) from None


class ZoneFiles(Struct, frozen=True):
    """What differs between the files of a folder and the zones of the project.

    outdated  files that are missing or have another content, with the content that they should have
    stale     files that were written for a zone that the project no longer names
    """

    outdated: Mapping[Path, str]
    stale: tuple[Path, ...]

    @property
    def is_current(self) -> bool:
        return not self.outdated and not self.stale


def compare_files(records: DNSRecords, form: str, folder: Path) -> ZoneFiles:
    """Compares the files of a folder with the zones. Reads only."""
    files = {folder / rendering.file_name(zone, form): rendering.render_file(zone, form) for zone in records.zones}
    outdated = {file: text for file, text in files.items() if not _has_content(file, text)}
    return ZoneFiles(outdated, tuple(_find_stale(files, form, folder)))


def write_zones(project: OpenProject, records: DNSRecords, form: str, folder: Path) -> ZoneFiles:
    """Writes a file for each zone of the project, and removes the files of former zones. Returns what it changed.

    Removes no file that it did not write. Raises UnusableOutput.
    """
    from reconciler.project import atomic_write

    found = compare_files(records, form, folder)
    for file in (*found.outdated, *found.stale):
        check_output(file, project.config, project.manifest.declarations.values(), "name another folder")
    for file, text in found.outdated.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(file, text, _MODE)
    for file in found.stale:
        file.unlink(missing_ok=True)
    return found


def _has_content(file: Path, text: str) -> bool:
    try:
        return file.read_bytes() == text.encode()
    except FileNotFoundError:
        return False


def _find_stale(files: Collection[Path], form: str, folder: Path) -> Iterator[Path]:
    suffix = f".{rendering.SUFFIXES[form]}"
    for file in sorted(folder.glob(f"*{suffix}")):
        if file not in files and rendering.wrote_file(_read_own(file), file.name.removesuffix(suffix), form):
            yield file


def _read_own(file: Path) -> str:
    """The content of a regular file that could be ours; empty for any other, which stays."""
    try:
        is_possible = not file.is_symlink() and file.is_file() and file.stat().st_size <= _LARGEST
        return file.read_text(encoding="utf-8") if is_possible else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _place(project: OpenProject, facts: Facts) -> DNSRecords:
    return place_records(list_records(facts), project.config.zones)


async def _read_facts(project: OpenProject, on_event: OnEvent) -> Facts:
    """The lists of the kinds whose objects need records."""
    needing = [kind for kind in kinds.every() if kind.records is not None]
    async with project.open_reader(on_event) as reader:
        snapshot = await observe(reader, needing, concurrency=project.parallelism)
    return Facts(snapshot, project.runtime.now())


def _list_unread(facts: Facts) -> dict[str, str]:
    """The kinds whose objects need records and whose list is incomplete, with the reason."""
    listings = {kind.name: facts.snapshot.of(kind.name) for kind in kinds.every() if kind.records is not None}
    return {name: listing.why for name, listing in listings.items() if not listing.complete and listing.is_offered}
