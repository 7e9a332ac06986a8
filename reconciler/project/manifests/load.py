"""Reads every manifest of a project into one `Manifest`, or tells everything that is wrong with them at once.

Three passes: files into documents and their addresses; specs into values, now that references know what is declared;
then what can only be seen between declarations. Needs no network.
"""

from __future__ import annotations

import hashlib
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path as Folder
from types import MappingProxyType

from pydantic import ValidationError

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.dialect import PROFILES
from reconciler.model.kind import Finding, Home, Kind, fields_of
from reconciler.model.manifest import Declaration, Ensure, Manifest, Path
from reconciler.model.problem import Position, Problem, Rejected, Severity
from reconciler.model.value import PENDING, Sealed, Secret, Value, canonical, secrets_in
from reconciler.model.value import digest as digest_of_value
from reconciler.project import files
from reconciler.project.documents import envelope, validation
from reconciler.project.documents.envelope import Draft
from reconciler.project.documents.resolve import Absent, Declared, Resolver, Variable
from reconciler.project.documents.validation import MAX_FINDINGS
from reconciler.project.manifests import crosschecks
from reconciler.project.manifests.composition import Composition
from reconciler.project.policies import offsets
from reconciler.project.settings import variables
from reconciler.project.settings.config import FILE, Config
from reconciler.project.settings.variables import Setting
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


def load(
    config: Config,
    environ: Mapping[str, str],
    variables: Mapping[str, Variable] | None = None,
    absent: Absent | None = None,
) -> Loaded:
    """The project's manifests; `variables` override those of the project file. Rejected tells all that is wrong.

    A value of an environment variable or file that is not there is wrong too, unless `absent` says what stands for it.
    """
    with yaml.unhurried_collector():
        texts, problems = _texts(config)
        sources = {file: cache(partial(_places, config.root, file, hash(text))) for file, text in texts.items()}
        return _assemble(config, texts, problems, environ, variables, absent=absent, sources=sources)


def load_with(
    config: Config,
    environ: Mapping[str, str],
    variables: Mapping[str, Variable] | None,
    added: Mapping[str, bytes],
    included: Mapping[str, bytes],
) -> Loaded:
    """As `load`, as if these manifests, and the files that they include, were there already.

    A folder that is still to be made is an empty one.
    """
    there = (each for each in config.manifests if each.endswith(files.MANIFESTS) or (config.root / each).exists())
    config = replace(config, manifests=tuple(there))
    with yaml.unhurried_collector():
        texts, problems = _texts(config)
        return _assemble(config, dict(sorted({**texts, **added}.items())), problems, environ, variables, included)


def load_texts(
    texts: Mapping[str, bytes],
    stack: str,
    environ: Mapping[str, str],
    variables: Mapping[str, Variable] | None = None,
    root: Folder = Folder(),
) -> Loaded:
    """As `load`, of manifest files that are given as name and bytes, in a project of these variables."""
    with yaml.unhurried_collector():
        settings = {name: Setting(value) for name, value in (variables or {}).items()}
        return _assemble(Config(root, stack, settings=settings), texts, [], environ, None)


