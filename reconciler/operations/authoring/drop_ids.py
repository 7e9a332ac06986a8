"""Removes `id:` from the manifests of resources whose owner record on the account makes it needless."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.address import Address
from reconciler.model.value import OMITTED
from reconciler.project import atomic_write, files
from reconciler.project.manifests import children
from reconciler.project.yaml import patch
from reconciler.project.yaml.patch import Unpatchable

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject


class DroppedIds(Struct, frozen=True):
    """The manifests that were changed, and why an `id:` was left in one."""

    changed: dict[Address, str]  # the file
    left: dict[Address, str]


def drop_ids(project: OpenProject, addresses: Iterable[Address]) -> DroppedIds:
    """Removes the lines from the files. For resources whose objects carry their owner record.

    In an environment nothing is removed, since the manifest may be that of other accounts too; nor is the id of a kind
    without owner records, whose object a lost store could not find again.
    """
    found = DroppedIds({}, {})
    for address in addresses:
        declaration = project.manifest.declarations.get(address)
        if declaration is None or declaration.id is None or not kinds.get(address.kind).keeps_owner:
            continue
        if project.config.environment is not None:
            continue
        try:
            _drop(project, address, declaration.position.file)
        except (Unpatchable, files.Unreadable, OSError) as why:
            found.left[address] = f"{declaration.positions.get(('id',), declaration.position)}: {why}"
        else:
            found.changed[address] = declaration.position.file
    return found


def _drop(project: OpenProject, address: Address, file: str) -> None:
    root = project.config.root
    text = files.read(root, file, MAX_BYTES).decode()
    place = children.find_in_file(yaml.read(text.encode(), file).documents, address)
    if place is None:
        raise Unpatchable("no document of the file declares the resource literally")
    after = patch.patch_text(text, place.document.places[()].line, place.at(("id",)), OMITTED)
    files.refuse_symlink(root, file)
    path = root / file
    atomic_write.write(path, after, path.stat().st_mode & 0o7777)
