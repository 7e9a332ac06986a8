"""The shape of the fleet file, `fleet.yaml`: each section with its fields, their checks, defaults and docs."""

import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from typing_extensions import Doc

from reconciler.kinds.types.fields import NonEmpty, check_with
from reconciler.model.fields.annotations import Between, Described
from reconciler.model.fields.form import Form
from reconciler.model.fleet import NAME, TEMPLATE, Amount
from reconciler.project.documents import durations
from reconciler.project.settings import environments

MAX_TEXT: Final = 1024  # characters of a label's value

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_PROJECT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")  # without dots: files are named MEMBER.PROJECT.db
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_RESOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_PERCENT: Final = re.compile(r"([0-9]{1,3})%")
_EXPRESSION: Final = re.compile(r"\$\{\{.*?(\}\}|\Z)", re.DOTALL)
_ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VAULT_PATH: Final = re.compile(r"[A-Za-z0-9._@-]+(/[A-Za-z0-9._@-]+)*")
_NAME_RULE: Final = "use up to 63 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit"
_AMOUNT_RULE: Final = 'write a number of members, or a percentage such as "10%"'


def check_name(text: str) -> str | None:
    """Checks the name of a fleet, a member or a wave. Returns `problem; remedy` or None."""
    return None if _NAME.fullmatch(text) else f"{text!r} is not a valid name; {_NAME_RULE}"


def check_project_name(text: str) -> str | None:
    """Checks the name of a project. Returns `problem; remedy` or None."""
    if _PROJECT_NAME.fullmatch(text):
        return None
    return f"{text!r} is not a valid project name; {_NAME_RULE.replace(chr(39) + '.' + chr(39) + ', ', '')}"


def check_labels(labels: dict[str, Any]) -> str | None:
    """Checks names and values of labels. Returns `problem; remedy` or None."""
    for name, value in labels.items():
        if name == NAME:
            return "`name` cannot be a label; selectors use it for the name of the member, so rename the label"
        if not _LABEL.fullmatch(name):
            return f"{name!r} is not a valid label; use up to 63 letters, digits, '.', '_' and '-'"
        if len(value) > MAX_TEXT or not value.isprintable():
            return f"the value of {name} is not a valid label value; use up to {MAX_TEXT} printable characters"
        if not value:
            return f"the value of {name} is empty; leave the label out"
    return None


def parse_amount(written: int | str) -> Amount:
    """A valid number or percentage."""
    return Amount(written) if isinstance(written, int) else Amount(int(written.removesuffix("%")), is_percent=True)


def _check_amount(written: int | str) -> str | None:
    if isinstance(written, int):
        return None if written >= 0 else f"{written} is negative; {_AMOUNT_RULE}"
    match = _PERCENT.fullmatch(written)
    if match is not None and int(match[1]) <= 100:
        return None
    return f"{written!r} is neither a number nor a percentage up to 100%; {_AMOUNT_RULE}"


def _check_environment(text: str) -> str | None:
    return environments.check_name(text)


def _check_resource(text: str) -> str | None:
    if _RESOURCE.fullmatch(text):
        return None
    return f"{text!r} is not the name of a worker resource; write the name alone, as in keys-eu"


def check_template(text: str) -> str | None:
    """Checks the expressions in a text. Returns `problem; remedy` or None."""
    for found in _EXPRESSION.finditer(text):
        if not TEMPLATE.fullmatch(found[0]):
            return (
                f"{found[0]!r} is not an expression of a fleet file; "
                "write ${{ member.name }} or ${{ member.labels.NAME }}"
            )
    return None


def _check_key_variable(text: str) -> str | None:
    if wrong := check_template(text):
        return wrong
    if _ENVIRONMENT_NAME.fullmatch(TEMPLATE.sub("X", text)):
        return None
    return "is not the name of an environment variable; use letters, digits, '_' and ${{ member.name }}"


def _check_key_file(text: str) -> str | None:
    if wrong := check_template(text):
        return wrong
    if not text or "\0" in text or ".." in text.split("/"):
        return "is not the path of a file; write a path without '..', such as keys/${{ member.name }}"
    return None


def _check_key_path(text: str) -> str | None:
    if wrong := check_template(text):
        return wrong
    plain = TEMPLATE.sub("x", text)
    if _VAULT_PATH.fullmatch(plain) and not {".", ".."} & set(plain.split("/")):
        return None
    return "is not the path of a secret in Vault; write a path such as fleet/${{ member.name }}"


def _check_mount(text: str) -> str | None:
    if _VAULT_PATH.fullmatch(text) and not {".", ".."} & set(text.split("/")):
        return None
    return "is not the mount of a KV engine; write its path, such as secret"


def _check_store(text: str) -> str | None:
    if "://" in text and (urlsplit(text).password or "password=" in text):
        return "contains a password; leave it out of the file, and set RECONCILER_STORE to the whole URL"
    return None


Name = Annotated[str, check_with(check_name)]
ProjectName = Annotated[str, check_with(check_project_name)]
Labels = Annotated[dict[str, str], check_with(check_labels)]
Select = Annotated[dict[str, str | list[str]], Described("map of labels to text or list of text")]
AmountText = Annotated[int | str, check_with(_check_amount), Described("number, or percentage in text")]
Duration = Annotated[str, check_with(durations.check_duration), Described("duration")]


