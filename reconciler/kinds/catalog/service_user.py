"""Service user."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import NonEmpty
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind


class ServiceUser(Spec):
    """The later name of a bot user: the same objects, under ids of their own. Declare each by one of the two kinds."""

    name: Annotated[NonEmpty, Doc("Its name, unique among bot and service users.")]
    active: Annotated[bool, Doc("Whether what it owns may be used.")] = True


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
