"""API key."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import health
from reconciler.kinds.types.fields import Description, Metadata, OwnerId
from reconciler.model.fields.annotations import Immutable, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind


class APIKey(Spec):
    """A key of the management API. The platform returns its token only in the response to the create; use `deliver` to
    store it."""

    description: Description = ""
    metadata: Metadata = ""
    owner_id: Annotated[
        OwnerId | None,
        Immutable,
        ServerDefault,
        Doc(
            "The bot user, service user or user that owns it. Default: the owner of the API key used for the "
            "create. Only an administrator may set another owner."
        ),
    ] = None


class APIKeyRead(Read):
    token: str | None = None


KIND = Kind(
    spec=APIKey,
    read=APIKeyRead,
    path="/api_keys",
    list_key="keys",
    id_prefix="ak_",
    one_time="token",
    health=health.check_credential,
    example="""
        description: The pipeline of the Berlin site
        owner_id: {ref: BotUser/berlin}
    """,
)
