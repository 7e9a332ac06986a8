"""Behaviors in which the public platform differs from its specification: what `PUT /_sandbox/variants` sets."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Variants(BaseModel):
    """
    patch_empties   a PATCH that leaves out a field that every PATCH should carry empties the field
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    patch_empties: bool = False
