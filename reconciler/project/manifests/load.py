"""Loads all manifests of a project as one `Manifest`, or reports everything that is wrong with them.

Three passes: files into documents with addresses; specs into declarations, now that references know what is declared;
checks between declarations. Needs no network.
"""

from __future__ import annotations

import hashlib
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path as Folder
from types import MappingProxyType

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.dialect import DIALECTS
from reconciler.model.kind import Home
from reconciler.model.manifest import Declaration, Manifest, Path
from reconciler.model.problem import Position, Problem, Rejected, Severity
from reconciler.model.value import Secret, canonical
from reconciler.model.value import digest as digest_of_value
from reconciler.project import files
from reconciler.project.documents import envelope, validation
from reconciler.project.documents.envelope import Draft
from reconciler.project.documents.references import Declared
from reconciler.project.documents.resolve import Absent, Resolver, Variable
from reconciler.project.manifests.checks.by_kind import group_by_kind
from reconciler.project.manifests.checks.circular_references import Links, find_circular_references
from reconciler.project.manifests.checks.deliveries import find_conflicting_deliveries, find_undelivered_secrets
from reconciler.project.manifests.checks.duplicates import (
    find_children_declared_in_parent,
    find_conflicting_moves,
    find_duplicate_objects,
    report_duplicate_address,
)
from reconciler.project.manifests.checks.exposed_secrets import find_exposed_secrets
from reconciler.project.manifests.checks.metadata import check_metadata
from reconciler.project.manifests.checks.retired_kinds import find_retired_kinds
from reconciler.project.manifests.composition import Composition
from reconciler.project.manifests.declarations import declare
from reconciler.project.settings import variables
from reconciler.project.settings.config import FILE, Config
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.errors import MAX_BYTES
from reconciler.project.yaml.positions import Again, Places


@dataclass(frozen=True)
class Loaded:
    """A manifest that can be worked with, what is doubtful in it, and the manifest files it came from.

    `rendered` are the declarations of files: they are in the same manifests, and no plan is about them.
    """

    manifest: Manifest
    warnings: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    rendered: Mapping[Address, Declaration] = field(default_factory=dict)


def load_manifests(
    config: Config,
    environ: Mapping[str, str],
    variables: Mapping[str, Variable] | None = None,
    absent: Absent | None = None,
) -> Loaded:
    """The project's manifests; `variables` override those of the project file. Rejected tells all that is wrong.

    A value of an environment variable or file that is not there is wrong too, unless `absent` says what stands for it.
    """
    texts, problems = _read_texts(config)
    sources = {file: cache(partial(_places, config.root, file, hash(text))) for file, text in texts.items()}
    return _assemble(config, texts, problems, environ, variables, absent=absent, sources=sources)


def load_manifests_with(
    config: Config,
    environ: Mapping[str, str],
    variables: Mapping[str, Variable] | None,
    added: Mapping[str, bytes],
    included: Mapping[str, bytes],
) -> Loaded:
    """As `load`, as if these manifests, and the files that they include, were there already.

    A folder that is still to be made is an empty one.
    """
    texts, problems = _read_texts(config, missing_is_empty=True)
    return _assemble(config, dict(sorted({**texts, **added}.items())), problems, environ, variables, included)


def _read_texts(config: Config, *, missing_is_empty: bool = False) -> tuple[dict[str, bytes], list[Problem]]:
    texts: dict[str, bytes] = {}
    problems: list[Problem] = []
    for index, entry in enumerate(config.manifests):
        where = config.positions.get(("manifests", index), Position(FILE, 1, 1))
        if missing_is_empty and not entry.endswith(files.MANIFESTS) and not (config.root / entry).exists():
            continue
        try:
            paths = list(files.find_manifests(config.root, files.path_inside(entry)))
        except files.Unreadable as wrong:
            problems.append(Problem(str(wrong), wrong.remedy, position=where, code=wrong.code))
            continue
        for path in paths:
            if path in texts:
                continue
            try:
                texts[path] = files.read(config.root, path, MAX_BYTES)
            except files.Unreadable as wrong:
                at = where if path == files.path_inside(entry) else Position(path, 1, 1)
                problems.append(Problem(str(wrong), wrong.remedy, position=at, code=wrong.code))
        if not paths:
            text = f"no manifests (*.yaml, *.yml) in {entry}"
            problems.append(
                Problem(
                    text,
                    "add a manifest, or correct manifests: in reconciler.yaml",
                    "",
                    where,
                    Severity.WARNING,
                    code="no-manifests",
                )
            )
    return dict(sorted(texts.items())), problems


