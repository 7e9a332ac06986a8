"""TLS certificate."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import health, syntax
from reconciler.kinds.types.fields import CertificatePem, Description, Metadata, PrivateKeyPem
from reconciler.model.access import read_texts
from reconciler.model.fields.annotations import Immutable, InputOnly
from reconciler.model.fields.spec import Read, ReadPart, Spec
from reconciler.model.health import AccountFacts, Actor, Body, Health, State
from reconciler.model.kind import Kind, Wire
from reconciler.model.problem import Finding
from reconciler.model.value import reveal_text, value_at


class TLSCertificate(Spec):
    """A TLS certificate and its private key, uploaded for use by reserved domains."""

    certificate_pem: Annotated[CertificatePem, Immutable, Doc("The certificate followed by its chain, as PEM.")]
    private_key_pem: Annotated[
        PrivateKeyPem, Immutable, InputOnly, Doc("The private key of the certificate, as PEM without a passphrase.")
    ]
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        certificate, key = reveal_text(self.certificate_pem), reveal_text(self.private_key_pem)
        if certificate is not None and key is not None and not syntax.matches_key(certificate, key):
            yield Finding(
                ("private_key_pem",),
                "does not match certificate_pem",
                "set the private key that the certificate was issued for",
                code="key-mismatch",
            )


class AlternativeNames(ReadPart):
    dns_names: list[str] = []
    ips: list[str] = []


class TLSCertificateRead(Read):
    subject_common_name: str = ""
    subject_alternative_names: AlternativeNames = AlternativeNames()
    issued_at: str | None = None
    not_before: str = ""
    not_after: str = ""
    key_usages: list[str] = []
    extended_key_usages: list[str] = []
    private_key_type: str = ""
    issuer_common_name: str = ""
    serial_number: str = ""
    subject_organization: str = ""
    subject_organizational_unit: str = ""
    subject_locality: str = ""
    subject_province: str = ""
    subject_country: str = ""


def _check_certificate(body: Body, facts: AccountFacts) -> Health | None:
    """The validity of an uploaded certificate, and the hosts that it serves. The platform renews its own."""
    if KIND.is_automatic(body):
        return None
    renew = "upload a renewed certificate"
    valid = health.check_validity(body.get("not_before"), body.get("not_after"), facts, renew)
    names = read_texts(value_at(body, ["subject_alternative_names", "dns_names"]))
    names = names or [health.text_at(body, "subject_common_name")]
    domains = facts.list_where("ReservedDomain", ("certificate", "id"), health.text_at(body, "id"))
    hosts = sorted({health.text_at(domain, "domain") for domain in domains})
    uncovered = [host for host in hosts if host and not any(health.covers(name, host) for name in names)]
    if valid.state is State.DEGRADED or not uncovered:
        return valid
    reason = f"it does not cover {', '.join(uncovered)}"
    return Health(State.DEGRADED, reason, "serve a certificate that names the host", Actor.YOU, due=valid.due)


KIND = Kind(
    spec=TLSCertificate,
    read=TLSCertificateRead,
    path="/tls_certificates",
    list_key="tls_certificates",
    id_prefix="cert_",
    identity=("certificate_pem",),
    wire=Wire(automatic="issued_at"),
    health=_check_certificate,
    example="""
        certificate_pem: {from_file: tls/app.pem}
        private_key_pem: {from_env: APP_TLS_KEY}
    """,
)
