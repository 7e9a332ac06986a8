"""Generates the certificates and keys that this example refers to, in `pki/`.

python certificates.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PEM = serialization.Encoding.PEM
_USAGES = ("key_encipherment", "content_commitment", "data_encipherment", "key_agreement", "encipher_only")


def _certificate(common_name: str, *, is_authority: bool) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC).replace(microsecond=0)
    usages = dict.fromkeys((*_USAGES, "decipher_only"), False)
    usages |= {"digital_signature": not is_authority, "key_cert_sign": is_authority, "crl_sign": is_authority}
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usages), critical=True)
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(common_name)]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return key, builder.sign(key, hashes.SHA256())


def write_authority(directory: Path) -> None:
    _, certificate = _certificate("Partners CA", is_authority=True)
    (directory / "partners-ca.pem").write_bytes(certificate.public_bytes(PEM))


def write_server_certificate(directory: Path) -> None:
    key, certificate = _certificate("payments.example.com", is_authority=False)
    (directory / "payments.pem").write_bytes(certificate.public_bytes(PEM))
    secret = directory / "payments.key"
    secret.touch(mode=0o600)
    secret.write_bytes(
        key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def write_ssh_key(directory: Path, name: str) -> None:
    line = (
        ed25519.Ed25519PrivateKey.generate()
        .public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    (directory / f"{name}.pub").write_bytes(line + f" {name}\n".encode())


def write_all(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    write_authority(directory)
    write_server_certificate(directory)
    write_ssh_key(directory, "fleet")
    write_ssh_key(directory, "bastion")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pki")
