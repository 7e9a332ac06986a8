"""SSH credential."""

from typing import Annotated, ClassVar

from typing_extensions import Doc

from reconciler.kinds.rules import access, health
from reconciler.kinds.types.fields import Acl, Description, Metadata, OwnerId, SshPublicKey
from reconciler.model.access import Opener
from reconciler.model.fields.annotations import Immutable, ServerDefault
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class SSHCredential(Spec):
    """An SSH public key that can start tunnels through the SSH gateway."""

    raises: ClassVar = (access.SERVES_AGENTS,)

    public_key: Annotated[SshPublicKey, Immutable, Doc("The public key, as a line of authorized_keys or as PEM.")]
    description: Description = ""
    metadata: Metadata = ""
    acl: Annotated[
        Acl,
        Doc(
            "Rules that restrict the domains, addresses and labels that the credential can bind, such as "
            "`bind:*.example.com`. No rules, or the rule `*`: no restrictions."
        ),
    ] = []
    owner_id: Annotated[
        OwnerId | None,
        Immutable,
        ServerDefault,
        Doc(
            "The bot user, service user or user that owns it. Default: the owner of the API key used for the "
            "create. Only an administrator may set another owner."
        ),
    ] = None


KIND = Kind(
    spec=SSHCredential,
    path="/ssh_credentials",
    list_key="ssh_credentials",
    id_prefix="sshcr_",
    identity=("public_key",),
    unique=True,
    display_fields=("acl",),
    access=Opener(),
    health=health.check_owner,
    example="""
        public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl laptop
        acl: ["bind:demo.example.com", "bind:team=*"]
    """,
)
