"""The conditions that a sandbox starts in and a reset restores: injected faults, provisioning, the platform's clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from reconciler.sandbox.base.provisioning import Provisioning
from reconciler.sandbox.server.faults import Fault
from reconciler.sandbox.wire import parsing


class ClockSetting(BaseModel):
    """How many seconds the platform's clock is ahead of that of the machine."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    offset: Annotated[float, Field(ge=-(10**9), le=10**9, allow_inf_nan=False)] = 0.0


class Conditions(BaseModel):
    """Each field has the form of the body that the control path of its name takes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    faults: list[Fault] = []
    provisioning: Provisioning = Provisioning()
    clock: ClockSetting = ClockSetting()


def read_conditions(file: Path | None, nameserver: str | None) -> Conditions:
    """The conditions of a JSON file, with another name server unless it is None.

    Raises ValueError for an invalid file, and for a name server without dnspython.
    """
    found = Conditions()
    if file is not None:
        try:
            found = parsing.validate(Conditions, json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"{file}: {error}") from error
    if nameserver is not None:
        provisioning = parsing.validate(Provisioning, {**found.provisioning.model_dump(), "nameserver": nameserver})
        found = found.model_copy(update={"provisioning": provisioning})
    found.provisioning.check_available()
    return found
