"""Tunnel credential."""

from typing import Annotated, ClassVar

from typing_extensions import Doc

from reconciler.kinds.rules import access, health
from reconciler.kinds.types.fields import Acl, Description, Metadata, OwnerId
from reconciler.model.access import Opener
from reconciler.model.fields.annotations import Immutable, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind


class TunnelCredential(Spec):
    """An authtoken for agents. The platform returns the token only in the response to the create; use `deliver` to
    store it."""

    raises: ClassVar = (access.SERVES_AGENTS,)

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


class TunnelCredentialRead(Read):
    token: str | None = None


KIND = Kind(
    spec=TunnelCredential,
    read=TunnelCredentialRead,
    path="/credentials",
    list_key="credentials",
    id_prefix="cr_",
    one_time="token",
    display_fields=("acl",),
    access=Opener(),
    health=health.check_credential,
    example="""
        description: Agent of the Berlin site
        acl: ["bind:*.berlin.example.com"]
        owner_id: {ref: BotUser/berlin}
    """,
)
