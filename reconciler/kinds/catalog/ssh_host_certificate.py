"""SSH host certificate."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import health
from reconciler.kinds.types.fields import (
    Description,
    Id,
    Instant,
    Metadata,
    NonEmpty,
    SshLine,
    check_period,
    check_principals,
)
from reconciler.model.fields.annotations import Immutable, RefTo, ServerDefault, Unordered
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


class SSHHostCertificate(Spec):
    """A certificate that authenticates an SSH host to its clients."""

    ssh_certificate_authority_id: Annotated[
        Id,
        RefTo("SSHCertificateAuthority"),
        Immutable,
        Doc("The SSH certificate authority that signs the certificate."),
    ]
    public_key: Annotated[SshLine, Immutable, Doc("The public key of the host, as a line of authorized_keys.")]
    principals: Annotated[
        list[NonEmpty],
        Immutable,
        Unordered,
        Doc("The hostnames and IP addresses that the certificate is valid for. Empty: all hosts."),
    ] = []
    valid_after: Annotated[
        Instant | None,
        Immutable,
        ServerDefault,
        Doc("The start of the validity, as an RFC 3339 timestamp. Default: the time of the create."),
    ] = None
    valid_until: Annotated[
        Instant | None,
        Immutable,
        ServerDefault,
        Doc("The end of the validity, as an RFC 3339 timestamp. Default: one year after the create."),
    ] = None
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        yield from check_period(self.valid_after, self.valid_until)
        yield from check_principals(self.principals)


class SSHHostCertificateRead(Read):
    key_type: str = ""
    certificate: str = ""


KIND = Kind(
    spec=SSHHostCertificate,
    read=SSHHostCertificateRead,
    path="/ssh_host_certificates",
    list_key="ssh_host_certificates",
    id_prefix="shcrt_",
    display_fields=("principals",),
    health=health.check_ssh_certificate,
    example="""
        ssh_certificate_authority_id: {ref: SSHCertificateAuthority/farm}
        public_key: {from_file: keys/build-1.pub}
        principals: [build-1.example.com]
        valid_after: "2030-01-01T00:00:00Z"
        valid_until: "2031-01-01T00:00:00Z"
    """,
)
