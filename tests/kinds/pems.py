"""Certificates and keys for tests, each created once in a run."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID


@cache
def _key(called: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def private_key(called: str = "a", passphrase: bytes | None = None) -> str:
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return (
        _key(called)
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        .decode("ascii")
    )


@cache
def certificate(called: str = "a", *, ca: bool | None = False, serial: int = 1, until: int = 2040) -> str:
    """A self-signed certificate, valid until the begin of a year; `ca=None` omits the basic constraints."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(_key(called).public_key())
        .serial_number(serial)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(until, 1, 1, tzinfo=UTC))
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    return builder.sign(_key(called), hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")


@cache
def ssh_key(comment: str = "") -> str:
    public = ed25519.Ed25519PrivateKey.generate().public_key()
    line = public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode("ascii")
    return f"{line} {comment}".strip()


def public_pem(called: str = "a") -> str:
    return (
        _key(called)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode("ascii")
    )


def saml(entity_id: str = "https://idp.test") -> str:
    """Metadata of an identity provider."""
    role = '<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"/>'
    xmlns = "urn:oasis:names:tc:SAML:2.0:metadata"
    return f'<EntityDescriptor xmlns="{xmlns}" entityID="{entity_id}">{role}</EntityDescriptor>'
