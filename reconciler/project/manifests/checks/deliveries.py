"""Finds one-time secrets without a sink, deliveries to the same target, and deliveries to reserved places."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from reconciler.model.address import Address
from reconciler.model.manifest import FILE_WAYS, Declaration, Delivery, Ensure
from reconciler.model.problem import Problem, Severity
from reconciler.project.manifests.checks.by_kind import ByKind, group_by_kind
from reconciler.project.secrets.reserved_places import Reserved, fold


def find_undelivered_secrets(by_kind: ByKind, with_sinks: Collection[Address]) -> Iterator[Problem]:
    """Warns of one-time secrets without a sink. An object that is named by `id` exists already and needs none.

    `with_sinks`: resources with anything below `deliver`. An invalid sink has an error of its own.
    """
    for kind, declarations in by_kind.items():
        secret = kind.one_time
        for declaration in declarations if secret is not None else ():
            if declaration.address in with_sinks or declaration.ensure is not Ensure.PRESENT or declaration.id:
                continue
            remedy = f"add `deliver: {{{secret}: {{to_file: secrets/{declaration.address.name}}}}}`"
            text = f"its {secret} has no sink, so that the object cannot be created: it is shown only once"
            yield Problem(
                text,
                remedy,
                str(declaration.address),
                declaration.position,
                Severity.WARNING,
                code="one-time-secret-undelivered",
            )


def find_deliveries_to_runner(declarations: Iterable[Declaration]) -> Iterator[Problem]:
    """Warns of deliveries to files, for a project that is applied on a CI runner."""
    for entry in _list_deliveries(group_by_kind(declarations)):
        if entry.delivery.way in FILE_WAYS:
            yield entry.problem(
                f"delivered to {entry.delivery.label} on a CI runner, which deletes its files after the job",
                "deliver it with to_github_secret, to_vault or to_command; ignore this if a later step keeps the file",
                "delivered-to-runner",
                Severity.WARNING,
            )


def find_conflicting_deliveries(
    by_kind: ByKind, place_of: Callable[[str], str], own_places: Callable[[], Mapping[str, str]]
) -> Iterator[Problem]:
    """Reports deliveries that would overwrite each other or a reserved place.

    `place_of` returns the real path of a target, `own_places` the project's own files. Neither is called if nothing is
    delivered.
    """
    delivered = list(_list_deliveries(by_kind))
    if not delivered:
        return
    reserved = Reserved(place_of("."), own_places())
    by_file: dict[str, _DeclaredDelivery] = {}
    by_folder: dict[str, _DeclaredDelivery] = {}
    by_target: dict[Hashable, _DeclaredDelivery] = {}
    for entry in delivered:
        delivery = entry.delivery
        if delivery.way in FILE_WAYS:
            place = place_of(delivery.target)
            if (use := reserved.use(place)) is not None:
                remedy = f"use another file, as in secrets/{entry.declaration.address.name}"
                yield entry.problem(
                    f"delivered to {delivery.target}, which is reserved: {use}", remedy, "reserved-delivery-target"
                )
                continue
            if (crossing := _check_file_paths(entry, fold(place), by_file, by_folder)) is not None:
                yield crossing
                continue
        key, where = _target(delivery, place_of)
        other = by_target.setdefault(key, entry)
        if other is not entry:
            yield _report_shared_target(entry, other, where)


def find_overlapping_delivery(
    place: str, declarations: Iterable[Declaration], place_of: Callable[[str], str]
) -> str | None:
    """The delivery to the file `place` (a real path), to a file below it or to a folder above it, in words."""
    wanted = PurePosixPath(fold(place))
    for entry in _list_deliveries(group_by_kind(declarations)):
        if entry.delivery.way in FILE_WAYS:
            target = PurePosixPath(fold(place_of(entry.delivery.target)))
            if wanted.is_relative_to(target) or target.is_relative_to(wanted):
                return f"{entry.declaration.address} to {entry.delivery.target} ({entry.delivery.position})"
    return None


def find_shared_targets(
    declared: Mapping[str | None, Iterable[Declaration]], place_of: Callable[[str], str]
) -> Iterator[tuple[Problem, Collection[str | None]]]:
    """Finds targets that deliveries of several environments share. Yields a problem and the environments.

    None stands for the project without an environment. Entries of one dotenv file do not conflict with each other, but
    with a delivery that writes the whole file.
    """
    found: dict[Hashable, dict[str | None, _DeclaredDelivery]] = {}
    whole: set[str] = set()  # files that a delivery writes as a whole
    entries: dict[str, dict[str | None, _DeclaredDelivery]] = {}
    for name, declarations in declared.items():
        for entry in _list_deliveries(group_by_kind(declarations)):
            delivery = entry.delivery
            if delivery.way == "to_dotenv":
                entries.setdefault(fold(place_of(delivery.target)), {}).setdefault(name, entry)
            elif delivery.way in FILE_WAYS:
                file = fold(place_of(delivery.target))
                whole.add(file)
                found.setdefault(("file", file), {}).setdefault(name, entry)
            found.setdefault(_target(delivery, place_of)[0], {}).setdefault(name, entry)
    for file in sorted(whole & entries.keys()):
        found["file", file] = {**entries[file], **found["file", file]}
    problems: dict[
        Problem, Collection[str | None]
    ] = {}  # deduplicated: a Kubernetes Secret shares both its file and its key
    for by_environment in found.values():
        if len(by_environment) > 1:
            problems.setdefault(_report_shared_by_environments(by_environment, place_of), by_environment.keys())
    yield from problems.items()


def _report_shared_by_environments(
    by_environment: Mapping[str | None, _DeclaredDelivery], place_of: Callable[[str], str]
) -> Problem:
    first = next(iter(by_environment.values()))
    names = [name or "the project without an environment" for name in by_environment]
    text = f"delivered to {_target(first.delivery, place_of)[1]} in several environments ({', '.join(names)})"
    address = first.declaration.address
    remedy = (
        "the later apply would overwrite the other's secret: set another target in each environments/NAME.yaml, "
        f"as in `{address}: {{deliver: {{{first.output}: {_suggest_patch(first)}}}}}`"
    )
    return first.problem(text, remedy, "shared-delivery-target", Severity.WARNING)


def _suggest_patch(entry: _DeclaredDelivery) -> str:
    """An example of a patch with another target. It uses the same type of sink, since a patch keeps other keys."""
    delivery = entry.delivery
    match delivery.way:
        case "to_command":
            return "{to_command: {run: [COMMAND, NAME]}}"
        case "to_github_secret":
            return "{to_github_secret: {environment: NAME}}"
        case "to_vault":
            return "{to_vault: {path: NAME/" + str(delivery.settings["path"]) + "}}"
        case "to_dotenv":
            return "{to_dotenv: {file: secrets/NAME/.env}}"
        case "to_kubernetes_secret":
            return "{to_kubernetes_secret: {file: secrets/NAME/secret.yaml, namespace: NAME}}"
    return f"{{to_file: secrets/NAME/{entry.declaration.address.name}}}"


class _DeclaredDelivery(NamedTuple):
    """A delivery with its declaration and output."""

    declaration: Declaration
    output: str
    delivery: Delivery

    def problem(
        self,
        text: str,
        remedy: str,
        code: str,
        severity: Severity = Severity.ERROR,
        other: _DeclaredDelivery | None = None,
    ) -> Problem:
        """A problem of this delivery, and of `other` if both conflict."""
        subject = f"{self.declaration.address}.deliver.{self.output}"
        values = {} if other is None else {"first": str(other.declaration.address)}
        return Problem(text, remedy, subject, self.delivery.position, severity, code=code, values={**values})


def _check_file_paths(
    entry: _DeclaredDelivery, place: str, by_file: dict[str, _DeclaredDelivery], by_folder: dict[str, _DeclaredDelivery]
) -> Problem | None:
    """Records a file and its folders. Returns a problem if another secret uses the file, or uses it as a folder."""
    above = [str(folder) for folder in PurePosixPath(place).parents]
    other = by_folder.get(place) or next((by_file[folder] for folder in above if folder in by_file), None)
    if other is not None:
        where = f"{other.declaration.address} to {other.delivery.target} ({other.delivery.position})"
        text = f"delivered to {entry.delivery.target}, and {where}: one path cannot be both a file and a folder"
        return entry.problem(text, _APART, "shared-delivery-target", other=other)
    for folder in above:
        by_folder.setdefault(folder, entry)
    first = by_file.setdefault(place, entry)
    has_entries = entry.delivery.way == first.delivery.way == "to_dotenv"
    return None if first is entry or has_entries else _report_shared_target(entry, first, entry.delivery.target)


def _report_shared_target(entry: _DeclaredDelivery, other: _DeclaredDelivery, where: str) -> Problem:
    text = f"delivered to {where}, as is the secret of {other.declaration.address} ({other.delivery.position})"
    is_same_line = other.delivery.position == entry.delivery.position  # of for_each
    return entry.problem(
        text, "use ${{ each.key }} in the target" if is_same_line else _APART, "shared-delivery-target", other=other
    )


_APART: Final = "use a different target for each"


def _target(delivery: Delivery, place_of: Callable[[str], str]) -> tuple[Hashable, str]:
    """Returns a key that is equal for two deliveries that overwrite each other, and the target in words."""
    settings, target = delivery.settings, delivery.target
    match delivery.way:
        case "to_command":
            return ("command", *settings["run"]), f"the command {shlex.join(settings['run'])}"
        case "to_dotenv":
            return ("entry", fold(place_of(target)), settings["name"]), f"the entry {settings['name']} of {target}"
        case "to_kubernetes_secret":
            namespace, name, key = settings.get("namespace", ""), settings["name"], settings["key"]
            label = f"{namespace}/{name}" if namespace else name
            return ("kubernetes", namespace, name, key), f"the key {key} of the Kubernetes Secret {label}"
        case "to_github_secret":
            name, environment = str(settings["name"]), str(settings.get("environment", ""))
            return ("github", target.lower(), environment.lower(), name.upper()), delivery.label
        case "to_vault":
            return ("vault", target, settings["key"]), delivery.label
    return ("file", fold(place_of(target))), target


def _list_deliveries(by_kind: ByKind) -> Iterator[_DeclaredDelivery]:
    for declaration in chain.from_iterable(by_kind[kind] for kind in by_kind if kind.one_time is not None):
        for output, delivery in declaration.deliver.items() if declaration.ensure is Ensure.PRESENT else ():
            yield _DeclaredDelivery(declaration, output, delivery)
