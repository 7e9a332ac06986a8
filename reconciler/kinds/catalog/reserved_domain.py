"""Reserved domain."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import canonical, health
from reconciler.kinds.types.fields import CertificateStatus, Deferred, Description, Host, Id, Metadata, NonEmpty, Region
from reconciler.kinds.types.modules import CertificatePolicy
from reconciler.model.access import Name
from reconciler.model.fields.annotations import (
    CreateOnly,
    Detach,
    EqualAs,
    Immutable,
    InputOnly,
    ReadAs,
    RefTo,
    Unordered,
    UpdateOnly,
)
from reconciler.model.fields.spec import Part, Read, Ref, Spec
from reconciler.model.health import AccountFacts, Actor, Body, Health, State, read_instant
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding
from reconciler.model.value import value_at


class DomainCertificatePolicy(CertificatePolicy):
    """Automatic management of the certificate of the domain."""

    private_key_type: Annotated[
        Literal["rsa", "ecdsa"], Deferred, Doc("The type of the certificate's private key.")
    ] = "ecdsa"


class Location(Part):
    """A location of the platform."""

    value: Annotated[NonEmpty, Doc("The code of the location, such as `eu`, or `global` for all.")]


class ReservedDomain(Spec):
    """A hostname reserved for the account, such as `app.example.com` or the wildcard `*.apps.example.com`."""

    domain: Annotated[Host, Immutable, Doc("The hostname. A wildcard is allowed as the first label only.")]
    region: Annotated[
        Region | None,
        InputOnly,
        CreateOnly,
        Doc("Deprecated by the platform: domains are served in all regions."),
    ] = None
    description: Description = ""
    metadata: Metadata = ""
    resolves_to: Annotated[
        list[Location],
        Unordered,
        EqualAs(canonical.resolves_to),
        Doc("The locations that the hostname resolves to. Default: all."),
    ] = []
    certificate_id: Annotated[
        Id | None,
        RefTo("TLSCertificate"),
        ReadAs("certificate.id", unless="certificate_management_policy"),
        Detach("certificate"),
        Doc("The uploaded TLS certificate to serve. Cannot be combined with `certificate_management_policy`."),
    ] = None
    certificate_management_policy: Annotated[
        DomainCertificatePolicy | None,
        Detach("certificate_management_policy"),
        Doc("Lets the platform obtain and renew the certificate. Cannot be combined with `certificate_id`."),
    ] = None
    http_endpoint_configuration_id: Annotated[
        Id | None,
        UpdateOnly,
        ReadAs("http_endpoint_configuration.id"),
        Detach("http_endpoint_configuration"),
        Doc("The id of the endpoint configuration for HTTP."),
    ] = None
    https_endpoint_configuration_id: Annotated[
        Id | None,
        UpdateOnly,
        ReadAs("https_endpoint_configuration.id"),
        Detach("https_endpoint_configuration"),
        Doc("The id of the endpoint configuration for HTTPS."),
    ] = None

    def findings(self) -> Iterator[Finding]:
        if self.certificate_id is not None and self.certificate_management_policy is not None:
            yield Finding(
                ("certificate_id",),
                "cannot be combined with certificate_management_policy",
                "remove certificate_id for automatic certificates, or the policy to serve the uploaded certificate",
                code="conflicting-fields",
            )


class ReservedDomainRead(Read):
    cname_target: str | None = None
    certificate_management_status: CertificateStatus | None = None
    acme_challenge_cname_target: str | None = None
    error_redirect_url: str | None = None
    is_dev: bool = False
    certificate: Ref | None = None
    http_endpoint_configuration: Ref | None = None
    https_endpoint_configuration: Ref | None = None


def _check_domain(body: Body, facts: AccountFacts) -> Health:
    """The certificate of a custom hostname. The platform has one for its own domains."""
    records = health.list_host_records(body)
    job = health.check_provisioning(body.get("certificate_management_status"), facts, records)
    if job.state is not State.HEALTHY:
        return job
    if body.get("cname_target", "absent") in (None, ""):
        return job
    certificate = health.text_at(body, "certificate", "id")
    if not certificate:
        return _check_missing_certificate(body, facts)
    served = facts.find("TLSCertificate", certificate)
    end = None if served is None else read_instant(served.get("not_after"))
    if end is not None and facts.now >= end:
        reason = f"its certificate expired on {health.say_day(end)}"
        return Health(State.DEGRADED, reason, "serve another certificate", Actor.YOU, due=end)
    return job


def _check_missing_certificate(body: Body, facts: AccountFacts) -> Health:
    if value_at(body, ["certificate_management_policy"]) is not None:
        return Health(State.PROGRESSING, "the certificate is not issued yet", actor=Actor.PLATFORM)
    hostport = f"{health.text_at(body, 'domain').lower()}:443"
    edges = facts.list_where("TLSEdge", ("hostports",), hostport)
    upstream = [health.text_at(edge, "tls_termination", "terminate_at") == "upstream" for edge in edges]
    needs_one = facts.list_where("HTTPSEdge", ("hostports",), hostport) or False in upstream
    if edges and not needs_one and facts.is_complete("HTTPSEdge") and facts.is_complete("TLSEdge"):
        return Health(State.HEALTHY)
    return Health(
        State.DEGRADED if needs_one else State.PROGRESSING,
        "it has no certificate, and none is being obtained",
        "set certificate_management_policy or certificate_id",
        Actor.YOU,
    )


KIND = Kind(
    spec=ReservedDomain,
    read=ReservedDomainRead,
    path="/reserved_domains",
    list_key="reserved_domains",
    id_prefix="rd_",
    identity=("domain",),
    unique=True,
    irreplaceable=True,
    access=Name(),
    health=_check_domain,
    records=health.list_host_records,
    host="domain",
    example="""
        domain: app.example.com
        certificate_management_policy: {authority: letsencrypt}
    """,
)
