"""Settings of the connection to the platform and the agent: URLs, API key, overrides by environment variables.

Offline commands need no connection, so that missing settings are reported only when a command connects.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from reconciler.languages.yaml.positions import Places
from reconciler.model.dialect import DIALECTS, Name
from reconciler.model.problem import Problem
from reconciler.model.value import Sealed, Secret

AGENT_URL: Final = "http://127.0.0.1:4040"  # default address of the agent's API


def check_platform_url(text: str) -> str | None:
    """Checks a base URL. Returns `problem; remedy` or None. Accepts http for loopback addresses only."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not a URL; write it like https://api.example.com"
    if parts.scheme not in ("http", "https") or not host:
        return "is not a URL; write it like https://api.example.com"
    if parts.username is not None:  # a password implies one, if only an empty one
        return "contains a user or password; remove them, and set api_key"
    if parts.query or parts.fragment:
        return "has a query or fragment; write only the base URL"
    if parts.scheme == "http" and not is_loopback(host):
        return "would send the API key unencrypted; use https (http is accepted for loopback addresses only)"
    return None


def check_agent_url(text: str) -> str | None:
    """Checks the URL of an agent's API. The API has no authentication: a client that reaches it can start tunnels."""
    wrong = check_platform_url(text)
    if wrong is not None and wrong.startswith("would send"):
        return "is unencrypted; use https (http is accepted for loopback addresses only)"
    return wrong and wrong.replace("https://api.example.com", AGENT_URL).replace(", and set api_key", "")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Overrides(Struct, frozen=True):
    """Settings from environment variables, which override the project file."""

    base_url: str | None = None
    api_key: Secret | None = None
    agent_url: str | None = None
    store: str | None = None


def read_overrides(environ: Mapping[str, str]) -> tuple[Overrides, list[Problem]]:
    problems = []
    for name, check in (("RECONCILER_BASE_URL", check_platform_url), ("RECONCILER_AGENT_URL", check_agent_url)):
        if (url := environ.get(name)) and (wrong := check(url)):
            text, _, remedy = wrong.partition("; ")
            problems.append(Problem(text, remedy, name, code="invalid-value"))
    api_key = environ.get("RECONCILER_API_KEY")
    overrides = Overrides(
        base_url=environ.get("RECONCILER_BASE_URL") or None,
        api_key=Secret(api_key, "env:RECONCILER_API_KEY") if api_key else None,
        agent_url=environ.get("RECONCILER_AGENT_URL") or None,
        store=environ.get("RECONCILER_STORE") or None,
    )
    return overrides, problems


def resolve_base_url(written: Any, profile: Name) -> str | None:
    """The configured base URL, or that of the profile; None if there is none, or it could not be resolved."""
    base_url = written or DIALECTS[profile].base_url
    return base_url.rstrip("/") if isinstance(base_url, str) else None


def parse_key(written: Any) -> Secret | None:
    """The API key without trailing line breaks; None if there is none, or it could not be read."""
    if not isinstance(written, Secret) or isinstance(written, Sealed):
        return None
    return Secret(written.reveal().rstrip("\r\n"), written.source)


def check_key(api_key: Secret, places: Places) -> Problem | None:
    """Reports a key that cannot be sent in a header, without repeating any character of it."""
    text_of_key = api_key.reveal()
    if is_key(text_of_key):
        return None
    word, _, source = api_key.source.partition(":")
    what = next((what for flaw, what in _FLAWS.items() if re.search(flaw, text_of_key)), "a control character")
    text = f"contains a character that API keys do not have ({what})" if text_of_key else "is empty"
    named = source if word in ("env", "file") else "the key"
    return Problem(
        f"{named} {text}",
        "set it to the key without spaces, quotes or line breaks",
        "platform.api_key",
        places.nearest(("platform", "api_key")),
        code="invalid-api-key",
    )


_FLAWS: Final = {
    r"[\r\n]": "a line break",
    r"[ \t]": "a space",
    r"[^\x00-\x7f]": "a non-ASCII character",
}


def is_key(text: str) -> bool:
    """Whether a key can be sent in a header: printable ASCII without spaces."""
    return re.fullmatch(r"[!-~]+", text) is not None


def find_missing_settings(places: Places, base_url: str | None, api_key: Secret | None) -> list[Problem]:
    """Reports settings that a command needs for a connection and that are missing."""
    where = places.nearest(("platform",))
    lacking = []
    if base_url is None:
        remedy = "set base_url under platform:, or RECONCILER_BASE_URL"
        lacking.append(
            Problem("the URL of the platform is not set", remedy, "platform.base_url", where, code="missing-base-url")
        )
    if api_key is None:
        remedy = "set api_key: {from_env: NAME} under platform:, or RECONCILER_API_KEY"
        lacking.append(Problem("no API key is set", remedy, "platform.api_key", where, code="missing-api-key"))
    return lacking
