"""A manifest document around its spec: which kind, which name, and what is special about it.

Checks the envelope alone. The spec inside is validated, and references are followed, by `manifests.load`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import Doc

from reconciler import kinds
from reconciler.kinds.types.fields import checked
from reconciler.model.address import NAME, Address
from reconciler.model.kind import Finding, Home, Kind, fields_of
from reconciler.model.manifest import Delivery, Ensure, Lifecycle, Rotation, UnmanagedChildren
from reconciler.model.problem import Position
from reconciler.project import files
from reconciler.project.documents import phrases, resolve, validation
from reconciler.project.yaml.reader import Document

_DURATION = re.compile(r"[0-9]{1,6}[smhdw]")
_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_OBJECT = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")
_NAMESPACE = re.compile(_LABEL)
_DATUM = re.compile(r"(?!\.\Z|\.\.)[A-Za-z0-9._-]{1,253}")
_A_DURATION = "write a duration, as in 90d or 24h"
_WRITTEN = {  # what is meant, where something of another sort was found
    "lifecycle": "write a map, as in {protect: true}",
    "deliver": "write a map, as in {token: {to_file: secrets/token}}",
    "rotate": "write a map, as in {after: 90d}",
    "after": _A_DURATION,
    "overlap": _A_DURATION,
    "to_file": "write a path, as in secrets/token",
    "to_dotenv": "write a map, as in {file: secrets/.env, name: TOKEN}",
    "to_kubernetes_secret": "write a map, as in {file: secrets/token.yaml, name: token}",
    "to_command": "write a map, as in {run: [program, argument]}",
}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def _duration(text: str) -> str | None:
    return None if _DURATION.fullmatch(text) else f"{text!r} is not a duration; {_A_DURATION}"


def _entry(text: str) -> str | None:
    return None if _ENTRY.fullmatch(text) else f"{text!r} cannot name an entry; use letters, digits and '_'"


def _variable(text: str) -> str | None:
    if not _ENTRY.fullmatch(text):
        return f"{text!r} cannot name an environment variable; use letters, digits and '_'"
    if text.startswith("RECONCILER_"):
        return f"{text} is a setting of reconciler, which no command is given; remove it"
    return None


def _object(text: str) -> str | None:
    wrong = f"{text!r} cannot name a Secret; use lower-case letters, digits, '-' and '.'"
    return None if _OBJECT.fullmatch(text) else wrong


def _namespace(text: str) -> str | None:
    wrong = f"{text!r} cannot name a namespace; use up to 63 lower-case letters, digits and '-'"
    return None if _NAMESPACE.fullmatch(text) else wrong


def _datum(text: str) -> str | None:
    wrong = f"{text!r} cannot be a key of a Secret; use letters, digits, '-', '_' and '.'"
    return None if _DATUM.fullmatch(text) else wrong


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, defer_build=True)


class LifecycleForm(_Form):
    """Exceptions to the rule."""

    protect: Annotated[bool, Doc("Never delete it, even when it is gone from the manifests.")] = False
    ignore: Annotated[list[str], Doc("Fields that are left to others, by dotted path.")] = []
    adopt: Annotated[bool, Doc("Take over an object that exists already and belongs to nobody.")] = False
    replace: Annotated[bool, Doc("False: a change that needs another object is a problem instead.")] = True
    unmanaged_children: Annotated[
        Literal["report", "delete", "ignore"],
        Doc("What happens to children that exist on the platform and that no manifest declares."),
    ] = "report"


_NO_EXCEPTIONS = LifecycleForm()
_NOTHING_SPECIAL = Lifecycle()
_NOWHERE: Mapping[str, Delivery] = {}


class DotenvForm(_Form):
    """An entry of a dotenv file; its other lines stay as they are."""

    file: Annotated[str, Doc("The file, below the project's root.")]
    name: Annotated[str, checked(_entry), Doc("The entry's name.")]


class KubernetesSecretForm(_Form):
    """A file with a Secret manifest, to be applied by whoever may."""

    file: Annotated[str, Doc("The file, below the project's root.")]
    name: Annotated[str, checked(_object), Doc("The Secret's name.")]
    key: Annotated[str, checked(_datum), Doc("The key of the secret within it.")] = "token"
    namespace: Annotated[Annotated[str, checked(_namespace)] | None, Doc("The Secret's namespace.")] = None


class CommandForm(_Form):
    """A command that takes the secret from its standard input.

    It is run in the project's root, without a shell, and sees PATH, HOME, the locale and what `env` lists of the
    environment.
    """

    run: Annotated[list[str], Field(min_length=1), Doc("The command and its arguments.")]
    check: Annotated[list[str], Doc("A command whose success says that `run` would work.")] = []
    env: Annotated[
        list[Annotated[str, checked(_variable)]],
        Doc("Names of environment variables that both commands get, besides PATH, HOME, LANG, LANGUAGE and LC_*."),
    ] = []


class DeliveryForm(_Form):
    """Where a one-time secret goes."""

    to_file: Annotated[str | None, Doc("A file that holds the secret and nothing else.")] = None
    to_dotenv: Annotated[DotenvForm | None, Doc("An entry of a dotenv file.")] = None
    to_kubernetes_secret: Annotated[KubernetesSecretForm | None, Doc("A Kubernetes Secret manifest.")] = None
    to_command: Annotated[CommandForm | None, Doc("A command's standard input.")] = None


class RotationForm(_Form):
    """When it is renewed: created anew, delivered, and the old one deleted after the overlap."""

    after: Annotated[str, checked(_duration), Doc("Its age at renewal, such as 90d.")]
    overlap: Annotated[str, checked(_duration), Doc("How long both live, such as 24h.")] = "0s"


class ManifestForm(_Form):
    """One declared resource."""

    kind: Annotated[str, Doc("What it is.")]
    name: Annotated[str, Doc("Its name, unique among its kind in the stack.")]
    id: Annotated[str | None, Doc("The id of an existing object, to say which one is meant.")] = None
    ensure: Annotated[
        Literal["present", "absent", "forgotten"],
        Doc("present: it must exist. absent: it must not. forgotten: it stays, and is no longer ours."),
    ] = "present"
    moved: Annotated[
        Any,
        Doc("Its earlier address, as in Kind/oldname, or a list of them: the object stays, and takes the new name."),
    ] = None
    # By factory: of a default that is a value pydantic makes a deep copy for each resource.
    lifecycle: LifecycleForm = Field(default_factory=lambda: _NO_EXCEPTIONS)
    deliver: Annotated[dict[str, DeliveryForm], Doc("Where one-time secrets go.")] = Field(default_factory=dict)
    rotate: Annotated[RotationForm | None, Doc("When a one-time secret is renewed.")] = None
    spec: Annotated[dict[str, Any] | None, Doc("The resource itself, as the platform takes it.")] = None


@dataclass(frozen=True, slots=True)
class Special:
    """What an envelope says besides kind and name. Of a form no more is kept: there are thousands of them."""

    id: str | None = None
    ensure: Ensure = Ensure.PRESENT
    lifecycle: Lifecycle = _NOTHING_SPECIAL
    rotate: Rotation | None = None


@dataclass(slots=True)
class Draft:
    """A document on its way to a declaration. Without a form it is only good for being referred to."""

    file: str
    document: Document
    kind: Kind | None = None
    address: Address | None = None
    form: Special | None = None
    moved: tuple[Address, ...] = ()
    deliver: Mapping[str, Delivery] = field(default_factory=lambda: _NOWHERE)

    @property
    def subject(self) -> str:
        return "" if self.address is None else str(self.address)

    @property
    def ensure(self) -> Ensure:
        return self.form.ensure if self.form else Ensure.PRESENT

    @property
    def spec(self) -> dict[str, Any]:
        written = self.document.value.get("spec")
        return written if isinstance(written, dict) else {}


def draft(file: str, document: Document) -> tuple[Draft, list[Finding]]:
    """The document's envelope and what is wrong with it; paths are those of the document."""
    made = Draft(file, document)
    value = document.value
    if not isinstance(value, dict):
        return made, [Finding((), f"expected a map, found {phrases.found(value)}", "write kind, name and spec")]
    findings = _name(made, value)
    if not document.sound:
        return made, []
    if made.address is not None and made.kind is not None and _is_plain(value):
        made.form = _PLAIN
        return made, findings
    form, wrong = _form(value, made.kind)
    told = {each.path for each in findings}
    findings += [each for each in wrong if each.path not in told]
    if made.address is not None and made.kind is not None and form is not None:
        made.form = _special(form)
        findings += _inside(made, form, made.kind)
    return made, findings


