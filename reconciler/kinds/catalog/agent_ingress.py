"""Agent ingress."""

from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Deferred, Description, Metadata, PlainHost
from reconciler.kinds.types.modules import CertificatePolicy
from reconciler.model.fields.annotations import Immutable
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.value import Json


class IngressCertificatePolicy(CertificatePolicy):
    """How the platform obtains the certificate by itself."""

    private_key_type: Annotated[Literal["rsa", "ecdsa"], Deferred, Doc("The certificate's kind of key.")] = "rsa"


class AgentIngress(Spec):
    """A domain of your own through which agents reach the platform, delegated to it by NS records."""

    domain: Annotated[PlainHost, Immutable, Doc("The domain; the regional domains for agents lie below it.")]
    description: Description = ""
    metadata: Metadata = ""
    certificate_management_policy: Annotated[
        IngressCertificatePolicy | None, Doc("Let the platform obtain the certificates.")
    ] = None


class AgentIngressRead(Read):
    ns_targets: list[str] = []
    region_domains: list[str] = []
    certificate_management_status: Json = None


KIND = Kind(
    spec=AgentIngress,
    read=AgentIngressRead,
    path="/agent_ingresses",
    list_key="ingresses",
    id_prefix="agin_",
    carries_traffic=True,
    identity=("domain",),
    unique=True,
    irreplaceable=True,
    uri_is_path=True,
    example="""
        domain: connect.example.com
        certificate_management_policy: {private_key_type: ecdsa}
    """,
)
