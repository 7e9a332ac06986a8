"""API key."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Metadata, OwnerId
from reconciler.model.fields.annotations import Immutable, ServerDefault
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind


class APIKey(Spec):
    """A key to the management API. Its token can be read once, when it is made."""

    description: Description = ""
    metadata: Metadata = ""
    owner_id: Annotated[
        OwnerId | None, Immutable, ServerDefault, Doc("The bot or user that owns it; the caller by default.")
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
    example="""
        description: The pipeline of the Berlin site
        owner_id: {ref: ServiceUser/berlin}
    """,
)
