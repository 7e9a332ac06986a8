"""Base classes of what users write (specs, parts, modules, settings) and of what responses carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import Doc

from reconciler.model.fields.annotations import Raises
from reconciler.model.problem import Finding


class StrictModel(BaseModel):
    """What a user writes: no unknown keys, no conversion of types, and no value in an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, defer_build=True)


class Spec(StrictModel):
    """What a user may declare: the platform's own write shape."""

    raises: ClassVar[tuple[Raises, ...]] = ()

    def findings(self) -> Iterator[Finding]:
        """The rules between fields that this declaration breaks. Values may still be references."""
        return iter(())


class Part(StrictModel):
    """An object inside a spec."""

    raises: ClassVar[tuple[Raises, ...]] = ()

    def findings(self) -> Iterator[Finding]:
        """As of a spec, with paths relative to this object."""
        return iter(())


class Module(Part):
    """A part with an address of its own: PUT, GET and DELETE on `<object>/<field name>`."""

    enabled: Annotated[bool, Doc("Whether the module is applied to traffic.")] = True


class Read(BaseModel):
    """What a response carries beyond the declared fields."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class Ref(BaseModel):
    """A pointer to another resource, as responses spell it."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    id: str
    uri: str = ""
