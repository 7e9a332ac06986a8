"""SSH certificate authority."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Deferred, Description, EllipticCurve, Metadata
from reconciler.model.fields.annotations import Immutable, InputOnly, ReadAs, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding

_SIZES = (2048, 4096)


class SSHCertificateAuthority(Spec):
    """An authority that signs SSH host and user certificates. The platform generates its private key and never returns
    it."""

    private_key_type: Annotated[
        Annotated[Literal["rsa", "ecdsa", "ed25519"], Deferred] | None,
        Immutable,
        ServerDefault,
        ReadAs("key_type"),
        Doc("The type of the private key. If not set, the platform chooses one."),
    ] = None
    elliptic_curve: Annotated[
        EllipticCurve | None,
        Immutable,
        InputOnly,
        ServerDefault,
        Doc("The elliptic curve of an ecdsa key. If not set, the platform chooses one."),
    ] = None
    key_size: Annotated[
        int | None,
        Immutable,
        InputOnly,
        ServerDefault,
        Doc("The size of an rsa key in bits: 2048 or 4096. If not set, the platform chooses one."),
    ] = None
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        key_type = self.private_key_type
        if self.elliptic_curve is not None and key_type in (None, "rsa", "ed25519"):
            yield Finding(
                ("elliptic_curve",),
                "applies only to ecdsa keys",
                "remove it, or set private_key_type: ecdsa",
                code="field-not-applicable",
            )
        if self.key_size is not None and key_type in (None, "ecdsa", "ed25519"):
            yield Finding(
                ("key_size",),
                "applies only to rsa keys",
                "remove it, or set private_key_type: rsa",
                code="field-not-applicable",
            )
        if self.key_size is not None and self.key_size not in _SIZES:
            yield Finding(
                ("key_size",),
                f"{self.key_size} is not a supported key size",
                "set 2048 or 4096",
                code="invalid-value",
            )


class SSHCertificateAuthorityRead(Read):
    public_key: str = ""
    key_type: str = ""


KIND = Kind(
    spec=SSHCertificateAuthority,
    read=SSHCertificateAuthorityRead,
    path="/ssh_certificate_authorities",
    list_key="ssh_certificate_authorities",
    id_prefix="sshca_",
    example="""
        private_key_type: ed25519
        description: Signs the hosts of the build farm
    """,
)
