"""Plan files: written, signed where there is a key, and read again with their secrets from where they came from.

Where tokens go is read from the manifests and not from the file. Whether the platform is still as the file saw it is
for `stale` to say, and what a file may say at all for `plan_rules`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from reconciler import kinds
from reconciler.cli.terminal import atomic_write, exit_codes, output
from reconciler.engine.schedule import Schedule
from reconciler.model.address import Address
from reconciler.model.kind import Field, Home, Sensitive, Shape
from reconciler.model.manifest import Ensure
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Secret, Value, secrets_in
from reconciler.project import plan_rules
from reconciler.project.documents.resolve import Declared, Resolver, Variable
from reconciler.project.manifests import load as manifests
from reconciler.project.manifests.load import Loaded
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import check_names
from reconciler.rendering.wire import plan_json

KEY = "RECONCILER_PLAN_KEY"
_SHORTEST = 16  # characters: what is shorter can be guessed from one signed file
LIVE = "live"  # the source of a secret that was read from the platform, and is to stay as it is there


class _Text(BaseModel):
    text: Annotated[str, Sensitive]


@dataclass(frozen=True)
class PlanFile:
    """A plan as it was reviewed, and what became of its surroundings since.

    plan      its secrets are there only after `with_secrets`
    loaded    the manifests as they are now; None if they cannot be read, and `why`
    moved     objects whose secrets are others by now, and what to say of each
    """

    file: Path
    plan: Plan
    loaded: Loaded | None
    text: str = field(repr=False)
    why: tuple[Problem, ...] = ()
    moved: Mapping[Address, list[str]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What tells this plan from any other, another one of the same content included."""
        return plan_json.digest(self.text)

    @property
    def is_signed(self) -> bool:
        return plan_json.is_signed(self.text)

    @property
    def is_of_these_manifests(self) -> bool:
        return self.loaded is not None and self.loaded.manifest.digest == self.plan.manifest_digest

    @property
    def note(self) -> str:
        """What the user should know of the manifests; empty if they are those of the plan."""
        if self.is_of_these_manifests:
            return ""
        what = "cannot be read" if self.loaded is None else "or their variables changed after this plan was made"
        return f"note: the manifests {what}; the plan is carried out as it was reviewed, without what they say now"


def key() -> bytes | None:
    """What plan files are signed with, if anything."""
    text = os.environ.get(KEY)
    if not text:
        return None
    if len(text) < _SHORTEST:
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: {KEY} is too short to keep anybody out; give {_SHORTEST} characters"
        )
    return text.encode(errors="surrogateescape")


def unsigned(file: Path) -> str:
    """What the user should know of a file without a signature."""
    return f"note: {file} is not signed: nothing shows that it is the plan that was reviewed; set {KEY} to sign plans"


def check_age(file: PlanFile, max_age: int | None, now: float) -> None:
    """Stop if the file is older than `max_age` seconds. Without one, age does not matter: the platform is asked."""
    if max_age is None:
        return
    if not file.plan.created:
        raise exit_codes.Stop(exit_codes.STALE, f"error: {file.file} does not say when it was created; plan again")
    age = now - file.plan.created
    if age > max_age:
        text = f"{file.file} was created {age:.0f} seconds ago, and --max-age allows {max_age}"
        raise exit_codes.Stop(exit_codes.STALE, f"error: {text}; plan again, or give a longer --max-age")


def write(file: Path, plan: Plan) -> None:
    """The whole file or none of it, readable by its owner: a plan says a lot about an account."""
    atomic_write.write(file, plan_json.write(plan, key()))


def shown(file: Path) -> tuple[Plan, str]:
    """A plan to look at, with its secrets unread, and its text."""
    return shown_text(output.read(file), str(file))


def shown_text(text: str, name: str) -> tuple[Plan, str]:
    """The same of a file's text."""
    signed_with = key()
    plan = _unread(text, name, signed_with)
    if signed_with is None and plan_json.is_signed(text):
        output.say(f"note: the signature was not checked: {KEY} is not set")
    return plan, text


def _unread(text: str, name: str, signed_with: bytes | None) -> Plan:
    """The plan with its secrets unread. Raises Rejected, also where the engine could not make sense of it."""
    try:
        plan = plan_json.read(text, lambda source, _digest: Secret("", source), signed_with)
        _check(plan)
    except Rejected as rejected:
        raise Rejected([replace(problem, subject=name) for problem in rejected.problems]) from None
    return plan


def _check(plan: Plan) -> None:
    changed, called = (each.address for each in plan.changes), (each.address for each in plan.calls)
    for address in (*changed, *called, *plan.seen):
        kind = kinds.find(address.kind)
        if kind is None or kind.home is Home.FILE:
            raise plan_json.refused(f"it names {address}, and there is no such kind")
    try:
        Schedule(plan.calls)
    except ValueError as error:
        raise plan_json.refused(str(error)) from None


def read(file: Path, config: Config, account: str, variables: Mapping[str, Variable]) -> PlanFile:
    """The plan of a file for this stack and account. Stop or Rejected if it is for another, or was changed."""
    text = output.read(file)
    signed_with = key()
    plan = _unread(text, str(file), signed_with)
    if signed_with is None and plan_json.is_signed(text):
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {file} is signed, and nothing says with what; set {KEY}")
    if plan.taken:
        raise exit_codes.Stop(
            exit_codes.ERROR, f"error: {file} was made from a snapshot, not from the account; plan again there"
        )
    if plan.stack != config.stack:
        raise exit_codes.Stop(
            exit_codes.ERROR, f"error: {file} is a plan for the stack {plan.stack}, not {config.stack}"
        )
    if plan.account != account:
        raise exit_codes.Stop(
            exit_codes.ERROR, f"error: {file} is a plan for the account {plan.account}, not {account}"
        )
    check_names(config.settings, variables)
    try:
        return PlanFile(file, plan, manifests.load(config, os.environ, variables), text)
    except Rejected as rejected:
        return PlanFile(file, plan, None, text, tuple(each for each in rejected.problems if each.is_error))


