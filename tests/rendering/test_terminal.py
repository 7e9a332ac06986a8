"""What `explain` and `kinds` print about a kind and its fields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec.structs import replace
from typing_extensions import Doc

from reconciler import kinds
from reconciler.model.fields.annotations import Immutable, ImmutablePart, InputOnly, RefTo, Sensitive
from reconciler.model.fields.field import Field
from reconciler.model.fields.spec import Module, Part, Read, Spec
from reconciler.model.kind import Home, Kind, PartOf
from reconciler.rendering.reference import terminal
from tests.harness.golden import compare_golden


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
)
KINDS = {
    "whole": WHOLE,
    "plain": PLAIN,
    "agent": replace(WHOLE, home=Home.AGENT, unique=False, part_of=PartOf("TLSEdge", "edge_id"), one_time=None),
    "file": replace(WHOLE, home=Home.FILE, identity=(), part_of=None, irreplaceable=False),
}


def list_fields(fields: tuple[Field, ...], above: str = "") -> Iterator[tuple[str, Field]]:
    for field in fields:
        path = f"{above}{field.name}"
        yield path, field
        yield from list_fields(field.fields or (field.item.fields if field.item else ()), f"{path}.")


def test_kinds_and_fields_with_every_trait_are_explained() -> None:
    pages = [
        f"{name}, {width} cells:\n{terminal.page(kind, width)}" for name, kind in KINDS.items() for width in (40, 100)
    ]
    fields = list(list_fields(WHOLE.fields))
    pages += [terminal.field_page(WHOLE, path, field, width) for path, field in fields for width in (30, 100)]
    pages += [terminal.listing([WHOLE, PLAIN])]
    compare_golden(Path(__file__).parent / "pages" / "explain.txt", "\n----\n".join(pages) + "\n")


def test_no_line_about_a_kind_is_longer_than_the_terminal() -> None:
    for kind in kinds.every():
        for width in (60, 80):
            pages = [terminal.page(kind, width)]
            pages += [terminal.field_page(kind, path, field, width) for path, field in list_fields(kind.fields)]
            assert max(len(line) for page in pages for line in page.splitlines()) <= width