class MemberEntry(Form):
    """A member: one account."""

    name: Annotated[Name, Doc("Name of the member, unique in the fleet. Part of file names and URLs.")]
    labels: Annotated[Labels, Doc("Labels for selectors and for `${{ member.labels.NAME }}`.")] = {}
    variables: Annotated[
        dict[str, Any],
        Described("map of names to values"),
        Doc("Values of the projects' variables, as of `--var`: text is converted to the declared type."),
    ] = {}


class ProjectEntry(Form):
    """A project that members get."""

    name: Annotated[ProjectName, Doc("Name of the project, unique in the fleet.")]
    path: Annotated[str, Doc("Folder of the project, below the folder of the fleet file.")] = "."
    after: Annotated[
        list[ProjectName],
        Doc(
            "Projects that must have succeeded for the same member before this one starts. Projects that the member "
            "does not get are not waited for."
        ),
    ] = []
    select: Annotated[Select, Doc("Members that get the project. Default: all.")] = {}
    environment: Annotated[
        Annotated[str, check_with(_check_environment)] | None, Doc("Environment of the project, as of `--env`.")
    ] = None


class VaultKey(Form):
    """A field of a secret in Vault's KV engine, version 2."""

    path: Annotated[Annotated[str, check_with(_check_key_path)], Doc("Path of the secret; may contain expressions.")]
    field: Annotated[NonEmpty, Doc("Field of the secret that holds the key.")] = "value"
    mount: Annotated[Annotated[str, check_with(_check_mount)], Doc("Mount of the KV engine.")] = "secret"


class ApiKey(Form):
    """Where the worker that runs a member's tasks finds the member's API key. Exactly one of the fields is set."""

    from_env: Annotated[
        Annotated[str, check_with(_check_key_variable)] | None,
        Doc(
            "Environment variable of the worker. What an expression inserts is in upper case, with `_` for other "
            "characters than letters and digits: `KEY_${{ member.name }}` is `KEY_SHOP_7` for the member `shop-7`."
        ),
    ] = None
    from_file: Annotated[
        Annotated[str, check_with(_check_key_file)] | None,
        Doc("File on the worker: an absolute path, or one relative to the folder of the fleet file."),
    ] = None
    from_vault: Annotated[VaultKey | None, Doc("Secret in Vault, with the worker's VAULT_ADDR and token.")] = None


class WaveEntry(Form):
    """A part of the fleet that an apply finishes before it starts the next part."""

    name: Annotated[Name, Doc("Name of the wave, unique in the fleet.")]
    select: Annotated[
        Select, Doc("Members of the wave. Members of earlier waves are left out. Default: all that are left.")
    ] = {}
    percent: Annotated[
        Annotated[int, Between(1, 100)] | None,
        Doc(
            "Takes only this share of the selected members, at least one, in an order that depends on nothing but "
            "their names. Default: all of them."
        ),
    ] = None
    max_failures: Annotated[
        AmountText, Doc('Members of the wave that may fail, as a number or as a percentage such as "5%".')
    ] = 0
    min_success_time: Annotated[
        Duration | None, Doc("Time between the end of the wave and the start of any later one, such as 10m.")
    ] = None
    progress_deadline: Annotated[
        Duration | None, Doc("Time after which a member that has not finished counts as failed, such as 30m.")
    ] = None
    approve: Annotated[bool, Doc("Whether a person must approve the start of the wave.")] = False


class FleetGuardsEntry(Form):
    """What one apply may not do without `--allow`, in all members together."""

    max_changed: Annotated[
        AmountText | None, Doc('Members with changes, as a number or as a percentage such as "20%". Default: no limit.')
    ] = None
    max_deletes: Annotated[Annotated[int, Between(0, 1_000_000)] | None, Doc("Deleted objects. Default: no limit.")] = (
        None
    )


class WorkerEntry(Form):
    """Workers of a Dask cluster that run the tasks of some members, such as those that hold their keys."""

    select: Annotated[Select, Doc("Members. The first entry that selects a member counts.")] = {}
    needs: Annotated[
        Annotated[str, check_with(_check_resource)],
        Doc("Resource of the workers, as in `dask worker --resources keys-eu=1`."),
    ]


class FleetLimits(Form):
    """Limits of one process."""

    members_at_once: Annotated[int, Between(1, 1024), Doc("Members that one process works on at a time.")] = 16
    start_spread: Annotated[Duration, Doc("Time over which the first starts of a wave are spread, such as 30s.")] = "0s"


class FleetFile(Form):
    """The fleet file."""

    version: Annotated[Literal[1], Doc("Version of the file format.")] = 1
    fleet: Annotated[Name, Doc("Name of the fleet. Unique in its store.")]
    members: Annotated[
        list[MemberEntry],
        Described("list of objects, or name of a file"),
        Doc("The members, or the name of a file that lists them: `*.csv`, `*.json`, `*.yaml` or `*.yml`."),
    ]
    projects: Annotated[
        list[ProjectEntry],
        Doc("Projects. Default: `main`, the project in the folder of the fleet file, for all members."),
    ] = []
    api_key: ApiKey
    waves: Annotated[
        list[WaveEntry], Doc("Waves of an apply. A last wave `rest` takes the members that are in none of them.")
    ] = []
    guards: FleetGuardsEntry = FleetGuardsEntry()
    workers: Annotated[list[WorkerEntry], Doc("Which workers of a cluster run which members. Default: any.")] = []
    limits: FleetLimits = FleetLimits()
    store: Annotated[
        Annotated[str, check_with(_check_store)] | None,
        Doc(
            "Store of the fleet: a path relative to the folder of the fleet file, or a database URL. Default: "
            "RECONCILER_STORE, or state/fleet.db."
        ),
    ] = None
