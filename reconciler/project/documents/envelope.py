"""Reads and validates the envelope of a manifest: kind, name, lifecycle, delivery and rotation, everything but `spec`.

The shape is in `manifest_document`. `manifests/declarations.py` resolves and validates the spec.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml.reader import Document
from reconciler.model.address import NAME, Address
from reconciler.model.dialect import to_specification_id
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.kind import Home, Kind
from reconciler.model.manifest import Delivery, Ensure, Lifecycle, Rotation
from reconciler.model.problem import Finding, Position
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.project import files
from reconciler.project.documents import durations, phrases, references, validation
from reconciler.project.documents.manifest_document import (
    NO_EXCEPTIONS,
    Command,
    DeliveryTarget,
    DotenvEntry,
    GitHubSecret,
    KubernetesSecret,
    ManifestDocument,
    RotationSettings,
    VaultEntry,
)

_EXAMPLES = {  # what to write where the value has the wrong type
    "lifecycle": "write a map, as in {protect: true}",
    "deliver": "write a map, as in {token: {to_file: secrets/token}}",
    "rotate": "write a map, as in {after: 90d}",
    "after": durations.EXAMPLE,
    "overlap": durations.EXAMPLE,
    "to_file": "write a path, as in secrets/token",
    "to_dotenv": "write a map, as in {file: secrets/.env, name: TOKEN}",
    "to_kubernetes_secret": "write a map, as in {file: secrets/token.yaml, name: token}",
    "to_command": "write a map, as in {run: [program, argument]}",
    "to_github_secret": "write a map, as in {repository: owner/name, name: TOKEN}",
    "to_vault": "write a map, as in {path: agents/berlin}",
}
_NO_DELIVERIES: Mapping[str, Delivery] = {}


class Envelope(Struct, frozen=True):
    """The envelope of a manifest without kind and name. Kept small: a project has thousands."""

    id: str | None = None
    ensure: Ensure = Ensure.PRESENT
    lifecycle: Lifecycle = NO_EXCEPTIONS
    rotate: Rotation | None = None


class Draft(Struct):
    """A document that will become a declaration. Without an envelope it can only be the target of references.

    listed  the kinds of children that the manifest declares inline
    """

    file: str
    document: Document
    kind: Kind | None = None
    address: Address | None = None
    envelope: Envelope | None = None
    moved: tuple[Address, ...] = ()
    deliver: Mapping[str, Delivery] = field(default_factory=lambda: _NO_DELIVERIES)
    listed: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return "" if self.address is None else str(self.address)

    @property
    def ensure(self) -> Ensure:
        return self.envelope.ensure if self.envelope else Ensure.PRESENT

    @property
    def has_sinks(self) -> bool:
        """Whether sinks of secrets are written, valid or not."""
        value = self.document.value
        return isinstance(value, dict) and bool(value.get("deliver"))

    @property
    def spec(self) -> dict[str, Any]:
        spec = self.document.value.get("spec")
        return spec if isinstance(spec, dict) else {}


def read_draft(file: str, document: Document) -> tuple[Draft, list[Finding]]:
    """Reads the envelope of a document. Returns the draft and findings with paths in the document."""
    draft = Draft(file, document)
    value = document.value
    if not isinstance(value, dict):
        return draft, [
            Finding(
                (),
                f"expected a map, found {phrases.describe_found(value)}",
                "write kind, name and spec",
                code="wrong-type",
            )
        ]
    findings = _read_name(draft, value)
    if not document.sound:
        return draft, []
    if draft.address is not None and draft.kind is not None and _is_plain(value):
        draft.envelope = _PLAIN
        return draft, findings
    form, form_findings = _validate(value, draft.kind)
    reported = {finding.path for finding in findings}
    findings += [finding for finding in form_findings if finding.path not in reported]
    if draft.address is not None and draft.kind is not None and form is not None:
        draft.envelope = _read_envelope(form)
        findings += _check_details(draft, form, draft.kind)
    return draft, findings


def _is_plain(value: dict[str, Any]) -> bool:
    """Whether a document has only kind, name and spec, like most: nothing else to validate."""
    return value.keys() <= _PLAIN_KEYS and value.get("spec").__class__ is dict


def _validate(value: dict[str, Any], kind: Kind | None) -> tuple[ManifestDocument | None, list[Finding]]:
    """Validates the envelope. Invalid keys are left out of the result, so that the spec is validated all the same."""
    form = ManifestDocument.model_try(value)
    if isinstance(form, ManifestDocument):
        return form, []
    findings = [
        _with_example(finding, kind) for finding in validation.problems_of(form, value, fields_of(ManifestDocument))
    ]
    wrong = {finding.path[0] for finding in findings if finding.path}
    rest = ManifestDocument.model_try({key: item for key, item in value.items() if key not in wrong})
    return (rest if isinstance(rest, ManifestDocument) else None), findings


def _with_example(finding: Finding, kind: Kind | None) -> Finding:
    """Replaces the remedy of a finding by a more specific one: the right place of a key, or an example value."""
    if finding.code == "unknown-field" and len(finding.path) == 1:
        name = str(finding.path[0])
        remedy = suggest_place(name, kind)
        if not remedy and kind is not None and not did_you_mean(name, ManifestDocument.model_fields):
            remedy = _list_fields(kind)
        return replace(finding, remedy=remedy) if remedy else finding
    if finding.code != "wrong-type" or not finding.path:
        return finding
    match finding.path:
        case ("deliver", str(output)):
            return replace(finding, remedy=f"write a map, as in {{to_file: secrets/{output}}}")
        case (*_, str(word)) if word in _EXAMPLES:
            return replace(finding, remedy=_EXAMPLES[word])
    return finding


def suggest_place(name: str, kind: Kind | None) -> str:
    """The remedy for a key of a manifest that belongs under another key; empty if it belongs nowhere."""
    for part, form in _PARTS.items():
        if name in form.model_fields:
            return f"write it under {part}, as in {part}: {{{name}: …}}"
    if kind is None:
        return ""
    if name in kinds.inline_children(kind.name):
        return f"write it beside spec, as a map from name to spec: {name}: {{NAME: {{…}}}}"
    if near := did_you_mean(name, kinds.inline_children(kind.name)):
        return near
    return f"write it under spec, as in spec: {{{name}: …}}" if name in kind.by_name else ""


def _list_fields(kind: Kind) -> str:
    """The remedy for an unknown key of a manifest: the fields that a manifest of this kind has."""
    if kind.home is Home.FILE:
        return f"use {phrases.join_words(kind.by_name)} in spec"
    optional = [name for name in ManifestDocument.model_fields if name not in ("kind", "name", "spec")]
    beside = [name for name in optional if kind.one_time is not None or name not in ("deliver", "rotate")]
    inside = phrases.join_words(kind.by_name)
    return f"use {phrases.join_words([*kinds.inline_children(kind.name), *beside])} beside spec, or {inside} in spec"


_PARTS: Mapping[str, type[Form]] = {"lifecycle": Lifecycle, "rotate": RotationSettings}


def _read_name(draft: Draft, value: dict[str, Any]) -> list[Finding]:
    """Sets kind and address of the draft, and returns findings about them."""
    kind_name, name = value.get("kind"), value.get("name")
    if not isinstance(kind_name, str):
        return []
    draft.kind = kind = kinds.find(kind_name) if kind_name.isidentifier() else None
    if kind is not None and isinstance(name, str) and NAME.fullmatch(name):
        draft.address = Address(kind.name, name)
        return []
    findings = []
    if kind is None:
        findings.append(references.report_unknown_kind(("kind",), kind_name))
    if isinstance(name, str):
        try:
            draft.address = Address.parse(f"{kind_name}/{name}")
        except ValueError as error:
            if kind is not None:
                text, _, rule = str(error).partition(": ")
                findings.append(Finding(("name",), text, f"use {rule}", code="invalid-name"))
    return findings


def _check_details(draft: Draft, form: ManifestDocument, kind: Kind) -> Iterator[Finding]:
    if kind.home is Home.FILE:
        for name in sorted(form.model_fields_set - {"kind", "name", "spec"}):
            yield Finding(
                (name,),
                f"{kind.name} is rendered to a file and has only kind, name and spec",
                "remove it",
                code="field-not-applicable",
            )
    if form.id is not None and not (
        to_specification_id(form.id, kind.id_prefix).startswith(kind.id_prefix) and form.id != kind.id_prefix
    ):
        yield Finding(
            ("id",),
            f"{form.id!r} is not an id of {kind.name}",
            f"its ids begin with {kind.id_prefix}",
            code="invalid-id",
        )
    for index, name in enumerate(form.lifecycle.ignore):
        if name.partition(".")[0] not in kind.by_name:
            remedy = did_you_mean(name, kind.by_name) or f"use {phrases.join_words(kind.by_name)}"
            yield Finding(
                ("lifecycle", "ignore", index),
                f"{kind.name} has no field {name!r}",
                remedy,
                code="unknown-field",
                values=with_suggestion("field", name, kind.by_name),
            )
    if form.lifecycle.unmanaged_children != "report" and not kinds.children(kind):
        path = ("lifecycle", "unmanaged_children")
        yield Finding(
            path,
            f"{kind.name} has no children",
            f"use it for {phrases.join_words(kinds.with_children())}",
            code="field-not-applicable",
        )
    yield from _read_moves(draft, form)
    yield from _read_deliveries(draft, form, kind)
    if form.rotate is not None and kind.one_time is None:
        yield Finding(
            ("rotate",),
            f"{kind.name} has no one-time secret to rotate",
            f"rotate applies to {_kinds_with_secrets()}",
            code="field-not-applicable",
        )


def _kinds_with_secrets() -> str:
    return phrases.join_words([kind.name for kind in kinds.declarable() if kind.one_time is not None])


def _read_moves(draft: Draft, form: ManifestDocument) -> Iterator[Finding]:
    single = not isinstance(form.moved, list)
    moved: list[Address] = []
    for index, text in enumerate([form.moved] if single else form.moved):
        path = ("moved",) if single else ("moved", index)
        if text is None and single:
            return
        try:
            before = Address.parse(text if isinstance(text, str) else "")
        except ValueError:
            yield Finding(
                path, "expected an address or a list of addresses", "write Kind/oldname", code="invalid-address"
            )
            continue
        if draft.address is not None and before.kind != draft.address.kind:
            yield Finding(
                path,
                f"{before} is an address of another kind",
                f"write {draft.address.kind}/oldname",
                code="invalid-move",
            )
        elif before == draft.address:
            yield Finding(
                path,
                "is the current address of this resource",
                "write a former address, or remove the line",
                code="invalid-move",
            )
        else:
            moved.append(before)
    draft.moved = tuple(moved)


def _read_deliveries(draft: Draft, form: ManifestDocument, kind: Kind) -> Iterator[Finding]:
    for output, delivery in form.deliver.items():
        if output != kind.one_time:
            what = (
                f"its one-time secret is called {kind.one_time}"
                if kind.one_time
                else f"deliver applies to {_kinds_with_secrets()}"
            )
            yield Finding(
                ("deliver", output), f"{kind.name} has no one-time secret {output!r}", what, code="unknown-output"
            )
        try:
            where = draft.document.places.nearest(("deliver", output))
            draft.deliver = {**draft.deliver, output: _read_delivery(delivery, where)}
        except files.Unreadable as wrong:
            ways = [way for way, value in delivery if value is not None]
            yield Finding(("deliver", output, *ways[:1]), str(wrong), wrong.remedy, code=wrong.code)


def _read_delivery(form: DeliveryTarget, where: Position) -> Delivery:
    ways = {way: value for way, value in form if value is not None}
    if len(ways) != 1:
        raise files.Unreadable(
            "expected exactly one sink",
            f"write one of {phrases.join_words(DeliveryTarget.model_fields)}",
            code="conflicting-fields",
        )
    way, target = next(iter(ways.items()))
    if "${{" in str(target):
        raise files.Unreadable(
            "${{ … }} is not substituted here",
            "use a variable of the project, ${{ var.NAME }}, or write the value",
            code="invalid-expression",
        )
    match target:
        case Command():
            settings = target.model_dump(exclude_defaults=True)
            return Delivery(way, target.run[0], where, {"run": target.run, "check": target.check, **settings})
        case GitHubSecret():
            settings = target.model_dump(exclude={"repository"}, exclude_none=True)
            return Delivery(way, target.repository, where, settings)
        case VaultEntry():
            _check_vault_mount(target)
            return Delivery(way, f"{target.mount}/{target.path}", where, target.model_dump())
        case DotenvEntry() | KubernetesSecret():
            settings = target.model_dump(exclude={"file"}, exclude_none=True)
            return Delivery(way, files.path_inside(target.file), where, settings)
    return Delivery(way, files.path_inside(str(target)), where)


def _check_vault_mount(entry: VaultEntry) -> None:
    """Refuses the path of the API or of the mount, where a path within the mount belongs."""
    for prefix in (f"{entry.mount}/data/", f"{entry.mount}/"):
        if entry.path.startswith(prefix):
            raise files.Unreadable(
                f"the path {entry.path} begins with the mount {entry.mount}",
                f"write the path within the mount, as in `path: {entry.path.removeprefix(prefix)}`",
                code="invalid-value",
            )


_PLAIN = Envelope()
_PLAIN_KEYS = {"kind", "name", "spec"}


def _read_envelope(form: ManifestDocument) -> Envelope:
    envelope = Envelope(form.id, Ensure(form.ensure), form.lifecycle, _read_rotation(form))
    return _PLAIN if envelope == _PLAIN else envelope


def _read_rotation(form: ManifestDocument) -> Rotation | None:
    return (
        None
        if form.rotate is None
        else Rotation(durations.to_seconds(form.rotate.after), durations.to_seconds(form.rotate.overlap))
    )
