"""X.509 and SSH certificates of the sandbox: reads uploaded certificates and keys, issues and signs its own.

Functions raise ValueError for input that cannot be read, with a message for the client.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    SSHCertificateBuilder,
    SSHCertificateType,
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reconciler.sandbox.base.database import Document

LIFETIME = timedelta(days=90)  # of a certificate that the platform issues
MOST_PRINCIPALS = 256  # of an SSH certificate: the limit of OpenSSH

_USAGES = {
    "digital_signature": "DigitalSignature",
    "content_commitment": "ContentCommitment",
    "key_encipherment": "KeyEncipherment",
    "data_encipherment": "DataEncipherment",
    "key_agreement": "KeyAgreement",
    "key_cert_sign": "CertSign",
    "crl_sign": "CRLSign",
}
_EXTENDED = {
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE: "Any",
    ExtendedKeyUsageOID.SERVER_AUTH: "ServerAuth",
    ExtendedKeyUsageOID.CLIENT_AUTH: "ClientAuth",
    ExtendedKeyUsageOID.CODE_SIGNING: "CodeSigning",
    ExtendedKeyUsageOID.EMAIL_PROTECTION: "EmailProtection",
    ExtendedKeyUsageOID.TIME_STAMPING: "TimeStamping",
    ExtendedKeyUsageOID.OCSP_SIGNING: "OCSPSigning",
}
_CURVES: dict[str, type[ec.EllipticCurve]] = {"256": ec.SECP256R1, "384": ec.SECP384R1, "521": ec.SECP521R1}


def stamp(moment: datetime) -> str:
    """A timestamp in the platform's form: RFC 3339, UTC, whole seconds, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- X.509 ------------------------------------------------------------------------------------------------------------


