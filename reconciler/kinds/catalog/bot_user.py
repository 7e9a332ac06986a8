"""Bot user."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import NonEmpty
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class BotUser(Spec):
    """An account for programs, which belongs to no person. It owns credentials."""

    name: Annotated[NonEmpty, Doc("Its name, unique in the account.")]
    active: Annotated[bool, Doc("Whether what it owns may be used.")] = True


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
