"""Optional behavior of the public platform that differs from its specification, set by `PUT /_sandbox/variants`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Variants(BaseModel):
    """The variants that are on.

    patch_empties   a PATCH empties the fields that it must always contain (`ALWAYS_SENT`) but does not
    sparse          responses omit text fields that are not set, instead of returning empty texts
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    patch_empties: bool = False
    sparse: bool = False
