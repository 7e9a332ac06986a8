"""Bot user."""

from typing import Annotated, ClassVar

from typing_extensions import Doc

from reconciler.kinds.rules import access
from reconciler.kinds.types.fields import NonEmpty
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class BotUser(Spec):
    """An account for programs that belongs to no person. It can own credentials and API keys."""

    raises: ClassVar = (access.SERVES_AGENTS,)

    name: Annotated[NonEmpty, Doc("The name, unique among the bot users of the account.")]
    active: Annotated[
        bool,
        access.ACTIVE,
        access.OPENS,
        Doc("Whether the credentials and API keys of the bot user are accepted."),
    ] = True


KIND = Kind(
    spec=BotUser,
    path="/bot_users",
    list_key="bot_users",
    id_prefix="bot_",
    identity=("name",),
    unique=True,
    example="""
        name: berlin
    """,
)
