"""Base classes of specs, parts and modules, and of responses."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from typing_extensions import Doc

from reconciler.model.fields.annotations import Raises
from reconciler.model.fields.form import Form
from reconciler.model.problem import Finding


class Spec(Form):
    """The fields that a manifest may declare, in the form of the platform's requests."""

    raises: ClassVar[tuple[Raises, ...]] = ()

    def findings(self) -> Iterator[Finding]:
        """Yields the violated rules between fields. Values may be unresolved references."""
        return iter(())


class Part(Form):
    """An object inside a spec."""

    raises: ClassVar[tuple[Raises, ...]] = ()

    def findings(self) -> Iterator[Finding]:
        """Yields the violated rules between the fields of this object, with paths relative to it."""
        return iter(())


class Module(Part):
    """A part with a path of its own: PUT, GET and DELETE on `<object>/<field name>`."""

    enabled: Annotated[bool, Doc("Whether the module is applied to traffic.")] = True


class Read(Form):
    """The fields of a response besides those of the spec. Other keys are allowed."""

    model_config = {"extra": "allow", "frozen": True, "defer_build": True}


class ReadPart(Form):
    """An object inside a response."""

    model_config = {}


class Ref(Read):
    """A reference to another object in a response."""

    id: str
    uri: str = ""
