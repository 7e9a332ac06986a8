"""Loads the settings of a project: the project file, one environment, and overrides by environment variables.

The shape of the file is in `project_file`, the connection to the platform in `connection`.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.languages.yaml.positions import Places
from reconciler.languages.yaml.reader import Document
from reconciler.model import dialect
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.health import DAY
from reconciler.model.known_drift import KnownDrift
from reconciler.model.problem import Finding, Position, Problem, Rejected, Severity
from reconciler.model.value import PENDING, Json, Secret, Value, canonical
from reconciler.project import component_files, discovery, files
from reconciler.project.documents import durations, validation
from reconciler.project.documents.merge import Layer, Role, merge
from reconciler.project.documents.references import Declared
from reconciler.project.documents.resolve import Absent, Resolver, Variable
from reconciler.project.settings import connection, defaults, environments, variables
from reconciler.project.settings.connection import AGENT_URL, Overrides, is_loopback
from reconciler.project.settings.environments import Environment
from reconciler.project.settings.one_document import MAX_BYTES, read_map, report_not_a_map
from reconciler.project.settings.project_file import Guards, Limits, ProjectFile, Snapshots
from reconciler.project.settings.variables import Setting

FILE: Final = discovery.FILE
DEFAULT_STORE: Final = "state/reconciler.db"  # below the project's folder
_STORED: Final = ("", "-wal", "-shm")  # suffixes of the store's file and of those that SQLite creates beside it


class Config(Struct, frozen=True):
    """The settings of a project in one environment. `profile` is the dialect of the API."""

    root: Path
    stack: str
    base_url: str | None = None
    api_key: Secret | None = None
    profile: dialect.Name = "specification"
    account: str | None = None
    manifests: tuple[str, ...] = ("manifests",)
    components: tuple[str, ...] = ("components",)
    repository: Path | None = None  # in which components may be; None: found when one is outside the project
    policies: tuple[str, ...] = ("policies",)
    limits: Limits = field(default_factory=Limits)
    guards: Guards = field(default_factory=Guards)
    snapshots: Snapshots = field(default_factory=Snapshots)
    known_drift: tuple[KnownDrift, ...] = ()
    zones: tuple[str, ...] = ()  # of DNS, as written
    expires_within: float = 14 * DAY  # how long before its expiry an object is degraded, in seconds
    variables: Mapping[str, Variable] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)  # the same variables, with types and sources
    defaults: Mapping[str, Layer] = field(default_factory=dict)  # by kind
    environment: Environment | None = None
    store: str | None = None
    store_scope: str = ""  # of the stack within the store; see `store.scope`
    agent_url: str = AGENT_URL
    stated: ProjectFile | None = None  # the settings without overrides by environment variables
    written: Mapping[str, Json] = field(default_factory=dict)  # the same with expressions such as {from_env: NAME}
    positions: Mapping[tuple[str | int, ...], Position] = field(default_factory=dict)
    unmet: tuple[Problem, ...] = ()  # problems that prevent a connection
    included_files: tuple[str, ...] = ()  # files read with from_file, except that of the key
    warnings: tuple[Problem, ...] = ()

    @property
    def sources(self) -> Mapping[str, bytes]:
        """Files besides the manifests that affect the declarations, with their content."""
        texts = {self.environment.file: self.environment.text} if self.environment else {}
        if self.defaults:
            texts[FILE] = canonical({kind: layer.value for kind, layer in self.defaults.items()})
        return texts

    def place(self, path: str) -> str:
        """The real path of a path of the project, which need not exist."""
        return os.path.realpath(self.root / path)

    @property
    def own(self) -> Mapping[str, str]:
        """Real paths of the project's own files and folders with their purpose. Secrets are never written there."""
        purposes = {FILE: "settings", "approvals.yaml": "approvals", environments.FOLDER: "environments"}
        purposes |= {self.environment.file: "environments"} if self.environment else {}
        purposes |= dict.fromkeys(self.included_files, "settings, which read it with from_file")
        purposes |= dict.fromkeys(("tests/access.yaml", "tests/access.yml", "tests/access"), "access tests")
        purposes |= dict.fromkeys(self.policies, "policies") | dict.fromkeys(self.components, "components")
        purposes |= dict.fromkeys(self.manifests, "manifests")
        places = {self.place(path): what for path, what in purposes.items()}
        store = self.store or DEFAULT_STORE
        if "://" not in store and "\0" not in store:
            places |= {f"{self.place(store)}{suffix}": "store" for suffix in _STORED}
        return places

    def connection(self) -> tuple[str, Secret]:
        """The base URL and the API key of the platform. Raises Rejected if one is missing."""
        if self.base_url is None or self.api_key is None:
            raise Rejected(self.unmet)
        return self.base_url, self.api_key


