"""The project file, `reconciler.yaml`: whose account, which manifests, how fast, how carefully.

Offline commands need neither address nor key, so what is missing of these is only told when they are asked for. The
environment may override the address, the key and the store, so that one project runs against a sandbox or an account.
"""

import ipaddress
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import Doc

from reconciler.kinds.types.fields import Deferred, checked
from reconciler.model import dialect as profiles
from reconciler.model.dialect import PROFILES
from reconciler.model.kind import Between, Finding, Sensitive, fields_of
from reconciler.model.known_drift import KnownDrift
from reconciler.model.problem import Position, Problem, Rejected, Severity
from reconciler.model.value import PENDING, Json, Sealed, Secret, Value, canonical
from reconciler.project import files
from reconciler.project.documents import phrases, validation
from reconciler.project.documents.merge import Layer, Role, weave
from reconciler.project.documents.resolve import Absent, Declared, Resolver, Variable
from reconciler.project.settings import defaults, environments, variables
from reconciler.project.settings.environments import Environment
from reconciler.project.settings.variables import Setting
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.positions import Places
from reconciler.project.yaml.reader import Document

FILE: Final = "reconciler.yaml"
_MAX_BYTES: Final = 1024 * 1024
DEFAULT_STORE: Final = "state/reconciler.db"  # below the project's folder
_STORED: Final = ("", "-wal", "-shm")  # what a store's file is called, and those that SQLite keeps beside it
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
AGENT_URL: Final = "http://127.0.0.1:4040"  # where an agent serves its API unless it is told otherwise
_STACK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # 62: leaves room for the owner record in 4096 bytes


@dataclass(frozen=True, slots=True)
class Limits:
    """`requests_per_minute` is the platform's budget for the account, shared by all that read and write;
    None: as the profile has it. `settle_seconds` is how long the platform may work on a request whose sender died."""

    requests_per_minute: int | None = None
    concurrency: int = 16
    settle_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Guards:
    """The share of owned objects that one plan may delete or update without consent."""

    max_delete_percent: int = 30
    max_update_percent: int = 30


@dataclass(frozen=True, slots=True)
class Snapshots:
    """How snapshot files are trusted; None: signed or not."""

    public_key: str | None = None


@dataclass(frozen=True)
class Config:
    """A project file as read, with the environment's overrides. `profile` is how the platform spells what it says."""

    root: Path
    stack: str
    base_url: str | None = None
    api_key: Secret | None = None
    profile: profiles.Name = "specification"
    account: str | None = None
    manifests: tuple[str, ...] = ("manifests",)
    policies: tuple[str, ...] = ("policies",)
    limits: Limits = Limits()
    guards: Guards = Guards()
    snapshots: Snapshots = Snapshots()
    known_drift: tuple[KnownDrift, ...] = ()
    variables: Mapping[str, Variable] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)  # the same, with types and sources
    defaults: Mapping[str, Layer] = field(default_factory=dict)  # by kind
    environment: Environment | None = None
    store: str | None = None
    agent_url: str = AGENT_URL
    positions: Mapping[tuple[str | int, ...], Position] = field(default_factory=dict, repr=False)
    unmet: tuple[Problem, ...] = ()  # why there is no address or no key
    included: tuple[str, ...] = ()  # files read by from_file, but for the key's
    warnings: tuple[Problem, ...] = ()

    @property
    def sources(self) -> Mapping[str, bytes]:
        """What has a say in the manifests besides the manifests themselves."""
        told = {self.environment.file: self.environment.text} if self.environment else {}
        if self.defaults:
            told[FILE] = canonical({kind: layer.value for kind, layer in self.defaults.items()})
        return told

    def place(self, path: str) -> str:
        """Where the path leads, by symlinks too; nothing need be there yet."""
        return os.path.realpath(self.root / path)

    @property
    def own(self) -> Mapping[str, str]:
        """Places of files and folders that the project itself is made of, and what each is for: nothing else belongs
        there.
        """
        found = {FILE: "settings", environments.FOLDER: "environments"}
        found |= {self.environment.file: "environments"} if self.environment else {}
        found |= dict.fromkeys(self.included, "settings, which read it by from_file")
        found |= dict.fromkeys(self.policies, "policies") | dict.fromkeys(self.manifests, "manifests")
        places = {self.place(path): what for path, what in found.items()}
        store = self.store or DEFAULT_STORE
        if "://" not in store and "\0" not in store:
            places |= {f"{self.place(store)}{suffix}": "store" for suffix in _STORED}
        return places

    def connection(self) -> tuple[str, Secret]:
        """The platform's address and the key for it; Rejected says what is missing."""
        if self.base_url is None or self.api_key is None:
            raise Rejected(self.unmet)
        return self.base_url, self.api_key


