"""SSH user certificate."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Id, Instant, Metadata, NonEmpty, SshLine, Text, check_period
from reconciler.model.fields.annotations import Immutable, RefTo, ServerDefault, Unordered
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


class SSHUserCertificate(Spec):
    """A certificate with which somebody shows an SSH host who they are."""

    ssh_certificate_authority_id: Annotated[
        Id, RefTo("SSHCertificateAuthority"), Immutable, Doc("The authority that signs it.")
    ]
    public_key: Annotated[SshLine, Immutable, Doc("The user's key, as a line of authorized_keys.")]
    principals: Annotated[
        list[NonEmpty], Immutable, Unordered, Doc("Names of users it is for; none means every user.")
    ] = []
    critical_options: Annotated[
        dict[str, Text], Immutable, Doc("Options that a host must know, such as force-command.")
    ] = {}
    extensions: Annotated[
        dict[str, Text], Immutable, ServerDefault, Doc("What the session may do; a terminal and ~/.ssh/rc by default.")
    ] = {"permit-pty": "", "permit-user-rc": ""}
    valid_after: Annotated[Instant | None, Immutable, ServerDefault, Doc("When it begins; now by default.")] = None
    valid_until: Annotated[
        Instant | None, Immutable, ServerDefault, Doc("When it ends; a day after it was made by default.")
    ] = None
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        yield from check_period(self.valid_after, self.valid_until)


class SSHUserCertificateRead(Read):
    key_type: str = ""
    certificate: str = ""


KIND = Kind(
    spec=SSHUserCertificate,
    read=SSHUserCertificateRead,
    path="/ssh_user_certificates",
    list_key="ssh_user_certificates",
    id_prefix="sucrt_",
    example="""
        ssh_certificate_authority_id: {ref: SSHCertificateAuthority/farm}
        public_key: {from_file: keys/alice.pub}
        principals: [alice]
        valid_after: "2030-01-01T00:00:00Z"
        valid_until: "2030-02-01T00:00:00Z"
    """,
)
