"""Random small accounts, filled by plain HTTP: objects of every kind, odd texts, many references, some modules."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from reconciler import kinds
from reconciler.model.fields.annotations import PathOnly
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from tests.harness.platform import Sandbox
from tests.kinds import pems
from tests.sandbox.account import BODIES, MODULES, Account

KINDS = kinds.every()

DESCRIPTIONS = (
    *("", "no", "Yes", "null", "~", "1e3", "0o17", "007", "2020-01-01", "12:30:45", "<<", "=", "-", "|", ">", "?"),
    *("# no comment", "a #b", "a: b", "key:", "- item", "[1, 2]", "{a: b}", "&anchor", "*alias", "!tag", "%TAG", "@at"),
    *(
        "`tick`",
        "it's",
        '"quoted"',
        "back\\slash",
        " leading",
        "trailing ",
        "\ttab",
        "a\tb",
        "two\nlines",
        "two\nlines\n",
    ),
    *("three\n\n  indented\n\n\n", "\nfirst line empty", "dos\r\nlines", "trailing \nspace", "  indented\nfirst"),
    *(
        "Büro Köln",
        "東京 office",
        "🎈",
        "zero\u200bwidth",
        "\u202eturned",
        "next\x85line",
        "line\u2028separator",
        "\ufeffbom",
    ),
    *(
        "bell\x07",
        "del\x7f",
        "nul\x00",
        "${{ var.nothing }}",
        "$${{ x }}",
        "${req.path}",
        "a $$$${{b}} c",
        "---",
        "...\n",
    ),
    *("#reconciler is what we use", "Agent of the Berlin site", "office", "Office", "x" * 255, "é" * 120),
)
METADATA = (
    *(
        "",
        "{}",
        "[]",
        '"text"',
        "0",
        "plain text",
        '{"name": "Named in metadata"}',
        '{"team":"edge","nested":{"a":[1,2]}}',
    ),
    *(
        '{"reconcile": 1}',
        "not\njson\n",
        '  {"padded": true}  ',
        '{"a":1}\n',
        '{"b": "ü\\u00fc"}',
        "#reconciler",
        "a" * 1500,
    ),
    *DESCRIPTIONS[:40],
)
SECRET = "a secret that no file may hold"
_POLICIES = (
    '{"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 403}}]}]}',
    "on_http_request:\n  - name: only-get\n    expressions: [\"req.method != 'GET'\"]  # a comment\n    actions:\n"
    "      - type: deny\n",
    'on_http_response:\r\n  - actions: [{type: add-headers, config: {headers: {x-a: "${{ b }}"}}}]\r\n',
)


_ARN = "arn:cloud:stream:eu-1:123456789012:events"
_KEYS = {"creds": {"cloud_access_key_id": "AKID", "cloud_secret_access_key": SECRET}}
_ROLE = {"role": {"role_arn": f"{_ARN}:role"}}
_INGESTION = {
    "tenant_id": "t",
    "client_id": "c",
    "client_secret": SECRET,
    "logs_ingestion_uri": "https://in.example.com",
    "data_collection_rule_id": "dcr-1",
    "data_collection_stream_name": "Custom-Events",
}

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "AgentIngress": ({"certificate_management_policy": {"private_key_type": "ecdsa"}},),
    "BotUser": ({"active": False}, {"name": "no"}, {"name": "Büro 🎈"}, {"name": "# robot"}),
    "CloudEndpoint": ({"bindings": ["public"]}, {"bindings": ["public", "kubernetes"]}),
    "EventDestination": (
        {"target": {"ingestion": _INGESTION}},
        {"target": {"delivery": {"auth": _KEYS, "delivery_stream_arn": _ARN}}},
        {"target": {"stream": {"auth": _ROLE, "stream_arn": _ARN}}},
        {"target": {"logs": {"auth": _ROLE, "log_group_arn": _ARN}}},
        {"target": {"metrics": {"api_key": SECRET, "tags": "a:b", "service": "edge", "site": "eu"}}},
    ),
    "EventSubscription": ({"description": "a"},),
    "HTTPResponseBackend": (
        {"headers": {"Content-Type": "text/html", "x-no": "no", "x-hash": "# 1"}, "body": "<p>\n  later\n</p>\n"},
        {"status_code": 200, "body": "${{ not a reference }}"},
    ),
    "IPPolicyRule": ({"cidr": "2001:DB8::/32", "action": "deny"}, {"cidr": "0.0.0.0/0"}),
    "IPRestriction": ({"type": "agent", "enforced": True}, {"type": "dashboard"}),
    "ReservedAddress": ({"region": "us"}, {"region": "jp"}),
    "ReservedDomain": (
        {"domain": "*.wild.example.com"},
        {"domain": "UPPER.example.com"},
        {"domain": "managed.example.com", "certificate_management_policy": {"private_key_type": "rsa"}},
        {"domain": "eu.example.com", "resolves_to": [{"value": "eu"}, {"value": "us"}]},
    ),
    "SSHCertificateAuthority": ({"private_key_type": "rsa", "key_size": 2048}, {"private_key_type": "ecdsa"}),
    "SSHHostCertificate": ({"principals": ["b.example.com", "a.example.com"]},),
    "StaticBackend": ({"address": "10.0.0.1:80"},),
    "TLSEdge": ({"tls_termination": {"terminate_at": "upstream"}}, {"tls_termination": {}}),
    "TunnelCredential": (
        {"acl": []},
        {"acl": ["*"]},
        {"acl": ["bind:*.a.example.com", "bind:b.example.com", "bind:*=x"]},
    ),
    "TunnelGroupBackend": (
        {"labels": {}},
        {"labels": {"no": "yes", "1e3": "1e3", "a: b": "# c", "<<": "~", "ü": "${{ x }}", "ref": "IPPolicy/office"}},
    ),
    "WeightedBackend": ({"backends": {}},),
}


def template_of(kind: Kind) -> str:
    """Its collection among `BODIES`."""
    return kind.path if kind.parent is None else kind.path.replace(f"{{{kind.parent.field}}}", "{}")


class Filled:
    """An account with a few objects of any kind. The platform may refuse one: then there is one less."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.random = random.Random(seed)
        self.sandbox = sandbox
        self.account = Account(sandbox)
        self.ids: dict[str, list[str]] = {}
        for _ in range(self.random.randint(0, 6)):
            self._add(self.random.choice(KINDS))

    def _add(self, kind: Kind) -> None:
        if kind.parent is None:
            self._make(kind, kind.path)
            return
        above = kinds.get(kind.parent.kind)
        if not self.ids.get(above.name):
            self._make(above, above.path)
        for parent in self.random.sample(self.ids.get(above.name, []), len(self.ids.get(above.name, [])))[:1]:
            self._make(kind, kind.path.replace(f"{{{kind.parent.field}}}", parent))

    def _make(self, kind: Kind, collection: str) -> None:
        body = {**BODIES[template_of(kind)](self.account), **self._texts(kind)}
        if kind.name in VARIANTS and self.random.random() < 0.6:
            body |= self.random.choice(VARIANTS[kind.name])
        if "public_key" in kind.by_name:
            body["public_key"] = pems.ssh_key(self.random.choice(["", "anna@laptop", "build 1", "büro", "k4", "k5"]))
        body |= dict(self._references(kind.fields))
        if "traffic_policy" in body and isinstance(body["traffic_policy"], str):
            body["traffic_policy"] = self.random.choice(_POLICIES)
        response = self.sandbox.request("POST", collection, body)
        if not response.is_success:
            return
        id = response.json()[kind.key]
        self.ids.setdefault(kind.name, []).append(id)
        for name, module in self._modules(kind):
            self.sandbox.request("PUT", f"{collection}/{id}/{name}", module)

    def _texts(self, kind: Kind) -> dict[str, str]:
        texts = {"description": DESCRIPTIONS, "metadata": METADATA}
        return {
            name: self.random.choice(choices)
            for name, choices in texts.items()
            if name in kind.by_name and self.random.random() < 0.7
        }

    def _references(self, fields: tuple[Field, ...]) -> Iterator[tuple[str, Any]]:
        """Existing objects in the place of new ones, now and then."""
        for field in fields:
            known = [id for target in field.refs for id in self.ids.get(target, [])]
            if not known or PathOnly in field or field.as_map is not None or self.random.random() < 0.5:
                continue
            several = self.random.sample(known, self.random.randint(1, len(known)))
            yield field.name, several if field.item is not None else several[0]

    def _modules(self, kind: Kind) -> Iterator[tuple[str, dict[str, Any]]]:
        for field in kind.fields:
            if field.module and field.name in MODULES and self.random.random() < 0.3:
                body = self.account.module(field.name) | dict(self._references(field.fields))
                if field.name == "traffic_policy":
                    body["value"] = self.random.choice(_POLICIES)
                if field.name == "webhook_verification":
                    body |= self.random.choice([{"secret": SECRET}, {"provider": "sns", "secret": ""}])
                if field.name == "oidc":
                    body |= {"client_secret": SECRET}
                if field.name == "oauth":
                    body |= {"provider": {"github": {"client_id": "c", "client_secret": SECRET, "scopes": ["read"]}}}
                yield field.name, body | ({} if self.random.random() < 0.7 else {"enabled": False})
