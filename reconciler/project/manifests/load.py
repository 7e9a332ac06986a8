"""Loads the manifests of a project into one `Manifest`, or reports every problem in them. Needs no network.

Three passes: files into documents with addresses; specs into declarations, when all addresses are known; checks
between declarations.
"""

from __future__ import annotations

import hashlib
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.languages.yaml.reader import Reading
from reconciler.model.address import Address
from reconciler.model.dialect import DIALECTS
from reconciler.model.kind import Home
from reconciler.model.manifest import Declaration, Manifest, Path, Unread
from reconciler.model.problem import Position, Problem, Rejected, Severity
from reconciler.model.value import Secret, canonical
from reconciler.model.value import digest as digest_of_value
from reconciler.project import component_files, files
from reconciler.project.documents import envelope, validation
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.documents.envelope import Draft
from reconciler.project.documents.merge import scope_of
from reconciler.project.documents.references import Declared
from reconciler.project.documents.resolve import Absent, Resolver, Variable
from reconciler.project.documents.scope import name_use
from reconciler.project.manifests.checks.by_kind import group_by_kind
from reconciler.project.manifests.checks.circular_references import Links, find_circular_references
from reconciler.project.manifests.checks.deliveries import find_conflicting_deliveries, find_undelivered_secrets
from reconciler.project.manifests.checks.duplicates import (
    find_conflicting_moves,
    find_duplicate_objects,
    report_duplicate_address,
)
from reconciler.project.manifests.checks.exposed_secrets import find_exposed_secrets
from reconciler.project.manifests.checks.metadata import check_metadata
from reconciler.project.manifests.checks.retired_kinds import find_retired_kinds
from reconciler.project.manifests.composition import Composition
from reconciler.project.manifests.declarations import declare
from reconciler.project.manifests.delivery_variables import substitute_variables
from reconciler.project.manifests.partial import confine, find_in_subject, find_unread
from reconciler.project.settings import variables
from reconciler.project.settings.config import FILE, Config

_TESTS: Final = ("tests/access.yaml", "tests/access.yml")
MAX_PROBLEMS: Final = 10_000  # of a project; each takes about half a KiB
MAX_INVALID_VALUES: Final = 200_000  # of a project: to find so many takes seconds
_TOO_MANY: Final = Problem(
    f"more than {MAX_PROBLEMS:,} problems in this project", "correct these first", code="too-many-problems"
)


