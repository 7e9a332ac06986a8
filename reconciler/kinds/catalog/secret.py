"""Secret in a vault."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Id, Metadata, NonEmpty, VaultName
from reconciler.model.fields.annotations import Immutable, InputOnly, NameOf, ReadAs, RefTo, Sensitive, ServerDefault
from reconciler.model.fields.spec import Read, Ref, Spec
from reconciler.model.kind import Kind, PartOf
from reconciler.model.problem import Finding


class Secret(Spec):
    """A secret value in a vault, for use in traffic policies. The platform never returns the value."""

    name: Annotated[
        VaultName, Doc("The name, unique in the vault. Letters, digits, `_`, `-`, `/` and `.` are allowed.")
    ]
    value: Annotated[
        NonEmpty, InputOnly, Sensitive, Doc("The secret value; preferably `{from_env: NAME}` or `{from_file: PATH}`.")
    ]
    vault_id: Annotated[
        Id | None,
        Immutable,
        ServerDefault,
        RefTo("Vault"),
        ReadAs("vault.id"),
        Doc("The vault that holds the secret. Required unless `vault_name` is set; the two cannot be combined."),
    ] = None
    vault_name: Annotated[
        VaultName | None,
        Immutable,
        ServerDefault,
        NameOf("vault_id"),
        Doc("The name of the vault that holds the secret, instead of `vault_id`."),
    ] = None
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        if self.vault_id is None and self.vault_name is None:
            yield Finding((), "has no vault", "set `vault_id: {ref: Vault/NAME}` or vault_name", code="missing-field")
        if self.vault_id is not None and self.vault_name is not None:
            yield Finding(
                ("vault_name",),
                "cannot be combined with vault_id",
                "remove vault_name or vault_id",
                code="conflicting-fields",
            )


class SecretRead(Read):
    updated_at: str = ""
    created_by: Ref | None = None
    last_updated_by: Ref | None = None
    vault: Ref | None = None


KIND = Kind(
    spec=Secret,
    read=SecretRead,
    path="/vault_secrets",
    list_key="secrets",
    id_prefix="secret_",
    identity=("vault_id", "name"),
    unique=True,
    part_of=PartOf("Vault", field="vault_id", deleted_with=False, inline="secrets"),
    example="""
        vault_id: {ref: Vault/payments}
        name: stripe
        value: {from_env: STRIPE_KEY}
    """,
)
