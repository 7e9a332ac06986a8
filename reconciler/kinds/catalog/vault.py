"""Vault."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Metadata, VaultName
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.kind import Kind


class Vault(Spec):
    """A container for secrets that traffic policies use. The platform deletes only an empty vault."""

    name: Annotated[
        VaultName, Doc("The name, unique in the account. Letters, digits, `_`, `-`, `/` and `.` are allowed.")
    ]
    description: Description = ""
    metadata: Metadata = ""


class VaultRead(Read):
    name: str = ""
    updated_at: str = ""
    created_by: str = ""
    last_updated_by: str = ""


KIND = Kind(
    spec=Vault,
    read=VaultRead,
    path="/vaults",
    list_key="vaults",
    id_prefix="vault_",
    identity=("name",),
    unique=True,
    example="""
        name: payments
    """,
)
