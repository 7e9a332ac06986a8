"""Validation of certificates, certificate authorities and SSH certificates."""

from __future__ import annotations

from itertools import pairwise

from reconciler.sandbox.base import certificates, derive, vocabulary
from reconciler.sandbox.base.draft import Draft, Rule, World
from reconciler.sandbox.wire import refusal
from reconciler.sandbox.wire.refusal import Cause

REQUIRED: dict[str, dict[str, Cause]] = {
    "SSHHostCertificate": {
        "ssh_certificate_authority_id": refusal.SSH_AUTHORITY_MISSING,
        "public_key": refusal.HOST_KEY_MISSING,
    },
    "SSHUserCertificate": {
        "ssh_certificate_authority_id": refusal.SSH_AUTHORITY_MISSING,
        "public_key": refusal.HOST_KEY_MISSING,
    },
    "CertificateAuthority": {"ca_pem": refusal.NO_CA_PEM},
    "TLSCertificate": {"certificate_pem": refusal.NO_CERTIFICATE_PEM, "private_key_pem": refusal.NO_KEY_PEM},
}


_LARGEST = 65536  # bytes of a ca_pem; the platform's limit is not documented


def _check_authority(draft: Draft, world: World) -> None:
    if not draft.is_new:
        return
    if len(draft.doc["ca_pem"].encode()) > _LARGEST:
        raise refusal.AUTHORITY_SIZE(limit=_LARGEST)
    try:
        found = certificates.certificates(draft.doc["ca_pem"])
        certificates.authority(found[0])
    except ValueError as error:
        raise refusal.NOT_PEM(why=error) from error
    if len(found) > 1:
        raise refusal.SEVERAL_AUTHORITIES()
    if not certificates.is_authority(found[0]):
        raise refusal.NOT_AN_AUTHORITY()
    draft.doc["ca_pem"] = certificates.end_with_newline(draft.doc["ca_pem"])


def _check_certificate(draft: Draft, world: World) -> None:
    if not draft.is_new:
        return
    if "PRIVATE KEY-----" in draft.doc["certificate_pem"]:
        raise refusal.CERTIFICATE_IS_KEY()
    if "BEGIN CERTIFICATE-----" in draft.doc["private_key_pem"]:
        raise refusal.KEY_IS_CERTIFICATE()
    try:
        chain = certificates.certificates(draft.doc["certificate_pem"])
        leaf = chain[0]
        certificates.certificate(leaf)
    except ValueError as error:
        raise refusal.CERTIFICATE_INVALID(why=error) from error
    try:
        key = certificates.private_key(draft.doc["private_key_pem"])
    except TypeError as error:
        raise refusal.ENCRYPTED_KEY() from error
    except ValueError as error:
        raise refusal.PRIVATE_KEY_INVALID(why=error) from error
    if not certificates.is_key_of(key, leaf):
        raise refusal.KEY_MISMATCH()
    if any(below.issuer != above.subject for below, above in pairwise(chain)):
        raise refusal.CHAIN_ORDER()
    draft.doc["certificate_pem"] = certificates.end_with_newline(draft.doc["certificate_pem"])


def _check_ssh_authority(draft: Draft, world: World) -> None:
    doc = draft.doc
    doc["private_key_type"] = kind_of_key = doc["private_key_type"] or "ed25519"
    refusal.check_choice(kind_of_key, ("rsa", "ecdsa", "ed25519"), refusal.SSH_KEY_TYPE)
    if doc["elliptic_curve"] and kind_of_key != "ecdsa":
        raise refusal.CURVE_OF_ECDSA(type=kind_of_key)
    if doc["elliptic_curve"] and certificates.curve(doc["elliptic_curve"]) is None:
        raise refusal.CURVE(value=doc["elliptic_curve"])
    if doc["key_size"] and kind_of_key != "rsa":
        raise refusal.KEY_SIZE_OF_RSA(type=kind_of_key)
    if doc["key_size"] and doc["key_size"] not in (2048, 4096):
        raise refusal.KEY_SIZE(value=doc["key_size"])


def _check_ssh_certificate(draft: Draft, world: World) -> None:
    doc = draft.doc
    for name in ("valid_after", "valid_until"):
        if doc[name]:
            try:
                vocabulary.instant(doc[name])
            except ValueError as error:
                raise refusal.BAD_TIMESTAMP(field=name, value=doc[name]) from error
    since, until = derive.period(draft, world.database.now())
    if until <= since:
        raise (refusal.NO_USER_DURATION if draft.kind.name == "SSHUserCertificate" else refusal.NOT_A_DURATION)()
    # The period that was compared is signed, even if a second passes in between.
    doc["valid_after"], doc["valid_until"] = certificates.stamp(since), certificates.stamp(until)
    if len(doc["principals"]) > certificates.MOST_PRINCIPALS:
        raise refusal.PRINCIPALS(most=certificates.MOST_PRINCIPALS, count=len(doc["principals"]))
    try:
        certificates.key_type(certificates.ssh_public_key(doc["public_key"]))
    except ValueError as error:
        raise refusal.HOST_KEY_INVALID(why=error) from error


RULES: dict[str, Rule] = {
    "CertificateAuthority": _check_authority,
    "TLSCertificate": _check_certificate,
    "SSHCertificateAuthority": _check_ssh_authority,
    "SSHHostCertificate": _check_ssh_certificate,
    "SSHUserCertificate": _check_ssh_certificate,
}
