"""Bodies and objects for clients that require fields which the platform does not."""

from __future__ import annotations

from typing import Any

from tests.sandbox.account import PLANTED, Account

_KSUID = "1aBcDeFgHiJkLmNoPqRsTuVwXyZ"
_MOMENT = "2026-08-07T09:30:00Z"
_LOGIN = {"options_passthrough": False, "cookie_prefix": "", "inactivity_timeout": 0, "maximum_duration": 0}

# The Java client cannot leave these fields of a module out.
JAVA_MODULES: dict[str, dict[str, Any]] = {
    "circuit_breaker": {"rolling_window": 10, "num_buckets": 10, "volume_threshold": 10},
    "oauth": {**_LOGIN, "auth_check_interval": 0},
    "oidc": {**_LOGIN, "scopes": ["openid"]},
    "saml": {
        **_LOGIN,
        "allow_idp_initiated": True,
        "authorized_groups": [],
        "force_authn": False,
        "nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    },
    "tls_termination": {"terminate_at": "edge"},
}

# The Java client does not know the target that the sandbox's own tests use.
JAVA_BODIES: dict[str, dict[str, Any]] = {
    "/event_destinations": {
        "format": "json",
        "target": {"datadog": {"api_key": "k", "ddtags": "", "service": "edge", "ddsite": "datadoghq.com"}},
    },
}

# The fields of what no client can create, as the Java client requires them.
_PLANTED: dict[str, dict[str, Any]] = {
    "/tunnels": {
        "public_url": "https://app.example.com",
        "started_at": _MOMENT,
        "proto": "https",
        "region": "us",
        "metadata": "",
        "tunnel_session": {"id": f"ts_{_KSUID}", "uri": f"https://api.example.com/tunnel_sessions/ts_{_KSUID}"},
        "endpoint": None,
        "labels": {},
        "backends": [],
        "forwards_to": "http://localhost:8080",
    },
    "/tunnel_sessions": {
        "agent_version": "3.39.0",
        "credential": {"id": f"cr_{_KSUID}", "uri": f"https://api.example.com/credentials/cr_{_KSUID}"},
        "ip": "192.0.2.1",
        "metadata": "",
        "os": "linux",
        "region": "us",
        "started_at": _MOMENT,
        "transport": "ngrok/2",
    },
    "/app/users": {
        "identity_provider": {"name": "Google", "url": "https://accounts.google.com"},
        "provider_user_id": "1",
        "username": "ana",
        "email": "ana@example.com",
        "name": "Ana",
        "created_at": _MOMENT,
        "last_active": _MOMENT,
        "last_login": _MOMENT,
    },
    "/app/sessions": {
        "public_url": "https://app.example.com",
        "browser_session": {"user_agent": {"raw": "curl/8"}, "ip_address": "192.0.2.1", "location": None},
        "application_user": {"id": f"au_{_KSUID}", "uri": f"https://api.example.com/app/users/au_{_KSUID}"},
        "created_at": _MOMENT,
        "last_active": _MOMENT,
        "expires_at": _MOMENT,
    },
}


class FullAccount(Account):
    """An account whose planted objects have every field."""

    def plant(self, collection: str) -> dict[str, Any]:
        identity = f"{PLANTED[collection]}_{self.number():027}"
        self.sandbox.plant(collection, {"id": identity, **_PLANTED[collection]})
        return dict(self.sandbox.get(f"{collection}/{identity}"))