def load_config(
    root: Path, environ: Mapping[str, str], environment: str | None = None, absent: Absent | None = None
) -> Config:
    """Loads the project in the folder `root`, in one of its environments. Raises Rejected with every problem.

    `environment` defaults to RECONCILER_ENV. `absent`: as for `load_manifests`.
    """
    name = environment or environ.get("RECONCILER_ENV")
    chosen = environments.read_environment(root, name) if name else None
    written, places = _with_environment(_read_project_file(root), chosen)
    reading = _read_values(written, Resolver(root, environ, {}, Declared(), absent), leaves_out=absent is not None)
    overrides, problems = connection.read_overrides(environ)
    layers, wrong_defaults = defaults.read_defaults(written.get("defaults"), places)
    settings, wrong_variables = variables.read_variables(reading.file.variables, written.get("variables"), places)
    findings = [*reading.findings, *wrong_defaults, *wrong_variables]
    problems += [validation.to_problem(finding, places) for finding in findings]
    included = reading.included_files
    if chosen is not None and not problems:
        resolver = Resolver(root, environ, {}, Declared(), absent)
        settings, problems = _apply_environment(settings, chosen, resolver)
        included |= resolver.included_files.keys()
    if problems:
        raise Rejected(sorted(problems, key=lambda problem: (problem.position or Position("", 0, 0), problem.text)))
    found = _build_config(root, reading, places, overrides, settings, layers, chosen, included)
    return replace(found, stated=reading.file, written=written)


class _Reading(Struct, frozen=True):
    """The project file with resolved values, and findings about them.

    unmet     findings in `platform`, which matter only to commands that connect
    """

    file: ProjectFile
    findings: list[Finding]
    warnings: list[Finding]
    unmet: list[Finding]
    included_files: set[str]


def _read_values(written: Mapping[str, Json], resolver: Resolver, *, leaves_out: bool) -> _Reading:
    """Resolves and validates the project file. `leaves_out`: treat settings with a missing source as not set."""
    values = resolver.resolve(ProjectFile, FILE, {key: value for key, value in written.items() if key != "defaults"})
    warnings = [finding for finding in resolver.findings if finding.severity is Severity.WARNING]
    errors = [finding for finding in resolver.findings if finding.severity is not Severity.WARNING]
    unmet = [error for error in errors if error.path[0] == "platform" and error.code != "secret-shown"]
    findings = [error for error in errors if error not in unmet]
    if leaves_out:
        values = {name: item if name == "variables" else _without_pending(item) for name, item in values.items()}
        values = {name: item for name, item in values.items() if item is not PENDING}
    file = ProjectFile.model_try(values)
    if not isinstance(file, ProjectFile):
        unresolved = {finding.path for finding in findings}
        wrong_values = validation.problems_of(file, values, fields_of(ProjectFile))
        file = ProjectFile.model_construct()
        findings += [finding for finding in wrong_values if finding.path not in unresolved]
    findings += [*_check_paths("manifests", file.manifests), *_check_paths("policies", file.policies)]
    findings += _check_paths("components", file.components, normalize=component_files.normalize)
    return _Reading(file, findings, warnings, unmet, set(resolver.included_files))


