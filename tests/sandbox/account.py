"""Makes one object of any collection, with all that it refers to: bodies written from the documentation."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from reconciler.testing import Emulator
from tests.kinds import pems

POLICY = '{"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 403}}]}]}'
SAML_METADATA = pems.saml()
CONFIGURATION = "ec_1aBcDeFgHiJkLmNoPqRsTuVwXyZ"


class Account:
    def __init__(self, sandbox: Emulator) -> None:
        self.sandbox = sandbox
        self._numbers = itertools.count(1)

    def make(self, collection: str, **more: Any) -> dict[str, Any]:
        """Creates an object with its own unique values. Returns the response."""
        if collection in PLANTED:
            return self.plant(collection)
        if collection.endswith("/secrets"):
            return self.make("/vault_secrets", vault_id=collection.split("/")[2])
        if collection.endswith("/bound_endpoints"):
            return self.make("/endpoints", url="http://shop.default", bindings=["kubernetes"])
        return dict(self.sandbox.post(collection, BODIES[template(collection)](self) | more))

    def id(self, collection: str, **more: Any) -> str:
        return str(self.make(collection, **more)["id"])

    def number(self) -> int:
        return next(self._numbers)

    def domain(self) -> str:
        return str(self.make("/reserved_domains")["domain"])

    def module(self, name: str) -> dict[str, Any]:
        """A body for a module's PUT."""
        return MODULES[name](self)

    def plant(self, collection: str) -> dict[str, Any]:
        """An object that no client can create."""
        identity = f"{PLANTED[collection]}_{self.number():027}"
        self.sandbox.plant(collection, {"id": identity})
        return dict(self.sandbox.get(f"{collection}/{identity}"))

    def place(self, template: str) -> str:
        """A path of this template, with a new object for each id in it, and the module at its end set."""
        segments, path = template.strip("/").split("/"), ""
        for index, segment in enumerate(segments):
            if not segment.startswith("{"):
                path += f"/{segment}"
                continue
            below = segments[index + 1 :]
            last = below[0] if len(below) == 1 else ""
            made = self.make(path, **({last: self.module(last)} if last in MODULES else {}))
            path += f"/{made.get('id') or made['type']}"
            if last in ATTACHED:
                self.sandbox.patch(path, ATTACHED[last](self))
        return path


def template(collection: str) -> str:
    """`/edges/https/edghts_…/routes` is `/edges/https/{}/routes`."""
    first, *rest = collection.strip("/").split("/")
    return "/" + "/".join([first, *("{}" if "_" in segment and len(segment) > 27 else segment for segment in rest)])


