"""Enumerations of the platform, and the syntax of its texts: ACL rules, hosts, traffic policies, timestamps."""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime
from typing import Any

from reconciler.sandbox.wire import parsing

REGIONS = ("au", "eu", "ap", "us", "jp", "in", "sa")
RESTRICTIONS = ("dashboard", "api", "agent", "endpoints")
BINDINGS = ("public", "internal", "kubernetes")
TLS_VERSIONS = ("1.0", "1.1", "1.2", "1.3")
NAMEID_FORMATS = (
    "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
)
_CHANGED = (
    "api_key certificate_authority domain event_destination event_subscription ip_policy ip_policy_rule "
    "ip_restriction secret ssh_certificate_authority ssh_host_certificate ssh_public_key ssh_user_certificate "
    "tcp_address tls_certificate tunnel_credential vault"
)
EVENT_TYPES = frozenset(
    [f"{what}_{change}.v0" for what in _CHANGED.split() for change in ("created", "updated", "deleted")]
    + ["agent_session_start.v0", "agent_session_stop.v0", "http_request_complete.v0", "tcp_connection_closed.v0"]
)
_PROVIDERS = (
    "aftership airship alchemy autodesk bitbucket bolt box brex buildkite calendly castle chargify circleci "
    "clearbit clerk coinbase contentful docusign dropbox facebook_graph_api facebook_messenger frameio github "
    "gitlab go1 graphcms heroku hostedhooks hubspot instagram intercom jira launch_darkly linear mailchimp "
    "mailgun microsoft_teams modern_treasury mongodb mux orb orbit pagerduty pinwheel plivo pusher sendgrid "
    "sentry shopify signal_sciences slack sns sonatype square stripe svix terraform tiktok trendmicro_conformity "
    "twilio twitter typeform vmware webex whatsapp worldline xero zendesk zoom"
)
WEBHOOK_PROVIDERS = frozenset(_PROVIDERS.split())

_HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*"
_BIND_LABEL = re.compile(r"(?:\*|[^\s=*]+)=(?:\*|[^\s=*]+)")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
LARGEST_POLICY = 2**18  # characters
PHASES = ("on_http_request", "on_http_response", "on_tcp_connect")


def is_acl_rule(text: str) -> bool:
    if text == "*":
        return True
    verb, colon, what = text.partition(":")
    if verb != "bind" or not colon:
        return False
    name, _, port = (what if ":" in what else f"{what}:443").rpartition(":")
    return bool(_BIND_LABEL.fullmatch(what)) or is_hostport(f"{name.rstrip('.')}:{port}")


def is_label(text: str) -> bool:
    """Whether a text is a valid label of a hostname."""
    return _LABEL.fullmatch(text) is not None


def is_hostport(text: str) -> bool:
    name, _, port = text.rpartition(":")
    return re.fullmatch(_HOST, name.removeprefix("*.")) is not None and _is_port(port)


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 65536


def is_address(text: str) -> bool:
    """Whether a text is `host:port`, or an IPv6 address in brackets with a port."""
    name, _, port = text.rpartition(":")
    if not (name.startswith("[") and name.endswith("]")):
        return is_hostport(text)
    try:
        ipaddress.IPv6Address(name[1:-1])
    except ValueError:
        return False
    return _is_port(port)


def host(text: str) -> str:
    """A hostname in lower case, without a trailing dot."""
    return text.strip().rstrip(".").lower()


def hostport(text: str) -> str:
    """A `host:port` with the host in normal form."""
    name, colon, port = text.strip().rpartition(":")
    return f"{host(name)}{colon}{port}"


def instant(text: str) -> datetime:
    """An RFC 3339 timestamp in UTC. Raises ValueError for other texts and for times before 1970."""
    if not _INSTANT.fullmatch(text):
        raise ValueError(text)
    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC).replace(microsecond=0)
    except OverflowError as error:
        raise ValueError(text) from error
    if moment.year < 1970:
        raise ValueError(text)
    return moment


def wrong_policy(text: str) -> str | None:
    """The first error of a traffic policy document, or None."""
    if len(text) > LARGEST_POLICY:
        return f"it has more than {LARGEST_POLICY} characters"
    try:
        document = parsing.document(text)
    except ValueError as error:
        return str(error)
    if not isinstance(document, dict):
        return "it must be an object of phases"
    for phase, rules in document.items():
        if phase not in PHASES:
            return f"unknown phase {phase!r}"
        if not isinstance(rules, list):
            return f"{phase}: must be a list of rules"
        for rule in rules:
            wrong = _wrong_rule(rule)
            if wrong is not None:
                return f"{phase}: {wrong}"
    return None


def _wrong_rule(rule: Any) -> str | None:
    if not isinstance(rule, dict):
        return "a rule must be an object"
    expressions, actions = rule.get("expressions"), rule.get("actions")
    if expressions is not None and not (isinstance(expressions, list) and all(isinstance(e, str) for e in expressions)):
        return "expressions must be a list of texts"
    if not isinstance(actions, list) or not actions:
        return "a rule must have a list of actions"
    for action in actions:
        if not isinstance(action, dict) or not isinstance(action.get("type"), str) or not action["type"]:
            return "an action must be an object with a type"
        if not isinstance(action.get("config"), dict | None):
            return "the config of an action must be an object"
    return None
