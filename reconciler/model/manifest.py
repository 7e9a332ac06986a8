"""What is declared in Git: resources with the place each value was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.model.address import Address
from reconciler.model.fields.spec import StrictModel
from reconciler.model.problem import Position
from reconciler.model.value import Json, Value

Path = tuple[str | int, ...]  # keys and indexes from the document's root: ("spec", "hostports", 0)


class Ensure(StrEnum):
    PRESENT = "present"
    ABSENT = "absent"  # a tombstone: the object must not exist
    FORGOTTEN = "forgotten"  # the object stays, our record on it goes


class Lifecycle(StrictModel):
    """Exceptions to the rule."""

    protect: Annotated[bool, Doc("Never delete it, even when it is gone from the manifests.")] = False
    ignore: Annotated[list[str], Doc("Fields that are left to others, by dotted path.")] = []
    adopt: Annotated[bool, Doc("Take over an object that exists already and belongs to nobody.")] = False
    replace: Annotated[bool, Doc("False: a change that needs another object is a problem instead.")] = True
    unmanaged_children: Annotated[
        Literal["report", "delete", "ignore"],
        Doc("What happens to children that exist on the platform and that no manifest declares."),
    ] = "report"


_NO_EXCEPTIONS = Lifecycle()


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where a one-time secret goes: `target` is a file below the project's root, or a command's name.

    way                       settings
    to_file                   none
    to_dotenv                 name (of the entry)
    to_kubernetes_secret      name, namespace, key
    to_command                run, check (argument lists), env (names of variables that both get)
    """

    way: str
    target: str
    position: Position | None = None
    settings: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rotation:
    """When an object with a one-time secret is renewed, in seconds of its age; both live for the overlap."""

    after: int
    overlap: int = 0


@dataclass(slots=True)  # a frozen one takes three times as long to make, and there are thousands
class Declaration:
    """One resource as declared, treated as frozen by everybody. `spec` holds only what was written, in the platform's
    write shape."""

    address: Address
    spec: Mapping[str, Value]
    position: Position
    positions: Mapping[Path, Position] = field(default_factory=dict, repr=False)
    id: str | None = None
    ensure: Ensure = Ensure.PRESENT
    lifecycle: Lifecycle = _NO_EXCEPTIONS
    moved: tuple[Address, ...] = ()  # earlier addresses of the same object
    deliver: Mapping[str, Delivery] = field(default_factory=dict)  # output field → sink
    rotate: Rotation | None = None

    def at(self, *path: str | int) -> Position:
        """Where `spec.<path>` was written, or the nearest thing around it that was."""
        full: Path = ("spec", *path)
        while full and full not in self.positions:
            full = full[:-1]
        return self.positions.get(full, self.position)


@dataclass(frozen=True)
class Manifest:
    """Everything one stack declares."""

    stack: str
    declarations: Mapping[Address, Declaration] = field(repr=False)
    digest: str = ""  # of all files it was read from, names and bytes
    left_out: Mapping[Address, Position] = field(default_factory=dict, repr=False)  # by the environment, and where

    @property
    def is_empty(self) -> bool:
        return not self.declarations
