"""Kinds that no platform has, with every trait of kinds and fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec.structs import replace
from typing_extensions import Doc

from reconciler.model.fields.annotations import Immutable, ImmutablePart, InputOnly, RefTo, Sensitive
from reconciler.model.fields.spec import Module, Part, Read, Spec
from reconciler.model.kind import Home, Kind, PartOf


class Provider(Part):
    """Who signs people in."""

    name: Annotated[str, Doc("As it is shown."), Immutable]
    secret: Annotated[str, Sensitive, InputOnly] = ""


class Gate(Module):
    enabled: Annotated[bool, Doc("Off without being removed.")] = True


class Undescribed(Part):
    size: float = 1.5


class Example(Spec):
    """Serves examples,
    each on one address. It is made up, and its description is longer than a line of a narrow terminal.
    """

    url: Annotated[str, Doc("The address."), Immutable]
    mode: Annotated[Literal["open", "shut"], Doc("Who gets through; it is a sentence that takes several lines.")] = (
        "open"
    )
    policy_ids: Annotated[list[Annotated[str, RefTo("IPPolicy", "TLSEdge")]], Doc("Policies.")] = []  # noqa: RUF012 - as in every kind
    labels: dict[str, str] = {}  # noqa: RUF012
    providers: Annotated[list[Provider], Doc("All of them.")] = []  # noqa: RUF012
    provider: Provider | None = None
    gate: Gate | None = None
    plain: Undescribed | None = None
    level: Annotated[int, Doc("A number."), ImmutablePart(str, "first digit")] = 3
    document: Any = None


class Lone(Spec):
    """No sentence ends here"""

    metadata: str = ""


class Silent(Spec):
    name: str = ""


class ExampleRead(Read):
    port: Annotated[str, Doc("The port.")] = ""
    token: str = ""


PLAIN = Kind(spec=Lone, path="/alone", list_key="alone", id_prefix="lon_")
WHOLE = Kind(
    spec=Example,
    read=ExampleRead,
    path="/examples",
    list_key="examples",
    id_prefix="ex_",
    identity=("url", "mode"),
    unique=True,
    part_of=PartOf("TLSEdge", "edge_id", inline="examples"),
    one_time="token",
    irreplaceable=True,
    example="""
        url: https://a.example
        labels: {a: b}
    """,
)
SILENT = replace(PLAIN, spec=Silent)  # has no description
KINDS = {
    "whole": WHOLE,
    "plain": PLAIN,
    "agent": replace(WHOLE, home=Home.AGENT, unique=False, part_of=PartOf("TLSEdge", "edge_id"), one_time=None),
    "file": replace(WHOLE, home=Home.FILE, identity=(), part_of=None, irreplaceable=False),
}