def with_secrets(file: PlanFile, config: Config, forms: Mapping[Address, Value]) -> PlanFile:
    """The plan with its secrets as they are now. `forms` is what the platform holds, in canonical form."""
    sources = _Sources(config, file, [each for form in forms.values() for each in secrets_in(form)])
    plan = plan_json.read(file.text, sources.restore)
    moved: dict[Address, list[str]] = {}
    for call in plan.calls:
        recorded = (call.owner.text, call.owner.applied) if call.owner else ()
        for each in secrets_in((call.body, *recorded)):
            line = f"{call.address}: {sources.wrong.get(id(each), '')}"
            if id(each) in sources.wrong and line not in moved.setdefault(call.address, []):
                moved[call.address].append(line)
    return replace(file, plan=plan, moved=moved)


def check_rules(file: PlanFile, plan: Plan) -> None:
    """Raises Rejected if the plan of a file breaks a rule of manifests, or delivers a token elsewhere than they say."""
    declared = file.loaded.manifest.declarations.items() if file.loaded is not None else ()
    absent = {address for address, each in declared if each.ensure is Ensure.ABSENT}
    problems = [*plan_rules.problems_of(plan, absent), *_deliveries(file, plan)]
    if problems:
        raise Rejected([replace(each, subject=f"{file.file}: {each.subject}") for each in problems])


def _deliveries(file: PlanFile, plan: Plan) -> Iterator[Problem]:
    """Tokens go where the manifests at hand send them: a file that says otherwise is no plan of this project."""
    for call in plan.calls:
        if not call.deliver:
            continue
        declaration = file.loaded.manifest.declarations.get(call.address) if file.loaded is not None else None
        told = {name: replace(each, position=None) for name, each in call.deliver.items()}
        declared = declaration.deliver.items() if declaration is not None else ()
        if told == {name: replace(each, position=None) for name, each in declared}:
            continue
        if file.loaded is None:
            text, remedy = "issues a token, and the manifests that say where it goes cannot be read", "correct these"
        elif declaration is None:
            text, remedy = "issues a token, and the manifests do not declare it", "plan again"
        else:
            text, remedy = "delivers its token elsewhere than the manifests say", "plan again"
        yield Problem(text, remedy, str(call.address), code="plan-delivery-differs")


class _Sources:
    """Reads secrets again; `wrong` says why one is not what it was, by the identity of what stands in its place."""

    def __init__(self, config: Config, file: PlanFile, live: list[Secret]) -> None:
        self._config = config
        self._stack = file.plan.stack
        declared = file.loaded.manifest.declarations.values() if file.loaded else ()
        named = {call.address.kind for call in file.plan.calls}
        self._canonical = _canonical(each for name in sorted(named) for each in kinds.get(name).fields)
        self._known: dict[str, list[Secret]] = {}  # by source
        for each in (*live, *(each for declaration in declared for each in secrets_in(declaration.spec))):
            self._known.setdefault(each.source, []).append(each)
        self._by_digest: dict[str, Mapping[str, str]] = {}  # of each source that was asked for: digest → text
        self._kept: list[Secret] = []  # alive, so that no other secret gets the same identity
        self.wrong: dict[int, str] = {}

    def restore(self, source: str, digest: str) -> Secret:
        if source not in self._by_digest:
            self._by_digest[source] = self._read(source)
        texts = self._by_digest[source]
        if digest in texts:
            return Secret(texts[digest], source)
        missing = Secret("", source)
        self._kept.append(missing)
        shown = "on the platform" if source == LIVE else f"from {source}"
        state = "is not the one the plan was made with" if texts else "cannot be read"
        self.wrong[id(missing)] = f"the secret {shown} {state}"
        return missing

    def _read(self, source: str) -> Mapping[str, str]:
        """Every text that a source holds now, in each spelling, by its digest."""
        found = [*self._again(source), *self._known.get(source, ())]
        spelt = dict.fromkeys(text for each in found for text in self._spellings(each.reveal()))
        return {plan_json.secret_digest(Secret(text, source), self._stack): text for text in spelt}

    def _spellings(self, text: str) -> Iterator[str]:
        """As it is sent, and as records know it: in the canonical form of its field."""
        yield text
        for canonical in self._canonical:
            yield str(canonical(text))

    def _again(self, source: str) -> Iterator[Secret]:
        """From a variable or a file, without any manifest."""
        word, _, operand = source.partition(":")
        if word not in ("env", "file"):
            return
        resolver = Resolver(self._config.root, os.environ, {}, Declared())
        value = resolver.resolve(_Text, source, {"text": {f"from_{word}": operand}})["text"]
        if isinstance(value, Secret):
            yield value


def _canonical(fields: Iterable[Field]) -> set[Callable[[Any], Any]]:
    found: set[Callable[[Any], Any]] = set()
    for each in fields:
        if each.canonical is not None and each.shape in (Shape.TEXT, Shape.ANY):
            found.add(each.canonical)
        found |= _canonical((*each.fields, *((each.item,) if each.item else ())))
    return found
