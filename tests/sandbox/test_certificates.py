"""Certificates that the sandbox issues."""

from cryptography import x509

from reconciler.sandbox.base import certificates, derive


def test_certificates_are_issued_with_one_key_for_all() -> None:
    """To make one of RSA takes longer than anybody waits who reads a list of a hundred domains."""
    first, second = (
        x509.load_pem_x509_certificate(certificates.issue(domain, "rsa", derive.now()).encode()) for domain in "ab"
    )
    assert first.subject != second.subject
    assert first.public_key() == second.public_key()