def _texts(config: Config) -> tuple[dict[str, bytes], list[Problem]]:
    texts: dict[str, bytes] = {}
    problems: list[Problem] = []
    for index, entry in enumerate(config.manifests):
        where = config.positions.get(("manifests", index), Position(FILE, 1, 1))
        try:
            paths = list(files.manifests(config.root, files.inside(entry)))
        except files.Unreadable as wrong:
            problems.append(Problem(str(wrong), wrong.remedy, position=where))
            continue
        for path in paths:
            if path in texts:
                continue
            try:
                texts[path] = files.read(config.root, path, MAX_BYTES)
            except files.Unreadable as wrong:
                at = where if path == files.inside(entry) else Position(path, 1, 1)
                problems.append(Problem(str(wrong), wrong.remedy, position=at))
        if not paths:
            text = f"there are no manifests (*.yaml, *.yml) below {entry}"
            problems.append(Problem(text, "nothing is declared here", "", where, Severity.WARNING, code="no-manifests"))
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
    settings = variables.settled(config.settings, given or {}, problems)
    drafts, declared = _drafts(texts, problems, Composition(config, settings))
    declared.complete = declared.complete and not any(problem.is_error for problem in problems if not problem.subject)
    values = {name: each.value for name, each in settings.items()}
    problems += config.warnings
    resolver = Resolver(
        config.root, environ, {**config.variables, **values}, declared, absent, variables.sources(settings)
    )
    resolver.included.update(included or {})
    written = ChainMap(dict(texts), resolver.included, dict(config.sources))
    declarations: dict[Address, Declaration] = {}
    links: dict[Address, list[tuple[Address, Path]]] = {}
    for each in drafts:
        if each.form is None or each.address is None or each.kind is None:
            continue
        declaration, found = _declaration(each, each.form, each.address, each.kind, resolver, written)
        problems += found
        if _is_first(each, declarations, problems):
            declarations[each.address] = declaration
            if resolver.links:
                links[each.address] = resolver.links
    problems += crosschecks.exposed(
        resolver.shown, _known_secrets(config, environ, declarations, resolver), declarations
    )
    own = partial(_own, config, texts, resolver.included)
    problems += _between(declarations, links, config, own)
    problems += crosschecks.retired(declarations.values(), PROFILES[config.profile])
    problems.sort(key=lambda each: (each.position or Position("", 0, 0), each.subject, each.text))
    if any(each.is_error for each in problems):
        raise Rejected(problems)
    for each in drafts if sources else ():
        each.document.places.let_go(sources[each.file])
    digest = digest_of({**texts, **resolver.included, **config.sources, **_given(given or {}, config.stack)})
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


def _given(variables: Mapping[str, Variable], stack: str) -> dict[str, bytes]:
    """What was given on the command line. It may be a secret, and plans tell the digest: none that helps to guess."""
    if not variables:
        return {}
    return {"--var": digest_of_value(Secret(canonical(dict(variables)).decode(), "--var"), stack).encode()}