def certificates(pem: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("it contains no readable PEM certificate") from error


def end_with_newline(pem: str) -> str:
    """The PEM text as the platform stores it, with exactly one line feed at the end."""
    return f"{pem.rstrip()}\n"


def is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False


def authority(certificate: x509.Certificate) -> Document:
    """The derived fields of a certificate authority."""
    return {
        "subject_common_name": _name(certificate.subject, NameOID.COMMON_NAME),
        "not_before": stamp(certificate.not_valid_before_utc),
        "not_after": stamp(certificate.not_valid_after_utc),
        "key_usages": _read_key_usages(certificate),
        "extended_key_usages": _read_extended_key_usages(certificate),
    }


def certificate(leaf: x509.Certificate) -> Document:
    """The derived fields of a TLS certificate."""
    return {
        **authority(leaf),
        "subject_organization": _name(leaf.subject, NameOID.ORGANIZATION_NAME),
        "subject_organizational_unit": _name(leaf.subject, NameOID.ORGANIZATIONAL_UNIT_NAME),
        "subject_locality": _name(leaf.subject, NameOID.LOCALITY_NAME),
        "subject_province": _name(leaf.subject, NameOID.STATE_OR_PROVINCE_NAME),
        "subject_country": _name(leaf.subject, NameOID.COUNTRY_NAME),
        "subject_alternative_names": _alternative_names(leaf),
        "issuer_common_name": _name(leaf.issuer, NameOID.COMMON_NAME),
        "serial_number": _octets(leaf.serial_number),
        "private_key_type": key_type(leaf.public_key()),
        "issued_at": None,
    }


def _octets(number: int) -> str:
    """A number in hexadecimal, two digits for each octet, with leading zeros."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big").hex()


def key_type(key: Any) -> str:
    if isinstance(key, (rsa.RSAPublicKey, rsa.RSAPrivateKey)):
        return "rsa"
    if isinstance(key, (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey)):
        return "ecdsa"
    if isinstance(key, (ed25519.Ed25519PublicKey, ed25519.Ed25519PrivateKey)):
        return "ed25519"
    raise ValueError("a key must be rsa, ecdsa or ed25519")


def _name(name: x509.Name, oid: x509.ObjectIdentifier) -> str:
    found = name.get_attributes_for_oid(oid)
    return str(found[0].value) if found else ""


def _read_key_usages(certificate: x509.Certificate) -> list[str]:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return []
    return [label for name, label in _USAGES.items() if getattr(usage, name)]


def _read_extended_key_usages(certificate: x509.Certificate) -> list[str]:
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return []
    return [_EXTENDED.get(usage, usage.dotted_string) for usage in usages]


def _alternative_names(certificate: x509.Certificate) -> Document:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return {"dns_names": [], "ips": []}
    return {
        "dns_names": names.get_values_for_type(x509.DNSName),
        "ips": [str(ip) for ip in names.get_values_for_type(x509.IPAddress)],
    }


def private_key(pem: str) -> Any:
    """The private key in a PEM text. Raises TypeError if it is encrypted."""
    try:
        return load_pem_private_key(pem.encode(), password=None)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("it contains no readable PEM private key") from error


def is_key_of(key: Any, leaf: x509.Certificate) -> bool:
    return _spki(key.public_key()) == _spki(leaf.public_key())


def _spki(key: Any) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


@cache
def _key_of_all(kind_of_key: str) -> Any:
    """One key for all issued certificates: generating an RSA key would block all requests for 0.25 seconds."""
    return rsa.generate_private_key(65537, 2048) if kind_of_key == "rsa" else ec.generate_private_key(ec.SECP256R1())


def issue(domain: str, kind_of_key: str, now: datetime) -> str:
    """A PEM certificate for the domain, as automatic certificate management obtains it. Its key is never returned."""
    key = _key_of_all(kind_of_key)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, domain[:64])])  # 64: the limit of a common name
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Sandbox Issuing CA")])
    usage = x509.KeyUsage(True, False, kind_of_key == "rsa", False, False, False, False, False, False)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=False)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return signed.public_bytes(Encoding.PEM).decode()


def sign_request(csr: str, now: datetime) -> Document:
    """A certificate for a PEM request, with its life. The request is valid (`is_request`)."""
    request = x509.load_pem_x509_csr(csr.encode())
    key = _key_of_all("ecdsa")
    until = now + LIFETIME
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Sandbox Kubernetes CA")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(issuer)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(until)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return {
        "cert": signed.public_bytes(Encoding.PEM).decode(),
        "not_before": stamp(now),
        "not_after": stamp(until),
    }


def is_request(csr: str) -> bool:
    """Whether a text is a PEM request with a valid signature."""
    try:
        return x509.load_pem_x509_csr(csr.encode()).is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        return False


# --- SSH --------------------------------------------------------------------------------------------------------------


def ssh_public_key(text: str, *, pem: bool = False) -> Any:
    """The public key in a text in authorized_keys format; with `pem` also in PEM."""
    if not text.isascii():
        raise ValueError("it is not ASCII")
    is_pem = pem and "-----BEGIN" in text
    if not is_pem and len(text.strip().splitlines()) > 1:
        raise ValueError("it has more than one line")
    try:
        key = load_pem_public_key(text.encode()) if is_pem else load_ssh_public_key(text.strip().encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("it cannot be read") from error
    if isinstance(key, ec.EllipticCurvePublicKey) and not isinstance(key.curve, tuple(_CURVES.values())):
        raise ValueError("SSH has no keys on its curve")
    return key


def ssh_line(key: Any) -> str:
    """The key in authorized_keys format without a comment, which identifies it."""
    encoded: bytes = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return encoded.decode()


def curve(name: str) -> type[ec.EllipticCurve] | None:
    """The curve with a name such as `256`, `p384` or `P-521`; None for other names."""
    found = re.fullmatch(r"(?:nist)?p?-?(256|384|521)", name.lower())
    return _CURVES[found[1]] if found else None


def new_ssh_key(kind_of_key: str, elliptic_curve: str, size: int) -> tuple[str, str]:
    """A new private key in PEM, and its public key in authorized_keys format."""
    key: Any
    if kind_of_key == "rsa":
        key = rsa.generate_private_key(65537, size or 2048)
    elif kind_of_key == "ecdsa":
        key = ec.generate_private_key((curve(elliptic_curve) or ec.SECP256R1)())
    else:
        key = ed25519.Ed25519PrivateKey.generate()
    private: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private.decode(), ssh_line(key.public_key())


def sign_ssh(
    authority_pem: str,
    public_key: str,
    identity: str,
    principals: list[str],
    since: datetime,
    until: datetime,
    user: dict[str, dict[str, str]] | None = None,
) -> str:
    """Signs an SSH certificate and returns it in authorized_keys format.

    A host certificate, or with `user` a user certificate with these `critical_options` and `extensions`. Without
    principals the certificate is valid for all hosts or users.
    """
    builder = (
        SSHCertificateBuilder()
        .public_key(ssh_public_key(public_key))
        .type(SSHCertificateType.HOST if user is None else SSHCertificateType.USER)
        .key_id(identity.encode())
        .valid_after(int(since.timestamp()))
        .valid_before(int(until.timestamp()))
    )
    for name, value in (user or {}).get("critical_options", {}).items():
        builder = builder.add_critical_option(name.encode(), value.encode())
    for name, value in (user or {}).get("extensions", {}).items():
        builder = builder.add_extension(name.encode(), value.encode())
    if principals:
        builder = builder.valid_principals([principal.encode() for principal in principals])
    else:
        builder = builder.valid_for_all_principals()  # type: ignore[no-untyped-call]
    return builder.sign(load_pem_private_key(authority_pem.encode(), password=None)).public_bytes().decode()  # type: ignore[arg-type]
