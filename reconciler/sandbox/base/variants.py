"""Behaviors in which the public platform varies or differs from its specification, set by `PUT /_sandbox/variants`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Variants(BaseModel):
    """
    patch_empties   a PATCH that leaves out a field that every PATCH should carry empties the field
    sparse          answers leave out text fields that are not set, instead of showing them as empty text
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    patch_empties: bool = False
    sparse: bool = False