def _assemble(
    config: Config,
    texts: Mapping[str, bytes],
    problems: list[Problem],
    environ: Mapping[str, str],
    given: Mapping[str, Variable] | None,
    included: Mapping[str, bytes] | None = None,
    absent: Absent | None = None,
    sources: Mapping[str, Again] = MappingProxyType({}),
) -> Loaded:
    settings = variables.settle_variables(config.settings, given or {}, problems)
    drafts, declared = _read_drafts(texts, problems, Composition(config, settings))
    values = {name: each.value for name, each in settings.items()}
    resolver = Resolver(
        config.root, environ, {**config.variables, **values}, declared, absent, variables.sources(settings)
    )
    resolver.included.update(included or {})
    written = ChainMap(dict(texts), resolver.included, dict(config.sources))
    declarations, links = _declarations(drafts, resolver, written, problems)
    problems += config.warnings
    problems += find_exposed_secrets(config, environ, declarations, resolver)
    problems += _check_together(declarations, links, config, partial(_places_with, config, texts, resolver.included))
    problems.sort(key=lambda each: (each.position or Position("", 0, 0), each.subject, each.text))
    if any(problem.is_error for problem in problems):
        raise Rejected(problems)
    for each in drafts if sources else ():
        each.document.places.release(sources[each.file])
    digest = digest_of({**texts, **resolver.included, **config.sources, **_digest_variables(given or {}, config.stack)})
    rendered = {address: each for address, each in declarations.items() if kinds.get(address.kind).home is Home.FILE}
    planned = {address: each for address, each in declarations.items() if address not in rendered}
    manifest = Manifest(config.stack, planned, digest, declared.left_out)
    return Loaded(manifest, tuple(problems), tuple(texts), rendered)


def _places(root: Folder, file: str, content: int) -> Sequence[Places]:
    """Where everything is written in a manifest file on disk; nothing if it is not the text with this hash any more."""
    try:
        text = files.read(root, file, MAX_BYTES)
    except files.Unreadable:
        return ()
    return yaml.places(text, file) if hash(text) == content else ()


def digest_of(texts: Mapping[str, bytes]) -> str:
    """One digest of all names and bytes, whatever their order."""
    total = hashlib.sha256()
    for name, text in sorted(texts.items()):
        total.update(f"{len(name.encode())}:{name}{len(text)}:".encode())
        total.update(text)
    return total.hexdigest()


def _digest_variables(variables: Mapping[str, Variable], stack: str) -> dict[str, bytes]:
    """What was given on the command line. It may be a secret, and plans tell the digest: none that helps to guess."""
    if not variables:
        return {}
    return {"--var": digest_of_value(Secret(canonical(dict(variables)).decode(), "--var"), stack).encode()}


def _read_drafts(
    texts: Mapping[str, bytes], problems: list[Problem], composition: Composition
) -> tuple[list[Draft], Declared]:
    drafts: list[Draft] = []
    declared = Declared()
    for file, text in texts.items():
        reading = yaml.read(text, file)
        problems += reading.problems
        declared.complete = declared.complete and reading.complete
        for written in reading.documents:
            if written.value is None:
                continue  # nothing between two `---`
            for document in composition.documents(written, problems):
                draft, findings = envelope.read_draft(file, document)
                problems += [validation.to_problem(finding, document.places, draft.subject) for finding in findings]
                if draft.address is not None:
                    declared.add(draft.address, draft.ensure)
                elif findings:
                    declared.complete = False
                drafts.append(draft)
    declared.left_out = composition.left_out
    declared.complete = declared.complete and composition.complete
    if declared.complete:
        problems += composition.find_undeclared_patches(declared.ensures)
    declared.complete = declared.complete and not any(problem.is_error for problem in problems if not problem.subject)
    return drafts, declared


def _declarations(
    drafts: Iterable[Draft], resolver: Resolver, written: Mapping[str, bytes], problems: list[Problem]
) -> tuple[dict[Address, Declaration], Links]:
    """The declarations by address, and what each refers to. Of two with one address the first counts."""
    declarations: dict[Address, Declaration] = {}
    links: dict[Address, list[tuple[Address, Path]]] = {}
    for draft in drafts:
        if draft.envelope is None or draft.address is None or draft.kind is None:
            continue
        declaration, wrong = declare(draft, draft.envelope, draft.address, draft.kind, resolver, written)
        problems += wrong
        first = declarations.setdefault(draft.address, declaration)
        if first is not declaration:
            problems.append(report_duplicate_address(draft, first))
        elif resolver.links:
            links[draft.address] = resolver.links
    return declarations, links


def _check_together(
    declarations: Mapping[Address, Declaration],
    links: Links,
    config: Config,
    own: Callable[[], Mapping[str, str]],
) -> Iterator[Problem]:
    """What no declaration shows by itself."""
    by_kind = group_by_kind(declarations.values())
    yield from find_circular_references(declarations, links)
    yield from find_duplicate_objects(by_kind)
    yield from find_children_declared_in_parent(by_kind, declarations)
    yield from find_undelivered_secrets(by_kind)
    yield from find_conflicting_deliveries(by_kind, config.place, own)
    yield from find_conflicting_moves(declarations)
    yield from check_metadata(by_kind, config.stack)
    yield from find_retired_kinds(declarations.values(), DIALECTS[config.profile])


def own_places(config: Config) -> Mapping[str, str]:
    """Real paths of the project's own files and folders, and what each is for; manifests are looked for, not read."""
    found: list[str] = []
    for entry in config.manifests:
        with suppress(files.Unreadable):
            found += files.find_manifests(config.root, files.path_inside(entry))
    return _places_with(config, found, ())


def _places_with(config: Config, texts: Iterable[str], included: Iterable[str]) -> Mapping[str, str]:
    """The project's own places with the files that were read, which may be elsewhere than their links."""
    read = dict.fromkeys(map(config.place, included), "manifests, which read it with from_file")
    return {**read, **dict.fromkeys(map(config.place, texts), "manifests"), **config.own}
