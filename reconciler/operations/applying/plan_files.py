"""Writes and reads plan files: signature, secrets (read again from their sources), and checks against the manifests.

Delivery targets are taken from the manifests, not from the file. `staleness` compares a plan with the platform, and
`plan_rules` checks what a file may contain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.schedule import Schedule
from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize
from reconciler.model.change import Reason
from reconciler.model.fields.annotations import Sensitive
from reconciler.model.fields.field import Field, Shape
from reconciler.model.fields.form import Form
from reconciler.model.kind import Home
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Secret, UnreadSecret, Value, secrets_in
from reconciler.operations import unread_secrets
from reconciler.operations.applying import plan_rules
from reconciler.operations.errors import UnusablePlan, WrongAccount
from reconciler.operations.opening.plan_key import PLAN_KEY, find_plan_key
from reconciler.project import atomic_write, named_files
from reconciler.project.documents.references import Declared
from reconciler.project.documents.resolve import Resolver, Variable
from reconciler.project.files import Unreadable
from reconciler.project.manifests.load import Loaded, load_manifests
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import check_names
from reconciler.rendering.wire import plan_json
from reconciler.rendering.wire.plan_json import WrittenPlan

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject
    from reconciler.operations.results import PlanResult

LIVE = "live"  # the source of a secret that was read from the platform and stays unchanged


class _Text(Form):
    text: Annotated[str, Sensitive]


@dataclass(frozen=True)
class PlanFile:
    """A plan from a file, with the current manifests.

    name       the path of the file
    plan       without secrets, until `with_secrets`
    digest     the identity of this plan; differs also between two plans with the same changes
    is_signed  whether the file has a signature, checked or not
    loaded     the current manifests, without invalid ones, for which see `problems`; None if none can be read
    text       the content of the file
    problems   why manifests cannot be read
    changed    lines for the user, by address, about secrets that changed
    environ    environment variables that secrets are read from
    secrets    the number of secrets in the file; None: unknown
    texts      the secrets that the plan did not read, by source, as far as they can be read
    """

    name: str
    plan: Plan
    digest: str
    is_signed: bool
    loaded: Loaded | None
    text: str = field(repr=False)
    problems: tuple[Problem, ...] = ()
    changed: Mapping[Address, list[str]] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: int | None = None
    texts: Mapping[str, Secret] = field(default_factory=dict, repr=False)

    @property
    def is_of_these_manifests(self) -> bool:
        """Whether the files are those of the plan, and what is invalid in them was so when it was created."""
        if self.loaded is None or self.loaded.manifest.digest != self.plan.manifest_digest:
            return False
        known = {(problem.subject, problem.text) for problem in self.plan.problems}
        return all((problem.subject, problem.text) in known for problem in self.problems)

    @property
    def is_destroy(self) -> bool:
        """Whether the plan is one of `plan --destroy`, which reads no manifests."""
        return any(change.reason is Reason.DESTROYED for change in self.plan.changes)

    @property
    def note(self) -> str:
        """A note about changed or unreadable manifests; empty if they are those of the plan, or do not matter."""
        if self.is_of_these_manifests or self.is_destroy:
            return ""
        what = "cannot be read" if self.problems else "or their variables changed after this plan was created"
        return f"note: the manifests {what}; the plan is applied as it was reviewed, without these changes"


def signature_note(name: str) -> str:
    """The note about a plan file without a signature."""
    return f"note: {name} is not signed, so it may differ from the plan that was reviewed; set {PLAN_KEY} to sign plans"


def reason_too_old(planned: PlanFile, max_age: int | None, now: float) -> str:
    """Why the file is older than `max_age` seconds; empty if it is not, or if there is no limit."""
    if max_age is None:
        return ""
    if not planned.plan.created:
        return f"{planned.name} has no creation time; plan again"
    age = now - planned.plan.created
    if age <= max_age:
        return ""
    text = f"{planned.name} was created {age:.0f} seconds ago, and --max-age allows {max_age}"
    return f"{text}; plan again, or increase --max-age"


def write_plan(file: Path, plan: Plan, environ: Mapping[str, str]) -> None:
    """Writes a plan file atomically, readable by its owner only."""
    atomic_write.write(file, plan_json.write_plan(plan, find_plan_key(environ)))


def read_plan(text: str, name: str, environ: Mapping[str, str]) -> tuple[Plan, str]:
    """A plan to display, without its secrets, and a note about its signature; empty if there is none."""
    key = find_plan_key(environ)
    written, _ = _read_without_secrets(text, name, key)
    is_unchecked = key is None and written.is_signed
    return written.plan, f"note: the signature was not checked: {PLAN_KEY} is not set" if is_unchecked else ""


def from_plan_result(planned: PlanResult, project: OpenProject) -> tuple[OpenProject, PlanFile]:
    """The project of a PlanResult, and its plan as a PlanFile, to be applied in the same way.

    Raises WrongAccount if the plan is of another stack or account than `project`.
    """
    plan, source = planned.plan, planned.project
    if (plan.stack, plan.account) != (project.manifest.stack, project.account_name):
        own = f"the stack {project.manifest.stack} on {project.account_name}"
        raise WrongAccount(f"the plan is for the stack {plan.stack} on {plan.account}, not {own}")
    source = dataclasses.replace(
        source, options=replace(source.options, allow={**source.options.allow, **project.options.allow})
    )
    loaded = Loaded(source.manifest, source.warnings)
    text = plan_json.write_plan(plan)
    digest = plan_json.digest(text)
    planned_file = PlanFile("the plan", plan, digest, False, loaded, text, environ=source.runtime.environ)
    return source, planned_file


def _read_without_secrets(text: str, name: str, signed_with: bytes | None) -> tuple[WrittenPlan, int]:
    """Decodes a plan without its secrets. Returns the content and the number of secrets in the file.

    Raises Rejected if it is invalid, or the engine would reject its calls.
    """
    placeholders: list[Secret] = []

    def add_placeholder(source: str, _digest: str) -> Secret:
        placeholders.append(Secret("", source))
        return placeholders[-1]

    try:
        written = plan_json.read_file(text, add_placeholder, signed_with)
        _check(written.plan)
    except Rejected as rejected:
        raise Rejected([replace(problem, subject=name) for problem in rejected.problems]) from None
    return written, len(placeholders)


def _check(plan: Plan) -> None:
    changed, called = (change.address for change in plan.changes), (call.address for call in plan.calls)
    for address in (*changed, *called, *plan.observed):
        kind = kinds.find(address.kind)
        if kind is None or kind.home is Home.FILE:
            raise plan_json.refuse(f"it contains {address}, whose kind does not exist")
    try:
        Schedule(plan.calls)
    except ValueError as error:
        raise plan_json.refuse(str(error)) from None


def read(
    file: Path, config: Config, account: str, variables: Mapping[str, Variable], environ: Mapping[str, str]
) -> PlanFile:
    """Reads a plan file of this stack and account.

    Raises WrongAccount, UnusablePlan, or Rejected if the file is invalid or was modified.
    """
    text = read_text(file)
    key = find_plan_key(environ)
    written, secrets = _read_without_secrets(text, str(file), key)
    plan = written.plan
    if key is None and written.is_signed:
        raise UnusablePlan(f"{file} is signed, but {PLAN_KEY} is not set")
    if plan.snapshot_time:
        raise UnusablePlan(f"{file} was created from a snapshot and cannot be applied; create a plan from the account")
    if plan.stack != config.stack:
        raise WrongAccount(f"{file} is a plan for the stack {plan.stack}, not {config.stack}")
    if plan.account != account:
        raise WrongAccount(f"{file} is a plan for the account {plan.account}, not {account}")
    check_names(config.settings, variables)
    loaded: Loaded | None = None
    problems: tuple[Problem, ...] = ()
    try:
        loaded = load_manifests(config, environ, variables, partial_if_invalid=True)
        problems = loaded.warnings
    except Rejected as rejected:
        problems = tuple(rejected.problems)
    problems = tuple(problem for problem in problems if problem.is_error)
    return PlanFile(str(file), *written, loaded, text, problems, environ=environ, secrets=secrets)


def read_text(file: Path) -> str:
    """The text of a file. Raises UnusablePlan if it is too large, not a regular file or not UTF-8, or OSError."""
    try:
        return named_files.read_text(file, named_files.LARGEST_PLAN)
    except Unreadable as wrong:
        raise UnusablePlan(str(wrong), remedy=wrong.remedy) from None


def with_secrets(file: PlanFile, config: Config, forms: Mapping[Address, Value]) -> PlanFile:
    """The plan with its secrets, read again from their sources. `forms`: live fields in canonical form, by address."""
    if file.secrets == 0 and not file.plan.unread:
        return file  # decoding it again would give the same plan
    sources = _Sources(config, file, [secret for form in forms.values() for secret in secrets_in(form)])
    plan = plan_json.read_plan(file.text, sources.restore)
    texts = {source: text for source in plan.unread if (text := sources.read_raw(source)) is not None}
    plan = unread_secrets.fill_secrets(plan, texts)
    changed: dict[Address, list[str]] = {}
    for call in plan.calls:
        recorded = (call.owner.text, call.owner.applied) if call.owner else ()
        for secret in secrets_in((call.body, *recorded)):
            if isinstance(secret, UnreadSecret):
                sources.report(secret, f"from {secret.source} cannot be read")
            line = f"{call.address}: {sources.wrong.get(id(secret), '')}"
            if id(secret) in sources.wrong and line not in changed.setdefault(call.address, []):
                changed[call.address].append(line)
    return dataclasses.replace(file, plan=plan, changed=changed, texts=texts)


def check_rules(file: PlanFile, plan: Plan) -> None:
    """Raises Rejected if a plan breaks a rule of manifests, or has another delivery than the manifests declare."""
    problems = [*plan_rules.find_problems(plan), *_check_deliveries(file, plan)]
    if problems:
        raise Rejected([replace(problem, subject=f"{file.name}: {problem.subject}") for problem in problems])


def _check_deliveries(file: PlanFile, plan: Plan) -> Iterator[Problem]:
    """Yields a problem for each delivery that differs from the current manifests."""
    for call in plan.calls:
        if not call.deliver:
            continue
        manifest = file.loaded.manifest if file.loaded is not None else None
        declaration = manifest.declarations.get(call.address) if manifest is not None else None
        planned = {name: replace(delivery, position=None) for name, delivery in call.deliver.items()}
        declared = declaration.deliver.items() if declaration is not None else ()
        if planned == {name: replace(delivery, position=None) for name, delivery in declared}:
            continue
        if manifest is None or (declaration is None and manifest.may_declare(call.address)):
            text, remedy = (
                "issues a token, and the manifests, which declare its delivery, cannot be read",
                "correct them",
            )
        elif declaration is None:
            text, remedy = "issues a token that the manifests do not declare", "plan again"
        else:
            text, remedy = "delivers its token to another target than the manifests declare", "plan again"
        yield Problem(text, remedy, str(call.address), code="plan-delivery-differs")


class _Sources:
    """Reads secrets again from their sources. `wrong`: why a secret changed, by the `id()` of its placeholder."""

    def __init__(self, config: Config, file: PlanFile, live: list[Secret]) -> None:
        self._config = config
        self._environ = file.environ
        self._stack = file.plan.stack
        declared = file.loaded.manifest.declarations.values() if file.loaded else ()
        named = {call.address.kind for call in file.plan.calls}
        fields = [field for name in sorted(named) for field in kinds.get(name).fields]
        self._canonical = _canonical_functions(fields)
        self._documents = [*_find_documents(fields)]
        self._known: dict[str, list[Secret]] = {}  # by source
        for secret in (*live, *(secret for declaration in declared for secret in secrets_in(declaration.spec))):
            self._known.setdefault(secret.source, []).append(secret)
        self._by_digest: dict[str, Mapping[str, str]] = {}  # source → digest → text
        self._placeholders: list[Secret] = []  # kept alive, so that no other object gets the same `id()`
        self.wrong: dict[int, str] = {}

    def restore(self, source: str, digest: str) -> Secret:
        if not digest:
            return UnreadSecret(source)
        if source not in self._by_digest:
            self._by_digest[source] = self._read(source)
        texts = self._by_digest[source]
        if digest in texts:
            return Secret(texts[digest], source)
        missing = Secret("", source)
        origin = "on the platform" if source == LIVE else f"from {source}"
        state = "changed after the plan was created" if texts else "cannot be read"
        self.report(missing, f"{origin} {state}")
        return missing

    def report(self, placeholder: Secret, wrong: str) -> None:
        """Notes what is wrong with a secret."""
        self._placeholders.append(placeholder)
        self.wrong[id(placeholder)] = f"the secret {wrong}"

    def read_raw(self, source: str) -> Secret | None:
        """The current text of a source, as it is sent; None if it cannot be read."""
        return next(chain(self._read_source(source), self._known.get(source, ())), None)

    def _read(self, source: str) -> Mapping[str, str]:
        """The current texts of a source by digest, each also in the canonical forms of fields."""
        found = [*self._read_source(source), *self._known.get(source, ())]
        texts = dict.fromkeys(text for secret in found for text in self._spellings(secret.reveal()))
        return {plan_json.secret_digest(Secret(text, source), self._stack): text for text in texts}

    def _spellings(self, text: str) -> Iterator[str]:
        """The text as it is sent, in each canonical form, as owner records have it, and the secrets inside it."""
        yield text
        for canonical in self._canonical:
            yield str(canonical(text))
        for document in self._documents:
            yield from (secret.reveal() for secret in secrets_in(canonicalize(document, Secret(text, ""))))

    def _read_source(self, source: str) -> Iterator[Secret]:
        """Reads an environment variable or a secret file."""
        word, _, operand = source.partition(":")
        if word not in ("env", "file"):
            return
        resolver = Resolver(self._config.root, self._environ, {}, Declared())
        value = resolver.resolve(_Text, source, {"text": {f"from_{word}": operand}})["text"]
        if isinstance(value, Secret):
            yield value


def _find_documents(fields: Iterable[Field]) -> Iterator[Field]:
    for spec in fields:
        if spec.conceals is not None and spec.shape is Shape.ANY:
            yield spec
        yield from _find_documents(spec.fields)


def _canonical_functions(fields: Iterable[Field]) -> set[Callable[[Any], Any]]:
    found: set[Callable[[Any], Any]] = set()
    for spec in fields:
        if spec.canonical is not None and spec.shape in (Shape.TEXT, Shape.ANY):
            found.add(spec.canonical)
        found |= _canonical_functions((*spec.fields, *((spec.item,) if spec.item else ())))
    return found
