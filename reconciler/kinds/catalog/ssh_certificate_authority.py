"""SSH certificate authority."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.types.fields import Deferred, Description, Metadata, NonEmpty
from reconciler.model.fields.annotations import Immutable, InputOnly, ReadAs, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding

_SIZES = (2048, 4096)


class SSHCertificateAuthority(Spec):
    """Signs SSH certificates. Its key is made by the platform and never leaves it."""

    private_key_type: Annotated[
        Annotated[Literal["rsa", "ecdsa", "ed25519"], Deferred] | None,
        Immutable,
        ServerDefault,
        ReadAs("key_type"),
        Doc("The kind of key. The platform picks one."),
    ] = None
    elliptic_curve: Annotated[
        NonEmpty | None, Immutable, InputOnly, ServerDefault, Doc("The curve of an ecdsa key. The platform picks one.")
    ] = None
    key_size: Annotated[
        int | None,
        Immutable,
        InputOnly,
        ServerDefault,
        Doc("The bits of an rsa key, 2048 or 4096. The platform picks."),
    ] = None
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        sort = self.private_key_type
        if self.elliptic_curve is not None and sort in (None, "rsa", "ed25519"):
            yield Finding(
                ("elliptic_curve",),
                "is for ecdsa keys only",
                "remove it, or set private_key_type: ecdsa",
                code="field-not-applicable",
            )
        if self.key_size is not None and sort in (None, "ecdsa", "ed25519"):
            yield Finding(
                ("key_size",),
                "is for rsa keys only",
                "remove it, or set private_key_type: rsa",
                code="field-not-applicable",
            )
        if self.key_size is not None and self.key_size not in _SIZES:
            yield Finding(
                ("key_size",),
                f"{self.key_size} is not a size the platform makes",
                "write 2048 or 4096",
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
