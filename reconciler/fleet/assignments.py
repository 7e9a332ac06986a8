"""Reads the files of a fleet for a task, and refuses what members of one fleet must not share."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.address import Address
from reconciler.model.fleet import Fleet, FleetProject, KeyMethod, Member
from reconciler.model.manifest import FILE_WAYS
from reconciler.model.value import Secret, canonical
from reconciler.operations.errors import OperationError
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.runtime import Runtime
from reconciler.operations.workspace import Workspace
from reconciler.project.files import find_manifests, path_inside, read


class FileCache(Struct, frozen=True):
    """Content of the files of one commit, or of one run, which is read once.

    fleets    by folder and file
    settings  of projects, by folder and environment: the stack, and the names of the declared variables
    literal   addresses that a project writes without an expression, by its folder and folders of manifests
    shapes    digests of stored shapes
    saving    locked while a shape is stored
    keys      members by the folder of the fleet file, the project and the digest of their API key
    targets   of one-time secrets, each with the member whose secret is delivered there
    """

    fleets: dict[tuple[Path, str], Fleet] = field(default_factory=dict)
    settings: dict[tuple[Path, str | None], tuple[str, frozenset[str]]] = field(default_factory=dict)
    literal: dict[tuple[Path, tuple[str, ...]], frozenset[Address]] = field(default_factory=dict)
    shapes: set[str] = field(default_factory=set)
    saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    keys: defaultdict[tuple[Path, str, bytes], set[str]] = field(default_factory=lambda: defaultdict(set))
    searched: set[tuple[Path, str]] = field(default_factory=set)
    targets: dict[tuple[Path, str, str, bytes], str] = field(default_factory=dict)

    def read_settings(self, base: Path, project: FleetProject, runtime: Runtime) -> tuple[str, frozenset[str]]:
        """The stack of a project, and the names of its variables."""
        key = (base / project.path, project.environment)
        if key not in self.settings:
            found = ProjectSource(key[0], project.environment, runtime=runtime).read_settings()
            self.settings[key] = found.stack, frozenset(found.settings)
        return self.settings[key]

    def read_literal_addresses(self, root: Path, folders: tuple[str, ...]) -> frozenset[Address]:
        """The addresses that the manifests of a project write without an expression."""
        if (root, folders) not in self.literal:
            self.literal[root, folders] = frozenset(_find_literal_addresses(root, folders))
        return self.literal[root, folders]


def _find_literal_addresses(root: Path, folders: Iterable[str]) -> Iterator[Address]:
    for folder in folders:
        for path in find_manifests(root, path_inside(folder)):
            for document in yaml.read(read(root, path, MAX_BYTES), path).documents:
                value = document.value if isinstance(document.value, dict) else {}
                kind, name = value.get("kind"), value.get("name")
                if isinstance(kind, str) and isinstance(name, str) and "${{" not in name:
                    yield Address(kind, name)


class Assignment(Struct, frozen=True):
    """The member and project of a task, from the fleet file. `base`: the folder of the fleet file."""

    base: Path
    fleet: Fleet
    member: Member
    project: FleetProject


def refuse_files(workspace: Workspace) -> None:
    """Raises OperationError if a one-time secret would be delivered to a file of a checkout, which is removed."""
    for declaration in workspace.manifest.declarations.values():
        for output, delivery in declaration.deliver.items():
            if delivery.way in FILE_WAYS:
                raise OperationError(
                    f"{declaration.address}.deliver.{output}: {delivery.way} writes to the checkout of the commit, "
                    "which is removed later; deliver it with to_vault, to_github_secret or to_command"
                )


def refuse_shared_key(key: Secret, assigned: Assignment, files: FileCache, environ: Mapping[str, str]) -> None:
    """Raises OperationError if another member with the project has the same API key: each would overwrite the objects
    of the other in that account. Compares all keys in the environment, and otherwise those that this process has used.
    """
    base, project, fleet = assigned.base, assigned.project, assigned.fleet

    def add(member: Member, text: str) -> set[str]:
        digest = hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).digest()
        members = files.keys[base, project.name, digest]
        members.add(member.name)
        return members

    if fleet.api_key.method is KeyMethod.ENV and (base, project.name) not in files.searched:
        files.searched.add((base, project.name))
        for member in fleet.members.values():
            text = environ.get(fleet.api_key.locate(member), "").strip()
            if text and member.matches(project.select):
                add(member, text)
    members = sorted(add(assigned.member, key.reveal()))
    if len(members) > 1:
        raise OperationError(
            f"members {' and '.join(members[:2])} have the same API key, and would overwrite each other's objects; "
            "give each the key of its own account"
        )


def refuse_shared_targets(workspace: Workspace, assigned: Assignment, files: FileCache) -> None:
    """Raises OperationError if a one-time secret would replace that of another member at the same target. Compares the
    members that this process has opened. Targets of commands are unknown.
    """
    for declaration in workspace.manifest.declarations.values():
        for output, delivery in declaration.deliver.items():
            if delivery.way == "to_command":
                continue
            place = (assigned.base, assigned.project.name, delivery.label, canonical(dict(delivery.settings)))
            first = files.targets.setdefault(place, assigned.member.name)
            if first != assigned.member.name:
                raise OperationError(
                    f"{declaration.address}.deliver.{output}: {delivery.way} would replace the secret of member "
                    f"{first}; use a variable of the member in the target"
                )
