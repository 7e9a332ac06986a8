"""SSH credential."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Acl, Description, Metadata, OwnerId, SshPublicKey
from reconciler.model.fields.annotations import Immutable, ServerDefault
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class SSHCredential(Spec):
    """A public key that may start tunnels through the SSH gateway."""

    public_key: Annotated[SshPublicKey, Immutable, Doc("The key, as a line of authorized_keys or as PEM.")]
    description: Description = ""
    metadata: Metadata = ""
    acl: Annotated[Acl, Doc("What the credential may bind; no rules, no restrictions.")] = []
    owner_id: Annotated[
        OwnerId | None, Immutable, ServerDefault, Doc("The bot or user that owns it; the caller by default.")
    ] = None


KIND = Kind(
    spec=SSHCredential,
    path="/ssh_credentials",
    list_key="ssh_credentials",
    id_prefix="sshcr_",
    identity=("public_key",),
    unique=True,
    example="""
        public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl laptop
        acl: ["bind:demo.example.com", "bind:team=*"]
    """,
)
