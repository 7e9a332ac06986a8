"""Renders stored documents as response bodies.

A document holds fields under their names in requests; `ReadAs` gives their place in responses. Derived fields are
stored beside them, references as `ref(id)`. Names that begin with an underscore are never returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from reconciler.model.fields.field import Field, Shape
from reconciler.model.fields.form import Form
from reconciler.model.kind import Kind
from reconciler.model.value import Json
from reconciler.sandbox.base.database import Document, Stored
from reconciler.sandbox.base.ids import prefix_of
from reconciler.sandbox.wire import bodies

_REF = "$ref"

# Fields that are never returned. The public service returns all others, including the secrets of webhooks.
_WRITE_ONLY = {
    "TLSCertificate": {"private_key_pem"},
    "Secret": {"value"},
    "SSHCertificateAuthority": {"private_key_type", "elliptic_curve", "key_size"},
}
# Fields that are returned as an empty text.
_REDACTED = {
    "EventDestination": {"api_key", "client_secret", "cloud_secret_access_key"},
    "ReservedDomain": {"region"},  # domains are served in all regions
}
# Fields that are returned as null if they are empty.
_NULL_WHEN_EMPTY = {
    "TCPEdge": {"hostports"},
    "TLSEdge": {"hostports"},
    "HTTPSEdge": {"hostports"},
    "HTTPResponseBackend": {"headers"},
    "ReservedDomain": {"resolves_to"},
}
# Fields that responses do not have while they are empty.
_OMITTED_WHEN_EMPTY = {"EventSource": {"fields", "filter"}}
# Fields that lists, and the response to a create, omit.
_NOT_LISTED = {"ReservedAddress": {"endpoint_configuration"}}

# Kinds whose objects have a `uri` without scheme and host.
_RELATIVE_URIS = {"AgentIngress"}

# Keys that strict clients of the public service require, and that the sandbox never sets.
_UNSET: dict[str, Document] = {
    "TunnelGroupBackend": {"tunnels": []},
}

# Id prefixes without a collection in the sandbox, and the paths of their objects.
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
    """A derived reference, as it is stored in documents."""
    return {_REF: identity} if identity else None


# Texts that the platform returns even if they are empty.
_KEPT_EMPTY = frozenset(
    {
        "cookie_prefix",
        "idp_metadata_url",
        "subject_common_name",
        "subject_country",
        "subject_locality",
        "subject_organization",
        "subject_organizational_unit",
        "subject_province",
        "version",
    }
)


class View:
    """Renders responses for one base address, the scheme, host and port that the client used."""

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
        # Users have no path in the API.
        return {"id": identity, "uri": f"{self.base}{path}/{identity}" if path else ""}

    def uri(self, kind: Kind, stored: Stored) -> str:
        path = kind.path
        if kind.parent is not None:
            path = path.replace(f"{{{kind.parent.field}}}", stored.parent)
        return f"{'' if kind.name in _RELATIVE_URIS else self.base}{path}/{stored.id}"

    def render(
        self, kind: Kind, stored: Stored, children: Mapping[str, list[Json]], *, listed: bool = False
    ) -> Document:
        """The response of an object; `children` are embedded unchanged."""
        if "_raw" in stored.body:
            absent = {**bodies.complete(kind.name, bodies.fields(kind), {}), **default_outputs(kind)}
            raw = {**absent, **self.resolve_refs(stored.body["_raw"]), "id": stored.id, "uri": self.uri(kind, stored)}
            return self._drop_empty(raw)
        response: Document = {}
        if kind.id_prefix:
            response["id"] = stored.id
        response["uri"] = self.uri(kind, stored)
        if kind.parent is not None and kind.id_prefix:
            response[kind.parent.field] = stored.parent
        for field, is_as_stored in _fields(kind):
            if is_as_stored:
                response[field.name] = stored.body.get(field.name)
            else:
                self._place(kind, response, field, stored.body.get(field.name), stored.id)
        for name, value in {**default_outputs(kind), **stored.body}.items():
            # A field that is returned under another name is not returned under its own.
            if name not in response and not name.startswith("_") and name not in kind.by_name:
                response[name] = self.resolve_refs(value)
        if (bound := stored.body.get("_binding")) is not None:  # of an operator of Kubernetes
            response["binding"] = {"endpoint_selectors": response["binding"]["endpoint_selectors"], **bound}
        response.update(children)
        for name in sparse_keys(kind):
            if not response[name]:
                del response[name]
        if listed:
            for name in not_listed(kind):
                response.pop(name, None)
        return self._drop_empty(response)

    def _drop_empty(self, response: Document) -> Document:
        """Removes the fields with an empty text from a sparse response. Values inside maps are not removed."""
        if not self._sparse:
            return response
        return {name: value for name, value in response.items() if value != "" or name in _KEPT_EMPTY}

    def module(self, kind: Kind, field: Field, value: Json, owner: str) -> Document:
        response: Document = {}
        for inner in field.fields:
            self._place(kind, response, inner, value.get(inner.name), owner)
        if field.name == "saml":
            response.update(self._saml(owner))
        if kind.name == "HTTPSEdge" and field.name == "tls_termination":
            response["terminate_at"] = "edge"
        return self._drop_empty(response)

    def _place(self, kind: Kind, response: Document, field: Field, value: Json, owner: str) -> None:
        if field.read_as is None:
            response[field.name] = self._render_value(kind, field, value, owner)
            return
        name, dot, _ = field.read_as.path.partition(".")
        if not dot:
            return
        if name.endswith("[]"):
            response[name[:-2]] = [self.ref(identity) for identity in value or []]
        else:
            response[name] = self.ref(value) if value else None

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
        """A derived value with its references as Ref objects."""
        if isinstance(value, dict):
            if set(value) == {_REF}:
                return self.ref(value[_REF])
            return {key: self.resolve_refs(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve_refs(item) for item in value]
        return value


@cache
def _fields(kind: Kind) -> tuple[tuple[Field, bool], ...]:
    """The fields that are returned, and whether they are returned as they are stored."""
    special = _REDACTED.get(kind.name, set()) | _NULL_WHEN_EMPTY.get(kind.name, set())
    return tuple(
        (field, field.read_as is None and field.shape is not Shape.OBJECT and field.name not in special)
        for field in bodies.fields(kind)
        if is_shown(kind, field)
    )


def is_shown(kind: Kind, field: Field) -> bool:
    return field.name not in _WRITE_ONLY.get(kind.name, ())


def not_listed(kind: Kind) -> set[str]:
    """The keys that responses to a get and an update have, but lists and creates have not."""
    return _NOT_LISTED.get(kind.name, set())


def sparse_keys(kind: Kind) -> set[str]:
    """The keys that responses have only while they have a value."""
    return _OMITTED_WHEN_EMPTY.get(kind.name, set())


@cache
def default_outputs(kind: Kind) -> Mapping[str, Json]:
    """The keys that every response has besides the declared fields, with their values when not set."""
    keys = dict(_UNSET.get(kind.name, {}))
    for name, info in kind.read.model_fields.items():
        default = None if info.is_required() else info.default
        keys.setdefault(name, default.model_dump() if isinstance(default, Form) else default)
    return keys
