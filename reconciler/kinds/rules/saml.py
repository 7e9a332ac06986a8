"""SAML metadata of an identity provider: checks offline what the platform checks when it stores it.

A rule returns None for a valid text, otherwise `problem; remedy`, which contains no part of the text.
"""

from __future__ import annotations

from typing import Any, Final
from xml.parsers import expat

_NAMESPACE: Final = "urn:oasis:names:tc:SAML:2.0:metadata"
_LARGEST: Final = 2**20  # characters; the metadata of one provider has a few thousand, that of a federation millions
_EXTRACT: Final = """xmllint --xpath '//*[local-name()="EntityDescriptor"][@entityID="ID"]' FILE"""


def metadata(text: str) -> str | None:
    """Exactly one EntityDescriptor, of an identity provider, in well-formed XML without a document type."""
    if len(text) > _LARGEST:
        return (
            f"has more than {_LARGEST:,} characters; supply the metadata of one identity provider: {_EXTRACT} "
            "extracts it from that of a federation"
        )
    reading = _Reading()
    try:
        reading.parse(text)
    except expat.ExpatError as error:
        return _explain(error)
    except _Refused as refused:
        return str(refused)
    except (ValueError, LookupError):  # LookupError: of an unknown encoding
        return "names an encoding in which it is not written; save it as UTF-8 and remove its XML declaration"
    return reading.find_problem()


class _Refused(Exception):
    """Stops the parser: the text is refused, whatever follows."""


class _Reading:
    """What the metadata contains: its root, entities, and the roles of the root."""

    def __init__(self) -> None:
        self._depth = 0
        self._root = ""
        self._has_id = False
        self._entities = 0
        self._roles: set[str] = set()

    def parse(self, text: str) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        # Metadata needs no document type, and the entities of one can grow without limit.
        parser.StartDoctypeDeclHandler = _refuse_document_type
        parser.Parse(text.encode(), True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        namespace, _, local = name.rpartition(" ")
        self._entities += local == "EntityDescriptor"
        if self._depth == 1:
            self._root = local if namespace == _NAMESPACE else f"{local} without the namespace"
            self._has_id = bool(attributes.get("entityID", "").strip())
        elif self._depth == 2 and namespace == _NAMESPACE:
            self._roles.add(local)

    def _end(self, name: str) -> None:
        self._depth -= 1

    def find_problem(self) -> str | None:
        if self._root == "EntitiesDescriptor":
            return (
                f"is the metadata of a federation, an EntitiesDescriptor with {self._entities:,} entities; supply the "
                f"one EntityDescriptor of your identity provider: {_EXTRACT}"
            )
        if self._root == "EntityDescriptor without the namespace":
            return f'is not SAML 2.0 metadata; its EntityDescriptor needs xmlns="{_NAMESPACE}"'
        if self._root != "EntityDescriptor":
            return "is not SAML metadata: its root element is no EntityDescriptor; supply the XML of the provider"
        if self._entities > 1:
            return "has an EntityDescriptor within another; supply exactly one"
        if not self._has_id:
            return "has no entityID; supply the metadata as the identity provider publishes it"
        if "IDPSSODescriptor" not in self._roles:
            of_service = ": it describes a service provider" if "SPSSODescriptor" in self._roles else ""
            return f"has no IDPSSODescriptor{of_service}; supply the metadata of the identity provider"
        return None


def _refuse_document_type(*_: Any) -> None:
    raise _Refused("declares a document type, which can contain entities; remove <!DOCTYPE …>")


def _explain(error: expat.ExpatError) -> str:
    what = expat.ErrorString(error.code)
    if error.code == expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]:
        return "contains no XML; supply the metadata as the identity provider publishes it"
    return (
        f"is not well-formed XML: {what}, at its line {error.lineno}, column {error.offset + 1}; supply it as the "
        "identity provider publishes it"
    )
