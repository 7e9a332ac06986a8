"""A certificate authority for tests, and servers with its certificates."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@cache
def _key(_owner: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _sign(subject: str, issuer: str, *, days: int, is_authority: bool) -> x509.Certificate:
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(_key(subject).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(subject)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(_key(subject).public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(_key(issuer).public_key()), critical=False)
        .sign(_key(issuer), hashes.SHA256())
    )


def authority(folder: Path) -> Path:
    """A file for SSL_CERT_FILE: a client with it trusts the certificates of `server_context`."""
    file = folder / "authority.pem"
    file.write_bytes(
        _sign("authority", "authority", days=1, is_authority=True).public_bytes(serialization.Encoding.PEM)
    )
    return file


def server_context(
    folder: Path, name: str = "localhost", *, days: int = 1, issuer: str = "authority"
) -> ssl.SSLContext:
    """The TLS context of a server. Its certificate has expired if `days` are negative; it may be its own issuer."""
    file = folder / "server.pem"
    file.write_bytes(
        _sign(name, issuer, days=days, is_authority=False).public_bytes(serialization.Encoding.PEM)
        + _key(name).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
