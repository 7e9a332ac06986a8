"""Certificate authority."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import health
from reconciler.kinds.types.fields import CaPem, Description, Metadata
from reconciler.model.access import Authority
from reconciler.model.fields.annotations import Immutable
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.health import AccountFacts, Body, Health
from reconciler.model.kind import Kind


class CertificateAuthority(Spec):
    """A certificate authority. Edges with the module `mutual_tls` accept client certificates that it issued."""

    ca_pem: Annotated[CaPem, Immutable, Doc("The certificate of the authority, as PEM. Exactly one certificate.")]
    description: Description = ""
    metadata: Metadata = ""


class CertificateAuthorityRead(Read):
    subject_common_name: str = ""
    not_before: str = ""
    not_after: str = ""
    key_usages: list[str] = []
    extended_key_usages: list[str] = []


def _check_authority(body: Body, facts: AccountFacts) -> Health:
    advice = "upload a renewed authority, and list both until all clients have changed"
    return health.check_validity(body.get("not_before"), body.get("not_after"), facts, advice)


KIND = Kind(
    spec=CertificateAuthority,
    read=CertificateAuthorityRead,
    path="/certificate_authorities",
    list_key="certificate_authorities",
    id_prefix="ca_",
    identity=("ca_pem",),
    access=Authority(),
    health=_check_authority,
    example="""
        ca_pem: {from_file: certs/partners.pem}
        description: Partners who may connect
    """,
)
