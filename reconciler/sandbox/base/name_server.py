"""Asks a name server for the DNS records that a certificate requires. Needs dnspython, the extra `dns`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.sandbox.base.database import Document
from reconciler.sandbox.base.provisioning import DNS_ERROR, INTERNAL_ERROR

if TYPE_CHECKING:
    import dns.message

_PATIENCE = 1.0  # seconds for an answer, in which the sandbox serves no other request


def find_missing(doc: Document, nameserver: str) -> tuple[str, str] | None:
    """The error code and text for the first record of a domain or agent ingress that the name server does not have."""
    import dns.exception

    try:
        for owner, type_, values in list_required(doc):
            found = _ask(nameserver, owner, type_)
            if (type_ == "NS" and found != values) or not values <= found:
                return DNS_ERROR, _describe(owner, type_, values, found)
    except (OSError, dns.exception.DNSException) as error:
        return INTERNAL_ERROR, f"The name server {nameserver} gives no answer: {type(error).__name__}."
    return None


def list_required(doc: Document) -> list[tuple[str, str, frozenset[str]]]:
    """The owner, type and values of the records that the certificate of a domain or agent ingress requires."""
    host = doc["domain"]
    required = [(host, "NS", frozenset(doc["ns_targets"]))] if "ns_targets" in doc else []
    if doc.get("cname_target"):
        required.append((host, "CNAME", frozenset([doc["cname_target"]])))
    if doc.get("acme_challenge_cname_target"):
        owner = f"_acme-challenge.{host.removeprefix('*.')}"
        required.append((owner, "CNAME", frozenset([doc["acme_challenge_cname_target"]])))
    return required


def _describe(owner: str, type_: str, values: frozenset[str], found: frozenset[str]) -> str:
    must = f"must be {', '.join(sorted(values))}"
    if not found:
        return f"{owner} has no {type_} record; it {must}."
    return f"The {type_} record of {owner} is {', '.join(sorted(found))}; it {must}."


def _ask(nameserver: str, owner: str, type_: str) -> frozenset[str]:
    """The values of the records of this owner and type. NS records are also found in a referral."""
    import dns.message
    import dns.name
    import dns.query

    address, _, port = nameserver.rpartition(":")
    asked = dns.message.make_query(owner, type_)
    answer = dns.query.udp(asked, address.strip("[]"), port=int(port), timeout=_PATIENCE)
    return _read_values(answer, owner, type_)


def _read_values(answer: dns.message.Message, owner: str, type_: str) -> frozenset[str]:
    import dns.name
    import dns.rdatatype

    name, wanted = dns.name.from_text(owner), dns.rdatatype.from_text(type_)
    return frozenset(
        item.target.to_text(omit_final_dot=True).lower()
        for records in (*answer.answer, *answer.authority)
        if records.rdtype == wanted and (records.name == name or type_ == "CNAME")
        for item in records
    )
