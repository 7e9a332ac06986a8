"""Base classes of specs, parts, modules and settings that users write, and of responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import Doc

from reconciler.model.fields.annotations import Raises
from reconciler.model.problem import Finding


class StrictModel(BaseModel):
    """A model of user input: no unknown keys, no type conversion, no values in error messages."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, defer_build=True)


class Spec(StrictModel):
    """The fields that a manifest may declare, in the form of the platform's requests."""

    raises: ClassVar[tuple[Raises, ...]] = ()

    def findings(self) -> Iterator[Finding]:
        """Yields the violated rules between fields. Values may be unresolved references."""
        return iter(())


class Part(StrictModel):
    """An object inside a spec."""

    raises: ClassVar[tuple[Raises, ...]] = ()

    def findings(self) -> Iterator[Finding]:
        """Yields the violated rules between the fields of this object, with paths relative to it."""
        return iter(())


class Module(Part):
    """A part with a path of its own: PUT, GET and DELETE on `<object>/<field name>`."""

    enabled: Annotated[bool, Doc("Whether the module is applied to traffic.")] = True


class Read(BaseModel):
    """The fields of a response besides those of the spec."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class Ref(BaseModel):
    """A reference to another object in a response."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    id: str
    uri: str = ""
