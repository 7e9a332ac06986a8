"""SSH user certificate."""

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
    Text,
    check_period,
    check_principals,
)
from reconciler.model.fields.annotations import Immutable, RefTo, ServerDefault, Unordered
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


class SSHUserCertificate(Spec):
    """A certificate that authenticates a user to SSH hosts."""

    ssh_certificate_authority_id: Annotated[
        Id,
        RefTo("SSHCertificateAuthority"),
        Immutable,
        Doc("The SSH certificate authority that signs the certificate."),
    ]
    public_key: Annotated[SshLine, Immutable, Doc("The public key of the user, as a line of authorized_keys.")]
    principals: Annotated[
        list[NonEmpty], Immutable, Unordered, Doc("The user names that the certificate is valid for. Empty: all users.")
    ] = []
    critical_options: Annotated[
        dict[str, Text], Immutable, Doc("Options that a host must enforce, such as `force-command`, by name.")
    ] = {}
    extensions: Annotated[
        dict[str, Text],
        Immutable,
        ServerDefault,
        Doc(
            "Permissions of the session, by name. Default: a terminal (`permit-pty`) and `~/.ssh/rc` "
            "(`permit-user-rc`)."
        ),
    ] = {"permit-pty": "", "permit-user-rc": ""}
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
        Doc("The end of the validity, as an RFC 3339 timestamp. Default: 24 hours after the create."),
    ] = None
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        yield from check_period(self.valid_after, self.valid_until)
        yield from check_principals(self.principals)


class SSHUserCertificateRead(Read):
    key_type: str = ""
    certificate: str = ""


KIND = Kind(
    spec=SSHUserCertificate,
    read=SSHUserCertificateRead,
    path="/ssh_user_certificates",
    list_key="ssh_user_certificates",
    id_prefix="sucrt_",
    display_fields=("principals",),
    health=health.check_ssh_certificate,
    example="""
        ssh_certificate_authority_id: {ref: SSHCertificateAuthority/farm}
        public_key: {from_file: keys/alice.pub}
        principals: [alice]
        valid_after: "2030-01-01T00:00:00Z"
        valid_until: "2030-02-01T00:00:00Z"
    """,
)
