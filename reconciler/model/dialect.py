"""The dialects of the API, as data: all in which the public platform differs from the specification is written here.

Manifests, plans and the store know one spelling, that of the specification. Whoever sends or reads translates at the
wire, and asks nothing but its profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reconciler.model.value import Json, Value

Name = Literal["specification", "ngrok"]
ANY: Final = "*"  # in a place: whatever member is there


@dataclass(frozen=True, slots=True)
class FieldRename:
    """One name that differs, in the objects of a collection: inside the members that `place` leads through."""

    collection: str
    place: tuple[str, ...]
    ours: str
    theirs: str


@dataclass(frozen=True)
class Dialect:
    """
    base_url             where the platform is unless a project says otherwise
    version              the header that names the version of the API, and its value
    requests_per_minute  what an account may ask in any 60 seconds; 0: nothing is known of a limit
    spellings            names that differ on the wire
    retired              kinds that the platform no longer offers, and its words for that
    """

    name: Name
    base_url: str | None
    version: tuple[str, str]
    requests_per_minute: int = 0
    spellings: tuple[FieldRename, ...] = ()
    retired: frozenset[str] = frozenset()
    retired_code: str = ""
    _collections: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_collections", tuple({spelling.collection for spelling in self.spellings}))

    def translate_request(self, path: str, body: Mapping[str, Value]) -> dict[str, Value]:
        """A body as this platform spells it."""
        found = dict(body)
        for field_rename in self._of(path):
            found = _rename_member(found, field_rename.place, field_rename.ours, field_rename.theirs)
        return found

    def translate_response(self, path: str, body: Json) -> Json:
        """An object, or a page of them, as it is spelt here."""
        spellings = list(self._of(path))
        if not spellings or not isinstance(body, dict):
            return body
        found: dict[str, Any] = {
            key: [self.translate_response(path, each) for each in value] if _is_page(value) else value
            for key, value in body.items()
        }
        for spelling in spellings:
            found = _rename_member(found, spelling.place, spelling.theirs, spelling.ours)
        return found

    def render_response(self, path: str, body: Json) -> Json:
        """The reverse of `read`, for whoever stands in for the platform."""
        spellings = list(self._of(path))
        if not spellings or not isinstance(body, dict):
            return body
        found: dict[str, Any] = {
            key: [self.render_response(path, each) for each in value] if _is_page(value) else value
            for key, value in body.items()
        }
        return self.translate_request(path, found)

    def _of(self, path: str) -> Iterator[FieldRename]:
        if any(path.startswith(collection) for collection in self._collections):
            for spelling in self.spellings:
                if path == spelling.collection or path.startswith(f"{spelling.collection}/"):
                    yield spelling


def _is_page(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and "id" in each for each in value)


def _rename_member(value: Mapping[str, Any], place: tuple[str, ...], old: str, new: str) -> dict[str, Any]:
    """The members in their order, the one of that name under the other."""
    if not place:
        return {new if key == old else key: each for key, each in value.items()}
    head, *rest = place
    return {
        key: _rename_member(each, tuple(rest), old, new) if head in (key, ANY) and isinstance(each, dict) else each
        for key, each in value.items()
    }


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