def _is_plain(value: dict[str, Any]) -> bool:
    """Whether it says nothing but kind, name and spec, as most do: then there is no more to check in it."""
    return value.keys() <= _ORDINARY and value.get("spec").__class__ is dict


def _form(value: dict[str, Any], kind: Kind | None) -> tuple[ManifestForm | None, list[Finding]]:
    """The envelope without what is wrong in it, so that the spec is looked at all the same."""
    try:
        return ManifestForm.model_validate(value), []
    except ValidationError as error:
        findings = [_worded(each, kind) for each in validation.problems_of(error, value, fields_of(ManifestForm))]
    wrong = {each.path[0] for each in findings if each.path}
    try:
        return ManifestForm.model_validate({key: item for key, item in value.items() if key not in wrong}), findings
    except ValidationError:
        return None, findings


def _worded(finding: Finding, kind: Kind | None) -> Finding:
    """With what to write instead, where a value is of the wrong sort: that it is a map says little."""
    if finding.text == validation.UNKNOWN_FIELD and len(finding.path) == 1:
        remedy = misplaced(str(finding.path[0]), kind)
        return replace(finding, remedy=remedy) if remedy else finding
    if not finding.text.startswith("expected ") or not finding.path:
        return finding
    match finding.path:
        case ("deliver", str(output)):
            return replace(finding, remedy=f"write a map, as in {{to_file: secrets/{output}}}")
        case (*_, str(word)) if word in _WRITTEN:
            return replace(finding, remedy=_WRITTEN[word])
    return finding


