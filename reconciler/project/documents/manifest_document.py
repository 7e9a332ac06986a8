"""The shape of a manifest around its spec: kind, name, lifecycle, delivery and rotation, with their checks and docs."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import Doc

from reconciler.kinds.types.fields import check_with
from reconciler.model.fields.spec import StrictModel
from reconciler.model.manifest import Lifecycle

_DURATION = re.compile(r"[0-9]{1,6}[smhdw]")
_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_OBJECT = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")
_NAMESPACE = re.compile(_LABEL)
_DATUM = re.compile(r"(?!\.\Z|\.\.)[A-Za-z0-9._-]{1,253}")
EXAMPLE_OF_DURATION = "write a duration, as in 90d or 24h"
NO_EXCEPTIONS = Lifecycle()  # one for all, since most manifests have none


def _check_duration(text: str) -> str | None:
    return None if _DURATION.fullmatch(text) else f"{text!r} is not a duration; {EXAMPLE_OF_DURATION}"


def _check_entry_name(text: str) -> str | None:
    return (
        None
        if _ENTRY.fullmatch(text)
        else f"{text!r} is not a valid name of a dotenv entry; use letters, digits and '_'"
    )


def _check_variable_name(text: str) -> str | None:
    if not _ENTRY.fullmatch(text):
        return f"{text!r} is not a valid name of an environment variable; use letters, digits and '_'"
    if text.startswith("RECONCILER_"):
        return f"{text} configures reconciler and is never passed to commands; use another variable"
    return None


def _check_object_name(text: str) -> str | None:
    wrong = f"{text!r} is not a valid name of a Kubernetes Secret; use lower-case letters, digits, '-' and '.'"
    return None if _OBJECT.fullmatch(text) else wrong


def _check_namespace(text: str) -> str | None:
    wrong = f"{text!r} is not a valid namespace; use up to 63 lower-case letters, digits and '-'"
    return None if _NAMESPACE.fullmatch(text) else wrong


def _check_secret_key(text: str) -> str | None:
    wrong = f"{text!r} is not a valid key of a Kubernetes Secret; use letters, digits, '-', '_' and '.'"
    return None if _DATUM.fullmatch(text) else wrong


class DotenvEntry(StrictModel):
    """An entry of a dotenv file; its other lines stay as they are."""

    file: Annotated[str, Doc("The file, below the project's root.")]
    name: Annotated[str, check_with(_check_entry_name), Doc("The entry's name.")]


class KubernetesSecret(StrictModel):
    """A file with a Secret manifest, to be applied by whoever may."""

    file: Annotated[str, Doc("The file, below the project's root.")]
    name: Annotated[str, check_with(_check_object_name), Doc("The Secret's name.")]
    key: Annotated[str, check_with(_check_secret_key), Doc("The key of the secret within it.")] = "token"
    namespace: Annotated[Annotated[str, check_with(_check_namespace)] | None, Doc("The Secret's namespace.")] = None


class Command(StrictModel):
    """A command that takes the secret from its standard input.

    It is run in the project's root, without a shell, and sees PATH, HOME, the locale and what `env` lists of the
    environment.
    """

    run: Annotated[list[str], Field(min_length=1), Doc("The command and its arguments.")]
    check: Annotated[list[str], Doc("A command whose success says that `run` would work.")] = []
    env: Annotated[
        list[Annotated[str, check_with(_check_variable_name)]],
        Doc("Names of environment variables that both commands get, besides PATH, HOME, LANG, LANGUAGE and LC_*."),
    ] = []


class DeliveryTarget(StrictModel):
    """Where a one-time secret goes."""

    to_file: Annotated[str | None, Doc("A file that holds the secret and nothing else.")] = None
    to_dotenv: Annotated[DotenvEntry | None, Doc("An entry of a dotenv file.")] = None
    to_kubernetes_secret: Annotated[KubernetesSecret | None, Doc("A Kubernetes Secret manifest.")] = None
    to_command: Annotated[Command | None, Doc("A command's standard input.")] = None


class RotationSettings(StrictModel):
    """When it is renewed: created anew, delivered, and the old one deleted after the overlap."""

    after: Annotated[str, check_with(_check_duration), Doc("Its age at renewal, such as 90d.")]
    overlap: Annotated[str, check_with(_check_duration), Doc("How long both live, such as 24h.")] = "0s"


class ManifestDocument(StrictModel):
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
    lifecycle: Lifecycle = Field(default_factory=lambda: NO_EXCEPTIONS)
    deliver: Annotated[dict[str, DeliveryTarget], Doc("Where one-time secrets go.")] = Field(default_factory=dict)
    rotate: Annotated[RotationSettings | None, Doc("When a one-time secret is renewed.")] = None
    spec: Annotated[dict[str, Any] | None, Doc("The resource itself, as the platform takes it.")] = None