# --- the file's shape -------------------------------------------------------------------------------------------------


def stack_name(text: str) -> str | None:
    """What is wrong with a stack's name, as `what; what to do`."""
    if _STACK.fullmatch(text):
        return None
    return (
        "is not the name of a stack; use up to 63 letters, digits, '.', '_' and '-', beginning with a letter or digit"
    )


def address_of_platform(text: str) -> str | None:
    """What is wrong with a base address, as `what; what to do`. Plain http is for loopback only."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address; write it like https://api.example.com"
    if parts.scheme not in ("http", "https") or not host:
        return "is not an address; write it like https://api.example.com"
    if parts.username is not None or parts.password is not None:
        return "holds a user or password; remove them, and set api_key"
    if parts.query or parts.fragment:
        return "has a query or fragment; remove it"
    if parts.scheme == "http" and not is_loopback(host):
        return "would send the API key in the clear; use https (plain http is for loopback only)"
    return None


def address_of_agent(text: str) -> str | None:
    """As of a platform. Nobody signs in to an agent: whoever reaches it may start tunnels."""
    wrong = address_of_platform(text)
    if wrong is not None and wrong.startswith("would send"):
        return "is plain http to another machine; use https (plain http is for loopback only)"
    return wrong and wrong.replace("https://api.example.com", AGENT_URL).replace(", and set api_key", "")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, defer_build=True)


class PlatformForm(_Form):
    """Where the account is, and the key to it."""

    base_url: Annotated[
        Annotated[str, checked(address_of_platform), Deferred] | None,
        Doc("The platform's address. The profile ngrok knows its own."),
    ] = None
    api_key: Annotated[
        Annotated[str, Deferred] | None,
        Sensitive,
        Doc("The API key, best {from_env: NAME}; line breaks at its end are cut off."),
    ] = None
    profile: Annotated[profiles.Name, Doc("Which dialect of the API the platform speaks.")] = "specification"
    account: Annotated[str | None, Doc("The account's name; a plan for another one is refused.")] = None


class AgentForm(_Form):
    """Where the agent is whose tunnels are declared."""

    base_url: Annotated[
        Annotated[str, checked(address_of_agent), Deferred], Doc("The address of its local API; no key is sent to it.")
    ] = AGENT_URL


class LimitsForm(_Form):
    """How much of the platform's budget may be used."""

    requests_per_minute: Annotated[
        Annotated[int, Between(2, 100_000)] | None,
        Doc("Requests in any 60 seconds: 120 with the profile ngrok, else without limit, where nothing is said."),
    ] = None
    concurrency: Annotated[int, Between(1, 256), Doc("Requests at the same time.")] = 16
    settle_seconds: Annotated[
        float,
        Between(0, 600),
        Doc(
            "After a crash: how long a create that was cut off may still take effect. "
            "Until then, what does not show is not created again."
        ),
    ] = 10.0


class GuardsForm(_Form):
    """What needs consent."""

    max_delete_percent: Annotated[int, Between(0, 100), Doc("Share of owned objects one plan may delete.")] = 30
    max_update_percent: Annotated[int, Between(0, 100), Doc("Share of owned objects one plan may update.")] = 30


def _date(text: str) -> str | None:
    """What is wrong with a date, as `what; what to do`."""
    wrong = f"{text!r} is not a date; write it like 2026-12-31"
    try:
        date.fromisoformat(text)
    except ValueError:
        return wrong
    return None if _DATE.fullmatch(text) else wrong


def _difference(text: str) -> str | None:
    kind, slash, name = text.partition("/")
    if slash and kind and name:
        return None
    return f"{text!r} names no difference; write Kind/name or Kind/name.field, with * for any text"