def misplaced(name: str, kind: Kind | None) -> str:
    """What to do about a key of a manifest that belongs further inside; empty if it belongs nowhere."""
    for part, form in _PARTS.items():
        if name in form.model_fields:
            return f"write it under {part}, as in {part}: {{{name}: …}}"
    return f"write it under spec, as in spec: {{{name}: …}}" if kind is not None and name in kind.by_name else ""


_PARTS: Mapping[str, type[BaseModel]] = {"lifecycle": LifecycleForm, "rotate": RotationForm}


def _name(made: Draft, value: dict[str, Any]) -> list[Finding]:
    """Finds out the kind and the address."""
    kind_name, name = value.get("kind"), value.get("name")
    if not isinstance(kind_name, str):
        return []
    made.kind = kind = kinds.find(kind_name) if kind_name.isidentifier() else None
    if kind is not None and isinstance(name, str) and NAME.fullmatch(name):
        made.address = Address(kind.name, name)
        return []
    findings = []
    if kind is None:
        findings.append(Finding(("kind",), f"unknown kind {kind_name!r}", resolve.kind_meant(kind_name)))
    if isinstance(name, str):
        try:
            made.address = Address.parse(f"{kind_name}/{name}")
        except ValueError as error:
            if kind is not None:
                text, _, rule = str(error).partition(": ")
                findings.append(Finding(("name",), text, f"use {rule}"))
    return findings