def _build_config(
    root: Path,
    reading: _Reading,
    places: Places,
    overrides: Overrides,
    settings: Mapping[str, Setting],
    layers: Mapping[str, Layer],
    chosen: Environment | None,
    included: set[str],
) -> Config:
    file, platform = reading.file, reading.file.platform
    written_key = connection.parse_key(platform.api_key)
    base_url = connection.resolve_base_url(overrides.base_url or platform.base_url, platform.profile)
    api_key = connection.parse_key(overrides.api_key) if overrides.api_key is not None else written_key
    missing = [
        validation.to_problem(finding, places)
        for finding in reading.unmet
        if getattr(overrides, str(finding.path[-1]), None) is None
    ]
    if api_key is not None and (problem := connection.check_key(api_key, places)) is not None:
        api_key = None
        missing.append(problem)
    return Config(
        root=root,
        stack=file.stack,
        base_url=base_url,
        api_key=api_key,
        profile=platform.profile,
        account=platform.account,
        manifests=tuple(file.manifests),
        components=tuple(file.components),
        policies=tuple(file.policies),
        limits=file.limits,
        guards=file.guards,
        snapshots=file.snapshots,
        known_drift=tuple(
            KnownDrift(entry.match, entry.until, entry.reason, places.nearest(("drift", "ignore", index)))
            for index, entry in enumerate(file.drift.ignore)
        ),
        zones=tuple(file.dns.zones),
        expires_within=float(durations.to_seconds(file.health.expires_within)),
        variables={name: setting.value for name, setting in settings.items() if setting.value is not None},
        settings=settings,
        defaults=layers,
        environment=chosen,
        store=overrides.store or file.store,
        agent_url=(overrides.agent_url or file.agent.base_url).rstrip("/"),
        positions=places,
        unmet=tuple(missing or connection.find_missing_settings(places, base_url, api_key)),
        # Without the file of the API key: a rotated key may be delivered there.
        included_files=tuple(included - ({written_key.source.removeprefix("file:")} if written_key else set())),
        warnings=tuple(validation.to_problem(secret, places) for secret in _find_literal_secrets(reading, base_url)),
    )


def _read_project_file(root: Path) -> Document:
    try:
        text = files.read(root, FILE, MAX_BYTES)
    except files.Unreadable as wrong:
        where = "this folder" if root == Path() else str(root)
        remedy = f"`reconciler init` creates one in {where}; --project selects another directory"
        raise Rejected([Problem(str(wrong), remedy, code=wrong.code)]) from None
    document = read_map(text, FILE, _EMPTY)
    if document is None:
        raise Rejected([report_not_a_map(None, FILE, _EMPTY)])
    return document


_EMPTY: Final = "begin with version: 1"


def _apply_environment(
    settings: Mapping[str, Setting], chosen: Environment, resolver: Resolver
) -> tuple[dict[str, Setting], list[Problem]]:
    """Sets the variables of the environment's file. Returns all variables, and problems in that file."""
    raw: dict[str, Json] = {"variables": chosen.variables}
    values = resolver.resolve(_Variables, chosen.file, raw)["variables"]
    merged, findings = variables.apply_environment(settings, values, chosen)
    return merged, [validation.to_problem(finding, chosen.places) for finding in (*resolver.findings, *findings)]


class _Variables(Form):
    """The variables of an environment's file, as a form for the resolver."""

    variables: dict[str, Any] = {}


def _without_pending(value: Value) -> Value:
    """Removes pending values: those whose source is missing."""
    if isinstance(value, dict):
        return {name: _without_pending(item) for name, item in value.items() if item is not PENDING}
    return value


def _find_literal_secrets(reading: _Reading, base_url: str | None) -> Iterator[Finding]:
    """Finds secrets that are written in plain text. The key of a sandbox on this machine does not count as one."""
    store = reading.file.store
    host = urlsplit(base_url or "").hostname
    for warning in reading.warnings:
        if warning.path != ("platform", "api_key") or host is None or not is_loopback(host):
            yield warning
    if store is not None and "://" in store and urlsplit(store).password:
        yield Finding(
            ("store",),
            "the password is written here in plain text",
            "write store: {from_env: NAME}",
            Severity.WARNING,
            code="literal-secret",
        )


def _with_environment(document: Document, chosen: Environment | None) -> tuple[Mapping[str, Json], Places]:
    if chosen is None or not chosen.settings:
        return document.value, document.places
    project = Layer(Role.MANIFEST, document.value, document.places)
    merged = merge([project, Layer(Role.ENVIRONMENT, chosen.settings, chosen.places)], project)
    return merged.value, merged.places


def _check_paths(name: str, paths: list[str], normalize: Callable[[str], str] = files.path_inside) -> list[Finding]:
    findings = []
    for index, path in enumerate(paths):
        try:
            if normalize(path) == ".":
                raise files.Unreadable(
                    f"{path} is the whole project, including {FILE}",
                    "use a file or folder inside the project",
                    code="path-outside-project",
                )
        except files.Unreadable as wrong:
            findings.append(Finding((name, index), str(wrong), wrong.remedy, code=wrong.code))
    return findings
