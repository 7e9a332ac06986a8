"""Reserved domain."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import canonical
from reconciler.kinds.types.fields import Deferred, Description, Host, Id, Metadata, NonEmpty, Region
from reconciler.kinds.types.modules import CertificatePolicy
from reconciler.model.fields.annotations import (
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
from reconciler.model.value import Json


class DomainCertificatePolicy(CertificatePolicy):
    """How the platform obtains the certificate by itself."""

    private_key_type: Annotated[Literal["rsa", "ecdsa"], Deferred, Doc("The certificate's kind of key.")] = "ecdsa"


class Location(Part):
    """One place of the platform."""

    value: Annotated[NonEmpty, Doc("The place's code, such as eu, or global.")]


class ReservedDomain(Spec):
    """A hostname kept for the account; may be a wildcard such as `*.apps.example.com`."""

    domain: Annotated[Host, Immutable, Doc("The hostname; a wildcard as first label only.")]
    region: Annotated[Region | None, Immutable, InputOnly, Doc("Deprecated: domains are served everywhere.")] = None
    description: Description = ""
    metadata: Metadata = ""
    resolves_to: Annotated[
        list[Location],
        Unordered,
        EqualAs(canonical.resolves_to),
        Doc("Where its name leads to; everywhere by default."),
    ] = []
    certificate_id: Annotated[
        Id | None,
        RefTo("TLSCertificate"),
        ReadAs("certificate.id", unless="certificate_management_policy"),
        Detach("certificate"),
        Doc("An uploaded certificate to serve; excludes certificate_management_policy."),
    ] = None
    certificate_management_policy: Annotated[
        DomainCertificatePolicy | None,
        Detach("certificate_management_policy"),
        Doc("Let the platform obtain the certificate; excludes certificate_id."),
    ] = None
    http_endpoint_configuration_id: Annotated[
        Id | None,
        UpdateOnly,
        ReadAs("http_endpoint_configuration.id"),
        Detach("http_endpoint_configuration"),
        Doc("The endpoint configuration for http."),
    ] = None
    https_endpoint_configuration_id: Annotated[
        Id | None,
        UpdateOnly,
        ReadAs("https_endpoint_configuration.id"),
        Detach("https_endpoint_configuration"),
        Doc("The endpoint configuration for https."),
    ] = None

    def findings(self) -> Iterator[Finding]:
        if self.certificate_id is not None and self.certificate_management_policy is not None:
            yield Finding(
                ("certificate_id",),
                "excludes certificate_management_policy",
                "keep the uploaded certificate or the policy, not both",
                code="conflicting-fields",
            )


class ReservedDomainRead(Read):
    cname_target: str | None = None
    certificate_management_status: Json = None
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
    carries_traffic=True,
    host="domain",
    example="""
        domain: app.example.com
        certificate_management_policy: {authority: letsencrypt}
    """,
)