def _inside(made: Draft, form: ManifestForm, kind: Kind) -> Iterator[Finding]:
    if kind.home is Home.FILE:
        for name in sorted(form.model_fields_set - {"kind", "name", "spec"}):
            yield Finding((name,), f"{kind.name} is rendered to a file, and is no object to have this", "remove it")
    if form.id is not None and not (form.id.startswith(kind.id_prefix) and form.id != kind.id_prefix):
        yield Finding(("id",), f"{form.id!r} is not an id of {kind.name}", f"these begin with {kind.id_prefix}")
    for index, name in enumerate(form.lifecycle.ignore):
        if name.partition(".")[0] not in kind.by_name:
            remedy = phrases.meant(name, kind.by_name) or f"use {phrases.listed(kind.by_name)}"
            yield Finding(("lifecycle", "ignore", index), f"{kind.name} has no field {name!r}", remedy)
    if form.lifecycle.unmanaged_children != "report" and not kinds.children(kind):
        path = ("lifecycle", "unmanaged_children")
        yield Finding(path, f"{kind.name} has no children", f"use it for {phrases.listed(kinds.with_children())}")
    yield from _moved(made, form)
    yield from _deliveries(made, form, kind)
    if form.rotate is not None and kind.one_time is None:
        yield Finding(("rotate",), f"{kind.name} has no one-time secret to renew", "remove the line")


def _moved(made: Draft, form: ManifestForm) -> Iterator[Finding]:
    single = not isinstance(form.moved, list)
    moved: list[Address] = []
    for index, text in enumerate([form.moved] if single else form.moved):
        path = ("moved",) if single else ("moved", index)
        if text is None and single:
            return
        try:
            before = Address.parse(text if isinstance(text, str) else "")
        except ValueError:
            yield Finding(path, "expected an address, or a list of them", "write Kind/oldname")
            continue
        if made.address is not None and before.kind != made.address.kind:
            yield Finding(path, f"{before} is of another kind", f"name an earlier {made.address.kind}")
        elif before == made.address:
            yield Finding(path, "is its own address", "name the earlier one, or remove the line")
        else:
            moved.append(before)
    made.moved = tuple(moved)


def _deliveries(made: Draft, form: ManifestForm, kind: Kind) -> Iterator[Finding]:
    for output, delivery in form.deliver.items():
        if output != kind.one_time:
            what = f"its one-time secret is {kind.one_time}" if kind.one_time else "it has no one-time secret"
            yield Finding(("deliver", output), f"{kind.name} does not deliver {output!r}", what)
        try:
            where = made.document.places.nearest(("deliver", output))
            made.deliver = {**made.deliver, output: _delivery(delivery, where)}
        except files.Unreadable as wrong:
            ways = [way for way, value in delivery if value is not None]
            yield Finding(("deliver", output, *ways[:1]), str(wrong), wrong.remedy)


def _delivery(form: DeliveryForm, where: Position) -> Delivery:
    ways = {way: value for way, value in form if value is not None}
    if len(ways) != 1:
        raise files.Unreadable("expected exactly one sink", f"write one of {phrases.listed(DeliveryForm.model_fields)}")
    way, written = next(iter(ways.items()))
    if "${{" in str(written):
        raise files.Unreadable("${{ … }} is not substituted here", "write it out; environments/NAME.yaml may differ")
    match written:
        case CommandForm():
            settings = written.model_dump(exclude_defaults=True)
            return Delivery(way, written.run[0], where, {"run": written.run, "check": written.check, **settings})
        case DotenvForm() | KubernetesSecretForm():
            settings = written.model_dump(exclude={"file"}, exclude_none=True)
            return Delivery(way, files.inside(written.file), where, settings)
    return Delivery(way, files.inside(str(written)), where)


_PLAIN = Special()
_ORDINARY = {"kind", "name", "spec"}


def _special(form: ManifestForm) -> Special:
    special = Special(form.id, Ensure(form.ensure), _lifecycle(form), _rotation(form))
    return _PLAIN if special == _PLAIN else special


def _rotation(form: ManifestForm) -> Rotation | None:
    return None if form.rotate is None else Rotation(_seconds(form.rotate.after), _seconds(form.rotate.overlap))


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * _SECONDS[duration[-1]]


def _lifecycle(form: ManifestForm) -> Lifecycle:
    written = form.lifecycle
    if written is _NO_EXCEPTIONS:
        return _NOTHING_SPECIAL
    children = UnmanagedChildren(written.unmanaged_children)
    return Lifecycle(written.protect, tuple(written.ignore), written.adopt, written.replace, children)
