"""Service user."""

from typing import Annotated, ClassVar

from typing_extensions import Doc

from reconciler.kinds.rules import access
from reconciler.kinds.types.fields import NonEmpty
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class ServiceUser(Spec):
    """The newer API for bot users: the same objects with other ids. Declare each object as one of the two kinds."""

    raises: ClassVar = (access.SERVES_AGENTS,)

    name: Annotated[NonEmpty, Doc("The name, unique among the bot users and service users of the account.")]
    active: Annotated[
        bool,
        access.ACTIVE,
        access.OPENS,
        Doc("Whether the credentials and API keys of the service user are accepted."),
    ] = True


KIND = Kind(
    spec=ServiceUser,
    path="/service_users",
    list_key="service_users",
    id_prefix="service_",
    identity=("name",),
    unique=True,
    same_as="BotUser",
    example="""
        name: berlin
    """,
)