BODIES: dict[str, Callable[[Account], dict[str, Any]]] = {
    "/endpoints": lambda a: {"type": "cloud", "url": f"https://{a.domain()}", "traffic_policy": POLICY},
    "/edges/tcp": lambda a: {"hostports": [a.make("/reserved_addrs")["addr"]]},
    "/edges/tls": lambda a: {"hostports": [f"{a.domain()}:443"]},
    "/edges/https": lambda a: {"hostports": [f"{a.domain()}:443"]},
    "/edges/https/{}/routes": lambda a: {"match_type": "path_prefix", "match": f"/{a.number()}"},
    "/credentials": lambda a: {"acl": ["bind:*.example.com"]},
    "/ssh_credentials": lambda a: {"public_key": pems.ssh_key()},
    "/ip_restrictions": lambda a: {"type": "api", "ip_policy_ids": [a.id("/ip_policies")]},
    "/ip_policies": lambda a: {"description": "office"},
    "/ip_policy_rules": lambda a: {
        "ip_policy_id": a.id("/ip_policies"),
        "cidr": f"10.0.{a.number()}.0/24",
        "action": "allow",
    },
    "/reserved_domains": lambda a: {"domain": f"d{a.number()}.example.com"},
    "/reserved_addrs": lambda a: {"region": "eu"},
    "/ssh_certificate_authorities": lambda a: {},
    "/ssh_host_certificates": lambda a: {
        "ssh_certificate_authority_id": a.id("/ssh_certificate_authorities"),
        "public_key": pems.ssh_key(),
    },
    "/ssh_user_certificates": lambda a: {
        "ssh_certificate_authority_id": a.id("/ssh_certificate_authorities"),
        "public_key": pems.ssh_key(),
    },
    "/api_keys": lambda a: {"description": "pipeline"},
    "/abuse_reports": lambda a: {"urls": [f"https://phish{a.number()}.example.com/login"]},
    "/kubernetes_operators": lambda a: {
        "deployment": {"name": f"operator-{a.number()}", "namespace": "ngrok"},
        "enabled_features": ["ingress"],
    },
    "/vaults": lambda a: {"name": f"vault-{a.number()}"},
    "/vault_secrets": lambda a: {"vault_id": a.id("/vaults"), "name": "stripe", "value": "s3cret"},
    "/agent_ingresses": lambda a: {"domain": f"agents{a.number()}.example.com"},
    "/backends/failover": lambda a: {"backends": [a.id("/backends/tunnel_group")]},
    "/backends/tunnel_group": lambda a: {"labels": {"service": "payments"}},
    "/backends/http_response": lambda a: {"status_code": 503, "body": "later"},
    "/backends/weighted": lambda a: {"backends": {a.id("/backends/tunnel_group"): 10}},
    "/backends/static": lambda a: {"address": "origin.example.com:443", "tls": {"enabled": True}},
    "/service_users": lambda a: {"name": f"service {a.number()}"},
    "/bot_users": lambda a: {"name": f"bot {a.number()}"},
    "/certificate_authorities": lambda a: {"ca_pem": pems.certificate("root", ca=True)},
    "/tls_certificates": lambda a: {
        "certificate_pem": pems.certificate("leaf"),
        "private_key_pem": pems.private_key("leaf"),
    },
    "/event_subscriptions": lambda a: {"destination_ids": [a.id("/event_destinations")]},
    "/event_subscriptions/{}/sources": lambda a: {"type": "ip_policy_created.v0"},
    "/event_destinations": lambda a: {"format": "json", "target": {"metrics": {"api_key": "k", "service": "edge"}}},
}

MODULES: dict[str, Callable[[Account], dict[str, Any]]] = {
    "backend": lambda a: {"backend_id": a.id("/backends/tunnel_group")},
    "ip_restriction": lambda a: {"ip_policy_ids": [a.id("/ip_policies")]},
    "mutual_tls": lambda a: {"certificate_authority_ids": [a.id("/certificate_authorities")]},
    "tls_termination": lambda a: {"min_version": "1.3"},
    "traffic_policy": lambda a: {"value": POLICY},
    "saml": lambda a: {"idp_metadata": SAML_METADATA},
    "webhook_verification": lambda a: {"provider": "github", "secret": "s"},
    "oidc": lambda a: {"issuer": "https://login.example.com", "client_id": "app", "client_secret": "s"},
    "oauth": lambda a: {"provider": {"google": {"email_domains": ["example.com"]}}},
    "request_headers": lambda a: {"add": {"X-From": "edge"}, "remove": ["Cookie"]},
    "response_headers": lambda a: {"add": {"X-From": "edge"}},
    "compression": lambda a: {"enabled": True},
    "circuit_breaker": lambda a: {"tripped_duration": 30, "error_threshold_percentage": 0.2},
    "websocket_tcp_converter": lambda a: {},
    "user_agent_filter": lambda a: {"deny": ["(?i)bot"]},
}

# Collections that can only be read, with the prefix of their ids.
PLANTED = {
    "/tunnels": "tn",
    "/tunnel_sessions": "ts",
    "/app/users": "au",
    "/app/sessions": "as",
}

# Updates that set what a DELETE of a segment removes.
ATTACHED: dict[str, Callable[[Account], dict[str, Any]]] = {
    "certificate": lambda a: {"certificate_id": a.id("/tls_certificates")},
    "certificate_management_policy": lambda a: {"certificate_management_policy": {}},
    "http_endpoint_configuration": lambda a: {"http_endpoint_configuration_id": CONFIGURATION},
    "https_endpoint_configuration": lambda a: {"https_endpoint_configuration_id": CONFIGURATION},
    "endpoint_configuration": lambda a: {"endpoint_configuration_id": CONFIGURATION},
}

UPDATES: dict[str, dict[str, Any]] = {
    "/bot_users/{}": {"active": False},
    "/service_users/{}": {"active": False},
    "/event_subscriptions/{}/sources/{}": {},
}
