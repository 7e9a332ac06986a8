"""The shape of a manifest around its spec: kind, name, lifecycle, delivery and rotation, with their checks and docs."""

import re
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import check_with
from reconciler.model.fields.annotations import MinItems
from reconciler.model.fields.form import Form
from reconciler.model.manifest import Lifecycle
from reconciler.project.documents import durations

_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_OBJECT = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")
_NAMESPACE = re.compile(_LABEL)
_DATUM = re.compile(r"(?!\.\Z|\.\.)[A-Za-z0-9._-]{1,253}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_-]{1,100}/(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")
_GITHUB_ENVIRONMENT = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._ /-]{1,255}")
_VAULT_SEGMENT = r"(?!\.{1,2}(/|\Z))[A-Za-z0-9._@-]{1,128}"
_VAULT_PATH = re.compile(rf"(?=.{{1,512}}\Z){_VAULT_SEGMENT}(/{_VAULT_SEGMENT})*")
NO_EXCEPTIONS = Lifecycle()  # shared, since most manifests have none


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


def _check_repository(text: str) -> str | None:
    return None if _REPOSITORY.fullmatch(text) else f"{text!r} is not a repository of GitHub; write OWNER/NAME"


def _check_github_secret_name(text: str) -> str | None:
    if not _ENTRY.fullmatch(text) or len(text) > 255:
        return f"{text!r} is not a valid name of a GitHub secret; use letters, digits and '_'"
    if text.upper().startswith("GITHUB_"):
        return f"{text}: GitHub reserves names that begin with GITHUB_; use another name"
    return None


def _check_github_environment(text: str) -> str | None:
    wrong = f"{text!r} is not a supported name of a GitHub environment"
    return None if _GITHUB_ENVIRONMENT.fullmatch(text) else f"{wrong}; use letters, digits, ' ', '-', '_', '.' and '/'"


def _check_vault_path(text: str) -> str | None:
    wrong = f"{text!r} is not a supported path of Vault; use letters, digits, '-', '_', '.' and '@', separated by '/'"
    return None if _VAULT_PATH.fullmatch(text) else wrong


def _check_vault_key(text: str) -> str | None:
    wrong = f"{text!r} is not a supported key of a Vault secret; use letters, digits, '-', '_' and '.'"
    return None if _DATUM.fullmatch(text) else wrong


class DotenvEntry(Form):
    """An entry of a dotenv file. Other lines of the file are not changed."""

    file: Annotated[str, Doc("Path of the file, relative to the project's root.")]
    name: Annotated[str, check_with(_check_entry_name), Doc("Name of the entry.")]


class KubernetesSecret(Form):
    """A file with a Kubernetes Secret manifest, to be applied to the cluster by other means."""

    file: Annotated[str, Doc("Path of the file, relative to the project's root.")]
    name: Annotated[str, check_with(_check_object_name), Doc("Name of the Secret.")]
    key: Annotated[str, check_with(_check_secret_key), Doc("Key of the value within the Secret.")] = "token"
    namespace: Annotated[Annotated[str, check_with(_check_namespace)] | None, Doc("Namespace of the Secret.")] = None


class Command(Form):
    """A command that reads the secret from its standard input.

    Runs in the project's root, without a shell, with PATH, HOME, the locale and the variables listed in `env`.
    """

    run: Annotated[list[str], MinItems(1), Doc("Command and arguments.")]
    check: Annotated[
        list[str], Doc("Command that succeeds only if `run` would succeed; runs before the object is created.")
    ] = []
    env: Annotated[
        list[Annotated[str, check_with(_check_variable_name)]],
        Doc("Environment variables passed to both commands, besides PATH, HOME, LANG, LANGUAGE and LC_*."),
    ] = []


class GitHubSecret(Form):
    """A secret of GitHub Actions. The environment variable GITHUB_TOKEN must hold a token that can write it."""

    repository: Annotated[str, check_with(_check_repository), Doc("Repository, as OWNER/NAME.")]
    name: Annotated[str, check_with(_check_github_secret_name), Doc("Name of the secret.")]
    environment: Annotated[
        Annotated[str, check_with(_check_github_environment)] | None,
        Doc("Environment of the repository. Without it, the secret is one of the repository."),
    ] = None


class VaultEntry(Form):
    """A key of a secret in Vault's KV engine, version 2. Other keys of the secret are not changed.

    VAULT_ADDR, VAULT_TOKEN or VAULT_TOKEN_FILE, and VAULT_NAMESPACE are read from the environment.
    """

    path: Annotated[str, check_with(_check_vault_path), Doc("Path of the secret within the mount, without `data/`.")]
    key: Annotated[str, check_with(_check_vault_key), Doc("Key of the value within the secret.")] = "token"
    mount: Annotated[str, check_with(_check_vault_path), Doc("Path at which the KV engine is mounted.")] = "secret"


class DeliveryTarget(Form):
    """Sink of a one-time secret: exactly one of these."""

    to_file: Annotated[str | None, Doc("File that contains only the secret.")] = None
    to_dotenv: Annotated[DotenvEntry | None, Doc("Entry of a dotenv file.")] = None
    to_kubernetes_secret: Annotated[KubernetesSecret | None, Doc("File with a Kubernetes Secret manifest.")] = None
    to_command: Annotated[Command | None, Doc("Command that reads the secret from its standard input.")] = None
    to_github_secret: Annotated[GitHubSecret | None, Doc("Secret of GitHub Actions.")] = None
    to_vault: Annotated[VaultEntry | None, Doc("Key of a secret in Vault's KV engine, version 2.")] = None


class RotationSettings(Form):
    """Rotation of a one-time secret: a new one is created and delivered, the old one is deleted after the overlap."""

    after: Annotated[str, check_with(durations.check_duration), Doc("Age at which the secret is rotated, such as 90d.")]
    overlap: Annotated[
        str, check_with(durations.check_duration), Doc("Time in which both secrets are valid, such as 24h.")
    ] = "0s"


class ManifestDocument(Form):
    """A manifest: one declared resource."""

    kind: Annotated[str, Doc("Kind of the resource.")]
    name: Annotated[str, Doc("Name of the resource, unique within its kind and stack.")]
    id: Annotated[str | None, Doc("Id of an existing object that this manifest manages.")] = None
    ensure: Annotated[
        Literal["present", "absent", "forgotten"],
        Doc("present: the object must exist. absent: it must not exist. forgotten: it is kept and no longer managed."),
    ] = "present"
    moved: Annotated[
        Any,
        Doc("Former address, as in Kind/oldname, or a list: the object is kept and managed under the new address."),
    ] = None
    lifecycle: Lifecycle = NO_EXCEPTIONS
    deliver: Annotated[dict[str, DeliveryTarget], Doc("Sinks of one-time secrets.")] = {}
    rotate: Annotated[RotationSettings | None, Doc("Rotation of the one-time secret.")] = None
    spec: Annotated[dict[str, Any] | None, Doc("Fields of the resource, as in the platform's API.")] = None
