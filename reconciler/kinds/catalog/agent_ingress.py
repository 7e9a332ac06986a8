"""Agent ingress."""

from typing import Annotated, ClassVar, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import access, health
from reconciler.kinds.types.fields import CertificateStatus, Deferred, Description, Metadata, PlainHost
from reconciler.kinds.types.modules import CertificatePolicy
from reconciler.model.access import Name
from reconciler.model.fields.annotations import Immutable
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.health import AccountFacts, Actor, Body, Health, State
from reconciler.model.kind import Kind


class IngressCertificatePolicy(CertificatePolicy):
    """Automatic management of the certificates of the ingress."""

    private_key_type: Annotated[
        Literal["rsa", "ecdsa"], Deferred, Doc("The type of the certificate's private key.")
    ] = "rsa"


class AgentIngress(Spec):
    """A custom domain through which agents connect to the platform. It is delegated with an NS record for each value
    of the output `ns_targets`."""

    raises: ClassVar = (access.SERVES_AGENTS,)

    domain: Annotated[
        PlainHost,
        Immutable,
        Doc(
            "A domain that you own. The platform creates a subdomain for each of its regions (output `region_domains`)."
        ),
    ]
    description: Description = ""
    metadata: Metadata = ""
    certificate_management_policy: Annotated[
        IngressCertificatePolicy | None, Doc("Lets the platform obtain and renew the certificates.")
    ] = None


class AgentIngressRead(Read):
    ns_targets: list[str] = []
    region_domains: list[str] = []
    certificate_management_status: CertificateStatus | None = None


def _check_ingress(body: Body, facts: AccountFacts) -> Health | None:
    """The certificates of an ingress with a policy; responses show no certificate, only when it will be renewed."""
    if body.get("certificate_management_policy") is None:
        return None
    status = body.get("certificate_management_status")
    job = health.check_provisioning(status, facts, health.list_delegations(body))
    if job.state is State.HEALTHY and job.due is None:
        return Health(State.PROGRESSING, "the certificate is not issued yet", actor=Actor.PLATFORM)
    return job


KIND = Kind(
    spec=AgentIngress,
    read=AgentIngressRead,
    path="/agent_ingresses",
    list_key="ingresses",
    id_prefix="agin_",
    identity=("domain",),
    unique=True,
    irreplaceable=True,
    access=Name(),
    health=_check_ingress,
    records=health.list_delegations,
    example="""
        domain: connect.example.com
        certificate_management_policy: {private_key_type: ecdsa}
    """,
)