def _nonblank(text: str) -> str | None:
    return None if text.strip() else "is empty; say why the difference is expected"


class KnownDriftForm(_Form):
    """A difference that is expected for a while."""

    match: Annotated[str, checked(_difference), Deferred, Doc("Kind/name, or Kind/name.field; * stands for any text.")]
    until: Annotated[str, checked(_date), Deferred, Doc("The last day on which it is ignored, in UTC.")]
    reason: Annotated[str, checked(_nonblank), Deferred, Doc("Why it is expected.")]


class DriftForm(_Form):
    """What `drift` does not report."""

    ignore: Annotated[list[KnownDriftForm], Doc("Known drift, each with a date and a reason.")] = []


def _public_key(text: str) -> str | None:
    from reconciler.project import snapshots  # and with it cryptography

    return snapshots.check_public_key(text)


class SnapshotsForm(_Form):
    """What `plan --snapshot` trusts."""

    public_key: Annotated[
        Annotated[str, checked(_public_key), Deferred] | None,
        Doc("An Ed25519 public key in PEM, best {from_file: snapshot.pub}: only what it vouches for is read."),
    ] = None


class ProjectForm(_Form):
    """The project file."""

    version: Annotated[Literal[1], Doc("The version of this file's format.")] = 1
    stack: Annotated[Annotated[str, checked(stack_name), Deferred], Doc("The ownership scope, unique in the account.")]
    platform: PlatformForm = PlatformForm()
    agent: AgentForm = AgentForm()
    manifests: Annotated[list[str], Doc("Files and folders of manifests, below this file's folder.")] = ["manifests"]
    policies: Annotated[list[str], Doc("Files and folders of policies, below this file's folder.")] = ["policies"]
    limits: LimitsForm = LimitsForm()
    guards: GuardsForm = GuardsForm()
    snapshots: SnapshotsForm = SnapshotsForm()
    drift: DriftForm = DriftForm()
    variables: Annotated[
        dict[str, Any],
        Doc("Values for ${{ var.name }}, or {type, default, description}; environments and --var override them."),
    ] = {}
    defaults: Annotated[dict[str, Any], Doc("By kind: what each of its manifests says unless it says otherwise.")] = {}
    store: Annotated[str | None, Doc("Where history is kept: a path below this folder, or a database address.")] = None


class _VariablesForm(_Form):
    """What an environment's file says of variables."""

    variables: dict[str, Any] = {}


# --- reading ----------------------------------------------------------------------------------------------------------