def _drafts(
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
                made, findings = envelope.draft(file, document)
                problems += [validation.problem(each, document.places, made.subject) for each in findings]
                if made.address is not None:
                    declared.add(made.address, made.ensure)
                elif findings:
                    declared.complete = False
                drafts.append(made)
    declared.left_out = composition.left_out
    declared.complete = declared.complete and composition.complete
    if declared.complete:
        problems += composition.undeclared(declared.ensures)
    return drafts, declared


def _declaration(
    made: Draft,
    form: envelope.Special,
    address: Address,
    kind: Kind,
    resolver: Resolver,
    sources: Mapping[str, bytes],
) -> tuple[Declaration, list[Problem]]:
    places = made.document.places
    spec = resolver.resolve(kind.spec, address, made.spec)
    findings = resolver.findings
    if wrong := _spec_findings(form, kind, spec):
        findings = findings + [_placed(each) for each in wrong if validation.at(spec, each.path) != PENDING]
    if len(findings) > MAX_FINDINGS:
        more = Finding((), f"more than {MAX_FINDINGS} problems in this resource", "correct those above first")
        findings = [*findings[:MAX_FINDINGS], more]
    declaration = Declaration(
        address=address,
        spec=spec,
        position=places.start,
        positions=places,
        id=form.id,
        ensure=made.ensure,
        lifecycle=form.lifecycle,
        moved=made.moved,
        deliver=made.deliver,
        rotate=form.rotate,
    )
    problems = []
    for each in findings:
        problem = validation.problem(each, places, made.subject, ("spec",))
        if each.spot or each.within:
            as_written, value = validation.at(made.spec, each.path), validation.at(spec, each.path)
            problem = offsets.pinpoint(problem, each, as_written, value, sources)
        problems.append(problem)
    return declaration, problems


def _spec_findings(form: envelope.Special, kind: Kind, spec: dict[str, Value]) -> list[Finding]:
    needs_all = form.ensure is Ensure.PRESENT
    lacking = [
        Finding((name,), validation.MISSING, "add it, or give the id of an existing object")
        for name in (kind.required_unless_id if needs_all and form.id is None else ())
        if spec.get(name) is None
    ]
    spec = _completed(kind, spec, form.lifecycle.ignore)
    try:
        valid = kind.spec.model_validate(spec)
    except ValidationError as error:
        wrong = validation.problems_of(error, spec, fields_of(kind.spec))
        return lacking + [each for each in wrong if needs_all or each.text != validation.MISSING or len(each.path) > 1]
    return lacking + validation.findings_of(valid)


def _placed(finding: Finding) -> Finding:
    """With what to do about a key of the spec that belongs beside it."""
    if finding.text != validation.UNKNOWN_FIELD or len(finding.path) != 1:
        return finding
    name = str(finding.path[0])
    where = "beside spec" if name in envelope.ManifestForm.model_fields else envelope.misplaced(name, None)
    return replace(finding, remedy=where.replace("beside", "write it beside")) if where else finding


def _completed(kind: Kind, spec: dict[str, Value], ignored: Sequence[str]) -> dict[str, Value]:
    """With a stand-in for each secret that is left to others: the object has it already, and no manifest tells it."""
    for each in ignored:
        path = tuple(each.split("."))
        field, is_secret = validation.field_at(kind.fields, path)
        if field is not None and is_secret and validation.at(spec, path) is None:
            spec = _with(spec, path)
    return spec


def _with(spec: dict[str, Value], path: tuple[str, ...]) -> dict[str, Value]:
    head, *rest = path
    if not rest:
        return {**spec, head: PENDING}
    inner = spec.get(head)
    return {**spec, head: _with(inner, tuple(rest))} if isinstance(inner, dict) else spec


def _is_first(made: Draft, declarations: Mapping[Address, Declaration], problems: list[Problem]) -> bool:
    assert made.address is not None
    first = declarations.get(made.address)
    if first is None:
        return True
    where = made.document.places.nearest(("name",))
    problems.append(Problem(f"declared twice, first at {first.position}", "rename or remove one", made.subject, where))
    return False


def _between(
    declarations: Mapping[Address, Declaration],
    links: crosschecks.Links,
    config: Config,
    own: Callable[[], Mapping[str, str]],
) -> Iterator[Problem]:
    by_kind: dict[Kind, list[Declaration]] = {}
    for address, each in declarations.items():
        by_kind.setdefault(kinds.get(address.kind), []).append(each)
    yield from crosschecks.rings(declarations, links)
    yield from crosschecks.twins(by_kind)
    yield from crosschecks.declared_within(by_kind, declarations)
    yield from crosschecks.undelivered(by_kind)
    yield from crosschecks.misdelivered(by_kind, config.place, own)
    yield from _moves(declarations)
    yield from crosschecks.metadata(by_kind, config.stack)


def own_places(config: Config) -> Mapping[str, str]:
    """Real paths of the project's own files and folders, and what each is for; manifests are looked for, not read."""
    found: list[str] = []
    for entry in config.manifests:
        with suppress(files.Unreadable):
            found += files.manifests(config.root, files.inside(entry))
    return _own(config, found, ())


def _known_secrets(
    config: Config, environ: Mapping[str, str], declarations: Mapping[Address, Declaration], resolver: Resolver
) -> crosschecks.KnownSecrets:
    """The keys of this program, every declared secret, and what deliveries write."""
    texts = {each.reveal() for each in [config.api_key] if each is not None}
    texts |= {text for name, text in environ.items() if name.startswith("RECONCILER_") and name.endswith("_KEY")}
    files_of = set()
    for each in declarations.values() if resolver.shown else ():
        texts |= {secret.reveal() for secret in secrets_in(each.spec) if not isinstance(secret, Sealed)}
        files_of |= {f"file:{delivery.target}" for delivery in each.deliver.values()}
    return crosschecks.KnownSecrets(frozenset(map(str.strip, texts)), frozenset(files_of | resolver.secret_sources))


def _own(config: Config, texts: Iterable[str], included: Iterable[str]) -> Mapping[str, str]:
    """The project's own places with the files that were read, which may be elsewhere than their links."""
    read = dict.fromkeys(map(config.place, included), "manifests, which read it by from_file")
    return {**read, **dict.fromkeys(map(config.place, texts), "manifests"), **config.own}


def _moves(declarations: Mapping[Address, Declaration]) -> Iterator[Problem]:
    """An earlier address belongs to nobody else, now or then."""
    claimed: dict[Address, Declaration] = {}
    for each in declarations.values():
        for before in each.moved:
            where = each.positions.get(("moved",), each.position)
            other = declarations.get(before) or claimed.setdefault(before, each)
            if other is not each:
                text = (
                    f"{before} is declared at {other.position}"
                    if before == other.address
                    else (f"{before} has moved to {other.address} already ({other.position})")
                )
                yield Problem(text, "remove one of the two", f"{each.address}.moved", where)
