"""Certificates that the sandbox issues."""

from datetime import UTC, datetime

from cryptography import x509

from reconciler.sandbox.base import certificates


def test_all_issued_certificates_share_one_key() -> None:
    """An RSA key of its own for each would make a list of a hundred domains too slow."""
    first, second = (
        x509.load_pem_x509_certificate(certificates.issue(domain, "rsa", datetime.now(UTC)).encode()) for domain in "ab"
    )
    assert first.subject != second.subject
    assert first.public_key() == second.public_key()