def load(
    root: Path, environ: Mapping[str, str], environment: str | None = None, absent: Absent | None = None
) -> Config:
    """The project whose file is in the folder `root`, in one of its environments; Rejected tells all that is wrong.

    Where none is named, RECONCILER_ENV may name one. `absent`: as of `manifests.load`.
    """
    name = environment or environ.get("RECONCILER_ENV")
    chosen = environments.read(root, name) if name else None
    written, places = _laid_over(_read(root), chosen)
    resolver = Resolver(root, environ, {}, Declared(), absent)
    values = resolver.resolve(ProjectForm, FILE, {key: each for key, each in written.items() if key != "defaults"})
    warnings = [each for each in resolver.findings if each.severity is Severity.WARNING]
    wrong_sources = [each for each in resolver.findings if each not in warnings]
    unmet = [each for each in wrong_sources if each.path[0] == "platform"]
    findings = [each for each in wrong_sources if each.path[0] != "platform"]
    if absent is not None:
        values = {name: item if name == "variables" else _settled(item) for name, item in values.items()}
        values = {name: item for name, item in values.items() if item is not PENDING}
    form = ProjectForm.model_construct()
    try:
        form = ProjectForm.model_validate(values)
    except ValidationError as error:
        wrong_values = validation.problems_of(error, values, fields_of(ProjectForm))
        unresolved = {each.path for each in findings}
        findings += [each for each in wrong_values if each.path not in unresolved]
    overrides, wrong = _overrides(environ)
    findings += [*_bad_paths("manifests", form.manifests), *_bad_paths("policies", form.policies)]
    layers, odd = defaults.read(written.get("defaults"), places)
    settings, amiss = variables.declared(form.variables, places)
    settings = _with_origins(settings, written.get("variables"))
    problems = [validation.problem(each, places) for each in (*findings, *odd, *amiss)] + wrong
    included = set(resolver.included)
    if chosen is not None and not problems:
        resolver = Resolver(root, environ, {}, Declared(), absent)
        settings = _overlaid(settings, chosen, resolver, problems)
        included |= set(resolver.included)
    if problems:
        raise Rejected(sorted(problems, key=lambda each: (each.position or Position("", 0, 0), each.text)))
    base_url, api_key = _connection(form, overrides)
    lacking = [validation.problem(each, places) for each in unmet if each.path[-1] not in overrides]
    if api_key is not None and (flaw := _flaw(api_key)) is not None:
        api_key = None
        lacking.append(replace(flaw, position=places.nearest(("platform", "api_key"))))
    return Config(
        root=root,
        stack=form.stack,
        base_url=base_url,
        api_key=api_key,
        profile=form.platform.profile,
        account=form.platform.account,
        manifests=tuple(form.manifests),
        policies=tuple(form.policies),
        limits=Limits(**form.limits.model_dump()),
        guards=Guards(**form.guards.model_dump()),
        snapshots=Snapshots(**form.snapshots.model_dump()),
        known_drift=tuple(
            KnownDrift(each.match, each.until, each.reason, places.nearest(("drift", "ignore", index)))
            for index, each in enumerate(form.drift.ignore)
        ),
        variables={name: each.value for name, each in settings.items() if each.value is not None},
        settings=settings,
        defaults=layers,
        environment=chosen,
        store=overrides.get("store", form.store),
        agent_url=str(overrides.get("agent", form.agent.base_url)).rstrip("/"),
        positions=places,
        unmet=tuple(lacking or _lacking(places, base_url, api_key)),
        included=tuple(included - _key_file(form)),
        warnings=tuple(validation.problem(each, places) for each in _literal_secrets(warnings, form, base_url)),
    )


def _settled(value: Value) -> Value:
    """The value without what waits for something that is not there."""
    if isinstance(value, dict):
        return {name: _settled(item) for name, item in value.items() if item is not PENDING}
    return value


def _with_origins(settings: Mapping[str, Setting], written: Any) -> dict[str, Setting]:
    found = variables.origins(written)
    return {name: replace(each, origin=found.get(name, "")) for name, each in settings.items()}


def _literal_secrets(warnings: Iterable[Finding], form: ProjectForm, base_url: str | None) -> Iterator[Finding]:
    """Secrets that the settings write in plain text. The key to a sandbox on this machine is none."""
    host = urlsplit(base_url or "").hostname
    for each in warnings:
        if each.path != ("platform", "api_key") or host is None or not is_loopback(host):
            yield each
    if form.store is not None and "://" in form.store and urlsplit(form.store).password:
        yield Finding(
            ("store",),
            "the password is written here in plain text",
            "write store: {from_env: NAME}",
            Severity.WARNING,
            "literal-secret",
        )


def _read(root: Path) -> Document:
    start = Position(FILE, 1, 1)
    try:
        text = files.read(root, FILE, _MAX_BYTES)
    except files.Unreadable as wrong:
        where = "this folder" if root == Path() else str(root)
        remedy = f"`reconciler init` writes one into {where}, --project names another folder"
        raise Rejected([Problem(str(wrong), remedy)]) from None
    reading = yaml.read(text, FILE)
    if reading.problems:
        raise Rejected(reading.problems)
    if len(reading.documents) != 1:
        raise Rejected([Problem(f"expected one document, found {len(reading.documents)}", "keep one", "", start)])
    document = reading.documents[0]
    if not isinstance(document.value, dict):
        text_found = phrases.found(document.value)
        raise Rejected([Problem(f"expected a map, found {text_found}", "begin with version: 1", "", start)])
    return document


def _laid_over(document: Document, chosen: Environment | None) -> tuple[Mapping[str, Json], Places]:
    if chosen is None or not chosen.settings:
        return document.value, document.places
    project = Layer(Role.MANIFEST, document.value, document.places)
    woven = weave([project, Layer(Role.ENVIRONMENT, chosen.settings, chosen.places)], project)
    return woven.value, woven.places


