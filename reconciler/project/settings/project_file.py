"""The shape of the project file, `reconciler.yaml`: each section with its fields, their checks, defaults and docs."""

import re
from datetime import date
from typing import Annotated, Any, Final, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Deferred, check_with
from reconciler.model import dialect
from reconciler.model.fields.annotations import Between, Sensitive
from reconciler.model.fields.spec import StrictModel
from reconciler.project.settings.connection import AGENT_URL, check_agent_url, check_platform_url

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_STACK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # 62: leaves room for the owner record in 4096 bytes


def check_stack_name(text: str) -> str | None:
    """What is wrong with a stack's name, as `what; what to do`."""
    if _STACK.fullmatch(text):
        return None
    return (
        "is not the name of a stack; use up to 63 letters, digits, '.', '_' and '-', beginning with a letter or digit"
    )


class Platform(StrictModel):
    """Where the account is, and the key to it."""

    base_url: Annotated[
        Annotated[str, check_with(check_platform_url), Deferred] | None,
        Doc("The platform's address. The profile ngrok knows its own."),
    ] = None
    api_key: Annotated[
        Annotated[str, Deferred] | None,
        Sensitive,
        Doc("The API key, best {from_env: NAME}; line breaks at its end are cut off."),
    ] = None
    profile: Annotated[dialect.Name, Doc("Which dialect of the API the platform speaks.")] = "specification"
    account: Annotated[str | None, Doc("The account's name; a plan for another one is refused.")] = None


class Agent(StrictModel):
    """Where the agent is whose tunnels are declared."""

    base_url: Annotated[
        Annotated[str, check_with(check_agent_url), Deferred],
        Doc("The address of its local API; no key is sent to it."),
    ] = AGENT_URL


class Limits(StrictModel):
    """How much of the platform's budget may be used."""

    requests_per_minute: Annotated[
        Annotated[int, Between(2, 100_000)] | None,
        Doc("Requests in any 60 seconds: 120 with the profile ngrok, else without limit, where nothing is said."),
    ] = None
    concurrency: Annotated[int, Between(1, 256), Doc("Requests at the same time.")] = 16
    settle_seconds: Annotated[
        float,
        Between(0, 600),
        Doc(
            "After a crash: how long a create that was cut off may still take effect. "
            "Until then, what does not show is not created again."
        ),
    ] = 10.0


class Guards(StrictModel):
    """Shares of the owned objects that one plan may change without approval."""

    max_delete_percent: Annotated[int, Between(0, 100), Doc("Share of owned objects one plan may delete.")] = 30
    max_update_percent: Annotated[int, Between(0, 100), Doc("Share of owned objects one plan may update.")] = 30


def _check_date(text: str) -> str | None:
    """What is wrong with a date, as `what; what to do`."""
    wrong = f"{text!r} is not a date; write it like 2026-12-31"
    try:
        date.fromisoformat(text)
    except ValueError:
        return wrong
    return None if _DATE.fullmatch(text) else wrong


def _check_drift_pattern(text: str) -> str | None:
    kind, slash, name = text.partition("/")
    if slash and kind and name:
        return None
    return f"{text!r} names no difference; write Kind/name or Kind/name.field, with * for any text"


def _check_reason(text: str) -> str | None:
    return None if text.strip() else "is empty; say why the difference is expected"


class ExpectedDrift(StrictModel):
    """A difference that is expected for a while."""

    match: Annotated[
        str, check_with(_check_drift_pattern), Deferred, Doc("Kind/name, or Kind/name.field; * stands for any text.")
    ]
    until: Annotated[str, check_with(_check_date), Deferred, Doc("The last day on which it is ignored, in UTC.")]
    reason: Annotated[str, check_with(_check_reason), Deferred, Doc("Why it is expected.")]


class Drift(StrictModel):
    """What `drift` does not report."""

    ignore: Annotated[list[ExpectedDrift], Doc("Known drift, each with a date and a reason.")] = []


def _check_public_key(text: str) -> str | None:
    from reconciler.project import snapshots  # and with it cryptography

    return snapshots.check_public_key(text)


class Snapshots(StrictModel):
    """What `plan --snapshot` trusts."""

    public_key: Annotated[
        Annotated[str, check_with(_check_public_key), Deferred] | None,
        Doc("An Ed25519 public key in PEM, best {from_file: snapshot.pub}: only what it vouches for is read."),
    ] = None


class ProjectFile(StrictModel):
    """The project file."""

    version: Annotated[Literal[1], Doc("The version of this file's format.")] = 1
    stack: Annotated[
        Annotated[str, check_with(check_stack_name), Deferred], Doc("The ownership scope, unique in the account.")
    ]
    platform: Platform = Platform()
    agent: Agent = Agent()
    manifests: Annotated[list[str], Doc("Files and folders of manifests, below this file's folder.")] = ["manifests"]
    policies: Annotated[list[str], Doc("Files and folders of policies, below this file's folder.")] = ["policies"]
    limits: Limits = Limits()
    guards: Guards = Guards()
    snapshots: Snapshots = Snapshots()
    drift: Drift = Drift()
    variables: Annotated[
        dict[str, Any],
        Doc("Values for ${{ var.name }}, or {type, default, description}; environments and --var override them."),
    ] = {}
    defaults: Annotated[dict[str, Any], Doc("By kind: what each of its manifests says unless it says otherwise.")] = {}
    store: Annotated[str | None, Doc("Where history is kept: a path below this folder, or a database address.")] = None
