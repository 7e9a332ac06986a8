"""The shape of the project file, `reconciler.yaml`: each section with its fields, their checks, defaults and docs."""

import re
from datetime import date
from typing import Annotated, Any, Final, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import canonical
from reconciler.kinds.types.fields import Deferred, PlainHost, check_with
from reconciler.model import dialect
from reconciler.model.fields.annotations import Between, Described, Sensitive
from reconciler.model.fields.form import Form
from reconciler.project.documents import durations
from reconciler.project.settings.connection import AGENT_URL, check_agent_url, check_platform_url

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_STACK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # 62: leaves room for the owner record in 4096 bytes


def check_stack_name(text: str) -> str | None:
    """Checks the name of a stack. Returns `problem; remedy` or None."""
    if _STACK.fullmatch(text):
        return None
    return "is not a valid stack name; use up to 63 letters, digits, '.', '_' and '-', beginning with a letter or digit"


class Platform(Form):
    """The platform's API: URL, key, dialect and account."""

    base_url: Annotated[
        Annotated[str, check_with(check_platform_url), Deferred] | None,
        Doc("Base URL of the API. The profile ngrok has a default."),
    ] = None
    api_key: Annotated[
        Annotated[str, Deferred] | None,
        Sensitive,
        Doc("API key, preferably {from_env: NAME}. Trailing line breaks are removed."),
    ] = None
    profile: Annotated[dialect.Name, Doc("Dialect of the API.")] = "specification"
    account: Annotated[str | None, Doc("Name of the account. Plans and snapshots of another account are refused.")] = (
        None
    )


class Agent(Form):
    """The local API of the agent whose tunnels are declared."""

    base_url: Annotated[
        Annotated[str, check_with(check_agent_url), Deferred],
        Doc("Base URL of the agent's API. No key is sent to it."),
    ] = AGENT_URL


class Limits(Form):
    """Limits for requests to the platform."""

    requests_per_minute: Annotated[
        Annotated[int, Between(2, 100_000)] | None,
        Doc("Maximum number of requests in any 60 seconds. Default: 120 with the profile ngrok, otherwise unlimited."),
    ] = None
    concurrency: Annotated[int, Between(1, 256), Doc("Maximum number of concurrent requests.")] = 32
    settle_seconds: Annotated[
        float,
        Between(0, 600),
        Doc(
            "Seconds within which an interrupted create may still take effect, and a new object may not be visible. "
            "Until then a missing object counts as unknown, and each command waits for it."
        ),
    ] = 10.0


class Guards(Form):
    """What one plan may not do without approval, beside irreversible deletions."""

    max_delete_percent: Annotated[
        int,
        Between(0, 100),
        Doc(
            "Share of managed objects, in percent, that one plan may delete without approval. "
            "Applies to stacks of at least 10 objects; 0 applies to all."
        ),
    ] = 30
    max_update_percent: Annotated[
        int,
        Between(0, 100),
        Doc(
            "Share of managed objects, in percent, that one plan may update without approval. "
            "Applies to stacks of at least 10 objects; 0 applies to all."
        ),
    ] = 30
    require_approval: Annotated[
        list[
            Literal[
                "widens_access",
                "locks_out",
                "exposes",
                "irreversible",
                "leaves_dns_record",
                "interrupts_traffic",
                "runs_command",
                "issues_credential",
                "disables_agent",
            ]
        ],
        Doc(
            "Risks of which each change needs approval, by risk, kind and count: `--allow disables_agent:BotUser=1`. "
            "`widens_access`, `locks_out` and `exposes` concern entry points: `--allow locks_out:*=1`. "
            "Irreversible changes always need approval, as `delete`."
        ),
    ] = []


def _check_date(text: str) -> str | None:
    """Checks a date. Returns `problem; remedy` or None."""
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
    return f"{text!r} is not a pattern; write Kind/name or Kind/name.field, with * for any text"


def _check_reason(text: str) -> str | None:
    return None if text.strip() else "is empty; say why the difference is expected"


class ExpectedDrift(Form):
    """A difference that is expected until a given day."""

    match: Annotated[
        str,
        check_with(_check_drift_pattern),
        Deferred,
        Doc("Pattern Kind/name or Kind/name.field; * matches any text."),
    ]
    until: Annotated[
        str, check_with(_check_date), Deferred, Doc("Last day on which the difference is ignored, in UTC.")
    ]
    reason: Annotated[str, check_with(_check_reason), Deferred, Doc("Why the difference is expected.")]


class Drift(Form):
    """Differences that `drift` does not report."""

    ignore: Annotated[list[ExpectedDrift], Doc("Known drift, each entry with a date and a reason.")] = []


def _check_public_key(text: str) -> str | None:
    from reconciler.project import snapshots  # deferred: imports cryptography

    return snapshots.check_public_key(text)


class Snapshots(Form):
    """Verification of snapshot files."""

    public_key: Annotated[
        Annotated[str, check_with(_check_public_key), Deferred] | None,
        Doc(
            "Ed25519 public key in PEM, preferably {from_file: snapshot.pub}. `plan --snapshot` "
            "refuses files that are not signed with its private key."
        ),
    ] = None


def _check_zones(zones: list[str]) -> str | None:
    names = [canonical.host(zone) for zone in zones]
    repeated = next((zone for zone, name in zip(zones, names, strict=True) if names.count(name) > 1), None)
    return None if repeated is None else f"names {repeated!r} twice; name each zone once"


class DNS(Form):
    """The DNS zones that `reconciler dns` writes files for."""

    zones: Annotated[
        list[PlainHost],
        check_with(_check_zones),
        Doc(
            "Zones that you administer, such as example.com. A record belongs to the longest zone that its name ends "
            "with."
        ),
    ] = []


class Health(Form):
    """When an object counts as degraded."""

    expires_within: Annotated[
        str,
        check_with(durations.check_duration),
        Deferred,
        Described("duration"),
        Doc("How long before its expiry a certificate is degraded, such as 14d or 36h. 0d: once it has expired."),
    ] = "14d"


class ProjectFile(Form):
    """The project file."""

    version: Annotated[Literal[1], Doc("Version of the file format.")] = 1
    stack: Annotated[
        Annotated[str, check_with(check_stack_name), Deferred],
        Doc("Name of the stack, the scope of ownership. Unique within the account."),
    ]
    platform: Platform = Platform()
    agent: Agent = Agent()
    manifests: Annotated[list[str], Doc("Manifest files and folders, relative to the project's root.")] = ["manifests"]
    components: Annotated[
        list[str],
        Doc(
            "Folders of components, relative to the project's root. `..` may lead to another folder of the repository."
        ),
    ] = ["components"]
    policies: Annotated[list[str], Doc("Policy files and folders, relative to the project's root.")] = ["policies"]
    limits: Limits = Limits()
    guards: Guards = Guards()
    snapshots: Snapshots = Snapshots()
    drift: Drift = Drift()
    dns: DNS = DNS()
    health: Health = Health()
    variables: Annotated[
        dict[str, Any],
        Doc(
            "Variables for ${{ var.name }}: values, or declarations {type, default, description}. "
            "Environments and --var override them."
        ),
    ] = {}
    defaults: Annotated[dict[str, Any], Doc("Defaults by kind, applied below each manifest of the kind.")] = {}
    store: Annotated[
        str | None,
        Doc("The store: a path relative to the project's root, or a database URL. Default: state/reconciler.db."),
    ] = None
