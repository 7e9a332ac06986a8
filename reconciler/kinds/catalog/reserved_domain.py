"""Reserved domain."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import canonical
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
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


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
    host="domain",
    example="""
        domain: app.example.com
        certificate_management_policy: {authority: letsencrypt}
    """,
)
