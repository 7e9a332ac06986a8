"""What an object looks like in an answer, made from the document that is kept of it.

A document holds fields under the names they are written by; `ReadAs` says where they are read. What the platform
derives stands beside them, references as `ref(id)`; names that begin with an underscore are never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.value import Json
from reconciler.sandbox.base.database import Document, Stored
from reconciler.sandbox.base.ids import prefix_of
from reconciler.sandbox.wire import bodies

_REF = "$ref"

# Never read back. Everything else is, secrets of webhooks included: the public service echoes those.
_WRITE_ONLY = {
    "TLSCertificate": {"private_key_pem"},
    "Secret": {"value"},
    "SSHCertificateAuthority": {"private_key_type", "elliptic_curve", "key_size"},
}
# Read back as an empty string.
_REDACTED = {
    "EventDestination": {"api_key", "client_secret", "cloud_secret_access_key"},
}
# Read back as null where there are none.
_NULL_WHEN_EMPTY = {
    "TCPEdge": {"hostports"},
    "TLSEdge": {"hostports"},
    "HTTPSEdge": {"hostports"},
    "HTTPResponseBackend": {"headers"},
    "ReservedDomain": {"resolves_to"},
}
# Left out of lists, and of the answer to a create.
_NOT_LISTED = {"ReservedAddress": {"endpoint_configuration"}}

# Keys of the public service that strict clients look for, on objects where the sandbox leaves them unset.
_UNSET: dict[str, Document] = {
    "TunnelGroupBackend": {"tunnels": []},
}

# Ids that live in no collection of the sandbox, and where they would be.
_OUTSIDE = {
    "ec_": "/endpoint_configurations",
    "tn_": "/tunnels",
    "ts_": "/tunnel_sessions",
    "edgtcp_": "/edges/tcp",
    "edgtls_": "/edges/tls",
    "edghts_": "/edges/https",
}

SAML_BASE = "https://idp.{base}/saml/{route}"


def ref(identity: str | None) -> Json:
    """A derived reference, as documents keep it."""
    return {_REF: identity} if identity else None


class View:
    """Answers to one request: `base` is the scheme, host and port by which the client reached the sandbox."""

    def __init__(
        self,
        base: str,
        kinds: Iterable[Kind],
        platform_domain: str,
        saml_certificate: Callable[[], str],
        *,
        sparse: bool = False,
    ) -> None:
        self.base = base
        self._sparse = sparse
        self._paths = {**_OUTSIDE, **{kind.id_prefix: kind.path for kind in kinds if kind.id_prefix}}
        self._domain = platform_domain
        self._saml_certificate = saml_certificate

    def ref(self, identity: str) -> Json:
        path = self._paths.get(prefix_of(identity))
        # A user has no address that an API key could read.
        return {"id": identity, "uri": f"{self.base}{path}/{identity}" if path else ""}

    def uri(self, kind: Kind, stored: Stored) -> str:
        path = kind.path
        if kind.parent is not None:
            path = path.replace(f"{{{kind.parent.field}}}", stored.parent)
        return f"{'' if kind.uri_is_path else self.base}{path}/{stored.id}"

    def render(
        self, kind: Kind, stored: Stored, children: Mapping[str, list[Json]], *, listed: bool = False
    ) -> Document:
        """The whole object; `children` are embedded as they are."""
        if "_raw" in stored.body:
            absent = {**bodies.complete(kind.name, bodies.fields(kind), {}), **default_outputs(kind)}
            raw = {**absent, **self.resolve_refs(stored.body["_raw"]), "id": stored.id, "uri": self.uri(kind, stored)}
            return self._drop_empty(raw)
        shown: Document = {}
        if kind.id_prefix:
            shown["id"] = stored.id
        shown["uri"] = self.uri(kind, stored)
        if kind.parent is not None and kind.id_prefix:
            shown[kind.parent.field] = stored.parent
        for each, is_as_kept in _fields(kind):
            if is_as_kept:
                shown[each.name] = stored.body.get(each.name)
            else:
                self._place(kind, shown, each, stored.body.get(each.name), stored.id)
        for name, value in {**default_outputs(kind), **stored.body}.items():
            # A field that answers show under another name is not shown under its own.
            if name not in shown and not name.startswith("_") and name not in kind.by_name:
                shown[name] = self.resolve_refs(value)
        shown.update(children)
        if listed:
            for name in not_listed(kind):
                shown.pop(name, None)
        return self._drop_empty(shown)

    def _drop_empty(self, shown: Document) -> Document:
        """A sparse answer: without the fields that hold an empty text. Maps of the user's are no fields."""
        return {name: value for name, value in shown.items() if value != ""} if self._sparse else shown

    def module(self, kind: Kind, field: Field, value: Json, owner: str) -> Document:
        shown: Document = {}
        for each in field.fields:
            self._place(kind, shown, each, value.get(each.name), owner)
        if field.name == "saml":
            shown.update(self._saml(owner))
        if kind.name == "HTTPSEdge" and field.name == "tls_termination":
            shown["terminate_at"] = "edge"
        return self._drop_empty(shown)

    def _place(self, kind: Kind, shown: Document, field: Field, value: Json, owner: str) -> None:
        if field.read_as is None:
            shown[field.name] = self._render_value(kind, field, value, owner)
            return
        name, dot, _ = field.read_as.path.partition(".")
        if not dot:
            return
        if name.endswith("[]"):
            shown[name[:-2]] = [self.ref(each) for each in value or []]
        else:
            shown[name] = self.ref(value) if value else None

    def _render_value(self, kind: Kind, field: Field, value: Json, owner: str) -> Json:
        if field.name in _REDACTED.get(kind.name, ()):
            return ""
        if not value and field.name in _NULL_WHEN_EMPTY.get(kind.name, ()):
            return None
        if field.shape is Shape.OBJECT and value is not None:
            return self.module(kind, field, value, owner)
        return value

    def _saml(self, route: str) -> Document:
        base = SAML_BASE.format(base=self._domain, route=route)
        return {
            "entity_id": base,
            "assertion_consumer_service_url": f"{base}/acs",
            "single_logout_url": f"{base}/slo",
            "request_signing_certificate_pem": self._saml_certificate(),
            "metadata_url": base,
            "idp_metadata_url": "",
        }

    def resolve_refs(self, value: Any) -> Json:
        """A derived value with its references spelt out."""
        if isinstance(value, dict):
            if set(value) == {_REF}:
                return self.ref(value[_REF])
            return {key: self.resolve_refs(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve_refs(item) for item in value]
        return value


@cache
def _fields(kind: Kind) -> tuple[tuple[Field, bool], ...]:
    """Those that are shown, and whether as they are kept."""
    special = _REDACTED.get(kind.name, set()) | _NULL_WHEN_EMPTY.get(kind.name, set())
    return tuple(
        (field, field.read_as is None and field.shape is not Shape.OBJECT and field.name not in special)
        for field in bodies.fields(kind)
        if is_shown(kind, field)
    )


def is_shown(kind: Kind, field: Field) -> bool:
    return field.name not in _WRITE_ONLY.get(kind.name, ())


def not_listed(kind: Kind) -> set[str]:
    """Keys that the answers to a get and an update have, and lists and creates have not."""
    return _NOT_LISTED.get(kind.name, set())


@cache
def default_outputs(kind: Kind) -> Mapping[str, Json]:
    """The keys that every answer has besides the declared fields, with what stands there when nothing is known."""
    keys = dict(_UNSET.get(kind.name, {}))
    for name, info in kind.read.model_fields.items():
        default = info.get_default(call_default_factory=True)
        keys.setdefault(name, default.model_dump() if isinstance(default, BaseModel) else default)
    return keys