def _overlaid(
    settings: dict[str, Setting], chosen: Environment, resolver: Resolver, problems: list[Problem]
) -> dict[str, Setting]:
    written = resolver.resolve(_VariablesForm, chosen.file, {"variables": chosen.variables})
    merged, findings = variables.overlaid(settings, written["variables"], chosen.places, chosen.name)
    found = variables.origins(chosen.variables)
    merged = {name: replace(each, origin=found[name]) if name in found else each for name, each in merged.items()}
    problems += [validation.problem(each, chosen.places) for each in (*resolver.findings, *findings)]
    return merged


def _overrides(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[Problem]]:
    overrides: dict[str, Any] = {}
    problems = []
    if base_url := environ.get("RECONCILER_BASE_URL"):
        overrides["base_url"] = base_url
        if wrong := address_of_platform(base_url):
            text, _, remedy = wrong.partition("; ")
            problems.append(Problem(text, remedy, "RECONCILER_BASE_URL"))
    if api_key := environ.get("RECONCILER_API_KEY"):
        overrides["api_key"] = Secret(api_key, "env:RECONCILER_API_KEY")
    if agent_url := environ.get("RECONCILER_AGENT_URL"):
        overrides["agent"] = agent_url
        if wrong := address_of_agent(agent_url):
            text, _, remedy = wrong.partition("; ")
            problems.append(Problem(text, remedy, "RECONCILER_AGENT_URL"))
    if store := environ.get("RECONCILER_STORE"):
        overrides["store"] = store
    return overrides, problems


def _connection(form: ProjectForm, overrides: Mapping[str, Any]) -> tuple[str | None, Secret | None]:
    base_url, api_key = (overrides.get(name, getattr(form.platform, name)) for name in ("base_url", "api_key"))
    base_url = base_url or PROFILES[form.platform.profile].base_url
    # What could not be resolved is a Template here; its problem is among those that are unmet.
    return (
        base_url.rstrip("/") if isinstance(base_url, str) else None,
        Secret(api_key.reveal().rstrip("\r\n"), api_key.source)
        if isinstance(api_key, Secret) and not isinstance(api_key, Sealed)
        else None,
    )


def _key_file(form: ProjectForm) -> set[str]:
    """The file that the key is read from: the next key may go there."""
    _, written = _connection(form, {})
    return {written.source.removeprefix("file:")} if written else set()


def _flaw(api_key: Secret) -> Problem | None:
    """Why no header could carry the key, without a character of it."""
    key = api_key.reveal()
    if is_key(key):
        return None
    word, _, source = api_key.source.partition(":")
    what = next((what for flaw, what in _FLAWS.items() if re.search(flaw, key)), "a control character")
    text = f"holds a character that no key has ({what})" if key else "is blank"
    named = source if word in ("env", "file") else "the key"
    return Problem(f"{named} {text}", "set it to the key alone", "platform.api_key")


_FLAWS: Final = {
    r"[\r\n]": "a line break",
    r"[ \t]": "a blank",
    r"[^\x00-\x7f]": "one beyond ASCII",
}


def is_key(text: str) -> bool:
    """Whether a header can carry it: printable ASCII without the blank."""
    return re.fullmatch(r"[!-~]+", text) is not None


def _lacking(places: Places, base_url: str | None, api_key: Secret | None) -> list[Problem]:
    where = places.nearest(("platform",))
    lacking = []
    if base_url is None:
        remedy = "add base_url under platform:, or set RECONCILER_BASE_URL"
        lacking.append(Problem("the platform's address is not known", remedy, "platform.base_url", where))
    if api_key is None:
        remedy = "add api_key: {from_env: NAME} under platform:, or set RECONCILER_API_KEY"
        lacking.append(Problem("there is no API key", remedy, "platform.api_key", where))
    return lacking


def _bad_paths(name: str, paths: list[str]) -> list[Finding]:
    findings = []
    for index, path in enumerate(paths):
        try:
            if files.inside(path) == ".":
                raise files.Unreadable(f"{path} is the whole project, {FILE} with it", "name a file or folder below it")
        except files.Unreadable as wrong:
            findings.append(Finding((name, index), str(wrong), wrong.remedy))
    return findings
