"""Tunnel credential."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Acl, Description, Metadata, OwnerId
from reconciler.model.fields.annotations import Immutable, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind


class TunnelCredential(Spec):
    """An authtoken with which an agent opens tunnels. The token can be read once, when it is made."""

    description: Description = ""
    metadata: Metadata = ""
    acl: Annotated[Acl, Doc("What the credential may bind; no rules, no restrictions.")] = []
    owner_id: Annotated[
        OwnerId | None, Immutable, ServerDefault, Doc("The bot or user that owns it; the caller by default.")
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
    example="""
        description: Agent of the Berlin site
        acl: ["bind:*.berlin.example.com"]
        owner_id: {ref: BotUser/berlin}
    """,
)