class Loaded(Struct, frozen=True):
    """A manifest with its warnings and the paths of its files. With `Manifest.unread`, errors are among the warnings.

    `rendered`: declarations of kinds that are rendered to files, which no plan contains.
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
    *,
    partial_if_invalid: bool = False,
) -> Loaded:
    """Loads the project's manifests. `variables` override those of the project file. Raises Rejected with all problems.

    A missing environment variable or file is an error, unless `absent` returns a placeholder for it.

    partial_if_invalid  leave out invalid declarations, if only some are; see `Manifest.unread`
    """
    budget = Budget()
    texts, problems = _read_texts(config, budget)
    return _assemble(
        config,
        texts,
        problems,
        environ,
        variables,
        budget,
        absent=absent,
        partial_if_invalid=partial_if_invalid,
    )


def load_manifests_with(
    config: Config,
    environ: Mapping[str, str],
    variables: Mapping[str, Variable] | None,
    added: Mapping[str, bytes],
    included: Mapping[str, bytes],
) -> Loaded:
    """Loads the manifests as if the `added` ones and their `included` files existed, by path.

    A missing folder of manifests counts as empty.
    """
    budget = Budget()
    texts, problems = _read_texts(config, budget, missing_is_empty=True)
    return _assemble(config, dict(sorted({**texts, **added}.items())), problems, environ, variables, budget, included)


def _read_texts(
    config: Config, budget: Budget, *, missing_is_empty: bool = False
) -> tuple[dict[str, bytes], list[Problem]]:
    texts: dict[str, bytes] = {}
    problems: list[Problem] = []
    folders = tuple(f"{component_files.normalize(folder)}/" for folder in config.components)
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
            if path in texts or path.startswith(folders) or _contains_tests(path):
                continue
            try:
                content = files.read(config.root, path, MAX_BYTES)
                budget.charge_file(content)
                texts[path] = content
            except OverBudget as over:
                if over.is_first:
                    problems.append(Problem(str(over), over.remedy, "", Position(path, 1, 1), code=over.code))
                break
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


def _contains_tests(path: str) -> bool:
    """Whether a file below a folder of manifests contains access tests, as in a project whose manifests are `.`."""
    return path in _TESTS or path.startswith("tests/access/")


def _assemble(
    config: Config,
    texts: Mapping[str, bytes],
    problems: list[Problem],
    environ: Mapping[str, str],
    overrides: Mapping[str, Variable] | None,
    budget: Budget,
    included: Mapping[str, bytes] | None = None,
    absent: Absent | None = None,
    *,
    partial_if_invalid: bool = False,
) -> Loaded:
    unread_files = {problem.position.file for problem in problems if problem.is_error and problem.position} - {FILE}
    settings = variables.settle_variables(config.settings, overrides or {}, problems)
    values = {**config.variables, **{name: setting.value for name, setting in settings.items()}}
    sources_of_values = variables.sources(settings)
    targets = Resolver(config.root, environ, values, Declared(), absent, sources_of_values, budget)
    composition = Composition(config, settings, budget)
    drafts, declared = _read_drafts(texts, problems, composition, targets, budget)
    are_named = len(problems)
    texts = {**texts, **composition.component_texts}
    resolver = Resolver(config.root, environ, values, declared, absent, sources_of_values, budget)
    resolver.visible_values += targets.visible_values
    resolver.included_files.update(included or {})
    written = ChainMap(dict(texts), resolver.included_files, dict(config.sources))
    declarations, links = _declarations(drafts, resolver, written, problems)
    problems += config.warnings
    if _are_too_many(problems, resolver):
        problems.append(replace(_TOO_MANY, position=problems[-1].position))
    else:
        problems += find_exposed_secrets(config, environ, declarations, resolver)
        own = partial(_places_with, config, texts, resolver.included_files)
        issuing = [draft for draft in drafts if draft.kind is not None and draft.kind.one_time is not None]
        with_sinks = {draft.address for draft in issuing if draft.address and draft.has_sinks}
        problems += _check_together(declarations, links, with_sinks, config, own)
    if declared.scopes:
        problems[are_named:] = [_name_use_of_subject(problem, declared) for problem in problems[are_named:]]
    problems.sort(key=lambda problem: (problem.position or Position("", 0, 0), problem.subject, problem.text))
    unread: Unread | None = None
    if any(problem.is_error for problem in problems):
        if not partial_if_invalid or budget.is_spent:  # after that no value of any declaration was read
            raise Rejected(problems)
        in_manifests = {*texts, *resolver.included_files, *unread_files}
        known = {*declared.ensures, *declarations}
        unread = find_unread(problems, known, in_manifests, is_complete=declared.complete and not unread_files)
        if unread is not None and declarations.keys() <= unread.addresses:
            raise Rejected(problems)  # nothing is left to plan
        problems = [*confine(problems)]
    digest = digest_of(
        {**texts, **resolver.visible_files, **config.sources, **_digest_variables(overrides or {}, config.stack)}
    )
    rendered = {
        address: declaration
        for address, declaration in declarations.items()
        if kinds.get(address.kind).home is Home.FILE
    }
    skipped = rendered.keys() | (unread.addresses if unread is not None else ())
    planned = {address: declaration for address, declaration in declarations.items() if address not in skipped}
    manifest = Manifest(config.stack, planned, digest, declared.left_out, unread)
    return Loaded(manifest, tuple(problems), tuple(texts), rendered)


def _name_use_of_subject(problem: Problem, declared: Declared) -> Problem:
    """The problem, with the use of the component that declares its subject."""
    addresses = find_in_subject(problem.subject, declared.scopes)
    return name_use(problem, next((declared.scopes[address] for address in addresses), None))


def digest_of(texts: Mapping[str, bytes]) -> str:
    """A digest of names and contents, independent of their order."""
    total = hashlib.sha256()
    for name, text in sorted(texts.items()):
        total.update(f"{len(name.encode())}:{name}{len(text)}:".encode())
        total.update(text)
    return total.hexdigest()


def _digest_variables(variables: Mapping[str, Variable], stack: str) -> dict[str, bytes]:
    """The digest of variables from the command line, keyed by the stack: a plan shows it, and values may be secret."""
    if not variables:
        return {}
    return {"--var": digest_of_value(Secret(canonical(dict(variables)).decode(), "--var"), stack).encode()}


def _read_drafts(
    texts: Mapping[str, bytes],
    problems: list[Problem],
    composition: Composition,
    targets: Resolver,
    budget: Budget,
) -> tuple[list[Draft], Declared]:
    """Reads the envelopes. `targets` resolves variables in `deliver`."""
    drafts: list[Draft] = []
    declared = Declared()
    for file, text in texts.items():
        if len(problems) > MAX_PROBLEMS:
            declared.complete = False
            break
        reading = _read_file(text, file, budget)
        problems += reading.problems
        declared.complete = declared.complete and reading.complete
        for source in reading.documents:
            if source.value is None:
                continue  # nothing between two `---`
            for composed in composition.documents(source, problems):
                document, wrong_targets = substitute_variables(composed, targets)
                draft, findings = envelope.read_draft(file, document)
                findings += wrong_targets
                scope = scope_of(document.places)
                found = [validation.to_problem(finding, document.places, draft.subject) for finding in findings]
                problems += [name_use(problem, scope) for problem in found]
                if draft.address is not None:
                    draft.listed = composition.listed.get(draft.address, ())
                    declared.add(draft.address, draft.ensure, scope)
                elif findings:
                    declared.complete = False
                drafts.append(draft)
    declared.left_out = composition.left_out
    declared.scopes.update(composition.scopes)
    declared.complete = declared.complete and composition.complete
    if declared.complete:
        problems += composition.find_undeclared_patches(declared.ensures)
    declared.complete = declared.complete and not any(problem.is_error for problem in problems if not problem.subject)
    return drafts, declared


def _read_file(text: bytes, file: str, budget: Budget) -> Reading:
    """The documents of a file, whose values are charged."""
    try:
        budget.charge_content(text)
        reading = yaml.read(text, file)
        budget.charge_copies(reading.copied_values, reading.copied_characters)
    except OverBudget as over:
        wrong = [Problem(str(over), over.remedy, "", Position(file, 1, 1), code=over.code)] if over.is_first else []
        return Reading(problems=wrong, complete=False)
    return reading


def _declarations(
    drafts: Iterable[Draft], resolver: Resolver, written: Mapping[str, bytes], problems: list[Problem]
) -> tuple[dict[Address, Declaration], Links]:
    """Returns declarations and their references by address. Of two with one address the first counts."""
    declarations: dict[Address, Declaration] = {}
    links: dict[Address, list[tuple[Address, Path]]] = {}
    for draft in drafts:
        if _are_too_many(problems, resolver):
            break
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


def _are_too_many(problems: Collection[Problem], resolver: Resolver) -> bool:
    return len(problems) > MAX_PROBLEMS or resolver.invalid_values > MAX_INVALID_VALUES


def _check_together(
    declarations: Mapping[Address, Declaration],
    links: Links,
    with_sinks: Collection[Address],
    config: Config,
    own: Callable[[], Mapping[str, str]],
) -> Iterator[Problem]:
    """Runs the checks between declarations."""
    by_kind = group_by_kind(declarations.values())
    yield from find_circular_references(declarations, links)
    yield from find_duplicate_objects(by_kind)
    yield from find_undelivered_secrets(by_kind, with_sinks)
    yield from find_conflicting_deliveries(by_kind, config.place, own)
    yield from find_conflicting_moves(declarations)
    yield from check_metadata(by_kind, config.stack)
    yield from find_retired_kinds(declarations.values(), DIALECTS[config.profile])


def own_places(config: Config) -> Mapping[str, str]:
    """Real paths of the project's own files and folders, with their purpose. Finds manifests without reading them."""
    paths: list[str] = []
    for entry in config.manifests:
        with suppress(files.Unreadable):
            paths += files.find_manifests(config.root, files.path_inside(entry))
    return _places_with(config, paths, ())


def _places_with(config: Config, texts: Iterable[str], included: Iterable[str]) -> Mapping[str, str]:
    """The project's own places and the real paths of the files that were read, which may be targets of symlinks."""
    read = dict.fromkeys(map(config.place, included), "manifests, which read it with from_file")
    return {**read, **dict.fromkeys(map(config.place, texts), "manifests"), **config.own}
