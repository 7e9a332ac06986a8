"""Declarations of resources as read from manifests, with the position of each value."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Struct, field
from typing_extensions import Doc

from reconciler.model.address import Address
from reconciler.model.fields.form import Form
from reconciler.model.problem import Position
from reconciler.model.value import Json, Value

Path = tuple[str | int, ...]  # keys and indexes from the document's root: ("spec", "hostports", 0)


class Ensure(StrEnum):
    PRESENT = "present"
    ABSENT = "absent"  # the object must not exist
    FORGOTTEN = "forgotten"  # the object is kept, its owner record is removed


class Lifecycle(Form):
    """Settings that change how a resource is planned."""

    protect: Annotated[
        bool, Doc("Prevents deletion without approval, even after the declaration was removed from the manifests.")
    ] = False
    ignore: Annotated[list[str], Doc("Fields that are not managed, by dotted path.")] = []
    adopt: Annotated[bool, Doc("Adopts an existing unmanaged object.")] = False
    replace: Annotated[bool, Doc("If false, a change that requires replacement is an error.")] = True
    unmanaged_children: Annotated[
        Literal["report", "delete", "ignore"],
        Doc("How to handle children that exist on the platform and are not declared."),
    ] = "report"


_NO_EXCEPTIONS = Lifecycle()
FILE_WAYS = ("to_file", "to_dotenv", "to_kubernetes_secret")  # deliveries to a file on this machine
REMOTE_WAYS = ("to_github_secret", "to_vault")  # deliveries over HTTP


class Delivery(Struct, frozen=True):
    """The delivery of a one-time secret. `target` is a file below the project's root, the name of a command, a
    repository of GitHub, or a path of Vault with its mount.

    way                       settings
    to_file                   none
    to_dotenv                 name (the key of the entry)
    to_kubernetes_secret      name, namespace, key
    to_command                run, check (argument lists), env (names of variables that both get)
    to_github_secret          name, environment (empty: a secret of the repository)
    to_vault                  mount, path, key
    """

    way: str
    target: str
    position: Position | None = None
    settings: Mapping[str, Json] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The target in words, such as "the key token of secret/agent in Vault"; of a file or command, its name."""
        settings = self.settings
        match self.way:
            case "to_dotenv":
                return f"the entry {settings.get('name', '')} of {self.target}"
            case "to_github_secret":
                environment = f"the environment {settings['environment']} of " if settings.get("environment") else ""
                return f"the secret {settings.get('name', '')} of {environment}the GitHub repository {self.target}"
            case "to_vault":
                return f"the key {settings.get('key', '')} of {self.target} in Vault"
        return self.target


class Rotation(Struct, frozen=True):
    """The rotation of a one-time secret: renewed at the age `after`; both are valid for `overlap`. In seconds."""

    after: int
    overlap: int = 0


class Declaration(Struct, frozen=True):
    """One declared resource; must not be modified. `spec` has only the declared fields, in the form of requests."""

    address: Address
    spec: Mapping[str, Value]
    position: Position
    positions: Mapping[Path, Position] = field(default_factory=dict)
    id: str | None = None
    ensure: Ensure = Ensure.PRESENT
    lifecycle: Lifecycle = _NO_EXCEPTIONS
    moved: tuple[Address, ...] = ()  # earlier addresses of the same object
    deliver: Mapping[str, Delivery] = field(default_factory=dict)  # output field → sink
    rotate: Rotation | None = None
    listed: tuple[str, ...] = ()  # kinds of children that the manifest declares inline

    def at(self, *path: str | int) -> Position:
        """The position of `spec.<path>`, or of the nearest enclosing value that has a position."""
        full: Path = ("spec", *path)
        while full and full not in self.positions:
            full = full[:-1]
        return self.positions.get(full, self.position)


class Unread(Struct, frozen=True):
    """What the manifests may declare beside the declarations, since a file or a declaration is invalid.

    addresses    of invalid declarations
    has_unknown  there may be others
    """

    addresses: frozenset[Address] = frozenset()
    has_unknown: bool = False

    def may_declare(self, kind: str) -> bool:
        """Whether a declaration that was not read may be of this kind, and so claim or move an object of it."""
        return self.has_unknown or any(address.kind == kind for address in self.addresses)


class Manifest(Struct, frozen=True):
    """All declarations of a stack.

    left_out  resources that the environment removed
    unread    None: every declaration was read. Otherwise nothing may be concluded from the absence of a declaration
    """

    stack: str
    declarations: Mapping[Address, Declaration]
    digest: str = ""  # of the names and contents of all manifest files, and of files that they include, without secrets
    left_out: Mapping[Address, Position] = field(default_factory=dict)
    unread: Unread | None = None

    @property
    def is_empty(self) -> bool:
        return not self.declarations

    def may_declare(self, address: Address) -> bool:
        """Whether a file or a declaration that could not be read may declare this address."""
        unread = self.unread
        return unread is not None and (unread.has_unknown or address in unread.addresses)
