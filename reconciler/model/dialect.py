"""Dialects of the API as data: address, version header, field names and retired kinds of the public platform.

Manifests, plans and the store use the field names of the specification. The API client and the sandbox translate
requests and responses with the dialect of the profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from msgspec import Struct

from reconciler.model.value import Json, Value

Name = Literal["specification", "ngrok"]
ANY: Final = "*"  # in a place: any member


class FieldRename(Struct, frozen=True):
    """One field with another name, in the objects of a collection, inside the member at the path `place`."""

    collection: str
    place: tuple[str, ...]
    name: str
    wire_name: str


class OtherCollection(Struct, frozen=True):
    """A collection with another path, and other ids of the same objects, on the wire: their prefix differs."""

    path: str
    list_key: str
    id_prefix: str
    wire_path: str
    wire_list_key: str
    wire_id_prefix: str

    def holds(self, path: str) -> bool:
        """Whether a path of the specification is that of the collection or of one of its objects."""
        return path == self.path or path.startswith((f"{self.path}/", f"{self.path}?"))

    def to_wire(self, path: str) -> str:
        """The path on the wire, of the collection or of one of its objects."""
        rest = path.removeprefix(self.path)
        if rest.startswith(f"/{self.id_prefix}"):
            rest = f"/{self.wire_id_prefix}{rest.removeprefix(f'/{self.id_prefix}')}"
        return self.wire_path + rest

    def from_wire(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """An object, or a page of objects, with the ids and the list key of the specification."""
        read = {self.list_key if key == self.wire_list_key else key: value for key, value in body.items()}
        items = read.get(self.list_key)
        if isinstance(items, list):
            read[self.list_key] = [self.from_wire(item) if isinstance(item, dict) else item for item in items]
        if isinstance(read.get("id"), str):
            read["id"] = self.to_specification_id(read["id"])
        return read

    def to_specification_id(self, identity: str) -> str:
        """The id with the prefix of the specification."""
        if not identity.startswith(self.wire_id_prefix):
            return identity
        return self.id_prefix + identity.removeprefix(self.wire_id_prefix)


@dataclass(frozen=True)
class Dialect:
    """One dialect of the API.

    base_url             the default base address
    version              the header that selects the API version, and its value
    requests_per_minute  the account's limit in any 60 seconds; 0: no known limit
    spellings            fields with another name on the wire
    collections          collections with another path and other ids on the wire
    retired              kinds that the platform no longer offers
    retired_code         the platform's error code for these kinds
    """

    name: Name
    base_url: str | None
    version: tuple[str, str]
    requests_per_minute: int = 0
    spellings: tuple[FieldRename, ...] = ()
    collections: tuple[OtherCollection, ...] = ()
    retired: frozenset[str] = frozenset()
    retired_code: str = ""
    _collections: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_collections", tuple({spelling.collection for spelling in self.spellings}))

    def wire_path(self, path: str) -> str:
        """The path of a request, from that of the specification."""
        collection = next((collection for collection in self.collections if collection.holds(path)), None)
        return path if collection is None else collection.to_wire(path)

    def translate_request(self, path: str, body: Mapping[str, Value]) -> dict[str, Value]:
        """The body of a request, with the field names of this dialect."""
        translated = dict(body)
        for field_rename in self._of(path):
            translated = _rename_member(translated, field_rename.place, field_rename.name, field_rename.wire_name)
        return translated

    def translate_response(self, path: str, body: Json) -> Json:
        """An object, or a page of objects, with the field names and ids of the specification."""
        for collection in self.collections:
            if collection.holds(path) and isinstance(body, dict):
                return collection.from_wire(body)
        spellings = list(self._of(path))
        if not spellings or not isinstance(body, dict):
            return body
        found: dict[str, Any] = {
            key: [self.translate_response(path, item) for item in value] if _is_page(value) else value
            for key, value in body.items()
        }
        for spelling in spellings:
            found = _rename_member(found, spelling.place, spelling.wire_name, spelling.name)
        return found

    def render_response(self, path: str, body: Json) -> Json:
        """The reverse of `translate_response`, for the sandbox."""
        spellings = list(self._of(path))
        if not spellings or not isinstance(body, dict):
            return body
        found: dict[str, Any] = {
            key: [self.render_response(path, item) for item in value] if _is_page(value) else value
            for key, value in body.items()
        }
        return self.translate_request(path, found)

    def _of(self, path: str) -> Iterator[FieldRename]:
        if any(path.startswith(collection) for collection in self._collections):
            for spelling in self.spellings:
                if path == spelling.collection or path.startswith(f"{spelling.collection}/"):
                    yield spelling


def _is_page(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and "id" in item for item in value)


def _rename_member(value: Mapping[str, Any], place: tuple[str, ...], old: str, new: str) -> dict[str, Any]:
    """The object with the member `old` at `place` renamed to `new`, in the same order."""
    if not place:
        return {new if key == old else key: item for key, item in value.items()}
    head, *rest = place
    return {
        key: _rename_member(item, tuple(rest), old, new) if head in (key, ANY) and isinstance(item, dict) else item
        for key, item in value.items()
    }


def to_specification_id(identity: str, id_prefix: str) -> str:
    """The id of an object in the spelling of the specification, with this prefix, from that of any dialect."""
    for collection in (collection for dialect in DIALECTS.values() for collection in dialect.collections):
        if collection.id_prefix == id_prefix:
            identity = collection.to_specification_id(identity)
    return identity


_DESTINATIONS = "/event_destinations"
_CREDS = ("target", ANY, "auth", "creds")

SPECIFICATION: Final = Dialect("specification", base_url=None, version=("Service-Version", "2"))
NGROK: Final = Dialect(
    "ngrok",
    base_url="https://api.ngrok.com",
    version=("Ngrok-Version", "2"),
    requests_per_minute=120,
    spellings=(
        FieldRename(_DESTINATIONS, _CREDS, "cloud_access_key_id", "aws_access_key_id"),
        FieldRename(_DESTINATIONS, _CREDS, "cloud_secret_access_key", "aws_secret_access_key"),
        FieldRename(_DESTINATIONS, ("target", ANY), "tags", "ddtags"),
        FieldRename(_DESTINATIONS, ("target", ANY), "site", "ddsite"),
        FieldRename(_DESTINATIONS, ("target",), "delivery", "firehose"),
        FieldRename(_DESTINATIONS, ("target",), "stream", "kinesis"),
        FieldRename(_DESTINATIONS, ("target",), "logs", "cloudwatch_logs"),
        FieldRename(_DESTINATIONS, ("target",), "metrics", "datadog"),
        FieldRename(_DESTINATIONS, ("target",), "ingestion", "azure_logs_ingestion"),
        FieldRename("/endpoints", (), "upstream_proto", "upstream_protocol"),
    ),
    collections=(OtherCollection("/bot_users", "bot_users", "bot_", "/service_users", "service_users", "service_"),),
    retired=frozenset(
        {
            "FailoverBackend",
            "HTTPResponseBackend",
            "HTTPSEdge",
            "HTTPSEdgeRoute",
            "StaticBackend",
            "TCPEdge",
            "TLSEdge",
            "TunnelGroupBackend",
            "WeightedBackend",
        }
    ),
    retired_code="ERR_NGROK_7008",
)
DIALECTS: Final[Mapping[Name, Dialect]] = {dialect.name: dialect for dialect in (SPECIFICATION, NGROK)}
